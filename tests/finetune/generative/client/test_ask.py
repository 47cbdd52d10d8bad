"""Questions to a model: bounds, faults of servers, what is kept and what is hidden."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from corpus.documents.errors import BadInput
from finetune.generative.client.ask import Asking, Question, ask
from finetune.generative.client.keys import keys_in
from finetune.generative.client.store import Answer, busy_seconds, open_store
from tests.finetune.generative.conftest import KEY
from tests.finetune.generative.server import Reply, serving

MODEL = "openai-api/loopback/test"
QUICK = Asking(MODEL, connections=4, attempts=4, timeout_seconds=5, first_wait_seconds=0.01, longest_wait_seconds=0.2)


def questions(count: int) -> list[Question]:
    return [Question(f"q-{n}", [("user", f"질문 {n}")]) for n in range(count)]


def echo(asked: str, before: int) -> Reply:
    return Reply(f"답 {asked}")


def test_answers_come_in_the_order_of_the_questions_with_their_tokens(point, tmp_path):
    with serving(lambda asked, before: Reply(f"답 {asked}", delay=0.05 if asked.endswith("0") else 0)) as server:
        point(server)
        found = ask(questions(10), QUICK, tmp_path / "answers.jsonl")
    assert [one.text for one in found] == [f"답 질문 {n}" for n in range(10)]
    assert [one.id for one in found] == [f"q-{n}" for n in range(10)]
    assert [(one.tokens_in, one.tokens_out) for one in found] == [(20, len(one.text)) for one in found]
    assert server.most_open <= QUICK.connections
    assert server.bodies[0]["temperature"] == 0 and server.bodies[0]["max_tokens"] == 32


def test_what_was_answered_is_never_asked_again(point, tmp_path):
    journal = tmp_path / "answers.jsonl"
    with serving(echo) as server:
        point(server)
        first = ask(questions(6), QUICK, journal)
        with journal.open("ab") as file:
            file.write(b'{"key": "torn')
        again = ask(questions(8), QUICK, journal)
    assert sorted(server.requests) == sorted(f"질문 {n}" for n in range(8))
    assert [one.text for one in again[:6]] == [one.text for one in first]
    assert [one.is_new for one in again] == [False] * 6 + [True] * 2
    assert all(json.loads(line)["text"] for line in journal.read_text("utf-8").splitlines())


def test_other_settings_messages_or_servers_are_other_questions(point, tmp_path):
    journal = tmp_path / "answers.jsonl"
    with serving(echo) as server, serving(echo) as other:
        point(server)
        ask(questions(2), QUICK, journal)
        ask([replace(one, max_tokens=7) for one in questions(2)], QUICK, journal)
        ask(questions(2), replace(QUICK, model=MODEL + "-2"), journal)
        point(other)
        ask(questions(2), QUICK, journal)
    assert len(server.requests) == 6
    assert len(other.requests) == 2


def test_equal_messages_are_asked_once_at_temperature_0_and_each_time_above(point, tmp_path):
    twice = [Question("a", [("user", "하나")]), Question("b", [("user", "하나")])]
    with serving(echo) as server:
        point(server)
        assert [one.id for one in ask(twice, QUICK, tmp_path / "a")] == ["a", "b"]
        assert len(server.requests) == 1
        ask(twice, replace(QUICK, temperature=0.7), tmp_path / "b")
        assert len(server.requests) == 3


FAULTS = {
    "429": Reply(fault="status", status=429),
    "500": Reply(fault="status", status=500),
    "503": Reply(fault="status", status=503),
    "cut": Reply("긴 답이 중간에 끊긴다", fault="cut"),
    "hang up": Reply(fault="hang up"),
    "no json": Reply(fault="no json"),
    "other json": Reply(fault="other json"),
    "no choices": Reply(fault="no choices"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_passing_fault_is_tried_again(name, point, tmp_path):
    with serving(lambda asked, before: FAULTS[name] if before < 2 else Reply("정답")) as server:
        point(server)
        (found,) = ask(questions(1), QUICK, tmp_path / "answers.jsonl")
    assert (found.text, found.error, found.attempts) == ("정답", None, 3)
    assert len(server.requests) == 3


@pytest.mark.parametrize("name", FAULTS)
def test_a_lasting_fault_is_an_error_after_so_many_attempts_and_asked_by_the_next_command(name, point, tmp_path):
    journal = tmp_path / "answers.jsonl"
    with serving(lambda asked, before: FAULTS[name] if asked == "질문 1" and before < 4 else Reply("정답")) as server:
        point(server)
        found = ask(questions(3), QUICK, journal)
        assert [one.error is None for one in found] == [True, False, True]
        assert (found[1].text, found[1].attempts) == (None, 4)
        assert server.requests.count("질문 1") == 4
        again = ask(questions(3), QUICK, journal)
    assert [one.text for one in again] == ["정답"] * 3
    assert len(server.requests) == 2 + 4 + 1


def test_the_wait_that_a_server_asks_for_is_kept_up_to_a_bound(point, tmp_path):
    limited = Reply(fault="status", status=429, headers=(("Retry-After", "0.4"),))
    times: list[float] = []

    def script(asked: str, before: int) -> Reply:
        times.append(time.monotonic())
        return limited if before == 0 else Reply("정답")

    with serving(script) as server:
        point(server)
        ask(questions(1), replace(QUICK, longest_wait_seconds=5), tmp_path / "a")
        assert times[1] - times[0] >= 0.4
        limited = Reply(fault="status", status=429, headers=(("Retry-After", "86400"),))
        found = ask(questions(2)[1:], QUICK, tmp_path / "a")
    assert found[0].text == "정답"


def test_a_slow_attempt_is_given_up_and_tried_again(point, tmp_path):
    with serving(lambda asked, before: Reply("정답", delay=0 if before else 3)) as server:
        point(server)
        hasty = replace(QUICK, timeout_seconds=0.5)
        (found,) = ask(questions(1), hasty, tmp_path / "a")
    assert (found.text, found.attempts) == ("정답", 2)


@pytest.mark.parametrize(("reply", "text"), [(Reply(""), ""), (Reply("도와드릴 수 없습니다.", fault="refusal"), None)])
def test_empty_answers_and_refusals_are_answers(reply, text, point, tmp_path):
    with serving(lambda asked, before: reply) as server:
        point(server)
        (found,) = ask(questions(1), QUICK, tmp_path / "answers.jsonl")
    assert len(server.requests) == 1
    assert found.error is None
    assert text is None or found.text == text


def test_a_bad_question_is_not_repeated(point, tmp_path):
    bad = Reply("이 요청은 받을 수 없습니다", fault="status", status=422)
    with serving(lambda asked, before: bad if asked == "질문 1" else Reply("정답")) as server:
        point(server)
        found = ask(questions(3), QUICK, tmp_path / "a")
    assert [one.error is None for one in found] == [True, False, True]
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refused_key_or_model_ends_the_command_at_once(status, point, tmp_path):
    said = f"Incorrect API key provided: {KEY}"
    with serving(lambda asked, before: Reply(said, fault="status", status=status)) as server:
        point(server)
        with pytest.raises(BadInput, match="refused") as caught:
            ask(questions(50), QUICK, tmp_path / "answers.jsonl")
    assert KEY not in str(caught.value)
    assert len(server.requests) <= QUICK.connections


def test_a_refusal_of_one_question_among_answers_costs_only_that_question(point, tmp_path):
    """As servers that moderate do; a key that is refused later, though, is refused for all the rest."""
    one_at_a_time = replace(QUICK, connections=1)
    for status, is_counted in ((403, True), (404, True), (401, False)):
        bad = Reply("flagged", fault="status", status=status)
        with serving(lambda asked, before, bad=bad: bad if asked == "질문 1" else Reply("정답")) as server:
            point(server)
            if is_counted:
                found = ask(questions(3), one_at_a_time, tmp_path / str(status))
                assert [one.text for one in found] == ["정답", None, "정답"]
                assert f"refused with {status}" in found[1].error
            else:
                with pytest.raises(BadInput, match="refused with 401"):
                    ask(questions(3), one_at_a_time, tmp_path / str(status))
        assert server.requests == ["질문 0", "질문 1", "질문 2"][: 2 + is_counted]


def test_what_a_server_says_of_a_prompt_that_it_filters_is_no_answer(point, tmp_path):
    said = {"message": "정치 관련 질문은 거절됩니다", "type": "invalid_request_error", "code": "content_filter"}
    with serving(lambda asked, before: Reply(json.dumps(said), fault="error", status=400)) as server:
        point(server)
        (found,) = ask(questions(1), QUICK, tmp_path / "answers.jsonl")
    assert (found.text, found.stop, found.error) == ("", "content_filter", None)
    assert len(server.requests) == 1


def test_a_server_that_answers_nothing_ends_the_command_after_a_few_questions(point, tmp_path):
    with serving(lambda asked, before: Reply(fault="status", status=500)) as server:
        point(server)
        with pytest.raises(BadInput, match="the first 5 questions all failed"):
            ask(questions(50), QUICK, tmp_path / "answers.jsonl")
    assert len(server.requests) <= (5 + QUICK.connections) * QUICK.attempts


def test_a_key_that_a_server_repeats_is_hidden(point, tmp_path):
    journal = tmp_path / "answers.jsonl"
    with serving(lambda asked, before: Reply(f"당신의 열쇠는 {KEY}입니다")) as server:
        point(server)
        (found,) = ask(questions(1), QUICK, journal)
        assert server.keys == [f"Bearer {KEY}"]
    assert found.text == "당신의 열쇠는 ⟨key⟩입니다"
    assert KEY not in journal.read_text("utf-8")


def test_only_keys_and_no_ordinary_words_are_hidden():
    environment = {
        "A_API_KEY": "sk-12345678",
        "HF_TOKEN": "hf_abcdef",
        "EMPTY_KEY": "",
        "SHORT_KEY": "none",
        "HOME": "/home/윤슬",
    }
    assert keys_in(environment) == ["sk-12345678", "hf_abcdef"]


@pytest.mark.parametrize("name", ["", "gpt", "openai-api/", "nobody/model", "openai-api/loopback/test"])
def test_a_model_that_cannot_be_opened_is_one_sentence(name, monkeypatch, tmp_path):
    monkeypatch.delenv("LOOPBACK_BASE_URL", raising=False)
    with pytest.raises(BadInput, match="--model"):
        ask(questions(1), replace(QUICK, model=name), tmp_path / "a")


def test_the_mock_needs_no_network(monkeypatch, tmp_path):
    tiktoken = pytest.importorskip("tiktoken")

    def download(*_: object) -> object:
        raise ConnectionError("no network")

    monkeypatch.setattr(tiktoken, "get_encoding", download)
    (found,) = ask(questions(1), Asking("mockllm/model"), tmp_path / "answers.jsonl")
    assert (found.error, found.text) == (None, "Default output from mockllm/model")
    assert (found.tokens_in, found.tokens_out) == (len("질문 0"), len(found.text))


def test_two_commands_do_not_ask_into_one_file(tmp_path):
    with open_store(tmp_path / "a"), pytest.raises(BadInput, match="another command"), open_store(tmp_path / "a"):
        pass


def test_seconds_side_by_side_count_once():
    answers = [
        Answer("a", "", began=10, seconds=2),
        Answer("b", "", began=11, seconds=3),
        Answer("c", "", began=20, seconds=1),
    ]
    assert busy_seconds(answers) == 5
