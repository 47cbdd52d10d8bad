"""Which corpus sentences hold a benchmark sentence: BM25 decontamination (paper section 2.3) with an exact fast index.

The paper names BM25 and no threshold. Here r(q, d) = BM25(q, d) / BM25(d, d) over distinct tokens, in 0..1: the share
of the BM25 weight of benchmark sentence d that corpus sentence q covers, at best within a window of q as long as a
multiple of d. Tokens are character trigrams of letters and digits, so that spacing does not matter; weights are those
of rank_bm25's BM25Okapi. Prefix filter: d is listed only under its heaviest tokens, until what is left weighs less than
the threshold; a q that shares none of them cannot reach it, so decisions equal brute force.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np

from corpus.config import DecontaminateConfig
from corpus.decontamination.ngrams import batch_texts, encode_ngrams, first_slots, hash_table, look_up
from corpus.folding import fold, fold_all, letter_table

TOKEN_BITS = ITEM_BITS = 32
CELLS_PER_POSTING, CELLS_PER_TOKEN = 2, 8  # fewer let unlike pairs meet, more leave the processor's cache
LISTED_DEPTH = 0.8  # below 1 more tokens are listed than exactness needs: fewer candidates to weigh
ROUNDING = 1e-9  # sums in another order must not change a decision
SLACK = 1e-4  # of the filters before the decision, which add 32-bit numbers
GOLDEN_32 = np.uint32(0x9E3779B1)  # 2**32 / golden ratio: hashes by multiplication
K1, B, EPSILON = 1.5, 0.75, 0.25  # BM25Okapi's own
NO_WINDOW = 1 << 62
SETTINGS_NAME = "settings.json"


class Hit(NamedTuple):
    """Sentence number ``sentence`` of the query holds benchmark sentence ``item``; ``ratio`` in 0..1."""

    sentence: int
    item: int
    ratio: float


class Entries(NamedTuple):
    """Distinct tokens of benchmark sentences with their counts or weights, by sentence."""

    item_E: np.ndarray
    token_E: np.ndarray
    value_E: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class ContaminationIndex:
    """Benchmark sentences by token. D long sentences, E entries, P postings; short sentences follow the long.

    Fields:
        letter_C: what ``fold`` makes of every code point, 0 where it drops it.
        slot_code_S: hash table of token codes, 0 where empty; a token's number is its slot. S is a power of two.
        entry_start_D: where the tokens of a sentence begin, D + 1 numbers.
        entry_token_E, entry_weight_E: distinct tokens of each sentence and their BM25 weights.
        posting_start_S: where the postings of a token begin, S + 1 numbers.
        posting_item_P, posting_mixed_P: sentences listed under a token; their numbers hashed.
        posting_share_P: the token's weight over what the listed tokens of the sentence must reach; float32.
        total_D: BM25(d, d).
        window_D: tokens of a corpus sentence that are looked at together.
        short: folded short sentences and their numbers, shorter than ``min_chars`` letters and digits.
    """

    letter_C: np.ndarray
    slot_code_S: np.ndarray
    entry_start_D: np.ndarray
    entry_token_E: np.ndarray
    entry_weight_E: np.ndarray
    posting_start_S: np.ndarray
    posting_item_P: np.ndarray
    posting_mixed_P: np.ndarray
    posting_share_P: np.ndarray
    total_D: np.ndarray
    window_D: np.ndarray
    ngram: int
    threshold: float
    min_chars: int
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
        hits: dict[tuple[int, int], float] = {}
        window = max(self.min_chars, int(self.window_D.max())) if len(self.window_D) else NO_WINDOW
        for origin, texts in batch_texts(sentences, window, self.ngram):
            letters, sizes = fold_all(texts, self.letter_C)
            for n in np.flatnonzero((sizes > 0) & (sizes < self.min_chars)).tolist():
                if (item := self.short.get(fold(texts[n]))) is not None:
                    hits[origin[n], item] = 1.0
            for query, item, ratio in self._match(letters, sizes):
                pair = origin[query], item
                hits[pair] = max(ratio, hits.get(pair, 0.0))
        return [Hit(sentence, item, ratio) for (sentence, item), ratio in sorted(hits.items())]

    def _match(self, letters: np.ndarray, sizes: np.ndarray) -> Iterator[tuple[int, int, float]]:
        code, at, query_of = encode_ngrams(letters, sizes, self.ngram)
        token = look_up(code, self.slot_code_S)
        is_known = token >= 0
        token, at, query_of = token[is_known], at[is_known], query_of[is_known]
        pairs = self._candidates(token, query_of)
        for is_exact in (False, True):
            ratio = self._ratios(token, query_of, *pairs, is_exact=is_exact)
            is_hit = ratio >= self.threshold - ROUNDING
            pairs = pairs[0][is_hit], pairs[1][is_hit]
        for q, d, r in zip(*(column.tolist() for column in (*pairs, ratio[is_hit])), strict=True):
            if sizes[q] - self.ngram + 1 > self.window_D[d]:
                inside = slice(*np.searchsorted(query_of, (q, q + 1)))
                r = self._best_window(at[inside], token[inside], d)
            if r >= self.threshold - ROUNDING:
                yield q, d, min(r, 1.0)

    def _candidates(self, token: np.ndarray, query_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distinct pairs (query, item), sorted, whose shared listed tokens weigh enough; repeated tokens count again.

        Shares are first added in cells where pairs may meet, so no sum is too small; few pairs are left to sort.
        """
        start = self.posting_start_S[token]
        size = self.posting_start_S[token + 1] - start
        ends = np.cumsum(size)
        posting = np.arange(ends[-1] if len(ends) else 0) + np.repeat(start - (ends - size), size)
        share = self.posting_share_P[posting]
        cells = CELLS_PER_POSTING << len(posting).bit_length()
        mixed = self.posting_mixed_P[posting] + np.repeat(query_of.astype(np.uint32) * GOLDEN_32, size)
        cell = (mixed >> np.uint32(33 - cells.bit_length())).astype(np.int64)
        left = np.flatnonzero(np.bincount(cell, share)[cell] >= 1 - SLACK)
        query = query_of[np.searchsorted(ends, left, side="right")]
        pairs, inverse = np.unique(query << ITEM_BITS | self.posting_item_P[posting[left]], return_inverse=True)
        pairs = pairs[np.bincount(inverse, share[left], minlength=len(pairs)) >= 1 - SLACK]
        return pairs >> ITEM_BITS, pairs & ((1 << ITEM_BITS) - 1)

    def _ratios(
        self, token: np.ndarray, query_of: np.ndarray, query: np.ndarray, item: np.ndarray, *, is_exact: bool
    ) -> np.ndarray:
        """BM25(q, d) / BM25(d, d) of pairs; if not exact, fast and never too small: tokens are told by a hash."""
        is_wanted = np.zeros(int(query_of[-1]) + 1 if len(query_of) else 0, bool)
        is_wanted[query] = True
        is_wanted = is_wanted[query_of]
        present = query_of[is_wanted] << TOKEN_BITS | token[is_wanted]
        entries, owner = _ranges(self.entry_start_D[item], self.entry_start_D[item + 1])
        wanted = query[owner] << TOKEN_BITS | self.entry_token_E[entries]
        if is_exact:
            is_covered = np.isin(wanted, present)
        else:
            is_cell = np.zeros(CELLS_PER_TOKEN << len(present).bit_length(), bool)
            is_cell[first_slots(present.view(np.uint64), len(is_cell))] = True
            is_covered = is_cell[first_slots(wanted.view(np.uint64), len(is_cell))]
        weights = self.entry_weight_E[entries[is_covered]]
        return np.bincount(owner[is_covered], weights, minlength=len(query)) / self.total_D[item]

    def _best_window(self, at: np.ndarray, token: np.ndarray, item: int) -> float:
        """The ratio within the best run of ``window_D[item]`` tokens; ``at`` are places in the text, ascending."""
        entries = slice(*self.entry_start_D[item : item + 2])
        weights = dict(zip(self.entry_token_E[entries].tolist(), self.entry_weight_E[entries].tolist(), strict=True))
        inside: dict[int, int] = {}
        best = covered = 0.0
        places = [place for place in zip(at.tolist(), token.tolist(), strict=True) if place[1] in weights]
        window, oldest = int(self.window_D[item]), 0
        for last, newest in places:
            if not inside.get(newest):
                covered += weights[newest]
            inside[newest] = inside.get(newest, 0) + 1
            while places[oldest][0] <= last - window:
                gone = places[oldest][1]
                inside[gone] -= 1
                covered -= 0.0 if inside[gone] else weights[gone]
                oldest += 1
            best = max(best, covered)
        return best / float(self.total_D[item])


def build_index(texts: Sequence[str], config: DecontaminateConfig) -> tuple[ContaminationIndex, list[int]]:
    """Index benchmark sentences; equal ones (folded) share a number.

    Returns:
        the index, and for each text its number in ``Hit.item``; -1 where fewer than ``min_item_chars`` letters and
        digits are left of it.
    """
    least = config.min_item_chars
    folded = [fold(text) for text in texts]
    long = list(dict.fromkeys(text for text in folded if len(text) >= max(config.min_chars, least)))
    short = list(dict.fromkeys(text for text in folded if least <= len(text) < config.min_chars))
    number = {text: n for n, text in enumerate(long + short)}
    letter_C = letter_table()
    letters, sizes = fold_all(long, letter_C)
    lengths = sizes - config.ngram + 1
    slot_code_S, entries = _tokenize(letters, sizes, config.ngram)
    entries = _weigh(entries, lengths)
    index = ContaminationIndex(
        letter_C=letter_C,
        slot_code_S=slot_code_S,
        window_D=np.ceil(lengths * config.window).astype(np.int64),
        ngram=config.ngram,
        threshold=config.threshold,
        min_chars=config.min_chars,
        short={text: number[text] for text in short},
        **_list_tokens(entries, len(long), len(slot_code_S), config.threshold),
    )
    return index, [number.get(text, -1) for text in folded]


def _tokenize(letters: np.ndarray, sizes: np.ndarray, ngram: int) -> tuple[np.ndarray, Entries]:
    """The hash table of all tokens, and counts of the distinct ones of each sentence; int32."""
    code, _, pairs = encode_ngrams(letters, sizes, ngram)
    ordered = np.sort(code)
    slot_code_S = hash_table(ordered[np.diff(ordered, prepend=np.uint64(0)) > 0])
    del ordered
    pairs <<= TOKEN_BITS
    pairs |= look_up(code, slot_code_S)
    pairs.sort()
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    count = np.diff(first, append=len(pairs)).astype(np.int32)
    return slot_code_S, Entries((pairs[first] >> TOKEN_BITS).astype(np.int32), pairs[first].astype(np.int32), count)


def _weigh(entries: Entries, lengths: np.ndarray) -> Entries:
    """BM25Okapi's weights in place of counts, the heaviest of each sentence first."""
    (item, token, count), D = entries, len(lengths)
    found_in = np.bincount(token)
    idf = np.log(D - found_in + 0.5) - np.log(found_in + 0.5)
    average = float(idf.mean(where=found_in > 0)) if D else 0.0
    # two or three sentences: no token tells them apart
    idf = np.where(idf < 0, EPSILON * average, idf) if average > ROUNDING else np.ones(len(idf))
    norm = K1 * (1 - B + B * lengths / max(1.0, lengths.mean() if D else 0.0))
    weight = idf[token] * count * (K1 + 1) / (count + norm[item])
    order = np.lexsort((-weight, item))
    return Entries(item[order], token[order], weight[order])


def _list_tokens(entries: Entries, D: int, S: int, threshold: float) -> dict[str, np.ndarray]:
    """Postings of the heaviest tokens of each sentence, beside the entries themselves."""
    item, token, weight = entries
    total = np.maximum(np.bincount(item, weight, minlength=D), np.finfo(float).tiny)
    starts = np.concatenate([[0], np.cumsum(np.bincount(item, minlength=D))])
    before = np.cumsum(weight) - weight
    left = total[item] - (before - before[starts[:-1]][item] if D else before)  # weight from here to the sentence's end
    is_listed = left >= (threshold * LISTED_DEPTH - 2 * ROUNDING) * total[item]
    order = np.flatnonzero(is_listed)
    order = order[np.argsort(token[order], kind="stable")]
    item_P, weight_P = item[order], weight[order]
    small = np.min_scalar_type(-len(order) - 1)
    needed = (threshold - ROUNDING) * total - (total - np.bincount(item_P, weight_P, minlength=D))
    return {
        "entry_start_D": starts,
        "entry_token_E": token,
        "entry_weight_E": weight,
        "posting_start_S": np.concatenate([[0], np.cumsum(np.bincount(token[order], minlength=S))]).astype(small),
        "posting_item_P": item_P,
        "posting_mixed_P": item_P.astype(np.uint32) * GOLDEN_32 * GOLDEN_32,
        "posting_share_P": (weight_P / needed[item_P]).astype(np.float32),
        "total_D": total,
    }


def _ranges(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All numbers of the ranges one after another, and the number of the range each came from."""
    sizes = ends - starts
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return np.arange(len(owner)) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes), owner
