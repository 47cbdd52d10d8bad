"""An invented token store and vocabulary, so that training can be measured where there is no corpus.

Words have one to three pieces and Zipf frequencies; every second word mostly follows from the one before it, so that a
model has something to learn beside frequencies. Documents have log-normal lengths. The price: easier than any text, so
losses compare runs with each other and nothing else.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from transformers import BertTokenizer

from corpus.documents.shards import Document
from launch.bench.material import write_corpus
from pretrain.config import PackConfig
from pretrain.pack.run import PackInputs
from pretrain.pack.run import run as pack

SPECIAL_PIECES = ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")  # KLUE-RoBERTa's order
SYLLABLES = 11_172  # of modern Hangul, from 가 on
DOCUMENT_WORDS = (4.6, 0.9)  # mean and deviation of the logarithm: half the documents have under 100 words
SENTENCE_WORDS = 9
FOLLOWS = 0.7  # share of the second words that the first one decides


def write_synthetic(folder: Path, vocab_size: int, tokens: int, seed: int = 1) -> tuple[Path, Path]:
    """Write ``folder/tokens`` (about ``tokens`` pieces) and ``folder/tokenizer``; returns both."""
    store, tokenizer = folder / "tokens", folder / "tokenizer"
    store.mkdir(parents=True)
    tokenizer.mkdir()
    vocabulary = invent_vocabulary(vocab_size)
    (tokenizer / "vocab.txt").write_text("\n".join(vocabulary) + "\n", "utf-8")
    BertTokenizer(
        vocab=str(tokenizer / "vocab.txt"), do_lower_case=False, strip_accents=False, model_max_length=512
    ).save_pretrained(tokenizer)
    documents = invent_documents(vocabulary, tokens // 2, np.random.default_rng(seed))
    pack(PackConfig(), PackInputs(write_corpus(documents, folder / "corpus"), tokenizer), store)
    return store, tokenizer


def invent_vocabulary(size: int) -> list[str]:
    """Special pieces, then word beginnings of two syllables, then as many "##" pieces."""
    begins = (size - len(SPECIAL_PIECES) + 1) // 2
    words = [chr(ord("가") + n % SYLLABLES) + chr(ord("가") + n // SYLLABLES * 28) for n in range(begins)]
    return [*SPECIAL_PIECES, *words, *(f"##{text}" for text in words[: size - len(SPECIAL_PIECES) - begins])]


def invent_documents(vocabulary: list[str], words: int, rng: np.random.Generator) -> list[Document]:
    """Documents of ``words`` words in all, of two pieces on average."""
    begins = [piece for piece in vocabulary if piece[0] not in "[#"]
    ends = [piece.removeprefix("##") for piece in vocabulary if piece.startswith("##")]
    types = [
        begin + "".join(ends[(number * 31 + place * 17) % len(ends)] for place in range(extra))
        for number, (begin, extra) in enumerate(zip(begins, rng.integers(3, size=len(begins)), strict=True))
    ]
    shares = 1 / (np.arange(len(types)) + 2.7)  # Zipf and Mandelbrot
    shares /= shares.sum()
    followers = rng.choice(len(types), len(types), p=shares)
    drawn = rng.choice(len(types), words // 2 * 2, p=shares)
    drawn[1::2] = np.where(rng.random(words // 2) < FOLLOWS, followers[drawn[::2]], drawn[1::2])
    text = [types[number] for number in drawn]
    lengths = np.maximum(2, rng.lognormal(*DOCUMENT_WORDS, size=words // 2)).astype(int)
    documents, start = [], 0
    for number, length in enumerate(lengths):
        if start < len(text):
            mine = text[start : start + length]
            sentences = (" ".join(mine[at : at + SENTENCE_WORDS]) for at in range(0, len(mine), SENTENCE_WORDS))
            documents.append(Document(f"{number:08}", "invented", tuple(sentences)))
        start += length
    return documents
