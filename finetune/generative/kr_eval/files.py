"""The files of llm-kr-eval: one JSON object a task for evaluation, a list of records for tuning.

```
{"instruction": …, "output_length": 4, "metrics": ["exact_match"],
 "few_shots": [{"input": "전제: …\\n가설: …", "output": "neutral"}, …], "samples": [{"input": …, "output": …}, …]}
[{"ID": "klue_nli-0", "instruction": …, "input": …, "output": …, "text": "… ### 지시: … ### 입력: … ### 응답: …"}, …]
```
Source: facts of the published format; the opening sentences are our own words. Text is brought to NFC and its lines end
in ``\\n``, once, here. Every problem is a ``BadInput`` with the file, the place in it and what was expected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from finetune.data.files import read_json
from finetune.data.tables import nfc
from finetune.generative.kr_eval.metrics import CORRELATIONS, METRICS, number_in

Turn = tuple[Literal["user", "assistant"], str]
KEYS = {"instruction": str, "output_length": int, "metrics": list, "few_shots": list, "samples": list}
KINDS = {str: "a text", int: "a whole number", list: "a list", dict: "an object"}
FORM = "expected one JSON object with " + ", ".join(KEYS)
OPENING = "지시를 읽고, 이어지는 입력에 맞는 응답만 요구된 형식으로 쓰세요."
LONGEST_ANSWER = 1 << 20  # tokens; more is a slip of the keyboard


class Pair(NamedTuple):
    """One sample: what the model gets and the gold answer."""

    input: str
    output: str


@dataclass(frozen=True, slots=True)
class TaskFile:
    """An evaluation file; ``name`` is that of the file without its ending."""

    name: str
    instruction: str
    output_length: int
    metrics: tuple[str, ...]
    few_shots: tuple[Pair, ...]
    samples: tuple[Pair, ...]

    @property
    def golds(self) -> list[str]:
        return [sample.output for sample in self.samples]

    def conversation(self, sample: Pair, shots: int = 0) -> list[Turn]:
        """Opening, instruction and first input in one user turn; the first ``shots`` examples as turns before."""
        asked = [*self.few_shots[:shots], sample]
        head = f"{OPENING}\n{self.instruction}\n\n"
        turns = list[Turn]()
        for number, pair in enumerate(asked):
            turns += [("user", (head if number == 0 else "") + pair.input), ("assistant", pair.output)]
        return turns[:-1]

    def as_json(self) -> dict[str, Any]:
        """In the published order of keys."""
        pairs = {key: [pair._asdict() for pair in getattr(self, key)] for key in ("few_shots", "samples")}
        head = {"instruction": self.instruction, "output_length": self.output_length, "metrics": [*self.metrics]}
        return head | pairs


def read_task_file(path: Path) -> TaskFile:
    """An evaluation file of any task; ``BadInput`` for one that cannot be scored."""
    content = nfc(read_json(path))
    if not isinstance(content, dict):
        said = "; this is a list, as files for tuning are" if isinstance(content, list) else ""
        raise BadInput(f"{path}: {FORM}{said}")
    for key, kind in KEYS.items():
        if key not in content:
            raise BadInput(f"{path}: no '{key}'; {FORM}")
        value = content[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise BadInput(f"{path}: '{key}' should be {KINDS[kind]}, found {value!r:.60}")
    if not 0 < content["output_length"] <= LONGEST_ANSWER:
        raise BadInput(
            f"{path}: 'output_length' is {content['output_length']}; expected the tokens of an answer, from 1"
        )
    name = path.name.removesuffix(".zst").removesuffix(".gz").removesuffix(".json")
    metrics = _metrics_of(path, content["metrics"])
    shots, samples = (_pairs_of(path, key, content[key]) for key in ("few_shots", "samples"))
    if not samples:
        raise BadInput(f"{path}: 'samples' is empty; a file without samples has no score")
    if needing := [metric for metric in metrics if metric in CORRELATIONS]:
        for number, sample in enumerate(samples):
            if number_in(sample.output) is None:
                said = f"is no number, which {' and '.join(needing)} need"
                raise BadInput(f"{path}, 'samples' {number}: 'output' {sample.output!r:.60} {said}")
    instruction = _lines(content["instruction"])
    return TaskFile(name, instruction, content["output_length"], metrics, shots, samples)


def _metrics_of(path: Path, names: Sequence[Any]) -> tuple[str, ...]:
    for name in names:
        if not isinstance(name, str) or name not in METRICS:
            raise BadInput(f"{path}: no metric {name!r:.60}; metrics here are {', '.join(METRICS)}")
    if not names:
        raise BadInput(f"{path}: 'metrics' is empty; name at least one of {', '.join(METRICS)}")
    return tuple(dict.fromkeys(names))


def _pairs_of(path: Path, key: str, values: Sequence[Any]) -> tuple[Pair, ...]:
    found = []
    for number, value in enumerate(values):
        where = f"{path}, '{key}' {number}"
        if not isinstance(value, Mapping):
            raise BadInput(f"{where}: expected an object with 'input' and 'output', found {value!r:.60}")
        for side in Pair._fields:
            if not isinstance(value.get(side), str):
                said = f"found {value[side]!r:.60}" if side in value else "found none"
                raise BadInput(f"{where}: '{side}' should be a text, {said}")
        found.append(Pair(_lines(value["input"]), _lines(value["output"])))
    return tuple(found)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def file_name(task: str) -> str:
    """What a KLUE task is called among these files, as published: ``klue_ner``, and ``klue_wos``."""
    return "klue_" + task.removeprefix("klue-")


def write_task_file(task: TaskFile, path: Path) -> None:
    """One that the published code reads, too."""
    atomic_write(path, json.dumps(task.as_json(), ensure_ascii=False, indent=2) + "\n")


def write_tuning_file(name: str, instruction: str, pairs: Sequence[Pair], path: Path) -> None:
    """The twin of an evaluation file to tune a model with, from other examples."""
    records = [
        {
            "ID": f"{name}-{number}", "instruction": instruction, **pair._asdict(),
            "text": f"{OPENING}\n\n### 지시:\n{instruction}\n\n### 입력:\n{pair.input}\n\n### 응답:\n{pair.output}",
        }
        for number, pair in enumerate(pairs)
    ]  # fmt: skip
    atomic_write(path, json.dumps(records, ensure_ascii=False, indent=1) + "\n")
