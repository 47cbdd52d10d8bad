"""The speedrun: one text and evaluation for all candidates, stored results, and tables."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.speedrun import run
from benchmarks.speedrun.budget import Budget
from benchmarks.speedrun.candidates import read_candidates
from benchmarks.speedrun.leaderboard import leaderboard_tables, share_until_above_counting, speedups, spent_until_loss
from benchmarks.speedrun.probes import Probes, compare_probes, probe_config
from benchmarks.speedrun.run import run_speedrun
from benchmarks.speedrun.setup import HELD_OUT_SHARE, Evaluation, Text, prepare_text, score
from corpus.documents.errors import BadInput
from finetune.tasks.ynat.task import YNAT_LABELS
from launch.errors import LaunchError
from pretrain.engine.start import start_engine
from pretrain.engine.world import World
from pretrain.metrics.held_out import measure
from pretrain.model.loss import PretrainingModule
from pretrain.model.networks import build_network
from pretrain.pack.store import open_store
from tests.benchmarks.speedrun.small_run import OURS, RULES, SIZE, THEIRS


def test_documents_are_held_out_once_and_for_all(given: Path, text: Text, tmp_path: Path) -> None:
    stores = [open_store(part, text.tokenizer) for part in (text.training, text.held_out)]
    sizes = [len(store.documents) - 1 for store in stores]
    assert sum(sizes) == sum(text.facts[part]["documents"] for part in ("training", "held-out"))
    assert 0 < sizes[1] < 4 * HELD_OUT_SHARE * sum(sizes)
    seen = [
        {tuple(store.tokens[begin:end]) for begin, end in zip(store.documents, store.documents[1:], strict=False)}
        for store in stores
    ]
    assert not seen[0] & seen[1]
    again = prepare_text(given, tmp_path / "text", 1)
    assert again.facts == text.facts


def test_text_of_another_run_is_refused(given: Path, tmp_path: Path) -> None:
    prepare_text(given, tmp_path / "text", 1)
    path = tmp_path / "text" / "text.json"
    path.write_text(path.read_text("utf-8").replace("sha256:", "sha256:0"), "utf-8")
    with pytest.raises(BadInput, match="made from a different corpus or vocabulary"):
        prepare_text(given, tmp_path / "text", 1)


def test_judge_measures_what_pretraining_measures(text: Text) -> None:
    judge = Evaluation(text, 16)
    [candidate] = read_candidates([OURS], SIZE, "fp32")
    store = open_store(text.held_out, text.tokenizer)
    network = build_network(candidate.config, store.meta["vocab_size"], store.meta["special_ids"])
    engine = start_engine(candidate.config, PretrainingModule(network), World(0, 1, torch.device("cpu")))
    engine.module.eval()

    def sums_of(batch: Any) -> Any:
        sums = engine(*batch)
        return sums.mlm_loss, sums.mlm_hits

    found = score(judge.batches(candidate.config), sums_of)
    expected = measure(
        engine, judge._source, store.source_names, judge.pieces, judge._config, World(0, 1, torch.device("cpu")), 7
    )
    assert found["loss"] == pytest.approx(expected["mlm_loss"], rel=1e-6)
    assert found["accuracy"] == pytest.approx(expected["masked_accuracy"], abs=1e-9)


@pytest.mark.parametrize("change", ["pretrain.rows.masking.share=0.4", "pretrain.rows.packing=documents",
                                    "pretrain.seed=7"])  # fmt: skip
def test_words_to_guess_are_the_same_for_every_candidate(change: str, text: Text) -> None:
    plain, other = (
        [
            (weight, sorted(batch.targets_BM.flatten().tolist()))
            for weight, batch in Evaluation(text, 16).batches(config)
        ]
        for config in (read_candidates([command], SIZE, "fp32")[0].config for command in (OURS, f"{OURS} {change}"))
    )
    assert plain == other


# --- candidates


def test_candidates_are_recipes_with_overrides_in_the_size_of_the_setup(tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text("pretrain: {model: {layers: 3, hidden: 32, heads: 2}}\n", "utf-8")
    command = ["trainer", "real-small", "deep: real-small pretrain.model.layers=5", f"mine: {own}"]
    trainer, small, deep, mine = read_candidates(command, "2x128", "bf16")

    assert [trainer.side, small.side] == ["trainer", "malmoi"]
    assert (small.config.model.layers, small.config.model.hidden, small.config.model.heads) == (2, 128, 2)
    assert small.config.model.embedding_init == "cooccurrence" and small.config.optimizer.schedule == "wsd"
    assert small.config.optimizer.warmup_share == pytest.approx(700 / 4000)
    assert (deep.config.model.layers, deep.config.model.hidden) == (5, 128)
    assert mine.config.model.layers == 3
    assert trainer.config == read_candidates(["paper"], "2x128", "bf16")[0].config
    assert {c.config.engine.precision for c in (trainer, small, deep, mine)} == {"bf16"}
    assert small.seeded(3).seed == 3


def test_gated_units_have_as_many_weights_as_others() -> None:
    plain, gated = (found.config.model for found in read_candidates(["real-small", "malmoi-small"], "4x384", "fp32"))
    assert 3 * gated.intermediate == 2 * plain.intermediate == 3 * 1024


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["paper", "paper"], "two candidates have this name"),
        (["a/b: paper"], "needs a name"),
        (["a:"], "NAME: RECIPE"),
        (["a: paper tokenizer.vocab_size=9000"], "tokenizer.vocab_size=9000: only pretrain.KEY=VALUE"),
        (["a: paper pretrain.init_from=klue/roberta-base"], "pretrain.init_from"),
        (["a: real-smal"], "did you mean real-small"),
        (["a: paper pretrain.model.objective=causal"], "pretrain.model.objective=causal"),
        (["a: trainer pretrain.rows.packing=documents"], "must be blocks for the Trainer"),
    ],
)
def test_unusable_candidates_are_one_sentence(command: list[str], words: str) -> None:
    with pytest.raises((BadInput, LaunchError), match=words):
        read_candidates(command, SIZE, "fp32")


def test_size_that_cannot_be_read_is_named() -> None:
    with pytest.raises(BadInput, match="--size big"):
        read_candidates(["paper"], "big", "fp32")


def test_results_stay_and_are_not_made_again(given: Path, tmp_path: Path, here: list[str], capsys: Any) -> None:
    command = [OURS, THEIRS]
    first = run_speedrun(given, command[:1], SIZE, [1], RULES, None, tmp_path)
    results = run_speedrun(given, command, SIZE, [1, 2], RULES, None, tmp_path)

    assert here == ["paper, seed 1,", "trainer, seed 1,", "paper, seed 2,", "trainer, seed 2,"]
    assert results[0] == first[0] and len(results) == 4
    assert len({result["loss"] for result in results}) == 4
    assert results == [json.loads(line) for line in (tmp_path / "results.jsonl").read_text("utf-8").splitlines()]
    page = (tmp_path / "results.md").read_text("utf-8")
    assert "| paper | 1, 2 |" in page and "- trainer: `trainer pretrain.global_batch=4`" in page
    assert "Speed-up" in capsys.readouterr().out

    with pytest.raises(BadInput, match="another candidate of this name"):
        run_speedrun(given, [f"{OURS} pretrain.optimizer.lr=1e-3"], SIZE, [1], RULES, None, tmp_path)
    with pytest.raises(BadInput, match="another setup: points"):
        run_speedrun(given, command, SIZE, [1], RULES._replace(points=5), None, tmp_path)


def test_probes_run_after_training_with_its_seed_and_are_stored(
    given: Path, tmp_path: Path, here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_speedrun(given, [OURS], SIZE, [1, 4], RULES, None, tmp_path)
    seen: list[tuple[Any, ...]] = []

    def fake(model: Path, probes: Probes, out: Path, seed: int, precision: str) -> Any:
        assert (model / "config.json").is_file()
        seen.append((probes.tasks, probes.lr_factors, probes.examples, seed))
        return {name: {"macro_f1": 12.34} for name in probes.names}

    monkeypatch.setattr(run, "probe", fake)
    for tasks, changes in (
        ([], {}),
        (["nli", "ynat"], {"lr_factors": [1.0], "examples": [1000]}),
        (["sts", "klue-sts"], {}),
        (["sts"], {"lr_factors": [3, 1]}),
        (["sts"], {"lr_factors": [3]}),
        (["sts"], {"examples": [50]}),
    ):
        first, second = run_speedrun(
            given, [OURS], SIZE, [1, 4], RULES, "malmoi:sample", tmp_path, tasks=tasks, **changes
        )
    quick, sts = ("ynat", "klue-nli", "klue-ner", "klue-dp"), ("klue-sts",)
    assert here == ["paper, seed 1,", "paper, seed 4,"]
    asked = ((quick, (), ()), (sts, (), ()), (sts, (3, 1), ()), (sts, (), (50,)))
    assert seen == [(*each, seed) for each in asked for seed in (1, 4)]
    assert (
        list(first["probes"])
        == list(second["probes"])
        == [*quick, *sts, "klue-sts, lr-factor-3", "klue-sts, examples-50"]
    )
    assert "| klue-sts, lr-factor-3 | macro\\_f1 | 12.3, 12.3 |" in (tmp_path / "results.md").read_text("utf-8")


def test_probes_are_fine_tuned_as_real_small_is_except_for_the_named_settings() -> None:
    config = probe_config(Probes(Path("klue"), ("ynat", "wos"), (3, 1, 0.5), (50,)), 7, "fp32")
    assert (config.tasks, config.seeds, config.models) == (("ynat", "wos"), (7,), ("model",))
    assert config.overrides["ynat"].lr == 3e-4 and list(config.settings) == [
        "lr-factor-3",
        "lr-factor-0.5",
        "examples-50",
    ]
    assert config.max_train_examples == 1000 and config.with_settings("examples-50").max_train_examples == 50
    faster = config.with_settings("lr-factor-3").overrides
    assert faster["ynat"].lr == pytest.approx(9e-4) and faster["wos"].lr == pytest.approx(15e-4)
    assert faster["ynat"].epochs == config.overrides["ynat"].epochs == 3


def write_probes(folder: Path, seed: int, right: int, settings: str = "") -> None:
    """A result on 40 headlines, of which the first are right."""
    place = folder / "finetune" / "ynat" / "model" / settings / f"seed-{seed}"
    place.mkdir(parents=True)
    labels = [YNAT_LABELS[n % 7] for n in range(41)]
    rows = [
        {"guid": f"ynat-v1_dev_{n:05}", "gold": labels[n], "prediction": labels[n + (n >= right)]} for n in range(40)
    ]
    (place / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    facts = {"task": "ynat", "model": "model", "seed": seed, "protocol": "malmoi", "split": "dev", "encoder": "same"}
    facts |= {"settings": settings} if settings else {}
    (place / "scores.json").write_text(json.dumps(facts), "utf-8")


def test_probes_are_compared_with_those_of_a_reference_by_their_own_seeds(tmp_path: Path) -> None:
    folders: dict[str, dict[int, Path]] = {"small": {}, "large": {}, "lone": {}}
    for seed, small, large in ((1, 20, 34), (2, 22, 36), (3, 21, 33)):
        for name, right in (("small", small), ("large", large)):
            folders[name][seed] = tmp_path / name / str(seed)
            write_probes(folders[name][seed], seed, right)
    write_probes(folders["small"][2], 1, 40)  # of another seed; no result of this pretraining
    folders["lone"][1] = tmp_path / "lone"
    for name, right in (("small", 10), ("large", 11)):
        write_probes(folders[name][1], 1, right, "lr-factor-3")

    table, faster = compare_probes(folders, ["small"], tmp_path)
    assert table.title == "Probes: a: small, b: large"
    assert faster.title == "Probes: a: small, lr-factor-3, b: large, lr-factor-3" and "Seeds: 1" in faster.note
    [row] = table.rows
    assert row[0] == "ynat\nmacro_f1" and "b is better" in row[-1]
    assert float(row[1].split("\n")[0]) == pytest.approx(52.5, abs=3) and float(row[3]) > 25
    assert "Seeds: 3" in table.note and "40" in table.note


def test_every_candidate_is_compared_with_the_named_baselines(given: Path, tmp_path: Path, here: list[str]) -> None:
    command = [OURS, f"slow: {OURS.partition(':')[2]} pretrain.optimizer.lr=1e-6"]
    run_speedrun(given, command, SIZE, [1], RULES, None, tmp_path, baselines=["slow"])
    assert "| candidate | loss of slow |" in (tmp_path / "results.md").read_text("utf-8")
    with pytest.raises(BadInput, match=r"--baseline swift: no candidate.*paper, slow"):
        run_speedrun(given, command, SIZE, [1], RULES, None, tmp_path, baselines=["swift"])
    assert len(here) == 2


def test_a_failure_is_reported_at_the_end_and_the_other_candidates_run(
    given: Path, tmp_path: Path, here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    works = run.run_fresh

    def fails_once(work: Any, order: Any, what: str, *rest: Any) -> dict[str, Any]:
        if what.startswith("bad"):
            raise LaunchError("bad failed in its own process")
        return works(work, order, what, *rest)

    monkeypatch.setattr(run, "run_fresh", fails_once)
    with pytest.raises(LaunchError, match="bad failed"):
        run_speedrun(given, ["bad: paper pretrain.global_batch=2", OURS], SIZE, [1], RULES, None, tmp_path)
    assert len((tmp_path / "results.jsonl").read_text("utf-8").splitlines()) == 1


def test_options_that_cannot_be_met_are_named(given: Path, tmp_path: Path) -> None:
    for changes, words in (
        ({"precision": "fp8"}, "--precision fp8: expected one of auto"),
        ({"budget": Budget("cpu_s", 0)}, "--minutes or --operations"),
    ):
        with pytest.raises(BadInput, match=words):
            run_speedrun(given, [OURS], SIZE, [1], RULES._replace(**changes), None, tmp_path)
    with pytest.raises(BadInput, match="--seed"):
        run_speedrun(given, [OURS], SIZE, [1, 1], RULES, None, tmp_path)
    with pytest.raises(BadInput, match="ynat"):
        run_speedrun(given, [OURS], SIZE, [1], RULES, str(given), tmp_path)
    with pytest.raises(BadInput, match="--lr-factor must be above 0"):
        run_speedrun(given, [OURS], SIZE, [1], RULES, "malmoi:sample", tmp_path, lr_factors=[0.0])
    with pytest.raises(BadInput, match="--examples must be above 0"):
        run_speedrun(given, [OURS], SIZE, [1], RULES, "malmoi:sample", tmp_path, examples=[0])
    with pytest.raises(BadInput, match="--task, --lr-factor and --examples need the KLUE files"):
        run_speedrun(given, [OURS], SIZE, [1], RULES, None, tmp_path, tasks=["ner"])
    with pytest.raises(BadInput, match="did you mean klue-ner"):
        run_speedrun(given, [OURS], SIZE, [1], RULES, "malmoi:sample", tmp_path, tasks=["nre"])
    with pytest.raises(LaunchError, match="not complete"):
        run_speedrun(tmp_path / "nothing", [OURS], SIZE, [1], RULES, None, tmp_path)


def points(*losses: float) -> list[dict[str, float]]:
    return [{"spent": 10.0 * (n + 1), "loss": loss, "accuracy": 1 - loss / 10} for n, loss in enumerate(losses)]


def result(name: str, seed: int, *losses: float) -> dict[str, Any]:
    ends = {"loss": losses[-1], "accuracy": 0.1, "tokens": 1e6, "steps": 9, "seconds": 40.0, "counting_seconds": 0.0}
    return {"candidate": name, "seed": seed, "curve": points(*losses), **ends}


def test_times_faster_are_read_off_the_curves_seed_by_seed() -> None:
    runs = [
        result("a", 1, 9, 8, 7, 6),
        result("a", 2, 9, 8, 7, 7),
        result("b", 1, 7, 5, 4, 3),
        result("b", 2, 7.5, 7.2, 7.1, 7.05),
    ]
    assert speedups(runs, "b", "a") == {1: 40 / 15, 2: None}
    assert speedups(runs, "a", "a") == {1: 1.0, 2: 40 / 30}
    assert speedups([*runs, result("c", 3, 1)], "c", "a") == {}
    counted = result("d", 1, 5, 4)
    counted["curve"][0]["spent"] = 0.0  # first values that cost nothing, as where operations are the budget
    assert speedups([*runs, counted], "d", "a") == {1: math.inf}
    [*_, sooner] = leaderboard_tables([*runs, counted], {"both_sides_accuracy": 0.35}, ["a"])
    assert {row[0]: row[1] for row in sooner.rows} == {"a": "", "b": "2.67, –", "d": "at once"}
    assert spent_until_loss(points(5, 6, 4), 4.5) == 27.5
    assert share_until_above_counting(runs[2], 0.45) == 0.5 and share_until_above_counting(runs[0], 0.45) is None


def test_tables_have_the_order_of_the_losses() -> None:
    runs = [
        result("paper", 1, 9, 8),
        result("b", 1, 7, 5),
        {**result("a", 1, 7, 6), "probes": {"ynat": {"macro_f1": 50.0}}},
        {**result("a", 2, 7, 6), "probes": {"ynat": {"macro_f1": 51.0}, "ynat, lr-factor-3": {"macro_f1": 52.0}}},
    ]
    learnt, curves, sooner, probed = leaderboard_tables(runs, {"both_sides_accuracy": 0.35}, ["trainer", "paper"])
    assert [row[0] for row in learnt.rows] == ["b", "a", "paper"]
    assert [row[-1] for row in learnt.rows] == ["100%", "100%, 100%", "never"]
    assert curves.heads[1:4] == ("5%", "10%", "20%") and curves.rows[0][1:4] == ["–", "–", "–"]  # from 10 of 20 on
    assert curves.rows[2][-3:] == ["8.80\n12.0%", "8.40\n16.0%", "8.00\n20.0%"]
    assert sooner.heads == ("candidate", "loss of paper") and [row[1] for row in sooner.rows] == ["2.00", "2.00", ""]
    assert probed.heads == ("probe", "metric", "b", "a", "paper")
    assert probed.rows == [
        ["ynat", "macro_f1", "", "50.0, 51.0", ""],
        ["ynat, lr-factor-3", "macro_f1", "", "–, 52.0", ""],
    ]
