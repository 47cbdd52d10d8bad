"""KLUE-DP: dependency parsing of eojeols (KLUE paper 3.6, 5.1).

A word's vector is its first and its last sub-word and its last part-of-speech tag. Decoding finds the best tree among
those that Korean allows here: projective, every head to the right, one root, as all 2,000 sentences of dev are. The
search is therefore smaller than Eisner's: a span of words is always headed by its last word, and the last word of the
sentence is the root. Exact, O(n^3) time, a numpy call per span length for all sentences of one length together.
Legend: ``B`` sentences of ``n`` words each; head 0 is the root, words count from 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finetune.config import FinetuneConfig
from finetune.examples import ErrorView, Example, Feature, Prediction, Row
from finetune.task import Ensembling, Files, HubLayout, Inference, Inspection, Task, published_facts
from finetune.tasks.dp import alignment, reader
from finetune.tasks.dp.metrics import DP_LABELS, score, tables
from finetune.tasks.dp.published import QUIRKS
from finetune.tasks.dp.reader import COLUMNS, POS_TAGS
from finetune.tasks.labels import build_head

CELLS_AT_ONCE = 1 << 20  # n * n cells of a table for each sentence; bounds memory at about 50 MB


def best_right_headed_trees(scores: Sequence[NDArray[np.floating]]) -> list[list[int]]:
    """Find the tree with the highest sum of arc scores for each sentence.

    Here 1 → 3 and 2 → 4 score highest, but they would cross. Of the trees left, 1 → 3, 2 → 3, 3 → 4 has 3 + 2 + 1, and
    1 → 4, 2 → 4, 3 → 4 only 1 + 3 + 1:

    >>> scores = np.array([[0, 0, 0, 3, 1], [0, 0, 0, 2, 3], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]])
    >>> best_right_headed_trees([scores])
    [[3, 3, 4, 0]]

    Args:
        scores: one (n, n + 1) array a sentence, n >= 1: ``[w - 1, h]`` for the arc from word ``w`` to head ``h``.
            Entries that no such tree uses (h <= w, root of any word but the last) are ignored.
    """
    trees: list[list[int]] = [[] for _ in scores]
    by_length = defaultdict[int, list[int]](list)
    for number, arcs in enumerate(scores):
        by_length[len(arcs)].append(number)
    for n, numbers in by_length.items():
        size = max(1, CELLS_AT_ONCE // n**2)
        for begin in range(0, len(numbers), size):
            chosen = numbers[begin : begin + size]
            leftmost = find_leftmost_dependents(np.stack([scores[number][:, 1:] for number in chosen]))
            for number, splits in zip(chosen, leftmost, strict=True):
                trees[number] = list(read_heads(splits))
    return trees


def find_leftmost_dependents(scores_Bnn: NDArray[np.floating]) -> Iterable[list[list[int]]]:
    """Fill the table of the best trees of all spans, short ones first; for each sentence the best k by ``[i][j]``.

    ``scores_Bnn[b, k, j]``: the arc from word k + 1 to word j + 1. The leftmost dependent of j is k, which covers i..k:

        tree[i, j] = max over k of  tree[i, k] + score(k's head is j) + tree[k + 1, j]      i <= k < j
    """
    batch, n, _ = scores_Bnn.shape
    tree_nnB = np.zeros((n, n, batch))
    leftmost_nnB = np.zeros((n, n, batch), dtype=np.int32)
    scores_nnB = scores_Bnn.transpose(1, 2, 0).astype(np.float64)
    for length in range(1, n):
        i = np.arange(n - length)
        split = i[:, None] + np.arange(length)
        j = i + length
        candidates = tree_nnB[i[:, None], split] + scores_nnB[split, j[:, None]] + tree_nnB[split + 1, j[:, None]]
        best = candidates.argmax(axis=1)
        tree_nnB[i, j] = np.take_along_axis(candidates, best[:, None], axis=1)[:, 0]
        leftmost_nnB[i, j] = i[:, None] + best
    tables: list[list[list[int]]] = leftmost_nnB.transpose(2, 0, 1).tolist()
    return tables


def read_heads(leftmost: list[list[int]]) -> list[int]:
    """The heads of the best tree, from the table of leftmost dependents."""
    n = len(leftmost)
    heads = [0] * n
    spans = [(0, n - 1)]
    while spans:
        i, j = spans.pop()
        if i < j:
            k = leftmost[i][j]
            heads[k] = j + 1
            spans += [(i, k), (k + 1, j)]
    return heads


def configure(task: Task, config: FinetuneConfig) -> Task:
    """Without gold part-of-speech tags (``finetune.pos_tags=false``) the parser reads words alone, as new text has."""
    if config.pos_tags:
        return task
    model: Any = task.model
    inference = task.inference._replace(parse=partial(reader.parse_input, False))
    return replace(task, model=partial(model, pos_tags=None), inference=inference)


def decode(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[Prediction]:
    """The best tree of each sentence. Words after ``max_tokens`` depend on their right neighbor."""
    trees = best_right_headed_trees([raw["arcs"] for raw in raws])
    predictions = alignment.name_arcs(examples, features, raws, trees)
    for feature, heads in zip(features, trees, strict=True):
        value = predictions[feature["example"]].value
        if len(heads) < len(value["heads"]):
            value["heads"][len(heads) - 1] = len(heads) + 1  # the sentence continues, so this is not its root
    return predictions


def show(example: Example, row: Row) -> ErrorView:
    """The sentence, and the arcs of words whose head or type differs."""
    words = example.inputs["words"]

    def arc(word: str, head: int | None, kind: str | None) -> str:
        return f"{word} → {'–' if head is None else words[head - 1] if head else 'root'} {kind or ''}".rstrip()

    columns = zip_longest(words, *(tree[key] for tree in (row.gold, row.prediction) for key in ("heads", "types")))
    differing = [column for column in columns if column[1:3] != column[3:5]]
    gold = [arc(word, head, kind) for word, head, kind, _, _ in differing]
    return {"sentence": " ".join(words)}, gold, [arc(word, head, kind) for word, _, _, head, kind in differing]


KLUE_DP = Task(
    name="klue-dp",
    predicts="head and relation of each word (eojeol)",
    files=Files("klue-dp-v1.1", "tsv"),
    read=reader.read_sentences,
    write=reader.write_trees,
    featurize=alignment.featurize,
    collate=alignment.collate_words,
    model=partial(build_head, "BiaffineParser", pos_tags=len(POS_TAGS) + 2, types=len(DP_LABELS)),
    decode=decode,
    score=score,
    select_by="las_macro_f1",
    published=published_facts("klue-dp", QUIRKS),
    inspection=Inspection(tables, reader.validate_tree, show),
    hub=HubLayout(("sentence", *(name.lower() for name in COLUMNS)), reader.convert),
    inference=Inference(
        parse=partial(reader.parse_input, True),
        to_result=lambda example, prediction: {"words": example.inputs["words"]},
        format_lines=reader.format_lines,
        is_block=True,
    ),
    ensembling=Ensembling(partial(alignment.merge, decode), alignment.to_records),
    configure=configure,
    revision=2,  # POS tags in the published order
)
