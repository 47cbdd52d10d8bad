"""``malmoi llm``: from examples to scores in the format of encoders, after kills and bad answers."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import shutil
import signal
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from finetune.generative.client.ask import Client
from finetune.generative.klue.run import PromptedTask, _report, load_prompted_task, run
from finetune.score.compare import compare, find_trained, pair_up
from finetune.score.scores import score_file
from launch.cli import app
from launch.errors import is_user_error
from tests.finetune.generative.conftest import KEY
from tests.finetune.generative.server import Reply, Server, serving

MODEL = "openai-api/loopback/test"
QUICK = Client(MODEL, connections=4, attempts=3)


def golds(prompted_tasks: list[PromptedTask]) -> dict[str, str]:
    """The last user turn of each question to the answer that is right."""
    return {
        prompted.messages(example)[-1][1]: prompted.prompt.render_gold(example)
        for prompted in prompted_tasks
        for example in prompted.data.scored
    }


def folder(out: Path, task: str, settings: str = "0-shot") -> Path:
    return out / "finetune" / task / "openai-api-loopback-test" / settings / "seed-1"


def test_right_answers_score_100_and_cost_what_the_tokens_cost(klue, point, tmp_path):
    prompted_tasks = [load_prompted_task(name, klue, limit=12) for name in ("ynat", "klue-nli")]
    right = golds(prompted_tasks)
    with serving(lambda asked, before: Reply(right[asked])) as server:
        point(server)
        ynat, nli = run(prompted_tasks, QUICK, tmp_path, prices=(1.0, 2.0))
    assert ynat["scores"]["macro_f1"] == nli["scores"]["accuracy"] == 100
    assert ynat["parse_rate"] == 100 and ynat["n"] == 12 and ynat["unanswered"] == 0
    letters = sum(len(right[m[-1][1]]) for m in map(prompted_tasks[0].messages, prompted_tasks[0].data.scored))
    assert ynat["tokens"] == {"in": 12 * 20, "out": letters, "told_for": 12}
    assert ynat["price"] == pytest.approx((240 * 1 + letters * 2) / 1e6)
    assert ynat["split"].startswith("dev; 12 of ")
    rescored = score_file("ynat", folder(tmp_path, "ynat") / "predictions.jsonl")
    assert rescored.scores == ynat["scores"]


UGLY = {
    "정치": lambda word: f"**{word}**",
    "경제": lambda word: f"정답: {word}",
    "사회": lambda word: f"이 기사는 {word} 분야입니다.",
    "생활문화": lambda word: unicodedata.normalize("NFD", word),
    "IT과학": lambda word: "ＩＴ과학",
    "세계": lambda word: f"```\n{word}\n```",
    "스포츠": lambda word: f"“{word}”\n\n설명: 경기 결과를 다루기 때문입니다.",
}


def test_answers_in_markdown_sentences_full_width_and_nfd_are_understood(klue, point, tmp_path):
    prompted = load_prompted_task("ynat", klue, limit=40)
    right = golds([prompted])
    with serving(lambda asked, before: Reply(UGLY[right[asked]](right[asked]))) as server:
        point(server)
        (found,) = run([prompted], QUICK, tmp_path)
    assert (found["scores"]["macro_f1"], found["parse_rate"]) == (100, 100)


def test_refusals_empty_answers_and_lasting_failures_are_wrong_counted_and_never_left_out(klue, point, tmp_path):
    prompted = load_prompted_task("klue-nli", klue, limit=20)
    right, place = golds([prompted]), {}
    for number, asked in enumerate(golds([prompted])):
        place[asked] = number

    def script(asked: str, before: int) -> Reply:
        bad = {
            3: Reply("죄송하지만 답변을 드릴 수 없습니다."),
            4: Reply(""),
            5: Reply("답할 수 없습니다", failure="refusal"),
            6: Reply(failure="status", status=500),
            7: Reply(failure="cut"),
            8: Reply(failure="no json"),
            9: Reply("함의 또는 모순"),
        }
        return bad.get(place[asked], Reply(right[asked]))

    with serving(script) as server:
        point(server)
        (found,) = run([prompted], QUICK, tmp_path)
    assert found["n"] == 20
    assert found["scores"]["accuracy"] == pytest.approx(100 * 13 / 20)
    assert found["parse_rate"] == pytest.approx(100 * 13 / 20)
    assert found["unanswered"] == 3
    answers = [
        json.loads(line) for line in (folder(tmp_path, "klue-nli") / "answers.jsonl").read_text("utf-8").splitlines()
    ]
    assert [one["is_parsed"] for one in answers[3:10]] == [False] * 7
    assert [bool(one["error"]) for one in answers[3:10]] == [False, False, False, True, True, True, False]


def work(klue: Path, out: Path, environment: dict[str, str]) -> None:
    """One command, in a process of its own."""
    os.environ.update(environment)
    prompted_tasks = [load_prompted_task(name, klue, limit=24) for name in ("ynat", "klue-nli")]
    run(prompted_tasks, QUICK, out)


def cached(cache: Path) -> set[str]:
    """The answers that are complete in Inspect's cache, by file."""
    complete = set()
    for path in cache.rglob("*"):
        if path.is_file():
            try:
                pickle.loads(path.read_bytes())
            except (EOFError, pickle.UnpicklingError):
                continue
            complete.add(path.name)
    return complete


@pytest.mark.slow
def test_a_run_killed_ten_times_ends_alike_and_asks_no_answered_question_again(klue, point, tmp_path, cache):
    prompted_tasks = [load_prompted_task(name, klue, limit=24) for name in ("ynat", "klue-nli")]
    total = len({m.messages(e)[-1][1] for m in prompted_tasks for e in m.data.scored})
    words = ("정치", "함의", "**모순**", "모르겠습니다", "정답은 경제입니다", "")

    def script(asked: str, before: int) -> Reply:
        return Reply(words[sum(asked.encode()) % len(words)], delay=0.01)

    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(
        ["finetune.generative.klue.run", "inspect_ai.model", "openai", "finetune.generative.prompts.labels"]
    )
    out, whole = tmp_path / "killed", tmp_path / "whole"
    with serving(script) as server:
        point(server)
        names = ("LOOPBACK_BASE_URL", "LOOPBACK_API_KEY", "INSPECT_CACHE_DIR")
        environment = {name: os.environ[name] for name in names}
        run(prompted_tasks, QUICK, whole)
        server.requests.clear()
        shutil.rmtree(cache)
        for moment in range(10):
            before, first = cached(cache), len(server.requests)
            process = forks.Process(target=work, args=(klue, out, environment))
            process.start()
            wait_for(process, server, moment, folder(out, "klue-nli") / "predictions.jsonl")
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            asked = server.requests[first:]
            assert len(asked) == len(set(asked)) <= total - len(before)
            assert before <= cached(cache)
            time.sleep(0.05)
        process = forks.Process(target=work, args=(klue, out, environment))
        process.start()
        process.join()
        assert process.exitcode == 0
    assert 0 <= len(server.requests) - total <= 10 * QUICK.connections  # those under way when it was killed
    same_files(out, whole)


def wait_for(process: Any, server: Server, moment: int, last: Path) -> None:
    """Wait for a number of requests; the last time for the first of the last files."""
    wanted = len(server.requests) + 1 + 5 * (moment > 0) - moment % 3
    while process.is_alive() and len(server.requests) < wanted:
        time.sleep(0.002)
    while moment == 9 and process.is_alive() and not last.is_file():
        time.sleep(0.001)


def same_files(one: Path, other: Path) -> None:
    """Both runs wrote the same, except the seconds."""
    for task in ("ynat", "klue-nli"):
        for name in ("predictions.jsonl", "answers.jsonl", "errors.json"):
            assert (folder(one, task) / name).read_bytes() == (folder(other, task) / name).read_bytes()
        places = [folder(at, task) / "scores.json" for at in (one, other)]
        first, second = (json.loads(place.read_text("utf-8")) for place in places)
        assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_a_second_command_asks_nothing_and_a_higher_limit_only_what_is_new(klue, point, tmp_path):
    with serving(lambda asked, before: Reply("정치")) as server:
        point(server)
        for limit in (10, 10, 15):
            run([load_prompted_task("ynat", klue, limit=limit)], QUICK, tmp_path)
    assert len(server.requests) == len(set(server.requests)) <= 15 + 10


def test_compare_tests_two_models_and_refuses_other_examples(klue, point, tmp_path):
    prompted = load_prompted_task("klue-nli", klue, limit=30)
    right = golds([prompted])
    with serving(lambda asked, before: Reply(right[asked])) as server:
        point(server)
        run([prompted], QUICK, tmp_path)
    with serving(lambda asked, before: Reply("중립")) as server:
        point(server)
        run([prompted], Client("openai-api/loopback/other", connections=4), tmp_path)
    found = compare(pair_up(find_trained(tmp_path), None))
    assert [one.metric for one in found] == ["accuracy"]
    neutral = sum(example.gold == "neutral" for example in prompted.data.scored)
    assert abs(found[0].difference.value) == pytest.approx(100 - 100 * neutral / 30)
    assert found[0].is_real


def test_the_key_is_in_no_file_and_on_no_screen(klue, point, tmp_path, caplog, capfd):
    def script(asked: str, before: int) -> Reply:
        said = f"Incorrect API key provided: {KEY}"
        return Reply(said, failure="status", status=500) if len(asked) % 7 == 3 else Reply(f"정치 {KEY}")

    with serving(script) as server:
        point(server)
        run([load_prompted_task("klue-nli", klue, limit=8)], QUICK, tmp_path / "out")
        assert server.keys[0] == f"Bearer {KEY}"
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) >= 4
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert KEY not in caplog.text + "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["nli", "--model", MODEL, "--data", "malmoi:sample", "--method", "likelihood"],
            "gives no probabilities",
        ),
        (["ynat", "--model", MODEL], "--data"),
        (["ynat", "--model", MODEL, "--data", "nowhere"], "no such folder"),
        (["ynta", "--model", MODEL, "--data", "malmoi:sample"], "did you mean"),
        (["ynat", "--model", "gpt", "--data", "malmoi:sample"], "expected PROVIDER/MODEL"),
        (["ynat", "--model", "openai-api/nowhere/test", "--data", "malmoi:sample"], "NOWHERE"),
        (["ynat", "--model", "hf/./nowhere", "--data", "malmoi:sample"], "no such folder"),
        (["ynat", "--model", MODEL, "--data", "malmoi:sample", "--shots", "100000"], "only"),
    ],
)
def test_bad_input_is_one_sentence(arguments, said, tmp_path):
    found = CliRunner().invoke(app, ["llm", *arguments, "--out", str(tmp_path), "--limit", "3"])
    assert is_user_error(found.exception)
    assert said in str(found.exception)
    assert "\n" not in str(found.exception)


def test_without_inspect_one_sentence_says_what_to_install(monkeypatch, tmp_path):
    import launch.errors

    there = launch.errors.find_spec
    monkeypatch.setattr(launch.errors, "find_spec", lambda name: None if name == "inspect_ai" else there(name))
    arguments = ["ynat", "--model", MODEL, "--data", "malmoi:sample", "--out", str(tmp_path)]
    found = CliRunner().invoke(app, ["llm", *arguments])
    assert str(found.exception) == "malmoi llm needs inspect_ai: pip install 'malmoi[llm]'"


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        (
            {
                "method": "generation",
                "parse_rate": 97.26,
                "unanswered": 0,
                "cut_answers": 2,
                "answers": {"wrong": 3, "empty": 1},
            },
            ["ynat: 40 examples, 97.3 % of the answers", "ynat: 3 wrong, 1 empty; 2 answers ended at the limit"],
        ),
        ({"method": "likelihood", "unanswered": 0, "cut": 0}, ["ynat: 40 examples"]),
        ({"method": "likelihood", "unanswered": 0, "cut": 3}, ["ynat: 40 examples", "ynat: 3 questions are longer"]),
        (
            {"method": "generation", "parse_rate": 0.0, "unanswered": 1, "answers": {"wrong": 0}, "cut_answers": 0},
            ["ynat: 40 examples, 0.0 %", "ynat: 0 wrong; 0 answers", "ynat: 1 of 40"],
        ),
    ],
)
def test_the_log_says_how_the_questions_went(caplog: pytest.LogCaptureFixture, result: dict, lines: list[str]) -> None:
    caplog.set_level("INFO")
    _report({"task": "ynat", "n": 40, **result})
    assert len(caplog.messages) == len(lines)
    assert all(message.startswith(line) for message, line in zip(caplog.messages, lines, strict=True))
