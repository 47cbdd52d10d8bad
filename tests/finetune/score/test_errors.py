"""Samples of wrong predictions: what is wrong, what is shown of it, and in which order."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from finetune.examples import Example, Row
from finetune.registry import TASKS
from finetune.score.scores import LONGEST_TEXT, find_errors
from finetune.tasks.ner.task import find_entities

CONTEXT = "가" * 200 + " 말모이는 1911년에 조선광문회가 엮기 시작했다. " + "나" * 200
WORDS = ["아이가", "책을", "읽는다"]
TURNS = ("", "시청역 가는 택시 불러 주세요.", "어디서 타시나요?", "남산공원에서 탑니다.")

# task: inputs, gold, wrong prediction, then texts, gold and prediction as shown
WRONG: dict[str, tuple[dict[str, Any], Any, Any, dict[str, str], list[str], list[str]]] = {
    "ynat": ({"title": "새 도서관 연다"}, "사회", "경제", {"title": "새 도서관 연다"}, ["사회"], ["경제"]),
    "klue-sts": (
        {"sentence1": "비가 온다.", "sentence2": "눈이 온다."}, 1.25, 4.0,
        {"sentence1": "비가 온다.", "sentence2": "눈이 온다."}, ["1.25"], ["4.00"],
    ),
    "klue-nli": (
        {"premise": "비가 온다.", "hypothesis": "맑다."}, "contradiction", "neutral",
        {"premise": "비가 온다.", "hypothesis": "맑다."}, ["contradiction"], ["neutral"],
    ),
    "klue-ner": (
        {"text": "이 도현 은 서울 로"}, ["O", "B-PS", "I-PS", "O", "B-LC", "I-LC", "O"],
        ["O", "B-PS", "O", "O", "B-LC", "I-LC", "O"], {"sentence": "이 도현 은 서울 로"}, ["도현 PS"], ["도 PS"],
    ),
    "klue-re": (
        {"sentence": "도현은 서울 사람", "subject": (0, 2), "object": (4, 6)}, "per:origin", "no_relation",
        {"sentence": "도현은 서울 사람", "subject → object": "도현 → 서울"}, ["per:origin"], ["no_relation"],
    ),
    "klue-dp": (
        {"words": WORDS}, {"heads": [3, 3, 0], "types": ["NP_SBJ", "NP_OBJ", "VP"]},
        {"heads": [2, 3, 0], "types": ["NP_SBJ", "NP_OBJ", "VNP"]}, {"sentence": "아이가 책을 읽는다"},
        ["아이가 → 읽는다 NP_SBJ", "읽는다 → root VP"], ["아이가 → 책을 NP_SBJ", "읽는다 → root VNP"],
    ),
    "klue-mrc": (
        {"question": "누가 엮었나?", "context": CONTEXT, "start": CONTEXT.index("조선광문회")},
        {"answers": ["조선광문회", "조선광문회"], "question_type": 1}, "", {}, ["조선광문회"], ["no answer"],
    ),
    "wos": (
        {"turns": TURNS, "dialogue": "d"}, ["택시-도착지-시청역", "택시-출발지-남산공원"],
        ["택시-도착지-시청역", "택시-출발지-시청역"], {"system": TURNS[2], "user": TURNS[3]},
        ["택시-출발지-남산공원"], ["택시-출발지-시청역"],
    ),
}  # fmt: skip


def find(task: str, rows: list[Row], inputs: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    examples = [Example(row.guid, row.gold, WRONG[task][0] | (inputs or {})) for row in rows]
    return find_errors(TASKS[task], examples, rows, **options)


@pytest.mark.parametrize("task", TASKS)
def test_an_error_shows_only_what_differs(task: str) -> None:
    _, gold, prediction, texts, right, predicted = WRONG[task]
    rows = [Row("right", gold, gold["answers"][0] if task == "klue-mrc" else gold), Row("wrong", gold, prediction)]
    found = find(task, rows)
    assert (found["task"], found["n"], found["wrong"]) == (task, 2, 1)
    (sample,) = found["samples"]
    assert (sample["guid"], sample["gold"], sample["predicted"]) == ("wrong", right, predicted)
    assert sample["texts"] == texts or task == "klue-mrc"
    assert json.loads(json.dumps(found)) == found


def test_the_passage_is_cut_around_the_answer() -> None:
    _, gold, prediction, *_ = WRONG["klue-mrc"]
    (sample,) = find("klue-mrc", [Row("a", gold, prediction)])["samples"]
    passage = sample["texts"]["passage"]
    assert "1911년에 조선광문회가" in passage and len(passage) < 140
    assert passage.startswith("…") and passage.endswith("…")


def test_an_answer_where_there_is_none_is_shown_at_its_place() -> None:
    none = {"answers": [], "question_type": 3}
    (sample,) = find("klue-mrc", [Row("a", none, "조선광문회가")], {"start": None})["samples"]
    assert "1911년에 조선광문회가" in sample["texts"]["passage"]
    assert (sample["gold"], sample["predicted"]) == (["no answer"], ["조선광문회가"])


def test_answers_that_the_metric_calls_equal_are_no_errors() -> None:
    gold = {"answers": ["조선광문회"], "question_type": 1}
    assert find("klue-mrc", [Row("a", gold, "조선광문회.")])["wrong"] == 0
    assert (
        find("wos", [Row("a", ["택시-종류-모범", "택시-종류-일반"], ["택시-종류-일반", "택시-종류-모범"])])["wrong"]
        == 0
    )


def test_most_certain_errors_come_first() -> None:
    rows = [Row(str(n), "사회", "경제", [n / 10, 1 - n / 10]) for n in range(6, 10)]
    found = find("ynat", rows, most=3)
    assert (found["sorted_by"], found["wrong"]) == ("probability", 4)
    assert [sample["value"] for sample in found["samples"]] == [0.9, 0.8, 0.7]


def test_largest_distances_come_first() -> None:
    found = find("klue-sts", [Row("near", 3.0, 3.9), Row("far", 0.0, 4.5), Row("off", 2.0, 3.0)])
    assert found["sorted_by"] == "distance"
    assert [(sample["guid"], sample["value"]) for sample in found["samples"]] == [("far", 4.5), ("off", 1.0)]


def test_the_draw_depends_on_the_seed_and_not_on_the_order() -> None:
    rows = [Row(str(n), {"heads": [0], "types": ["VP"]}, {"heads": [0], "types": ["NP"]}) for n in range(40)]

    def drawn(rows: list[Row], seed: int) -> list[str]:
        return [sample["guid"] for sample in find("klue-dp", rows, {"words": ["가"]}, most=5, seed=seed)["samples"]]

    assert drawn(rows, 1) == drawn(rows[::-1], 1) != drawn(rows, 2)


def test_one_dialogue_gives_one_sample() -> None:
    _, gold, prediction, *_ = WRONG["wos"]
    found = find("wos", [Row(f"d-{n}", gold, prediction) for n in range(5)])
    assert (found["wrong"], len(found["samples"])) == (5, 1)


def test_examples_without_gold_are_not_counted() -> None:
    assert find("ynat", [Row("a", None, "경제"), Row("b", "경제", "경제")])["n"] == 1


def test_texts_are_one_line_cut_and_not_empty() -> None:
    (sample,) = find("ynat", [Row("a", "사회", "경제")], {"title": "가\n나 " + "다" * 1000})["samples"]
    assert sample["texts"]["title"] == "가 나 " + "다" * (LONGEST_TEXT - 4) + "…"
    (sample,) = find("wos", [Row("a", ["택시-종류-모범"], [])], {"turns": ("", "모범택시요.")})["samples"]
    assert sample["texts"] == {"user": "모범택시요."}


def test_runs_without_a_beginning_are_marked() -> None:
    tags = ["I-PS", "I-PS", "B-LC", "I-OG", "O"]
    assert find_entities("가 나다라 마", tags) == [("(PS)", 0, 3), ("LC", 3, 4), ("(OG)", 4, 5)]
    assert find_entities("가나", ["B-PS"]) == [("PS", 0, 1)]  # fewer tags than characters


def test_a_tree_with_fewer_words_than_the_gold_is_shown() -> None:
    _, gold, *_ = WRONG["klue-dp"]
    (sample,) = find("klue-dp", [Row("a", gold, {"heads": [3, 3], "types": ["NP_SBJ", "NP_OBJ"]})])["samples"]
    assert (sample["gold"], sample["predicted"]) == (["읽는다 → root VP"], ["읽는다 → –"])


def test_errors_are_found_without_torch() -> None:
    code = "import sys, finetune.score.scores; sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
