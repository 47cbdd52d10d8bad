"""Bytes to raw records: JSON arrays, blocks of WikiExtractor, any size of block, damage, growth."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.reading import containers
from corpus.reading.containers import SCANNERS, Item

PAGES = [
    {"title": "가야산", "text": '따옴표 "하나"와 역슬래시 \\ 하나, 그리고 }, { 하나.'},
    {"title": "나주", "text": "줄\n바꿈", "links": [{"to": {"name": "}"}}]},
    {"title": "다산", "text": ""},
]


def cut(content: bytes, size: int) -> Iterator[bytes]:
    return (content[at : at + size] for at in range(0, len(content), size))


def scan(kind: str, content: bytes, size: int = 7, key: str | None = None) -> list[Item]:
    return list(SCANNERS[kind](cut(content, size), key))


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("size", [1, 7, 1_000])
@pytest.mark.parametrize("key", [None, "document"])
def test_an_array_gives_its_objects_with_their_bytes(indent: int | None, size: int, key: str | None) -> None:
    value: Any = {"id": "말뭉치", "metadata": {"tags": [1, {"x": "document"}]}, key: PAGES} if key else PAGES
    content = json.dumps(value, indent=indent, ensure_ascii=False).encode()
    found = scan("array", content, size, key)
    assert [item.value for item in found] == PAGES
    assert [item.number for item in found] == [1, 2, 3]
    assert all(content[item.offset :].startswith(item.raw) and not item.problem for item in found)


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=9)), max_size=5), st.integers(1, 40))
def test_any_array_of_objects_is_read_back(values: list[dict[str, str]], size: int) -> None:
    found = scan("array", json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass"), size)
    assert [item.value for item in found] == values


DAMAGE = {
    b'{"text": "half}': "unfinished_record",
    b'{"text": half}': "broken_json",
    b'{"text": "\xff"}': "invalid_utf8",
    b'"only text"': "not_an_object",
    b"17": "not_an_object",
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("size", [1, 1_000])
def test_a_damaged_item_of_an_array_costs_itself(damage: bytes, size: int) -> None:
    good = [json.dumps({"text": text}).encode() for text in "가나다라"]
    content = b"[" + b", ".join([good[0], damage, *good[1:]]) + b"]"
    found = scan("array", content, size)
    assert [item.value["text"] for item in found if not item.problem] == list("가나다라")
    assert [item.problem for item in found if item.problem] == [DAMAGE[damage]]


@pytest.mark.parametrize("lost", [1, 3, 20])
def test_an_array_that_ends_early_keeps_its_whole_items(lost: int) -> None:
    content = json.dumps([{"text": "가"}, {"text": "나" * 9}]).encode()[:-lost]
    *whole, last = scan("array", content)
    assert [item.value["text"] for item in whole] == (["가"] if lost > 1 else ["가", "나" * 9])
    assert last.problem == "unfinished_record"


def test_a_file_that_is_no_array_is_one_problem() -> None:
    assert [item.problem for item in scan("array", b'{"text": "a"}')] == ["not_a_json_array"]
    assert [item.problem for item in scan("array", b'{"docs": 1}', key="document")] == ["not_a_json_array"]
    assert scan("array", b"") == []


def test_blocks_of_the_wikipedia_extractor_are_whole_documents() -> None:
    text = '<doc id="1" title="가">\n가\n\n본문\n</doc>\n\n<doc id="2">\n끝이 없다\n<doc id="3">\n셋\n</doc>\n밖\n'
    content = text.encode()
    found = scan("docs", content)
    assert [(item.number, item.problem) for item in found] == [
        (1, ""), (7, "unfinished_record"), (9, ""), (12, "outside_of_doc"),
    ]  # fmt: skip
    assert found[0].raw.decode() == '<doc id="1" title="가">\n가\n\n본문'
    assert all(content[item.offset :].startswith(item.raw[:5]) for item in found)


def test_a_text_document_continues_without_its_broken_line() -> None:
    found = scan("text", b"one\n\xff\xfe\ntwo\n \nthree")
    assert [(item.number, item.raw, item.problem) for item in found] == [
        (2, b"\xff\xfe", "invalid_utf8"), (1, b"one\ntwo", ""), (5, b"three", ""),
    ]  # fmt: skip


def test_of_an_endless_record_only_the_head_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "RECORD_BYTES", 2_000)
    content = b'[{"text": "' + b"a" * 9_000 + b'"}, {"text": "b"}]'
    first, *rest = scan("array", content, 100)
    assert first.problem == "record_too_long" and len(first.raw) <= containers.EXCERPT_BYTES
    assert [item.value for item in rest] == [{"text": "b"}]
    doc = b"<doc id=1>\n" + b"a\n" * 3_000 + b"</doc>\n<doc id=2>\nb\n</doc>\n"
    assert [item.problem for item in scan("docs", doc, 100)] == ["record_too_long", ""]


@pytest.mark.parametrize(
    ("kind", "piece"),
    [
        ("array", b'{"a":'),
        ("array", b'[{"a": "x"'),
        ("array", b'"\\"'),
        ("array", b"} , "),
        ("docs", b"<doc \n"),
        ("text", b"a\n\n"),
    ],
)
def test_time_grows_with_the_size_alone(kind: str, piece: bytes) -> None:
    def seconds(size: int) -> float:
        content = b"[{" * (kind == "array") + piece * (size // len(piece))
        return min(_timed(lambda: scan(kind, content, 1 << 16)) for _ in range(2))

    # four times the bytes: quadratic work would take sixteen times as long
    assert seconds(500_000) < 10 * seconds(125_000) + 0.1


def _timed(work: Callable[[], Any]) -> float:
    gc.disable()  # it looks at all records kept so far, again and again
    began = time.process_time()
    work()
    taken = time.process_time() - began
    gc.enable()
    return taken
