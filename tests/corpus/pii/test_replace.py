"""Replacements: valid, found again, the same for the same value, and nothing else of the text changes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.pii.detect import Span, find_pii
from corpus.pii.formats.address import _new_detail, _new_districts
from corpus.pii.formats.regions import CITY_DISTRICTS, DISTRICTS
from corpus.pii.formats.shapes import digits_of
from corpus.pii.formats.table import BY_NAME, TABLE
from corpus.pii.hide import PiiHider
from corpus.pii.key import seeded_secret
from corpus.pii.replace import Pseudonymizer

ROOT = Path(__file__).resolve().parents[3]
SEEDS = st.integers(0, 2**32)
KINDS = st.sampled_from(TABLE)
PARTICLES = st.sampled_from([" ", "은 ", "이 ", "으로 ", "입니다. ", "), "])

# other ways to write a value of each type; the separators of each must survive
WRITINGS = {
    "TEL": ["02-123-4567", "(031) 123-4567", "010 0234 5678", "+82-10-0234-5678", "07001234567", "1511-3456"],
    "RRN": ["850101 - 1970123", "8501012970123", "030101–3970123"],
    "FRN": ["850101 5970123", "0301017970123"],
    "EMAIL": ["HONG@EXAMPLE.COM", "a.b_c+d@sub.example.net"],
    "IP": ["2e00:1:22::3", "2e00:1111:2222:3333:4444:5555:6666:7777"],
    "MAC": ["00:00:5e:00:53:0a", "0000.5E00.530A"],
    "MENTION": ["@길동이네_00"],
    "ADDRESS": ["경기 성남시 분당구 윤슬로12번길 3, 101동 202호", "강원도 평창군 윤슬면 나루리 산 12-3"],
    "ACCOUNT": ["619-042528-70307", "302-1501-9981-70", "110123456789"],
    "PASSPORT": ["m12345678", "S123a4567"],
    "DRIVER": ["11 05 123456 12", "110512345612", "서울 95-123456-83"],
    "BRN": ["999 - 99 - 99997", "9999999997"],
    "HEALTH": ["10123456789"],
    "CARD": ["9999 9999 9999 9995", "3782-822463-10005"],
    "PLATE": ["123가 0034", "서울30자0080", "경기 31 고 0078", "경기수원가0070"],
    "URL": ["https://example.com/a/b.php?id=1&p=%EA%B0%80", "shop.example.com", "http://www.example.org:8080/"],
}  # fmt: skip
WRITTEN = [(name, value) for name, values in WRITINGS.items() for value in [BY_NAME[name].example, *values]]


def found(name: str, value: str) -> list[Span]:
    return find_pii(f"{BY_NAME[name].context[0]} {value}")


def replaced(text: str, seed: int = 1, document_id: str = "document") -> str:
    return PiiHider("replace", seeded_secret(seed)).hide(text, document_id)


@pytest.mark.parametrize(("name", "value"), WRITTEN)
def test_every_writing_is_replaced_by_one_like_it(name: str, value: str) -> None:
    label = BY_NAME[name].context[0]
    for seed in range(20):
        new = replaced(f"{label} {value}", seed)[len(label) + 1 :]
        assert new != value
        assert [(span.end - span.start, span.type) for span in found(name, new)] == [(len(new), name)]
        if name not in ("EMAIL", "URL", "IP", "MENTION", "ADDRESS", "MAC"):
            assert len(digits_of(new)) == len(digits_of(value))
            assert [c for c in new if c in "-–.() +"] == [c for c in value if c in "-–.() +"]


@given(kind=KINDS, seed=SEEDS)
def test_a_fake_of_every_type_is_found_with_its_type(kind, seed: int) -> None:
    """Bare fakes rather than replacements: the generators are right nearly always, not only after many draws."""
    rng = Random(seed)
    draws = [kind.fake(rng, kind.example) for _ in range(3)]
    assert any([span.type for span in found(kind.name, fake)] == [kind.name] for fake in draws)


@settings(max_examples=60)
@given(values=st.lists(st.tuples(st.sampled_from(WRITTEN), PARTICLES), min_size=1, max_size=5), seed=SEEDS)
def test_nothing_but_the_values_changes_and_none_is_left(values, seed: int) -> None:
    text = "".join(f"{BY_NAME[name].context[0]} {value}{particle}" for (name, value), particle in values)
    spans = find_pii(text)
    new = replaced(text, seed)
    assert [span.type for span in find_pii(new)] == [span.type for span in spans]
    position = new_position = 0
    for span, new_span in zip(spans, find_pii(new), strict=True):
        assert text[position : span.start] == new[new_position : new_span.start]
        assert text[span.start : span.end] not in new
        position, new_position = span.end, new_span.end
    assert text[position:] == new[new_position:]


def test_a_value_keeps_its_replacement_within_a_document() -> None:
    protection = PiiHider("replace", seeded_secret(7))
    texts = ["전화 010-0234-5678로", "제 번호 010-0234-5678은", "010 0234 5678이다"]
    news = [protection.hide(text, "petition-1") for text in texts]
    numbers = [digits_of(new) for new in news]
    assert numbers[0] == numbers[1] == numbers[2]  # other separators, same number
    assert [protection.hide(text, "petition-1") for text in reversed(texts)] == news[::-1]


def test_documents_and_seeds_are_independent() -> None:
    text = "전화 010-0234-5678로"
    news = {replaced(text, seed, document) for seed in (1, 2) for document in ("a", "b")}
    assert len(news) == 4


def test_replacements_come_from_blocks_that_belong_to_nobody() -> None:
    assert digits_of(replaced("전화 010-9234-5678로"))[3] in "01"
    assert digits_of(replaced("전화 02-923-4567로"))[2] == "1"
    assert digits_of(replaced("주민번호 850101-1234567"))[7:9] in ("97", "98", "99")
    assert replaced("메일 hong@example.com").endswith((".example.com", "@example.com", "@example.net", "@example.org"))
    assert replaced("ip 29.10.20.30").split()[1].split(".")[0] in map(str, range(240, 255))
    assert replaced("맥주소 AA:BB:CC:DD:EE:FF").split()[1].startswith("00:00:5E:00:53:")
    assert replaced("차량 12가3456").split()[1][-4:-2] == "00"


def test_a_value_without_a_fit_replacement_still_goes(caplog: pytest.LogCaptureFixture) -> None:
    """Only 256 addresses are free, and here the text holds them all; the log must not tell the value."""
    value = "00-00-5E-00-53-1F"
    text = " ".join(f"00-00-5E-00-53-{last:02X}" for last in range(256))
    new = replaced(text)
    assert new == " ".join(["**-**-**-**-**-**"] * 256)
    assert "MAC" in caplog.text and value not in caplog.text


def test_text_without_personal_data_comes_back_as_it_is() -> None:
    text = "오늘은 날씨가 좋다. 10시에 만나자."
    assert replaced(text) == text


def test_the_hash_seed_of_python_changes_nothing() -> None:
    code = (
        "import json, sys\n"
        "from corpus.pii.hide import PiiHider\n"
        "print(json.dumps([PiiHider('replace', b'secret').hide(t, 'd') for t in json.loads(sys.argv[1])]))\n"
    )
    texts = json.dumps([f"{kind.context[0]} {kind.example}" for kind in TABLE])
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code, texts],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1] and len(json.loads(outputs[0])) == 16


@pytest.mark.parametrize(
    ("name", "value", "form"),
    [
        ("TEL", "+82 51-3278-9145", r"010-[01][0-9]{3}-[0-9]{4}"),
        ("RRN", "870523 2234567", r"[0-9]{6}-3[0-9]{6}"),
        ("PASSPORT", "S12345678", r"M[0-9]{3}[A-H][0-9]{4}"),
    ],
)
def test_without_keeping_anything_each_type_has_one_form(name: str, value: str, form: str) -> None:
    fake = Pseudonymizer(b"secret", "d", keep="none").replacement(name, value)
    assert fake and re.fullmatch(form, fake)


def test_only_replacements_that_are_excluded_later_are_drawn_again() -> None:
    fakes = Pseudonymizer(seeded_secret(1), "document")
    first, other = (fakes.replacement("TEL", f"010-1234-56{n}") for n in (70, 71))
    assert first and other and first != other
    fakes.exclude([("TEL", first)])
    assert fakes.replacement("TEL", "010-1234-5671") == other
    assert fakes.replacement("TEL", "010-1234-5670") not in (None, first)


@pytest.mark.parametrize("old", ["푸른동 3층", "두레읍 12", "나래리 3", "초록가 2층"])
def test_a_town_in_the_rest_of_an_address_stays_a_town(old: str) -> None:
    for seed in range(20):
        new = _new_detail(Random(seed), old)
        assert new != old and new.split()[0].endswith(old.split()[0][-1])


@pytest.mark.parametrize("old", ["성남시 분당구", "성남시", "강남구"])
def test_a_district_of_a_city_is_added_only_to_cities_that_have_some(old: str) -> None:
    for seed in range(200):
        name, *inner = _new_districts(Random(seed), "경기", old).split()
        assert name in DISTRICTS["경기"]
        assert bool(inner) == (old == "성남시 분당구" and name in CITY_DISTRICTS)
        assert set(inner) <= set(CITY_DISTRICTS.get(name, ()))
