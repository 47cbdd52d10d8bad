"""An invented token store and vocabulary, so that training can be measured where there is no corpus and no network.

Words have one to three pieces and Zipf frequencies; every second word mostly follows from the one before it, so that a
model has something to learn beside frequencies. Documents have log-normal lengths. The price: easier than any text, so
losses compare runs with each other and nothing else.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from transformers import BertTokenizer

from pretrain.pack.store import (
    DOCUMENTS_NAME,
    META_NAME,
    OFFSET_TYPE,
    SENTENCES_NAME,
    SOURCE_TYPE,
    SOURCES_NAME,
    TOKENS_NAME,
    VOCABULARY_NAME,
    eojeol_bit,
    token_type,
    vocabulary_digest,
)

SPECIAL_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}  # KLUE-RoBERTa's order
SYLLABLES = 11_172  # of modern Hangul, from 가 on
WORDS_OF_DOCUMENT = (4.6, 0.9)  # mean and deviation of the logarithm: half the documents have under 100 words
WORDS_OF_SENTENCE = 9
FOLLOWS = 0.7  # share of the second words that the first one decides


def write_synthetic(folder: Path, vocab_size: int, tokens: int, seed: int = 1) -> tuple[Path, Path]:
    """Write ``folder/tokens`` (about ``tokens`` pieces) and ``folder/tokenizer``; returns both."""
    store, tokenizer = folder / "tokens", folder / "tokenizer"
    store.mkdir(parents=True)
    tokenizer.mkdir()
    (tokenizer / VOCABULARY_NAME).write_text("\n".join(invent_vocabulary(vocab_size)) + "\n", "utf-8")
    BertTokenizer(
        vocab=str(tokenizer / VOCABULARY_NAME), do_lower_case=False, strip_accents=False, model_max_length=512
    ).save_pretrained(tokenizer)
    rng = np.random.default_rng(seed)
    dtype = token_type(vocab_size)
    marked, begins = _draw_words(rng, vocab_size, tokens, eojeol_bit(dtype))
    documents, sentences, separated = _cut_documents(rng, marked, begins)
    separated.astype(dtype).tofile(store / TOKENS_NAME)
    documents.astype(OFFSET_TYPE).tofile(store / DOCUMENTS_NAME)
    sentences.astype(OFFSET_TYPE).tofile(store / SENTENCES_NAME)
    np.zeros(len(documents) - 1, SOURCE_TYPE).tofile(store / SOURCES_NAME)
    meta = {
        "dtype": dtype.str,
        "documents": len(documents) - 1,
        "sentences": len(sentences) - 1,
        "tokens": len(separated),
        "unknown_pieces": 0,
        "empty_documents": 0,
        "sources": {"invented": len(separated)},
        "special_ids": SPECIAL_IDS,
        "vocab_size": vocab_size,
        "tokenizer_sha256": vocabulary_digest(tokenizer),
    }
    (store / META_NAME).write_text(json.dumps(meta, indent=1), "utf-8")
    return store, tokenizer


def invent_vocabulary(size: int) -> list[str]:
    """Special pieces, then word beginnings of two syllables, then as many "##" pieces."""
    special = [f"[{name.upper()}]" for name in SPECIAL_IDS]
    begins = (size - len(special) + 1) // 2
    words = [chr(ord("가") + n % SYLLABLES) + chr(ord("가") + n // SYLLABLES * 28) for n in range(begins)]
    return [*special, *words, *(f"##{text}" for text in words[: size - len(special) - begins])]


def _draw_words(
    rng: np.random.Generator, vocab_size: int, tokens: int, bit: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pieces of a stream of words, the first of each marked with ``bit``, and where the words begin."""
    special = len(SPECIAL_IDS)
    types = (vocab_size - special + 1) // 2
    extra = rng.integers(3, size=types)  # "##" pieces of a word type: two pieces a word on average
    shares = 1 / (np.arange(types) + 2.7)  # Zipf and Mandelbrot
    shares /= shares.sum()
    followers = rng.choice(types, types, p=shares)
    words = rng.choice(types, max(2, tokens // 2), p=shares)
    firsts, seconds = words[: len(words) // 2 * 2 : 2], words[1::2]
    seconds[:] = np.where(rng.random(len(firsts)) < FOLLOWS, followers[firsts], seconds)
    sizes = 1 + extra[words]
    begins = np.cumsum(sizes) - sizes
    word_of = np.repeat(np.arange(len(words)), sizes)
    place = np.arange(len(word_of)) - begins[word_of]
    continued = special + types + (words[word_of] * 31 + place * 17) % (vocab_size - special - types)
    return np.where(place == 0, (special + words[word_of]) | bit, continued), begins


def _cut_documents(
    rng: np.random.Generator, marked: NDArray[np.int64], word_begins: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Begins of documents and of sentences, each with the total at the end; the stream with separators in it."""
    words = len(word_begins)
    lengths = np.maximum(2, rng.lognormal(*WORDS_OF_DOCUMENT, size=words // 2 + 1)).astype(np.int64)
    first_words = np.append(0, np.cumsum(lengths))
    first_words = first_words[first_words < words - 1]
    starts_sentence = rng.random(words) < 1 / WORDS_OF_SENTENCE
    starts_sentence[first_words] = True
    ends = np.append(word_begins[first_words[1:]], len(marked))  # in the stream without separators
    separated = np.insert(marked, ends, SPECIAL_IDS["sep"])
    documents = np.append(0, ends + np.arange(1, len(ends) + 1))
    heads = np.flatnonzero(starts_sentence)
    before = np.searchsorted(first_words, heads, side="right") - 1  # separators in front of a sentence
    sentences = np.append(word_begins[heads] + before, len(separated))
    return documents, sentences, separated
