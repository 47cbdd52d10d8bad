"""The token store: one flat memory map of pieces, where documents and sentences begin, and what made it.

```
tokens.bin     uint16, or uint32 for vocabularies above 32,768; the top bit marks the first piece of an eojeol;
               every document ends with one separator piece
documents.idx  int64: where each document begins, then the total number of tokens
sentences.idx  int64: where each sentence begins, then the total number of tokens
sources.idx    uint16: of each document, the place of its source in the sorted names of meta.json
morphemes.bin  a bit for each token, lowest bits first: whether a morpheme begins there; only where asked for
meta.json      counts, type, special ids, tokens by source, sha256 of the tokenizer's pieces
```
One array serves every sequence length, and a block is found by multiplication. The paper's corpus, about 14 billion
pieces, takes some 28 GB.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from corpus.documents.whole_files import read_object

TOKENS_NAME = "tokens.bin"
DOCUMENTS_NAME = "documents.idx"
SENTENCES_NAME = "sentences.idx"
SOURCES_NAME = "sources.idx"
MORPHEMES_NAME = "morphemes.bin"
META_NAME = "meta.json"
VOCABULARY_NAME = "vocab.txt"
TOKENIZER_NAME = "tokenizer.json"
OFFSET_TYPE = np.dtype("<i8")
SOURCE_TYPE = np.dtype("<u2")
META_KINDS = {"dtype": str, "tokens": int, "documents": int, "sentences": int, "sources": dict, "special_ids": dict,
              "vocab_size": int, "tokenizer_sha256": str}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TokenStore:
    """An open store: its files as they lie on disk (``piece_ids`` removes the mark of ``tokens``).

    ``morphemes`` is None where the store has none; ``sources`` holds places in ``source_names``.
    """

    tokens: NDArray[np.unsignedinteger]
    documents: NDArray[np.int64]
    sentences: NDArray[np.int64]
    sources: NDArray[np.uint16]
    meta: dict[str, Any]
    morphemes: NDArray[np.uint8] | None = None

    @property
    def source_names(self) -> list[str]:
        return sorted(self.meta["sources"])

    def sources_at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of the source of the document that holds each token."""
        return self.sources[np.searchsorted(self.documents, places, side="right") - 1].astype(np.int64)

    def unit_starts(self, places: NDArray[np.int64], unit: str) -> NDArray[np.bool_] | None:
        """Whether an eojeol or a morpheme begins at each token; None for words, which the vocabulary tells."""
        if unit == "word":
            return None
        if unit == "eojeol":
            return (self.tokens[places] & eojeol_bit(self.tokens.dtype)) != 0
        if self.morphemes is None:
            raise BadInput(
                "pretrain.rows.masking.unit is morpheme, but the token store has no morphemes.bin; run `malmoi pack` "
                "with pack.morphemes=true"
            )
        return (self.morphemes[places >> 3] >> (places & 7).astype(np.uint8) & 1).astype(bool)


def token_type(vocab_size: int) -> np.dtype[np.unsignedinteger]:
    """uint16 while 15 bits hold every id, uint32 above."""
    return np.dtype("<u2") if vocab_size <= 1 << 15 else np.dtype("<u4")


def eojeol_bit(dtype: np.dtype[np.unsignedinteger]) -> int:
    return 1 << (8 * dtype.itemsize - 1)


def piece_ids(marked: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    return (marked & (eojeol_bit(marked.dtype) - 1)).astype(np.int64)


def open_store(folder: Path, tokenizer: Path) -> TokenStore:
    """Open a store; BadInput where a file is missing or cut short, or it was packed with another vocabulary."""
    if not (folder / META_NAME).is_file():
        raise BadInput(f"{folder}: no token store ({META_NAME}) here; run `malmoi pack` first")
    meta = _read_meta(folder / META_NAME)
    bits = np.dtype(np.uint8)
    store = TokenStore(
        tokens=_map(folder / TOKENS_NAME, np.dtype(meta["dtype"]), meta["tokens"]),
        documents=_map(folder / DOCUMENTS_NAME, OFFSET_TYPE, meta["documents"] + 1),
        sentences=_map(folder / SENTENCES_NAME, OFFSET_TYPE, meta["sentences"] + 1),
        sources=_map(folder / SOURCES_NAME, SOURCE_TYPE, meta["documents"]),
        meta=meta,
        morphemes=_map(folder / MORPHEMES_NAME, bits, -(-meta["tokens"] // 8)) if meta.get("morphemes") else None,
    )
    digest = vocabulary_digest(tokenizer)
    if digest != meta["tokenizer_sha256"]:
        raise BadInput(
            f"{folder}: packed with vocabulary {meta['tokenizer_sha256'][:12]}, but {tokenizer} holds "
            f"{digest[:12]}; use the tokenizer the store was packed with, or delete the store and pack again"
        )
    return store


def _read_meta(path: Path) -> dict[str, Any]:
    again = "delete its folder and run `malmoi pack` again"
    meta = read_object(path, again)
    wrong = [key for key, kind in META_KINDS.items() if type(meta.get(key)) is not kind]
    if wrong or meta["dtype"] not in ("<u2", "<u4"):
        raise BadInput(f"{path}: {(wrong or ['dtype'])[0]} is not what a token store says there; {again}")
    return meta


def read_pieces(tokenizer: Path) -> list[str]:
    """The vocabulary in order of ids: vocab.txt, or where there is none (BPE, SentencePiece) that of tokenizer.json."""
    try:
        text = _vocabulary_bytes(tokenizer).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{tokenizer / VOCABULARY_NAME}: byte {error.start} is not UTF-8; expected one piece a line, save the "
            "tokenizer again"
        ) from None
    return text.removesuffix("\n").split("\n")


def vocabulary_digest(tokenizer: Path) -> str:
    """sha256 of vocab.txt, or of the one that tokenizer.json would give: what a token id means."""
    return hashlib.sha256(_vocabulary_bytes(tokenizer)).hexdigest()


def _vocabulary_bytes(tokenizer: Path) -> bytes:
    path, other = tokenizer / VOCABULARY_NAME, tokenizer / TOKENIZER_NAME
    if path.is_file():
        return path.read_bytes()
    if not other.is_file():
        raise BadInput(f"{path}: no vocabulary here; expected a tokenizer folder, run `malmoi tokenizer` first")
    # a line break inside a piece would make two of one
    return "".join(piece.replace("\n", "\\n") + "\n" for piece in _pieces_of_json(other)).encode()


def _pieces_of_json(path: Path) -> list[str]:
    """Pieces of a tokenizer.json, those added later included."""
    try:
        content = read_object(path, "save the tokenizer again")
        known = content["model"]["vocab"]  # a list of pieces and scores in SentencePiece's unigram model
        ids = known if isinstance(known, dict) else {piece: id_ for id_, (piece, _) in enumerate(known)}
        by_id = {id_: piece for piece, id_ in ids.items()}
        by_id |= {added["id"]: added["content"] for added in content.get("added_tokens", ())}
    except BadInput:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            f"{path}: not a tokenizer of the tokenizers library ({type(error).__name__}: {error}); save it again"
        ) from error
    missing = next((id_ for id_ in range(len(by_id)) if id_ not in by_id), None)
    if missing is not None:
        raise BadInput(f"{path}: no piece has the id {missing}, though there are higher ones; save the tokenizer again")
    return [by_id[id_] for id_ in range(len(by_id))]


def _map(path: Path, dtype: np.dtype[Any], length: int) -> NDArray[Any]:
    expected = length * dtype.itemsize
    size = path.stat().st_size if path.is_file() else 0
    if size != expected:
        raise BadInput(
            f"{path}: {size} bytes, expected {expected}; the store is damaged, delete its folder and run `malmoi pack` "
            "again"
        )
    return np.memmap(path, dtype=dtype, mode="r", shape=(length,))
