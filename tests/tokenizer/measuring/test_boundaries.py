"""Boundary scores counted by hand, against a slow reference and scikit-learn; silver cuts and positions in a text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from corpus.documents.shards import Document
from tokenizer.building.count import EojeolType, count_eojeols
from tokenizer.measuring import boundaries
from tokenizer.measuring.boundaries import (
    CutEojeol,
    Span,
    count_boundaries,
    cut_by_mecab,
    locate_pieces,
    score_boundaries,
    word_spans,
)

Row = tuple[CutEojeol, int, list[Span]]  # the eojeol, how often it occurs, and its pieces


def score(rows: Sequence[Row]) -> boundaries.BoundaryScores:
    spans = iter([row[2] for row in rows])
    sums = count_boundaries(lambda eojeols: [next(spans) for _ in eojeols], [row[0] for row in rows])
    counts = np.array([row[1] for row in rows], np.int64)
    return score_boundaries((counts @ sums).astype(float), np.full((1, sums.shape[1]), np.nan))


def test_scores_counted_by_hand() -> None:
    # reference 연구자|이|다|. twice and 눈물|을 once; pieces 연구|자이|다|. and 눈물을
    rows = [
        (CutEojeol("연구자이다.", (3, 4, 5), (5,)), 2, [(0, 2), (2, 4), (4, 5), (5, 6)]),
        (CutEojeol("눈물을", (2,), ()), 1, [(0, 3)]),
    ]

    found = score(rows)

    assert (found.eojeols, found.boundaries) == (3, 7)
    assert found.precision == pytest.approx(4 / 6)  # 4 and 5, not 2
    assert found.recall == pytest.approx(4 / 7)
    assert found.f1 == pytest.approx(8 / 13)
    assert found.f1_within_words == pytest.approx(4 / 9)  # the full stop is no merit
    assert found.keeps_all == 0
    assert found.crossing == pytest.approx(3 / 9)  # 자이 twice, 눈물을 once; 9 pieces


def test_eojeols_without_a_boundary_do_not_raise_the_share_that_keeps_all() -> None:
    rows = [(CutEojeol("눈물을", (2,), ()), 1, [(0, 2), (2, 3)]), (CutEojeol("가장", (), ()), 9, [(0, 2)])]

    assert score(rows).keeps_all == 1.0
    assert score(rows[1:]).keeps_all is None
    assert (score(rows[1:]).f1, score(rows[1:]).crossing) == (None, 0.0)


def test_pieces_that_meet_inside_a_character_make_no_boundary() -> None:
    hangul = CutEojeol("한글", (1,), ())
    bytes_of_one = (hangul, 1, [(0, 1), (0, 1), (0, 1), (1, 2), (1, 2)])
    overlapping = (hangul, 1, [(0, 2), (1, 2)])  # the first piece ends within 글
    space_alone = (hangul, 1, [(0, 0), (0, 1), (1, 2)])

    assert score([bytes_of_one]).recall == 1.0
    assert (score([overlapping]).recall, score([overlapping]).crossing) == (0.0, 0.5)
    assert score([space_alone]).precision == 1.0


def test_what_has_no_reference_is_skipped_and_judges_nobody() -> None:
    unjudged = (CutEojeol("했다", None, (1,)), 3, [(0, 1), (1, 2)])

    found = score([unjudged])

    assert (found.eojeols, found.skipped, found.f1, found.crossing, found.intervals) == (0, 3, None, None, {})
    assert score([(CutEojeol("눈물을", (2,), ()), 1, [(0, 3)]), unjudged]).crossing == 1.0


@st.composite
def cut_rows(draw: st.DrawFn) -> list[Row]:
    rows: list[Row] = []
    for _ in range(draw(st.integers(1, 6))):
        length = draw(st.integers(1, 6))
        inner = st.sets(st.integers(1, length - 1)) if length > 1 else st.just(set[int]())
        cuts, words, found = (tuple(sorted(draw(inner))) for _ in range(3))
        text = "가" * length
        pieces = list(pairwise((0, *found, length)))
        rows.append((CutEojeol(text, cuts, words), draw(st.integers(1, 5)), pieces))
    return rows


@given(cut_rows(), st.integers(1, 7))
def test_scores_equal_those_of_a_list_of_places(rows: list[Row], batch: int) -> None:
    true, found, weights, kept, bounded, crossing, pieces = [], [], [], 0, 0, 0, 0
    for eojeol, frequency, spans in rows:
        assert eojeol.cuts is not None
        begins = {begin for begin, _ in spans}
        for place in range(1, len(eojeol.text)):
            true.append(place in eojeol.cuts)
            found.append(place in begins)
            weights.append(frequency)
        bounded += frequency * bool(eojeol.cuts)
        kept += frequency * (bool(eojeol.cuts) and begins.issuperset(eojeol.cuts))
        pieces += frequency * len(spans)
        crossing += frequency * sum(any(a < cut < b for cut in eojeol.cuts) for a, b in spans)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boundaries, "EOJEOLS_PER_BATCH", batch)

        scores = score(rows)

    assert scores.crossing == pytest.approx(crossing / pieces)
    assert scores.keeps_all == (pytest.approx(kept / bounded) if bounded else None)
    if any(true) and any(found):
        expected = precision_recall_fscore_support(true, found, average="binary", sample_weight=weights)
        assert (scores.precision, scores.recall, scores.f1) == pytest.approx(expected[:3])


@given(cut_rows())
def test_scores_within_words_ignore_where_words_begin(rows: list[Row]) -> None:
    within = [
        (row._replace(cuts=tuple(cut for cut in row.cuts or () if cut not in row.words), words=()), frequency, spans)
        for row, frequency, spans in rows
    ]
    merged = [
        (row, frequency, [*pairwise((0, *(a for a, _ in spans if a and a not in old.words), len(row.text)))])
        for (row, frequency, spans), (old, _, _) in zip(within, rows, strict=True)
    ]

    assert score(rows).f1_within_words == score(merged).f1


def test_control_characters_shift_no_position() -> None:
    assert locate_pieces("\u200b연구\x00자이다.", ["연구자", "이", "다", "."]) == (5, 6, 7)
    assert locate_pieces("\u200b", []) == ()
    assert word_spans("\u200b저자\u200b(著者)\x07") == [(1, 3), (4, 5), (5, 6), (6, 7), (7, 8)]
    assert word_spans("\x07") == []


@given(st.text("가나A1.漢\u200b\x00\ufeff뷁(", min_size=1, max_size=12))
def test_word_spans_are_the_words_without_their_control_characters(eojeol: str) -> None:
    dropped = str.maketrans("", "", "\u200b\x00\ufeff")

    words = [eojeol[begin:end].translate(dropped) for begin, end in word_spans(eojeol)]

    assert words == boundaries.bert_words(eojeol)


def test_silver_cuts_are_morphemes_and_the_beginnings_of_words() -> None:
    document = Document("1", "", ("조경현은 인공지능 분야의 저명한 연구자이다.", "\u200b \u200b분야의 " + "가" * 101))

    cut = [cut_by_mecab(row) for row in count_eojeols([document])]

    judged = [(row.text, row.cuts) for row in cut if row.cuts is not None]
    parts = {text: [text[a:b] for a, b in pairwise((0, *cuts, len(text)))] for text, cuts in judged}
    assert parts["연구자이다."] == ["연구자", "이", "다", "."]
    assert parts["분야의"] == ["분야", "의"]
    assert parts["\u200b분야의"] == ["\u200b분야", "의"]
    assert next(row.words for row in cut if row.text == "연구자이다.") == (5,)
    assert [len(row.text) for row in cut if row.cuts is None] == [1, 101]  # a control character, and a table


def test_silver_cuts_use_the_neighbors() -> None:
    alone, placed = (cut_by_mecab(EojeolType("최고의", 1, *sides)) for sides in (("", ""), ("올해", "영화")))

    assert (alone.cuts, placed.cuts) == ((1,), (2,))


def test_where_punctuation_cuts_mecab_need_not() -> None:
    cut = cut_by_mecab(EojeolType("3.14", 1, "", ""))

    assert cut.cuts == cut.words == (1, 2)


def test_an_entry_of_the_dictionary_with_a_space_at_its_end_is_cut_without_it() -> None:
    cut = cut_by_mecab(EojeolType("캘리", 1, "진", "사랑해"))

    assert cut.cuts == ()
