"""The texts of own tasks' dev and test files as a benchmark, so that the corpus is kept clear of them as of KLUE's."""

from __future__ import annotations

import json
from pathlib import Path

from corpus.documents.atomic_files import atomic_write
from launch.recipe import Recipe


def write_own_texts(recipe: Recipe, run: Path) -> list[str]:
    """Writes ``own/<task>_<split>.jsonl`` below the run, a line a text, and returns the files; none where the recipe
    says itself what the corpus is kept clear of."""
    from finetune.registry import task_of

    if recipe.corpus.benchmarks is not None:
        return []
    written = []
    for name in (task for task in recipe.finetune.tasks if task in recipe.finetune.own):
        task = task_of(name, recipe.finetune)
        for split in ("dev", "test"):
            if path := task.files.of(split):
                texts = dict.fromkeys(
                    (example.guid, text)
                    for example in task.read(Path(path))
                    for text in example.inputs.values()
                    if isinstance(text, str)
                )
                lines = (json.dumps({"id": guid, "text": text}, ensure_ascii=False) + "\n" for guid, text in texts)
                atomic_write(run / "own" / f"{name}_{split}.jsonl", "".join(lines))
                written.append(str(run / "own" / f"{name}_{split}.jsonl"))
    return written
