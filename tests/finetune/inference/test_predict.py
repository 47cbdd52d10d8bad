"""New text through a model: every form of an input gives one prediction, in order, the one of the official file."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.inference.predict import TaskModel, check_task, format_lines, predict_official, predict_texts
from finetune.registry import TASKS, task_of
from finetune.tasks.dp.reader import last_tags
from launch.sample.unpack import unpack
from tests.finetune.conftest import build_tiny_encoder
from tests.finetune.saved_models.conftest import shorten

TOKENS = 96
LINES = {  # a line, and the same as columns
    "ynat": ("푸른들시 예산안 처리", ["푸른들시 예산안 처리"]),
    "klue-sts": ("비가 온다.\t눈이 온다.", ["비가 온다.", "눈이 온다."]),
    "klue-nli": ("비가 온다.\t날이 맑다.", ["비가 온다.", "날이 맑다."]),
    "klue-ner": ("가람은 3일 윤슬동에 갔다.", ["가람은 3일 윤슬동에 갔다."]),
    "klue-re": ("<subj>가람</subj>은 <obj>푸른상사</obj> 대표다.",) * 2,
    "klue-dp": ("가람은 책을 두 번 읽었다.", ["가람은 책을 두 번 읽었다."]),
    "klue-mrc": ("누가 갔나?\t가람이 윤슬동에 갔다.", ["누가 갔나?", "가람이 윤슬동에 갔다."]),
    "wos": ("식당 예약해 줘\t몇 명인가요?\t두 명", ["식당 예약해 줘", "몇 명인가요?", "두 명"]),
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    unpack(folder)
    for ontology in folder.rglob("ontology.json*"):
        ontology.unlink()  # new text comes without one
    for path in folder.rglob("*dev*.*"):  # some more than the test asks for, so that batches differ
        count = 8 if path.name.startswith("wos") else 32  # each dialogue is several examples
        path.write_text(shorten(path.name, path.read_text("utf-8"), count), "utf-8")
    return folder / "klue"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    texts = "".join(chr(code) for code in range(0xAC00, 0xAC00 + 11_172, 7)) + "".join(
        line for line, _ in LINES.values()
    )
    return build_tiny_encoder(tmp_path_factory.mktemp("encoder"), [texts + "0123456789.,?<>/subjo"])


@pytest.fixture
def kept(encoder) -> Callable[[str], Any]:
    """A model of a task with random weights, as ``load_model`` gives one."""
    folder, plain = encoder

    def load(name: str, *, pos_tags: bool = True) -> Any:
        task = TASKS[name] if pos_tags else task_of(name, FinetuneConfig(pos_tags=False))
        tokenizer = deepcopy(plain)
        tokenizer.add_tokens(list(task.special_tokens), special_tokens=True)
        torch.manual_seed(1)
        model = task.model(folder, tokenizer)
        settings = {"max_tokens": TOKENS, "precision": "fp32"}
        return SimpleNamespace(task=task, tokenizer=tokenizer, model=model, settings=settings)

    return load


def record_of(name: str, example: Any, raw: Any) -> dict[str, Any]:
    """A line of JSON for an official example."""
    inputs = example.inputs
    own = {
        "klue-ner": lambda: {"sentence": inputs["text"]},
        "klue-dp": lambda: {"words": inputs["words"], "pos": inputs["pos"]},
        "klue-mrc": lambda: {"question": inputs["question"], "context": inputs["context"]},
        "wos": lambda: {"dialogue": list(inputs["turns"][1:])},
    }
    return {"guid": example.guid, **(own[name]() if name in own else raw)}


@pytest.mark.parametrize("name", TASKS)
def test_records_get_what_the_official_file_gets(name: str, sample: Path, kept) -> None:
    task, model = TASKS[name], kept(name)
    path = sample / task.files.dev
    official = predict_official(model, path)
    examples = task.read(path)
    assert [result["guid"] for result in official] == [example.guid for example in examples]
    is_list = path.suffix == ".json" and name not in ("klue-mrc", "wos")
    raws = json.loads(path.read_text("utf-8")) if is_list else [None] * len(examples)
    records = [record_of(name, *pair) for pair in zip(examples[:24], raws, strict=False)]
    for found, expected in zip(predict_texts(model, records), official, strict=False):
        assert is_same(found["prediction"], expected["prediction"])
        assert json.loads(json.dumps(found)).keys() == expected.keys()


def is_same(one: Any, other: Any) -> bool:
    """Equal, except for rounding in another batch."""
    return bool(one == (pytest.approx(other, abs=1e-5) if isinstance(other, float) else other))


@pytest.mark.parametrize("name", TASKS)
def test_lines_columns_nfd_and_blanks_keep_their_order(name: str, kept) -> None:
    line, columns = LINES[name]
    model = kept(name)
    alone = predict_texts(model, [line])
    results = TaskModel(model).predict([columns, "", line, unicodedata.normalize("NFD", line), " "])
    texts = {
        key: value for key, value in alone[0].items() if key not in ("scores", "likeliest", "probability", "score")
    }
    for number in (0, 2, 3):
        assert all(is_same(results[number][key], value) for key, value in texts.items())
    assert results[1] == results[4] == {"prediction": None}


@pytest.mark.parametrize("name", TASKS)
def test_people_read_the_text_and_what_was_found(name: str, kept) -> None:
    model = kept(name)
    (result,) = predict_texts(model, [LINES[name][0]])
    lines = list(format_lines(model.task.inference, result))
    shown = LINES[name][0].split("\t")[-1 if name == "wos" else 0]
    for marker in TASKS["klue-re"].special_tokens:
        shown = shown.replace(marker, "")
    assert shown in "\n".join(lines)
    assert (lines[-1] == "") == model.task.inference.is_block
    assert next(format_lines(model.task.inference, {"prediction": None})) == "(empty)"


def test_entities_are_given_by_their_characters(kept) -> None:
    (result,) = predict_texts(kept("klue-ner"), [LINES["klue-ner"][0]])
    assert result["entities"]
    for entity in result["entities"]:
        assert result["text"][entity["start"] : entity["end"]] == entity["text"]


def test_spans_of_a_decomposed_sentence_move_with_its_text(kept) -> None:
    before, name, after = (unicodedata.normalize("NFD", text) for text in ("가람은 ", "윤슬상사", " 대표다."))
    sentence = before + name + after
    subject = {"start_idx": 0, "end_idx": len(unicodedata.normalize("NFD", "가람")) - 1}
    object_ = {"start_idx": len(before), "end_idx": len(before + name) - 1}
    record = {"sentence": sentence, "subject_entity": subject, "object_entity": object_}
    (result,) = predict_texts(kept("klue-re"), [record])
    assert (result["subject"]["text"], result["object"]["text"]) == ("가람", "윤슬상사")


def test_a_parser_without_tags_does_not_ask_the_analyser(kept, monkeypatch) -> None:
    monkeypatch.setattr("finetune.tasks.dp.reader.last_tags", lambda words: pytest.fail("asked"))
    (result,) = predict_texts(kept("klue-dp", pos_tags=False), [LINES["klue-dp"][0]])
    assert result["prediction"]["heads"][-1] == 0


def test_tags_follow_their_words_through_odd_text() -> None:
    words = ["윤슬이", "\0", "가" * 500, "두", "번", "😀", "웃었다."] * 40
    tags = last_tags(words)
    assert len(tags) == len(words)
    assert [tags[i] for i in (0, 3, 4, 6)] == ["JKS", "MMN", "NNB", "SF"]


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("ynat", {"headline": "비"}, ["input 2: no 'title'", "headline"]),
        ("ynat", {"title": 3}, ["'title' should be a text"]),
        ("ynat", ["비", "눈"], ["expected title", "texts found: 2"]),
        ("klue-nli", "비가 온다.", ["premise, a tab, hypothesis", "texts found: 1"]),
        ("klue-re", "<subj>가람</subj>은 대표다.", ["<obj>…</obj>"]),
        ("klue-re", "<subj>가</subj> <subj>나</subj> <obj>다</obj>", ["<subj> occurs twice"]),
        ("klue-re", "</subj>가<subj> <obj>다</obj>", ["two entities"]),
        ("klue-re", {"sentence": "가람", "subject_entity": {}, "object_entity": {}}, ["subject_entity", "start_idx"]),
        ("klue-dp", {"words": ["가 나"]}, ["words without spaces"]),
        ("klue-dp", {"words": ["가"], "pos": []}, ["'pos'", "1 words"]),
        ("wos", {"dialogue": "가"}, ["list of turns"]),
        ("wos", {"dialogue": [{"role": "sys", "text": "가"}]}, ["turn 1", "role 'user'"]),
        ("wos", "가\t\t다", ["turn 2", "empty"]),
    ],
)
def test_wrong_input_is_one_sentence_with_its_place(name: str, given: Any, words: list[str], kept) -> None:
    with pytest.raises(BadInput) as error:
        predict_texts(kept(name), [LINES[name][0], given])
    for word in ("input 2", *words):
        assert word in str(error.value)


def test_a_string_is_not_taken_for_a_list_of_texts(kept) -> None:
    with pytest.raises(BadInput, match="list of texts"):
        TaskModel(kept("ynat")).predict("비가 온다")


def test_the_task_must_be_that_of_the_model(kept) -> None:
    model = kept("klue-ner")
    for name in ("klue-ner", "ner", "KLUE-NER"):
        check_task(model, name, "m")
    for name in ("ynat", "nonsense"):
        with pytest.raises(BadInput):
            check_task(model, name, "m")
