"""The whole ablation at a tiny size: cells by the ordinary stages, tables made of them, nothing done twice."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ablations import run as module
from benchmarks.ablations.cells import READ, UNREAD, Base, Cell, read_vocabularies, steps_within
from benchmarks.ablations.run import Chosen, Measures, run_ablations
from benchmarks.commands import main as benchmark
from benchmarks.material import write_invented
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
    "finetune.max_train_examples=20", "finetune.max_dev_examples=20", "finetune.bootstrap_samples=0", "workers=1",
    "corpus.max_documents_per_file=80", "corpus.decontaminate.enabled=false",
)  # fmt: skip
MEASURES = Measures(1, 3, 4)
ONE = Chosen(["bpe"], [], [1], ["ynat"])


def base_of(sample: Path, out: Path, **changed: Any) -> Base:
    files = sample / "corpus"
    inputs = {READ: (str(files / "news.jsonl"), str(files / "encyclopedia.jsonl")),
              UNREAD: (str(files / "reviews.jsonl.gz"),)}  # fmt: skip
    told: dict[str, Any] = {"klue": str(sample / "klue"), "operations": 1e8}
    return Base("ablations", TINY, inputs, **(told | changed), out=out)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    unpack(folder)
    return folder


@pytest.fixture(scope="module")
def done(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Base, dict[str, Any]]:
    """One vocabulary, both texts, one seed, one task."""
    base = base_of(sample, tmp_path_factory.mktemp("ablations"))
    return base, run_ablations(base, ONE, MEASURES)


def test_cells_differ_in_their_text_alone(done: tuple[Base, dict[str, Any]]) -> None:
    _, results = done
    plain_cell, other = results["cells"]
    assert [plain_cell["text"], other["text"]] == ["plain", "pseudonymized"]
    assert plain_cell["trained"]["steps"] == other["trained"]["steps"] >= 5
    assert plain_cell["trained"]["entries"] == other["trained"]["entries"] == 500
    assert [set(cell["bits"]) for cell in results["cells"]] == [{READ, UNREAD}] * 2
    assert plain_cell["bits"][UNREAD].keys() == other["bits"][UNREAD].keys()
    assert len(plain_cell["exposure"]) == 30  # six types, five rates


def test_pseudonymizing_leaves_nothing_of_what_was_planted(done: tuple[Base, dict[str, Any]]) -> None:
    _, results = done
    assert results["planted"]["plain"] == {"values": 24, "copies": 510, "values_left": 24, "copies_left": 510}
    assert results["planted"]["pseudonymized"] == {"values": 24, "copies": 510, "values_left": 0, "copies_left": 0}


def test_tables_hold_the_papers_and_ours(done: tuple[Base, dict[str, Any]]) -> None:
    base, results = done
    page = (base.out / "results.md").read_text("utf-8")
    for title in ("Table 33: a: bpe, plain, b: bpe, pseudonymized", "Exposure of planted personal data", "Fit to",
                  "Planted personal data in the corpus", "Scores on dev"):  # fmt: skip
        assert f"**{title}" in page
    assert [test["task"] for test in results["table_33"]] == ["ynat"] and not results["table_34"]
    rows = list(csv.DictReader((base.out / "results.csv").read_text("utf-8").splitlines()))
    assert {row["table"] for row in rows} == {"exposure", "33"}
    assert json.loads((base.out / "table-35.json").read_text("utf-8"))[0]["name"].startswith("bpe-plain")
    assert json.loads((base.out / "results.json").read_text("utf-8")) == json.loads(json.dumps(results))


def test_what_is_complete_is_not_done_again_and_what_is_missing_comes_out_alike(
    done: tuple[Base, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, results = done
    cell = base.out / "cells" / "bpe-plain-seed-1"
    (cell / "measured.json").unlink()  # as after a kill
    measured, real = list[str](), module._measure

    def measure(cell: Cell, *told: Any) -> dict[str, Any]:
        measured.append(cell.name)
        return real(cell, *told)

    monkeypatch.setattr(module, "_measure", measure)
    again = run_ablations(base, ONE, MEASURES)
    assert measured == ["bpe-plain-seed-1"]
    assert again == results


def test_cell_that_another_command_is_at_work_on_is_left_to_it(
    done: tuple[Base, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, _ = done
    monkeypatch.setattr(Base, "train", lambda *told: pytest.fail("worked at a cell that is not its own"))
    with hold_lock(base.out / "cells" / "bpe-plain-seed-1" / ".cell.lock"):
        run_ablations(base, ONE._replace(texts=["plain"]), MEASURES)


def test_other_settings_in_the_same_folder_are_refused(done: tuple[Base, dict[str, Any]], sample: Path) -> None:
    base, _ = done
    with pytest.raises(BadInput, match="another setting of operations"):
        run_ablations(base_of(sample, base.out, operations=2e8), ONE, MEASURES)
    with pytest.raises(BadInput, match="another setting of measures"):
        run_ablations(base, ONE, MEASURES._replace(others=4))


def test_cell_that_fails_costs_no_other(done: tuple[Base, dict[str, Any]]) -> None:
    base, _ = done
    chosen = Chosen(["tiny: tokenizer.vocab_size=8"], ["plain"], [1], [])
    with pytest.raises(LaunchError, match="vocab_size 8 is too small"):
        run_ablations(base, chosen, MEASURES)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (["bpe", "bpe"], "named twice"),
        (["kule"], "there are bpe, klue"),
        (["bpe: tokenizer.vocab_size=9000"], "a name of its own"),
        (["mine: pretrain.steps=9"], "give tokenizer.KEY=VALUE"),
        (["mine:"], "give tokenizer.KEY=VALUE"),
        (["a/b: tokenizer.vocab_size=9000"], "a name of its own"),
    ],
)
def test_vocabularies_that_cannot_be_are_one_sentence(told: list[str], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read_vocabularies(told, load_recipe("ablations"))


def test_standing_vocabularies_are_builders_and_one_of_twice_the_size() -> None:
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
        (["--text", "masked"], "plain, pseudonymized"),
        (["--seed", "1", "--seed", "1"], "each seed once"),
        (["--others", "0"], "--others must be above 0"),
        (["--data", "x.txt", "--task", "ynat"], "no KLUE files"),
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
    tokens, tokenizer = write_invented(tmp_path, entries, 20_000)
    assert json.loads((tokens / "meta.json").read_text("utf-8"))["dtype"] == dtype
    config = load_recipe("ablations", TINY).pretrain
    a_step = flops_per_token(config, entries) * config.global_batch * config.rows.sequence_length
    assert steps_within(tokens, tokenizer, config, 25.5 * a_step) == 25
    with pytest.raises(BadInput, match="raise --operations"):
        steps_within(tokens, tokenizer, config, 2 * a_step)
