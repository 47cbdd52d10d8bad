"""Features, batches, records, predictions and ensembles of KLUE-DP that both protocols share.

A protocol chooses the sub-word positions of words, which heads can be targets, and how heads follow from scores. An
ensemble takes the mean probability of each arc and relation. Relations are stored for heads that a model considers
possible; on other arcs its best relation breaks ties.
Legend: ``n`` words that are kept, without those after the maximum length, ``K`` relations, ``C`` pairs of a word and a
possible head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finetune.examples import IGNORED, Example, Feature, Prediction, Tokenizer, pad_inputs, pad_rows
from finetune.metrics import softmax
from finetune.task import MemberRecord, MemberRecords
from finetune.tasks.dp.metrics import DP_LABELS, TYPE_IDS
from finetune.tasks.dp.reader import POS_IDS, ROOT_POS, UNKNOWN_POS

Encoded = tuple[list[int], list[int], list[int]]  # ids of a sentence, first and last sub-word of each word
Decode = Callable[[Sequence[Example], Sequence[Feature], Sequence[Any]], list[Prediction]]
POSSIBLE = 0.01  # probability of an arc from which its relations are kept
LEAST = 1e-9  # what the best relation of any other arc counts


def locate_words(words: Sequence[str], offsets: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """First and last sub-word of each word of a sentence, joined by spaces; 0, [CLS], for a word without sub-words.

    A sub-word belongs to the words of its first and its last character; the space before a word, which some tokenizers
    include in a sub-word, belongs to none.
    """
    word_of = [number for number, word in enumerate(words) for _ in word]  # of each letter, spaces not counted
    is_letter = (flag for word in words for flag in (*[1] * len(word), 0))
    letters = list(accumulate(is_letter, initial=0))  # before each position
    first, last = dict[int, int](), dict[int, int]()
    for position, (begin, end) in enumerate(offsets):
        if letters[begin] < letters[end]:
            for word in (word_of[letters[begin]], word_of[letters[end] - 1]):
                first.setdefault(word, position)
                last[word] = position
    return [first.get(word, 0) for word in range(len(words))], [last.get(word, 0) for word in range(len(words))]


def make_features(
    examples: Sequence[Example], encoded: Iterable[Encoded], max_tokens: int, is_training: bool, *, right_only: bool
) -> list[Feature]:
    """One feature per sentence, of the first sub-words and [SEP]; position 0 is the root, [CLS]. A gold head after the
    cut, or to the left of its word with ``right_only``, is no target. In training, drop sentences without targets."""
    features: list[Feature] = []
    for number, (example, (ids, first, last)) in enumerate(zip(examples, encoded, strict=True)):
        n = len(first)
        gold = example.gold or {"heads": [IGNORED] * n, "types": DP_LABELS[:1] * n}
        heads = [
            head if head == 0 or (word if right_only else 0) < head <= n else IGNORED
            for word, head in enumerate(gold["heads"][:n], start=1)
        ]
        pairs = zip(heads, gold["types"][:n], strict=True)
        feature = {
            "input_ids": ids if len(ids) <= max_tokens else [*ids[: max_tokens - 1], ids[-1]],
            "example": number,
            "first": [0, *first],
            "last": [0, *last],
            "pos": [ROOT_POS, *(POS_IDS.get(tag, UNKNOWN_POS) for tag in example.inputs["pos"][:n])],
            "heads": heads,
            "types": [IGNORED if head == IGNORED else TYPE_IDS[name] for head, name in pairs],
        }
        if not is_training or any(head != IGNORED for head in heads):
            features.append(feature)
    return features


def featurize(examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool) -> list[Feature]:
    """One feature per sentence. Words after ``max_tokens`` are left out, except the first; an impossible gold head
    (after the cut, or to the left of its word) is no target."""
    encoded = tokenizer(
        [" ".join(example.inputs["words"]) for example in examples], return_offsets_mapping=True,
        return_attention_mask=False, return_token_type_ids=False,
    )  # fmt: skip
    sentences: list[Encoded] = []
    for example, ids, offsets in zip(examples, encoded["input_ids"], encoded["offset_mapping"], strict=True):
        first, last = locate_words(example.inputs["words"], offsets)
        if len(ids) > max_tokens:
            n = max(1, next((word for word, position in enumerate(last) if position >= max_tokens - 1), len(last)))
            first, last = first[:n], [min(position, max_tokens - 2) for position in last[:n]]
        sentences.append((ids, first, last))
    return make_features(examples, sentences, max_tokens, is_training, right_only=True)


def collate_words(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Batch as ``BiaffineParser.forward`` describes it."""
    fillers = {"first": 0, "last": 0, "pos": ROOT_POS, "heads": IGNORED, "types": IGNORED}
    return {
        **pad_inputs(features, pad_id),
        **{key: pad_rows([feature[key] for feature in features], filler) for key, filler in fillers.items()},
        "lengths": np.array([len(feature["heads"]) for feature in features]),
    }


def chain_words(example: Example, inner: str, last: str) -> Prediction:
    """Every word hangs on its right neighbour; the last is the root."""
    words = len(example.inputs["words"])
    return Prediction({"heads": [*range(2, words + 1), 0], "types": [*[inner] * (words - 1), last]})


def name_arcs(
    examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any], trees: Sequence[Sequence[int]]
) -> list[Prediction]:
    """Predictions with the chosen heads and the best type of each arc; words after the cut form a chain."""
    predictions = [chain_words(example, "NP", "VP") for example in examples]
    for feature, raw, heads in zip(features, raws, trees, strict=True):
        value, n = predictions[feature["example"]].value, len(heads)
        value["heads"][:n] = heads
        value["types"][:n] = [DP_LABELS[number] for number in raw["types"][np.arange(n), heads].tolist()]
    return predictions


def to_records(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[MemberRecord]:
    """``words``: number of words read and in total; ``arcs``: log-probabilities, and ``types``, of n x (n + 1) arcs;
    ``pairs``: those with ``relations``, K scores each."""
    records: list[MemberRecord] = [{}] * len(examples)
    for feature, raw in zip(features, raws, strict=True):
        n = len(raw["arcs"])
        pairs_nC = np.arange(n)[:, None] * (n + 1) + raw["heads"]
        is_kept_nC = np.take_along_axis(raw["arcs"], np.minimum(raw["heads"], n), axis=1) >= np.log(POSSIBLE)
        is_kept_nC &= raw["heads"] <= n
        records[feature["example"]] = {
            "words": np.array([n, len(examples[feature["example"]].inputs["words"])], dtype=np.int32),
            "arcs": raw["arcs"].ravel(),
            "types": raw["types"].ravel(),
            "pairs": pairs_nC[is_kept_nC].astype(np.int32),
            "relations": raw["relations"][is_kept_nC].ravel(),
        }
    return records


def merge(decode: Decode, members: Sequence[MemberRecords]) -> list[Prediction]:
    """The result of ``decode`` for the mean of the members. If some members cut a long sentence, those that read the
    most of it count."""
    examples, features, raws = [], [], []
    for number, records in enumerate(zip(*members, strict=True)):
        n, words = max(tuple(record["words"].tolist()) for record in records)
        whole = [record for record in records if record["words"][0] == n]
        examples.append(Example("", None, {"words": [""] * words}))
        features.append({"example": number})
        arcs = mean_of_logs([record["arcs"] for record in whole]).reshape(n, n + 1)
        raws.append({"arcs": arcs, "types": _best_types(whole).reshape(n, n + 1)})
    return decode(examples, features, raws)


def mean_of_logs(logs: Sequence[NDArray[np.floating]]) -> NDArray[np.float64]:
    """The logarithm of the mean probability; equal inputs are returned to the last bit."""
    stacked = np.stack(logs).astype(np.float64)
    most = stacked.max(axis=0)
    return np.asarray(most + np.log(np.exp(stacked - most).mean(axis=0)))


def _best_types(records: Sequence[MemberRecord]) -> NDArray[np.int64]:
    """The most likely relation of each arc, given the arc."""
    votes = np.zeros((len(records[0]["arcs"]), len(DP_LABELS)))
    for record in records:
        votes[np.arange(len(votes)), record["types"]] += LEAST
        relations_CK = softmax(record["relations"].reshape(-1, len(DP_LABELS)))
        votes[record["pairs"]] += np.exp(record["arcs"][record["pairs"], None]) * relations_CK
    return np.asarray(votes.argmax(axis=1))
