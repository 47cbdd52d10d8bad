"""What the three builders hand to the trainer."""

from __future__ import annotations

import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.documents.shards import Document, to_table
from tokenizer.building.count import EojeolType, count_table, write_run
from tokenizer.building.count import merge_partition as merge
from tokenizer.building.units import (
    BUILDERS,
    UNITS_NAME,
    WORDS_NAME,
    read_counts,
    segment,
    weigh,
    weigh_partition,
    write_counts,
)
from tokenizer.words import bert_words

RESEARCHER = EojeolType("연구자이다.", 3, "저명한", "", documents=2)


def weights(segmented: dict[str, tuple[int, int]]) -> dict[str, int]:
    return {word: weight for word, (_, weight) in segmented.items()}


@pytest.mark.parametrize(
    ("builder", "words", "units"),
    [
        ("bpe", {"연구자이다": (3, 3), ".": (3, 3)}, {"연구자이다": 3, ".": 3}),
        ("klue", {"연구자 이 다": (3, 3), ".": (3, 3)}, {"연구자": 3, "이": 3, "다": 3, ".": 3}),
        ("malmoi", {"연구자 이 다": (3, 141), ".": (3, 70)}, {"연구자": 141, "##이": 141, "##다": 141, ".": 70}),
    ],
)
def test_builders_differ_in_what_a_unit_is(builder: str, words: dict[str, int], units: dict[str, int]) -> None:
    found = segment([RESEARCHER], BUILDERS[builder])

    assert found == words
    assert weigh(weights(found), BUILDERS[builder]) == units


def test_only_malmoi_drops_pieces_that_cross_morphemes() -> None:
    assert [name for name, builder in BUILDERS.items() if builder.prunes] == ["malmoi"]


def test_words_of_a_vocabulary_with_jamo_fallback_are_in_jamo_and_without_symbols() -> None:
    row = EojeolType("연구자♥\ufe0f이다café가が", 3, "저명한", "")
    found = segment([row], BUILDERS["malmoi"], jamo_fallback=True)

    in_nfc = {unicodedata.normalize("NFC", word): count for word, count in found.items()}
    assert "".join(in_nfc).replace(" ", "") == "연구자♥이다cafe가が"
    assert {"♥", "が"} < in_nfc.keys()
    assert all(unicodedata.is_normalized("NFD", word) for word in found if word != "が")


def test_units_of_different_eojeols_add_up() -> None:
    rows = [EojeolType("서울에서", 2, "", ""), EojeolType("부산에서", 5, "", "")]

    assert weigh(weights(segment(rows, BUILDERS["klue"])), BUILDERS["malmoi"]) == {"서울": 2, "부산": 5, "##에서": 7}


@given(st.text("가나다aZ1.,#(漢\u200b\x00ㅋ뷁😀", max_size=8), st.integers(1, 3))
def test_segmented_words_are_the_words_of_the_eojeol(eojeol: str, frequency: int) -> None:
    for builder in BUILDERS.values():
        found = segment([EojeolType(eojeol, frequency, "", "")], builder)
        words = Counter(word for word in bert_words(eojeol) for _ in range(frequency))

        assert Counter({word.replace(" ", ""): count for word, (count, _) in found.items()}) == words


@pytest.mark.parametrize("builder", BUILDERS)
def test_words_that_wordpiece_refuses_are_left_out(builder: str) -> None:
    rows = [EojeolType("가" * 101 + "." + "나", 4, "", "")]

    assert segment(rows, BUILDERS[builder]).keys() == {".", "나"}


def test_rare_eojeols_teach_nothing(tmp_path: Path) -> None:
    types = count_table(to_table([Document("1", "출처", ("책을 책을 산다",))]))
    write_run(tmp_path / "run", types, 1)
    merge(0, tmp_path, runs=[tmp_path / "run"])

    counts = weigh_partition(
        tmp_path / "types.parquet",
        tmp_path,
        builder="malmoi",
        analyser="mecab",
        lowest_frequency=2,
        jamo_fallback=False,
    )

    assert counts == {"types": 1}
    assert read_counts([tmp_path / WORDS_NAME]) == {"책 을": 2}
    assert read_counts([tmp_path / UNITS_NAME]) == {"##을": 100, "책": 100}  # two of them, in one document


def test_counts_of_files_add_up_in_order_of_text(tmp_path: Path) -> None:
    write_counts(tmp_path / "a", {"나": 3, "##다": 1})
    write_counts(tmp_path / "b", {"나": 2, "가": 1})

    assert list(read_counts([tmp_path / "a", tmp_path / "b"]).items()) == [("##다", 1), ("가", 1), ("나", 5)]
