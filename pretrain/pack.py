"""Pack document shards into one token store.

Each eojeol (a run of characters without a space) is encoded once per shard and looked up afterwards: the same pieces
as encoding the text, and the places where eojeols and sentences begin are known without offsets. Text that looks like
a special piece ("[MASK]") stays text. Shards are packed in any number of processes and joined in order.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable
from functools import partial
from multiprocessing import parent_process
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corpus.documents import BadInput, Document, map_units, read_documents, shard_paths, unit_folder
from pretrain.config import PackConfig
from pretrain.store import (
    DOCUMENTS_NAME,
    META_NAME,
    OFFSET_TYPE,
    SENTENCES_NAME,
    TOKENS_NAME,
    VOCABULARY_NAME,
    eojeol_bit,
    read_pieces,
    token_type,
    vocabulary_digest,
)

BATCH_DOCUMENTS = 1_000
MOST_KNOWN_EOJEOLS = 2_000_000  # about 300 MB; the table starts afresh above


class PackInputs(NamedTuple):
    """``corpus``: folder with ``documents/shard-*.parquet``; ``tokenizer``: folder with vocab.txt."""

    corpus: Path
    tokenizer: Path


class EojeolEncoder:
    """Encodes text eojeol by eojeol into the bytes of a token store, remembering every eojeol it has met.

    Args:
        tokenizer: a Hugging Face tokenizer folder.
    """

    def __init__(self, tokenizer: Path) -> None:
        from transformers import AutoTokenizer  # slow to import; only the processes that encode need it

        loaded = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
        self.vocab_size = len(loaded)
        self.special_ids = {name: getattr(loaded, f"{name}_token_id") for name in ("pad", "unk", "cls", "sep", "mask")}
        self.dtype = token_type(self.vocab_size)
        self.separator = np.array([self.special_ids["sep"]], self.dtype).tobytes()
        self._backend = loaded.backend_tokenizer
        self._backend.encode_special_tokens = True  # "[MASK]" in a text is five characters, not an instruction
        self._known: dict[str, bytes] = {}

    def learn(self, documents: Iterable[Document]) -> None:
        """Encode the eojeols of these documents that are not known yet, all at once."""
        if len(self._known) > MOST_KNOWN_EOJEOLS:
            self._known.clear()
        words = dict.fromkeys(
            word for document in documents for sentence in document.sentences for word in sentence.split()
        )
        fresh = [word for word in words if word not in self._known]
        for word, encoding in zip(fresh, self._backend.encode_batch_fast(fresh, add_special_tokens=False), strict=True):
            marked = np.array(encoding.ids, self.dtype)
            marked[:1] |= eojeol_bit(self.dtype)
            self._known[word] = marked.tobytes()

    def encode(self, sentence: str) -> bytes:
        """Marked pieces of a sentence whose document was learnt."""
        return b"".join(map(self._known.__getitem__, sentence.split()))


def run(config: PackConfig, inputs: PackInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Write tokens.bin, documents.idx, sentences.idx and meta.json into ``out``; returns the counts in meta.json.

    Raises:
        BadInput: no shards, no vocabulary, a tokenizer that lacks a special piece, or a corpus without text.
    """
    shards = shard_paths(inputs.corpus / "documents")
    encoder = _checked_encoder(inputs.tokenizer)
    units, spent = out / "units", out / "units.spent"
    shutil.rmtree(spent, ignore_errors=True)
    work = partial(_pack_shard, inputs.tokenizer)
    counts = map_units(work, shards, units, workers=workers, title="pack")
    if not sum(shard["tokens"] for shard in counts):
        raise BadInput(f"{inputs.corpus}: no text in {len(shards)} shards; the token store would be empty")
    meta = {
        "dtype": encoder.dtype.str,
        **{name: sum(shard[name] for shard in counts) for name in counts[0] if name != "sources"},
        "sources": dict(sorted(sum((Counter(shard["sources"]) for shard in counts), Counter()).items())),
        "special_ids": encoder.special_ids,
        "vocab_size": encoder.vocab_size,
        "tokenizer_sha256": vocabulary_digest(inputs.tokenizer),
    }
    _join_units([unit_folder(units, number) for number in range(len(shards))], counts, out)
    _write_whole(out / META_NAME, json.dumps(meta, ensure_ascii=False, indent=1).encode())
    units.replace(spent)  # so that a half-deleted folder is never taken for finished work
    shutil.rmtree(spent)
    return meta


def _checked_encoder(tokenizer: Path) -> EojeolEncoder:
    try:
        lines = len(read_pieces(tokenizer))
    except ValueError as error:
        raise BadInput(str(error)) from error
    encoder = EojeolEncoder(tokenizer)
    missing = [name for name, id_ in encoder.special_ids.items() if id_ is None]
    if missing:
        raise BadInput(f"{tokenizer}: the tokenizer has no {', '.join(missing)} token; train it again")
    if lines != encoder.vocab_size:
        raise BadInput(
            f"{tokenizer}: {VOCABULARY_NAME} has {lines} lines but the tokenizer {encoder.vocab_size} pieces; "
            "they must agree, save the tokenizer again"
        )
    return encoder


def _pack_shard(tokenizer: Path, shard: Path, scratch: Path) -> dict[str, Any]:
    if parent_process() is not None:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
    encoder = EojeolEncoder(tokenizer)
    document_starts: list[int] = []
    sentence_starts: list[int] = []
    sources: Counter[str] = Counter()
    empty, position = 0, 0
    with (scratch / TOKENS_NAME).open("wb") as file:
        for documents in _batches(read_documents(shard)):
            encoder.learn(documents)
            for document in documents:
                start = position
                for pieces in filter(None, map(encoder.encode, document.sentences)):
                    sentence_starts.append(position)
                    position += len(pieces) // encoder.dtype.itemsize
                    file.write(pieces)
                if position == start:
                    empty += 1
                    continue
                file.write(encoder.separator)
                position += 1
                document_starts.append(start)
                sources[document.source] += position - start
    np.array(document_starts, OFFSET_TYPE).tofile(scratch / DOCUMENTS_NAME)
    np.array(sentence_starts, OFFSET_TYPE).tofile(scratch / SENTENCES_NAME)
    tokens = np.fromfile(scratch / TOKENS_NAME, encoder.dtype)
    bit = eojeol_bit(encoder.dtype)
    return {
        "tokens": position,
        "documents": len(document_starts),
        "sentences": len(sentence_starts),
        "eojeols": int(np.count_nonzero(tokens & bit)),
        "unknown_pieces": int(np.count_nonzero((tokens & (bit - 1)) == encoder.special_ids["unk"])),
        "empty_documents": empty,
        "sources": dict(sources),
    }


def _batches(documents: Iterable[Document]) -> Iterable[list[Document]]:
    batch: list[Document] = []
    for document in documents:
        batch.append(document)
        if len(batch) == BATCH_DOCUMENTS:
            yield batch
            batch = []
    yield batch


def _join_units(homes: list[Path], counts: list[dict[str, Any]], out: Path) -> None:
    before = np.cumsum([0] + [shard["tokens"] for shard in counts])
    partial = out / f"{TOKENS_NAME}.partial"
    with partial.open("wb") as joined:
        for home in homes:
            with (home / TOKENS_NAME).open("rb") as file:
                shutil.copyfileobj(file, joined, 1 << 22)
    partial.replace(out / TOKENS_NAME)
    for name in (DOCUMENTS_NAME, SENTENCES_NAME):
        starts = [np.fromfile(home / name, OFFSET_TYPE) + int(b) for home, b in zip(homes, before, strict=False)]
        _write_whole(out / name, np.concatenate([*starts, before[-1:]]).astype(OFFSET_TYPE).tobytes())


def _write_whole(path: Path, content: bytes) -> None:
    temporary = path.with_name(path.name + ".partial")
    temporary.write_bytes(content)
    temporary.replace(path)
