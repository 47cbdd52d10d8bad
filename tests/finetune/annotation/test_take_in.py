"""Annotations from tables: repeated files, hashed workers, and messages for values that cannot be."""

from __future__ import annotations

import json
import stat
from pathlib import Path
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
