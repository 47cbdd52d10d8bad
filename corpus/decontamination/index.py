"""The index of benchmark sentences, and the search for them in documents. ``match_rule.py`` defines what a match is.

A benchmark sentence is listed only under its heaviest tokens, until the weight of the others is below the threshold. A
corpus sentence without any of these tokens cannot reach the threshold, so decisions are equal to brute force.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np

from corpus.decontamination.letter_stream import alike_letters, encode_ngrams, hash_table, look_up, read_batches
from corpus.decontamination.match_rule import RULE, MatchRule
from corpus.decontamination.search import ROUNDING, Ratios, pack_postings, search
from corpus.sentences.folding import fold, fold_all

TOKEN_BITS = 32
LISTED_DEPTH = 0.6  # below 1, more tokens are listed than exactness needs, so fewer candidates are weighed
K1, B, EPSILON = 1.5, 0.75, 0.25  # BM25Okapi's own
SETTINGS_NAME = "settings.json"


class Hit(NamedTuple):
    """Sentence number ``sentence`` of the query contains benchmark sentence ``item``; ``ratio`` in 0..1."""

    sentence: int
    item: int
    ratio: float


@dataclass(frozen=True, slots=True, eq=False)
class ContaminationIndex:
    """Benchmark sentences by token: D sentences, E entries, P postings, S slots (a power of two)."""

    letter_C: np.ndarray  # result of ``alike_letters``, 0 for dropped code points
    slot_code_S: np.ndarray  # hash table of token codes, 0 for empty slots; the slot is the token number
    entry_start_D: np.ndarray  # start of the tokens of each sentence, D + 1 numbers
    entry_token_E: np.ndarray  # distinct tokens of each sentence, the heaviest first
    entry_weight_E: np.ndarray  # their BM25 weights
    posting_start_S: np.ndarray  # start of the postings of each token, S + 1 numbers
    posting_item_P: np.ndarray  # sentences listed under a token
    posting_cell_P: np.ndarray  # data of the first filter, see ``pack_postings``; uint64
    total_D: np.ndarray  # BM25(d, d)
    min_share_D: np.ndarray  # minimum share by the weight of the sentence, see ``MatchRule.min_item_chars``
    window_D: np.ndarray  # window size in tokens within a sentence
    reach_D: np.ndarray  # the same across sentences
    shift_D: np.ndarray  # log2 of the block size of the search, at least as long as both windows
    ngram: int
    threshold: float
    threshold_across: float

    def save(self, folder: Path) -> None:
        """Write one .npy file per array, and settings as JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        settings = {name: value for name, value in values.items() if not isinstance(value, np.ndarray)}
        for name in values.keys() - settings.keys():
            np.save(folder / f"{name}.npy", values[name], allow_pickle=False)
        (folder / SETTINGS_NAME).write_text(json.dumps(settings), "utf-8")

    @classmethod
    def load(cls, folder: Path) -> ContaminationIndex:
        """Load with memory-mapped arrays, so processes share one copy."""
        settings = json.loads((folder / SETTINGS_NAME).read_text("utf-8"))
        names = [field.name for field in fields(cls) if field.name not in settings]
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names}
        return cls(**settings | {name: np.asarray(array) for name, array in arrays.items()})

    def weights_of(self, item: int) -> dict[int, float]:
        entries = slice(*self.entry_start_D[item : item + 2].tolist())
        return dict(zip(self.entry_token_E[entries].tolist(), self.entry_weight_E[entries].tolist(), strict=True))

    def min_weight(self, item: int, threshold: float) -> float:
        return (max(threshold, float(self.min_share_D[item])) - ROUNDING) * float(self.total_D[item])

    def ratio(self, item: int, weight: float) -> float:
        return min(1.0, weight / float(self.total_D[item]))

    def find(self, sentences: Sequence[str]) -> list[Hit]:
        """All pairs of a corpus sentence and a benchmark sentence that it contains, sorted."""
        return self.find_in_documents([[sentence] for sentence in sentences])

    def find_in_documents(self, documents: Sequence[Sequence[str]]) -> list[Hit]:
        """The same for documents; sentences are numbered through, and items may cross sentence boundaries.

        Of such an item, a sentence is a hit if ``COVERED_SHARE`` of it is covered by crossing items, or if it contains
        ``BORNE_SHARE`` of the item.
        """
        hits: Ratios = {}
        for batch in read_batches(documents, self.letter_C):
            hits |= {(batch.first + n, item): ratio for (n, item), ratio in search(self, batch).items()}
        return [Hit(*pair, ratio) for pair, ratio in sorted(hits.items())]


def build_index(texts: Sequence[str], rule: MatchRule = RULE) -> tuple[ContaminationIndex, list[int]]:
    """Index benchmark sentences; sentences that are equal after folding share a number.

    Returns:
        the index, and the number of each text as in ``Hit.item``; -1 for texts that are too short for ``rule``.
    """
    folded = [fold(text) for text in texts]
    long = list(dict.fromkeys(key for text, key in zip(texts, folded, strict=True) if rule.is_long_enough(text, key)))
    number = {text: n for n, text in enumerate(long)}
    letter_C = alike_letters()
    letters, sizes = fold_all(long, letter_C)
    lengths, min_tokens = sizes - rule.ngram + 1, rule.min_item_chars - rule.ngram + 1
    slot_code_S, item_E, token_E, count_E = _tokenize(letters, sizes, rule.ngram)
    weight_E = _weigh(item_E, token_E, count_E, lengths)
    order = np.lexsort((-weight_E, item_E))
    entries = item_E[order], token_E[order], weight_E[order]
    postings, share_P = _list_tokens(entries, len(long), len(slot_code_S), rule.threshold)
    window_D, reach_D = (np.ceil(lengths * share).astype(np.int64) for share in (rule.window, rule.window_across))
    shift_D = np.ceil(np.log2(np.maximum(np.maximum(window_D, reach_D), 2))).astype(np.int64)
    index = ContaminationIndex(
        letter_C=letter_C,
        slot_code_S=slot_code_S,
        min_share_D=np.minimum(1, min_tokens * weight_E.sum() / max(1, len(weight_E)) / postings["total_D"]),
        window_D=window_D,
        reach_D=reach_D,
        shift_D=shift_D,
        ngram=rule.ngram,
        threshold=rule.threshold,
        threshold_across=max(rule.threshold, rule.threshold_across),
        posting_cell_P=pack_postings(postings["posting_item_P"], shift_D, share_P),
        **postings,
    )
    return index, [number.get(key, -1) for key in folded]


def _tokenize(letters: np.ndarray, sizes: np.ndarray, ngram: int) -> tuple[np.ndarray, ...]:
    """The hash table of all tokens, and the distinct tokens of each sentence: sentence, token, count; int32."""
    text_L = np.repeat(np.arange(len(sizes)), sizes)
    code, at = encode_ngrams(letters, text_L, ngram)
    ordered = np.sort(code)
    slot_code_S = hash_table(ordered[np.diff(ordered, prepend=np.uint64(0)) > 0])
    del ordered
    pairs = text_L[at]
    pairs <<= TOKEN_BITS
    pairs |= look_up(code, slot_code_S)
    pairs.sort()
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    count = np.diff(first, append=len(pairs)).astype(np.int32)
    return slot_code_S, (pairs[first] >> TOKEN_BITS).astype(np.int32), pairs[first].astype(np.int32), count


def _weigh(item: np.ndarray, token: np.ndarray, count: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The BM25Okapi weights of counted tokens."""
    D, found_in = len(lengths), np.bincount(token)
    idf = np.log(D - found_in + 0.5) - np.log(found_in + 0.5)
    average = float(idf.mean(where=found_in > 0)) if D else 0.0
    # with two or three sentences, all tokens have the same weight
    idf = np.where(idf < 0, EPSILON * average, idf) if average > ROUNDING else np.ones(len(idf))
    norm = K1 * (1 - B + B * lengths / max(1.0, lengths.mean() if D else 0.0))
    weight: np.ndarray = idf[token] * count * (K1 + 1) / (count + norm[item])
    return weight


def _list_tokens(
    entries: tuple[np.ndarray, np.ndarray, np.ndarray], D: int, S: int, threshold: float
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Postings of the heaviest tokens of each sentence, and the share of each posting: the weight of the token,
    divided by the minimum weight of the listed tokens of its sentence. ``entries`` are (sentence, token, weight)."""
    item, token, weight = entries
    total = np.maximum(np.bincount(item, weight, minlength=D), np.finfo(float).tiny)
    starts = np.concatenate([[0], np.cumsum(np.bincount(item, minlength=D))])
    before = np.cumsum(weight) - weight
    left = total[item] - (before - before[starts[:-1]][item] if D else before)  # weight of this and all lighter tokens
    is_listed = left >= (threshold * LISTED_DEPTH - 2 * ROUNDING) * total[item]
    order = np.flatnonzero(is_listed)
    order = order[np.argsort(token[order], kind="stable")]
    item_P, weight_P = item[order], weight[order]
    small = np.min_scalar_type(-len(order) - 1)
    needed = (threshold - ROUNDING) * total - (total - np.bincount(item_P, weight_P, minlength=D))
    arrays = {
        "entry_start_D": starts,
        "entry_token_E": token,
        "entry_weight_E": weight,
        "posting_start_S": np.concatenate([[0], np.cumsum(np.bincount(token[order], minlength=S))]).astype(small),
        "posting_item_P": item_P,
        "total_D": total,
    }
    return arrays, weight_P / needed[item_P]
