"""Pack document shards into one token store.

Pieces are those of every eojeol encoded by itself; text that looks like a special piece ("[MASK]") stays text.
Portions of the shards are packed in any number of processes and joined in order. Nothing in memory grows with them:
batches of documents are written as they are encoded, and a process keeps one bounded table of eojeols for all.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import lru_cache, partial
from itertools import compress, count
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpus.documents.atomic_files import atomic_file, atomic_write, with_digest
from corpus.documents.errors import BadInput
from corpus.documents.model_files import refuse_links
from corpus.documents.shards import Document, ShardPortion, iter_documents, shard_paths, split_into_portions
from corpus.documents.units import MapUnits, unit_folder
from corpus.documents.units import map_units as map_in_processes
from pretrain.config import PackConfig
from pretrain.pack.encode import EojeolEncoder
from pretrain.pack.store import (
    DOCUMENTS_NAME,
    FILES,
    META_NAME,
    MORPHEMES_NAME,
    OFFSET_TYPE,
    SENTENCES_NAME,
    SOURCE_TYPE,
    SOURCES_NAME,
    TOKENS_NAME,
    eojeol_bit,
    files_of,
    first_beyond,
    read_pieces,
    vocabulary_digest,
)

PORTION_BYTES = 64 << 20  # of text; a unit of work, so one large shard is packed by many processes
BATCH_CHARACTERS = 500_000
NUMBER_TYPE = np.dtype("<u4")  # of sources in a portion, until all are known


class PackInputs(NamedTuple):
    """``corpus``: folder with ``documents/shard-*.parquet``; ``tokenizer``: folder of a fast tokenizer."""

    corpus: Path
    tokenizer: Path


class PackedBatch(NamedTuple):
    """A stretch of the store: documents that have text."""

    tokens: NDArray[np.unsignedinteger]  # marked pieces, a separator after every document
    documents: NDArray[np.int64]  # where they begin
    sentences: NDArray[np.int64]
    names: list[str]  # the source of each document
    morphemes: NDArray[np.bool_] | None = None  # whether one begins, or an eojeol, or it is a separator


def run(
    config: PackConfig, inputs: PackInputs, out: Path, *, workers: int = 1, map_units: MapUnits | None = None
) -> dict[str, Any]:
    """Write the files of a token store (see ``pretrain.pack.store``) into ``out``; returns its counts.

    Args:
        workers: processes; the output does not depend on it.
        map_units: a cluster's engine, in place of processes on this machine.

    Raises:
        BadInput: no shards, no vocabulary, a tokenizer that lacks a special piece, a corpus without text, or one of
            more than 65,536 sources.
    """
    shards = shard_paths(inputs.corpus / "documents")
    _encoder_of.cache_clear()  # the folder may hold another tokenizer than last time
    encoder = _checked_encoder(inputs.tokenizer, config.morphemes)
    units, spent = out / "units", out / "units.spent"
    shutil.rmtree(spent, ignore_errors=True)
    portions = split_into_portions(shards, PORTION_BYTES)
    work = partial(_pack_portion, inputs.tokenizer, config.morphemes)
    do = map_units or map_in_processes
    counts = do(work, portions, units, workers=workers, title="pack", size_of=attrgetter("size"))
    _encoder_of.cache_clear()
    if not sum(part["tokens"] for part in counts):
        raise BadInput(f"{inputs.corpus}: no text in {len(shards)} shards; check what the corpus stage dropped")
    meta = {
        "dtype": encoder.dtype.str,
        **{name: sum(part[name] for part in counts) for name in counts[0] if name != "sources"},
        "sources": dict(sorted(sum((Counter(part["sources"]) for part in counts), Counter()).items())),
        "special_ids": encoder.special_ids,
        "vocab_size": encoder.vocab_size,
        "tokenizer_sha256": vocabulary_digest(inputs.tokenizer),
        **({"morphemes": True} if config.morphemes else {}),
    }
    seals = _join([unit_folder(units, number) for number in range(len(portions))], counts, meta, out)
    atomic_write(out / META_NAME, json.dumps(with_digest({**meta, "files": seals}), ensure_ascii=False, indent=1))
    units.replace(spent)  # so that a half-deleted folder is never taken for finished work
    shutil.rmtree(spent)
    return meta


@lru_cache(maxsize=1)
def _encoder_of(tokenizer: Path, morphemes: bool) -> EojeolEncoder:
    """One for all portions of a process: what it has met in one helps with the next."""
    return EojeolEncoder(tokenizer, morphemes=morphemes)


def _checked_encoder(tokenizer: Path, morphemes: bool) -> EojeolEncoder:
    if tokenizer.is_dir():
        refuse_links(tokenizer)
    pieces = len(read_pieces(tokenizer))
    encoder = _encoder_of(tokenizer, morphemes)
    missing = [name for name, id_ in encoder.special_ids.items() if id_ is None]
    if missing:
        raise BadInput(f"{tokenizer}: the tokenizer has no {', '.join(missing)} token; train it again")
    if pieces != encoder.vocab_size:
        raise BadInput(
            f"{tokenizer}: the vocabulary file has {pieces} pieces but the tokenizer {encoder.vocab_size}; "
            "they must agree, save the tokenizer again"
        )
    return encoder


def _pack_portion(tokenizer: Path, morphemes: bool, portion: ShardPortion, scratch: Path) -> dict[str, Any]:
    encoder = _encoder_of(tokenizer, morphemes)
    bit, unknown = eojeol_bit(encoder.dtype), encoder.special_ids["unk"]
    sources: Counter[str] = Counter()
    numbers: defaultdict[str, int] = defaultdict(count().__next__)  # of the sources of this portion
    counts: Counter[str] = Counter(tokens=0, documents=0, sentences=0, eojeols=0, unknown_pieces=0, empty_documents=0)
    with ExitStack() as stack:
        files = [stack.enter_context((scratch / name).open("wb")) for name in FILES]
        for documents in in_batches(iter_documents(portion.tables())):
            batch = pack_batch(encoder, documents)
            named = np.array([numbers[name] for name in batch.names], NUMBER_TYPE)
            places = (batch.documents + counts["tokens"], batch.sentences + counts["tokens"])
            for file, array in zip(files, (batch.tokens, *places, named, batch.morphemes), strict=True):
                file.write(b"" if array is None else array.tobytes())
            counts["tokens"] += len(batch.tokens)
            counts["documents"] += len(batch.documents)
            counts["sentences"] += len(batch.sentences)
            counts["eojeols"] += int(np.count_nonzero(batch.tokens & bit))
            counts["unknown_pieces"] += int(np.count_nonzero(batch.tokens & (bit - 1) == unknown))
            counts["empty_documents"] += len(documents) - len(batch.documents)
            lengths = np.diff(batch.documents, append=len(batch.tokens))
            for name, length in zip(batch.names, lengths.tolist(), strict=True):
                sources[name] += length
    return {**counts, "sources": {name: sources[name] for name in numbers}}


def pack_batch(encoder: EojeolEncoder, documents: Sequence[Document]) -> PackedBatch:
    """The documents as they stand in a store, positions counted from the first of them."""
    pieces, sentence_ends, morphemes = encoder.encode(
        [sentence for document in documents for sentence in document.sentences]
    )
    bounds = np.append(0, sentence_ends)
    counts = np.array([len(document.sentences) for document in documents], np.int64)
    last = np.cumsum(counts)
    begins, ends = bounds[last - counts], bounds[last]
    has_text = begins < ends
    separators_before = np.cumsum(has_text) - has_text
    return PackedBatch(
        tokens=np.insert(pieces, ends[has_text], encoder.special_ids["sep"]),
        documents=(begins + separators_before)[has_text],
        sentences=(bounds[:-1] + np.repeat(separators_before, counts))[bounds[:-1] < bounds[1:]],
        names=[document.source for document in compress(documents, has_text)],
        morphemes=None if morphemes is None else np.insert(morphemes, ends[has_text], True),
    )


def in_batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Lists of documents in order, each of about ``BATCH_CHARACTERS`` or one document."""
    batch: list[Document] = []
    characters = 0
    for document in documents:
        batch.append(document)
        characters += sum(map(len, document.sentences))
        if characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


class SealedFile:
    """A file on its way to the disk, and the sha256 of what was written so far: no second pass over the store."""

    def __init__(self, path: Path) -> None:
        self._file, self._digest = path.open("wb"), hashlib.sha256()

    def write(self, array: NDArray[Any]) -> None:
        content = np.ascontiguousarray(array).data
        self._file.write(content)
        self._digest.update(content)

    def close(self) -> None:
        self._file.close()

    def seal(self) -> list[int | str]:
        return [self._file.tell(), self._digest.hexdigest()]


def _join(homes: list[Path], counts: list[dict[str, Any]], meta: dict[str, Any], out: Path) -> dict[str, Any]:
    """The files of the units one after the other; what starts where, and which source is which, is counted anew.

    Returns size and sha256 of each file, by name.
    """
    most = np.iinfo(SOURCE_TYPE).max + 1
    if len(meta["sources"]) > most:
        raise BadInput(
            f"the documents name {len(meta['sources'])} sources, at most {most} have a number; give them fewer names"
        )
    places = {name: place for place, name in enumerate(meta["sources"])}
    before, bits = 0, np.empty(0, bool)  # tokens of the units before; what is left of them after the last byte of bits
    with ExitStack() as stack:
        names = files_of(meta)
        files = [
            stack.enter_context(closing(SealedFile(stack.enter_context(atomic_file(out / name))))) for name in names
        ]
        for home, part in zip(homes, counts, strict=True):
            tokens = _tokens_of(home, meta)
            files[0].write(tokens)
            for file, name in zip(files[1:3], (DOCUMENTS_NAME, SENTENCES_NAME), strict=True):
                file.write((np.fromfile(home / name, OFFSET_TYPE) + before).astype(OFFSET_TYPE))
            numbers = np.array([places[name] for name in part["sources"]], SOURCE_TYPE)
            files[3].write(numbers[np.fromfile(home / SOURCES_NAME, NUMBER_TYPE)])
            before += part["tokens"]
            if "morphemes" in meta:  # units meet in the middle of a byte
                bits = np.append(bits, np.fromfile(home / MORPHEMES_NAME, bool))
                whole = len(bits) // 8 * 8
                files[4].write(np.packbits(bits[:whole], bitorder="little"))
                bits = bits[whole:]
        for file in files[1:3]:
            file.write(np.array([before], OFFSET_TYPE))
        for file in files[4:]:
            file.write(np.packbits(bits, bitorder="little"))
        return {name: file.seal() for name, file in zip(names, files, strict=True)}


def _tokens_of(home: Path, meta: dict[str, Any]) -> NDArray[np.unsignedinteger]:
    """Marked pieces of a unit; BadInput where the vocabulary has fewer."""
    tokens = np.fromfile(home / TOKENS_NAME, meta["dtype"])
    place = first_beyond(tokens, meta["vocab_size"])
    if place is not None:
        raise BadInput(
            f"{home / TOKENS_NAME}: token {place} has an id beyond the vocabulary of {meta['vocab_size']} pieces; save "
            f"the tokenizer again, delete {home.parent} and run again"
        )
    return tokens
