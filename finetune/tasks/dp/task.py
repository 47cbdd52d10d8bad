"""KLUE-DP: dependency parsing of eojeols (KLUE paper 3.6, 5.1).

A word's vector is its first and its last sub-word and its last part-of-speech tag. Decoding finds the best tree among
those that Korean allows here: projective, every head to the right, one root, as all 2,000 sentences of dev are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from finetune.task import Example, Feature, Files, Hyperparameters, Module, Prediction, Task, Tokenizer
from finetune.tasks.dp.align import chain_words, collate_words, featurize, make_record, name_arcs
from finetune.tasks.dp.metrics import DP_LABELS, score, tables
from finetune.tasks.dp.published import AS_PUBLISHED
from finetune.tasks.dp.tree import best_right_headed_trees
from finetune.tasks.dp.words import POS_TAGS, fault_of_tree, read_sentences, write_trees


def build(encoder: str, tokenizer: Tokenizer, with_pos: bool = True) -> Module:
    """Encoder and parser; ``with_pos``: the gold part-of-speech tags are part of the input, as in all published
    scores."""
    from finetune.encoder import load_encoder
    from finetune.heads.biaffine import BiaffineParser, PlainReader

    return BiaffineParser(
        PlainReader(load_encoder(encoder, tokenizer), len(POS_TAGS) + 2 if with_pos else None), len(DP_LABELS)
    )


def leave_out_pos(task: Task) -> Task:
    """KLUE-DP of either protocol from words alone, as a parser has to work where nobody has tagged the text."""
    build: Callable[..., Module] = task.model
    return replace(task, model=partial(build, with_pos=False))


def decode(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[Prediction]:
    """The best tree of each sentence. Words cut off by ``max_tokens`` hang on their right neighbour."""
    trees = best_right_headed_trees([raw["arcs"] for raw in raws])
    predictions = name_arcs(examples, features, raws, trees)
    for feature, heads in zip(features, trees, strict=True):
        value = predictions[feature["example"]].value
        if len(heads) < len(value["heads"]):
            value["heads"][len(heads) - 1] = len(heads) + 1  # the sentence goes on, so this is not its root
    return predictions


def predict_trivially(train: Sequence[Example], examples: Sequence[Example]) -> list[Prediction]:
    """Every word hangs on its right neighbour, the last one is the root; types are the commonest of each of the two."""
    inner = Counter(name for example in train for name in example.gold["types"][:-1])
    last = Counter(example.gold["types"][-1] for example in train)
    commonest = [max(sorted(counts), key=counts.__getitem__, default=DP_LABELS[0]) for counts in (inner, last)]
    return [chain_words(example, *commonest) for example in examples]


KLUE_DP = Task(
    name="klue-dp",
    predicts="head and relation of each word (eojeol)",
    files=Files(train="klue-dp-v1.1/klue-dp-v1.1_train.tsv", dev="klue-dp-v1.1/klue-dp-v1.1_dev.tsv"),
    read=read_sentences,
    featurize=featurize,
    collate=collate_words,
    model=build,
    decode=decode,
    score=score,
    trivial=predict_trivially,
    fault=partial(fault_of_tree, frozenset(DP_LABELS)),
    select_by="las_macro_f1",
    defaults=Hyperparameters(lr=5e-5, epochs=10, batch_size=32, warmup_share=0.1, max_tokens=256),
    large=Hyperparameters(lr=5e-5, epochs=15, batch_size=32, warmup_share=0.2, max_tokens=256),
    paper_dev={
        "klue/bert-base": {"uas_macro_f1": 93.07, "las_macro_f1": 87.25},
        "klue/roberta-small": {"uas_macro_f1": 92.45, "las_macro_f1": 86.61},
        "klue/roberta-base": {"uas_macro_f1": 93.22, "las_macro_f1": 87.56},
        "klue/roberta-large": {"uas_macro_f1": 93.74, "las_macro_f1": 87.91},
    },
    as_published=AS_PUBLISHED,
    record=make_record,
    tables=tables,
    write=write_trees,
    plain=leave_out_pos,
)
