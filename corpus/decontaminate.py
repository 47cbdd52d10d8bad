"""Which corpus sentences hold a benchmark sentence: BM25 decontamination (paper section 2.3) with an exact fast index.

The paper names BM25 and no threshold. Here r(q, d) = BM25(q, d) / BM25(d, d) over distinct tokens, in 0..1: the share
of the BM25 weight of benchmark sentence d that corpus sentence q covers, at best within a window of q as long as a
multiple of d. Tokens are character trigrams of letters and digits, so that spacing does not matter; weights are
BM25Okapi's of rank_bm25. Prefix filter: d is listed only under its heaviest tokens, until what is left weighs less than
the threshold; a q that shares none of them cannot reach it, so decisions equal brute force.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rank_bm25 import BM25Okapi

from corpus.config import DecontaminateConfig
from corpus.deduplicate import fold

CODE_POINT_BITS = 21
LISTED_DEPTH = 0.7  # below 1 more tokens are listed than exactness needs: fewer candidates to weigh
ROUNDING = 1e-9  # sums in another order must not change a decision
SETTINGS_NAME = "settings.json"


class Hit(NamedTuple):
    """Sentence number ``sentence`` of the query holds benchmark sentence ``item``; ``ratio`` in 0..1."""

    sentence: int
    item: int
    ratio: float


@dataclass(frozen=True, slots=True, eq=False)
class ContaminationIndex:
    """Benchmark sentences by token. T tokens, D long sentences, E entries, P postings; short sentences follow the long.

    Fields:
        tokens_T: sorted token codes, uint64.
        entry_start_D: where the tokens of a sentence begin, D + 1 numbers.
        entry_token_E, entry_weight_E: distinct tokens of each sentence and their BM25 weights.
        posting_start_T: where the postings of a token begin, T + 1 numbers.
        posting_item_P, posting_weight_P: sentences listed under a token.
        total_D, rest_D: BM25(d, d), and the part of it that is not listed.
        window_D: tokens of a corpus sentence that are looked at together.
        short: folded short sentences and their numbers.
    """

    tokens_T: np.ndarray
    entry_start_D: np.ndarray
    entry_token_E: np.ndarray
    entry_weight_E: np.ndarray
    posting_start_T: np.ndarray
    posting_item_P: np.ndarray
    posting_weight_P: np.ndarray
    total_D: np.ndarray
    rest_D: np.ndarray
    window_D: np.ndarray
    ngram: int
    threshold: float
    short: dict[str, int]

    def save(self, folder: Path) -> None:
        """Write the index into an existing folder: one .npy file per array, settings as JSON."""
        settings = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                np.save(folder / f"{field.name}.npy", value, allow_pickle=False)
            else:
                settings[field.name] = value
        (folder / SETTINGS_NAME).write_text(json.dumps(settings, ensure_ascii=False), "utf-8")

    @classmethod
    def load(cls, folder: Path) -> ContaminationIndex:
        """Arrays are memory-mapped: processes share one copy."""
        settings = json.loads((folder / SETTINGS_NAME).read_text("utf-8"))
        names = [field.name for field in fields(cls) if field.name not in settings]
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names}
        return cls(**settings | {name: np.asarray(array) for name, array in arrays.items()})

    def find(self, sentences: Sequence[str]) -> list[Hit]:
        """All pairs of a corpus sentence and a benchmark sentence it holds, by sentence, then item."""
        folded = [fold(sentence) for sentence in sentences]
        hits = {(n, self.short[text]): 1.0 for n, text in enumerate(folded) if text in self.short}
        if len(self.total_D):
            window = int(self.window_D.max())
            pieces = [(n, piece) for n, text in enumerate(folded) for piece in _pieces(text, window, self.ngram)]
            for query, item, ratio in self._match([piece for _, piece in pieces]):
                key = (pieces[query][0], item)
                hits[key] = max(ratio, hits.get(key, 0.0))
        return [Hit(sentence, item, ratio) for (sentence, item), ratio in sorted(hits.items())]

    def _match(self, queries: Sequence[str]) -> list[tuple[int, int, float]]:
        token_of, query_of = _encode(queries, self.ngram)
        place = np.minimum(np.searchsorted(self.tokens_T, token_of), len(self.tokens_T) - 1)
        is_known = self.tokens_T[place] == token_of
        known_query, known_token = query_of[is_known], place[is_known]
        keys = np.unique(known_query * len(self.tokens_T) + known_token)
        query, item = self._candidates(keys)
        ratio = self._ratios(keys, query, item)
        is_hit = ratio >= self.threshold - ROUNDING
        lengths = np.bincount(query_of, minlength=len(queries))
        found = []
        for q, d, r in zip(query[is_hit].tolist(), item[is_hit].tolist(), ratio[is_hit].tolist(), strict=True):
            if lengths[q] > self.window_D[d]:
                first, last = np.searchsorted(query_of, (q, q + 1))
                tokens = np.where(is_known[first:last], place[first:last], -1)
                r = self._best_window(tokens, d)
            if r >= self.threshold - ROUNDING:
                found.append((q, d, min(r, 1.0)))
        return found

    def _candidates(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (query, item) that can still reach the threshold, judged by the listed tokens they share."""
        query, token = np.divmod(keys, len(self.tokens_T))
        postings, owner = _ranges(self.posting_start_T[token], self.posting_start_T[token + 1])
        pairs = query[owner] * len(self.total_D) + self.posting_item_P[postings]
        order = np.argsort(pairs, kind="stable")
        pairs, first = np.unique(pairs[order], return_index=True)
        if not len(pairs):
            return pairs, pairs
        shared = np.add.reduceat(self.posting_weight_P[postings][order], first)
        query, item = np.divmod(pairs, len(self.total_D))
        can_reach = shared + self.rest_D[item] >= (self.threshold - ROUNDING) * self.total_D[item]
        return query[can_reach], item[can_reach]

    def _ratios(self, keys: np.ndarray, query: np.ndarray, item: np.ndarray) -> np.ndarray:
        """BM25(q, d) / BM25(d, d) of pairs; ``keys`` holds the sorted (query, token) numbers present."""
        if not len(query):
            return np.zeros(0)
        starts = self.entry_start_D[item]
        entries, owner = _ranges(starts, self.entry_start_D[item + 1])
        wanted = query[owner] * len(self.tokens_T) + self.entry_token_E[entries]
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        weights = np.where(keys[place] == wanted, self.entry_weight_E[entries], 0.0)
        return np.bincount(owner, weights, minlength=len(query)) / self.total_D[item]

    def _best_window(self, tokens: np.ndarray, item: int) -> float:
        """The ratio within the best run of ``window_D[item]`` tokens."""
        entries = slice(*self.entry_start_D[item : item + 2])
        weights = dict(zip(self.entry_token_E[entries].tolist(), self.entry_weight_E[entries].tolist(), strict=True))
        inside: dict[int, int] = {}
        best = covered = 0.0
        places = [(at, token) for at, token in enumerate(tokens.tolist()) if token in weights]
        oldest = 0
        for at, token in places:
            if not inside.get(token):
                covered += weights[token]
            inside[token] = inside.get(token, 0) + 1
            while places[oldest][0] <= at - self.window_D[item]:
                gone = places[oldest][1]
                inside[gone] -= 1
                covered -= 0.0 if inside[gone] else weights[gone]
                oldest += 1
            best = max(best, covered)
        return best / float(self.total_D[item])


def _pieces(text: str, window: int, ngram: int) -> list[str]:
    """Very long sentences in overlapping pieces, so that every window lies within one and time stays linear."""
    if len(text) <= 2 * window + ngram:
        return [text]
    return [text[at : at + 2 * window + ngram - 1] for at in range(0, len(text) - window, window)]


def build_index(texts: Sequence[str], config: DecontaminateConfig) -> tuple[ContaminationIndex, list[int]]:
    """Index benchmark sentences; equal ones (folded) share a number.

    Returns:
        the index, and for each text its number in ``Hit.item``; -1 where nothing is left of it.
    """
    folded = [fold(text) for text in texts]
    long = list(dict.fromkeys(text for text in folded if len(text) >= config.min_chars))
    short = list(dict.fromkeys(text for text in folded if 0 < len(text) < config.min_chars))
    number = {text: n for n, text in enumerate(long + short)} | {"": -1}
    codes, owner = _encode(long, config.ngram)
    tokens_T, token = np.unique(codes, return_inverse=True)
    starts, entry_token, weight, lengths = _weigh(token, owner, len(tokens_T))
    item = np.repeat(np.arange(len(long)), np.diff(starts))
    order = np.lexsort((entry_token, -weight, item))  # heaviest tokens of a sentence first
    entry_token, weight = entry_token[order], weight[order]
    total = np.maximum(np.bincount(item, weight, minlength=len(long)), np.finfo(float).tiny)
    before = np.cumsum(weight) - weight
    left = total[item] - (before - before[starts[:-1]][item] if len(item) else before)  # weight from here to the end
    is_listed = left >= (config.threshold * LISTED_DEPTH - 2 * ROUNDING) * total[item]
    rest = total - np.bincount(item[is_listed], weight[is_listed], minlength=len(long))
    by_token = np.argsort(entry_token[is_listed], kind="stable")
    sizes = np.bincount(entry_token[is_listed], minlength=len(tokens_T))
    index = ContaminationIndex(
        tokens_T=tokens_T,
        entry_start_D=starts,
        entry_token_E=entry_token,
        entry_weight_E=weight,
        posting_start_T=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        posting_item_P=item[is_listed][by_token],
        posting_weight_P=weight[is_listed][by_token],
        total_D=total,
        rest_D=rest,
        window_D=np.ceil(lengths * config.window).astype(np.int64),
        ngram=config.ngram,
        threshold=config.threshold,
        short={text: number[text] for text in short},
    )
    return index, [number[text] for text in folded]


def _weigh(token: np.ndarray, owner: np.ndarray, vocabulary: int) -> tuple[np.ndarray, ...]:
    """BM25Okapi's weights: entry starts, tokens, weights and lengths of the sentences."""
    if not len(token):
        return np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
    numbers = list(range(vocabulary))  # one object per token, whatever its count
    cuts = np.flatnonzero(np.diff(owner)) + 1
    bm25 = BM25Okapi([numbers[t] for t in part.tolist()] for part in np.split(token, cuts))
    idf = np.fromiter((bm25.idf[t] for t in numbers), float, vocabulary)
    if bm25.average_idf <= 0:  # two or three sentences: no token tells them apart
        idf = np.ones(vocabulary)
    sizes = np.fromiter(map(len, bm25.doc_freqs), np.int64)
    entry_token = np.fromiter(chain.from_iterable(bm25.doc_freqs), np.int64)
    count = np.fromiter(chain.from_iterable(freqs.values() for freqs in bm25.doc_freqs), float)
    lengths = np.asarray(bm25.doc_len)
    norm = bm25.k1 * (1 - bm25.b + bm25.b * np.repeat(lengths, sizes) / bm25.avgdl)
    weight = idf[entry_token] * count * (bm25.k1 + 1) / (count + norm)
    return np.concatenate([[0], np.cumsum(sizes)]), entry_token, weight, lengths


def _encode(texts: Sequence[str], ngram: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes of all character n-grams, in order, and the number of the text each belongs to."""
    points = np.frombuffer("\n".join(texts).encode("utf-32-le"), np.uint32)
    is_break = points == ord("\n")
    text_of = np.cumsum(is_break)
    if len(points) < ngram:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    last = len(points) - ngram + 1
    code, is_within = np.zeros(last, np.uint64), np.ones(last, bool)
    for shift in range(ngram):
        code = (code << np.uint64(CODE_POINT_BITS)) | points[shift : shift + last]
        is_within &= ~is_break[shift : shift + last]
    return code[is_within], text_of[:last][is_within]


def _ranges(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All numbers of the ranges one after another, and the number of the range each came from."""
    sizes = ends - starts
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return np.arange(len(owner)) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes), owner
