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
from typing import Any

from corpus.documents.errors import BadInput
from finetune.examples import Example
from finetune.generative.client.likelihood import Scorer
from finetune.generative.klue.run import PromptedTask
from finetune.generative.prompts.prompt import TaskPrompt
from finetune.generative.tables import ResultTable

SEPARATOR = "\n\n"  # of the examples in a document
GROUPS_PER_DOCUMENT = 8  # so that a document fits into small models
NOTE = (
    "A low p means that the model prefers the file order, as models that have read the file often do. A high p proves "
    "nothing. Files sorted by content (KLUE-NLI dev, by premise) give a low p to any model."
)


def make_orders(
    prompt: TaskPrompt, examples: Sequence[Example], shuffles: int, seed: int, per_document: int = GROUPS_PER_DOCUMENT,
    group: Callable[[Example], str] = lambda example: example.guid,
) -> list[list[str]]:  # fmt: skip
    """Documents of examples without golds: first in the order of their guids, then in seeded shuffles of each document.

    Args:
        examples: in any order; numbers in guids are compared as numbers.
        per_document: groups per document; a last document with a single group is left out.
        group: neighbors of the same group stay together.

    ``BadInput`` for fewer than two groups.
    """
    splits = {example.guid: re.split(r"([0-9]+)", example.guid) for example in examples}
    natural = {guid: [(int(p), "") if p.isdecimal() else (-1, p) for p in parts] for guid, parts in splits.items()}
    ordered = sorted(examples, key=lambda example: natural[example.guid])  # d-10 after d-2
    texts = [SEPARATOR.join(map(prompt.render_input, block)) for _, block in groupby(ordered, key=group)]
    parts = [texts[start : start + per_document] for start in range(0, len(texts), per_document)]
    parts = [part for part in parts if len(part) > 1]
    if not parts:
        raise BadInput(f"{prompt.task} --order-check: needs at least two groups of examples, found {len(texts)}")
    rng = Random(seed)
    shuffled = [[SEPARATOR.join(rng.sample(part, len(part))) for part in parts] for _ in range(shuffles)]
    return [list(map(SEPARATOR.join, parts)), *shuffled]


def p_value(in_file_order: float, shuffled: Sequence[float]) -> float:
    """Share of all orders, the file order included, that are at least as likely as the file order."""
    return (1 + sum(total >= in_file_order for total in shuffled)) / (1 + len(shuffled))


def check_order(scorer: Scorer, prompted: PromptedTask, shuffles: int) -> dict[str, Any]:
    """Perplexity per token in both orders, and the p value; ``BadInput`` if the documents do not fit."""
    task = prompted.task
    orders = make_orders(prompted.prompt, prompted.data.scored, shuffles, 1, group=task.group)
    longest = max(len(scorer.prefix) + len(scorer.encode(text)) for text in orders[0])
    if scorer.max_positions and longest > scorer.max_positions:
        raise BadInput(
            f"{task.name} --order-check: {GROUPS_PER_DOCUMENT} examples have {longest:,} tokens, but the model reads "
            f"only {scorer.max_positions:,}; leave the task or the check out"
        )
    scored = [[scorer.log_likelihood(text) for text in documents] for documents in orders]
    totals = [sum(total for total, _ in documents) for documents in scored]
    perplexities = [
        math.exp(-total / max(1, sum(tokens for _, tokens in documents)))
        for total, documents in zip(totals, scored, strict=True)
    ]
    p = p_value(totals[0], totals[1:])
    shuffled = fmean(perplexities[1:])
    return {"task": task.name, "shuffles": shuffles, "in_file_order": perplexities[0], "shuffled": shuffled, "p": p}


def order_table(results: Sequence[dict[str, Any]]) -> ResultTable:
    """One row per task."""
    heads = ("task", "perplexity, file order", "perplexity, shuffled", "p")
    rows = [[r["task"], f"{r['in_file_order']:.2f}", f"{r['shuffled']:.2f}", f"{r['p']:.3f}"] for r in results]
    return ResultTable(heads, rows, f"File order against {results[0]['shuffles']} shuffled orders", NOTE)
