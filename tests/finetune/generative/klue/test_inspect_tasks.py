"""The KLUE tasks in Inspect AI: found by name, gold answers score 100, wrong ones are counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from finetune.generative.client.ask import Client
from finetune.generative.klue.run import load_prompted_task, run
from finetune.task_names import TASK_NAMES
from tests.finetune.generative.conftest import KEY
from tests.finetune.generative.server import Reply, serving

MODEL = "openai-api/loopback/test"
NAMES = [f"klue_{name.removeprefix('klue-').replace('-', '_')}" for name in TASK_NAMES]


@pytest.fixture(autouse=True)
def no_search_for_our_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """For its logs, Inspect would read the file lists of all installed packages at each evaluation."""
    monkeypatch.setattr("inspect_ai._util.package.packages_distributions", dict, raising=False)


def answered(texts: dict[str, str], spoil: str = "") -> Any:
    """A mock model that knows what to say to a last user turn."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def say(messages: Any, *_: Any) -> Any:
        output = ModelOutput.from_content("mock", spoil or texts[messages[-1].text])
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    return get_model("mockllm/model", custom_outputs=say, memoize=False)


@pytest.mark.parametrize(("name", "inspect_name"), zip(TASK_NAMES, NAMES, strict=True))
def test_gold_answers_reach_100_in_inspect_and_silence_parses_nowhere(name, inspect_name, klue, tmp_path):
    from inspect_ai import eval as evaluate

    from launch.tools import inspect_tasks

    prompted = load_prompted_task(name, klue, limit=6)
    texts = {prompted.messages(e)[-1][1]: prompted.prompt.render_gold(e) for e in prompted.data.scored}
    made = [getattr(inspect_tasks, inspect_name)(data=str(klue), limit=6) for _ in range(2)]
    logs = []
    for one, spoil in zip(made, ("", " "), strict=True):
        logs += evaluate(one, model=answered(texts, spoil), log_dir=str(tmp_path), display="none")
    assert [log.status for log in logs] == ["success"] * 2
    right, silent = ({key: found.value for key, found in log.results.scores[0].metrics.items()} for log in logs)
    assert right["parse_rate"] == 100
    assert right[prompted.task.metrics[0]] >= 99.5  # of KLUE-NER; all others 100
    assert silent["parse_rate"] == 0
    assert not silent[prompted.task.metrics[0]] >= 50  # nan for KLUE-STS: all answers count as the mean of the golds


@pytest.mark.slow
@pytest.mark.skipif(
    not entry_points(group="inspect_ai").select(name="malmoi"),
    reason="installed before it had entry points for Inspect",
)
def test_inspect_finds_the_tasks_by_name_and_its_logs_have_no_key(klue, point, tmp_path):
    with serving(lambda asked, before: Reply(f"함의 {KEY}" if before else "함의")) as server:
        point(server)
        subprocess.run(
            [
                Path(sys.executable).with_name("inspect"), "eval", "malmoi/klue_nli", "--model", MODEL,
                "-T", f"data={klue}", "-T", "limit=4", "--log-dir", str(tmp_path), "--log-format", "json",
            ],
            check=True, env=dict(os.environ), capture_output=True, timeout=120,
        )  # fmt: skip
    assert len(server.requests) == 4
    (path,) = tmp_path.glob("*.json")
    found = json.loads(path.read_text("utf-8"))
    assert found["eval"]["task_registry_name"] == "malmoi/klue_nli"
    assert KEY not in path.read_text("utf-8")


def test_inspect_and_malmoi_llm_give_the_same_scores_for_the_same_answers(klue, point, tmp_path):
    from inspect_ai import eval as evaluate

    from launch.tools import inspect_tasks

    prompted = load_prompted_task("klue-ner", klue, limit=8)
    golds = [(prompted.messages(e)[-1][1], prompted.prompt.render_gold(e)) for e in prompted.data.scored]
    said = {
        asked: (gold, gold.split("\n")[0], "잘 모르겠습니다")[number % 3] for number, (asked, gold) in enumerate(golds)
    }
    with serving(lambda asked, before: Reply(said[asked])) as server:
        point(server)
        (ours,) = run([prompted], Client(MODEL), tmp_path)
        made = inspect_tasks.klue_ner(data=str(klue), limit=8)
        (log,) = evaluate(made, model=MODEL, log_dir=str(tmp_path), display="none")
    assert {body["temperature"] for body in server.bodies} == {0}
    theirs = {name: found.value for name, found in log.results.scores[0].metrics.items()}
    assert 0 < ours["scores"][prompted.task.metrics[0]] < 100 and 0 < ours["parse_rate"] < 100
    assert theirs == pytest.approx({**ours["scores"], "parse_rate": ours["parse_rate"]})


@pytest.mark.slow
def test_inspect_eval_of_a_causal_model_is_that_of_malmoi_llm(tiny, klue, tmp_path):
    """The command of a user, without options: the same greedy answers to the same plain text, and the same scores."""
    command = ["inspect", "eval", "malmoi/klue_ner", "--model", f"hf/{tiny}", "-T", f"data={klue}", "-T", "limit=4"]
    done = subprocess.run(
        [Path(sys.executable).with_name(command[0]), *command[1:], "--log-dir", str(tmp_path), "--log-format", "json"],
        env=dict(os.environ), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (path,) = tmp_path.glob("*.json")
    log = json.loads(path.read_text("utf-8"))
    (ours,) = run([load_prompted_task("klue-ner", klue, limit=4)], Client(f"hf/{tiny}"), tmp_path / "out")
    (lines,) = (tmp_path / "out").rglob("answers.jsonl")
    answers = {line["guid"]: line["answer"] for line in map(json.loads, lines.read_text("utf-8").splitlines())}
    assert {sample["id"]: sample["output"]["choices"][0]["message"]["content"] for sample in log["samples"]} == answers
    assert len(set(answers.values())) > 1
    theirs = {name: found["value"] for name, found in log["results"]["scores"][0]["metrics"].items()}
    assert theirs == pytest.approx({**ours["scores"], "parse_rate": ours["parse_rate"]})
