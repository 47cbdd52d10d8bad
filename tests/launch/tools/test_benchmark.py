"""``malmoi benchmark draw`` with models: round-trip pairs through a local server, toxicity by a classifier."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from corpus.documents.shards import Document, write_shard
from finetune.annotation.draw import TO_ENGLISH
from finetune.annotation.folder import ITEMS, Item, read_items
from finetune.data.files import write_json_lines
from launch.tools.benchmark import _find_toxic
from tests.command import run_command
from tests.corpus.quality.test_toxicity import save as save  # a fixture
from tests.finetune.generative.server import Reply, Server, serving

COUNT = 12  # pairs, of which half are round trips


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = [f"{n}번째 손님은 방이 조용하고 {n % 7}층이라 좋았다." for n in range(60)]
    write_shard(tmp_path / "documents" / "shard-00000.parquet", [Document("d", "reviews", tuple(texts))])
    draw = {"count": COUNT, "translator": "openai-api/loopback/test"}
    settings = {"name": "mine", "task": "sts", "sources": {"s": {"documents": "documents"}}, "draw": draw}
    (tmp_path / "benchmark.yaml").write_text(yaml.safe_dump(settings), "utf-8")
    return tmp_path


def translate(asked: str, before: int) -> Reply:
    text = asked.rpartition("\n")[2]
    if asked.startswith(TO_ENGLISH):
        return Reply(f"<think>영어로</think>\n{text.replace('손님은', 'guest')}")
    return Reply(text.replace("guest", "손님께서는").replace("좋았다", "좋았습니다"))


def environment(server: Server, folder: Path) -> dict[str, str]:
    keys = {"LOOPBACK_BASE_URL": server.address, "LOOPBACK_API_KEY": "sk-planted-0123456789"}
    return {**keys, "INSPECT_CACHE_DIR": str(folder / "inspect")}


def test_round_trips_ask_a_server_twice_for_each_pair(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    with serving(translate) as server:
        for name, value in environment(server, folder).items():
            monkeypatch.setenv(name, value)
        assert run_command(capfd, "benchmark", "draw", str(folder)).code == 0
        pairs = [item for item in read_items(folder) if item.about["pair"] == "round-trip"]
        assert len(pairs) == COUNT // 2 and len(server.requests) == COUNT
        assert all(body["temperature"] == 0 for body in server.bodies)
        for item in pairs:
            expected = item.texts["sentence1"].replace("손님은", "손님께서는").replace("좋았다", "좋았습니다")
            assert item.texts["sentence2"] == expected and "think" not in item.about["english"]
        first = (folder / ITEMS).read_bytes()
        assert run_command(capfd, "benchmark", "draw", str(folder)).code == 0
        assert (folder / ITEMS).read_bytes() == first and len(server.requests) == COUNT


@pytest.mark.slow
def test_a_killed_draw_asks_no_answered_question_again(folder: Path) -> None:
    """Killed by the system while a question into English, and one back, is open; the third run finishes."""
    numbers = count(1)

    def slow_at_times(asked: str, before: int) -> Reply:
        is_stuck = before == 0 and next(numbers) in (5, 10)
        return translate(asked, before)._replace(delay=10 if is_stuck else 0)

    command = [sys.executable, "-m", "launch", "benchmark", "draw", str(folder)]
    with serving(slow_at_times) as server:
        settings = {**os.environ, **environment(server, folder)}
        for answers in (COUNT // 2 - 1, COUNT - 1):
            with subprocess.Popen(command, env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as draw:
                while len(server.answered) < answers and draw.poll() is None:
                    time.sleep(0.05)
                time.sleep(0.3)
                draw.kill()
            assert not (folder / ITEMS).exists()
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        answered = server.answered
    assert len(answered) == COUNT and max(answered.values()) == 1
    assert sum(item.about["pair"] == "round-trip" for item in read_items(folder)) == COUNT // 2


def test_a_text_is_toxic_if_one_of_its_sentences_is(save: Any) -> None:
    from corpus.quality.toxicity import load_classifier, score_sentences

    config = save()
    texts = ["봄비가 내린다.", "고양이가 졸고 있다.", "참 좋은 날이다."]
    scores = score_sentences(texts, load_classifier(config))[:, 1].tolist()
    bar = sorted(scores)[1]
    found = _find_toxic(config.model, {"hate": bar}, [*texts, " ".join(texts), ""])
    assert found == [*(score >= bar for score in scores), True, False]


def test_agreement_of_one_source_is_a_table_of_numbers(tmp_path: Path, capfd: Any) -> None:
    settings = {"name": "mine", "task": "tc", "labels": ["a", "b"]}
    (tmp_path / "benchmark.yaml").write_text(yaml.safe_dump(settings), "utf-8")
    write_json_lines(tmp_path / ITEMS, [Item(f"i{n}", "s", {"text": f"글 {n}"}) for n in range(4)])
    rows = [f"i{n},{worker},{'ab'[n % 2]}" for n in range(4) for worker in ("kim", "lee")]
    (tmp_path / "votes.csv").write_text("\n".join(["item,worker,value", *rows]), "utf-8")
    assert run_command(capfd, "benchmark", "take-in", str(tmp_path), str(tmp_path / "votes.csv")).code == 0
    shown = run_command(capfd, "benchmark", "agree", str(tmp_path)).output
    assert "alpha nominal" in shown and "1.000" in shown and "{" not in shown


@pytest.mark.parametrize(
    ("line", "words"),
    [("drow: {count: 3}", "drow: unknown key"), ("votes: 3", "labels: task tc needs a list of labels")],
)
def test_a_wrong_description_is_one_sentence(tmp_path: Path, capfd: Any, line: str, words: str) -> None:
    (tmp_path / "benchmark.yaml").write_text(f"name: mine\ntask: tc\n{line}\n", "utf-8")
    run_command(capfd, "benchmark", "draw", str(tmp_path)).refused(f"benchmark.yaml: {words}")
