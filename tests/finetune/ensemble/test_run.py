"""From results on disk to ensembles: seeds that match, members that belong together, what is made once and again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.ensemble.run import find_results, make_ensemble, make_ensembles, plan_ensembles
from finetune.run import FinetuneInputs, run
from finetune.score.scores import read_rows, score_file
from tests.finetune.saved_models.conftest import configure, sample_inputs

__all__ = ["sample_inputs"]
GOLDS = ("정치", "경제", "정치", "스포츠")
LABELS = ("정치", "경제", "사회", "생활문화", "세계", "IT과학", "스포츠")


def write_result(out: Path, model: str, seed: int, shares: list[float], task: str = "ynat", **changes: Any) -> Path:
    """A training of YNAT that gives the right class of each example such a probability, 세계 the rest."""
    folder = out / task / model / f"seed-{seed}"
    folder.mkdir(parents=True)
    lines = []
    for number, (gold, share) in enumerate(zip(changes.pop("golds", GOLDS), shares, strict=True)):
        p = [share if label == gold else 1 - share if label == "세계" else 0.0 for label in LABELS]
        row = {"guid": f"g{number}", "gold": gold, "prediction": gold if share > 0.5 else "세계", "scores": p}
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    (folder / "predictions.jsonl").write_text("".join(lines), "utf-8")
    right = 100 * sum(share > 0.5 for share in shares) / len(shares)
    result = {
        "task": task, "model": model, "settings": "", "seed": seed, "protocol": "malmoi", "split": "dev",
        "is_official_dev": False, "n": len(shares), "n_train": 9, "bootstrap_samples": 3,
        "constant": {"macro_f1": 20.0}, "paper_dev": {}, "data": {},
        "selected": None, "recipe": {"data": {"dev": "0"}}, "headline": "macro_f1",
        "scores": {"macro_f1": right}, "intervals": {}, "fingerprint": f"{model}-{seed}", **changes,
    }  # fmt: skip
    (folder / "scores.json").write_text(json.dumps(result), "utf-8")
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Two models with seeds 1 and 2, one of which has a third."""
    for seed in (1, 2):
        write_result(tmp_path, "one", seed, [0.9, 0.4, 0.6, 0.4])
        write_result(tmp_path, "two", seed, [0.4, 0.9, 0.2, 0.4])
    write_result(tmp_path, "two", 3, [1.0, 1.0, 1.0, 1.0])
    return tmp_path


def test_members_are_matched_by_seed_and_averaged_over_seeds(out: Path) -> None:
    plans = plan_ensembles(find_results([out], "ynat"), "both")
    assert [(plan.name, plan.seed, len(plan.members)) for plan in plans] == [
        ("both", 1, 2), ("both", 2, 2), ("both-all-seeds", 1, 4),
    ]  # fmt: skip
    made = make_ensembles(plans, out)
    folder = out / "ynat" / "both" / "seed-1"
    rows = read_rows(folder / "predictions.jsonl")
    assert [row.prediction for row in rows] == ["정치", "경제", "세계", "세계"]
    assert rows[0].scores[0] == pytest.approx(0.65)
    assert made[0] == json.loads((folder / "scores.json").read_text("utf-8"))
    assert made[0]["scores"] == pytest.approx(score_file("ynat", folder / "predictions.jsonl", samples=0).scores)
    assert [(member["model"], member["seed"]) for member in made[2]["members"]] == [
        ("one", 1), ("one", 2), ("two", 1), ("two", 2),
    ]  # fmt: skip
    assert all(0 <= one["seconds"] < 60 for one in made)
    assert set(made[0]["intervals"]) == {"macro_f1"} and made[0]["constant"] == {"macro_f1": 20.0}
    alone = plan_ensembles(find_results([out], "ynat", ["two"]), "both")
    assert [(plan.name, len(plan.members)) for plan in alone] == [("both-all-seeds", 3)]
    assert plan_ensembles(find_results([out], "ynat", ["two"])[:1], "both") == []


def test_the_order_of_members_and_runs_changes_nothing(out: Path, tmp_path: Path) -> None:
    found = find_results([out], "ynat")
    orders = [plan_ensembles(order, "both") for order in (found, found[::-1])]
    assert orders[0] == orders[1]
    for name, plans in zip(("x", "y"), orders, strict=True):
        make_ensembles(plans, tmp_path / name)
    contents = [{p.name: p.read_bytes() for p in sorted((tmp_path / name).rglob("predictions.jsonl"))} for name in "xy"]
    assert contents[0] == contents[1]


def test_an_ensemble_is_made_once_and_again_when_a_member_has_changed(out: Path) -> None:
    def make() -> tuple[dict[str, Any], int]:
        (plan,) = plan_ensembles([f for f in find_results([out], "ynat") if f.seed == 1], "both")
        return make_ensemble(plan, out), (out / "ynat/both/seed-1/predictions.jsonl").stat().st_ino

    before, again = make(), make()
    assert before == again
    shutil.rmtree(out / "ynat" / "one" / "seed-1")
    write_result(out, "one", 1, [0.9, 0.9, 0.9, 0.9], fingerprint="another")
    after = make()
    assert after[0]["fingerprint"] != before[0]["fingerprint"] and after[1] != before[1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"split": "20% of dev"}, "split '20% of dev', but 'dev' in"),
        ({"protocol": "klue-baseline"}, "protocol 'klue-baseline', but 'malmoi' in"),
        ({"golds": ("경제", *GOLDS[1:])}, "scored on other examples than .*, or on other golds"),
        ({"shares": [0.9] * 3, "golds": GOLDS[:3]}, "n 3, but 4 in"),
    ],
)
def test_members_that_do_not_belong_together_are_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    write_result(tmp_path, "one", 1, [0.9] * 4)
    write_result(tmp_path, "two", 1, **{"shares": [0.9] * 4, **changes})
    (plan,) = plan_ensembles(find_results([tmp_path], "ynat"), "both")
    with pytest.raises(BadInput, match=said):
        make_ensemble(plan, tmp_path)


def test_names_that_are_taken_and_models_that_are_not_there_are_refused(out: Path) -> None:
    found = find_results([out], "ynat")
    with pytest.raises(BadInput, match="one: a member is called so"):
        plan_ensembles(found, "one")
    with pytest.raises(BadInput, match=r"ynat: no result of three; results here: one, two"):
        find_results([out], "ynat", ["three"])
    plans = plan_ensembles([f for f in found if f.result["model"] == "two"], "one")
    shutil.move(out / "ynat" / "one", out / "ynat" / "one-all-seeds")
    with pytest.raises(BadInput, match="a training has its result here"):
        make_ensembles(plans, out)
    ensembles = {"both": {"models": ["model", "three"]}}
    with pytest.raises(ValidationError, match=r"finetune\.models has no 'three'"):
        FinetuneConfig(ensembles=ensembles, seeds=(1, 2))  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="an ensemble needs at least two models or seeds"):
        FinetuneConfig(ensembles={"both": {}})  # type: ignore[arg-type]


def test_a_recipe_makes_its_ensembles_and_trains_again_what_kept_no_scores(
    sample_inputs: FinetuneInputs, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"seeds": (1, 2), "save": "none"}
    run(configure("klue-ner", **settings), sample_inputs, tmp_path)
    settings["settings"] = {"slow": {"overrides": {"ner": {"lr": 1e-5}}}}
    folders = [tmp_path / "klue-ner" / "model" / place for place in ("seed-1", "seed-2")]
    before = [(folder / "predictions.jsonl").read_bytes() for folder in folders]
    (plan, *_) = plan_ensembles(find_results([tmp_path], "klue-ner"), "all")
    with pytest.raises(BadInput, match=r"kept_scores\.parquet: missing; .* finetune.keep_scores=true"):
        make_ensemble(plan, tmp_path)
    config = configure("klue-ner", **settings, ensembles={"all": {}, "mixed": {"settings": ["", "slow"]}})
    run(config, sample_inputs, tmp_path)
    assert before == [(folder / "predictions.jsonl").read_bytes() for folder in folders]
    made = sorted(str(path.parent.relative_to(tmp_path / "klue-ner")) for path in tmp_path.rglob("scores.json"))
    assert [name for name in made if not name.startswith("model/")] == [
        "all-all-seeds/seed-1", "all-all-seeds/slow/seed-1", "mixed-all-seeds/seed-1", "mixed/seed-1", "mixed/seed-2",
    ]  # fmt: skip
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json*")}
    run(config, sample_inputs, tmp_path)
    assert stamps == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json*")}
    (folders[0] / "kept_scores.parquet").write_bytes(b"PAR1")
    (tmp_path / "klue-ner" / "mixed" / "seed-1" / "scores.json").unlink()
    with pytest.raises(BadInput, match=r"kept_scores\.parquet: not readable"):
        run(config, sample_inputs, tmp_path)


def test_ensembles_need_no_torch() -> None:
    code = (
        "import sys, finetune.ensemble.run, launch.tools.compare\nfrom finetune.registry import TASKS\n"
        "[task.ensembling for task in TASKS.values()]\nsys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
