"""The corpus is decontaminated against the dev texts of custom tasks, unless the recipe names its benchmarks."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from corpus.decontamination.benchmarks import read_benchmarks
from corpus.decontamination.index import build_index
from corpus.pii.types import PII_TYPES
from finetune.run import FinetuneInputs
from launch.errors import LaunchError
from launch.pipeline import _finetune, hide_in_errors
from launch.recipe import load_recipe
from launch.stage_inputs import corpus_inputs, custom_texts, finetune_inputs

RECIPE = """
corpus: {{inputs: [raw.txt]{more}}}
finetune:
  custom: {{weather: {{kind: label, train: train.csv, dev: dev.csv}}}}
"""


def put_recipe(folder: Path, more: str = "") -> str:
    (folder / "train.csv").write_text("text,label\n비가 온다,비\n눈이 온다,눈\n", "utf-8")
    (folder / "dev.csv").write_text("text,label\n밤새 눈이 많이 내렸다,눈\n밤새 눈이 많이 내렸다,비\n", "utf-8")
    (folder / "raw.txt").write_text("비가 온다\n", "utf-8")
    (folder / "mine.yaml").write_text(RECIPE.format(more=more), "utf-8")
    return str(folder / "mine.yaml")


def test_dev_texts_are_a_benchmark_and_their_file_is_an_input(tmp_path: Path) -> None:
    recipe = load_recipe(put_recipe(tmp_path))
    texts = custom_texts(recipe)
    assert texts == {"weather_dev": [(f"dev.csv:{line}", "밤새 눈이 많이 내렸다") for line in (2, 3)]}
    assert {text.text for text in read_benchmarks([], custom=texts)} == {"밤새 눈이 많이 내렸다"}
    assert str(tmp_path / "dev.csv") in corpus_inputs(recipe)
    assert {str(tmp_path / "train.csv"), str(tmp_path / "dev.csv")} <= finetune_inputs(recipe).keys()


def test_a_planted_answer_and_a_marked_word_are_found_in_raw_text(tmp_path: Path) -> None:
    rows = [
        "첫 문장이다\t하나의 짧은 답이다\t다른 짧은 답이다\t1",
        "둘째 문장이다\t답이 여기에 있다\t답이 저기에 있다\t2",
    ]
    (tmp_path / "train.tsv").write_text("\n".join(["text\tone\ttwo\tlabel", *rows]) + "\n", "utf-8")
    asked = "골목에 새로 생긴 [가게]에 손님이 많다\t주인이 직원을 더 뽑기로 했다\t주인이 문을 일찍 닫기로 했다\t1"
    (tmp_path / "dev.tsv").write_text(f"text\tone\ttwo\tlabel\n{asked}\n", "utf-8")
    own = "{kind: choice, choices: [one, two], train: train.tsv, dev: dev.tsv}"
    (tmp_path / "mine.yaml").write_text(f"finetune: {{custom: {{cause: {own}}}}}\n", "utf-8")
    texts = read_benchmarks([], custom=custom_texts(load_recipe(str(tmp_path / "mine.yaml"))))
    index, _ = build_index([text.text for text in texts])
    planted = [
        "어제 골목에 새로 생긴 가게에 손님이 많다고 했다",
        "그래서 주인이 문을 일찍 닫기로 했다.",
        "둘째 문장이다",
    ]
    assert [hit.sentence for hit in index.find(planted)] == [0, 1]


def test_named_benchmarks_are_all(tmp_path: Path) -> None:
    assert custom_texts(load_recipe(put_recipe(tmp_path, ", benchmarks: []"))) == {}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    recipe = load_recipe(put_recipe(tmp_path))
    (tmp_path / "dev.csv").unlink()
    with pytest.raises(LaunchError, match=r"dev.csv: no such file; correct the path in finetune.custom"):
        finetune_inputs(recipe)


def test_personal_data_is_hidden_in_wrong_predictions_on_custom_tasks() -> None:
    texts = {"text": "문의 010-8879-6145 또는 gildong77@naver.com"}
    sample = {"guid": "dev.csv:2", "texts": texts, "gold": ["010-8879-6145"], "predicted": None, "value": 0.5}
    found = hide_in_errors(frozenset(PII_TYPES), {"task": "weather", "n": 4, "samples": [sample]})
    hidden = sample | {"texts": {"text": "문의 [TEL] 또는 [EMAIL]"}, "gold": ["[TEL]"]}
    assert found == {"task": "weather", "n": 4, "samples": [hidden]}


@pytest.mark.parametrize("mode", ["keep", "tag"])
def test_only_a_recipe_that_keeps_personal_data_keeps_it_in_wrong_predictions(tmp_path: Path, mode: str) -> None:
    recipe = load_recipe(put_recipe(tmp_path), [f"corpus.pii.mode={mode}", "finetune.tasks=[weather]"])
    seen: list[FinetuneInputs] = []
    _finetune(recipe, tmp_path, tmp_path, lambda config, inputs, **more: seen.append(inputs) or {})
    (inputs,) = seen
    assert (inputs.hide is None) == (mode == "keep")
    assert inputs.hide is None or pickle.loads(pickle.dumps(inputs.hide))({"samples": ["010-8879-6145"]}) == {
        "samples": ["[TEL]"]
    }
