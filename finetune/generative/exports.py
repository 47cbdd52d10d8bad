"""``malmoi llm export …``: the KLUE tasks as files of other evaluation tools, with the prompts of ``malmoi llm``.

``lm-eval``: tasks with a fixed set of answers become ``multiple_choice`` (``acc_norm`` equals our likelihood method,
``acc`` its plain sum). The others become ``generate_until`` with ``exact_match`` of the demanded answer. That is
stricter than our parsers, which the harness could only run as exported code, which would have to be trusted.

``llm-kr-eval``: training examples with the inputs of a dev example are left out and counted.
```
OUT/evaluation/test/klue_ner.json   the dev file (test labels are not public); few_shots from train
OUT/evaluation/dev/klue_ner.json    10 training examples, from which the published code takes its few-shot examples
OUT/tuning/train/klue_ner.json      the other training examples
```
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from corpus.documents.templates import load_templates
from finetune.data.custom_files import squeeze
from finetune.data.files import find_file, write_json_lines
from finetune.data.public_sets import data_sets, read_examples
from finetune.examples import Example
from finetune.generative.klue.run import PromptedTask
from finetune.generative.kr_eval.run import Sample, TaskFile, write_task_file, write_tuning_file
from finetune.generative.prompts import PROMPTS
from finetune.generative.prompts.prompt import DELIMITER, TaskPrompt, draw_shots, render_plain
from finetune.generative.tables import ResultTable
from finetune.registry import TASKS
from finetune.task_names import klue_facts

SHOTS, DEV_SAMPLES = 4, 10  # as published


def export_lm_eval(tasks: Sequence[PromptedTask], folder: Path) -> list[Path]:
    """Write ``klue_<task>.yaml`` and ``klue_<task>.jsonl`` of each task, and a card; returns the YAML files."""
    written, templates = list[Path](), load_templates("finetune.generative")
    for prompted in tasks:
        prompt, rows = prompted.prompt, []
        for example in prompted.data.scored:
            answer = prompt.render_gold(example)
            target = {"label": prompt.choices.index(answer)} if prompt.choices else {"answer": answer}
            rows.append({"guid": example.guid, "text": render_plain(prompted.messages(example)), **target})
        path = folder / f"{prompt.file_name}.yaml"
        write_json_lines(path.with_suffix(".jsonl"), rows)
        content = templates.get_template("lm_eval.yaml.j2").render(
            name=prompt.file_name, data=json.dumps(str(path.with_suffix(".jsonl").resolve())), choices=prompt.choices,
            max_tokens=prompt.max_tokens, delimiter=DELIMITER,
        )  # fmt: skip
        atomic_write(path, content)
        written.append(path)
    card = templates.get_template("lm_eval.md.j2").render(command=lm_eval_command(folder, written))
    atomic_write(folder / "README.md", card)
    return written


def lm_eval_command(folder: Path, tasks: Sequence[Path]) -> str:
    """How to run exported tasks; MODEL is a folder or a name on the Hub."""
    arguments = f"--include_path {shlex.quote(str(folder))} --tasks {','.join(path.stem for path in tasks)}"
    return f"lm_eval --model hf --model_args pretrained=MODEL,add_bos_token=True {arguments}"


def export_kr_eval(task: str, data: Path, out: Path, samples: int | None = None, seed: int = 42) -> dict[str, int]:
    """Write the three files of one task; ``BadInput`` if ``data`` has no train or dev file of it.

    Returns the number of records per file, and of the training examples that are left out.

    Args:
        samples: use the first N dev examples; None: all. The published files have 100.
        seed: draws the few-shot examples.
    """
    prompt = PROMPTS[task]
    dev = _read(task, data, "dev")
    if any(example.gold is None for example in dev):
        raise BadInput(f"{data}: the dev file of {task} has no labels to score against")
    make = partial(
        TaskFile, name=prompt.file_name, instruction=prompt.instruction, output_length=prompt.max_tokens,
        metrics=tuple(klue_facts(task)["kr_eval_metrics"]),
    )  # fmt: skip
    return _write_kr_eval(make, prompt, (dev[:samples], dev), _read(task, data, "train"), out, seed)


def prepare_kr_eval(
    name: str, paths: Sequence[Path], training: Sequence[Path], out: Path, samples: int | None = None, seed: int = 42
) -> dict[str, int]:
    """Write the files of a public data set, as ``export_kr_eval`` does; ``BadInput`` for files in another layout.

    Args:
        name: an entry of ``finetune/data/public_sets.yaml``.
        training: files for few-shot examples and tuning; () holds out examples of ``paths`` for few-shot.
        samples: draw N of the examples by ``seed``; None: all.
    """
    scored, train = read_examples(name, paths, seed), read_examples(name, training, seed)
    entry = data_sets()[name]
    prompt = TaskPrompt(
        task=name, render_input=lambda e: str(e.inputs["input"]), render_gold=lambda e: str(e.gold),
        parse=lambda text, e: text, unparsed=lambda e: "", max_tokens=entry.output_length,
        shot_class=(lambda e: str(e.gold)) if entry.choices else None,
    )  # fmt: skip
    if not training:
        train = draw_shots(prompt, scored, min(SHOTS + DEV_SAMPLES, len(scored) // 2), seed)
        scored = [example for example in scored if example not in train]
    places = sorted(Random(seed).sample(range(len(scored)), min(samples or len(scored), len(scored))))
    chosen = [scored[place] for place in places]
    about = {"instruction": entry.instruction, "output_length": entry.output_length, "metrics": tuple(entry.metrics)}
    return _write_kr_eval(partial(TaskFile, name=name, **about), prompt, (chosen, scored), train, out, seed)


def _write_kr_eval(
    make: Callable[..., TaskFile], prompt: TaskPrompt, scored: tuple[Sequence[Example], Sequence[Example]],
    train: Sequence[Example], out: Path, seed: int,
) -> dict[str, int]:  # fmt: skip
    """The three files. ``scored``: the examples to evaluate on, and all of their file; training examples that repeat
    one of all, apart from white space, are left out."""

    def as_samples(examples: Sequence[Example]) -> tuple[Sample, ...]:
        marks = [{mark: e.inputs[mark] for mark in ("biased", "unknown") if e.inputs.get(mark)} for e in examples]
        inputs, golds = map(prompt.render_input, examples), map(prompt.render_gold, examples)
        return tuple(Sample(input=i, output=o, **m) for i, o, m in zip(inputs, golds, marks, strict=True))

    asked = {squeeze(prompt.render_input(example)) for example in scored[1]}
    candidates = [example for example in train if squeeze(prompt.render_input(example)) not in asked]
    distinct = len({squeeze(prompt.render_input(example)) for example in candidates})
    drawn = draw_shots(prompt, candidates, min(distinct, SHOTS + DEV_SAMPLES), seed)
    few_shots, held_out = drawn[:SHOTS], drawn[SHOTS:]
    taken = {example.guid for example in drawn}
    tuning = [example for example in candidates if example.guid not in taken]
    file = make(few_shots=as_samples(few_shots), samples=as_samples(scored[0]))
    write_task_file(file, out / "evaluation" / "test" / f"{file.name}.json")
    if held_out:
        held = file.model_copy(update={"samples": as_samples(held_out)})
        write_task_file(held, out / "evaluation" / "dev" / f"{file.name}.json")
    if tuning:
        path = out / "tuning" / "train" / f"{file.name}.json"
        write_tuning_file(file.name, file.instruction, as_samples(tuning), path)
    shown = {"samples": len(scored[0]), "few-shot": len(few_shots)}
    return shown | {"tuning": len(tuning), "left out": len(train) - len(candidates)}


def _read(task: str, data: Path, split: str) -> list[Example]:
    path = find_file(data, TASKS[task].files.of(split))
    if path is None:
        raise BadInput(f"{data}: {TASKS[task].files.of(split)} (or .zst) is missing; it has the {split} examples")
    return TASKS[task].read(path)


def kr_eval_export_table(exported: Mapping[str, Mapping[str, int]], out: Path) -> ResultTable:
    """Number of records per file, by task."""
    rows = [[task, *map("{:,}".format, counts.values())] for task, counts in exported.items()]
    is_cut = any(counts["left out"] for counts in exported.values())
    note = "Left out: training examples that are also evaluated." if is_cut else ""
    return ResultTable(("task", "samples", "few-shot", "tuning", "left out"), rows, f"llm-kr-eval files in {out}", note)
