"""Questions to a model: order, cache, retries, broken servers, hidden keys."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from corpus.documents.errors import BadInput
from finetune.generative.client import ask as client_ask
from finetune.generative.client.ask import Answer, Client, Question, _wait_seconds, ask, find_keys
from tests.finetune.generative.conftest import KEY
from tests.finetune.generative.server import Reply, serving

MODEL = "openai-api/loopback/test"
QUICK = Client(MODEL, connections=4, attempts=4)


def questions(count: int) -> list[Question]:
    return [Question(f"q-{n}", (("user", f"질문 {n}"),)) for n in range(count)]


def echo(asked: str, before: int) -> Reply:
    return Reply(f"답 {asked}")


def test_answers_come_in_the_order_of_the_questions_with_their_tokens(point):
    with serving(lambda asked, before: Reply(f"답 {asked}", delay=0.05 if asked.endswith("0") else 0)) as server:
        point(server)
        found = ask(questions(10), QUICK)
    assert [one.text for one in found] == [f"답 질문 {n}" for n in range(10)]
    assert [one.id for one in found] == [f"q-{n}" for n in range(10)]
    assert [(one.tokens_in, one.tokens_out) for one in found] == [(20, len(one.text)) for one in found]
    assert server.most_open <= QUICK.connections
    assert server.bodies[0]["temperature"] == 0 and server.bodies[0]["max_tokens"] == 32


def test_seconds_are_those_of_the_answered_request(point):
    with serving(lambda asked, before: Reply("답", delay=0.05)) as server:
        point(server)
        start = time.monotonic()
        found = ask(questions(2), replace(QUICK, connections=1))
        elapsed = time.monotonic() - start
    assert all(one.seconds >= 0.05 for one in found) and sum(one.seconds for one in found) <= elapsed
    assert [one.seconds for one in found] == [round(one.seconds, 3) for one in found]


def test_costs_are_sums_over_answers_and_unknown_without_any_count():
    counted, uncounted = Answer("a", "답", "stop", 20, 3, 0.25), Answer("b", None, seconds=0.5)
    assert client_ask.sum_costs([counted, counted, uncounted]) == {
        "requests": 3, "unanswered": 1, "tokens_in": 40, "tokens_out": 6, "seconds": 1.0,
    }  # fmt: skip
    assert client_ask.sum_costs([uncounted]) == {
        "requests": 1, "unanswered": 1, "tokens_in": None, "tokens_out": None, "seconds": 0.5,
    }  # fmt: skip
    assert client_ask.sum_costs([replace(counted, seconds=0.26)])["seconds"] == 0.3


def test_what_was_answered_is_never_asked_again(point):
    with serving(echo) as server:
        point(server)
        first = ask(questions(6), QUICK)
        again = ask(questions(8), QUICK)
    assert sorted(server.requests) == sorted(f"질문 {n}" for n in range(8))
    assert again[:6] == first


def test_an_answer_is_on_disk_before_the_next_question_is_sent(point, cache):
    on_disk: list[int] = []

    def script(asked: str, before: int) -> Reply:
        on_disk.append(len([path for path in cache.rglob("*") if path.is_file()]))
        return Reply(f"답 {asked}")

    with serving(script) as server:
        point(server)
        ask(questions(5), replace(QUICK, connections=1))
    assert on_disk == [0, 1, 2, 3, 4]


def test_a_damaged_cache_file_is_asked_again(point, cache):
    with serving(echo) as server:
        point(server)
        first = ask(questions(3), QUICK)
        path = next(path for path in cache.rglob("*") if path.is_file())
        path.write_bytes(path.read_bytes()[:20])
        again = ask(questions(3), QUICK)
    assert [one.text for one in again] == [one.text for one in first]
    assert len(server.requests) == 4


def test_thoughts_have_a_budget_of_their_own(point):
    with serving(echo) as server:
        point(server)
        ask(questions(1), replace(QUICK, thinking_tokens=100))
    body = server.bodies[0]
    assert body.get("max_tokens", body.get("max_completion_tokens")) == 132


def test_other_settings_messages_or_servers_are_other_questions(point):
    with serving(echo) as server, serving(echo) as other:
        point(server)
        ask(questions(2), QUICK)
        ask([replace(one, max_tokens=7) for one in questions(2)], QUICK)
        ask(questions(2), replace(QUICK, model=MODEL + "-2"))
        point(other)
        ask(questions(2), QUICK)
    assert len(server.requests) == 6
    assert len(other.requests) == 2


def test_equal_messages_are_asked_once(point):
    twice = [Question("a", (("user", "하나"),)), Question("b", (("user", "하나"),))]
    with serving(echo) as server:
        point(server)
        first, second = ask(twice, QUICK)
    assert len(server.requests) == 1
    assert (first.id, second.id) == ("a", "b") and first.text == second.text
    assert (first.tokens_in, second.tokens_in, second.tokens_out) == (20, 0, 0)  # paid once


FAILURES = {
    "429": Reply(failure="status", status=429),
    "500": Reply(failure="status", status=500),
    "503": Reply(failure="status", status=503),
    "cut": Reply("긴 답이 중간에 끊긴다", failure="cut"),
    "hang up": Reply(failure="hang up"),
    "no json": Reply(failure="no json"),
    "other json": Reply(failure="other json"),
    "no choices": Reply(failure="no choices"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_temporary_failure_is_retried(name, point):
    with serving(lambda asked, before: FAILURES[name] if before < 2 else Reply("정답")) as server:
        point(server)
        (found,) = ask(questions(1), QUICK)
    assert (found.text, found.error) == ("정답", None)
    assert len(server.requests) == 3


@pytest.mark.parametrize("name", FAILURES)
def test_a_lasting_failure_is_an_error_after_all_attempts_and_asked_by_the_next_command(name, point):
    with serving(lambda asked, before: FAILURES[name] if asked == "질문 1" and before < 4 else Reply("정답")) as server:
        point(server)
        found = ask(questions(3), QUICK)
        assert [one.error is None for one in found] == [True, False, True]
        assert found[1].text is None
        assert server.requests.count("질문 1") == 4
        again = ask(questions(3), QUICK)
    assert [one.text for one in again] == ["정답"] * 3
    assert len(server.requests) == 2 + 4 + 1


def test_the_wait_that_a_server_asks_for_is_kept_up_to_a_limit(point):
    limited = Reply(failure="status", status=429, headers=(("Retry-After", "0.4"),))
    times: list[float] = []

    def script(asked: str, before: int) -> Reply:
        times.append(time.monotonic())
        return limited if before == 0 else Reply("정답")

    with serving(script) as server:
        point(server)
        ask(questions(1), QUICK)
        assert times[1] - times[0] >= 0.4
        limited = Reply(failure="status", status=429, headers=(("Retry-After", "86400"),))
        found = ask(questions(2)[1:], QUICK)
    assert found[0].text == "정답" and times[3] - times[2] < 5


def test_a_slow_attempt_is_given_up_and_retried(point, monkeypatch):
    monkeypatch.setattr(client_ask, "TIMEOUT_SECONDS", 1)
    with serving(lambda asked, before: Reply("정답", delay=0 if before else 3)) as server:
        point(server)
        (found,) = ask(questions(1), QUICK)
    assert found.text == "정답" and len(server.requests) == 2


@pytest.mark.parametrize(
    ("reply", "text"), [(Reply(""), ""), (Reply("도와드릴 수 없습니다.", failure="refusal"), None)]
)
def test_empty_answers_and_refusals_are_answers(reply, text, point):
    with serving(lambda asked, before: reply) as server:
        point(server)
        (found,) = ask(questions(1), QUICK)
    assert len(server.requests) == 1
    assert found.error is None
    assert text is None or found.text == text


def test_a_bad_question_is_not_repeated(point):
    bad = Reply("이 요청은 받을 수 없습니다", failure="status", status=422)
    with serving(lambda asked, before: bad if asked == "질문 1" else Reply("정답")) as server:
        point(server)
        found = ask(questions(3), QUICK)
    assert [one.error is None for one in found] == [True, False, True]
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refused_key_or_model_ends_the_command_after_a_few_questions(status, point):
    said = f"Incorrect API key provided: {KEY}"
    with serving(lambda asked, before: Reply(said, failure="status", status=status)) as server:
        point(server)
        with pytest.raises(BadInput, match="5 questions in a row failed") as caught:
            ask(questions(50), QUICK)
    assert KEY not in str(caught.value) and str(status) in str(caught.value)
    assert len(server.requests) <= 5 + QUICK.connections


def test_a_key_that_is_refused_later_ends_the_command_too(point):
    bad = Reply("revoked", failure="status", status=401)
    with serving(lambda asked, before: Reply("정답") if asked == "질문 0" else bad) as server:
        point(server)
        with pytest.raises(BadInput, match="in a row failed"):
            ask(questions(50), replace(QUICK, connections=1))
    assert len(server.requests) == 6


@pytest.mark.parametrize("status", [403, 404])
def test_a_refusal_of_one_question_costs_only_that_question(status, point):
    bad = Reply("flagged", failure="status", status=status)
    with serving(lambda asked, before: bad if asked == "질문 1" else Reply("정답")) as server:
        point(server)
        found = ask(questions(3), QUICK)
    assert [one.text for one in found] == ["정답", None, "정답"] and str(status) in found[1].error
    assert len(server.requests) == 3


def test_the_message_of_a_content_filter_is_no_answer(point):
    said = {"message": "정치 관련 질문은 거절됩니다", "type": "invalid_request_error", "code": "content_filter"}
    with serving(lambda asked, before: Reply(json.dumps(said), failure="error", status=400)) as server:
        point(server)
        (found,) = ask(questions(1), QUICK)
    assert (found.text, found.stop, found.error) == ("", "content_filter", None)
    assert len(server.requests) == 1


def test_a_server_that_answers_nothing_ends_the_command_after_a_few_questions(point):
    with serving(lambda asked, before: Reply(failure="status", status=500)) as server:
        point(server)
        with pytest.raises(BadInput, match="5 questions in a row failed"):
            ask(questions(50), QUICK)
    assert len(server.requests) <= (5 + QUICK.connections) * QUICK.attempts


def test_a_key_that_a_server_repeats_is_hidden(point):
    with serving(lambda asked, before: Reply(f"당신의 열쇠는 {KEY}입니다")) as server:
        point(server)
        (found,) = ask(questions(1), QUICK)
        assert server.keys == [f"Bearer {KEY}"]
    assert found.text == "당신의 열쇠는 ⟨key⟩입니다"


def test_half_a_surrogate_pair_in_an_answer_can_be_written(point):
    with serving(lambda asked, before: Reply("\ud800 반쪽")) as server:
        point(server)
        (found,) = ask(questions(1), QUICK)
    assert found.text is not None and found.text.encode("utf-8").decode("utf-8").endswith(" 반쪽")


def test_only_keys_and_no_ordinary_words_are_hidden():
    environment = {
        "A_API_KEY": "sk-12345678",
        "HF_TOKEN": "hf_abcdef",
        "EMPTY_KEY": "",
        "SHORT_KEY": "none",
        "HOME": "/home/윤슬",
        "NOTES": "see http://example.com/?page=ordinary-words",
        "OTHER_URL": "?no-address-at-all",
        "MY_BASE_URL": "https://name:password-1@example.com/v1?token=query-secret",
    }
    assert find_keys(environment) == ["token=query-secret", "sk-12345678", "password-1", "hf_abcdef"]


@pytest.mark.parametrize("name", ["", "gpt", "openai-api/", "nobody/model", "openai-api/loopback/test"])
def test_a_model_that_cannot_be_opened_is_one_sentence(name, monkeypatch):
    monkeypatch.delenv("LOOPBACK_BASE_URL", raising=False)
    with pytest.raises(BadInput, match="--model"):
        ask(questions(1), replace(QUICK, model=name))


@pytest.mark.parametrize(
    ("attempt", "header", "seconds"),
    [
        (1, None, 1.0), (2, None, 2.0), (4, None, 8.0), (7, None, 60.0), (1, "3", 3.0), (1, "0.4", 1.0),
        (3, "2.5", 4.0), (1, "86400", 60.0), (2, "Fri, 31 Dec 1999 23:59:59 GMT", 2.0), (2, "-5", 2.0),
    ],
)  # fmt: skip
def test_waits_double_or_are_those_that_the_server_asks_for(
    monkeypatch: pytest.MonkeyPatch, attempt: int, header: str | None, seconds: float
) -> None:
    monkeypatch.setattr(client_ask, "FIRST_WAIT_SECONDS", 1.0)
    monkeypatch.setattr(client_ask, "MAX_WAIT_SECONDS", 60.0)
    error = ConnectionError()
    error.response = SimpleNamespace(headers={} if header is None else {"retry-after": header})
    outcome = SimpleNamespace(exception=lambda: error)
    assert _wait_seconds(SimpleNamespace(attempt_number=attempt, outcome=outcome)) == seconds
