"""Which answer of a closed set a causal model finds likeliest: log P(answer | question) / characters of the answer.

The answers differ in length (정치 and 생활문화), and a sum of log-probabilities favours short ones. It is divided by
characters, not tokens: so two models with other vocabularies are treated alike, and lm-evaluation-harness does the same
(``acc_norm``; its ``acc`` takes the bare sum). The price: a character of Hangul that a vocabulary cuts into bytes
weighs as much as one that it knows. Only models in this process give what is needed; no provider's text stands in.

Legend: ``B`` question and answer pairs, ``L`` positions, ``V`` vocabulary.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from corpus.documents.errors import BadInput
from corpus.documents.model_files import quiet_transformers
from finetune.generative.client.ask import Messages
from finetune.generative.client.bare_text import DELIMITER, TEMPLATE
from finetune.generative.client.models import (
    reason_of,
    refuse_missing_folder,
    refuse_others,
    special_before,
    version_of,
)
from finetune.generative.client.store import Answer, digest_of, open_store


class Choices(NamedTuple):
    """A question of a closed set: what stands before the answer, and the answers."""

    id: str
    context: str
    choices: tuple[str, ...]


class Scorer:
    """A causal model with its tokenizer. ``longest``: positions that it has, None without a limit."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.prefix = special_before(tokenizer)
        found = getattr(model.config, "max_position_embeddings", None) or getattr(model.config, "n_positions", None)
        self.longest: int | None = found
        self.cut = 0  # questions that lost their beginning
        self.seen = 0  # tokens of the last question and all of its answers; what they share counts once

    def context(self, messages: Messages) -> str:
        """The turns as the model's chat template has them, or bare where it has none."""
        turns = [{"role": role, "content": text} for role, text in messages]
        own = {} if self.tokenizer.chat_template else {"chat_template": TEMPLATE}
        return str(self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, **own))

    def ids(self, context: str, answer: str) -> tuple[list[int], int]:
        """Ids of context and answer, and how many of them are the answer's; blanks between belong to the answer."""
        bare = context.rstrip()
        whole = self._encode(context + answer)
        count = len(whole) - len(self._encode(bare))
        if count < 1:
            raise BadInput(f"the vocabulary has no token for the answer {answer!r}; its likelihood is not defined")
        has_prefix = whole[: len(self.prefix)] == self.prefix  # by the chat template
        return (whole if has_prefix else [*self.prefix, *whole]), count

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False, verbose=False))

    def score(self, question: Choices) -> list[float]:
        """The sum of log-probabilities of the tokens of each answer."""
        delimiter = "" if self.tokenizer.chat_template else DELIMITER  # a template ends where the answer begins
        rows = [self.ids(question.context, delimiter + answer) for answer in question.choices]
        if self.longest:
            most = self.longest + 1  # the last token is not read, only predicted
            self.cut += max(len(ids) for ids, _ in rows) > most
            rows = [(ids[-most:], count) for ids, count in rows]
        read = [ids[:-1] for ids, _ in rows]
        once = max(0, min(_shared(read), *(len(ids) - count - 1 for ids, count in rows)))
        self.seen = once + sum(len(ids) - once for ids, _ in rows)
        log_p_BLV = self._log_p(read, once)
        sums = []
        for row, (ids, count) in enumerate(rows):
            places = torch.arange(len(ids) - count, len(ids))
            sums.append(float(log_p_BLV[row, places - 1 - once, torch.tensor(ids)[places]].double().sum()))
        return sums

    def _log_p(self, rows: Sequence[list[int]], once: int) -> Tensor:
        """Log-probabilities of the token after each of ``rows`` from place ``once`` on; the places before, which all
        rows share, are read once where the model keeps what it has read as keys and values."""
        length = max(map(len, rows))
        device = next(self.model.parameters()).device
        ids_BL = torch.tensor([ids + [0] * (length - len(ids)) for ids in rows], device=device)
        real_BL = torch.tensor([[1] * len(ids) + [0] * (length - len(ids)) for ids in rows], device=device)
        with torch.inference_mode():
            cache: Any = self.model(input_ids=ids_BL[:1, :once], use_cache=True).past_key_values if once else None
            if hasattr(cache, "batch_repeat_interleave"):
                cache.batch_repeat_interleave(len(rows))
                found = self.model(input_ids=ids_BL[:, once:], attention_mask=real_BL, past_key_values=cache).logits
            else:
                found = self.model(input_ids=ids_BL, attention_mask=real_BL).logits[:, once:]
            log_p_BLV: Tensor = found.float().log_softmax(-1).cpu()
        return log_p_BLV


def _shared(rows: Sequence[Sequence[int]]) -> int:
    """How many places all rows begin alike."""
    places = zip(*rows, strict=False)
    return next((place for place, ids in enumerate(places) if len(set(ids)) > 1), min(map(len, rows)))


def load_scorer(name: str, device: str | None = None) -> Scorer:
    """The model of ``hf/FOLDER`` or ``hf/NAME``; ``BadInput`` where it is no causal model or another provider's."""
    refuse_others(name)
    refuse_missing_folder(name)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place = name.removeprefix("hf/")
    try:
        with quiet_transformers():
            model: Any = AutoModelForCausalLM.from_pretrained(place, use_safetensors=True)
            tokenizer = AutoTokenizer.from_pretrained(place)
    except Exception as error:  # of many kinds, all of which mean that it cannot be had
        raise BadInput(f"--model {name}: cannot be loaded as a causal model; {reason_of(error)}") from None
    return Scorer(model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")), tokenizer)


def score_choices(
    questions: Sequence[Choices],
    name: str,
    scorer: Callable[[], Scorer],
    store: Path,
    told: Callable[[Answer], object] = lambda answer: None,
) -> list[tuple[list[float], Answer]]:
    """For each question the sums of its answers, and the record of it; what stands in ``store`` is not done again.

    Args:
        scorer: loads the model; called when something is left to do.
    """
    version = version_of(name)
    found = []
    with open_store(store) as kept:
        for question in questions:
            key = digest_of("likelihood", name, version, *question)
            answer = kept.answers.get(key)
            if answer is None:
                began, clock = time.time(), time.monotonic()
                sums = scorer().score(question)
                text, seconds = json.dumps(sums), round(time.monotonic() - clock, 4)
                answer = Answer(question.id, text, "stop", scorer().seen, 0, round(began, 3), seconds)
                kept.add(key, answer)
            told(answer)
            found.append(([float(value) for value in json.loads(answer.text or "[]")], answer))
    return found


def likeliest(sums: Sequence[float], choices: Sequence[str], by_character: bool = True) -> int:
    """The place of the chosen answer; the first of equal ones."""
    values = [value / (len(answer) if by_character else 1) for value, answer in zip(sums, choices, strict=True)]
    return max(range(len(values)), key=lambda place: values[place])
