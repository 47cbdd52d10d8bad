"""New text of KLUE-RE: records with offsets as in the official files."""

from __future__ import annotations

import unicodedata

import pytest

from corpus.documents.errors import BadInput
from finetune.tasks.re.markers import parse_input

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
