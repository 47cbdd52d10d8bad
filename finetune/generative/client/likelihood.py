"""The likelihood method: which answer of a closed set does a causal model find most likely?

The score of an answer is log P(answer | question) / characters of the answer. Answers differ in length (정치 and
생활문화), and a plain sum of log-probabilities favors short ones. Dividing by characters instead of tokens treats
models with different vocabularies alike; lm-evaluation-harness does the same (``acc_norm``; its ``acc`` uses the sum).
Cost: a character that a vocabulary splits into bytes weighs as much as one that it knows. Only ``hf/`` models return
the probabilities that this needs.

``LikelihoodAPI`` is an Inspect provider, so that the same client and cache serve both methods; an import registers it.
Legend: ``B`` question and answer pairs, ``L`` positions, ``V`` vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import torch
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, ModelUsage, modelapi
from torch import Tensor

from corpus.documents.errors import BadInput
from corpus.documents.model_files import quiet_transformers
from finetune.generative.client.ask import LIKELIHOOD_PROVIDER, format_reason, prefix_ids
from finetune.generative.prompts.prompt import DELIMITER, TEMPLATE, Message


class Scorer:
    """A causal model with its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.prefix = prefix_ids(tokenizer)
        self.max_positions: int | None = getattr(model.config, "max_position_embeddings", None)

    def render_context(self, messages: Sequence[Message]) -> str:
        """The turns in the model's chat template, or as plain text if it has none."""
        turns = [{"role": role, "content": text} for role, text in messages]
        own = {} if self.tokenizer.chat_template else {"chat_template": TEMPLATE}
        return str(self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, **own))

    def encode(self, text: str) -> list[int]:
        """Ids without special tokens."""
        return list(self.tokenizer.encode(text, add_special_tokens=False, verbose=False))

    def encode_pair(self, context: str, answer: str) -> tuple[list[int], int]:
        """Ids of context and answer, and the number of ids of the answer, which includes the blanks between."""
        ids = self.encode(context + answer)
        count = len(ids) - len(self.encode(context.rstrip()))
        if count < 1:
            raise BadInput(f"the vocabulary has no token for the answer {answer!r}, so its likelihood is undefined")
        has_prefix = ids[: len(self.prefix)] == self.prefix  # from the chat template
        return (ids if has_prefix else [*self.prefix, *ids]), count

    def score(self, context: str, choices: Sequence[str]) -> tuple[list[float], int, bool]:
        """The log-probability of each answer, the tokens read (shared ones once), whether the context was truncated."""
        delimiter = "" if self.tokenizer.chat_template else DELIMITER  # a template ends where the answer begins
        rows = [self.encode_pair(context, delimiter + answer) for answer in choices]
        longest, is_cut = max(len(ids) for ids, _ in rows), False
        if self.max_positions and longest > self.max_positions + 1:  # the last token is predicted, not read
            rows, is_cut = [(ids[-(self.max_positions + 1) :], count) for ids, count in rows], True
        read = [ids[:-1] for ids, _ in rows]
        shared = sum(1 for _ in takewhile(lambda ids: len(set(ids)) == 1, zip(*read, strict=False)))
        shared = max(0, min(shared, *(len(ids) - count - 1 for ids, count in rows)))
        log_p_BLV = self._log_p(read, shared)
        sums = []
        for row, (ids, count) in enumerate(rows):
            places = torch.arange(len(ids) - count, len(ids))
            sums.append(float(log_p_BLV[row, places - 1 - shared, torch.tensor(ids)[places]].double().sum()))
        return sums, shared + sum(len(ids) - shared for ids, _ in rows), is_cut

    def _log_p(self, rows: Sequence[list[int]], shared: int) -> Tensor:
        """Log-probabilities of the next token, from position ``shared`` on.

        The positions before, which all rows have in common, are read once if the model has a key-value cache.
        """
        length = max(map(len, rows))
        device = next(self.model.parameters()).device
        ids_BL = torch.tensor([ids + [0] * (length - len(ids)) for ids in rows], device=device)
        mask_BL = torch.tensor([[1] * len(ids) + [0] * (length - len(ids)) for ids in rows], device=device)
        with torch.inference_mode():
            cache: Any = self.model(input_ids=ids_BL[:1, :shared], use_cache=True).past_key_values if shared else None
            if hasattr(cache, "batch_repeat_interleave"):
                cache.batch_repeat_interleave(len(rows))
                logits = self.model(input_ids=ids_BL[:, shared:], attention_mask=mask_BL, past_key_values=cache).logits
            else:
                logits = self.model(input_ids=ids_BL, attention_mask=mask_BL).logits[:, shared:]
            log_p_BLV: Tensor = logits.float().log_softmax(-1).cpu()
        return log_p_BLV


def load_scorer(name: str) -> Scorer:
    """The model of ``hf/FOLDER`` or ``hf/NAME``; ``BadInput`` if it is not a causal model."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = name.removeprefix("hf/")
    try:
        with quiet_transformers():
            model: Any = AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True)
            tokenizer = AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # of many kinds
        raise BadInput(f"--model {name}: cannot be loaded as a causal model; {format_reason(error)}") from None
    return Scorer(model.to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer)


@modelapi(name=LIKELIHOOD_PROVIDER)
class LikelihoodAPI(ModelAPI):
    """Answer with a JSON list: the log-probability of each of ``extra_body["choices"]``.

    The model is loaded for the first question that is not in the cache. The stop reason is "max_tokens" if the question
    was longer than the model reads and lost its beginning.
    """

    scorer: Scorer | None = None

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: GenerateConfig) -> ModelOutput:
        self.scorer = self.scorer or load_scorer(f"hf/{self.model_name}")
        context = self.scorer.render_context([(message.role, message.text) for message in input])
        sums, tokens, is_cut = self.scorer.score(context, (config.extra_body or {})["choices"])
        output = ModelOutput.from_content(self.model_name, json.dumps(sums), "max_tokens" if is_cut else "stop")
        output.usage = ModelUsage(input_tokens=tokens, output_tokens=0, total_tokens=tokens)
        return output
