"""Boundary scores counted by hand, against a slow reference and scikit-learn; silver cuts and positions in a text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from corpus.documents.shards import Document
from tokenizer.building.count import EojeolType, count_eojeols
from tokenizer.measuring import boundaries
from tokenizer.measuring.boundaries import CutEojeol, Span, locate_pieces, score_boundaries, silver_cuts, word_spans

Row = tuple[CutEojeol, list[Span]]


def score(rows: Sequence[Row]) -> boundaries.BoundaryScores:
    spans = iter([row[1] for row in rows])
    return score_boundaries(lambda eojeols: [next(spans) for _ in eojeols], [row[0] for row in rows])


def test_scores_counted_by_hand() -> None:
    # reference 연구자|이|다|. twice and 눈물|을 once; pieces 연구|자이|다|. and 눈물을
    rows = [
        (CutEojeol("연구자이다.", 2, (3, 4, 5), (5,)), [(0, 2), (2, 4), (4, 5), (5, 6)]),
        (CutEojeol("눈물을", 1, (2,), ()), [(0, 3)]),
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
    rows = [(CutEojeol("눈물을", 1, (2,), ()), [(0, 2), (2, 3)]), (CutEojeol("가장", 9, (), ()), [(0, 2)])]

    assert score(rows).keeps_all == 1.0
    assert score(rows[1:]).keeps_all is None
    assert (score(rows[1:]).f1, score(rows[1:]).crossing) == (None, 0.0)


def test_pieces_that_meet_inside_a_character_make_no_boundary() -> None:
    bytes_of_one = (CutEojeol("한글", 1, (1,), ()), [(0, 1), (0, 1), (0, 1), (1, 2), (1, 2)])
    overlapping = (CutEojeol("한글", 1, (1,), ()), [(0, 2), (1, 2)])  # the first piece ends within 글
    space_alone = (CutEojeol("한글", 1, (1,), ()), [(0, 0), (0, 1), (1, 2)])

    assert score([bytes_of_one]).recall == 1.0
    assert (score([overlapping]).recall, score([overlapping]).crossing) == (0.0, 0.5)
    assert score([space_alone]).precision == 1.0


def test_nothing_compared_gives_no_figures() -> None:
    found = score_boundaries(lambda eojeols: [], [], skipped=3)

    assert (found.eojeols, found.skipped, found.f1, found.crossing) == (0, 3, None, None)


@st.composite
def cut_rows(draw: st.DrawFn) -> list[Row]:
    rows: list[Row] = []
    for _ in range(draw(st.integers(1, 6))):
        length = draw(st.integers(1, 6))
        inner = st.sets(st.integers(1, length - 1)) if length > 1 else st.just(set[int]())
        cuts, words, found = (tuple(sorted(draw(inner))) for _ in range(3))
        text = "가" * length
        rows.append((CutEojeol(text, draw(st.integers(1, 5)), cuts, words), list(pairwise((0, *found, length)))))
    return rows


@given(cut_rows(), st.integers(1, 7))
def test_scores_equal_those_of_a_list_of_places(rows: list[Row], batch: int) -> None:
    true, found, weights, kept, bounded, crossing, pieces = [], [], [], 0, 0, 0, 0
    for eojeol, spans in rows:
        begins = {begin for begin, _ in spans}
        for place in range(1, len(eojeol.text)):
            true.append(place in eojeol.cuts)
            found.append(place in begins)
            weights.append(eojeol.frequency)
        bounded += eojeol.frequency * bool(eojeol.cuts)
        kept += eojeol.frequency * (bool(eojeol.cuts) and begins.issuperset(eojeol.cuts))
        pieces += eojeol.frequency * len(spans)
        crossing += eojeol.frequency * sum(any(a < cut < b for cut in eojeol.cuts) for a, b in spans)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boundaries, "EOJEOLS_PER_BATCH", batch)

        scores = score(rows)

    assert scores.crossing == pytest.approx(crossing / pieces)
    assert scores.keeps_all == (pytest.approx(kept / bounded) if bounded else None)
    if any(true) and any(found):
        expected = precision_recall_fscore_support(true, found, average="binary", sample_weight=weights)
        assert (scores.precision, scores.recall, scores.f1) == pytest.approx(expected[:3])


@given(cut_rows())
def test_an_eojeol_met_thrice_weighs_as_three_eojeols(rows: list[Row]) -> None:
    repeated = [(row._replace(frequency=1), spans) for row, spans in rows for _ in range(row.frequency)]

    assert score(rows) == score(repeated)


@given(cut_rows())
def test_scores_within_words_ignore_where_words_begin(rows: list[Row]) -> None:
    within = [
        (row._replace(cuts=tuple(cut for cut in row.cuts if cut not in row.words), words=()), spans)
        for row, spans in rows
    ]
    merged = [
        (row, [*pairwise((0, *(a for a, _ in spans if a and a not in old.words), len(row.text)))])
        for (row, spans), (old, _) in zip(within, rows, strict=True)
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

    cut, skipped = silver_cuts(count_eojeols([document]))

    parts = {row.text: [row.text[a:b] for a, b in pairwise((0, *row.cuts, len(row.text)))] for row in cut}
    assert parts["연구자이다."] == ["연구자", "이", "다", "."]
    assert parts["분야의"] == ["분야", "의"]
    assert parts["\u200b분야의"] == ["\u200b분야", "의"]
    assert next(row.words for row in cut if row.text == "연구자이다.") == (5,)
    assert "\u200b" not in parts
    assert skipped == 1


def test_silver_cuts_look_at_the_neighbours() -> None:
    alone, _ = silver_cuts([EojeolType("최고의", 1, "", "")])
    placed, _ = silver_cuts([EojeolType("최고의", 1, "올해", "영화")])

    assert (alone[0].cuts, placed[0].cuts) == ((1,), (2,))


def test_where_punctuation_cuts_mecab_need_not() -> None:
    cut, _ = silver_cuts([EojeolType("3.14", 1, "", "")])

    assert cut[0].cuts == cut[0].words == (1, 2)
