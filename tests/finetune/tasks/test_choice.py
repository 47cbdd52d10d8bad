"""Multiple choice in custom tasks: labels in any form, features, head and metrics as a slow reference computes them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sklearn.metrics import accuracy_score, f1_score
from torch.nn import functional

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.custom_config import CustomTask
from finetune.examples import Example, Row
from finetune.inference.predict import TaskModel, predict_official
from finetune.registry import task_of
from finetune.run import FinetuneInputs, run
from finetune.saved_models.load import load_model
from finetune.score.scores import score_file
from finetune.tasks.custom.task import custom_task, define
from launch.recipe import load_recipe

TEXTS = [("비가 온다.", "결과", "땅이 젖는다.", "땅이 마른다."), ("땅이 젖었다.", "원인 ", "비가 왔다.", "해가 났다.")]
RIGHT = (0, 1)
PLACES = [n % 2 for n in range(12)]
COPA: dict[str, Any] = {
    "kind": "choice", "text": ["premise", "question"], "choices": ["one", "two"],
    "phrases": {"결과": "그래서", "원인": "왜냐하면"},
}  # fmt: skip


def put(path: Path, labels: list[str], texts: list[tuple[str, ...]] = TEXTS) -> Path:
    lines = ["premise\tquestion\tone\ttwo\tlabel"]
    lines += ["\t".join([*texts[n % len(texts)], label]) for n, label in enumerate(labels)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def make(path: Path, **changes: Any) -> Any:
    """The task of a file that trains and is scored, rebuilt from its definition as a saved model has it."""
    own = define("mine", CustomTask(**{**COPA, "train": str(path), "dev": str(path), **changes}))
    return custom_task(json.loads(json.dumps(own)))


@pytest.mark.parametrize(
    "labels",
    [["0", "1"], ["1", "2"], ["one", "two"], ["땅이 젖는다.", "해가 났다."]],
    ids=["from 0", "from 1", "columns", "texts"],
)
def test_labels_are_numbers_columns_or_texts(labels: list[str], tmp_path: Path) -> None:
    path = put(tmp_path / "a.tsv", labels)
    first, second = make(path).read(path)
    assert (first.gold, second.gold) == ("one", "two")
    assert first.inputs == dict(zip(("premise", "question", "one", "two"), TEXTS[0], strict=True))
    unlabelled = tmp_path / "test.tsv"
    unlabelled.write_text("premise\tquestion\tone\ttwo\n" + "\t".join(TEXTS[0]) + "\n", "utf-8")
    assert [example.gold for example in make(path).read(unlabelled)] == [None]
    with pytest.raises(BadInput, match=r"test.tsv: no column 'label'"):
        make(unlabelled)


def test_numbers_that_are_texts_of_answers_are_texts(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tsv", ["1", "2"], [("하나?", "결과", "1", "0"), ("둘?", "결과", "1", "2")])
    assert [example.gold for example in make(path).read(path)] == ["one", "two"]


@pytest.mark.parametrize(
    ("labels", "changes", "says"),
    [
        (["1", "1"], {}, "column 'label' (1) count from 0 as well as from 1; set first to 0 or 1"),
        (["0", "2"], {}, "column 'label' (0, 2) do not number 2 answers from 0 or 1"),
        (["1", "7"], {}, "do not number 2 answers"),
        (["1", "9" * 5_000], {}, "a.tsv, line 2: 'label' is '1', which matches 0 of one, two"),
        (["1", "9" * 5_000], {"first": 1}, "a.tsv, line 3: column 'label' should hold a number from 1 to 2"),
        (["1", "2"], {"first": 0}, "a.tsv, line 3: column 'label' should hold a number from 0 to 1, found '2'"),
        (["둘", "one"], {}, "a.tsv, line 2: 'label' is '둘', which matches 0 of one, two; give a number or the answer"),
        (["one", " "], {}, "a.tsv, line 3: column 'label' should hold a text"),
        (["1", "2"], {"choices": ["one", "three"]}, "a.tsv, line 2: no column 'three'; there are premise, question"),
    ],
)
def test_a_wrong_label_is_answered_with_file_and_line(
    labels: list[str], changes: dict[str, Any], says: str, tmp_path: Path
) -> None:
    path = put(tmp_path / "a.tsv", labels)
    with pytest.raises(BadInput) as error:
        make(path, **changes).read(path)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"choices": ["one"]}, "choices: expected at least two columns"),
        ({"choices": ["one", "premise"]}, "a column is named twice in premise"),
        ({"choices": None}, "choices: expected at least two columns"),
        ({"labels": ["one", "two"]}, "labels: kind choice has no labels"),
        ({"kind": "pair"}, "choices, phrases: kind pair has text, label"),
        ({"first": 2}, "Input should be 0 or 1"),
    ],
)
def test_a_wrong_definition_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as error:
        CustomTask(**{**COPA, "dev": "a.tsv", **changes})
    assert says in str(error.value)


def test_features_are_the_pairs_of_a_question_and_batches_are_padded(
    tmp_path: Path, tiny_encoder: Callable[..., Any]
) -> None:
    path = put(tmp_path / "a.tsv", ["1", "2"])
    task, (_, tokenizer) = make(path), tiny_encoder([str(TEXTS), "그래서왜냐하면"])
    features = task.featurize(task.read(path), tokenizer, 64, True)
    batch = task.collate(features, tokenizer.pad_token_id)
    questions = ["비가 온다. 그래서", "땅이 젖었다. 왜냐하면"]
    for row, (question, text) in enumerate(zip(questions, TEXTS, strict=True)):
        for place, answer in enumerate(text[2:]):
            expected = tokenizer(question, answer, return_token_type_ids=True)
            length = len(expected["input_ids"])
            for name in ("input_ids", "token_type_ids", "attention_mask"):
                got = batch[name][row, place]
                assert got[:length].tolist() == expected[name]
                assert not got[length:].any()
    assert batch["labels"].tolist() == [0, 1]
    short = task.featurize(task.read(path), tokenizer, 12, True)
    assert {size for feature in short for size in feature["sizes"]} == {12}


@pytest.mark.parametrize("is_decoder", [False, True])
def test_the_head_scores_each_pair_alone(is_decoder: bool, tmp_path: Path, tiny_encoder: Callable[..., Any]) -> None:
    path = put(tmp_path / "a.tsv", ["1", "2"])
    task, (encoder, tokenizer) = make(path), tiny_encoder([str(TEXTS), "그래서왜냐하면"])
    features = task.featurize(task.read(path), tokenizer, 64, True)
    if is_decoder:
        from finetune.encoder.loading import load_encoder
        from finetune.heads.labels import StateLabeller

        model: Any = StateLabeller(load_encoder(encoder, tokenizer), "choice", 1).eval()
    else:
        model = task.model(encoder, tokenizer).eval()
    batch = {name: torch.from_numpy(array) for name, array in task.collate(features, 0).items()}
    scores = torch.empty(2, 2)
    for row, feature in enumerate(features):
        begin = 0
        for place, size in enumerate(feature["sizes"]):
            keys = ("input_ids", "token_type_ids")
            pair = {key: torch.tensor([feature[key][begin : begin + size]]) for key in keys}
            pair["attention_mask"] = torch.ones_like(pair["input_ids"])
            with torch.no_grad():
                if is_decoder:
                    scores[row, place] = model.outputs(model.encoder(**pair).last_hidden_state[:, 0])[0, 0]
                else:
                    scores[row, place] = model.net(**pair).logits[0, 0]
            begin += size
    output = model(**dict(batch))
    torch.testing.assert_close(output["logits"], scores, atol=1e-5, rtol=0)
    expected = -torch.log(scores.exp()[[0, 1], [0, 1]] / scores.exp().sum(1)).mean()
    torch.testing.assert_close(output["loss"], expected, atol=1e-5, rtol=0)
    probabilities = functional.softmax(scores, dim=1).numpy()
    np.testing.assert_allclose(np.stack(model.predict(**batch)), probabilities, atol=1e-5)  # with labels and without
    del batch["labels"]
    np.testing.assert_allclose(np.stack(model.predict(**batch)), probabilities, atol=1e-5)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30))
def test_metrics_are_those_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    task = custom_task({"name": "m", "kind": "choice", "choices": ["a", "b", "c"], "first": 0})
    gold, predicted = zip(*pairs, strict=True)
    scores = task.score([Row("", *pair) for pair in pairs])
    assert scores["macro_f1"] == pytest.approx(100 * f1_score(gold, predicted, average="macro", zero_division=0))
    assert scores["accuracy"] == pytest.approx(100 * accuracy_score(gold, predicted))


def test_a_choice_is_trained_saved_predicted_and_scored(tmp_path: Path, tiny_encoder: Callable[..., Any]) -> None:
    texts = [("비가 온다.", "결과", "젖는다.", "마른다."), ("비가 온다.", "결과", "마른다.", "젖는다.")]
    train = put(tmp_path / "train.tsv", ["1", "2"] * 24, texts)
    dev = put(tmp_path / "dev.tsv", ["1", "2"] * 3, texts)
    dev.write_text(dev.read_text("utf-8").replace("비가 온다.", "비가 왔다."), "utf-8")
    encoder, _ = tiny_encoder([str(texts), "그래서왜냐하면왔"])
    config = FinetuneConfig(
        custom={"mine": CustomTask(**COPA, train=str(train), dev=str(dev))}, seeds=(1,),
        overrides={"mine": {"epochs": 8, "lr": 3e-3, "batch_size": 8, "max_tokens": 32}}, device="cpu",
        precision="fp32",
    )  # fmt: skip
    run(config, FinetuneInputs(tmp_path, {"model": encoder}), tmp_path / "out")
    folder = tmp_path / "out" / "mine" / "model" / "seed-1"
    result = json.loads((folder / "scores.json").read_text("utf-8"))
    assert (result["headline"], result["scores"]["accuracy"]) == ("macro_f1", 100.0)
    assert (result["constant"]["accuracy"], result["counting_by"]) == (50.0, "naive Bayes on the answers")
    saved = load_model(folder, "cpu")
    card = (folder / "model" / "README.md").read_text("utf-8")
    assert '{"premise": "…", "question": "…", "one": "…", "two": "…"}' in card
    assert "the one output is the score of an answer" in card
    rows = [json.loads(line) for line in (folder / "predictions.jsonl").read_text("utf-8").splitlines()]
    again = predict_official(saved, dev)
    assert [result["prediction"] for result in again] == [row["prediction"] for row in rows]
    (found,) = TaskModel(saved).predict(
        [{"premise": "비가 왔다.", "question": "결과", "one": "젖는다.", "two": "마른다."}]
    )
    assert (found["prediction"], list(found["likeliest"])) == ("one", ["one", "two"])
    with pytest.raises(BadInput, match="input 1: expected premise, a tab, question, a tab, one, a tab, two"):
        TaskModel(saved).predict(["비가 왔다."])
    path = tmp_path / "theirs.jsonl"
    path.write_text("".join(json.dumps({"guid": row["guid"], "prediction": "two"}) + "\n" for row in rows), "utf-8")
    assert score_file(str(folder), path, dev, samples=0).scores["accuracy"] == 50.0
    path.write_text("".join(json.dumps({"guid": row["guid"], "prediction": "2"}) + "\n" for row in rows), "utf-8")
    with pytest.raises(BadInput, match="no label '2'; labels here are one, two"):
        score_file(str(folder), path, dev, samples=0)


def test_truth_values_in_several_spellings_are_one_label(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\n비,TRUE\n눈,False\n해,True\n달,false\n", "utf-8")
    task = custom_task(define("mine", CustomTask(kind="label", train=str(path), dev=str(path))))
    assert task.custom is not None
    assert task.custom["labels"] == ["false", "true"]
    assert [example.gold for example in task.read(path)] == ["true", "false", "true", "false"]
    old = custom_task({"name": "mine", "kind": "label", "labels": ["False", "True"]})  # saved by an older version
    assert [example.gold for example in old.read(path)] == ["true", "false", "true", "false"]


def test_a_compressed_file_is_read_under_its_plain_name(tmp_path: Path) -> None:
    (tmp_path / "a.tsv.zst").write_bytes(b"")
    (tmp_path / "b.tsv.gz").write_bytes(b"")
    (tmp_path / "b.tsv").write_bytes(b"")
    own = CustomTask(kind="label", train=str(tmp_path / "a.tsv"), dev=str(tmp_path / "b.tsv"), test="c.tsv")
    assert [Path(path).name for path in own.files.values()] == ["a.tsv.zst", "b.tsv", "c.tsv"]


SIZES = {
    "boolq": (3665, 1404, 700), "copa": (3076, 1000, 500), "hellaswag": (2029, 500, 500), "sentineg": (3649, 397, 400),
    "wic": (3318, 1260, 610),
}  # fmt: skip


@pytest.fixture(scope="module")
def kobest() -> Any:
    return load_recipe("kobest").finetune


@pytest.mark.parametrize("name", SIZES)
def test_the_recipe_reads_every_row_of_kobest(
    name: str, kobest: FinetuneConfig, shared: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shared("data/korean_nlu/kobest").parent)
    own = CustomTask(**kobest.custom[name].model_dump())  # looks for the files again
    task = task_of(name, FinetuneConfig(custom={name: own}))
    splits: dict[str, list[Example]] = {split: task.read(Path(path)) for split, path in own.files.items()}
    assert tuple(len(splits[split]) for split in ("train", "dev", "test")) == SIZES[name]
    for split, path in own.files.items():
        for example, row in zip(splits[split], reference(Path(path)), strict=True):
            assert example.gold == expected_gold(name, row)
            assert list(example.inputs.values()) == [normalize("NFC", row[column]) for column in example.inputs]
    if name == "wic":
        assert all(text.count("[") == 1 for example in splits["dev"] for text in example.inputs.values())


def reference(path: Path) -> list[dict[str, str]]:
    """The rows of a file by the csv module alone."""
    from finetune.data.files import read_text

    return list(csv.DictReader(io.StringIO(read_text(path), newline=""), delimiter="\t", quoting=csv.QUOTE_NONE))


def expected_gold(name: str, row: dict[str, str]) -> str:
    label = row[{"boolq": "Answer", "copa": "Answer", "hellaswag": "label", "sentineg": "Label", "wic": "ANSWER"}[name]]
    return {"copa": label, "hellaswag": f"choice{int(label) + 1}" if name == "hellaswag" else ""}.get(
        name, label.lower()
    )
