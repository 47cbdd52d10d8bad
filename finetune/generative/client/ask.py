"""Send questions to a model through Inspect AI, which caches the answers and retries failed requests.

```
questions ─ equal ones once ─▶ Inspect: cache ─ miss ─▶ provider, with retries ─▶ cache ─▶ answers in the given order
```
Inspect writes an answer to its cache (``INSPECT_CACHE_DIR``, by default in the user's cache folder) before the next
question is sent. Run again after a kill, a command therefore sends only the questions that have no answer yet. The
cache is not in the output folder because it holds pickles, which would run code from a folder that someone else made.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from corpus.documents.errors import BadInput
from finetune.generative.client.models import format_reason, hide_keys, is_local, open_model, read_version
from finetune.generative.prompts.prompt import Message

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, Model

log = logging.getLogger(__name__)

MAX_FAILURES_IN_A_ROW = 5  # then the server, its address or the key is the problem, not the questions
TIMEOUT_SECONDS = 180  # of one request
NO_TEXT = ("content_filter", "model_length")  # stop reasons whose text is the server's message, not an answer


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Fields:
        id: for logs and results.
        messages: role and text of each turn; the last one is the user's.
        max_tokens: limit on the length of the answer.
        choices: the answers that the likelihood method compares; () for generated text.
        temperature: of generated text; ``hf/`` models always take the most likely token.
    """

    id: str
    messages: tuple[Message, ...]
    max_tokens: int = 32
    choices: tuple[str, ...] = ()
    temperature: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question.

    Fields:
        text: as the model wrote it, with keys hidden; None if no answer came, and ``error`` gives the reason.
        stop: the reason why it ended, from Inspect: "stop", "max_tokens", "content_filter" …
        tokens_in, tokens_out: as the provider counts them; None if it does not.
        seconds: duration of the successful request.
    """

    id: str
    text: str | None
    stop: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    seconds: float = 0.0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """A model and how to reach it.

    Fields:
        model: its Inspect name: ``openai-api/NAME/MODEL``, ``hf/FOLDER`` and others.
        connections: concurrent requests; for ``hf/`` models the batch size.
        attempts: maximum number of requests per question.
        thinking_tokens: budget for thoughts, in addition to the limit of an answer.
        is_likelihood: compare ``Question.choices`` instead of generating text (``hf/`` models only).
    """

    model: str
    connections: int = 8
    attempts: int = 6
    is_likelihood: bool = False
    thinking_tokens: int = 0


def ask(questions: Sequence[Question], client: Client) -> list[Answer]:
    """The answers in the order of the questions; equal questions are sent once.

    ``BadInput`` if the model cannot be opened or several questions in a row fail. Any other question without an answer
    has ``error`` set; the next run sends it again.
    """
    import anyio

    first: dict[Question, Question] = {}  # of equal ones
    for question in questions:
        first.setdefault(replace(question, id=""), question)
    answers = anyio.run(_ask_all, list(first.values()), client) if first else {}
    found = [(question, answers[first[replace(question, id="")].id]) for question in questions]
    # a repeated question is paid for once
    return [a if a.id == q.id else replace(a, id=q.id, tokens_in=0, tokens_out=0) for q, a in found]


async def _ask_all(questions: Sequence[Question], client: Client) -> dict[str, Answer]:
    """Send all questions, ``client.connections`` at a time; the answers by id."""
    import anyio

    if client.is_likelihood:
        import finetune.generative.client.likelihood  # noqa: F401 (registers the provider)
    model, version = open_model(client), read_version(client.model)
    waiting, answers = iter(questions), dict[str, Answer]()
    failures, reasons = 0, list[str]()  # failures in a row; why all stop

    async def work() -> None:
        nonlocal failures
        for question in waiting:
            answer = answers[question.id] = await _ask_one(model, question, client, version)
            bar.update()
            failures = failures + 1 if answer.error else 0
            if answer.error:
                log.warning("%s: no answer: %s", question.id, answer.error)
            if failures >= min(MAX_FAILURES_IN_A_ROW, len(questions)):
                reasons.append(f"{failures} questions in a row failed; {answer.error}")
            if reasons:
                workers.cancel_scope.cancel()
                return

    with tqdm(total=len(questions), desc=client.model, unit=" answers", disable=None) as bar:
        async with anyio.create_task_group() as workers:
            for _ in range(min(client.connections, len(questions))):
                workers.start_soon(work)
    if reasons:
        raise BadInput(
            f"{client.model}: {reasons[0]}\n"
            "check the server, its address, the model's name and the key, then run the same command again"
        )
    return answers


async def _ask_one(model: Model, question: Question, client: Client, version: str) -> Answer:
    from inspect_ai.model import CachePolicy, GenerateConfig

    config = GenerateConfig(
        max_tokens=question.max_tokens + client.thinking_tokens,
        reasoning_tokens=client.thinking_tokens or None,
        temperature=None if client.model.startswith("hf/") else question.temperature,
        attempt_timeout=None if is_local(client.model) else TIMEOUT_SECONDS,
        extra_body={"choices": question.choices} if client.is_likelihood else None,
    )
    policy = CachePolicy(expiry=None, per_epoch=False, scopes={"version": version})
    try:
        output = await model.generate(to_chat(question.messages), config=config, cache=policy)
    except Exception as error:  # every provider has its own; the question is counted as unanswered
        return Answer(question.id, None, error=format_reason(error))
    usage, stop = output.usage, output.choices[0].stop_reason
    text = "" if stop in NO_TEXT else hide_keys(output.completion)
    text = text.encode("utf-8", "replace").decode("utf-8")  # no file can hold half a surrogate pair
    tokens_in, tokens_out = (usage.input_tokens, usage.output_tokens) if usage else (None, None)
    return Answer(question.id, text, stop, tokens_in, tokens_out, round(output.time or 0.0, 3))


def to_chat(messages: Sequence[Message]) -> list[ChatMessage]:
    """Turns as Inspect's messages."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser

    return [(ChatMessageUser if role == "user" else ChatMessageAssistant)(content=text) for role, text in messages]


MAX_CUT_SHARE = 0.05  # of answers that ended at the limit and could not be parsed


def check_cut(name: str, answers: Sequence[Answer], are_parsed: Sequence[bool], max_tokens: int) -> None:
    """``BadInput`` if more than ``MAX_CUT_SHARE`` of the answers ended at the limit and cannot be parsed."""
    pairs = zip(answers, are_parsed, strict=True)
    lost = sum(answer.stop == "max_tokens" and not is_parsed for answer, is_parsed in pairs)
    if lost > MAX_CUT_SHARE * len(answers):
        raise BadInput(
            f"{name}: {lost} of {len(answers)} answers were cut at {max_tokens} tokens and cannot be parsed, so their "
            f"score says nothing about the model; run again with --max-tokens {4 * max_tokens}, and for models that "
            "think first, --thinking-tokens 4096"
        )


def sum_costs(answers: Sequence[Answer]) -> dict[str, Any]:
    """Counts of questions, unanswered ones and tokens (None if not counted), and the seconds of all requests."""
    tokens_in = [answer.tokens_in for answer in answers if answer.tokens_in is not None]
    tokens_out = [answer.tokens_out for answer in answers if answer.tokens_out is not None]
    return {
        "requests": len(answers),
        "unanswered": sum(answer.text is None for answer in answers),
        "tokens_in": sum(tokens_in) if tokens_in else None,
        "tokens_out": sum(tokens_out) if tokens_out else None,
        "seconds": round(sum(answer.seconds for answer in answers), 1),
    }
