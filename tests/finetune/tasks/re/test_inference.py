"""New text of KLUE-RE: records with offsets as in the official files."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.documents.errors import BadInput
from finetune.tasks.re.markers import inside_word, keep_markers, parse_input

SENTENCE = "윤슬의 대표"


def record(sentence: str, subject: tuple[int, int], object_: tuple[int, int]) -> dict[str, object]:
    entities = {"subject_entity": subject, "object_entity": object_}
    places = {name: dict(zip(("start_idx", "end_idx"), place, strict=True)) for name, place in entities.items()}
    return {"sentence": sentence, **places}


def test_offsets_of_official_records_include_the_last_character() -> None:
    expected = {"sentence": SENTENCE, "subject": (0, 2), "object": (4, 6)}
    assert parse_input(record(SENTENCE, (0, 1), (4, 5)), "line 1") == expected


def test_offsets_follow_the_sentence_into_nfc() -> None:
    in_jamo = unicodedata.normalize("NFD", SENTENCE)  # 윤 and 슬 have three jamo each, 의 and 대 two, 표 two
    expected = {"sentence": SENTENCE, "subject": (0, 2), "object": (4, 6)}
    assert parse_input(record(in_jamo, (0, 5), (9, 12)), "line 1") == expected
    with pytest.raises(BadInput, match="inside a character"):
        parse_input(record(in_jamo, (0, 4), (9, 12)), "line 1")


@pytest.mark.parametrize("place", [(-1, 1), (4, 6), (2, 1), (True, 1), (0.0, 1), (0, None), (None, 1)])
def test_offsets_outside_the_sentence_or_of_another_kind_are_refused(place: tuple) -> None:
    for sides in ((place, (0, 1)), ((0, 1), place)):
        with pytest.raises(BadInput, match="characters of the sentence"):
            parse_input(record(SENTENCE, *sides), "line 1")
    with pytest.raises(BadInput, match="characters of the sentence"):
        parse_input({**record(SENTENCE, (0, 1), (4, 5)), "object_entity": "대표"}, "line 1")


@given(st.permutations(range(12)), st.integers(4, 14))
def test_a_long_sentence_keeps_its_beginning_or_what_is_nearest_to_a_marker(ids: list[int], size: int) -> None:
    """Identifiers 0 to 3 are the markers."""
    kept = keep_markers(ids, (0, 1, 2, 3), size)
    places = [ids.index(marker) for marker in range(4)]
    assert kept == sorted(set(kept)) and len(kept) == min(size, len(ids)) and set(places) <= set(kept)
    if max(places) < size:
        assert kept == list(range(min(size, len(ids))))
    else:
        distances = [min(abs(place - marker) for marker in places) for place in range(len(ids))]
        assert sorted(distances[place] for place in kept) == sorted(distances)[:size]
        left_out = [place for place in range(len(ids)) if place not in kept]
        equal = [place for place in kept if distances[place] == max(distances[k] for k in kept)]
        assert all(distances[place] > distances[equal[0]] or place > max(equal) for place in left_out)


@pytest.mark.parametrize(
    ("token", "character", "found"),
    [
        ("는", "는", [1]), ("▁는", "는", [0]), ("Ġ는", "는", [0]), ("▁", "는", []), ("a", "a", None),
        ("은", "은", None), ("▁", "▁", None),
    ],
)  # fmt: skip
def test_the_token_after_a_marker_continues_its_word(token: str, character: str, found: list[int] | None) -> None:
    assert inside_word(token, character, {"는": 0, "##는": 1}) == found
