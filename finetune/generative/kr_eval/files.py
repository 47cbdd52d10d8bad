"""The files of llm-kr-eval: one JSON object per task for evaluation, a list of records for tuning.

```
{"instruction": …, "output_length": 4, "metrics": ["exact_match"],
 "few_shots": [{"input": "전제: …\\n가설: …", "output": "neutral"}, …], "samples": [{"input": …, "output": …}, …]}
[{"ID": "klue_nli-0", "instruction": …, "input": …, "output": …, "text": "… ### 지시: … ### 입력: … ### 응답: …"}, …]
```
The keys are those of the published format; the opening sentence is our own. Text is normalized to NFC and ``\\n`` here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from finetune.data.custom_files import nfc
from finetune.data.files import read_json
from finetune.generative.kr_eval.metrics import CORRELATIONS, METRICS, parse_number
from finetune.generative.prompts.prompt import Message

KEYS = {"instruction": str, "output_length": int, "metrics": list, "few_shots": list, "samples": list}
KINDS = {str: "a text", int: "a whole number", list: "a list", dict: "an object"}
EXPECTED = "expected one JSON object with " + ", ".join(KEYS)
OPENING = "지시를 읽고, 이어지는 입력에 맞는 응답만 요구된 형식으로 쓰세요."
MAX_OUTPUT_TOKENS = 1 << 20  # more is a typing error


class Sample(NamedTuple):
    """The input of a question and its gold answer."""

    input: str
    output: str


@dataclass(frozen=True, slots=True)
class TaskFile:
    """An evaluation file; ``name`` is its file name without the ending."""

    name: str
    instruction: str
    output_length: int
    metrics: tuple[str, ...]
    few_shots: tuple[Sample, ...]
    samples: tuple[Sample, ...]

    @property
    def golds(self) -> list[str]:
        return [sample.output for sample in self.samples]

    def conversation(self, sample: Sample, shots: int = 0) -> tuple[Message, ...]:
        """Opening, instruction and first input in one user turn; the first ``shots`` examples as turns before."""
        head, turns = f"{OPENING}\n{self.instruction}\n\n", list[Message]()
        for pair in (*self.few_shots[:shots], sample):
            turns += [("user", head + pair.input), ("assistant", pair.output)]
            head = ""
        return tuple(turns[:-1])

    def as_json(self) -> dict[str, Any]:
        """The published keys in their order."""
        pairs = {key: [pair._asdict() for pair in getattr(self, key)] for key in ("few_shots", "samples")}
        head = {"instruction": self.instruction, "output_length": self.output_length, "metrics": [*self.metrics]}
        return head | pairs


def read_task_file(path: Path) -> TaskFile:
    """An evaluation file of any task; ``BadInput`` with the place of the problem if it cannot be scored."""
    content = nfc(read_json(path))
    if not isinstance(content, dict):
        found = "; this file is a list, as tuning files are" if isinstance(content, list) else ""
        raise BadInput(f"{path}: {EXPECTED}{found}")
    for key, kind in KEYS.items():
        if key not in content:
            raise BadInput(f"{path}: no '{key}'; {EXPECTED}")
        _check_kind(content[key], kind, f"{path}: '{key}'")
    if not 0 < content["output_length"] <= MAX_OUTPUT_TOKENS:
        raise BadInput(
            f"{path}: 'output_length' is {content['output_length']}; expected a number of tokens, at least 1"
        )
    for key in ("metrics", "samples"):
        if not content[key]:
            raise BadInput(f"{path}: '{key}' is empty; expected at least one")
    for name in content["metrics"]:
        if not isinstance(name, str) or name not in METRICS:
            raise BadInput(f"{path}: unknown metric {name!r:.60}; choose from {', '.join(METRICS)}")
    shots, samples = (_read_samples(path, key, content[key]) for key in ("few_shots", "samples"))
    metrics = tuple(dict.fromkeys(content["metrics"]))
    if correlations := [metric for metric in metrics if metric in CORRELATIONS]:
        for number, sample in enumerate(samples):
            if parse_number(sample.output) is None:
                raise BadInput(
                    f"{path}, 'samples' {number}: 'output' {sample.output!r:.60} should be a number for "
                    f"{' and '.join(correlations)}"
                )
    name = path.name.removesuffix(".zst").removesuffix(".gz").removesuffix(".json")
    return TaskFile(name, _unix_lines(content["instruction"]), content["output_length"], metrics, shots, samples)


def _check_kind(value: Any, kind: type, what: str) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadInput(f"{what} should be {KINDS[kind]}, found {value!r:.60}")


def _read_samples(path: Path, key: str, values: Sequence[Any]) -> tuple[Sample, ...]:
    samples = []
    for number, value in enumerate(values):
        where = f"{path}, '{key}' {number}"
        _check_kind(value, dict, where)
        for side in Sample._fields:
            _check_kind(value.get(side), str, f"{where}: '{side}'")
        samples.append(Sample(_unix_lines(value["input"]), _unix_lines(value["output"])))
    return tuple(samples)


def _unix_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def file_name(task: str) -> str:
    """The published name of a KLUE task's file: ``klue_ner``, ``klue_wos``."""
    return "klue_" + task.removeprefix("klue-")


def write_task_file(task: TaskFile, path: Path) -> None:
    """Write an evaluation file that the published code can read."""
    atomic_write(path, json.dumps(task.as_json(), ensure_ascii=False, indent=2) + "\n")


def write_tuning_file(name: str, instruction: str, samples: Sequence[Sample], path: Path) -> None:
    """Write a file for instruction tuning, from other examples than those of the evaluation file."""
    records = [
        {
            "ID": f"{name}-{number}", "instruction": instruction, **sample._asdict(),
            "text": f"{OPENING}\n\n### 지시:\n{instruction}\n\n### 입력:\n{sample.input}\n\n### 응답:\n{sample.output}",
        }
        for number, sample in enumerate(samples)
    ]  # fmt: skip
    atomic_write(path, json.dumps(records, ensure_ascii=False, indent=1) + "\n")
