"""The token store: one flat memory map of pieces, the starts of documents and sentences, and metadata.

```
tokens.bin     uint16, or uint32 for vocabularies above 32,768; the top bit marks the first piece of an eojeol;
               every document ends with one separator piece
documents.idx  int64: start of each document, then the total number of tokens
sentences.idx  int64: start of each sentence, then the total number of tokens
sources.idx    uint16: for each document, the index of its source in the sorted names of meta.json
meta.json      counts, type, special ids, tokens by source, sha256 of the vocabulary, of each file and of all of these
```
Opening a store checks meta.json and the file sizes; ``check_store`` reads every byte once, and later random blocks.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from corpus.documents.atomic_files import BLOCK_BYTES, atomic_write, digest_matches, file_digest, read_json_object
from corpus.documents.errors import BadInput

log = logging.getLogger(__name__)

TOKENS_NAME = "tokens.bin"
DOCUMENTS_NAME = "documents.idx"
SENTENCES_NAME = "sentences.idx"
SOURCES_NAME = "sources.idx"
META_NAME = "meta.json"
VOCABULARY_NAME = "vocab.txt"
TOKENIZER_NAME = "tokenizer.json"
OFFSET_TYPE = np.dtype("<i8")
SOURCE_TYPE = np.dtype("<u2")
FILES = (TOKENS_NAME, DOCUMENTS_NAME, SENTENCES_NAME, SOURCES_NAME)
META_KINDS = {"dtype": str, "tokens": int, "documents": int, "sentences": int, "sources": dict, "special_ids": dict,
              "vocab_size": int, "tokenizer_sha256": str, "files": dict}  # fmt: skip
ROLES = ("pad", "unk", "cls", "sep", "mask")
SAMPLE_SECONDS, MAX_SAMPLE = 1.0, 2048  # of the check of random blocks at each start; 2 GiB
AGAIN = "delete its folder and run `malmoi pack` again"


@dataclass(frozen=True, slots=True)
class TokenStore:
    """An open store: its files as on disk (``piece_ids`` removes the mark of ``tokens``).

    ``sources`` holds indices into ``source_names``.
    """

    tokens: NDArray[np.unsignedinteger]
    documents: NDArray[np.int64]
    sentences: NDArray[np.int64]
    sources: NDArray[np.uint16]
    meta: dict[str, Any]
    folder: Path = Path()

    @property
    def source_names(self) -> list[str]:
        return sorted(self.meta["sources"])

    def ids(self, marked: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
        """Ids of some of ``tokens``; BadInput if one exceeds the vocabulary: the file changed after the check."""
        ids = piece_ids(marked)
        if ids.max(initial=0) >= self.meta["vocab_size"]:
            raise BadInput(
                f"{self.folder / TOKENS_NAME}: a token has id {ids.max()}, expected at most "
                f"{self.meta['vocab_size'] - 1}; {AGAIN}"
            )
        return ids

    def sources_at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Index of the source of each token's document."""
        return self.sources[np.searchsorted(self.documents, places, side="right") - 1].astype(np.int64)

    def unit_starts(self, places: NDArray[np.int64], unit: str) -> NDArray[np.bool_] | None:
        """Whether an eojeol begins at each token; None for words, which are known from the vocabulary."""
        return None if unit == "word" else (self.tokens[places] & eojeol_bit(self.tokens.dtype)) != 0


def token_type(vocab_size: int) -> np.dtype[np.unsignedinteger]:
    """uint16 while 15 bits hold every id, uint32 above."""
    return np.dtype("<u2") if vocab_size <= 1 << 15 else np.dtype("<u4")


def eojeol_bit(dtype: np.dtype[np.unsignedinteger]) -> int:
    return 1 << (8 * dtype.itemsize - 1)


def piece_ids(marked: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    return (marked & (eojeol_bit(marked.dtype) - 1)).astype(np.int64)


def open_store(folder: Path, tokenizer: Path) -> TokenStore:
    """Open a store; BadInput if a file is missing or truncated, or it was packed with another vocabulary."""
    if not (folder / META_NAME).is_file():
        raise BadInput(f"{folder}: no token store ({META_NAME}) here; run `malmoi pack` first")
    meta = _read_meta(folder / META_NAME)
    store = TokenStore(
        tokens=_map(folder / TOKENS_NAME, np.dtype(meta["dtype"]), meta["tokens"]),
        documents=_map(folder / DOCUMENTS_NAME, OFFSET_TYPE, meta["documents"] + 1),
        sentences=_map(folder / SENTENCES_NAME, OFFSET_TYPE, meta["sentences"] + 1),
        sources=_map(folder / SOURCES_NAME, SOURCE_TYPE, meta["documents"]),
        meta=meta,
        folder=folder,
    )
    digest = vocabulary_digest(tokenizer)
    if digest != meta["tokenizer_sha256"]:
        raise BadInput(
            f"{folder}: packed with vocabulary {meta['tokenizer_sha256'][:12]}, but {tokenizer} holds "
            f"{digest[:12]}; use the tokenizer of the store, or delete the store and pack again"
        )
    return store


def check_store(store: TokenStore, memory: Path) -> None:
    """Read every file of a store once; BadInput names the first one that changed after packing.

    The file ``memory`` records a success, with a checksum of each block. The check is repeated if size, time or inode
    of a file have changed, or if one of the blocks that each call reads differs (``_sample_is_unchanged``).
    """
    stats = [(store.folder / name).stat() for name in FILES]
    stamps = [[stat.st_size, stat.st_mtime_ns, stat.st_ino] for stat in stats]
    note = [str(store.folder.resolve()), store.meta["files"], stamps]
    try:
        known = json.loads(memory.read_bytes())
    except (OSError, ValueError):
        known = None
    if isinstance(known, dict) and known.get("note") == note and _sample_is_unchanged(store.folder, known["checksums"]):
        return
    checksums = check_files(store.folder)
    atomic_write(memory, json.dumps({"note": note, "checksums": checksums}))
    log.info("%s: %.2f GB of tokens verified", store.folder, sum(stat.st_size for stat in stats) / 1e9)


def check_files(folder: Path) -> dict[str, list[int]]:
    """Compare the sha256 of all files of a store (BadInput); returns the CRC-32 of each block, by file."""
    digests = _read_meta(folder / META_NAME)["files"]
    checksums: dict[str, list[int]] = {}
    with tqdm(desc="check tokens", unit="B", unit_scale=True, disable=None) as bar:
        for name in FILES:
            blocks = checksums[name] = []

            def add(block: bytes, blocks: list[int] = blocks) -> None:
                blocks.append(crc32(block))
                bar.update(len(block))

            if file_digest(folder / name, add) != digests[name]:
                raise BadInput(f"{folder / name}: changed after packing (its size or sha256 differs); {AGAIN}")
    return checksums


def _sample_is_unchanged(folder: Path, checksums: Mapping[str, list[int]]) -> bool:
    """Compare random blocks for a second, which are all blocks of a small store."""
    ends = time.monotonic() + SAMPLE_SECONDS
    blocks = [(name, number, crc) for name, crcs in checksums.items() for number, crc in enumerate(crcs)]
    for name, number, crc in random.SystemRandom().sample(blocks, min(len(blocks), MAX_SAMPLE)):
        with (folder / name).open("rb") as file:
            file.seek(number * BLOCK_BYTES)
            if crc32(file.read(BLOCK_BYTES)) != crc:
                return False
        if time.monotonic() > ends:
            break
    return True


def _read_meta(path: Path) -> dict[str, Any]:
    meta = read_json_object(path, AGAIN)
    wrong = [key for key, kind in META_KINDS.items() if type(meta.get(key)) is not kind]
    if wrong or (invalid := _invalid_key(meta)):
        raise BadInput(f"{path}: {wrong[0] if wrong else invalid} has an invalid value; {AGAIN}")
    if not digest_matches(meta):
        raise BadInput(f"{path}: changed after packing (its sha256 differs); {AGAIN}")
    return meta


def _invalid_key(meta: dict[str, Any]) -> str | None:
    """The first key with an impossible value of the right type."""
    size, sources, ids = meta["vocab_size"], meta["sources"].values(), meta["special_ids"]
    holds = {
        "vocab_size": size > 0,
        "dtype": meta["dtype"] == token_type(size).str,
        **{key: meta[key] > 0 for key in ("tokens", "documents", "sentences")},
        "sources": all(map(_is_count, sources)) and sum(sources) == meta["tokens"],
        "special_ids": ids.keys() == set(ROLES) and all(_is_count(id_) and id_ < size for id_ in ids.values()),
        "files": meta["files"].keys() >= set(FILES),
    }
    return next((key for key, is_so in holds.items() if not is_so), None)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def read_pieces(tokenizer: Path) -> list[str]:
    """The vocabulary in order of ids: from vocab.txt, or from tokenizer.json if there is none (BPE, SentencePiece)."""
    try:
        text = _vocabulary_bytes(tokenizer).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{tokenizer / VOCABULARY_NAME}: byte {error.start} is not UTF-8; expected one piece per line, save "
            "the tokenizer again"
        ) from None
    return text.removesuffix("\n").split("\n")


def vocabulary_digest(tokenizer: Path) -> str:
    """sha256 of vocab.txt, or of the equivalent of tokenizer.json: it identifies the meaning of token ids."""
    return hashlib.sha256(_vocabulary_bytes(tokenizer)).hexdigest()


def _vocabulary_bytes(tokenizer: Path) -> bytes:
    path, other = tokenizer / VOCABULARY_NAME, tokenizer / TOKENIZER_NAME
    if path.is_file():
        return path.read_bytes()
    if not other.is_file():
        raise BadInput(f"{path}: no vocabulary here; expected a tokenizer folder, run `malmoi tokenizer` first")
    # a line break inside a piece would split it
    return "".join(piece.replace("\n", "\\n") + "\n" for piece in _pieces_of_json(other)).encode()


def _pieces_of_json(path: Path) -> list[str]:
    """Pieces of a tokenizer.json, including added tokens."""
    try:
        content = read_json_object(path, "save the tokenizer again")
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
        raise BadInput(f"{path}: no piece has the id {missing}, but there are higher ids; save the tokenizer again")
    return [by_id[id_] for id_ in range(len(by_id))]


def _map(path: Path, dtype: np.dtype[Any], length: int) -> NDArray[Any]:
    expected = length * dtype.itemsize
    size = path.stat().st_size if path.is_file() else 0
    if size != expected:
        raise BadInput(f"{path}: {size} bytes, expected {expected}; the store is damaged, {AGAIN}")
    return np.memmap(path, dtype=dtype, mode="r", shape=(length,))
