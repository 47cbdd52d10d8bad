"""Counting baselines: how many predictions are right with frequency tables alone, for comparison with a model.

Three tables count training text: the most frequent piece, the most frequent one after its left neighbor, and the most
frequent one between its two neighbors. If the neighbors are masked or not in the table, the next smaller one is used.

Shapes: B sequences, L positions, V vocabulary, N counted pieces, C contexts, P predictions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpus.documents.errors import BadInput
from pretrain.batching.batches import make_batch
from pretrain.batching.masking import IGNORED, Pieces
from pretrain.batching.sources import Numbers, RowSource
from pretrain.config import PretrainConfig
from pretrain.metrics.held_out import choose_rows
from pretrain.rng import derive_key, permute

_ROWS_AT_ONCE = 1024


class Baselines(NamedTuple):
    """Most frequent pieces (ties: the lowest id) among ``tokens`` counted pieces."""

    tokens: int
    unigram: int
    after_V: Numbers  # after each piece; ``unigram`` after pieces that do not occur
    contexts_C: Numbers  # pairs of neighbors that occur, left * V + right, ascending
    between_C: Numbers  # between them


def count_baselines(training: RowSource, pieces: Pieces, max_tokens: int = 20_000_000) -> Baselines:
    """Count the unmasked rows of epoch 0: all, or random rows with ``max_tokens`` pieces in total.

    Special pieces are never predicted, but [CLS] and [SEP] count as neighbors. BadInput if nothing can be counted.
    """
    vocab_size = len(pieces.special_V)
    codes_N = _neighbor_codes(training, pieces, max_tokens)
    if not len(codes_N):
        raise BadInput("the training rows hold only special pieces; give text that the tokenizer can encode")
    pieces_N = codes_N % vocab_size
    counts_V = np.bincount(pieces_N, minlength=vocab_size)
    unigram = int(counts_V.argmax())
    after_V = np.full(vocab_size, unigram)
    after_codes_N = codes_N // vocab_size**2 * vocab_size + pieces_N
    lefts_C, best_C = _most_frequent(after_codes_N, vocab_size)
    after_V[lefts_C] = best_C
    return Baselines(len(codes_N), unigram, after_V, *_most_frequent(codes_N, vocab_size))


def score_baselines(
    baselines: Baselines, held_out: RowSource, pieces: Pieces, config: PretrainConfig
) -> dict[str, float]:
    """Accuracies (0..1) on the predictions that ``measure`` scores, with the same weights of rows.

    The tables see the masked row, as the model does; bigram: the left neighbor. With a causal objective they predict
    the next token from the token before it.
    """
    names = ("unigram_accuracy", "bigram_accuracy", "both_sides_accuracy")[: 2 if config.is_causal else 3]
    hits, predictions = np.zeros(len(names)), 0.0
    chosen = choose_rows(held_out, config)
    places = [(part, begin) for part in chosen for begin in range(0, len(part.rows_B), _ROWS_AT_ONCE)]
    for part, begin in places:
        rows_B = part.rows_B[begin : begin + _ROWS_AT_ONCE]
        epochs_B = np.zeros_like(rows_B)
        batch = make_batch(held_out.gather(epochs_B, rows_B), epochs_B, pieces, config)
        ids_BL, targets_BM = batch.ids_BL.numpy(), batch.targets_BM.numpy()
        at = np.nonzero(targets_BM != IGNORED)
        targets_P = targets_BM[at]
        if batch.positions_BM is None:
            left_P = right_P = ids_BL[at]  # right: not used
        else:
            columns_P = batch.positions_BM.numpy()[at]
            left_P, right_P = ids_BL[at[0], columns_P - 1], ids_BL[at[0], columns_P + 1]
        guesses = _guess(baselines, left_P, right_P, pieces.mask_id)[: len(names)]
        hits += [part.weight * (guess_P == targets_P).sum() for guess_P in guesses]
        predictions += part.weight * len(targets_P)
    return dict(zip(names, (hits / max(predictions, 1.0)).tolist(), strict=True))


def _neighbor_codes(training: RowSource, pieces: Pieces, max_tokens: int) -> Numbers:
    """(left * V + right) * V + piece for every piece that is not special; 63 bits hold vocabularies of 2 million."""
    vocab_size, total = len(pieces.special_V), training.count(0)
    codes_N = np.empty(max_tokens, np.int64)  # takes no memory before it is filled
    filled = begin = 0
    while filled < max_tokens and begin < total:
        # rows in random order, because rows of documents are ordered by source
        rows_B = permute(np.arange(begin, min(begin + _ROWS_AT_ONCE, total)), total, derive_key(0, "baselines"))
        ids_BL = training.gather(np.zeros_like(rows_B), rows_B).ids_BL
        left_BL, middle_BL, right_BL = ids_BL[:, :-2], ids_BL[:, 1:-1], ids_BL[:, 2:]
        codes = ((left_BL * vocab_size + right_BL) * vocab_size + middle_BL)[~pieces.special_V[middle_BL]]
        codes = codes[: max_tokens - filled]
        codes_N[filled : filled + len(codes)] = codes
        filled += len(codes)
        begin += len(rows_B)
    return codes_N[:filled]


def _most_frequent(codes_N: Numbers, vocab_size: int) -> tuple[Numbers, Numbers]:
    """Contexts and the most frequent piece of each (ties: the lowest id), from codes context * V + piece."""
    codes, counts = np.unique(codes_N, return_counts=True)
    contexts, candidates = np.divmod(codes, vocab_size)
    order = np.lexsort((-counts, contexts))  # stable: the lowest id first for equal counts
    contexts_C, firsts_C = np.unique(contexts, return_index=True)
    return contexts_C, candidates[order[firsts_C]]


def _guess(baselines: Baselines, left_P: Numbers, right_P: Numbers, mask_id: int) -> tuple[Numbers, ...]:
    """The guess of each table for each prediction, from the smallest table to the largest."""
    unigram_P = np.full(len(left_P), baselines.unigram)
    after_P = np.where(left_P == mask_id, baselines.unigram, baselines.after_V[left_P])
    codes_P = left_P * len(baselines.after_V) + right_P
    places_P = np.minimum(np.searchsorted(baselines.contexts_C, codes_P), len(baselines.contexts_C) - 1)
    is_known_P = (baselines.contexts_C[places_P] == codes_P) & (left_P != mask_id) & (right_P != mask_id)
    return unigram_P, after_P, np.where(is_known_P, baselines.between_C[places_P], after_P)
