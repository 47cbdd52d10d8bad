"""Sentence pairs against the published loop (google-research/bert, create_instances_from_document)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest

from pretrain.batches import TrainingBatches
from pretrain.draws import derive_key
from pretrain.masking import describe_pieces
from pretrain.nsp import Sentences, lay_out_pass
from pretrain.rows import split_rows
from pretrain.store import TokenStore, open_store, piece_ids, read_pieces

Tokens = list[int]


def published_pairs(
    documents: list[list[Tokens]], index: int, max_num_tokens: int, short_seq_prob: float, rng: Random
) -> list[tuple[Tokens, Tokens, bool]]:
    """The published algorithm on lists of tokens, masking left out."""
    document = documents[index]
    target = max_num_tokens
    if rng.random() < short_seq_prob:
        target = rng.randint(2, max_num_tokens)
    pairs, chunk, chunk_length, i = [], [], 0, 0
    while i < len(document):
        chunk.append(document[i])
        chunk_length += len(document[i])
        if i == len(document) - 1 or chunk_length >= target:
            a_end = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
            tokens_a = [token for segment in chunk[:a_end] for token in segment]
            is_random = len(chunk) == 1 or rng.random() < 0.5
            if is_random:
                tokens_b = published_random_b(documents, index, target - len(tokens_a), rng)
                i -= len(chunk) - a_end
            else:
                tokens_b = [token for segment in chunk[a_end:] for token in segment]
            published_truncation(tokens_a, tokens_b, max_num_tokens, rng)
            pairs.append((tokens_a, tokens_b, is_random))
            chunk, chunk_length = [], 0
        i += 1
    return pairs


def published_random_b(documents: list[list[Tokens]], index: int, target: int, rng: Random) -> Tokens:
    for _ in range(10):
        other = rng.randint(0, len(documents) - 1)
        if other != index:
            break
    tokens: Tokens = []
    for j in range(rng.randint(0, len(documents[other]) - 1), len(documents[other])):
        tokens.extend(documents[other][j])
        if len(tokens) >= target:
            break
    return tokens


def published_truncation(tokens_a: Tokens, tokens_b: Tokens, max_num_tokens: int, rng: Random) -> None:
    while len(tokens_a) + len(tokens_b) > max_num_tokens:
        longer = tokens_a if len(tokens_a) > len(tokens_b) else tokens_b
        if rng.random() < 0.5:
            del longer[0]
        else:
            longer.pop()


def sentences_as_lists(store: TokenStore) -> list[list[Tokens]]:
    ids = piece_ids(store.tokens).tolist()
    documents = []
    for begin, end in pairwise(store.documents.tolist()):
        starts = [int(s) for s in store.sentences if begin <= s < end] + [end - 1]
        documents.append([ids[a:b] for a, b in pairwise(starts)])
    return documents


@pytest.mark.parametrize(("length", "short_share"), [(24, 0.1), (48, 0.5), (200, 0.0)])
def test_pairs_equal_the_published_loop(made: Path, length: int, short_share: float) -> None:
    store = open_store(made / "tokens", made / "tokenizer")
    documents = sentences_as_lists(store)
    expected = []
    for index in range(len(documents)):
        rng = Random(int(derive_key(7, "pairs", 2, index)))
        expected += published_pairs(documents, index, length - 3, short_share, rng)
    sentences = Sentences(store, np.arange(len(documents)))
    ids = piece_ids(store.tokens).tolist()
    laid_out = lay_out_pass(sentences, length, short_share, seed=7, number=2).tolist()
    assert [(ids[a:b], ids[c:d], bool(random)) for a, b, c, d, random in laid_out] == expected
    assert {random for *_, random in expected} == {True, False}


def test_a_row_reads_cls_a_sep_b_sep_and_padding(made: Path, tiny) -> None:
    config = tiny(architecture="bert", nsp=True, sequence_length=40)
    store = open_store(made / "tokens", made / "tokenizer")
    rows, _ = split_rows(store, config)
    epochs, numbers = np.zeros(30, np.int64), np.arange(30)
    ids_BL, lengths_B, _, types_BL, is_random_B = rows.gather(epochs, numbers)
    for row, length in enumerate(lengths_B):
        ids = ids_BL[row].tolist()
        first_sep = ids.index(2)
        assert ids[0] == 0 and ids[length - 1] == 2 and ids.count(2) == 2
        assert set(ids[length:]) <= {1}
        assert types_BL[row].tolist() == [0] * (first_sep + 1) + [1] * (length - first_sep - 1) + [0] * (40 - length)
    assert set(is_random_B.tolist()) == {0, 1}


def test_pairs_repeat_after_the_duplicates_but_not_before(made: Path, tiny) -> None:
    config = tiny(architecture="bert", nsp=True, masking={"mode": "static", "duplicates": 2}, global_batch=4)
    store = open_store(made / "tokens", made / "tokenizer")
    rows, _ = split_rows(store, config)
    numbers = np.arange(20)
    first, second, third = (rows.gather(np.full(20, epoch), numbers).ids_BL for epoch in range(3))
    assert (first == third).all() and not (first == second).all()
    pieces = describe_pieces(read_pieces(made / "tokenizer"), store.meta["special_ids"])
    batch = TrainingBatches(rows, pieces, config, rank=0, ranks=1, micro_batch=4).of_step(1)[0]
    assert batch.attention_BL is not None and batch.types_BL is not None
    assert ((batch.ids_BL == 1) == (batch.attention_BL == 0)).all()
