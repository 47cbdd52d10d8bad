"""The promise of hiding: in any context, the detector finds no original value afterwards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.documents.errors import BadInput
from corpus.pii import cover, replace
from corpus.pii import hide as protect
from corpus.pii.cover import MASK_VALUES_FROM
from corpus.pii.detect import Span, find_pii, find_pii_in_sentences
from corpus.pii.formats.table import TABLE
from corpus.pii.hide import MODES, Mode, PiiHider
from corpus.pii.key import seeded_secret
from corpus.pii.replace import Originals, canonical_form

SECRET, KEY = seeded_secret(1), b"0123456789abcdef"
SEPARATORS = [
    ",", ", ", "·", "/", "|", "\t", ";", "\n", "(", ")", "\"", "'", "=", ":", "_", "，", " ~ ", "\",\"",
    " | ", "</td><td>", "&b=", "와 ",
]  # fmt: skip
VALUES = [
    *((kind.name, kind.context[0], kind.example) for kind in TABLE),
    ("TEL", "연락처", "010-1234-0567"), ("TEL", "팩스", "02-123-4567"), ("RRN", "주민번호", "850101-1970123"),
    ("EMAIL", "메일", "a.b@example.org"), ("URL", "사이트", "https://example.com/a?b=1"), ("IP", "ip", "243.9.8.7"),
    ("PLATE", "차량", "123가 0034"), ("ADDRESS", "주소", "경기 성남시 분당구 윤슬로12번길 3"),
]  # fmt: skip
LISTS = st.lists(st.tuples(st.sampled_from(VALUES), st.booleans(), st.sampled_from(SEPARATORS)), min_size=1, max_size=5)


def text_of(parts: Sequence[tuple[tuple[str, str, str], bool, str]]) -> str:
    return "".join(f"{label + ' ' if is_labelled else ''}{value}{sep}" for (_, label, value), is_labelled, sep in parts)


def found_in(texts: Sequence[str]) -> tuple[set[str], set[tuple[str, str]]]:
    """Values that the detector finds in sentences of a document, as written and in their canonical form."""
    values = [
        (span.type, text[span.start : span.end])
        for text, spans in zip(texts, find_pii_in_sentences(texts), strict=True)
        for span in spans
    ]
    return {value for _, value in values}, {(name, canonical_form(name, value)) for name, value in values}


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=125, deadline=None)
@given(parts=LISTS, key=st.sampled_from([None, KEY]))
def test_no_original_is_found_in_a_hidden_list(mode: Mode, parts, key: bytes | None) -> None:
    text = text_of(parts)
    hidden = PiiHider(mode, SECRET, key).hide(text, "d")
    assert all(old.isdisjoint(new) for old, new in zip(found_in([text]), found_in([hidden]), strict=True))
    if mode != "replace":
        assert find_pii(hidden) == []


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=75, deadline=None)
@given(lists=st.lists(LISTS, min_size=2, max_size=4))
def test_no_original_of_a_document_is_found_in_any_of_its_sentences(mode: Mode, lists) -> None:
    sentences = [text_of(parts) for parts in lists]
    protected = PiiHider(mode, SECRET).hide_in_sentences(sentences, "d")
    kept = [sentence for sentence in protected.sentences if sentence is not None]
    assert all(old.isdisjoint(new) for old, new in zip(found_in(sentences), found_in(kept), strict=True))
    assert [spans for spans, s in zip(protected.remaining, protected.sentences, strict=True) if s is not None] == (
        find_pii_in_sentences(kept)
    )


@settings(max_examples=150, deadline=None)
@given(parts=LISTS)
def test_what_is_no_value_stays_and_equal_values_map_alike(parts) -> None:
    sentences = [text_of(parts), text_of(parts[::-1])]
    protected = PiiHider("replace", SECRET).hide_in_sentences(sentences, "d")
    news: dict[tuple[str, str], set[str]] = {}
    found = zip(sentences, protected.sentences, protected.spans, protected.remaining, strict=True)
    for text, new, spans, left in found:
        kept, _ = apart(text, spans)
        assert re.fullmatch(".*?".join(map(re.escape, kept)), new or "", re.DOTALL)
        if apart(new or "", left)[0] == kept:  # else the detector takes two replacements for one value
            for span, value in zip(spans, apart(new or "", left)[1], strict=True):
                news.setdefault((span.type, text[span.start : span.end]), set()).add(value)
    assert all(len(values) == 1 for values in news.values())


def apart(text: str, spans: Sequence[Span]) -> tuple[list[str], list[str]]:
    """The text around spans, and the text in them."""
    bounds = [0, *(place for span in spans for place in (span.start, span.end)), len(text)]
    pieces = [text[start:end] for start, end in pairwise(bounds)]
    return pieces[::2], pieces[1::2]


def test_no_replacement_is_another_value_of_its_document_in_any_writing() -> None:
    """Half of the 256 free addresses are taken by the document, written in another way."""
    taken = [f"00:00:5e:00:53:{last:02x}" for last in range(0, 256, 2)]
    sentences = [f"MAC {value}" for value in taken]
    for key in (None, KEY):
        protected = PiiHider("replace", SECRET, key).hide_in_sentences([*sentences, "MAC 00-00-5E-00-53-02"], "d")
        news = [sentence for sentence in protected.sentences if sentence]
        assert {letters(new) for new in news}.isdisjoint(map(letters, taken))
        assert letters(news[1]) == letters(news[-1]) and news[-1][6] == "-"


def letters(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def test_only_the_types_asked_for_are_hidden() -> None:
    text = "전화 010-0123-4567, 메일 hong@example.com"
    for mode in ("replace", "mask", "tag"):
        hidden = PiiHider(mode, SECRET, types=frozenset({"TEL"})).hide(text, "d")
        assert "0123" not in hidden and hidden.endswith(", 메일 hong@example.com")


@pytest.mark.parametrize("mode", MODES)
def test_a_label_from_outside_announces_what_the_text_holds(mode: Mode) -> None:
    assert PiiHider(mode, SECRET).hide("12345678901", "d") == "12345678901"
    hidden = PiiHider(mode, SECRET).hide("12345678901", "d", label="건강보험증")
    assert "2345678901" not in hidden


def test_a_protection_without_a_secret_draws_its_own() -> None:
    texts = {PiiHider().hide("전화 010-0123-4567", "d") for _ in range(3)}
    assert len(texts) == 3
    assert "0123456789" not in repr(PiiHider("replace", b"0123456789"))


# --- detectors that make it hard: nothing here depends on the patterns of the real one

PHONE = re.compile("010-[0-9]{4}-[0-9]{4}")
DEPTHS = [2, 3, MASK_VALUES_FROM - 1, MASK_VALUES_FROM + 1, 30]


class ShyDetector:
    """Finds a telephone number only once the one before it has changed, and counts the characters it looks at."""

    def __init__(self, originals: Sequence[str]) -> None:
        self.before = dict(zip(originals[1:], originals[:-1], strict=True))
        self.looked_at = 0

    def __call__(self, text: str, types: object = None, label: str = "", name_model: object = None) -> list[Span]:
        self.looked_at += len(text)
        spans, before = [], ""
        for match in PHONE.finditer(text):
            if match.group() not in self.before or self.before[match.group()] != before:
                spans.append(Span(match.start(), match.end(), "TEL"))
            before = match.group()
        return spans

    def in_sentences(
        self, sentences: Sequence[str], types: object, name_model: object, label: str = "", joint: str = " "
    ) -> list[list[Span]]:
        spans, starts = self(joint.join(sentences)), [0]
        for sentence in sentences:
            starts.append(starts[-1] + len(sentence) + len(joint))
        return [
            [Span(s.start - first, s.end - first, s.type) for s in spans if first <= s.start < last]
            for first, last in pairwise(starts)
        ]


def detect_with(monkeypatch: pytest.MonkeyPatch, detector: ShyDetector) -> ShyDetector:
    monkeypatch.setattr(protect, "find_pii", detector)
    monkeypatch.setattr(protect, "find_pii_in_sentences", detector.in_sentences)
    return detector


def phones(count: int) -> list[str]:
    return [f"010-9{n % 1000:03}-{5000 + n // 1000:04}" for n in range(count)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", DEPTHS)
def test_what_a_change_brings_to_light_is_hidden_too(monkeypatch: pytest.MonkeyPatch, mode: Mode, count: int) -> None:
    values = phones(count)
    detect_with(monkeypatch, ShyDetector(values))
    texts = [". ".join(values) + ".", "\n".join(values)]
    for text in texts:
        assert not set(PHONE.findall(PiiHider(mode, SECRET).hide(text, "d"))) & set(values)
    sentences = [f"{value}로 주세요." for value in values]
    protected = PiiHider(mode, SECRET).hide_in_sentences(sentences, "d")
    assert not set(PHONE.findall(" ".join(filter(None, protected.sentences)))) & set(values)
    if mode != "drop" and count < MASK_VALUES_FROM:
        assert [[span.start for span in spans] for spans in protected.spans] == [[0]] * count


class GreedyDetector(ShyDetector):
    """Takes a replacement and the text after it as one value."""

    FORM = re.compile("010-9[0-9-]+|010-[01][0-9-]+ ?[가-힣]*")

    def __call__(self, text: str, types: object = None, label: str = "", name_model: object = None) -> list[Span]:
        return [
            Span(match.start(), match.end(), "TEL")
            for match in re.finditer("010-9[0-9-]+|010-[01][0-9-]+ ?[가-힣]*", text)
        ]


def test_a_value_that_grows_by_the_text_after_it_includes_that_text(monkeypatch: pytest.MonkeyPatch) -> None:
    detect_with(monkeypatch, GreedyDetector(()))
    hidden = PiiHider("replace", SECRET).hide("문의 010-9123-4567 김철수, 끝", "d")
    assert re.fullmatch("문의 (010-[01][0-9]{3}-[0-9]{4}|[*-]+ ?[*]*), 끝", hidden)


class BlindDetector(ShyDetector):
    """Finds every word, whatever it has become."""

    def __call__(self, text: str, types: object = None, label: str = "", name_model: object = None) -> list[Span]:
        return [Span(match.start(), match.end(), "TEL") for match in re.finditer(r"\S+", text)]


@pytest.mark.parametrize("mode", ["mask", "tag"])
def test_what_cannot_be_hidden_otherwise_is_masked(monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    detect_with(monkeypatch, BlindDetector(()))
    protected = PiiHider(mode, SECRET).hide_in_sentences(["secret, word", "other"], "d")
    assert protected.sentences == ["******, ****", "*****"]


@pytest.mark.parametrize("mode", ["mask", "tag"])
def test_remaining_personal_data_is_an_error_that_names_the_place_but_not_the_text(
    monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    detect_with(monkeypatch, BlindDetector(()))
    monkeypatch.setattr(cover, "_mask", str)
    with pytest.raises(
        BadInput, match=r"^document \[TEL\], sentence 1, characters 0 to [0-9]+: TEL is still"
    ) as caught:
        PiiHider(mode, SECRET).hide_in_sentences(["secret word", "another"], "letter")
    assert not any(word in str(caught.value) for word in ("secret", "word", "letter"))


@pytest.mark.parametrize("mode", MODES)
def test_work_grows_with_the_text_and_no_faster(monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    """Counted in characters that the detector looks at, replacements drawn, and parts compared with originals."""
    steps = []
    occur_in = Originals.occur_in
    for count in (100, 200, 400):
        values = phones(count)
        detector = detect_with(monkeypatch, ShyDetector(values))
        counted = [0]

        def count_parts(self: Originals, name: str, text: str, counted: list[int] = counted) -> bool:
            counted[0] += len(text) * len(self._lengths)
            return occur_in(self, name, text)

        with monkeypatch.context() as patch:
            patch.setattr(replace.Originals, "occur_in", count_parts)
            PiiHider(mode, SECRET).hide("\n".join(values), "d")
        steps.append(detector.looked_at + counted[0])
    assert steps[2] <= 2.2 * steps[1] <= 2.2 * 2.2 * steps[0]


def test_a_part_of_a_text_is_found_among_ten_thousand_originals_without_comparing_each() -> None:
    originals = Originals()
    for value in phones(10_000):
        originals.add("TEL", value)
    assert len(originals._lengths) == 1
    assert originals.occur_in("URL", "http://example.com/010-9042-5007/a")
    assert originals.has("TEL", "+82 10 9042 5007") and originals.has("ACCOUNT", "0109-042-5007")
    assert not originals.occur_in("URL", "http://example.com/010-0042-5007/a")
