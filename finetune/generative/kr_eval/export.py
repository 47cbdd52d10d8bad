"""``malmoi llm export llm-kr-eval``: KLUE tasks as llm-kr-eval files, with the prompts of ``malmoi llm``.

```
OUT/evaluation/test/klue_ner.json   the dev file of KLUE (test labels are not public); few_shots from train
OUT/evaluation/dev/klue_ner.json    10 training examples, from which the published code takes its few-shot examples
OUT/tuning/train/klue_ner.json      the other training examples
```
Training examples with the inputs of a dev example are left out and counted. The published file of KLUE-RE uses the same
word, 별명, for two relations; here 30 relations have 30 words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from corpus.documents.errors import BadInput
from finetune.data.files import find_file
from finetune.examples import Example
from finetune.generative.kr_eval.files import Sample, TaskFile, file_name, write_task_file, write_tuning_file
from finetune.generative.prompts.prompt import PROMPTS, TaskPrompt, draw_shots
from finetune.generative.tables import ResultTable
from finetune.registry import TASKS

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
SHOTS, DEV_SAMPLES = 4, 10  # as published


class Exported(NamedTuple):
    """Number of records per file of a task; ``left_out``: training examples that are also dev examples."""

    task: str
    samples: int
    few_shots: int
    tuning: int
    left_out: int


def export_task(task: str, data: Path, out: Path, samples: int | None = None, seed: int = 42) -> Exported:
    """Write the three files of one task; ``BadInput`` if ``data`` has no train or dev file of it.

    Args:
        samples: use the first N dev examples; None: all. The published files have 100.
        seed: draws the few-shot examples.
    """
    prompt, name = PROMPTS[task], file_name(task)
    dev = _read(task, data, "dev")[:samples]
    if any(example.gold is None for example in dev):
        raise BadInput(f"{data}: the dev file of {task} has no labels to score against")
    train = _read(task, data, "train")
    asked = {prompt.render_input(example) for example in dev}
    kept = [example for example in train if prompt.render_input(example) not in asked]
    drawn = draw_shots(prompt, kept, min(len(kept), SHOTS + DEV_SAMPLES), seed)
    few_shots, held_out = drawn[:SHOTS], drawn[SHOTS:]
    taken = {example.guid for example in drawn}
    tuning = [example for example in kept if example.guid not in taken]
    file = TaskFile(
        name, prompt.instruction, prompt.max_tokens, METRICS[task], _samples(prompt, few_shots), _samples(prompt, dev)
    )
    write_task_file(file, out / "evaluation" / "test" / f"{name}.json")
    if held_out:
        file = replace(file, samples=_samples(prompt, held_out))
        write_task_file(file, out / "evaluation" / "dev" / f"{name}.json")
    write_tuning_file(name, prompt.instruction, _samples(prompt, tuning), out / "tuning" / "train" / f"{name}.json")
    return Exported(task, len(dev), len(few_shots), len(tuning), len(train) - len(kept))


def export_table(exported: Sequence[Exported], out: Path) -> ResultTable:
    """Number of records per file."""
    rows = [[one.task, *(f"{count:,}" for count in one[1:])] for one in exported]
    note = "Left out: training examples that are also dev examples." if any(one.left_out for one in exported) else ""
    return ResultTable(("task", "samples", "few-shot", "tuning", "left out"), rows, f"llm-kr-eval files in {out}", note)


def _read(task: str, data: Path, split: str) -> list[Example]:
    path = find_file(data, TASKS[task].files.of(split))
    if path is None:
        raise BadInput(f"{data}: {TASKS[task].files.of(split)} (or .zst) is missing; it has the {split} examples")
    return TASKS[task].read(path)


def _samples(prompt: TaskPrompt, examples: Sequence[Example]) -> tuple[Sample, ...]:
    return tuple(Sample(prompt.render_input(example), prompt.render_gold(example)) for example in examples)
