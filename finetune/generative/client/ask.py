"""Send questions to a model of Inspect AI (``openai-api/NAME/MODEL``, ``hf/FOLDER`` and others); answers are cached.

Inspect writes an answer to its cache (``INSPECT_CACHE_DIR``, by default in the user's cache folder) before the next
question is sent, so a command that is run again sends only the questions that have no answer yet. The cache is not in
the output folder because it holds pickles, which would run code from a folder that someone else made.

Each provider takes its key and address from the environment (NAME_API_KEY, NAME_BASE_URL). Inspect retries; two things
are added to its rules: a garbled response is retried too, and the wait follows the server's Retry-After. Files and
messages show ``⟨key⟩`` in place of API keys: a server may repeat the key that it received ("Incorrect API key
provided: …"), and an address may contain one.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tqdm import tqdm

from corpus.documents.errors import BadInput
from corpus.documents.escaping import escape_controls
from finetune.generative.prompts.prompt import TEMPLATE, Message

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, Model
    from tenacity import RetryCallState

log = logging.getLogger(__name__)

MAX_FAILURES_IN_A_ROW = 5  # then the server, its address or the key is the problem, not the questions
TIMEOUT_SECONDS = 180  # of one request
NO_TEXT = ("content_filter", "model_length")  # stop reasons whose text is the server's message, not an answer
MAX_CUT_SHARE = 0.05  # of answers that ended at the limit and could not be parsed
FIRST_WAIT_SECONDS, MAX_WAIT_SECONDS = 1.0, 60.0
MAX_REASON_CHARS = 300
LOCAL = ("hf/", "vllm/", "sglang/", "llama-cpp-python/", "transformer_lens/")
OPENAI = ("openai-api", "openai")  # providers whose client retries by itself
LIKELIHOOD_PROVIDER = "malmoi-likelihood"
KEY_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")
MIN_KEY_CHARS = 8  # a shorter value ("none", for servers without keys) is no secret and may be an ordinary word
HIDDEN = "⟨key⟩"


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
    pairs = [(question, answers[first[replace(question, id="")].id]) for question in questions]
    # a repeated question is paid for once
    return [a if a.id == q.id else replace(a, id=q.id, tokens_in=0, tokens_out=0) for q, a in pairs]


async def _ask_all(questions: Sequence[Question], client: Client) -> dict[str, Answer]:
    """Send all questions, ``client.connections`` at a time; the answers by id."""
    import anyio

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


def check_name(name: str) -> str:
    """The provider of a model's name; ``BadInput`` if there is none."""
    provider, _, rest = name.partition("/")
    if not provider or not rest:
        raise BadInput(
            f"--model {name}: expected PROVIDER/MODEL, such as openai-api/NAME/MODEL (with NAME_BASE_URL and "
            "NAME_API_KEY in the environment), hf/FOLDER or another provider of Inspect AI"
        )
    return provider


def is_local(name: str) -> bool:
    """Whether the model runs on this machine, so that a slow answer is no failure."""
    return name.startswith(LOCAL)


def local_folder(name: str) -> Path | None:
    """The folder of ``hf/FOLDER``; None for a name on the Hub or another provider.

    ``BadInput`` if ``hf/…`` can only be a folder and that folder does not exist.
    """
    provider, _, rest = name.partition("/")
    if provider != "hf" or Path(rest).is_dir():
        return Path(rest) if provider == "hf" else None
    if rest.startswith((".", "/", "~")) or rest.count("/") > 1:
        raise BadInput(f"--model {name}: no such folder, and no name on the Hub")
    return None


def read_version(name: str) -> str:
    """A digest of the files of ``hf/FOLDER``; "" for other models, whose address is in Inspect's cache key."""
    from finetune.queue.jobs import digest

    folder = local_folder(name)
    return digest(str(folder)) if folder else ""


def open_model(client: Client) -> Model:
    """The model; ``BadInput`` if Inspect, the provider, a key or the folder is missing."""
    name, provider = client.model, check_name(client.model)
    from inspect_ai.model import GenerateConfig, get_model

    folder = local_folder(name)
    arguments: dict[str, Any] = {}
    config = GenerateConfig(max_connections=client.connections, max_retries=client.attempts - 1)
    if provider in OPENAI:
        arguments["max_retries"] = 0  # of the client: Inspect counts the attempts
    try:
        if client.is_likelihood:
            name = f"{LIKELIHOOD_PROVIDER}/{name.removeprefix('hf/')}"
        elif provider == "hf":
            from transformers import AutoTokenizer
            from transformers.utils import logging as transformers_logging

            transformers_logging.disable_progress_bar()
            path = name.removeprefix("hf/")
            arguments |= {"do_sample": False, "use_safetensors": True, **({"model_path": path} if folder else {})}
            arguments |= plain_turns(AutoTokenizer.from_pretrained(path))
        model = get_model(name, config=config, memoize=False, **arguments)
    except Exception as error:  # every provider has its own
        raise BadInput(f"--model {client.model}: cannot be opened; {format_reason(error)}") from None
    _extend_retries(model.api)
    return model


def _extend_retries(api: Any) -> None:
    """Retry garbled responses, never cache one without an answer, and wait as long as the server asks for."""
    decide, generate = api.should_retry, api.generate

    async def generate_checked(*args: Any, **kwargs: Any) -> Any:
        result = await generate(*args, **kwargs)
        output = result[0] if isinstance(result, tuple) else result
        if not isinstance(output, Exception) and (output.error or not output.choices):
            raise JSONDecodeError(output.error or "a response without an answer", "", 0)
        return result

    api.generate = generate_checked
    api.should_retry = lambda error: isinstance(error, JSONDecodeError) or decide(error)
    api.retry_wait = lambda: _wait_seconds


def _wait_seconds(state: RetryCallState) -> float:
    """Double the wait with each attempt, or wait as the server's Retry-After says; at most a minute."""
    error = state.outcome.exception() if state.outcome else None
    asked = getattr(getattr(error, "response", None), "headers", {}).get("retry-after", "")
    seconds = float(asked) if re.fullmatch(r"\d{1,9}(\.\d+)?", asked) else 0.0
    return min(max(FIRST_WAIT_SECONDS * 2.0 ** (state.attempt_number - 1), seconds), MAX_WAIT_SECONDS)


def plain_turns(tokenizer: Any) -> dict[str, Any]:
    """Arguments of Inspect's provider for a model without a chat template: plain text, as for likelihoods."""
    if tokenizer.chat_template:
        return {}
    before = "".join(tokenizer.convert_ids_to_tokens(prefix_ids(tokenizer)))  # as text, with none after the question
    return {"chat_template": f"{before}{TEMPLATE}", "tokenizer_call_args": {"add_special_tokens": False}}


def prefix_ids(tokenizer: Any) -> list[int]:
    """Ids of the special tokens that a tokenizer puts before a text."""
    own = tokenizer.encode("가", add_special_tokens=False)
    ids = tokenizer.encode("가")
    start = next((start for start in range(len(ids)) if ids[start : start + len(own)] == own), 0)
    return list(ids[:start])


def format_reason(error: BaseException) -> str:
    """An error in one line, without keys and console colors."""
    from tenacity import RetryError

    if isinstance(error, RetryError):
        error = error.last_attempt.exception() or error
    error = error.__cause__ or error  # Inspect's wrapper repeats the whole request
    text = re.sub(r"\[/?[a-z ]+\]", "", " ".join(str(error).split()))
    return escape_controls(hide_keys(f"{type(error).__name__}: {text}".removesuffix(": ")))[:MAX_REASON_CHARS]


def find_keys(environment: Mapping[str, str]) -> list[str]:
    """Secret values, longest first: those of variables named like a key, and passwords and queries in addresses."""
    secrets = {value for name, value in environment.items() if KEY_NAME.search(name.upper())}
    for name, value in environment.items():
        if name.upper().endswith(("_URL", "_PROXY")) and "://" in value:
            try:
                secrets |= {urlsplit(value).password or "", urlsplit(value).query}
            except ValueError:
                secrets.add(value)
    return sorted((value for value in secrets if len(value) >= MIN_KEY_CHARS), key=len, reverse=True)


def hide_keys(text: str) -> str:
    """``text`` without the keys in the environment of this process."""
    for key in find_keys(os.environ):
        text = text.replace(key, HIDDEN)
    return text
