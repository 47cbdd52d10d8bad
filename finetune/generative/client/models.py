"""Open a model by its Inspect name (``openai-api/NAME/MODEL``, ``hf/FOLDER`` and others).

Each provider takes its key and address from the environment (NAME_API_KEY, NAME_BASE_URL). Inspect retries; two things
are added to its rules: a garbled response is retried too, and the wait follows the server's Retry-After.

Files and messages show ``⟨key⟩`` in place of API keys: a server may repeat the key that it received ("Incorrect API key
provided: …"), and an address may contain one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from corpus.documents.errors import BadInput
from corpus.documents.escaping import escape_controls
from finetune.generative.prompts.prompt import TEMPLATE

if TYPE_CHECKING:
    from inspect_ai.model import Model
    from tenacity import RetryCallState

    from finetune.generative.client.ask import Client

FIRST_WAIT_SECONDS, MAX_WAIT_SECONDS = 1.0, 60.0
MAX_REASON_CHARS = 300
LOCAL = ("hf/", "vllm/", "sglang/", "llama-cpp-python/", "transformer_lens/")
OPENAI = ("openai-api", "openai")  # providers whose client retries by itself
LIKELIHOOD_PROVIDER = "malmoi-likelihood"
KEY_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")
MIN_KEY_CHARS = 8  # a shorter value ("none", for servers without keys) is no secret and may be an ordinary word
HIDDEN = "⟨key⟩"


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
    from finetune.queue.fingerprint import digest

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
