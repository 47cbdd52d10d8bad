"""Has a model read the file? Its perplexity of the examples in the order of the file against shuffled orders.

A note, not a proof: see ``klue.orders`` for what it finds and what it cannot. Hugging Face models only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import torch

from corpus.documents.errors import BadInput
from finetune.generative.klue.likelihood import Scorer
from finetune.generative.klue.material import Material
from finetune.generative.klue.orders import compare, make_orders
from finetune.generative.tables import ResultTable

HEADS = ("task", "perplexity, file's order", "perplexity, shuffled", "p")
NOTE = (
    "A low p says that the model prefers the order of the file, as one that has read it often does; a high one clears "
    "nobody. Files that are sorted by their content (KLUE-NLI dev by premise) give a low p to any model."
)
PER_DOCUMENT = 8  # groups of examples, so that a document fits into small models


def check_order(scorer: Scorer, material: Material, shuffles: int) -> dict[str, Any]:
    """Perplexities of a token and the p value of one task; ``BadInput`` where the model cannot read the texts."""
    task, dev = material.task, material.data.scored
    try:
        orders = make_orders(material.generation, dev, shuffles, 1, PER_DOCUMENT, task.group)
    except ValueError as error:
        raise BadInput(f"{task.name} --order-check: {error}") from None
    longest = max(len(scorer.prefix) + len(_encode(scorer, text)) for text in orders.canonical)
    if scorer.longest and longest > scorer.longest:
        raise BadInput(
            f"{task.name} --order-check: {PER_DOCUMENT} examples have {longest:,} tokens, and the model reads "
            f"{scorer.longest:,}; leave the task or the check out"
        )
    own = [_log_p(scorer, text) for text in orders.canonical]
    others = [[_log_p(scorer, text) for text in texts] for texts in orders.shuffled]
    verdict = compare([total for total, _ in own], [[total for total, _ in texts] for texts in others])
    return {
        "task": task.name, "shuffles": shuffles, "canonical": _perplexity(own),
        "shuffled": fmean(map(_perplexity, others)), "p": verdict.p_value,
    }  # fmt: skip


def _log_p(scorer: Scorer, text: str) -> tuple[float, int]:
    """Log-likelihood of a text and the number of its tokens that were predicted."""
    ids = [*scorer.prefix, *_encode(scorer, text)]
    ids_1L = torch.tensor([ids], device=next(scorer.model.parameters()).device)
    with torch.inference_mode():
        log_p_LV = scorer.model(input_ids=ids_1L).logits[0].float().log_softmax(-1)
    return float(log_p_LV[:-1].gather(1, ids_1L[0, 1:, None]).double().sum()), len(ids) - 1


def _encode(scorer: Scorer, text: str) -> list[int]:
    return list(scorer.tokenizer.encode(text, add_special_tokens=False, verbose=False))


def _perplexity(found: Sequence[tuple[float, int]]) -> float:
    return math.exp(-sum(total for total, _ in found) / max(1, sum(tokens for _, tokens in found)))


def order_table(found: Sequence[dict[str, Any]]) -> ResultTable:
    """One row a task."""
    rows = [[one["task"], f"{one['canonical']:.2f}", f"{one['shuffled']:.2f}", f"{one['p']:.3f}"] for one in found]
    title = f"Order of the file against {found[0]['shuffles']} shuffles"
    return ResultTable(HEADS, rows, title, NOTE)
