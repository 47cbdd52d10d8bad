"""The ablation at a tiny size: variants by the ordinary stages, tables, complete variants are not trained again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ablations import run as module
from benchmarks.ablations.experiment import (
    SEEN,
    UNSEEN,
    VOCABULARIES,
    Experiment,
    Variant,
    read_vocabularies,
    steps_within,
)
from benchmarks.ablations.run import Amounts, Selection, run_ablations
from benchmarks.commands import main as benchmark
from benchmarks.texts import write_invented_store
from corpus.documents.errors import BadInput
from corpus.documents.locks import hold_lock
from launch.errors import LaunchError
from launch.recipe import load_recipe
from launch.sample.unpack import unpack
from pretrain.metrics.flops import flops_per_token
from tests.command import run_command

TINY = (
    "tokenizer.vocab_size=500", "pretrain.model.layers=2", "pretrain.model.hidden=16", "pretrain.model.heads=2",
    "pretrain.model.intermediate=16", "pretrain.rows.sequence_length=64", "pretrain.global_batch=4",
    "pretrain.rows.held_out_share=0.02", "pretrain.engine.device=cpu", "finetune.device=cpu",
    "finetune.max_train_examples=20", "finetune.max_dev_examples=20", "workers=1",
    "corpus.max_documents_per_file=80", "corpus.decontaminate.enabled=false",
)  # fmt: skip
AMOUNTS = Amounts(1, 3, 4)
ONE = Selection(["bpe"], [], [1], ["ynat"])


def experiment_of(sample: Path, out: Path, **changed: Any) -> Experiment:
    files = sample / "corpus"
    inputs = {SEEN: (str(files / "news.jsonl"), str(files / "encyclopedia.jsonl")),
              UNSEEN: (str(files / "reviews.jsonl.gz"),)}  # fmt: skip
    settings: dict[str, Any] = {"klue": str(sample / "klue"), "operations": 1e8}
    return Experiment("ablations", TINY, inputs, **(settings | changed), out=out)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    unpack(folder)
    return folder


@pytest.fixture(scope="module")
def done(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Experiment, dict[str, Any]]:
    """One vocabulary, both texts, one seed, one task."""
    experiment = experiment_of(sample, tmp_path_factory.mktemp("ablations"))
    return experiment, run_ablations(experiment, ONE, AMOUNTS)


def test_variants_differ_only_in_their_text(done: tuple[Experiment, dict[str, Any]]) -> None:
    _, results = done
    plain, other = results["models"]
    assert [plain["text"], other["text"]] == ["plain", "pseudonymized"]
    assert plain["trained"]["steps"] == other["trained"]["steps"] >= 5
    assert plain["trained"]["entries"] == other["trained"]["entries"] == 500
    assert [set(variant["bits"]) for variant in results["models"]] == [{SEEN, UNSEEN}] * 2
    assert plain["bits"][UNSEEN].keys() == other["bits"][UNSEEN].keys()
    assert len(plain["exposure"]) == 30  # six types, five rates


def test_pseudonymization_removes_all_planted_values(done: tuple[Experiment, dict[str, Any]]) -> None:
    _, results = done
    assert results["planted"]["plain"] == {"values": 24, "copies": 510, "values_left": 24, "copies_left": 510}
    assert results["planted"]["pseudonymized"] == {"values": 24, "copies": 510, "values_left": 0, "copies_left": 0}


def test_tables_hold_the_papers_and_ours(done: tuple[Experiment, dict[str, Any]]) -> None:
    experiment, results = done
    page = (experiment.out / "results.md").read_text("utf-8")
    for title in ("Table 33: a: bpe, plain, b: bpe, pseudonymized", "Exposure of planted personal data", "Fit to",
                  "Planted personal data in the corpus"):  # fmt: skip
        assert f"**{title}" in page
    assert [test["task"] for test in results["table_33"]] == ["ynat"] and not results["table_34"]
    assert json.loads((experiment.out / "table-35.json").read_text("utf-8"))[0]["name"].startswith("bpe-plain")
    assert json.loads((experiment.out / "results.json").read_text("utf-8")) == json.loads(json.dumps(results))


def test_complete_variants_are_not_trained_again_and_missing_measurements_are_equal(
    done: tuple[Experiment, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, results = done
    folder = experiment.out / "models" / "bpe-plain-seed-1"
    (folder / "measured.json").unlink()  # as after a kill
    measured, real = list[str](), module._measure_variant

    def measure(variant: Variant, *others: Any) -> dict[str, Any]:
        measured.append(variant.name)
        return real(variant, *others)

    monkeypatch.setattr(module, "_measure_variant", measure)
    again = run_ablations(experiment, ONE, AMOUNTS)
    assert measured == ["bpe-plain-seed-1"]
    assert again == results


def test_a_variant_that_another_command_works_on_is_skipped(
    done: tuple[Experiment, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, _ = done
    monkeypatch.setattr(Experiment, "train", lambda *_: pytest.fail("trained a variant of another command"))
    with hold_lock(experiment.out / "models" / "bpe-plain-seed-1" / ".variant.lock"):
        run_ablations(experiment, ONE._replace(texts=["plain"]), AMOUNTS)


def test_other_settings_in_the_same_folder_are_refused(done: tuple[Experiment, dict[str, Any]], sample: Path) -> None:
    experiment, _ = done
    with pytest.raises(BadInput, match="operations differ from"):
        run_ablations(experiment_of(sample, experiment.out, operations=2e8), ONE, AMOUNTS)
    with pytest.raises(BadInput, match="amounts differ from"):
        run_ablations(experiment, ONE, AMOUNTS._replace(alternatives=4))


def test_a_failing_variant_does_not_stop_the_others(
    done: tuple[Experiment, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, _ = done
    monkeypatch.setitem(VOCABULARIES, "tiny", ("tokenizer.vocab_size=8",))
    selection = Selection(["tiny"], ["plain"], [1], [])
    with pytest.raises(LaunchError, match="vocab_size 8 is too small"):
        run_ablations(experiment, selection, AMOUNTS)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["bpe", "bpe"], "--vocabulary bpe: expected different names"),
        (["kule"], "--vocabulary kule: expected different names of bpe, klue, malmoi, malmoi-2x"),
    ],
)
def test_unusable_vocabularies_are_one_sentence(texts: list[str], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read_vocabularies(texts, load_recipe("ablations"))


def test_default_vocabularies_are_the_builders_and_one_of_twice_the_size() -> None:
    recipe = load_recipe("ablations", ("tokenizer.vocab_size=4000",))
    found = {one.name: load_recipe("ablations", one.overrides).tokenizer for one in read_vocabularies([], recipe)}
    assert [found[name].builder for name in ("bpe", "klue", "malmoi", "malmoi-2x")] == [
        "bpe",
        "klue",
        "malmoi",
        "malmoi",
    ]
    assert found["malmoi-2x"].vocab_size == 8000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--text", "masked"], "plain or pseudonymized"),
        (["--seed", "1", "--seed", "1"], "expected different seeds"),
        (["--alternatives", "0"], "--alternatives must be above 0"),
        (["--data", "x.txt", "--task", "ynat"], "needs the KLUE files"),
        (["--klue", ".", "--data", "x.txt"], "missing"),
        (["pretrain.init_from=klue/roberta-base", "--data", "x.txt"], "init_from"),
    ],
)
def test_bad_options_are_one_sentence(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.txt").write_text("글이다.\n", "utf-8")
    run_command(capfd, "ablations", *arguments, command=benchmark).refused(words)


@pytest.mark.parametrize(("entries", "dtype"), [(4_000, "<u2"), (40_000, "<u4")])
def test_equal_operations_are_fewer_steps_of_a_larger_vocabulary(entries: int, dtype: str, tmp_path: Path) -> None:
    tokens, tokenizer = write_invented_store(tmp_path, entries, 20_000)
    assert json.loads((tokens / "meta.json").read_text("utf-8"))["dtype"] == dtype
    config = load_recipe("ablations", TINY).pretrain
    a_step = flops_per_token(config, entries) * config.global_batch * config.rows.sequence_length
    assert steps_within(tokens, tokenizer, config, 25.5 * a_step) == 25
    with pytest.raises(BadInput, match="raise --operations"):
        steps_within(tokens, tokenizer, config, 2 * a_step)
