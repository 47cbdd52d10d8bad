"""Files of five forms against a local server: scores computed by hand, rates, published values, resuming."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from finetune.generative.client.ask import Client
from finetune.generative.kr_eval.run import TEXT, run_files
from finetune.generative.tables import kr_eval_table
from tests.command import run_command
from tests.finetune.generative.server import Reply, Server, serving

MODEL = "openai-api/loopback/test"
KEY = "sk-planted-0123456789"
QUICK = Client(MODEL, connections=4, attempts=2)
FILES: dict[str, tuple[list[str], list[tuple[str, str, str]]]] = {  # metrics; input, gold, what the model says
    "kornli": (["exact_match"], [
        ("전제: 비가 온다.\n가설: 젖는다.", "entailment", "entailment"),
        ("전제: 해가 떴다.\n가설: 밤이다.", "contradiction", "정답은 contradiction입니다."),
        ("전제: 새가 운다.\n가설: 슬프다.", "neutral", "entailment"),
        ("전제: 꽃이 핀다.\n가설: 봄이다.", "neutral", "잘 모르겠습니다."),
    ]),
    "kobest_wic": (["exact_match", "macro_f1"], [
        ("두 문장의 '배'는 같은 뜻인가요? 1", "예", "예"), ("두 문장의 '배'는 같은 뜻인가요? 2", "아니오", "예."),
    ]),
    "kmmlu_Law": (["exact_match"], [
        ("다음 가운데 맞는 것은? 가", "A", "a"), ("다음 가운데 맞는 것은? 나", "B", "Based on the law"),
    ]),
    "korsts": (["pearson", "spearman"], [
        ("문장1: 눈이 온다.\n문장2: 눈이 내린다.", "5.0", "4점"), ("문장1: 감\n문장2: 배", "0.0", "1"),
        ("문장1: 물\n문장2: 불", "1.0", "3"),
    ]),
    "korea_cg": (["bleu"], [
        ("아이, 공, 던지다", "아이가 공을 던진다.", "아이가 공을 던진다.\n\n설명: 낱말을 다 썼습니다."),
    ]),
}  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractContextManager[Server]]:
    """A server that answers each input as in ``FILES``, or as in ``failures``."""
    answers = {question: said for _, rows in FILES.values() for question, _, said in rows}

    @contextmanager
    def start(failures: dict[str, Reply] | None = None) -> Iterator[Server]:
        def script(asked: str, before: int) -> Reply:
            question = next(q for q in answers if asked.endswith(q))
            return (failures or {}).get(question, Reply(answers[question]))

        with serving(script) as server:
            monkeypatch.setenv("LOOPBACK_BASE_URL", server.address)
            monkeypatch.setenv("LOOPBACK_API_KEY", KEY)
            yield server

    return start


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The files of ``FILES``."""
    found = {}
    for name, (metrics, rows) in FILES.items():
        content = {
            "instruction": "지시에 맞게 답만 쓰세요.", "output_length": 16, "metrics": metrics,
            "few_shots": [{"input": "보기", "output": rows[0][1]}],
            "samples": [{"input": question, "output": gold} for question, gold, _ in rows],
        }  # fmt: skip
        found[name] = tmp_path / f"{name}.json"
        found[name].write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    return found


def by_task(results: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {result["task"]: result for result in results}


def test_files_of_every_form_are_scored(asked, files, tmp_path) -> None:
    with asked() as server:
        found = by_task(run_files([*files.values()], QUICK, tmp_path / "out"))
    values = {task: {name: one["value"] for name, one in result["metrics"].items()} for task, result in found.items()}
    assert values["kornli"] == {"exact_match": 50}
    assert found["kornli"]["as_published"] == {"exact_match": 25}  # an answer in a sentence is wrong there
    # 예 is right once of two times that it is said: F1 2/3; 아니오 never
    assert values["kobest_wic"] == {"exact_match": 50, "macro_f1": pytest.approx(100 / 3)}
    assert found["kobest_wic"]["as_published"] == {"exact_match": 50 * 1, "macro_f1": 50}
    assert values["kmmlu_Law"] == {"exact_match": 50}
    # golds 5, 0, 1 and answers 4, 1, 3: deviations (3, -2, -1) and (4, -5, 1) / 3
    assert values["korsts"]["pearson"] == pytest.approx(100 * (12 + 10 - 1) / (14 * 42) ** 0.5)
    assert values["korsts"]["spearman"] == pytest.approx(100)
    assert found["korsts"]["as_published"] == {"pearson": 0, "spearman": 0}
    assert values["korea_cg"] == {"bleu": 100}
    rates = {task: (result["control"], result["read"]) for task, result in found.items()}
    assert rates["kornli"] == (50, 75) and rates["kmmlu_Law"] == (0, 50) and rates["korea_cg"] == (None, 100)
    assert rates["korsts"] == (pytest.approx(200 / 3), 100)
    assert {body["max_tokens"] for body in server.bodies} == {16}


def test_results_have_answers_and_costs_but_no_key(asked, files, tmp_path) -> None:
    with asked():
        run_files([files["kornli"]], QUICK, tmp_path / "out", shots=1)
    result = json.loads((tmp_path / "out" / "kornli" / "scores.json").read_text("utf-8"))
    assert (result["model"], result["method"], result["shots"], result["n"]) == (MODEL, "generation", 1, 4)
    assert result["tokens_in"] == 80 and result["tokens_out"] > 0 and result["unanswered"] == 0
    assert result["file"]["file"] == "kornli.json" and len(result["file"]["sha256"]) == 64
    lines = (tmp_path / "out" / "kornli" / "predictions.jsonl").read_text("utf-8").splitlines()
    assert json.loads(lines[1]) == {
        "guid": "kornli-1", "gold": "contradiction", "prediction": "contradiction",
        "answer": "정답은 contradiction입니다.", "outcome": "parsed", "has_form": False, "error": None,
    }  # fmt: skip
    assert json.loads(lines[3])["prediction"] is None
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes()


def test_examples_are_turns_before_the_question(asked, files, tmp_path) -> None:
    with asked() as server:
        run_files([files["korea_cg"]], QUICK, tmp_path / "out", shots=1)
    [body] = server.bodies
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][0]["content"].endswith("보기") and body["messages"][2]["content"] == "아이, 공, 던지다"


def test_a_question_without_an_answer_counts_as_wrong_and_is_asked_again(asked, files, tmp_path) -> None:
    lost = FILES["kornli"][1][0][0]
    with asked({lost: Reply("no", failure="status", status=500)}):
        [first] = run_files([files["kornli"]], QUICK, tmp_path / "out")
    assert (first["metrics"]["exact_match"]["value"], first["unanswered"], first["n"]) == (25, 1, 4)
    with asked():
        [second] = run_files([files["kornli"]], QUICK, tmp_path / "out")
    assert (second["metrics"]["exact_match"]["value"], second["unanswered"]) == (50, 0)


def test_a_second_run_asks_nothing_and_returns_the_same(asked, files, tmp_path) -> None:
    with asked() as server:
        first = run_files([files["kornli"], files["korsts"]], QUICK, tmp_path / "out")
        count = len(server.requests)
        second = run_files([files["kornli"], files["korsts"]], QUICK, tmp_path / "out")
        assert len(server.requests) == count == 7
    assert first == second


def test_the_command_prints_one_row_per_metric(asked, files, tmp_path, capfd) -> None:
    with asked():
        out = run_command(
            capfd, "llm", "run", str(files["kornli"]), str(files["korea_cg"]), "--model", MODEL,
            "--out", str(tmp_path / "out"), "--samples", "2",
        )  # fmt: skip
    assert out.code == 0, out.errors
    assert "kornli" in out.output and "published" in out.output and "tok:ko-mecab" in out.output
    assert "↵" not in out.output and "\nBLEU: case" in out.output.replace(" \n", "\n")
    assert KEY not in out.output + out.errors


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("{", "broken JSON"),
        ("[]", "expected one JSON object"),
        ('{"instruction": ""}', "output_length: missing"),
    ],
)
def test_one_broken_file_stops_all_before_anything_is_asked(asked, files, tmp_path, capfd, change, said) -> None:
    files["korsts"].write_text(change, "utf-8")
    with asked() as server:
        arguments = ("llm", "run", str(files["kornli"]), str(files["korsts"]), "--model", MODEL)
        outcome = run_command(capfd, *arguments, "--out", str(tmp_path / "out"))
    outcome.refused("korsts.json", said)
    assert not server.requests


def test_files_of_one_name_and_too_many_examples_are_refused(asked, files, tmp_path, capfd) -> None:
    other = tmp_path / "other" / "kornli.json"
    other.parent.mkdir()
    other.write_bytes(files["kornli"].read_bytes())
    arguments = ("--model", MODEL, "--out", str(tmp_path / "out"))
    run_command(capfd, "llm", "run", str(files["kornli"]), str(other), *arguments).refused("is also called")
    run_command(capfd, "llm", "run", str(other), "--shots", "9", *arguments).refused("--shots 9, but 'few_shots' has 1")
    run_command(capfd, "llm", "run", str(tmp_path / "none.json"), *arguments).refused("no such file")


def test_a_file_name_cannot_control_the_terminal(asked, files, tmp_path, capfd) -> None:
    evil = tmp_path / "kor\x1b[31mnli.json"
    evil.write_bytes(files["kornli"].read_bytes())
    with asked():
        outcome = run_command(capfd, "llm", "run", str(evil), "--model", MODEL, "--out", str(tmp_path / "out"))
    assert outcome.code == 0 and "\x1b[31m" not in outcome.output


@pytest.mark.parametrize("said", ["가" * 30_000, "\x00\x1b[31m\u202e", "(" * 20_000, "\n\n\n"])
def test_no_answer_breaks_a_run(asked, files, tmp_path, said) -> None:
    failures = {question: Reply(said) for _, rows in FILES.values() for question, *_ in rows}
    with asked(failures):
        first = run_files([*files.values()], QUICK, tmp_path / "out", resamples=10)
        second = run_files([*files.values()], QUICK, tmp_path / "out", resamples=10)
    assert first == second
    assert [result["n"] for result in first] == [len(rows) for _, rows in FILES.values()]
    assert by_task(first)["kornli"]["metrics"]["exact_match"]["value"] == 0


def test_an_undefined_correlation_is_a_dash_and_null(asked, files, tmp_path) -> None:
    with asked({question: Reply("3") for question, *_ in FILES["korsts"][1]}):
        results = run_files([files["korsts"]], QUICK, tmp_path / "out")
    assert results[0]["metrics"]["pearson"] == {"value": None, "error": None, "interval": None}
    assert kr_eval_table(results).rows[0][2] == "–"


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("비가 온다.\n\n다른 뜻도 있습니다.", "비가 온다."),
        ("<answer>가</answer>", "가"),
        ("<answer>가</answer> 아니, <answer>나</answer> 아니, <answer> '다' </answer>", "다"),
        ('{"answer": "가"}', "가"),
    ],
)
def test_free_text_is_the_last_marked_answer_or_the_first_paragraph(answer: str, read: str | None) -> None:
    assert TEXT.parse(answer, "") == read
