"""Contamination test: has a model read a benchmark file? (Oren et al. 2023, arXiv 2310.17623)

A model that has read the file prefers its examples in the order of the file (by guid) to shuffled orders.

```
examples by guid  a b c d e f ─┬─ file order   "a b c" "d e f"     documents that fit into the model's context
                               └─ shuffle 1…k  "b c a" "f d e"     the same examples in each document
log-likelihood of all documents, file order against shuffles ─▶ p value, at least 1/(k + 1)
```
Limits: a low p value means that the file was probably read in this order; a high one proves nothing. A file sorted by
its content gives a low p value to any model: KLUE-NLI dev is sorted by premise. Examples of one ``Task.group``
(questions of a passage, turns of a dialogue) therefore stay together, in order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import groupby
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

import torch

from corpus.documents.errors import BadInput
from finetune.examples import Example
from finetune.generative.client.likelihood import Scorer
from finetune.generative.klue.prompted_task import PromptedTask
from finetune.generative.prompts.prompt import TaskPrompt
from finetune.generative.tables import ResultTable

SEPARATOR = "\n\n"  # of the examples in a document
GROUPS_PER_DOCUMENT = 8  # so that a document fits into small models
NOTE = (
    "A low p means that the model prefers the file order, as models that have read the file often do. A high p proves "
    "nothing. Files sorted by content (KLUE-NLI dev, by premise) give a low p to any model."
)

Documents = tuple[str, ...]


class Orders(NamedTuple):
    """``shuffled[k][d]`` has the examples of ``in_file_order[d]`` in another order."""

    in_file_order: Documents
    shuffled: tuple[Documents, ...]


def make_orders(
    prompt: TaskPrompt, examples: Sequence[Example], shuffles: int, seed: int, per_document: int = GROUPS_PER_DOCUMENT,
    group: Callable[[Example], str] = lambda example: example.guid,
) -> Orders:  # fmt: skip
    """The examples as texts without golds, in the order of their guids and in seeded shuffles.

    Args:
        examples: in any order; numbers in guids are compared as numbers.
        per_document: groups per document; a last document with a single group is left out.
        group: neighbors of the same group stay together.

    ``ValueError`` for fewer than two groups or no shuffles.
    """
    ordered = sorted(examples, key=lambda example: _natural_key(example.guid))
    texts = [SEPARATOR.join(map(prompt.render_input, block)) for _, block in groupby(ordered, key=group)]
    parts = [texts[start : start + per_document] for start in range(0, len(texts), per_document)]
    parts = [part for part in parts if len(part) > 1]
    if not parts or shuffles < 1:
        raise ValueError(f"{len(texts)} groups of examples and {shuffles} shuffles; at least 2 and 1 are needed")
    rng = Random(seed)
    shuffled = tuple(tuple(SEPARATOR.join(rng.sample(part, len(part))) for part in parts) for _ in range(shuffles))
    return Orders(tuple(map(SEPARATOR.join, parts)), shuffled)


def p_value(in_file_order: Sequence[float], shuffled: Sequence[Sequence[float]]) -> float:
    """Share of all orders, the file order included, whose documents are at least as likely as in file order."""
    total = sum(in_file_order)
    return (1 + sum(sum(values) >= total for values in shuffled)) / (1 + len(shuffled))


def check_order(scorer: Scorer, prompted: PromptedTask, shuffles: int) -> dict[str, Any]:
    """Perplexity per token in both orders, and the p value; ``BadInput`` if the documents do not fit."""
    task, dev = prompted.task, prompted.data.scored
    try:
        orders = make_orders(prompted.prompt, dev, shuffles, 1, group=task.group)
    except ValueError as error:
        raise BadInput(f"{task.name} --order-check: {error}") from None
    longest = max(len(scorer.prefix) + len(scorer.encode(text)) for text in orders.in_file_order)
    if scorer.max_positions and longest > scorer.max_positions:
        raise BadInput(
            f"{task.name} --order-check: {GROUPS_PER_DOCUMENT} examples have {longest:,} tokens, but the model reads "
            f"only {scorer.max_positions:,}; leave the task or the check out"
        )
    own = [_log_likelihood(scorer, text) for text in orders.in_file_order]
    others = [[_log_likelihood(scorer, text) for text in texts] for texts in orders.shuffled]
    p = p_value([total for total, _ in own], [[total for total, _ in texts] for texts in others])
    shuffled = fmean(map(_perplexity, others))
    return {"task": task.name, "shuffles": shuffles, "in_file_order": _perplexity(own), "shuffled": shuffled, "p": p}


def order_table(results: Sequence[dict[str, Any]]) -> ResultTable:
    """One row per task."""
    heads = ("task", "perplexity, file order", "perplexity, shuffled", "p")
    rows = [[r["task"], f"{r['in_file_order']:.2f}", f"{r['shuffled']:.2f}", f"{r['p']:.3f}"] for r in results]
    return ResultTable(heads, rows, f"File order against {results[0]['shuffles']} shuffled orders", NOTE)


def _log_likelihood(scorer: Scorer, text: str) -> tuple[float, int]:
    """Log-likelihood of a text, and the number of predicted tokens."""
    ids = [*scorer.prefix, *scorer.encode(text)]
    ids_1L = torch.tensor([ids], device=next(scorer.model.parameters()).device)
    with torch.inference_mode():
        log_p_LV = scorer.model(input_ids=ids_1L).logits[0].float().log_softmax(-1)
    return float(log_p_LV[:-1].gather(1, ids_1L[0, 1:, None]).double().sum()), len(ids) - 1


def _perplexity(documents: Sequence[tuple[float, int]]) -> float:
    return math.exp(-sum(total for total, _ in documents) / max(1, sum(tokens for _, tokens in documents)))


def _natural_key(guid: str) -> list[tuple[int, str]]:
    """Sorts ``d-10`` after ``d-2``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", guid)]
