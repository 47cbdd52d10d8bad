"""``malmoi llm export …``: the KLUE tasks as files of other evaluation tools, with the prompts of ``malmoi llm``.

``lm-eval``: YAML files of lm-evaluation-harness, and their questions. Tasks with a fixed set of answers become
``multiple_choice`` (``acc_norm`` equals our likelihood method, ``acc`` its plain sum). The others become
``generate_until`` with ``exact_match`` of the demanded answer. That is stricter than our parsers, which the harness
could only run as exported code; an export without code need not be trusted.

``llm-kr-eval``: the dev file of KLUE for evaluation (test labels are not public), training examples for the rest.
Training examples with the inputs of a dev example are left out and counted.
```
OUT/evaluation/test/klue_ner.json   the dev file; few_shots from train
OUT/evaluation/dev/klue_ner.json    10 training examples, from which the published code takes its few-shot examples
OUT/tuning/train/klue_ner.json      the other training examples
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from finetune.data.files import find_file, write_json_lines
from finetune.examples import Example
from finetune.generative.klue.run import PromptedTask
from finetune.generative.kr_eval.run import Sample, TaskFile, write_task_file, write_tuning_file
from finetune.generative.prompts import PROMPTS
from finetune.generative.prompts.prompt import DELIMITER, draw_shots, render_plain
from finetune.generative.tables import ResultTable
from finetune.registry import TASKS

VERSION = 1.0  # of the tasks for lm-eval
KR_EVAL_METRICS = {  # the headline first
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


def export_lm_eval(tasks: Sequence[PromptedTask], folder: Path) -> list[Path]:
    """Write ``klue_<task>.yaml`` and ``klue_<task>.jsonl`` of each task; returns the YAML files."""
    written = []
    for prompted in tasks:
        prompt, rows = prompted.prompt, []
        for example in prompted.data.scored:
            answer = prompt.render_gold(example)
            target = {"label": prompt.choices.index(answer)} if prompt.choices else {"answer": answer}
            rows.append({"guid": example.guid, "text": render_plain(prompted.messages(example)), **target})
        path = folder / f"{prompt.file_name}.yaml"
        write_json_lines(path.with_suffix(".jsonl"), rows)
        content = _lm_eval_task(prompted, path.with_suffix(".jsonl").resolve())
        atomic_write(path, yaml.safe_dump(content, allow_unicode=True, sort_keys=False))
        written.append(path)
    return written


def _lm_eval_task(prompted: PromptedTask, data: Path) -> dict[str, Any]:
    """The YAML of a task. Choices are a list, so that nothing in the data is read as a template."""
    prompt = prompted.prompt
    task: dict[str, Any] = {
        "task": prompt.file_name, "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test", "doc_to_text": "text", "target_delimiter": DELIMITER, "num_fewshot": 0,
    }  # fmt: skip
    if prompt.choices:
        metrics = ["acc", "acc_norm"]
        task |= {
            "output_type": "multiple_choice", "doc_to_choice": list(prompt.choices), "doc_to_target": "label",
        }  # fmt: skip
    else:
        metrics = ["exact_match"]
        task |= {
            "output_type": "generate_until", "doc_to_target": "answer",
            "generation_kwargs": {"until": ["\n\n"], "max_gen_toks": prompt.max_tokens, "do_sample": False},
            "filter_list": [
                {"name": "answer", "filter": [{"function": "remove_whitespace"}, {"function": "take_first"}]}
            ],
        }  # fmt: skip
    task["metric_list"] = [{"metric": metric, "aggregation": "mean", "higher_is_better": True} for metric in metrics]
    return task | {"metadata": {"version": VERSION}}


def export_kr_eval(task: str, data: Path, out: Path, samples: int | None = None, seed: int = 42) -> dict[str, int]:
    """Write the three files of one task; ``BadInput`` if ``data`` has no train or dev file of it.

    Returns the number of records per file, and of the training examples that are left out.

    Args:
        samples: use the first N dev examples; None: all. The published files have 100.
        seed: draws the few-shot examples.
    """
    prompt = PROMPTS[task]

    def as_samples(examples: Sequence[Example]) -> tuple[Sample, ...]:
        return tuple(Sample(input=prompt.render_input(e), output=prompt.render_gold(e)) for e in examples)

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
    name = f"{prompt.file_name}.json"
    file = TaskFile(
        name=prompt.file_name, instruction=prompt.instruction, output_length=prompt.max_tokens,
        metrics=KR_EVAL_METRICS[task], few_shots=as_samples(few_shots), samples=as_samples(dev),
    )  # fmt: skip
    write_task_file(file, out / "evaluation" / "test" / name)
    if held_out:
        held = file.model_copy(update={"samples": as_samples(held_out)})
        write_task_file(held, out / "evaluation" / "dev" / name)
    write_tuning_file(file.name, file.instruction, as_samples(tuning), out / "tuning" / "train" / name)
    shown = {"samples": len(dev), "few-shot": len(few_shots)}
    return shown | {"tuning": len(tuning), "left out": len(train) - len(kept)}


def _read(task: str, data: Path, split: str) -> list[Example]:
    path = find_file(data, TASKS[task].files.of(split))
    if path is None:
        raise BadInput(f"{data}: {TASKS[task].files.of(split)} (or .zst) is missing; it has the {split} examples")
    return TASKS[task].read(path)


def kr_eval_export_table(exported: Mapping[str, Mapping[str, int]], out: Path) -> ResultTable:
    """Number of records per file, by task."""
    rows = [[task, *map("{:,}".format, counts.values())] for task, counts in exported.items()]
    is_cut = any(counts["left out"] for counts in exported.values())
    note = "Left out: training examples that are also dev examples." if is_cut else ""
    return ResultTable(("task", "samples", "few-shot", "tuning", "left out"), rows, f"llm-kr-eval files in {out}", note)
