"""Planted personal data: deterministic, with the requested numbers of copies, detected by the rules, and counted."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.ablations.canaries import (
    CANARIES_NAME,
    PLANTED_NAME,
    SEEN_NAME,
    SENTENCES,
    TIMES,
    Canary,
    count_planted,
    draw_alternatives,
    insert_lines,
    invent_canaries,
    plan_places,
    plant,
    read_canaries,
)
from benchmarks.texts import write_corpus
from corpus.config import CorpusConfig
from corpus.documents.errors import BadInput
from corpus.documents.shards import Document
from corpus.pii.detect import find_pii


def write_texts(path: Path, count: int) -> Path:
    rows = ({"id": str(n), "source": "news", "text": f"{n}번째 글이다.\n시장은 {n}년에 말했다."} for n in range(count))
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def test_canaries_follow_from_the_seed_and_are_found_by_the_rules() -> None:
    canaries = invent_canaries(2, 1)
    assert canaries == invent_canaries(2, 1) != invent_canaries(2, 2)
    assert Counter((c.kind, c.times) for c in canaries) == {(kind, times): 2 for kind in SENTENCES for times in TIMES}
    assert len({c.value for c in canaries}) == len({c.before for c in canaries}) == len(canaries)
    for canary in canaries:
        [span] = find_pii(canary.text)
        assert canary.text[span.start : span.end] == canary.value


def test_others_are_of_the_same_form_and_never_planted() -> None:
    canaries = invent_canaries(3, 1)
    others = draw_alternatives(canaries, 50, 1)
    assert all(len(set(values)) == 50 for values in others.values())
    assert not {value for values in others.values() for value in values} & {canary.value for canary in canaries}
    assert {len(value) for value in others["CARD"]} == {19}


def test_each_canary_is_planted_the_given_number_of_times_in_documents_of_its_own(tmp_path: Path) -> None:
    source = write_texts(tmp_path / "news.jsonl", 300)
    counts = plant(CorpusConfig(inputs=[str(source)]), 1, 7, tmp_path / "text")
    rows = [json.loads(line) for line in (tmp_path / "text" / PLANTED_NAME).read_text("utf-8").splitlines()]
    held_out = [json.loads(line) for line in (tmp_path / "text" / SEEN_NAME).read_text("utf-8").splitlines()]
    canaries = read_canaries(tmp_path / "text")

    assert len(rows) + len(held_out) == 300 and 0 < len(held_out) < 30
    assert counts["sentences"] == sum(c.times for c in canaries) == len(SENTENCES) * sum(TIMES)
    for canary in canaries:
        assert sum(canary.value in row["text"] for row in rows) == canary.times
        assert not any(canary.value in row["text"] for row in held_out)
    assert {row["source"] for row in rows} == {"news"}
    lines = {line for row in rows for line in row["text"].split("\n")}
    assert {line for n in range(300) for line in (f"{n}번째 글이다.",)} - lines <= {
        row["text"].split("\n")[0] for row in held_out
    }

    plant(CorpusConfig(inputs=[str(source)]), 1, 7, tmp_path / "again")
    for name in (PLANTED_NAME, SEEN_NAME, CANARIES_NAME):
        assert (tmp_path / "text" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_too_few_documents_are_refused(tmp_path: Path) -> None:
    source = write_texts(tmp_path / "news.jsonl", 20)
    with pytest.raises(BadInput, match="too few"):
        plant(CorpusConfig(inputs=[str(source)]), 1, 7, tmp_path / "text")
    assert not (tmp_path / "text").exists()


def test_places_hold_a_sentence_once() -> None:
    canaries = invent_canaries(1, 1)
    places = plan_places(canaries, 64, 3)
    assert max(places) < 64
    assert all(len(set(sentences)) == len(sentences) for sentences in places.values())


def test_lines_are_added_and_none_is_lost() -> None:
    from random import Random

    assert sorted(insert_lines("가\n나", ["다", "라"], Random(1)).split("\n")) == ["가", "나", "다", "라"]


def test_what_is_left_is_counted_in_any_writing(tmp_path: Path) -> None:
    canaries = [Canary("TEL", 3, "가 ", "010-0123-4567", "."), Canary("CARD", 1, "나 ", "9999-1111-2222-3333", "."),
                Canary("TEL", 0, "다 ", "010-0000-1111", ".")]  # fmt: skip
    sentences = ("전화는 010-0123-4567, 또는 010 0123 4567이다.", "카드 9999111122223333", "010-0000-1111")
    corpus = write_corpus([Document("1", "s", sentences[:2]), Document("2", "s", sentences[2:])], tmp_path)
    assert count_planted(canaries, corpus) == {"values": 2, "copies": 4, "values_left": 2, "copies_left": 3}
