"""KLUE-DP: dependency parsing of eojeols (KLUE paper 3.6, 5.1).

A word's vector is its first and its last sub-word and its last part-of-speech tag. Decoding finds the best tree among
those that Korean allows here: projective, every head to the right, one root, as all 2,000 sentences of dev are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from finetune.task import Example, Feature, Files, Hyperparameters, Prediction, Task
from finetune.tasks.dp.align import (
    chain_words,
    collate_klue_dp,
    cut_ids,
    keep_trainable,
    make_feature,
    make_record,
    name_arcs,
)
from finetune.tasks.dp.metrics import DP_LABELS, score, tables
from finetune.tasks.dp.published import AS_PUBLISHED
from finetune.tasks.dp.tree import best_right_headed_trees
from finetune.tasks.dp.words import POS_TAGS, fault_of_tree, read_klue_dp, write_klue_dp

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerBase


def locate_words(
    sentences: Sequence[Sequence[str]], offsets: Sequence[Sequence[tuple[int, int]]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last sub-word of each word of all sentences, words being joined by one space.

    A sub-word belongs to the words of its first and its last character; the space before a word, which some tokenizers
    count into a sub-word or make one of its own, belongs to none.

    Returns:
        first, last: positions in the sentence, one a word; 0, [CLS], for a word without a sub-word (only invisible
        characters).
    """
    sizes = np.fromiter(map(len, chain.from_iterable(sentences)), dtype=np.int64)
    ends = np.cumsum(sizes + 1)  # behind the space that follows each word
    is_letter = np.ones(int(ends[-1]), dtype=bool)
    is_letter[ends - 1] = False
    letters_before = np.concatenate([[0], np.cumsum(is_letter)])
    word_of_letter = np.repeat(np.arange(len(sizes)), sizes)
    tokens = np.fromiter(map(len, offsets), dtype=np.int64)
    bases = np.concatenate([[0], ends])[np.cumsum([0, *map(len, sentences)])[:-1]]
    spans_T2 = np.fromiter(chain.from_iterable(chain.from_iterable(offsets)), dtype=np.int64).reshape(-1, 2)
    begin_T, end_T = letters_before[(spans_T2 + np.repeat(bases, tokens)[:, None])].T
    position_T = np.arange(len(spans_T2)) - np.repeat(np.cumsum(tokens) - tokens, tokens)
    real_T = end_T > begin_T
    first, last = np.full(len(sizes), len(spans_T2)), np.zeros(len(sizes), dtype=np.int64)
    for letter_T in (begin_T[real_T], end_T[real_T] - 1):
        np.minimum.at(first, word_of_letter[letter_T], position_T[real_T])
        np.maximum.at(last, word_of_letter[letter_T], position_T[real_T])
    return np.where(last > 0, first, 0), last


def featurize_klue_dp(
    examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, max_tokens: int, is_training: bool
) -> list[Feature]:
    """One feature a sentence. Words behind ``max_tokens`` are left out, but for the first; a gold head that cannot be
    (behind the cut, or to the left of its word) is no target."""
    sentences = [example.inputs["words"] for example in examples]
    encoded = tokenizer(
        [" ".join(words) for words in sentences],
        return_offsets_mapping=True,
        return_attention_mask=False,
        return_token_type_ids=False,
    )
    all_first, all_last = (column.tolist() for column in locate_words(sentences, encoded["offset_mapping"]))
    features, begin = [], 0
    for number, example in enumerate(examples):
        end = begin + len(sentences[number])
        first, last = all_first[begin:end], all_last[begin:end]
        begin, ids = end, encoded["input_ids"][number]
        if len(ids) > max_tokens:
            n = max(1, next((word for word, position in enumerate(last) if position >= max_tokens - 1), len(last)))
            first, last = first[:n], [min(position, max_tokens - 2) for position in last[:n]]
        features.append(make_feature(number, example, cut_ids(ids, max_tokens), first, last, right_only=True))
    return keep_trainable(features, is_training)


def build_klue_dp(encoder: str, tokenizer: PreTrainedTokenizerBase, with_pos: bool = True) -> nn.Module:
    """Encoder and parser; ``with_pos``: the gold part-of-speech tags are part of the input, as in all published
    scores."""
    from finetune.encoder import load_encoder
    from finetune.heads.biaffine import BiaffineParser, PlainReader

    return BiaffineParser(
        PlainReader(load_encoder(encoder, tokenizer), len(POS_TAGS) + 2 if with_pos else None), len(DP_LABELS)
    )


def leave_out_pos(task: Task) -> Task:
    """KLUE-DP of either protocol from words alone, as a parser has to work where nobody has tagged the text."""
    build: Callable[..., nn.Module] = task.model
    return replace(task, model=partial(build, with_pos=False))


def decode_klue_dp(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[Prediction]:
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
    read=read_klue_dp,
    featurize=featurize_klue_dp,
    collate=collate_klue_dp,
    model=build_klue_dp,
    decode=decode_klue_dp,
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
    write=write_klue_dp,
    plain=leave_out_pos,
)
