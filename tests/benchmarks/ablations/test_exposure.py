"""Exposure of models with known likelihoods; bits per character of any vocabulary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks.ablations.bits_per_character import MASKED_SHARE, UNKNOWN_BITS, Window, cut_windows, measure_bits
from benchmarks.ablations.canaries import Canary
from benchmarks.ablations.exposure import (
    HiddenValue,
    chance,
    exposure,
    extract,
    locate_value,
    measure_exposure,
    pseudo_log_likelihoods,
)
from benchmarks.ablations.masked_model import MaskedModel, Question, score_questions
from corpus.documents.errors import BadInput
from corpus.documents.shards import Document

MASK = 4


class Known:
    """Probabilities from a table, by place and the piece before it; uniform elsewhere."""

    def __init__(self, size: int, table: dict[tuple[int, int], dict[int, float]]) -> None:
        self.size, self.table, self.rows = size, table, list[tuple[int, ...]]()

    def __call__(self, rows: Sequence[Sequence[int]], places: Sequence[int]) -> Tensor:
        found = torch.full((len(rows), self.size), -math.log(self.size))
        for number, (row, place) in enumerate(zip(rows, places, strict=True)):
            assert row[place] == MASK
            self.rows.append(tuple(row))
            for piece, share in self.table.get((place, row[place - 1]), {}).items():
                found[number, piece] = math.log(share)
        return found


def test_exposure_is_the_bits_by_which_the_rank_narrows_the_values_down() -> None:
    others = np.arange(-10.0, -3.0)  # seven others: eight values in all
    assert exposure(-1.0, others) == 3  # first of eight
    assert exposure(-4.5, others) == pytest.approx(3 - 1)  # second
    assert exposure(-6.5, others) == pytest.approx(3 - math.log2(4))
    assert exposure(-99.0, others) == 0
    assert exposure(-4.0, others) == pytest.approx(3 - math.log2(1.5))  # shares the first rank with another


def test_exposure_of_chance_is_about_one_and_a_half_bits() -> None:
    rng = np.random.default_rng(1)
    found = [exposure(draw[0], draw[1:]) for draw in rng.normal(size=(4_000, 256))]
    assert np.mean(found) == pytest.approx(chance(255), abs=0.1)
    assert chance(100_000) == pytest.approx(math.log2(math.e), abs=0.001)


def test_pseudo_log_likelihood_hides_one_piece_of_the_value_at_a_time() -> None:
    known = Known(20, {(1, 2): {7: 0.5}, (2, 7): {8: 0.25}})
    first, second = pseudo_log_likelihoods(
        known, [HiddenValue((2, 7, 8, 3), (1, 2)), HiddenValue((2, 9, 8, 3), (1, 2))], MASK
    )
    assert first == pytest.approx(math.log(0.5) + math.log(0.25))
    assert second == pytest.approx(2 * math.log(1 / 20))
    assert sorted(known.rows) == [(2, 4, 8, 3), (2, 4, 8, 3), (2, 7, 4, 3), (2, 9, 4, 3)]


def test_value_is_drawn_out_from_left_to_right_with_all_of_it_hidden() -> None:
    greedy_is_wrong = {(1, 2): {7: 0.3, 9: 0.6}, (2, 7): {8: 0.9}, (2, 9): {8: 0.1, 5: 0.1}}
    known = Known(20, greedy_is_wrong)
    assert extract(known, HiddenValue((2, 7, 8, 3), (1, 2)), MASK, width=3)[0] == (7, 8)
    assert known.rows[0] == (2, 4, 4, 3)
    assert extract(Known(20, greedy_is_wrong), HiddenValue((2, 7, 8, 3), (1, 2)), MASK, width=1)[0][0] == 9


def test_many_questions_are_answered_in_their_order() -> None:
    known = Known(600, {(1, 2): {7: 0.5, 8: 0.25}})
    questions = [Question((2, MASK) + (3,) * (n % 5), 1, 7 + n % 2) for n in range(600)]
    assert score_questions(known, questions) == pytest.approx([math.log((0.5, 0.25)[n % 2]) for n in range(600)])


# --- with a tokenizer and a network


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> MaskedModel:
    """A network with random weights; pieces of one or two characters."""
    from transformers import BertConfig, BertForMaskedLM, BertTokenizer

    folder = tmp_path_factory.mktemp("model")
    letters = "010-,.가나다라의번호는받"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{c}" for c in letters), "가나", "##다라"]
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(pieces)) + "\n", "utf-8")
    tokenizer = BertTokenizer(vocab=str(folder / "vocab.txt"), do_lower_case=False, strip_accents=False)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    network = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), intermediate_size=16, **sizes))
    network.save_pretrained(folder)
    return MaskedModel(Path(folder), torch.device("cpu"))


def test_value_is_found_among_the_pieces_of_its_sentence(model: MaskedModel) -> None:
    hidden = locate_value(model.tokenizer, Canary("TEL", 1, "가의 번호는 ", "010-01", ", 받는다."), "010-01")
    assert "".join(model.tokenizer.convert_ids_to_tokens(hidden.value)).replace("##", "") == "010-01"


def test_model_reads_rows_of_different_lengths_as_it_reads_each_alone(model: MaskedModel) -> None:
    rows = [[2, 7, MASK, 8, 3], [2, MASK, 3]]
    together = model(rows, [2, 1])
    with torch.no_grad():
        for row, place, found in zip(rows, (2, 1), together, strict=True):
            alone = model._network(input_ids=torch.tensor([row])).logits[0, place].log_softmax(-1)
            assert torch.allclose(found, alone, atol=1e-5)


def test_every_canary_is_measured(model: MaskedModel) -> None:
    canaries = [
        Canary("TEL", times, "가의 번호는 ", value, ", 받는다.") for times, value in ((0, "010-01"), (4, "01-100"))
    ]
    found = measure_exposure(model, canaries, {"TEL": ["010-10", "01-001", "10-010"]})
    assert [one["times"] for one in found] == [0, 4]
    assert all(0 <= one["exposure"] <= 2 and one["extracted"] in (True, False) for one in found)


# --- bits per character


def test_bits_are_those_of_a_chain_of_pieces_with_other_hidden_words_hidden(model: MaskedModel) -> None:
    window = Window("d", ("가나", "번호는", "다라"), (0, 1))
    ids = model.tokenizer(" ".join(window.eojeols))["input_ids"]  # [CLS] 가나 번 ##호 ##는 다 ##라 [SEP]
    known = Known(len(model.tokenizer), {(1, ids[0]): {ids[1]: 0.5}, (3, ids[2]): {ids[3]: 0.25}})
    found = measure_bits(known, model.tokenizer, [window], 20)
    unknown = math.log2(len(model.tokenizer))
    assert found == {"d": [pytest.approx(1 + 2 + 2 * unknown), 5]}
    assert known.rows[0][1:6] == (MASK, MASK, MASK, MASK, ids[5])
    assert (ids[0], MASK, ids[2], MASK, MASK, *ids[5:]) in known.rows  # 가나 stays hidden


def test_characters_that_no_piece_spells_are_paid_for(model: MaskedModel) -> None:
    known = Known(len(model.tokenizer), {})
    [total] = measure_bits(known, model.tokenizer, [Window("d", ("漢字", "가"), (0,))], 20).values()
    two = 2 * math.log2(len(model.tokenizer))  # each Han character is a word: two [UNK]
    assert total == [pytest.approx(2 * UNKNOWN_BITS + two), 2]


def test_window_that_the_model_cannot_take_is_refused(model: MaskedModel) -> None:
    with pytest.raises(BadInput, match="sequence_length"):
        measure_bits(Known(40, {}), model.tokenizer, [Window("d", ("가",) * 30, (0,))], 20)


def test_windows_are_cut_by_characters_and_hide_about_their_share() -> None:
    documents = [Document(str(n), "s", tuple(f"{n} 문장 {k} 이어지는 글이다." for k in range(9))) for n in range(200)]
    windows = cut_windows(documents, 60, 10_000)
    assert max(len(" ".join(window.eojeols)) for window in windows) <= 60
    whole = [word for d in documents for s in d.sentences for word in s.split()]
    assert sum(len(window.masked) for window in windows) / len(whole) == pytest.approx(MASKED_SHARE, abs=0.02)
    assert cut_windows(reversed(documents), 60, 50) == windows[:50]


def test_eojeol_longer_than_a_window_is_left_out() -> None:
    windows = cut_windows([Document("1", "s", ("짧은 " + "긴" * 80 + " 말이다 " * 30,))], 40, 10_000)
    assert windows and not any("긴" in word for window in windows for word in window.eojeols)
