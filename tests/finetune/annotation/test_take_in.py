"""Annotations from tables: repeated files, hashed workers, and messages for values that cannot be."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from corpus.documents.errors import BadInput
from finetune.annotation.folder import KEY, VOTES, Item, read_items, read_votes
from finetune.annotation.take_in import READERS, take_in
from tests.finetune.annotation.folders import add_votes, make_folder, topics


def test_taking_in_a_file_again_changes_nothing_and_a_correction_replaces_a_vote(tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path, topics(2), task="tc", labels=["a", "b"])
    rows = [{"item": "i0", "worker": "kim", "value": "a"}, {"item": "i1", "worker": "kim", "value": "b"}]
    assert add_votes(benchmark, tmp_path, rows)["replaced"] == 0
    before = (tmp_path / VOTES).read_bytes()
    assert add_votes(benchmark, tmp_path, rows)["replaced"] == 2
    assert (tmp_path / VOTES).read_bytes() == before
    add_votes(benchmark, tmp_path, [{"item": "i0", "worker": "kim", "value": "b"}])
    assert [vote.value for vote in read_votes(tmp_path)["i0"]] == ["b"]


def test_worker_ids_are_hashed_with_a_private_key(tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path, topics(1), task="tc", labels=["a"])
    add_votes(benchmark, tmp_path, [{"item": "i0", "worker": "kim@example.com", "value": "a"}])
    assert "kim" not in (tmp_path / VOTES).read_text("utf-8")
    assert stat.S_IMODE((tmp_path / KEY).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"item": "i9", "value": "a"}, "no item 'i9'"),
        ({"item": "i0", "value": "z"}, "label 'z'; expected a, b"),
        ({"item": "i0", "value": "a", "role": "boss"}, "role 'boss'"),
        ({"item": "i0", "value": "", "reports": "rude"}, "report 'rude'"),
        ({"item": "i0", "value": ""}, "no value; leave the vote out, or give a report"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_line(tmp_path: Path, row: dict[str, str], words: str) -> None:
    benchmark = make_folder(tmp_path, topics(1), task="tc", labels=["a", "b"])
    with pytest.raises(BadInput, match=words) as error:
        add_votes(benchmark, tmp_path, [{"worker": "w", **row}])
    assert "line 1" in str(error.value)
    assert not (tmp_path / VOTES).exists()


@pytest.mark.parametrize("span", [[0, 9, "PS"], [2, 2, "PS"], [0, 1, "XX"], [0, 1], ["0", 1, "PS"]])
def test_spans_outside_the_text_are_refused(tmp_path: Path, span: list[object]) -> None:
    benchmark = make_folder(tmp_path, [Item("n", "", {"text": "김철수"})], task="ner", labels=["PS"])
    with pytest.raises(BadInput, match="expected"):
        add_votes(benchmark, tmp_path, [{"item": "n", "worker": "w", "value": [span]}])


def test_reports_need_no_value(tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path, topics(1), task="tc", labels=["a"])
    counts = add_votes(benchmark, tmp_path, [{"item": "i0", "worker": "w", "value": "", "reports": "pii, hate"}])
    assert counts["reports"] == {"hate": 1, "pii": 1}


def test_trees_of_two_workers_are_votes_for_the_same_words(tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path / "b", task="dp")
    lines = ["# sent_id = s1", "1\t나는\t나\tNP\t_\t_\t2\tNP_SBJ\t_\t_", "2\t간다\t가\tVV\t_\t_\t0\tVP\t_\t_", ""]
    files = [tmp_path / "kim.conllu", tmp_path / "lee.conllu"]
    for file in files:
        file.write_text("\n".join(lines) + "\n", "utf-8")
    take_in(benchmark, tmp_path / "b", files, READERS["conllu"])
    assert read_items(tmp_path / "b") == [Item("s1", "", {"text": "나는 간다"})]
    assert [vote.value for vote in read_votes(tmp_path / "b")["s1"]] == [["2:NP_SBJ", "0:VP"]] * 2


def test_states_of_two_workers_are_votes_for_the_same_turn(tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path / "b", task="dst")
    turns = [
        {"role": "user", "text": "2-30번 버스를 타고 싶어요.", "state": ["택시-종류-2-30번"]},
        {"role": "sys", "text": "네."},
    ]
    files = [tmp_path / "kim.json", tmp_path / "lee.json"]
    for file in files:
        file.write_text(json.dumps([{"guid": "d1", "dialogue": turns}]), "utf-8")
    take_in(benchmark, tmp_path / "b", files, READERS["wos"])
    assert [vote.value for vote in read_votes(tmp_path / "b")["d1-0"]] == [{"택시-종류": "2-30번"}] * 2


def test_decomposed_labels_and_names_are_the_composed_ones(tmp_path: Path) -> None:
    labels = ["정치", normalize("NFD", "경제")]
    benchmark = make_folder(tmp_path, topics(2), task="tc", labels=labels)
    for form in ("NFC", "NFD"):
        row = "item,worker,value\ni0,김하늘,정치\ni1,김하늘,경제\n"
        (tmp_path / "votes.csv").write_text(normalize(form, row), "utf-8")
        take_in(benchmark, tmp_path, [tmp_path / "votes.csv"], READERS["votes"])
    votes = read_votes(tmp_path)
    assert [[vote.value for vote in votes[item]] for item in ("i0", "i1")] == [["정치"], ["경제"]]


def test_other_names_of_columns_are_named_with_what_to_do(tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path, topics(1), task="tc", labels=["a"])
    (tmp_path / "votes.csv").write_text("항목,작업자,값\ni0,김,a\n", "utf-8")
    with pytest.raises(BadInput, match=r"there are 항목, 작업자, 값; rename them$"):
        take_in(benchmark, tmp_path, [tmp_path / "votes.csv"], READERS["votes"])


GOOD = {"id": "i0", "source": "s", "texts": {"text": "나는 😀서울"}, "spans": [], "about": {}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": 0}, "id: must be text"),
        ({"source": None}, "source: must be text"),
        ({"texts": "글"}, "texts: must be"),
        ({"texts": {}}, "texts: must not be empty"),
        ({"texts": {"text": None}}, "texts.text: must be text"),
        ({"texts": {"본문": "글"}}, "item 'i0' has 본문; expected text"),
        ({"spans": None}, "spans: must be a list"),
        ({"about": None}, "about: must be"),
    ],
)
def test_an_item_written_by_hand_is_refused_with_its_field(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    benchmark = make_folder(tmp_path, task="tc", labels=["a"])
    (tmp_path / "items.jsonl").write_text(json.dumps({**GOOD, **change}) + "\n", "utf-8")
    with pytest.raises(BadInput, match=re.escape(words)) as error:
        add_votes(benchmark, tmp_path, [{"item": "i0", "worker": "w", "value": "a"}])
    assert "line 1" in str(error.value)


@pytest.mark.parametrize(
    ("format_", "task", "content"),
    [
        ("wos", "dst", {"a": 1}),
        ("wos", "dst", [1]),
        ("wos", "dst", [{"guid": "d"}]),
        ("wos", "dst", [{"guid": "d", "dialogue": [{"role": "user", "text": "x", "state": ["a-b"]}]}]),
        ("klue", "nli", [{"guid": "1"}]),
        ("klue", "nli", [1]),
        ("votes", "dst", [{"item": "i0", "worker": "w", "value": {}, "reports": 3}]),
    ],
)
def test_a_file_of_another_layout_is_refused(tmp_path: Path, format_: str, task: str, content: Any) -> None:
    benchmark = make_folder(tmp_path, topics(1), task=task)
    (tmp_path / "kim.json").write_text(json.dumps(content), "utf-8")
    with pytest.raises(BadInput, match="not laid out as the format of --from"):
        take_in(benchmark, tmp_path, [tmp_path / "kim.json"], READERS[format_])


def test_the_message_says_how_much_of_a_file_is_laid_out_well(tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path, task="dst")
    turn = {"role": "user", "text": "x", "state": ["식당-지역-서울"]}
    dialogues = [{"guid": name, "dialogue": [turn]} for name in "ab"]
    (tmp_path / "kim.json").write_text(json.dumps([*dialogues, {"guid": "c"}]), "utf-8")
    with pytest.raises(BadInput, match=r"kim\.json: after annotation 2, not laid out as .*'dialogue'"):
        take_in(benchmark, tmp_path, [tmp_path / "kim.json"], READERS["wos"])


@pytest.mark.parametrize(
    ("labels", "value", "expected"),
    [
        (["0", "1"], 1, "1"),
        (["true", "false"], True, "true"),
        ([normalize("NFD", "긍정")], "긍정", "긍정"),
        (["긍정"], normalize("NFD", "긍정"), "긍정"),
    ],
)
def test_numbers_booleans_and_decomposed_letters_are_labels(
    tmp_path: Path, labels: list[str], value: object, expected: str
) -> None:
    benchmark = make_folder(tmp_path, topics(1), task="tc", labels=labels)
    add_votes(benchmark, tmp_path, [{"item": "i0", "worker": None, "value": value}])
    (vote,) = read_votes(tmp_path)["i0"]
    assert (vote.value, vote.worker) == (expected, "")  # no worker is an unknown one


def test_an_answer_is_a_start_and_an_end(tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path, [Item("q", "s", {"context": "나는 😀서울", "question": "어디?"})], task="mrc")
    add_votes(benchmark, tmp_path, [{"item": "q", "worker": "w", "value": [[4, 6]]}])
    with pytest.raises(BadInput, match="expected start and end"):
        add_votes(benchmark, tmp_path, [{"item": "q", "worker": "w", "value": [[4, 6, "answer"]]}])
