"""What the three builders hand to the trainer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokenizer.count import EojeolType, write_types
from tokenizer.units import BUILDERS, UNITS_NAME, merge_units, units_of_chunk, weigh

RESEARCHER = EojeolType("연구자이다.", 3, "00", "저명한", "")


@pytest.mark.parametrize(
    ("builder", "units"),
    [
        ("bpe", {"연구자이다": 3, ".": 3}),
        ("klue", {"연구자": 3, "이": 3, "다": 3, ".": 3}),
        ("malmoi", {"연구자": 3, "##이": 3, "##다": 3, ".": 3}),
    ],
)
def test_builders_differ_in_what_a_unit_is(builder: str, units: dict[str, int]) -> None:
    assert weigh([RESEARCHER], BUILDERS[builder]) == units


def test_units_of_different_eojeols_add_up() -> None:
    rows = [EojeolType("서울에서", 2, "00", "", ""), EojeolType("부산에서", 5, "00", "", "")]

    assert weigh(rows, BUILDERS["malmoi"]) == {"서울": 2, "부산": 5, "##에서": 7}


@pytest.mark.parametrize("builder", BUILDERS)
def test_words_that_wordpiece_refuses_are_left_out(builder: str) -> None:
    rows = [EojeolType("가" * 101 + "." + "나", 4, "00", "", "")]

    assert weigh(rows, BUILDERS[builder]) == {".": 4, "나": 4}


def test_chunks_merge_to_the_units_of_all_rows(tmp_path: Path) -> None:
    chunks = [[RESEARCHER], [EojeolType("연구자.", 2, "00", "", "")]]
    parts = []
    for number, rows in enumerate(chunks):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_types(folder / "types.tsv", rows)
        units_of_chunk(folder / "types.tsv", folder, builder="klue")
        parts.append(folder / UNITS_NAME)

    assert list(merge_units(parts).items()) == [(".", 5), ("다", 3), ("연구자", 5), ("이", 3)]
