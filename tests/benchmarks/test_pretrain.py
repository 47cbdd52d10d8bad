"""The pretrain bench: an invented store that trains, equal rows and masks for both sides, one whole run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.pretrain import (
    OURS,
    PLAIN,
    WHOLE_WORDS,
    TrainingData,
    as_examples,
    comparison_config,
    examples_of_run,
    held_out_loss,
    measure_loading,
    run_pretrain_bench,
)
from benchmarks.texts import SPECIAL_PIECES, invent_vocabulary, write_invented_store
from corpus.documents.errors import BadInput
from pretrain.batching.batches import TrainingBatches, make_batch
from pretrain.batching.masking import IGNORED
from pretrain.model.loss import PretrainingModule
from pretrain.pack.store import TokenStore, open_store, piece_ids, read_pieces

VOCABULARY, TOKENS = 400, 30_000
SMALL = {
    "model": {"layers": 1, "hidden": 16, "heads": 2, "intermediate": 32, "positions": 32},
    "rows": {"sequence_length": 32, "held_out_share": 0.02}, "engine": {"micro_batch": 4}, "global_batch": 4,
}  # fmt: skip


@pytest.fixture(scope="module")
def invented(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Token store and tokenizer; read only."""
    return write_invented_store(tmp_path_factory.mktemp("invented"), VOCABULARY, TOKENS)


@pytest.fixture(scope="module")
def store(invented: tuple[Path, Path]) -> TokenStore:
    return open_store(*invented)


@pytest.fixture
def given(invented: tuple[Path, Path]) -> TrainingData:
    return TrainingData.open(*invented, comparison_config(3, **SMALL))


def test_invented_words_have_two_pieces_on_average_and_none_is_unknown(
    invented: tuple[Path, Path], store: TokenStore
) -> None:
    vocabulary = read_pieces(invented[1])
    pieces = [vocabulary[number] for number in piece_ids(store.tokens[:])]
    inside = [piece for piece in pieces if piece != "[SEP]"]

    assert len(inside) == pytest.approx(TOKENS, rel=0.15)
    assert not set(inside) & set(SPECIAL_PIECES)
    assert sum(piece.startswith("##") for piece in inside) / len(inside) == pytest.approx(0.5, abs=0.1)
    assert pieces.count("[SEP]") == len(store.documents) - 1 > 20


@pytest.mark.parametrize("size", [11, 400, 32_000])
def test_invented_vocabulary_is_of_the_size_asked_for_without_doubles(size: int) -> None:
    assert len(set(invent_vocabulary(size))) == size


def test_invented_store_is_the_same_every_time(tmp_path: Path, invented: tuple[Path, Path]) -> None:
    again, _ = write_invented_store(tmp_path, VOCABULARY, TOKENS)

    assert (again / "tokens.bin").read_bytes() == (invented[0] / "tokens.bin").read_bytes()


def test_offsets_give_the_collator_the_words_that_we_mask(given: TrainingData) -> None:
    from transformers import DataCollatorForLanguageModeling

    ids_BL = given.split.training.gather(np.zeros(8, np.int64), np.arange(8)).ids_BL
    examples = as_examples(ids_BL, given.pieces, with_offsets=True)
    offsets, special_BL = (np.array([e[name] for e in examples]) for name in ("offset_mapping", "special_tokens_mask"))
    _, is_no_start_BL = DataCollatorForLanguageModeling._calc_word_ids_and_prob_mask(offsets, special_BL)

    starts_BL = ~given.pieces.continues_V[ids_BL] & ~given.pieces.special_V[ids_BL]
    starts_BL[:, 1] = True  # the piece after [CLS] always starts a word
    assert (~np.asarray(is_no_start_BL) == starts_BL).all()


def test_all_loaders_are_timed_over_the_same_rows(invented: tuple[Path, Path]) -> None:
    found = measure_loading((*map(str, invented), 64, 1, 1))

    rows = found["rows"]
    assert list(rows) == [OURS, PLAIN, WHOLE_WORDS]
    assert found["tokens"] == 64 * 64
    assert rows[OURS]["times"] == pytest.approx(rows[OURS]["m_tokens_per_s"] / rows[WHOLE_WORDS]["m_tokens_per_s"])


def test_the_trainer_gets_the_rows_that_ours_trains_on(given: TrainingData) -> None:
    theirs = [example["input_ids"] for example in examples_of_run(given)]
    batches = TrainingBatches(given.split, given.pieces, given.config, 0, 1, 4)
    ours = []
    for step in (1, 2, 3):
        (batch,) = batches.of_step(step)
        rows, slots = torch.nonzero(batch.targets_BM != IGNORED, as_tuple=True)
        batch.ids_BL[rows, batch.positions_BM[rows, slots]] = batch.targets_BM[rows, slots]
        ours += batch.ids_BL.tolist()

    assert theirs == ours


def test_held_out_loss_is_about_that_of_our_module_and_repeats(
    invented: tuple[Path, Path], given: TrainingData
) -> None:
    network = given.network()
    found = held_out_loss(given, network, invented[1])
    rows = np.arange(given.split.held_out.count(0))
    epochs = np.zeros_like(rows)
    batch = make_batch(given.split.held_out.gather(epochs, rows), epochs, given.pieces, given.config)
    with torch.no_grad():
        sums = PretrainingModule(network.eval())(*batch)

    assert found == pytest.approx(float(sums.mlm_loss) / batch.predictions, rel=0.1)  # nothing is learnt yet
    assert held_out_loss(given, network, invented[1]) == found


def test_a_run_measures_every_part_and_writes_its_figures(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    in_this_process: None,
) -> None:
    small = {"LOADER_BATCHES": 1, "VOCABULARY": VOCABULARY, "TOKENS": TOKENS}
    for name, value in small.items():
        monkeypatch.setattr(f"benchmarks.pretrain.{name}", value)
    monkeypatch.setattr("benchmarks.pretrain.comparison_config", lambda steps, **_: comparison_config(steps, **SMALL))
    threads = torch.get_num_threads()
    try:
        results = run_pretrain_bench(["loader", "trainer"], ["2x128"], 4, 1, tmp_path / "out")
    finally:
        torch.set_num_threads(threads)

    printed = capsys.readouterr().out
    for title in ("Loading and masking", "Training speed"):
        assert title in printed
    trainer = results["trainer"]["2x128"]["rows"]
    assert [row["curve"]["steps"] for row in trainer.values()] == [[1, 2, 3, 4]] * 3
    first_losses = [row["curve"]["losses"][0] for row in trainer.values()]
    assert first_losses == pytest.approx([first_losses[0]] * 3, abs=0.3)  # the same fresh model
    assert json.loads((tmp_path / "out" / "bench.json").read_text("utf-8")) == results


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parts": ["speed"]}, "--only speed"),
        ({"sizes": ["12x12"]}, "--size 12x12: expected one of 2x128, 4x256, 12x768"),
        ({"steps": 1}, "--steps"),
        ({"rounds": 0}, "--rounds"),
    ],
)
def test_unusable_options_are_one_sentence(changes: dict[str, Any], words: str) -> None:
    usual = {"parts": [], "sizes": [], "steps": 4, "rounds": 1, "out": None}
    with pytest.raises(BadInput, match=words):
        run_pretrain_bench(**(usual | changes))
