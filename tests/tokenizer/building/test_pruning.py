"""Uses and crossings are held to a slow greedy matcher; pruning to examples that can be followed by eye."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.documents.units import map_units
from tokenizer.building.pruning import add_up_uses, count_parts, count_uses, prune, write_pieces
from tokenizer.building.units import WORDS_NAME

CHARACTERS = ["가", "나", "다", "a", "##가", "##나", "##다", "##a"]
LONGER = st.lists(
    st.tuples(st.booleans(), st.text("가나다a", min_size=2, max_size=4)).map(lambda p: "##" * p[0] + p[1]), unique=True
)
WORD = st.lists(st.text("가나다a", min_size=1, max_size=3), min_size=1, max_size=4).map(" ".join)
WORDS = st.lists(st.tuples(WORD, st.integers(1, 9)), max_size=8)


def match(word: str, pieces: set[str]) -> list[str]:
    """Longest piece first, from the left."""
    found, begin = [], 0
    while begin < len(word):
        prefix = "##" if begin else ""
        end = next(end for end in range(len(word), begin, -1) if prefix + word[begin:end] in pieces)
        found.append(prefix + word[begin:end])
        begin = end
    return found


def slow_uses(pieces: list[str], words: list[tuple[str, int]]) -> list[list[int]]:
    uses, crossings = dict.fromkeys(pieces, 0), dict.fromkeys(pieces, 0)
    for segmented, count in words:
        cuts, position = set(), 0
        for morpheme in segmented.split(" "):
            cuts.add(position)
            position += len(morpheme)
        begin = 0
        for piece in match(segmented.replace(" ", ""), set(pieces)):
            end = begin + len(piece.removeprefix("##"))
            uses[piece] += count
            crossings[piece] += count * any(begin < cut < end for cut in cuts)
            begin = end
    return [list(uses.values()), list(crossings.values())]


def count(pieces: list[str], words: list[tuple[str, int]]) -> np.ndarray:
    return count_uses(pieces, [word for word, _ in words], np.array([n for _, n in words], np.int64))


@given(LONGER, WORDS)
def test_uses_and_crossings_equal_those_of_a_slow_matcher(longer: list[str], words: list[tuple[str, int]]) -> None:
    pieces = CHARACTERS + longer

    assert count(pieces, words).tolist() == slow_uses(pieces, words)


@given(LONGER, WORDS)
def test_batches_change_nothing(longer: list[str], words: list[tuple[str, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tokenizer.building.pruning.WORDS_PER_TEXT", 2)

        assert count(CHARACTERS + longer, words).tolist() == slow_uses(CHARACTERS + longer, words)


def test_words_that_would_be_unknown_are_left_out() -> None:
    words = [("가 나", 2), ("가 뷁", 5), ("뷁", 1), ("😀", 1), ("다", 3)]

    assert count(CHARACTERS, words).tolist() == slow_uses(CHARACTERS, [("가 나", 2), ("다", 3)])
    assert count(CHARACTERS, [("뷁", 5)]).sum() == 0


def test_words_of_a_hundred_characters_are_encoded() -> None:
    assert count(CHARACTERS, [("가" * 100, 1)])[0].sum() == 100


def pruned(pieces: list[str], size: int, words: list[tuple[str, int]], **settings) -> list[str]:
    settings = {"rounds": 2, "max_crossing_share": 0.5, **settings}
    return prune(pieces, size, count_uses=lambda kept, _: count(list(kept), words), **settings)[0]


def test_pieces_that_mostly_cross_morphemes_are_dropped() -> None:
    words = [("가 나다", 9), ("가나", 4)]  # 가나 is a morpheme, and takes 가|나 apart from where it belongs

    assert "가나" not in pruned([*CHARACTERS, "가나", "##나다"], 10, words)
    assert "가나" in pruned([*CHARACTERS, "가나", "##나다"], 10, words, max_crossing_share=0.7)


def test_a_piece_may_cross_sometimes() -> None:
    words = [("가 나", 4), ("가나", 5)]

    assert "가나" in pruned([*CHARACTERS, "가나"], 9, words)


def test_a_piece_that_crosses_exactly_as_often_as_allowed_stays() -> None:
    words = [("가 나", 5), ("가나", 5)]

    assert "가나" in pruned([*CHARACTERS, "가나"], 9, words, max_crossing_share=0.5)
    assert "가나" not in pruned([*CHARACTERS, "가나"], 9, words, max_crossing_share=0.49)
    assert "가나" in pruned([*CHARACTERS, "가나"], 9, [("가 나", 5)], max_crossing_share=1)
    assert "나다" in pruned([*CHARACTERS, "나다"], 9, [("가", 1)], max_crossing_share=0)  # not used at all


def test_every_round_drops_an_equal_share_of_what_is_too_much() -> None:
    pieces = [*CHARACTERS, "가가", "가나", "가다", "나가", "나나", "나다"]
    seen = []

    def uses(kept: list[str], number: int) -> np.ndarray:
        seen.append((number, len(kept)))
        return count(list(kept), [("가", 1)])

    kept, _ = prune(pieces, 8, rounds=3, max_crossing_share=1, count_uses=uses)

    assert seen == [(0, 14), (1, 12), (2, 10)]
    assert len(kept) == 8


def test_uses_of_several_files_are_added_up(tmp_path: Path) -> None:
    words = [[("가 나", 2), ("다", 1)], [("가", 4)]]
    for number, rows in enumerate(words):
        (tmp_path / str(number)).mkdir()
        columns = {"text": [text for text, _ in rows], "weight": np.array([n for _, n in rows], np.int64)}
        pq.write_table(pa.table(columns), tmp_path / str(number) / WORDS_NAME)
    write_pieces(tmp_path / "pieces.txt", CHARACTERS)

    found = add_up_uses(tmp_path / "pieces.txt", [tmp_path / "0", tmp_path / "1"], tmp_path / "units", map_units)

    assert found.tolist() == slow_uses(CHARACTERS, words[0] + words[1])


def test_the_least_used_go_next_and_order_is_kept() -> None:
    words = [("다다", 1), ("가가", 9), ("나나", 5)]

    assert pruned([*CHARACTERS, "다다", "나나", "가가"], 10, words) == [*CHARACTERS, "나나", "가가"]


def test_a_piece_counts_by_the_tokens_it_saves() -> None:
    words = [("가나다", 4), ("가가", 6), ("다가나", 1)]  # without 가나다 there are two pieces more, without 가가 one

    assert pruned([*CHARACTERS, "가나다", "가가"], 9, words) == [*CHARACTERS, "가나다"]


@given(LONGER)
def test_parts_are_those_of_a_slow_matcher(longer: list[str]) -> None:
    known = {*CHARACTERS, *longer}
    for piece in longer:
        text = piece.removeprefix("##")
        rest = known - {piece}
        parts = match(f"가{text}", {*rest, "가"} - {p for p in rest if p.startswith("가") and p != "가"})[1:]
        if piece.startswith("##"):
            assert count_parts(piece, known) == len(parts)
        else:
            assert count_parts(piece, known) == len(match(text, rest))


def test_characters_stay_though_nobody_uses_them() -> None:
    assert pruned([*CHARACTERS, "가가", "나나"], 9, [("가가", 2)]) == [*CHARACTERS, "가가"]
    assert pruned(CHARACTERS, 8, []) == CHARACTERS


def test_what_is_dropped_is_counted() -> None:
    words = [("가 나", 9), ("가가", 2), ("나나", 1)]
    pieces = [*CHARACTERS, "가나", "가가", "나나"]

    kept, dropped = prune(
        pieces, 9, rounds=1, max_crossing_share=0.5, count_uses=lambda kept, _: count(list(kept), words)
    )  # fmt: skip

    assert kept == [*CHARACTERS, "가가"]
    assert dropped == {"dropped_crossing": 1, "dropped_rare": 1}
