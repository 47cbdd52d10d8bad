"""The token store: one flat memory map of pieces, where documents and sentences begin, and what made it.

```
tokens.bin     uint16, or uint32 for vocabularies above 32,768; the top bit marks the first piece of an eojeol;
               every document ends with one separator piece
documents.idx  int64: where each document begins, then the total number of tokens
sentences.idx  int64: where each sentence begins, then the total number of tokens
meta.json      counts, type, special ids, tokens by source, sha256 of the tokenizer's vocab.txt
```
One array serves every sequence length, and a block is found by multiplication. The paper's corpus, about 14 billion
pieces, takes some 28 GB.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pretrain.config import BadInput

TOKENS_NAME = "tokens.bin"
DOCUMENTS_NAME = "documents.idx"
SENTENCES_NAME = "sentences.idx"
META_NAME = "meta.json"
VOCABULARY_NAME = "vocab.txt"
OFFSET_TYPE = np.dtype("<i8")


@dataclass(frozen=True, slots=True)
class TokenStore:
    """An open store.

    Fields:
        tokens: marked pieces as they lie on disk, length N; ``piece_ids`` removes the mark.
        documents: begin of each document, then N; int64, length D + 1.
        sentences: begin of each sentence, then N; int64, length S + 1.
        meta: what meta.json holds.
    """

    tokens: NDArray[np.unsignedinteger]
    documents: NDArray[np.int64]
    sentences: NDArray[np.int64]
    meta: dict[str, Any]


def token_type(vocab_size: int) -> np.dtype[np.unsignedinteger]:
    """uint16 while 15 bits hold every id, uint32 above."""
    return np.dtype("<u2") if vocab_size <= 1 << 15 else np.dtype("<u4")


def eojeol_bit(dtype: np.dtype[np.unsignedinteger]) -> int:
    """The bit that marks the first piece of an eojeol."""
    return 1 << (8 * dtype.itemsize - 1)


def piece_ids(marked: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """Token ids without the eojeol mark."""
    return (marked & (eojeol_bit(marked.dtype) - 1)).astype(np.int64)


def open_store(folder: Path, tokenizer: Path) -> TokenStore:
    """Open a store and check that it is whole and belongs to the tokenizer.

    Raises:
        BadInput: a file is missing or cut short, or the store was packed with another vocabulary.
    """
    if not (folder / META_NAME).is_file():
        raise BadInput(f"{folder}: no token store ({META_NAME}) here; run `malmoi pack` first")
    meta = json.loads((folder / META_NAME).read_text("utf-8"))
    dtype = np.dtype(meta["dtype"])
    tokens = _map(folder / TOKENS_NAME, dtype, meta["tokens"])
    documents = _map(folder / DOCUMENTS_NAME, OFFSET_TYPE, meta["documents"] + 1)
    sentences = _map(folder / SENTENCES_NAME, OFFSET_TYPE, meta["sentences"] + 1)
    digest = vocabulary_digest(tokenizer)
    if digest != meta["tokenizer_sha256"]:
        raise BadInput(
            f"{folder}: packed with vocabulary {meta['tokenizer_sha256'][:12]}, but {tokenizer / VOCABULARY_NAME} is "
            f"{digest[:12]}; use the tokenizer the store was packed with, or run `malmoi pack` again"
        )
    return TokenStore(tokens, documents, sentences, meta)


def read_pieces(tokenizer: Path) -> list[str]:
    """The vocabulary in order of ids."""
    return _vocabulary_bytes(tokenizer).decode("utf-8").removesuffix("\n").split("\n")


def vocabulary_digest(tokenizer: Path) -> str:
    """sha256 of vocab.txt: what a token id means."""
    return hashlib.sha256(_vocabulary_bytes(tokenizer)).hexdigest()


def _vocabulary_bytes(tokenizer: Path) -> bytes:
    path = tokenizer / VOCABULARY_NAME
    if not path.is_file():
        raise BadInput(f"{path}: no vocabulary here; expected a tokenizer folder, run `malmoi tokenizer` first")
    return path.read_bytes()


def _map(path: Path, dtype: np.dtype[Any], length: int) -> NDArray[Any]:
    expected = length * dtype.itemsize
    size = path.stat().st_size if path.is_file() else 0
    if size != expected:
        raise BadInput(f"{path}: {size} bytes, expected {expected}; the store is damaged, run `malmoi pack` again")
    return np.memmap(path, dtype=dtype, mode="r", shape=(length,))
