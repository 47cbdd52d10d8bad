"""Pack document shards into one token store.

Every eojeol is encoded by itself; text that looks like a special piece ("[MASK]") stays text. Portions of the shards
are packed in any number of processes and joined in order. Memory does not grow with the corpus: batches of documents
are written as they are encoded, and a process keeps one bounded table of eojeols.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
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
    OFFSET_TYPE,
    SENTENCES_NAME,
    SOURCE_TYPE,
    SOURCES_NAME,
    TOKENS_NAME,
    eojeol_bit,
    read_pieces,
    vocabulary_digest,
)

PORTION_BYTES = 64 << 20  # of text; a unit of work, so several processes share one large shard
BATCH_CHARACTERS = 500_000
NUMBER_TYPE = np.dtype("<u4")  # indices of sources within a portion, until all sources are known


class PackInputs(NamedTuple):
    """``corpus``: folder with ``documents/shard-*.parquet``; ``tokenizer``: folder of a fast tokenizer."""

    corpus: Path
    tokenizer: Path


class PackedBatch(NamedTuple):
    """A part of the store: documents with text."""

    tokens: NDArray[np.unsignedinteger]  # marked pieces, a separator after every document
    documents: NDArray[np.int64]  # where they begin
    sentences: NDArray[np.int64]
    names: list[str]  # the source of each document


def run(
    config: PackConfig, inputs: PackInputs, out: Path, *, workers: int = 1, map_units: MapUnits | None = None
) -> dict[str, Any]:
    """Write the files of a token store (see ``pretrain.pack.store``) into ``out``; returns its counts.

    The output does not depend on ``workers``. ``map_units``: the executor of a cluster.
    """
    shards = shard_paths(inputs.corpus / "documents")
    _encoder_of.cache_clear()  # the folder may have another tokenizer now
    encoder = _checked_encoder(inputs.tokenizer)
    units, spent = out / "units", out / "units.spent"
    shutil.rmtree(spent, ignore_errors=True)
    portions = split_into_portions(shards, PORTION_BYTES)
    work = partial(_pack_portion, inputs.tokenizer)
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
    }
    digests = _join([unit_folder(units, number) for number in range(len(portions))], counts, meta, out)
    atomic_write(out / META_NAME, json.dumps(with_digest({**meta, "files": digests}), ensure_ascii=False, indent=1))
    units.replace(spent)  # so that a half-deleted folder never looks like finished work
    shutil.rmtree(spent)
    return meta


@lru_cache(maxsize=1)
def _encoder_of(tokenizer: Path) -> EojeolEncoder:
    """One encoder for all portions of a process, which share its table of eojeols."""
    return EojeolEncoder(tokenizer)


def _checked_encoder(tokenizer: Path) -> EojeolEncoder:
    if tokenizer.is_dir():
        refuse_links(tokenizer)
    pieces = len(read_pieces(tokenizer))
    encoder = _encoder_of(tokenizer)
    missing = [name for name, id_ in encoder.special_ids.items() if id_ is None]
    if missing:
        raise BadInput(f"{tokenizer}: the tokenizer has no {', '.join(missing)} token; train it again")
    if pieces != encoder.vocab_size:
        raise BadInput(
            f"{tokenizer}: the vocabulary file has {pieces} pieces but the tokenizer {encoder.vocab_size}; "
            "they must agree, save the tokenizer again"
        )
    return encoder


def _pack_portion(tokenizer: Path, portion: ShardPortion, scratch: Path) -> dict[str, Any]:
    encoder = _encoder_of(tokenizer)
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
            arrays: tuple[NDArray[Any], ...] = (batch.tokens, *places, named)
            for file, array in zip(files, arrays, strict=True):
                file.write(array.tobytes())
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
    """The documents in the form of the store, with positions relative to the first."""
    pieces, sentence_ends = encoder.encode([sentence for document in documents for sentence in document.sentences])
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


def _join(homes: list[Path], counts: list[dict[str, Any]], meta: dict[str, Any], out: Path) -> dict[str, Any]:
    """Concatenate the files of the units with offsets of the store; returns size and sha256 of each file, by name."""
    limit = np.iinfo(SOURCE_TYPE).max + 1
    if len(meta["sources"]) > limit:
        raise BadInput(
            f"the documents have {len(meta['sources'])} sources, but at most {limit} are supported; use fewer names"
        )
    places = {name: place for place, name in enumerate(meta["sources"])}
    before = 0  # tokens of earlier units
    digests = [hashlib.sha256() for _ in FILES]  # of what is written, which saves a second pass over the store
    with ExitStack() as stack:
        files = [stack.enter_context(stack.enter_context(atomic_file(out / name)).open("wb")) for name in FILES]

        def write(number: int, array: NDArray[Any]) -> None:
            content = np.ascontiguousarray(array).data
            files[number].write(content)
            digests[number].update(content)

        for home, part in zip(homes, counts, strict=True):
            write(0, _tokens_of(home, meta))
            for number, name in ((1, DOCUMENTS_NAME), (2, SENTENCES_NAME)):
                write(number, (np.fromfile(home / name, OFFSET_TYPE) + before).astype(OFFSET_TYPE))
            numbers = np.array([places[name] for name in part["sources"]], SOURCE_TYPE)
            write(3, numbers[np.fromfile(home / SOURCES_NAME, NUMBER_TYPE)])
            before += part["tokens"]
        for number in (1, 2):
            write(number, np.array([before], OFFSET_TYPE))
        return {n: [file.tell(), sha.hexdigest()] for n, file, sha in zip(FILES, files, digests, strict=True)}


def _tokens_of(home: Path, meta: dict[str, Any]) -> NDArray[np.unsignedinteger]:
    """Marked pieces of a unit; BadInput if an id exceeds the vocabulary."""
    tokens = np.fromfile(home / TOKENS_NAME, meta["dtype"])
    is_wrong = tokens & (eojeol_bit(tokens.dtype) - 1) >= meta["vocab_size"]
    if is_wrong.any():
        raise BadInput(
            f"{home / TOKENS_NAME}: token {is_wrong.argmax()} exceeds the vocabulary of {meta['vocab_size']} pieces; "
            f"save the tokenizer again, delete {home.parent} and run again"
        )
    return tokens
