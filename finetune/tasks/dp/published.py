"""KLUE-DP as in the published code (KLUE-baseline), for scores that compare with paper Table 36.

Its quirks are named where they are reproduced, and our fixes where the published code stops or depends on the order of
the file. Padding is masked in evaluation as in training: the published code gives padded positions the score 0, above
every negative score, so its predictions depend on the other sentences of a batch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from finetune.examples import Example, Feature, Prediction, Tokenizer
from finetune.task import Ensembling
from finetune.tasks.dp import alignment
from finetune.tasks.dp.metrics import DP_LABELS
from finetune.tasks.dp.reader import POS_IDS, POS_TAGS, read_sentences
from finetune.tasks.labels import build_head


def read(path: Path) -> list[Example]:
    """Sentences of a file; words that a spreadsheet damaged are kept. (Published features carry the guid of the next
    sentence; here each has its own.)"""
    examples = read_sentences(path, as_it_stands=True)
    for example in examples:
        for number, tag in enumerate(example.inputs["pos"], start=1):
            if tag not in POS_IDS:
                raise BadInput(
                    f"{path}, {example.guid}: POS of word {number} ends in {tag!r}, none of the {len(POS_TAGS)} tags; "
                    "correct it or use protocol malmoi, which takes it for an unknown tag"
                )
    return examples


def featurize(examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool) -> list[Feature]:
    """One feature per sentence; words are located by counting the sub-words of each word alone.

    Quirks: a word without sub-words shifts all later words by one; in a sentence longer than ``max_tokens`` a word can
    be on the final [SEP]. Fixes: a word that the cut divides is left out, and all sentences are cut alike (the
    published code stops at the first, and at a long sentence at the end of a file); a head after the cut is no target.
    """
    only_ids = {"return_attention_mask": False, "return_token_type_ids": False}
    sentences = [example.inputs["words"] for example in examples]
    words = list(dict.fromkeys(chain.from_iterable(sentences)))
    alone = tokenizer(words, add_special_tokens=False, **only_ids)["input_ids"]
    pieces = {word: max(1, len(ids)) for word, ids in zip(words, alone, strict=True)}
    encoded: list[alignment.Encoded] = []
    together = tokenizer([" ".join(words) for words in sentences], **only_ids)["input_ids"]
    for ids, sentence in zip(together, sentences, strict=True):
        ends = list(accumulate(pieces[word] for word in sentence))
        n = max(1, bisect_left(ends, max_tokens))
        encoded.append((ids, [1, *(end + 1 for end in ends)][:n], [min(end, max_tokens - 1) for end in ends[:n]]))
    return alignment.make_features(examples, encoded, max_tokens, is_training, right_only=False)


def collate(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Batch as ``BiaffineParser.forward`` describes it. A word shifted beyond its sentence is on the last sub-word; the
    published code reads padding."""
    batch = alignment.collate_words(features, pad_id)
    final_B1 = batch["attention_mask"].sum(axis=1, keepdims=True) - 1
    return {**batch, "first": np.minimum(batch["first"], final_B1), "last": np.minimum(batch["last"], final_B1)}


def decode(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[Prediction]:
    """The best head of each word on its own: to the left, itself, several roots or a cycle are possible.

    Words after the cut depend on their right neighbors and count; the published code excludes them from the scores.
    """
    return alignment.name_arcs(examples, features, raws, [raw["arcs"].argmax(axis=1).tolist() for raw in raws])


QUIRKS = {
    "read": read, "featurize": featurize, "collate": collate, "decode": decode,
    "model": partial(
        build_head, "BiaffineParser", pos_tags=len(POS_TAGS) + 1, types=len(DP_LABELS), is_published=True,
        right_only=False, dropout=0.0,
    ),
    "ensembling": Ensembling(partial(alignment.merge, decode), alignment.to_records),
}  # fmt: skip
