"""No damaged file ends in a traceback: every reader takes what is left, or says in one sentence what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from finetune.embed.data import read_evaluation_file, read_file
from finetune.generative.kr_eval.run import read_task_file
from finetune.generative.mt_bench.run import read_questions
from finetune.registry import find_task
from finetune.score.scores import score_file
from launch.errors import is_user_error
from launch.sample.unpack import read_archive
from tests.same_results.mangling import damaged

SEEDS, DAMAGES = 40, 2
GOLDS: dict[str, Any] = {
    "ynat": "정치", "klue-sts": 3.2, "klue-nli": "neutral", "klue-ner": ["O", "B-PS", "I-PS"], "klue-re": "no_relation",
    "klue-dp": [[2, "NP_SBJ"], [0, "VP"]], "klue-mrc": ["가", "나"], "wos": ["관광-이름-가", "식당-지역-서울 중앙"],
}  # fmt: skip
PAIRS = [{"sentence1": "가나", "sentence2": "다라", "score": 3.0}] * 3
QUERIES = [{"query": "가", "positive": "나", "negative": "다"}] * 3
SAMPLES = [{"input": "나", "output": "1"}, {"input": "다", "output": "2"}]
KR_EVAL = {
    "instruction": "가", "output_length": 5, "metrics": ["exact_match"], "few_shots": SAMPLES[:1], "samples": SAMPLES,
}  # fmt: skip
QUESTIONS = [{"question_id": 1, "category": "writing", "turns": ["가", "나"], "reference": ["다", ""]}]


def predictions(task: str) -> list[dict[str, Any]]:
    gold = GOLDS[task]
    answer = "가" if task == "klue-mrc" else gold
    return [{"guid": f"g{n}", "gold": gold, "prediction": answer, "scores": [0.1] * 7, "text": "가"} for n in range(4)]


def few_of(content: Any) -> Any:
    return content[:4] if isinstance(content, list) else {**content, "data": content["data"][:3]}


OFFICIAL = {
    name: few_of(json.loads(text))
    for path, text in read_archive("klue.tar.zst").items()
    if (name := Path(path).name).endswith("train.json")
}
FILES: dict[str, tuple[str, Any, Callable[[Path], Any]]] = {
    **{name: (name, content, find_task(name.partition("-v1")[0]).read) for name, content in OFFICIAL.items()},
    **{f"score {task}": ("p.jsonl", predictions(task), partial(score_file, task)) for task in GOLDS},
    **{f"embed {name}": (name, content, read_file) for name, content in OFFICIAL.items()},
    "pairs": ("pairs.jsonl", PAIRS, read_evaluation_file),
    "queries": ("queries.jsonl", QUERIES, read_file),
    "llm-kr-eval": ("kmmlu.json", KR_EVAL, read_task_file),
    "MT-Bench": ("questions.jsonl", QUESTIONS, read_questions),
}


@pytest.mark.parametrize("name", FILES)
def test_no_damage_ends_in_a_traceback(name: str, tmp_path: Path) -> None:
    file, content, read = FILES[name]
    path, refused = tmp_path / file, 0
    for seed in range(SEEDS):
        rng, spoilt = Random(seed), deepcopy(content)
        for _ in range(DAMAGES):
            spoilt = damaged(spoilt, rng)
        rows = spoilt if isinstance(spoilt, list) and file.endswith("l") else [spoilt]
        path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), "utf-8")
        try:
            read(path)
        except Exception as error:
            assert is_user_error(error), f"seed {seed}"
            refused += 1
    assert refused, "the damage should matter"
