"""Which models stay: the best of the seeds in any order of the trainings, all, or none; and never half a model."""

from __future__ import annotations

import json
import shutil
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModel

from finetune.config import FinetuneConfig
from finetune.run import FinetuneInputs, run
from finetune.saved_models.load import load_model
from finetune.saved_models.save import Trained, keep_best, save_model
from tests.finetune.saved_models.conftest import configure

BEST = FinetuneConfig(save="best")


def finish(trained: Path, home: Path, seed: int, score: float | None, **settings: Any) -> Path:
    """A finished training of that seed and score with a model, as another process might leave it."""
    source, folder = trained / "ynat" / "model" / "seed-1", home / f"seed-{seed}"
    shutil.copytree(source / "model", folder / "model")
    result = json.loads((source / "scores.json").read_text("utf-8"))
    result |= {"seed": seed, "scores": {**result["scores"], "macro_f1": score}, **settings}
    kept = folder / "model" / "malmoi.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text("utf-8")), "seed": seed}), "utf-8")
    (folder / "scores.json").write_text(json.dumps(result), "utf-8")
    return folder


def models(home: Path) -> list[str]:
    return sorted(path.parent.name for path in home.glob("seed-*/model"))


def test_the_best_seed_stays_in_any_order_and_the_lower_one_of_equals(trained: Path, tmp_path: Path) -> None:
    scores = {1: 50.0, 2: 70.0, 3: 70.0, 4: None}
    cards = set()
    for number, order in enumerate(permutations(scores)):
        if number % 6:  # four of the twenty-four, each beginning with another seed
            continue
        home = tmp_path / str(number)
        for seed in order:
            keep_best(finish(trained, home, seed, scores[seed]), BEST)
        assert models(home) == ["seed-2"]
        assert not list(home.rglob(".model-removed-*"))
        cards.add((home / "seed-2" / "model" / "README.md").read_text("utf-8"))
    (card,) = cards
    assert "this is the best of 4 trainings that differ only in the seed" in card
    assert "| **2** | 70.00 |" in card and "| 4 | undefined |" in card
    load_model(home / "seed-2", "cpu")


def test_only_alike_and_finished_trainings_compare(trained: Path, tmp_path: Path) -> None:
    first = finish(trained, tmp_path, 1, 50.0)
    finish(trained, tmp_path, 2, 70.0, protocol="klue-baseline", recipe={"protocol": "klue-baseline"})
    running = finish(trained, tmp_path, 3, 90.0)
    (running / "scores.json").unlink()
    keep_best(first, BEST)
    keep_best(first, FinetuneConfig(save="all"))
    assert models(tmp_path) == ["seed-1", "seed-2", "seed-3"]


def test_a_better_result_without_its_model_takes_nobody_elses_away(trained: Path, tmp_path: Path) -> None:
    better = finish(trained, tmp_path, 1, 90.0)
    shutil.rmtree(better / "model")
    keep_best(finish(trained, tmp_path, 2, 10.0), BEST)
    assert models(tmp_path) == ["seed-2"]


@pytest.mark.parametrize(("save", "seeds", "kept"), [("best", (1, 2), 1), ("none", (1,), 0)])
def test_a_run_keeps_what_its_recipe_says(
    save: str, seeds: tuple[int, ...], kept: int, sample_inputs: FinetuneInputs, tmp_path: Path
) -> None:
    config = configure("ynat", save=save, seeds=seeds, max_train_examples=4)
    run(config, sample_inputs, tmp_path)
    folders = sorted(tmp_path.glob("ynat/model/seed-*/model"))
    assert len(folders) == kept
    for folder in folders:
        load_model(folder, "cpu")
    if save == "best":
        scores = {
            seed: json.loads((tmp_path / "ynat" / "model" / f"seed-{seed}" / "scores.json").read_text())["scores"][
                "macro_f1"
            ]
            for seed in (1, 2)
        }
        assert folders[0].parent.name == f"seed-{min(scores, key=lambda seed: (-scores[seed], seed))}"


def test_a_model_that_cannot_be_written_leaves_nothing_and_the_old_one_stays(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "seed-1"
    shutil.copytree(trained / "klue-dp" / "model" / "seed-1", folder)
    kept, result = load_model(folder, "cpu"), json.loads((folder / "scores.json").read_text("utf-8"))
    before = {path.name: path.read_bytes() for path in (folder / "model").iterdir()}
    model: Any = kept.model

    def fill_disk(*_: object, **__: object) -> None:
        raise RuntimeError("SafetensorError: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("transformers.modeling_utils.safe_save_file", fill_disk)
    with pytest.raises(OSError, match=r"No space left on device.*model"):
        save_model(folder / "model", Trained(model.net, kept.tokenizer), result)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in (folder / "model").iterdir()} == before
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["model"]
    save_model(folder / "model", Trained(model.net, kept.tokenizer), result)
    after = {path.name: path.read_bytes() for path in (folder / "model").iterdir()}
    assert after == before  # the same training, the same bytes
    AutoModel.from_pretrained(folder / "model")
