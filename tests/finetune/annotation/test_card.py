"""The card and the recipe: every task from items to files that ``finetune`` reads, and what a push sends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from corpus.documents.errors import BadInput
from finetune.annotation.card import published_files, write_card
from finetune.annotation.folder import Item, read_gold, run_step
from finetune.annotation.settle import settle
from finetune.annotation.split import split
from finetune.data.split import load_data
from finetune.tasks.custom.task import custom_task, define
from launch.recipe import load_recipe
from tests.finetune.annotation.folders import add_votes, make_folder

Votes = list[tuple[Item, Any]]


def items_of(task: str) -> Votes:
    """Sixty items with the value on which all their workers agree."""
    found: Votes = []
    for n in range(60):
        text, name = f"{n}번 손님 김철수 씨가 서울에 왔다.", f"{task}-{n}"
        start = text.index("김")
        person, place = (start, start + 3, "PS"), (text.index("서울"), text.index("서울") + 2, "LC")
        match task:
            case "tc":
                found.append((Item(name, "s", {"text": text}), "ab"[n % 2]))
            case "nli":
                about = {"group": str(n // 3)}
                label = ("entailment", "contradiction", "neutral")[n % 3]
                found.append((Item(name, "s", {"premise": f"전제 {n // 3}", "hypothesis": text}, (), about), label))
            case "sts":
                found.append((Item(name, "s", {"sentence1": text, "sentence2": "비가 왔다."}), n % 6))
            case "ner":
                found.append((Item(name, "s", {"text": text}), [[*person], [*place]]))
            case "mrc":
                texts = {"context": text, "question": "누가 왔나?"}
                found.append((Item(name, "s", texts), [[*person[:2]]] if n % 3 else []))
            case "re":
                spans = ((*person[:2], "subject:PER"), (*place[:2], "object:LOC"))
                found.append((Item(name, "s", {"text": text}, spans), "ab"[n % 2]))
    return found


@pytest.mark.parametrize("task", ["tc", "nli", "sts", "ner", "mrc", "re"])
def test_a_benchmark_of_every_task_can_be_trained_on(tmp_path: Path, task: str) -> None:
    labels = {"tc": ["a", "b"], "re": ["a", "b"], "ner": ["PS", "LC"]}.get(task, [])
    method = {"method": "random", "dev": 0.2, "test": 0.2}
    items = items_of(task)
    benchmark = make_folder(
        tmp_path, [i for i, _ in items], task=task, labels=labels, split=method, licence="cc-by-4.0"
    )
    workers = range(benchmark.votes_per_item)
    add_votes(benchmark, tmp_path, [{"item": i.id, "worker": f"w{w}", "value": v} for i, v in items for w in workers])
    for step, work in (("settle", settle), ("split", split), ("card", write_card)):
        run_step(tmp_path, step, work)
    assert len(read_gold(tmp_path)) == 60
    recipe = load_recipe(str(tmp_path / "recipe.yaml"))
    own = recipe.finetune.custom["mine"]
    data = load_data(custom_task(define("mine", own), files=own.files), tmp_path, recipe.finetune)
    assert len(data.training) == 36 and len(data.scored) == 12
    card = (tmp_path / "README.md").read_text("utf-8")
    _, head, body = card.split("---\n", 2)
    assert yaml.safe_load(head)["license"] == "cc-by-4.0"
    assert "Ethical considerations" in body
    assert published_files(tmp_path) == [
        "README.md",
        "benchmark.yaml",
        *(f"data/{n}.jsonl" for n in ("dev", "test", "train")),
    ]


def test_a_card_needs_a_split(tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path, task="sts")
    with pytest.raises(BadInput, match="run `malmoi benchmark split` first"):
        write_card(benchmark, tmp_path)
    with pytest.raises(BadInput, match="run `malmoi benchmark card` first"):
        published_files(tmp_path)
