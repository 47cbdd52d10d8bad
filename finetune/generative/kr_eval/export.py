"""``malmoi llm export llm-kr-eval``: KLUE tasks as files of llm-kr-eval, from the records of ``prompts``.

```
OUT/evaluation/test/klue_ner.json   the dev file of KLUE, of which no test labels are public; few_shots from train
OUT/evaluation/dev/klue_ner.json    10 training examples, from which the published code takes its few-shot examples
OUT/tuning/train/klue_ner.json      the other training examples
```
Nothing of the dev file stands in any other file: a training example with the inputs of a dev example is left out, and
counted. In the published file for KLUE-RE two relations are both called 별명; here 30 relations have 30 words.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from corpus.documents.errors import BadInput
from finetune.data.files import find_file
from finetune.examples import Example
from finetune.generative.kr_eval.files import Pair, TaskFile, file_name, write_task_file, write_tuning_file
from finetune.generative.prompts.record import Generation, few_shot
from finetune.generative.prompts.registry import GENERATIONS
from finetune.generative.tables import ResultTable
from finetune.registry import TASKS

log = logging.getLogger(__name__)

METRICS = {  # the headline first
    "ynat": ("macro_f1", "exact_match"),
    "klue-nli": ("exact_match",),
    "klue-sts": ("pearson", "spearman"),
    "klue-ner": ("set_f1",),
    "klue-re": ("exact_match", "macro_f1"),
    "klue-dp": ("set_f1",),
    "klue-mrc": ("exact_match", "char_f1"),
    "wos": ("set_f1",),
}
SAMPLES_OF_DEV = 10  # as published


class Exported(NamedTuple):
    """How many records each file of a task got; ``left_out``: training examples that are dev examples, too."""

    task: str
    samples: int
    few_shots: int
    tuning: int
    left_out: int


def export_task(
    task: str, data: Path, out: Path, shots: int = 4, samples: int | None = None, seed: int = 42
) -> Exported:
    """Write the three files of one task; ``BadInput`` where its train or dev file is not in ``data``.

    Args:
        shots: few-shot examples of the evaluation file.
        samples: the first so many of the dev file; None: all. The published files have 100.
    """
    generation, name = GENERATIONS[task], file_name(task)
    dev = _read(task, data, "dev")[:samples]
    if any(example.gold is None for example in dev):
        raise BadInput(f"{data}: the dev file of {task} has no labels; there is nothing to score against")
    train = _read(task, data, "train")
    asked = {generation.ask(example) for example in dev}
    kept = [example for example in train if generation.ask(example) not in asked]
    shown = few_shot(generation, kept, min(len(kept), shots + SAMPLES_OF_DEV), seed)
    few_shots, held = shown[:shots], shown[shots:]
    taken = {example.guid for example in shown}
    tuning = [example for example in kept if example.guid not in taken]
    whole = TaskFile(
        name, generation.instruction, generation.max_tokens, METRICS[task],
        tuple(_pairs(generation, few_shots)), tuple(_pairs(generation, dev)),
    )  # fmt: skip
    write_task_file(whole, out / "evaluation" / "test" / f"{name}.json")
    if held:
        write_task_file(
            replace(whole, samples=tuple(_pairs(generation, held))), out / "evaluation" / "dev" / f"{name}.json"
        )
    write_tuning_file(
        name, generation.instruction, _pairs(generation, tuning), out / "tuning" / "train" / f"{name}.json"
    )
    if len(kept) < len(train):
        log.info("%s: %d training examples are dev examples, too, and left out", task, len(train) - len(kept))
    return Exported(task, len(dev), len(few_shots), len(tuning), len(train) - len(kept))


def export_table(rows: Sequence[Exported], out: Path) -> ResultTable:
    """How many records each file got."""
    heads = ("task", "samples", "few-shot", "tuning", "left out")
    note = "Left out: training examples that are dev examples, too." if any(row.left_out for row in rows) else ""
    cells = [[row.task, *(f"{count:,}" for count in row[1:])] for row in rows]
    return ResultTable(heads, cells, f"llm-kr-eval files in {out}", note)


def _read(task: str, data: Path, split: str) -> list[Example]:
    path = find_file(data, TASKS[task].files.of(split))
    if path is None:
        raise BadInput(
            f"{data}: no {TASKS[task].files.of(split)} there, plain or .zst; the {split} examples come from it"
        )
    return TASKS[task].read(path)


def _pairs(generation: Generation, examples: Sequence[Example]) -> list[Pair]:
    return [Pair(generation.ask(example), generation.tell(example)) for example in examples]
