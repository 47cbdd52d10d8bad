"""Recorded results of prompts, parsed answers, llm-kr-eval files and MT-Bench; no model is asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from finetune.data.public_sets import data_sets
from finetune.generative.client import ask as client_ask
from finetune.generative.client.ask import Answer, Client, Question
from finetune.generative.exports import (
    export_kr_eval,
    export_lm_eval,
    kr_eval_export_table,
    lm_eval_command,
    prepare_kr_eval,
)
from finetune.generative.horangi import compute_total, total_table
from finetune.generative.klue import run as klue_run
from finetune.generative.klue.run import load_prompted_task
from finetune.generative.kr_eval import run as kr_eval_run
from finetune.generative.kr_eval.metrics import METRICS
from finetune.generative.mt_bench.run import load_bench, run_bench
from finetune.generative.prompts import PROMPTS
from finetune.generative.tables import kr_eval_table, mt_bench_tables
from tests.finetune.generative import answer_items
from tests.finetune.generative.answer_forms import cases
from tests.same_results.mangling import mangle
from tests.same_results.recording import check_recorded, groups

VOLATILE = ("seconds", "versions", "spent", "file", "data", "bleu")
WORDS = (
    "답:",
    "정답은",
    "입니다.",
    "아마",
    "아니라",
    "또는",
    "**",
    "\n\n",
    "1.",
    "없음",
    "모르겠습니다.",
    "<answer>",
    "점",
)


@pytest.fixture(scope="module")
def klue() -> Path:
    return answer_items.sample_folder()


def spoiled(text: str, rng: Random) -> str:
    """An answer with words before or after it, or cut."""
    text = rng.choice((text, text, f"{rng.choice(WORDS)} {text}", f"{text} {rng.choice(WORDS)}", mangle(text, rng, 1)))
    return text[: rng.randrange(1, 20)] if rng.random() < 0.1 else text


def stable(value: Any) -> Any:
    """Without what differs from run to run."""
    if isinstance(value, dict):
        return {key: stable(inner) for key, inner in value.items() if key not in VOLATILE}
    return [stable(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", [*PROMPTS, *answer_items.FILES])
def test_parsed_answers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_items, "klue_folder", lambda name: answer_items.sample_folder())
    rng, results = Random(1), dict[str, Any]()
    for number, item in enumerate(islice(answer_items.all_items((name,)), 0, None, 8)):
        texts = [case.text for half in "ab" for case in cases(item, half)]
        texts = [text if rng.random() < 0.6 else spoiled(text, rng) for text in texts]
        results |= {f"{number} {key}": part for key, part in groups(list(map(item.read, texts)), 200).items()}
    check_recorded(f"answers_{name}", results, tmp_path)


class Answers:
    """In place of ``ask``: spoiled answers of other examples, some of them missing or cut."""

    def __init__(self, golds: Sequence[str]) -> None:
        self._golds, self._rng, self.asked = golds, Random(2), list[Question]()

    def __call__(self, questions: Sequence[Question], client: Client) -> list[Answer]:
        self.asked += questions
        return [self._answer(question, number) for number, question in enumerate(questions)]

    def _answer(self, question: Question, number: int) -> Answer:
        right, rng = self._golds[number % len(self._golds)], self._rng
        if rng.random() < 0.05:
            return Answer(question.id, None, None, None, None, 0.0, "RateLimitError")
        text = spoiled(right if rng.random() < 0.6 else rng.choice(self._golds), rng)
        return Answer(question.id, text, rng.choice(("stop",) * 99 + ("max_tokens",)), len(text), 3, 0.5)


@pytest.mark.parametrize("shots", [0, 3])
def test_klue_tasks_as_prompts(shots: int, klue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results: dict[str, Any] = {}
    prompted = [load_prompted_task(name, klue, shots, 40) for name in PROMPTS]
    for one in prompted:
        fake = Answers([one.prompt.render_gold(example) for example in one.data.scored])
        monkeypatch.setattr(client_ask, "ask", fake)
        client = Client("openai-api/loopback/small")
        results[one.task.name] = stable(klue_run.run([one], client, tmp_path, prices=(1.0, 2.0))), fake.asked
    if not shots:
        paths = export_lm_eval(prompted, tmp_path / "lm")
        texts = [path.with_suffix(suffix).read_text("utf-8") for path in paths for suffix in (".yaml", ".jsonl")]
        results["lm_eval"] = [text.replace(str(tmp_path), "") for text in texts]
        results["command"] = lm_eval_command(Path("lm"), [Path(path.name) for path in paths])
    check_recorded(f"klue_prompts_{shots}", results, tmp_path)


def test_files_of_llm_kr_eval(klue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported = {name: export_kr_eval(name, klue, tmp_path / "files", 30) for name in PROMPTS}
    results: dict[str, Any] = {"exported": kr_eval_export_table(exported, Path("out"))}
    paths = sorted((tmp_path / "files").rglob("*.json"))
    results |= {f"file {path.relative_to(tmp_path)}": path.read_text("utf-8") for path in paths}
    paths = [path for path in paths if path.parent.name == "test"]
    scores = []
    for path in paths:
        content = json.loads(path.read_text("utf-8"))
        content["metrics"] = [name for name in METRICS if name not in ("pearson", "spearman") or "sts" in path.stem]
        path.write_text(json.dumps(content), "utf-8")
        fake = Answers([sample["output"] for sample in content["samples"]])
        monkeypatch.setattr(kr_eval_run, "ask", fake)
        client = Client("openai-api/loopback/small")
        scores += kr_eval_run.run_files([path], client, tmp_path / "out", shots=2, samples=20, resamples=20)
        results[f"scores {path.stem}"] = stable(scores[-1]), fake.asked
        results[f"lines {path.stem}"] = (tmp_path / "out" / path.stem / "predictions.jsonl").read_text("utf-8")
    results["table"] = kr_eval_table([score | {"bleu": "BLEU"} for score in scores])
    check_recorded("kr_eval", results, tmp_path)


def test_public_data_sets(tmp_path: Path) -> None:
    results: dict[str, Any] = {}
    for name, entry in data_sets().items():
        rows = [_row_of(entry, number) for number in range(24)]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), "utf-8")
        try:
            results[name] = prepare_kr_eval(name, [path], [], tmp_path / name, 6)
        except ValueError as error:
            results[name] = str(error).replace(str(tmp_path), "")
        for file in sorted((tmp_path / name).rglob("*.json")):
            results[str(file.relative_to(tmp_path))] = file.read_text("utf-8")
    check_recorded("public_sets", results, tmp_path)


def _row_of(entry: Any, number: int) -> dict[str, Any]:
    """An invented row with the columns of a data set."""
    row: dict[str, Any] = {name: f"{name} {number}" for name in _columns_in(entry.input)}
    for column, values in entry.gold.items():
        value = [*values][number % len(values)] if isinstance(values, dict) else f"{number % 6}.0"
        row[column] = f"글 {number}" if values == "text" else value
    if entry.options:
        row[entry.options] = [f"보기 {number} {letter}" for letter in "가나다"]
        row |= {column: row[entry.options][number % 3] for column in (entry.biased, *entry.gold) if column}
    return row


def _columns_in(text: str) -> list[str]:
    return [part.partition("}")[0] for part in text.split("{")[1:]]


def test_mt_bench_and_the_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, asked = Random(3), list[Question]()

    def fake(questions: Sequence[Question], client: Client) -> list[Answer]:
        asked.extend(questions)
        return [_judged(question, rng) for question in questions]

    monkeypatch.setattr(client_ask, "ask", fake)
    model, judges = Client("openai-api/loopback/small"), [Client(f"openai-api/loopback/{name}") for name in ("a", "b")]
    first = run_bench(load_bench(None, None, None), model, judges[:1], tmp_path / "other")
    second = run_bench(load_bench(None, None, tmp_path / "other"), model, judges, tmp_path / "own")
    results: dict[str, Any] = {"first": stable(first), "second": stable(second | {"against": ""}), "asked": asked}
    results["judgments"] = (tmp_path / "own" / "judgments.jsonl").read_text("utf-8")
    results["tables"] = mt_bench_tables(second | {"against": "other"}), mt_bench_tables(first)
    names = ("kornli", "kmmlu_law", "kmmlu_math", "korsts", "others")
    files = [
        {"task": name, "model": model.model, "metrics": {"exact_match": {"value": value, "error": 2.0}}}
        for name, value in zip(names, (60.0, 30.0, 50.0, -10.0, 90.0), strict=True)
    ]
    total = compute_total(files, first)
    results["total"] = total, total_table(total)
    check_recorded("mt_bench", results, tmp_path)


def _judged(question: Question, rng: Random) -> Answer:
    prompt = question.messages[-1][1]
    if "판정" in prompt and "[[" in prompt:
        winner, score = rng.choice(("A", "B", "무승부", "C")), rng.randrange(12)
        text = rng.choice((f"설명.\n평점: [[{score}]]", f"판정: [[{winner}]]", f"[[{winner}]] [[{score}]]", "모름"))
    elif "평점" in prompt and "[[" in prompt:
        text = rng.choice(("설명.\n평점: [[{}]]", "[[{}]]", "점수는 {}점", "평점: [[{}]] 입니다")).format(
            rng.randrange(12)
        )
    else:
        text = rng.choice(
            ("물은 섭씨 백 도에서 끓습니다. " * 9, "Water boils at a hundred degrees. " * 9, "```\nx = 1\n```")
        )
    return Answer(
        question.id, text if rng.random() > 0.05 else None, rng.choice(("stop", "stop", "max_tokens")), 5, 5, 0.1
    )
