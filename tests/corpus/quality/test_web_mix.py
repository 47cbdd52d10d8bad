"""The web mix: counts, verdicts that agree with the construction, the same documents again, and how it is scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.corpus.quality.web_mix import BAD, GOOD, MOJIBAKE, WebDocument, hangul_share, is_right, summarize, web_mix


@pytest.fixture(scope="module")
def mix(shared: Callable[[str], Path]) -> list[WebDocument]:
    return web_mix(shared("data").parent)


def test_half_of_3000_documents_is_good_korean(mix: list[WebDocument]) -> None:
    assert len(mix) == len({document.text for document in mix}) == 3000
    mojibake = {kind: count for kind, (count, _) in MOJIBAKE.items()}
    assert Counter(document.kind for document in mix) == GOOD | BAD | mojibake
    assert sum(GOOD.values()) == 1500
    assert Counter(document.verdict for document in mix) == {"keep": 1500, "drop": 1200, "repair": 300}


def test_the_same_seed_gives_the_same_mix(mix: list[WebDocument], shared: Callable[[str], Path]) -> None:
    assert web_mix(shared("data").parent) == mix
    assert web_mix(shared("data").parent, seed=1) != mix


def test_good_documents_are_korean_and_bad_ones_lost_their_hangul(mix: list[WebDocument]) -> None:
    assert min(hangul_share(document.text) for document in mix if document.verdict == "keep") > 0.4
    assert max(hangul_share(d.text) for d in mix if d.kind in ("english", "numbers", "cp949_as_latin1")) < 0.15


def test_damage_to_repair_can_be_undone_exactly(mix: list[WebDocument]) -> None:
    for document in (document for document in mix if document.verdict == "repair"):
        ways = {original_of(document.text, way) for way in (["latin-1"], ["latin-1"] * 2, ["windows"], ["cp949"])}
        assert document.expected in ways, document.kind


def original_of(text: str, encodings: list[str]) -> str | None:
    try:
        for encoding in encodings:
            text = b"".join(byte_of(char, encoding) for char in text).decode()
    except UnicodeError:
        return None
    return text


def byte_of(char: str, encoding: str) -> bytes:
    if encoding != "windows":
        return char.encode(encoding)
    try:
        return char.encode("cp1252")
    except UnicodeError:
        return char.encode("latin-1")


def test_doing_nothing_keeps_good_korean_and_leaves_the_rest(mix: list[WebDocument]) -> None:
    nothing = summarize(mix, [document.text for document in mix])
    perfect = summarize(mix, [document.expected or None for document in mix])
    assert nothing["all"] == 0.5
    assert nothing["good_lost"] == 0
    assert perfect == {**dict.fromkeys(("all", *GOOD, *MOJIBAKE, *BAD), 1.0), "good_lost": 0}


@pytest.mark.parametrize(
    ("verdict", "left", "right"),
    [
        ("keep", "하나 둘 셋 넷", True),
        ("keep", "하나 둘", True),
        ("keep", "하나", False),
        ("keep", None, False),
        ("drop", None, True),
        ("drop", "", True),
        ("drop", "하나", False),
        ("repair", "하나 둘 셋 넷", True),
        ("repair", "하나 둘 셋", False),
    ],
)
def test_a_document_is_right_if_enough_of_its_words_are_left(verdict: str, left: str | None, right: bool) -> None:
    text = "하나 둘 셋 넷"
    assert is_right(WebDocument("wiki", text, verdict, text), left) == right  # type: ignore[arg-type]
