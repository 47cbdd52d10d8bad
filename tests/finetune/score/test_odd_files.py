"""Whatever a predictions file holds, `malmoi score` scores it, or says in one sentence why not."""

from __future__ import annotations

import gzip
import json
import logging
import math
import unicodedata
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
import zstandard

from corpus.documents.errors import BadInput
from finetune.registry import TASKS
from finetune.score.scores import export_predictions, score_file
from finetune.tasks.custom.task import custom_task
from tests.finetune.score.test_predictions import RIGHT, TURNS, put_map, put_official

VALUES = (  # as in the file
    "1" * 5000, "1" + "0" * 400, "1e400", "NaN", "-Infinity", "[" * 100_000 + "]" * 100_000, "[" * 900 + "]" * 900,
    '{"a":' * 50_000, "null", "true", '"\\ud800"', "[]", "{}", '[["O"]]', '["O", 1]', '{"a": 1, "a": 2}', "[1e400]",
    '{"heads": [2, 0]}', '{"heads": [2, 1e400], "types": ["NP", "VP"]}', '{"heads": [2, 0], "types": [["NP"], 1]}',
    '["식당-지역-강남", 7]', f'"{"가" * 999}"', "-0", f"[1{'0' * 400}]",
)  # fmt: skip
FORMS = (
    '{{"guid": "{guid}", "prediction": {value}}}',
    '{{"guid": "{guid}", "prediction": {right}, "scores": {value}}}',
    '{{"guid": "{guid}", "gold": {right}, "prediction": {value}}}',
    '{{"guid": "{guid}", "gold": {value}, "prediction": {right}}}',
    '{{"guid": {value}, "prediction": {right}}}',
)


@pytest.mark.parametrize("task", TASKS)
def test_any_value_is_scored_or_explained(task: str, tmp_path: Path) -> None:
    official, path = put_official(tmp_path, task), tmp_path / "predictions"
    for form in FORMS:
        for value in VALUES:
            right = {guid: json.dumps(value) for guid, value in RIGHT[task].items()}
            lines = [form.format(guid=guid, right=own, value=value) for guid, own in right.items()]
            path.write_text("\n".join(lines), "utf-8")
            try:
                found = score_file(task, path, None if "gold" in form else official, samples=0).as_json()
            except BadInput as error:
                assert str(error).startswith(str(path))
                assert len(str(error)) < 1_200  # KLUE-RE names its 30 labels
            else:
                json.dumps(found, allow_nan=False)


def test_a_damaged_file_is_scored_or_explained(tmp_path: Path) -> None:
    rng, path, outcomes = Random(5), tmp_path / "predictions", Counter[str]()
    official = put_official(tmp_path, "klue-dp")
    whole = json.dumps(RIGHT["klue-dp"], ensure_ascii=False).encode()
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(3)):
            place = rng.randrange(len(damaged))
            damaged[place : place + rng.randrange(3)] = rng.choice((b"", b"[", b'"', b"}", b"\x00", b"\xff", b"1e999"))
        path.write_bytes(damaged)
        try:
            score_file("klue-dp", path, official, samples=0)
            outcomes["scored"] += 1
        except BadInput:
            outcomes["explained"] += 1
    assert min(outcomes["scored"], outcomes["explained"]) > 5


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("marked.json", lambda text: b"\xef\xbb\xbf" + text),
        ("windows.jsonl", lambda text: text.replace(b"\n", b"\r\n") + b"\r\n"),
        ("ansi.json", lambda text: text.decode().encode("cp949")),
        ("unicode.json", lambda text: text.decode().encode("utf-16")),
        ("packed.json.gz", gzip.compress),
        ("packed.json.zst", zstandard.compress),
    ],
)
def test_a_byte_order_mark_other_line_ends_and_packing_change_nothing(name: str, change, tmp_path: Path) -> None:
    official, path = put_official(tmp_path, "ynat"), tmp_path / name
    path.write_bytes(change('{"y0":\n"경제"}'.encode()))
    assert score_file("ynat", path, official, samples=0).scores == {"macro_f1": 100.0}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"y0": "caf\xe9"}', "not UTF-8 .* save it as UTF-8"),
        (gzip.compress(b"{}", mtime=0), "not UTF-8"),
        (b"", "no predictions in it"),
    ],
)
def test_another_encoding_is_named(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "predictions"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=says):
        score_file("ynat", path, put_official(tmp_path, "ynat"), samples=0)


def test_a_missing_file_and_a_folder_have_different_messages(tmp_path: Path) -> None:
    official = put_official(tmp_path, "ynat")
    with pytest.raises(BadInput, match=r"^[^:]*none: no such file; check the path$"):
        score_file("ynat", tmp_path / "none", official)
    with pytest.raises(BadInput, match="a folder, not a file"):
        score_file("ynat", tmp_path, official)


@pytest.mark.parametrize("task", ["ynat", "klue-mrc", "wos"])
def test_text_in_nfd_is_the_same_text_and_said_to_be_so(
    task: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    official = put_official(tmp_path, task)
    path = put_map(tmp_path, RIGHT[task])
    right = score_file(task, path, official, samples=0)
    path.write_text(unicodedata.normalize("NFD", path.read_text("utf-8")), "utf-8")
    with caplog.at_level(logging.WARNING):
        found = score_file(task, path, official, samples=0)
    count = len(RIGHT[task])
    note = f"{count} of {count} predictions are not in NFC (Unicode's composed form); compared in NFC"
    assert found.scores == right.scores
    assert (right.notes, found.notes, found.as_json()["notes"]) == ((), (note,), (note,))
    assert f"{path}: {note}" in caplog.messages


def test_what_the_metrics_pass_over_is_counted(tmp_path: Path) -> None:
    twice = put_map(tmp_path, {**RIGHT["wos"], "w0-0": ["식당-지역-서울 중앙", "식당-지역-강남"]})
    assert score_file("wos", twice, put_official(tmp_path, "wos"), samples=0).notes == (
        "1 of 2 predicted states have two values of one slot; both are scored",
    )
    absent = put_map(tmp_path, {**RIGHT["wos"], "w0-0": ["식당-지역-서울 중앙", "식당-이름-none"]})
    found = score_file("wos", absent, put_official(tmp_path, "wos"), samples=0)
    assert found.scores["joint_goal_acc"] == found.scores["slot_micro_f1"] == 100.0
    assert found.notes[0].startswith("1 of 2 predictions are spelled like ['식당-지역-서울 중앙', '식당-이름-none']")
    stray = put_map(tmp_path, {"e0-sample": ["I-LC", "I-LC", "O", "I-PS", "I-LC"]})
    found = score_file("klue-ner", stray, put_official(tmp_path, "klue-ner"), samples=0)
    assert "3 entities in 1 predictions begin with I-" in found.notes[0]
    assert found.scores["entity_macro_f1"] == 0.0


def test_slots_of_the_value_none_are_absent_in_golds_too(tmp_path: Path) -> None:
    states = {key: [*state, "식당-이름-none"] for key, state in RIGHT["wos"].items()}
    turns = [turn | {"state": [*turn["state"], "식당-이름-none"]} if "state" in turn else turn for turn in TURNS]
    official = tmp_path / "dev.json"
    official.write_text(json.dumps([{"guid": "w0", "domains": [], "dialogue": turns}]), "utf-8")
    lines = [{"guid": guid, "gold": states[guid], "prediction": own} for guid, own in RIGHT["wos"].items()]
    own = tmp_path / "own.jsonl"
    own.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    for path, gold in ((put_map(tmp_path, RIGHT["wos"]), official), (put_map(tmp_path, states), official), (own, None)):
        assert score_file("wos", path, gold, samples=0).scores["joint_goal_acc"] == 100.0
    export_predictions("wos", official, put_map(tmp_path, states), target := tmp_path / "out.json")
    assert "none" not in target.read_text("utf-8")


@pytest.mark.parametrize(
    ("labels", "golds", "said", "is_right"),
    [
        (["0", "1"], "1\n0\n", [1, 0], True), (["0", "1"], "1\n0\n", [" 1 ", "0"], True),
        (["true", "false"], "TRUE\nfalse\n", [True, "False"], True), (["0", "1"], "1\n0\n", [1.0, 0], False),
        (["a", "b"], " a \nb\n", ["a", "b "], True), (["a", "b"], "a\nb\n", ["A", "b"], False),
    ],
)  # fmt: skip
def test_labels_of_custom_tasks_are_spelled_alike_in_golds_and_predictions(
    labels: list[str], golds: str, said: list[Any], is_right: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = custom_task({"name": "mine", "kind": "label", "guid": "id", "labels": labels})
    monkeypatch.setattr("finetune.score.scores.find_task", lambda name: task)
    rows = [f"{n},비 {n},{gold}\n" for n, gold in enumerate(golds.splitlines())]
    (tmp_path / "dev.csv").write_text("id,text,label\n" + "".join(rows), "utf-8")
    path = put_map(tmp_path, {str(n): value for n, value in enumerate(said)})
    if not is_right:
        with pytest.raises(BadInput, match=f"no label {said[0]!r}; labels here are {', '.join(labels)}"):
            score_file("mine", path, tmp_path / "dev.csv", samples=0)
        return
    assert score_file("mine", path, tmp_path / "dev.csv", samples=0).scores["accuracy"] == 100.0


def test_scores_that_are_no_probabilities_rank_and_are_said_to(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    logits = [3.0, *[-2.5] * 29]
    path.write_text(json.dumps({"guid": "a", "gold": "no_relation", "prediction": "no_relation", "scores": logits}))
    found = score_file("klue-re", path, samples=0)
    assert found.scores["auprc"] == 100.0
    assert found.notes == ("1 of 1 predictions have scores that are no probabilities; AUPRC ranks by them",)


def test_a_number_that_no_float_holds_is_none(tmp_path: Path) -> None:
    official = put_official(tmp_path, "klue-sts")
    with pytest.raises(BadInput, match="expected a finite number, found 1000"):
        score_file("klue-sts", put_map(tmp_path, {"s0": 10**400}), official)
    assert math.isnan(score_file("klue-sts", put_map(tmp_path, {"s0": 1e308}), official, samples=0).scores["pearsonr"])
