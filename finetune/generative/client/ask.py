"""Questions to a model through Inspect AI, each answered once: kept, tried again within bounds, resumed after a kill.

Inspect knows the providers, and of each which failure is worth another attempt. The attempts themselves are counted
here: a provider's own client would repeat them uncounted, and the wait that a server asks for (Retry-After) is kept.
A question without an answer after all attempts keeps its place, with ``error``; the next run asks it again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from corpus.documents.errors import BadInput
from finetune.generative.client.keys import hide_keys
from finetune.generative.client.models import open_model, reason_of, unwrap, version_of
from finetune.generative.client.store import Answer, Store, digest_of, open_store

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, Model

log = logging.getLogger(__name__)

Messages = Sequence[tuple[Literal["system", "user", "assistant"], str]]
Told = Callable[[Answer], object]
MOST_FAILED = 5  # at the beginning, without any answer: then the server, its address or its key is at fault
REFUSED = {"401": False, "403": True, "404": True}  # key, right, model; whether it may be for the sake of one question
NO_ANSWER = ("content_filter", "model_length")  # stops of Inspect whose text is the server's complaint
GARBLED = ("APIResponseValidationError", "OpenAIResponseError", "RemoteProtocolError")


@dataclass(frozen=True, slots=True)
class Question:
    """``id`` is for people; ``max_tokens`` bounds the answer."""

    id: str
    messages: Messages
    max_tokens: int = 32


@dataclass(frozen=True, slots=True)
class Asking:
    """How to ask.

    Fields:
        model: as Inspect names it: ``openai-api/NAME/MODEL``, ``hf/FOLDER``, ``mockllm/model``.
        connections: requests at a time; of ``hf/`` the size of a batch.
        attempts: at one question; the first wait doubles with each, up to the longest.
        timeout_seconds: of one attempt; not of models in this process.
        arguments: of the provider, such as ``device``.
    """

    model: str
    connections: int = 8
    attempts: int = 6
    first_wait_seconds: float = 1.0
    longest_wait_seconds: float = 60.0
    timeout_seconds: float = 180.0
    temperature: float = 0.0
    arguments: Mapping[str, Any] = field(default_factory=dict)


def ask(questions: Sequence[Question], asking: Asking, store: Path, told: Told = lambda answer: None) -> list[Answer]:
    """The answers in the order of the questions; at temperature 0 equal questions are asked once.

    Args:
        store: file of answers (``.jsonl``), made when missing; what stands in it is not asked again.
        told: hears of each answer as it comes, those of the store first; for progress.

    Raises ``BadInput`` where the model cannot be had, refuses the key, or fails on all of the first questions.
    """
    version = version_of(asking.model)
    keys = [_key(question, asking, version) for question in questions]
    found: dict[str, Answer] = {}
    with open_store(store) as kept:
        left: dict[str, Question] = {}
        for question, key in zip(questions, keys, strict=True):
            if key in found or key in left:
                continue
            if (answer := kept.answers.get(key)) is None:
                left[key] = question
            else:
                found[key] = answer
                told(answer)
        if left:
            _run(_ask_all, left, asking, kept, found, told)
    answers, owners = list[Answer](), dict[str, str]()
    for question, key in zip(questions, keys, strict=True):
        answer = replace(found[key], id=question.id)
        is_first = owners.setdefault(key, question.id) == question.id
        answers.append(answer if is_first else replace(answer, tokens_in=0, tokens_out=0))  # asked once, paid once
    return answers


def _key(question: Question, asking: Asking, version: str) -> str:
    messages = [list(message) for message in question.messages]
    own = question.id if asking.temperature > 0 else ""  # of drawn answers each is another
    return digest_of(asking.model, version, messages, question.max_tokens, asking.temperature, own)


def _run(function: Callable[..., Any], *arguments: Any) -> None:
    """Run to the end, with an error as it was raised and not in a group."""
    import anyio

    try:
        anyio.run(function, *arguments)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


async def _ask_all(
    left: Mapping[str, Question], asking: Asking, store: Store, found: dict[str, Answer], told: Told
) -> None:
    """As many workers as connections take one question after another."""
    import anyio

    model = open_model(asking.model, asking.connections, asking.temperature, asking.arguments)
    waiting: Iterator[tuple[str, Question]] = iter(left.items())
    has_answers, failed = [bool(found)], [0]

    async def work() -> None:
        for key, question in waiting:
            answer = await _ask_one(model, question, asking)
            found[key] = answer
            if answer.error is None:
                store.add(key, answer)
                has_answers[0] = True
            else:
                failed[0] += 1
                log.warning("%s: no answer after %d attempts: %s", question.id, answer.attempts, answer.error)
            if answer.stop in REFUSED and not (has_answers[0] and REFUSED[answer.stop]):
                raise BadInput(f"{asking.model}: {answer.error}; check the model's name, the address and the key")
            if not has_answers[0] and failed[0] >= min(MOST_FAILED, len(left)):
                raise BadInput(f"{asking.model}: the first {failed[0]} questions all failed; {answer.error}")
            told(answer)

    async with anyio.create_task_group() as group:
        for _ in range(min(asking.connections, len(left))):
            group.start_soon(work)


async def _ask_one(model: Model, question: Question, asking: Asking) -> Answer:
    """The answer, or what the last attempt failed of; its ``stop`` is the status where the server refuses (REFUSED)."""
    import anyio
    from inspect_ai.model import GenerateConfig

    began, clock = time.time(), time.monotonic()
    messages, config = chat(question.messages), GenerateConfig(max_tokens=question.max_tokens)
    for attempt in range(1, asking.attempts + 1):
        try:
            with anyio.fail_after(None if is_local(asking.model) else asking.timeout_seconds):
                output = await model.generate(messages, config=config)
            if output.error or not output.choices:
                raise JSONDecodeError(output.error or "an answer without choices", "", 0)
            break
        except Exception as raised:  # each provider has its own; the question is counted, never lost
            error = unwrap(raised)
            status = getattr(error, "status_code", None)
            reason = reason_of(error)
            if str(status) in REFUSED:
                said = f"the server refused with {status}; {reason}"
                return Answer(question.id, None, str(status), began=began, attempts=attempt, error=said)
            if attempt == asking.attempts or not _is_worth_another(model, error):
                seconds = time.monotonic() - clock
                return Answer(question.id, None, began=began, seconds=seconds, attempts=attempt, error=reason)
            await anyio.sleep(_wait(error, attempt, asking))
    usage = output.usage
    tokens = (usage.input_tokens, usage.output_tokens) if usage else (None, None)
    stop, seconds = output.choices[0].stop_reason, round(time.monotonic() - clock, 3)
    text = "" if stop in NO_ANSWER else hide_keys(output.completion)
    return Answer(question.id, text, stop, tokens[0], tokens[1], round(began, 3), seconds, attempt)


def chat(messages: Messages) -> list[ChatMessage]:
    """Turns as Inspect has them."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

    kinds: dict[str, Any] = {"user": ChatMessageUser, "assistant": ChatMessageAssistant, "system": ChatMessageSystem}
    return [kinds[role](content=text) for role, text in messages]


def is_local(model: str) -> bool:
    """Whether the model runs in this process, where there is nothing to wait for but its own work."""
    return model.startswith(("hf/", "mockllm/", "vllm/", "sglang/", "llama-cpp-python/", "transformer_lens/"))


def _is_worth_another(model: Model, error: Exception) -> bool:
    """What Inspect calls so of this provider; time that ran out; an answer that is none (a gateway's page, cut off)."""
    garbled = isinstance(error, JSONDecodeError | TimeoutError) or type(error).__name__ in GARBLED
    return garbled or bool(model.api.should_retry(error))


def _wait(error: Exception, attempt: int, asking: Asking) -> float:
    """Seconds before the next attempt: as the server asks for, else doubling; never beyond the longest."""
    doubled = asking.first_wait_seconds * 2.0 ** (attempt - 1)
    headers = getattr(getattr(error, "response", None), "headers", {})
    try:
        asked = float(headers.get("retry-after", 0))
    except ValueError:  # a date
        asked = 0.0
    return min(max(doubled, asked), asking.longest_wait_seconds)
