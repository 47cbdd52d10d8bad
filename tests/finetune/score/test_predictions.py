"""Predictions of every task: written in the official layout, or refused with the guid and what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from corpus.documents.errors import BadInput
from finetune.examples import Example, Prediction
from finetune.registry import TASKS, find_task
from finetune.score.scores import export_predictions, match

BANK = {"word": "한빛은행", "start_idx": 0, "end_idx": 3, "type": "ORG"}
SEOUL = {"word": "서울", "start_idx": 6, "end_idx": 7, "type": "LOC"}
QUESTION = {
    "guid": "q0",
    "question": "어디에 있나?",
    "answers": [{"text": "서울", "answer_start": 0}],
    "is_impossible": False,
}
TURNS = [
    {"role": "user", "text": "서울 중앙에 있는 식당을 찾아요.", "state": ["식당-지역-서울 중앙"]},
    {"role": "sys", "text": "네, 몇 명이신가요?"},
    {"role": "user", "text": "두 명이요.", "state": ["식당-지역-서울 중앙", "식당-예약 명수-2"]},
]
OFFICIAL: dict[str, Any] = {  # one example each, two turns of WoS
    "ynat": [{"guid": "y0", "title": "한빛은행 금리 인하", "label": "경제", "url": None}],
    "klue-sts": [{"guid": "s0", "sentence1": "비가 온다.", "sentence2": "비 온다.",
                  "labels": {"label": 4.5, "real-label": 4.5, "binary-label": 1}}],
    "klue-nli": [{"guid": "n0", "premise": "비가 온다.", "hypothesis": "맑다.", "gold_label": "contradiction"}],
    "klue-ner": "## 열: CHAR NE_TAG\n## e0-sample\t<서울:LC> <역>\n서\tB-LC\n울\tI-LC\n \tO\n<\tO\n역\tO\n>\tO\n\n",
    "klue-re": [{"guid": "r0", "sentence": "한빛은행은 서울에 있다.", "subject_entity": BANK, "object_entity": SEOUL,
                 "label": "org:place_of_headquarters"}],
    "klue-dp": "## d0_sample\t비가 온다.\n1\t비가\t비 가\tNNG+JKS\t2\tNP_SBJ\n2\t온다.\t오 ㄴ다 .\tVV+EF+SF\t0\tVP\n\n",
    "klue-mrc": {"data": [{"title": "역", "paragraphs": [{"context": "서울에 역이 있다.", "qas": [QUESTION]}]}]},
    "wos": [{"guid": "w0", "domains": ["식당"], "dialogue": TURNS}],
}  # fmt: skip
RIGHT: dict[str, dict[str, Any]] = {
    "ynat": {"y0": "경제"}, "klue-sts": {"s0": 4.5}, "klue-nli": {"n0": "contradiction"},
    "klue-ner": {"e0-sample": ["B-LC", "I-LC", "O", "O", "O"]}, "klue-re": {"r0": "org:place_of_headquarters"},
    "klue-dp": {"d0_sample": {"heads": [2, 0], "types": ["NP_SBJ", "VP"]}}, "klue-mrc": {"q0": "서울"},
    "wos": {"w0-0": ["식당-지역-서울 중앙"], "w0-1": ["식당-지역-서울 중앙", "식당-예약 명수-2"]},
}  # fmt: skip
OTHER: dict[str, Any] = {
    "ynat": "세계", "klue-sts": 1.25, "klue-nli": "neutral", "klue-ner": ["O", "O", "B-OG", "I-OG", "O"],
    "klue-re": "no_relation", "klue-dp": {"heads": [0, 1], "types": ["VP", "NP"]}, "klue-mrc": "", "wos": [],
}  # fmt: skip


def put_official(folder: Path, task: str) -> Path:
    path = folder / Path(TASKS[task].files.dev).name
    content = OFFICIAL[task]
    path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), "utf-8")
    return path


def put_map(folder: Path, values: dict[str, Any]) -> Path:
    path = folder / "predictions.json"
    path.write_text(json.dumps(values, ensure_ascii=False, indent=1), "utf-8")
    return path


def golds(task: str, path: Path) -> list[Any]:
    found = [example.gold for example in TASKS[task].read(path)]
    return [gold["answers"] for gold in found] if task == "klue-mrc" else found


@pytest.mark.parametrize("task", TASKS)
def test_predictions_replace_the_labels(task: str, tmp_path: Path) -> None:
    official, target = put_official(tmp_path, task), tmp_path / "out" / "predicted"
    assert export_predictions(task, official, put_map(tmp_path, RIGHT[task]), target) == len(RIGHT[task])
    assert golds(task, target) == golds(task, official)
    other = put_map(tmp_path, dict.fromkeys(RIGHT[task], OTHER[task]))
    export_predictions(task, official, other, target)
    expected = [] if task == "klue-mrc" else OTHER[task]
    assert golds(task, target) == [expected] * len(RIGHT[task])
    assert [path.name for path in target.parent.iterdir()] == ["predicted"]


def test_a_packed_test_file_without_labels_is_filled_in(tmp_path: Path) -> None:
    path = tmp_path / "ynat-v1.1_test.json.zst"
    record = {"guid": "y0", "title": "한빛은행 금리 인하", "url": "https://example.com"}
    path.write_bytes(zstandard.compress(json.dumps([record]).encode()))
    export_predictions("ynat", path, put_map(tmp_path, {"y0": "경제"}), tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text("utf-8")) == [{**record, "label": "경제"}]


def test_the_official_file_is_never_overwritten(tmp_path: Path) -> None:
    official = put_official(tmp_path, "ynat")
    before = official.read_bytes()
    with pytest.raises(BadInput, match="this is a file to read"):
        export_predictions("ynat", official, put_map(tmp_path, {"y0": "세계"}), official)
    predictions = put_map(tmp_path, {"y0": "세계"})
    with pytest.raises(BadInput, match="this is a file to read"):
        export_predictions("ynat", official, predictions, predictions)
    assert official.read_bytes() == before and "세계" in predictions.read_text("utf-8")


@pytest.mark.parametrize(
    ("task", "value", "says"),
    [
        ("ynat", "체육", "no label '체육'; labels here are 정치"),
        ("klue-nli", 0, "no label 0; labels here are entailment"),
        ("klue-re", "per:friend", "no label 'per:friend'"),
        ("klue-sts", "4.5", "expected a finite number, found '4.5'"),
        ("klue-sts", float("nan"), "expected a finite number, found nan"),
        ("klue-ner", ["O"] * 6, "expected 5 tags, one a character that is not a space; found 6"),
        ("klue-ner", ["O", "O", "O", "O", "B-CITY"], "no tag 'B-CITY'"),
        ("klue-dp", {"heads": [2], "types": ["NP"]}, "lists of 2, one entry a word"),
        ("klue-dp", {"heads": [3, 0], "types": ["NP", "VP"]}, "no head 3; heads are 0"),
        ("klue-dp", {"heads": [2, 0], "types": ["NP", "VERB"]}, "no relation 'VERB'"),
        ("klue-mrc", ["서울"], "expected a text, empty for no answer"),
        ("wos", ["식당-주소-서울"], "one of the 45 slots; found '식당-주소-서울'"),
        ("wos", "식당-지역-서울 중앙", "expected a list of domain-slot-value"),
    ],
)
def test_a_prediction_of_another_form_is_refused_with_its_guid(
    task: str, value: Any, says: str, tmp_path: Path
) -> None:
    official = put_official(tmp_path, task)
    guid = next(iter(RIGHT[task]))
    with pytest.raises(BadInput) as error:
        export_predictions(task, official, put_map(tmp_path, {**RIGHT[task], guid: value}), tmp_path / "out")
    assert f"predictions.json, {guid}: " in str(error.value)
    assert says in str(error.value)
    assert not (tmp_path / "out").exists()


EXAMPLES = [Example(guid, "neutral", {}) for guid in ("a", "b")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": "neutral"}', "no prediction for guid b of"),
        ('{"a": "neutral", "b": "neutral", "c": "neutral"}', "guid c not in"),
        ('{"a": "neutral", "a": "entailment", "b": "neutral"}', "an object has 'a' twice"),
        ('{"guid": "a", "prediction": "neutral"}\n' * 2, "guid a more than once"),
        ('{"guid": "a", "prediction": "neutral"}\n{"guid": "b"}', "line 2: expected a JSON object with 'guid' and"),
        ('{"guid": 1, "prediction": "neutral"}', "line 1: expected a JSON object with 'guid' and 'prediction'"),
        ('["neutral"]', "one JSON list; expected JSON lines with 'guid'"),
        (
            '{"guid": "a", "prediction": "neutral", "prediction": "entailment"}',
            "an object has 'prediction' twice",
        ),
        ('{"a": {"heads": [1], "heads": [2]}, "b": "neutral"}', "an object has 'heads' twice"),
        ('{"guid": "a", "prediction": ' + "1" * 5000 + "}\n", "a number of more than 4,300 digits"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ("{}\n", "line 1: expected a JSON object"),
        ("\n", "no predictions in it"),
    ],
)
def test_predictions_must_fit_the_examples_one_to_one(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "predictions"
    path.write_text(text, "utf-8")
    with pytest.raises(BadInput, match=says):
        match(TASKS["klue-nli"], EXAMPLES, path, Path("gold.json"))


def test_lines_and_a_map_in_any_order_say_the_same(tmp_path: Path) -> None:
    lines, mapped = tmp_path / "lines", tmp_path / "map"
    lines.write_text('{"guid": "b", "prediction": "neutral"}\n\n{"guid": "a", "prediction": "entailment"}\n', "utf-8")
    mapped.write_text('{"b": "neutral",\n "a": "entailment"}', "utf-8")
    for path in (lines, mapped):
        found = match(TASKS["klue-nli"], EXAMPLES, path, Path("gold.json"))
        assert [prediction.value for prediction in found] == ["entailment", "neutral"]


def test_examples_that_share_a_guid_are_refused(tmp_path: Path) -> None:
    path = put_map(tmp_path, {"a": "neutral"})
    with pytest.raises(BadInput, match=r"gold.json: guid a more than once"):
        match(TASKS["klue-nli"], [EXAMPLES[0], EXAMPLES[0]], path, Path("gold.json"))


@pytest.mark.parametrize(
    ("task", "prediction", "problem"),
    [
        ("klue-ner", [None, "O"], "no tag None"),
        ("klue-dp", {"heads": [2, 0], "types": [None, "VP"]}, "no relation None"),
    ],
)
def test_null_is_no_label(task: str, prediction: Any, problem: str) -> None:
    example = Example("a", None, {"text": "가나", "words": ["가", "나"]})
    assert problem in str(find_task(task).inspection.validate(example, Prediction(prediction)))
