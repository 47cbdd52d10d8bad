"""What the sample's documents say and how: no template leftovers, right particles, variety, facts told twice."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import pytest

from launch.sample.config import SampleConfig
from launch.sample.documents.articles import Draft
from launch.sample.documents.fresh import spoken
from launch.sample.entities import World
from launch.sample.pii import PER_TYPE, spans_of
from launch.sample.pii_values import VALUES
from launch.sample.run import write_documents
from launch.sample.world import make_world

WORLD = make_world(1)
DRAFTS = write_documents(WORLD, SampleConfig())
PAIRS = {"은": 1, "는": 0, "이": 1, "가": 0, "을": 1, "를": 0, "과": 1, "와": 0}  # particle: follows a consonant


@pytest.fixture(scope="module")
def drafts() -> list[Draft]:
    return DRAFTS


@pytest.fixture(scope="module")
def world() -> World:
    return WORLD


def test_size_is_what_a_demo_needs(drafts: list[Draft]) -> None:
    assert 2_500 <= len(drafts) <= 4_000
    assert 1_200_000 <= sum(len(draft.text.encode()) for draft in drafts) <= 1_800_000
    assert len({draft.id for draft in drafts}) == len(drafts)


def test_no_template_leftovers(drafts: list[Draft]) -> None:
    for draft in drafts:
        for line in draft.lines:
            assert not re.search(r"[{}\[\]|]|  | [.,]|\.\.\.\.|,,", line), line
            assert line == line.strip()
            assert line


def test_particles_after_names_are_right(world: World, drafts: list[Draft]) -> None:
    """Checked with Unicode decomposition and a pattern of names, not with the code that wrote them."""
    names = [p.name for p in world.people if len(p.name) > 2]
    names += [o.name for o in world.organisations] + [v.name for v in world.venues] + [c.name for c in world.cities]
    hangul = sorted((n for n in names if "가" <= n[-1] <= "힣"), key=len, reverse=True)
    pattern = re.compile(rf"(?<![가-힣])({'|'.join(map(re.escape, hangul))})(은|는|이|가|을|를|과|와|으로|로)(?=[ ,.])")
    checked = 0
    for draft in drafts:
        for name, josa in pattern.findall(" ".join(draft.lines)):
            decomposed = unicodedata.normalize("NFD", name[-1])
            final = decomposed[2] if len(decomposed) == 3 else ""
            if josa in PAIRS:
                assert bool(final) == bool(PAIRS[josa]), (name, josa, draft.id)
            else:
                assert (josa == "으로") == (final not in ("", "\u11af")), (name, josa, draft.id)
            checked += 1
    assert checked > 4_000


def test_sentences_hardly_repeat(drafts: list[Draft]) -> None:
    sentences = [spoken(line) for draft in drafts for line in draft.lines]
    assert len(set(sentences)) / len(sentences) > 0.97


@pytest.mark.parametrize(
    ("source", "share"), [("news", 0.6), ("encyclopedia", 0.75), ("reviews", 0.7), ("dialogue", 0.7)]
)
def test_runs_of_five_words_are_mostly_new(drafts: list[Draft], source: str, share: float) -> None:
    runs = Counter(
        tuple(words[at : at + 5])
        for draft in drafts
        if draft.source == source
        for words in (spoken(line).split() for line in draft.lines)
        for at in range(len(words) - 4)
    )
    assert len(runs) / runs.total() > share


def test_facts_are_told_in_two_documents_or_more(world: World, drafts: list[Draft]) -> None:
    told = Counter()
    heads = {(o.name, o.head) for o in world.organisations if o.kind == "기업" and not o.dissolved}
    births = {(p.name, p.birthplace) for p in world.people}
    for draft in drafts:
        for pair in heads | births:
            told[pair] += pair[0] in draft.text and pair[1] in draft.text
    for pairs in (heads, births):
        assert sum(told[pair] >= 2 for pair in pairs) / len(pairs) > 0.6


def test_personal_data_spans_hold_their_values(drafts: list[Draft]) -> None:
    counts: Counter[str] = Counter()
    shapes = {
        "TEL": r"[\d+(][\d ().+-]+",
        "RRN": r"\d{6}( - |-)?[1-4]9[789]\d{4}",
        "FRN": r"\d{6}( - |-)?[5-8]9[789]\d{4}",
        "EMAIL": r"[\w.]+@example\.(com|org|net)",
        "URL": r"(https?://|www\.)\S*example\.\S+",
        "IP": r"\d+(\.\d+){3}",
        "MAC": r"00[-:]00[-:]5E[-:]00[-:]53[-:][0-9A-F]{2}",
        "MENTION": r"@[\w.]+",
        "PLATE": r".*\d[가-힣] ?00\d\d",
        "CARD": r"\d{4}([ -]\d{4}){3}",
        "BRN": r"\d{3}-\d\d-\d{5}",
        "HEALTH": r"\d-\d{10}",
        "ADDRESS": r".+[로길] \d+.*",
        "ACCOUNT": r"\d[\d-]+",
        "PASSPORT": r"[MS]\d{3}[A-H]?\d{4,5}",
        "DRIVER": r"(\d\d-|[가-힣]+ )\d\d-\d{6}-\d\d",
    }
    for draft in drafts:
        for start, end, kind in spans_of(draft):
            assert re.fullmatch(shapes[kind], draft.text[start:end]), (kind, draft.text[start:end])
            assert not draft.text[start - 1].isdigit()
            counts[kind] += 1
    assert counts == dict.fromkeys(VALUES, PER_TYPE)


def test_personal_data_touch_more_than_one_sentence_in_a_hundred(drafts: list[Draft]) -> None:
    sentences = sum(len(draft.lines) for draft in drafts)
    assert 0.012 <= sum(len(draft.personal) for draft in drafts) / sentences <= 0.05
    assert {draft.source for draft in drafts if draft.personal} == {"news", "encyclopedia", "reviews", "dialogue"}


def test_check_digits_of_personal_data_are_right(drafts: list[Draft]) -> None:
    for draft in drafts:
        for start, end, kind in spans_of(draft):
            digits = [int(c) for c in draft.text[start:end] if c.isdigit()]
            if kind == "CARD":
                doubled = [d * 2 - 9 * (d > 4) if at % 2 == 0 else d for at, d in enumerate(digits)]
                assert sum(doubled) % 10 == 0
            elif kind == "BRN":
                total = (
                    sum(d * w for d, w in zip(digits, (1, 3, 7, 1, 3, 7, 1, 3, 5), strict=False)) + digits[8] * 5 // 10
                )
                assert (total + digits[9]) % 10 == 0
