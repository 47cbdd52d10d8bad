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
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, StrictInt, StrictStr, model_validator

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from finetune.data.custom_files import nfc
from finetune.data.files import read_json, validate
from finetune.generative.kr_eval.metrics import CORRELATIONS, METRICS, parse_number
from finetune.generative.prompts.prompt import Message, build_turns

OPENING = "지시를 읽고, 이어지는 입력에 맞는 응답만 요구된 형식으로 쓰세요."
MAX_OUTPUT_TOKENS = 1 << 20  # more is a typing error


def _known_metric(name: str) -> str:
    if name not in METRICS:
        raise ValueError(f"unknown metric; choose from {', '.join(METRICS)}")
    return name


Text = Annotated[StrictStr, AfterValidator(lambda text: text.replace("\r\n", "\n").replace("\r", "\n"))]
Metric = Annotated[StrictStr, AfterValidator(_known_metric)]


class Sample(BaseModel, frozen=True):
    """The input of a question and its gold answer."""

    input: Text
    output: Text


class TaskFile(BaseModel, frozen=True):
    """An evaluation file; ``name`` is its file name without the ending."""

    name: str
    instruction: Text
    output_length: StrictInt = Field(gt=0, le=MAX_OUTPUT_TOKENS)
    metrics: Annotated[tuple[Metric, ...], AfterValidator(lambda names: tuple(dict.fromkeys(names)))] = Field(
        min_length=1
    )
    few_shots: tuple[Sample, ...]
    samples: tuple[Sample, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _correlations_need_numbers(self) -> TaskFile:
        for number, gold in enumerate(self.golds if set(self.metrics) & set(CORRELATIONS) else ()):
            if parse_number(gold) is None:
                raise ValueError(f"samples.{number}.output: {gold!r:.60} should be a number for a correlation")
        return self

    @property
    def golds(self) -> list[str]:
        return [sample.output for sample in self.samples]

    def conversation(self, sample: Sample, shots: int = 0) -> tuple[Message, ...]:
        """Opening, instruction and first input in one user turn; the first ``shots`` examples as turns before."""
        answered = ((shot.input, shot.output) for shot in self.few_shots[:shots])
        return build_turns(answered, sample.input, f"{OPENING}\n{self.instruction}")


def read_task_file(path: Path) -> TaskFile:
    """An evaluation file of any task; ``BadInput`` with the place of the problem if it cannot be scored."""
    content = nfc(read_json(path))
    if not isinstance(content, dict):
        found = "; this file is a list, as tuning files are" if isinstance(content, list) else ""
        raise BadInput(f"{path}: expected one JSON object with instruction, output_length, metrics, samples{found}")
    name = path.name.removesuffix(".zst").removesuffix(".gz").removesuffix(".json")
    return validate(TaskFile, {**content, "name": name}, str(path))


def write_task_file(task: TaskFile, path: Path) -> None:
    """Write an evaluation file that the published code can read."""
    atomic_write(path, json.dumps(task.model_dump(exclude={"name"}), ensure_ascii=False, indent=2) + "\n")


def write_tuning_file(name: str, instruction: str, samples: Sequence[Sample], path: Path) -> None:
    """Write a file for instruction tuning, from other examples than those of the evaluation file."""
    records = [
        {
            "ID": f"{name}-{number}", "instruction": instruction, **sample.model_dump(),
            "text": f"{OPENING}\n\n### 지시:\n{instruction}\n\n### 입력:\n{sample.input}\n\n### 응답:\n{sample.output}",
        }
        for number, sample in enumerate(samples)
    ]  # fmt: skip
    atomic_write(path, json.dumps(records, ensure_ascii=False, indent=1) + "\n")
