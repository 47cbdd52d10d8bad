"""The KLUE tasks as YAML files of lm-evaluation-harness, questions beside them: ``malmoi llm export lm-eval``.

A closed set of answers becomes ``multiple_choice`` (``acc_norm`` is our likelihood method, ``acc`` its bare sum), the
others ``generate_until`` with ``exact_match`` of the demanded answer, which is stricter than our parsers: the harness
would execute a file of functions for anything more, and an export that brings code is one that must be trusted. Our
scores of its answers: run it with ``--log_samples`` and give ``malmoi llm`` the same examples.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from corpus.documents.atomic_files import atomic_write
from finetune.generative.client.bare_text import DELIMITER, bare_text
from finetune.generative.klue.material import Material

VERSION = 1.0
README = """# KLUE for lm-evaluation-harness

```console
$ lm_eval --model hf --model_args pretrained=MODEL --tasks {first} --include_path {folder}
```
`acc_norm` of `multiple_choice` tasks is what `malmoi llm --method likelihood` gives as accuracy by characters, `acc`
that by sums. The paths of the data stand in the YAML files: export again after moving the folder.
"""


def export(materials: Sequence[Material], folder: Path) -> list[Path]:
    """Write ``klue_<task>.yaml`` and ``klue_<task>.jsonl`` of each task, and README.md; returns the YAML files."""
    written = []
    for material in materials:
        name = f"klue_{material.task.name.removeprefix('klue-').replace('-', '_')}"
        data = (folder / f"{name}.jsonl").resolve()
        atomic_write(data, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _rows(material)))
        path = folder / f"{name}.yaml"
        atomic_write(path, yaml.safe_dump(task_of(name, material, data), allow_unicode=True, sort_keys=False))
        written.append(path)
    atomic_write(folder / "README.md", README.format(first=",".join(path.stem for path in written), folder=folder))
    return written


def _rows(material: Material) -> list[dict[str, Any]]:
    """guid, the whole question as text, and the answer: its place among the choices, or itself."""
    generation, rows = material.generation, []
    for example in material.data.scored:
        answer = generation.tell(example)
        target = {"label": generation.choices.index(answer)} if generation.choices else {"answer": answer}
        rows.append({"guid": example.guid, "text": bare_text(material.messages(example)), **target})
    return rows


def task_of(name: str, material: Material, data: Path) -> dict[str, Any]:
    """The YAML of a task. Choices are a list, so nothing of the data is read as a template."""
    generation = material.generation
    common = {
        "task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test", "doc_to_text": "text", "target_delimiter": DELIMITER, "num_fewshot": 0,
    }  # fmt: skip
    if generation.choices:
        return common | {
            "output_type": "multiple_choice", "doc_to_choice": list(generation.choices), "doc_to_target": "label",
            "metric_list": [
                {"metric": metric, "aggregation": "mean", "higher_is_better": True} for metric in ("acc", "acc_norm")
            ],
            "metadata": {"version": VERSION},
        }  # fmt: skip
    return common | {
        "output_type": "generate_until", "doc_to_target": "answer",
        "generation_kwargs": {"until": ["\n\n"], "max_gen_toks": generation.max_tokens, "do_sample": False},
        "filter_list": [
            {"name": "answer", "filter": [{"function": "remove_whitespace"}, {"function": "take_first"}]}
        ],
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
        "metadata": {"version": VERSION},
    }  # fmt: skip
