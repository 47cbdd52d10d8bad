"""KLUE-DP: dependency parsing of eojeols (KLUE paper 3.6, 5.1).

A word's vector is its first and its last sub-word and its last part-of-speech tag. Decoding finds the best tree among
those that Korean allows here: projective, every head to the right, one root, as all 2,000 sentences of dev are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

from finetune.config import FinetuneConfig
from finetune.examples import ErrorView, Example, Feature, Prediction, Row
from finetune.task import Ensembling, Files, HubLayout, Inspection, Task, published_facts
from finetune.tasks.dp import alignment, reader
from finetune.tasks.dp.metrics import DP_LABELS, score, tables
from finetune.tasks.dp.published import QUIRKS
from finetune.tasks.dp.reader import COLUMNS, POS_TAGS
from finetune.tasks.dp.tree import best_right_headed_trees
from finetune.tasks.labels import build_head


def configure(task: Task, config: FinetuneConfig) -> Task:
    """Without gold part-of-speech tags (``finetune.pos_tags=false``) the parser reads words alone, as new text has."""
    if config.pos_tags:
        return task
    model: Any = task.model
    return replace(task, model=partial(model, pos_tags=None), inference=reader.INFERENCE_WITHOUT_POS)


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
    inference=reader.INFERENCE,
    ensembling=Ensembling(partial(alignment.merge, decode), alignment.to_records),
    configure=configure,
    revision=2,  # POS tags in the published order
)
