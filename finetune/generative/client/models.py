"""A model by its Inspect name (``openai-api/NAME/MODEL``, ``hf/FOLDER``, ``mockllm/model``), opened.

Each provider takes key and address from the environment (NAME_API_KEY, NAME_BASE_URL). Attempts are counted by
``finetune.generative.client.ask``, so neither Inspect nor the provider's client makes more of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus.documents.errors import BadInput
from finetune.generative.client.bare_text import TEMPLATE
from finetune.generative.client.keys import hide_keys

if TYPE_CHECKING:
    from inspect_ai.model import Model

LONGEST_REASON = 300
MOCK_ANSWER = "Default output from mockllm/model"  # as Inspect has it
WITH_CLIENT = ("openai-api", "openai")  # whose client tries again by itself


def provider_of(name: str) -> str:
    """``openai-api`` of ``openai-api/NAME/MODEL``; ``BadInput`` where there is none."""
    provider, _, rest = name.partition("/")
    if not provider or not rest:
        raise BadInput(
            f"--model {name}: expected PROVIDER/MODEL, such as openai-api/NAME/MODEL (NAME_BASE_URL and NAME_API_KEY "
            "in the environment), hf/FOLDER or another provider of Inspect AI"
        )
    return provider


def local_folder(name: str) -> Path | None:
    """The folder of ``hf/FOLDER``; None of a name on the Hub or another provider."""
    provider, _, rest = name.partition("/")
    return Path(rest) if provider == "hf" and Path(rest).is_dir() else None


def refuse_missing_folder(name: str) -> None:
    """``BadInput`` where ``hf/…`` can only be a folder, and there is none."""
    rest = name.partition("/")[2]
    if local_folder(name) is None and (rest.startswith((".", "/", "~")) or rest.count("/") > 1):
        raise BadInput(f"--model {name}: no such folder, and no name on the Hub")


def refuse_others(name: str, option: str = "--method likelihood") -> None:
    """``BadInput`` for a model whose probabilities are not to be had."""
    if not name.startswith("hf/"):
        raise BadInput(
            f"{option} with --model {name}: this provider gives no probabilities of given texts; take hf/FOLDER, or "
            "leave it out"
        )


def version_of(name: str) -> str:
    """What makes the answers of a model those of another one under its name: files of a folder, a server's address
    (without what it may hold of a key)."""
    if folder := local_folder(name):
        from finetune.queue.identity import digest

        return digest(str(folder))
    provider, _, rest = name.partition("/")
    service = rest.partition("/")[0].upper().replace("-", "_") if provider == "openai-api" else "OPENAI"
    address = os.environ.get(f"{service}_BASE_URL", "") if provider in WITH_CLIENT else ""
    return sha256(re.sub(r"//[^/]*@|[?#].*", "//", address).encode()).hexdigest()[:16] if address else ""


def open_model(name: str, connections: int, temperature: float = 0.0, more: Mapping[str, Any] | None = None) -> Model:
    """The model; ``BadInput`` in one sentence where Inspect, the provider, a key or the folder is missing."""
    provider = provider_of(name)
    from inspect_ai.model import GenerateConfig, get_model

    arguments: dict[str, Any] = {}
    config = GenerateConfig(max_connections=connections, max_retries=0, temperature=temperature)
    if provider in WITH_CLIENT:
        arguments["max_retries"] = 0
    if provider == "mockllm":
        arguments["custom_outputs"] = _mock_answer
    if provider == "hf":
        refuse_missing_folder(name)
        arguments |= _of_hugging_face(name, temperature)
        config.temperature = temperature or None  # 0 is no temperature to transformers, but do_sample=False
    try:
        return get_model(name, config=config, memoize=False, **{**arguments, **(more or {})})
    except Exception as error:  # each provider has its own; all of them mean that it cannot be had
        raise BadInput(f"--model {name}: cannot be opened; {reason_of(error)}") from None


def _mock_answer(messages: Sequence[Any], *_: Any) -> Any:
    """The mock's one answer. A character counts as a token: Inspect's own count would download a vocabulary."""
    from inspect_ai.model import ModelOutput, ModelUsage

    read = sum(len(message.text) for message in messages)
    output = ModelOutput.from_content("mockllm", MOCK_ANSWER)
    output.usage = ModelUsage(input_tokens=read, output_tokens=len(MOCK_ANSWER), total_tokens=read + len(MOCK_ANSWER))
    return output


def _of_hugging_face(name: str, temperature: float) -> dict[str, Any]:
    """A folder by its path; a model without a chat template gets the bare turns, as for likelihoods."""
    from transformers import AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    folder, rest = local_folder(name), name.partition("/")[2]
    try:
        tokenizer = AutoTokenizer.from_pretrained(rest)
    except Exception as error:
        raise BadInput(f"--model {name}: its tokenizer cannot be loaded; {reason_of(error)}") from None
    arguments: dict[str, Any] = {"do_sample": temperature > 0, "use_safetensors": True}
    if folder:
        arguments["model_path"] = rest
    if not tokenizer.chat_template:  # special tokens as text, so that none is added after the question
        before = "".join(tokenizer.convert_ids_to_tokens(special_before(tokenizer)))
        arguments["chat_template"] = f"{before}{TEMPLATE}"
        arguments["tokenizer_call_args"] = {"add_special_tokens": False}
    return arguments


def special_before(tokenizer: Any) -> list[int]:
    """Ids that a tokenizer puts before a text; those after it would end what a causal model is to go on with."""
    own = tokenizer.encode("가", add_special_tokens=False)
    ids = tokenizer.encode("가")
    place = next((place for place in range(len(ids)) if ids[place : place + len(own)] == own), 0)
    return list(ids[:place])


def unwrap(error: Exception) -> Exception:
    """What failed within Inspect's single attempt."""
    from tenacity import RetryError

    inner = error.last_attempt.exception() if isinstance(error, RetryError) else None
    return inner if isinstance(inner, Exception) else error


def reason_of(error: BaseException) -> str:
    """What an error says in one line, without keys and without the colours of a console."""
    from corpus.documents.escaping import escape_controls

    said = re.sub(r"\[/?[a-z ]+\]", "", " ".join(str(error).split()))
    named = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return escape_controls(hide_keys(named))[:LONGEST_REASON]
