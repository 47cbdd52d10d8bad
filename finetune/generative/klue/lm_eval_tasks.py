"""``malmoi llm export lm-eval``: the KLUE tasks as YAML files of lm-evaluation-harness, and their questions.

Tasks with a fixed set of answers become ``multiple_choice`` (``acc_norm`` equals our likelihood method, ``acc`` its
plain sum). The others become ``generate_until`` with ``exact_match`` of the demanded answer. That is stricter than our
parsers, which the harness could only run as exported code; an export without code need not be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from corpus.documents.atomic_files import atomic_write
from finetune.data.files import write_json_lines
from finetune.generative.klue.prompted_task import PromptedTask
from finetune.generative.prompts.prompt import DELIMITER, render_plain

VERSION = 1.0


def export(tasks: Sequence[PromptedTask], folder: Path) -> list[Path]:
    """Write ``klue_<task>.yaml`` and ``klue_<task>.jsonl`` of each task; returns the YAML files."""
    written = []
    for prompted in tasks:
        name = f"klue_{prompted.task.name.removeprefix('klue-').replace('-', '_')}"
        data = (folder / f"{name}.jsonl").resolve()
        write_json_lines(data, _rows(prompted))
        path = folder / f"{name}.yaml"
        atomic_write(path, yaml.safe_dump(build_task(name, prompted, data), allow_unicode=True, sort_keys=False))
        written.append(path)
    return written


def _rows(prompted: PromptedTask) -> list[dict[str, Any]]:
    """guid, the question as text, and the answer or its index among the choices."""
    prompt, rows = prompted.prompt, []
    for example in prompted.data.scored:
        answer = prompt.render_gold(example)
        target = {"label": prompt.choices.index(answer)} if prompt.choices else {"answer": answer}
        rows.append({"guid": example.guid, "text": render_plain(prompted.messages(example)), **target})
    return rows


def build_task(name: str, prompted: PromptedTask, data: Path) -> dict[str, Any]:
    """The YAML of a task. Choices are a list, so that nothing in the data is read as a template."""
    prompt = prompted.prompt
    task: dict[str, Any] = {
        "task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}},
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
