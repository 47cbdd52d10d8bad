"""Pack document shards into one token store.

Pieces are those of every eojeol encoded by itself; text that looks like a special piece ("[MASK]") stays text.
Portions of the shards are packed in any number of processes and joined in order. Nothing in memory grows with them:
batches of documents are written as they are encoded, and a process keeps one bounded table of eojeols for all.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import compress, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from corpus.documents.model_files import refuse_links
from corpus.documents.shards import Document, Portion, documents_of, portions_of, shard_paths
from corpus.documents.units import map_units, unit_folder
from corpus.documents.whole_files import whole_file, write_whole
from pretrain.config import PackConfig
from pretrain.pack.encode import EojeolEncoder
from pretrain.pack.store import (
    DOCUMENTS_NAME,
    META_NAME,
    MORPHEMES_NAME,
    OFFSET_TYPE,
    SENTENCES_NAME,
    SOURCE_TYPE,
    SOURCES_NAME,
    TOKENS_NAME,
    eojeol_bit,
    read_pieces,
    vocabulary_digest,
)

PORTION_BYTES = 64 << 20  # of text; a unit of work, so one large shard is packed by many processes
BATCH_CHARACTERS = 500_000
JOIN_BYTES = 1 << 22
NUMBER_TYPE = np.dtype("<u4")  # of sources in a portion, until all are known


class PackInputs(NamedTuple):
    """``corpus``: folder with ``documents/shard-*.parquet``; ``tokenizer``: folder of a fast tokenizer."""

    corpus: Path
    tokenizer: Path


class PackedBatch(NamedTuple):
    """A stretch of the store.

    Fields:
        tokens: marked pieces, a separator behind every document that has any.
        documents: where those documents begin in ``tokens``; int64.
        sentences: where their sentences begin; int64.
        names: the source of each document.
        lengths: its tokens, separator included; int64.
        empty: documents without text.
        morphemes: whether a morpheme or an eojeol begins at a token, or it is a separator; None where not asked for.
    """

    tokens: NDArray[np.unsignedinteger]
    documents: NDArray[np.int64]
    sentences: NDArray[np.int64]
    names: list[str]
    lengths: NDArray[np.int64]
    empty: int
    morphemes: NDArray[np.bool_] | None = None


def run(config: PackConfig, inputs: PackInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Write the files of a token store (see ``pretrain.pack.store``) into ``out``; returns the counts in meta.json.

    Raises:
        BadInput: no shards, no vocabulary, a tokenizer that lacks a special piece, a corpus without text, or one of
            more than 65,536 sources.
    """
    shards = shard_paths(inputs.corpus / "documents")
    _encoder_of.cache_clear()  # the folder may hold another tokenizer than last time
    encoder = _checked_encoder(inputs.tokenizer, config.morphemes)
    units, spent = out / "units", out / "units.spent"
    shutil.rmtree(spent, ignore_errors=True)
    portions = portions_of(shards, PORTION_BYTES)
    work = partial(_pack_portion, inputs.tokenizer, config.morphemes)
    counts = map_units(work, portions, units, workers=workers, title="pack", size_of=lambda portion: portion.size)
    _encoder_of.cache_clear()
    if not sum(part["tokens"] for part in counts):
        raise BadInput(f"{inputs.corpus}: no text in {len(shards)} shards; the token store would be empty")
    meta = {
        "dtype": encoder.dtype.str,
        **{name: sum(part[name] for part in counts) for name in counts[0] if name != "sources"},
        "sources": dict(sorted(sum((Counter(part["sources"]) for part in counts), Counter()).items())),
        "special_ids": encoder.special_ids,
        "vocab_size": encoder.vocab_size,
        "tokenizer_sha256": vocabulary_digest(inputs.tokenizer),
        **({"morphemes": True} if config.morphemes else {}),
    }
    homes = [unit_folder(units, number) for number in range(len(portions))]
    _join_units(homes, counts, out)
    _join_sources(homes, counts, list(meta["sources"]), out)
    if config.morphemes:
        _join_morphemes(homes, out)
    write_whole(out / META_NAME, json.dumps(meta, ensure_ascii=False, indent=1))
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
    try:
        pieces = len(read_pieces(tokenizer))
    except ValueError as error:
        raise BadInput(str(error)) from error
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


def _pack_portion(tokenizer: Path, morphemes: bool, portion: Portion, scratch: Path) -> dict[str, Any]:
    encoder = _encoder_of(tokenizer, morphemes)
    bit = eojeol_bit(encoder.dtype)
    sources: Counter[str] = Counter()
    numbers: defaultdict[str, int] = defaultdict(count().__next__)  # of the sources of this portion
    counts: Counter[str] = Counter(tokens=0, documents=0, sentences=0, eojeols=0, unknown_pieces=0, empty_documents=0)
    with (
        (scratch / TOKENS_NAME).open("wb") as tokens,
        (scratch / DOCUMENTS_NAME).open("wb") as documents,
        (scratch / SENTENCES_NAME).open("wb") as sentences,
        (scratch / SOURCES_NAME).open("wb") as numbered,
        (scratch / MORPHEMES_NAME).open("wb") as begins,  # a byte a token; bits are made of them when all are joined
    ):
        for batch in map(partial(pack_batch, encoder), in_batches(documents_of(portion.tables()))):
            tokens.write(batch.tokens.tobytes())
            if batch.morphemes is not None:
                begins.write(batch.morphemes.tobytes())
            documents.write((batch.documents + counts["tokens"]).astype(OFFSET_TYPE).tobytes())
            sentences.write((batch.sentences + counts["tokens"]).astype(OFFSET_TYPE).tobytes())
            counts["tokens"] += len(batch.tokens)
            counts["documents"] += len(batch.documents)
            counts["sentences"] += len(batch.sentences)
            counts["eojeols"] += int(np.count_nonzero(batch.tokens & bit))
            counts["unknown_pieces"] += int(np.count_nonzero(batch.tokens & (bit - 1) == encoder.special_ids["unk"]))
            counts["empty_documents"] += batch.empty
            numbered.write(np.array([numbers[name] for name in batch.names], NUMBER_TYPE).tobytes())
            for name, length in zip(batch.names, batch.lengths.tolist(), strict=True):
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
    lengths = ends - begins + has_text
    return PackedBatch(
        tokens=np.insert(pieces, ends[has_text], encoder.special_ids["sep"]),
        documents=(begins + separators_before)[has_text],
        sentences=(bounds[:-1] + np.repeat(separators_before, counts))[bounds[:-1] < bounds[1:]],
        names=[document.source for document in compress(documents, has_text)],
        lengths=lengths[has_text],
        empty=int(np.count_nonzero(~has_text)),
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


def _join_units(homes: list[Path], counts: list[dict[str, Any]], out: Path) -> None:
    """The files of the units one behind the other; what starts where is counted on over the units."""
    totals = np.cumsum([0] + [part["tokens"] for part in counts])
    for name in (TOKENS_NAME, DOCUMENTS_NAME, SENTENCES_NAME):
        with whole_file(out / name) as temporary, temporary.open("wb") as joined:
            for home, before in zip(homes, totals[:-1], strict=True):
                with (home / name).open("rb") as file:
                    while block := file.read(JOIN_BYTES):
                        if name != TOKENS_NAME:
                            block = (np.frombuffer(block, OFFSET_TYPE) + before).astype(OFFSET_TYPE).tobytes()
                        joined.write(block)
            if name != TOKENS_NAME:
                joined.write(totals[-1:].astype(OFFSET_TYPE).tobytes())


def _join_sources(homes: list[Path], counts: list[dict[str, Any]], names: list[str], out: Path) -> None:
    """The sources of all documents, numbered by their place in ``names`` instead of their portion's own way."""
    most = np.iinfo(SOURCE_TYPE).max + 1
    if len(names) > most:
        raise BadInput(f"the documents name {len(names)} sources, at most {most} have a number; give them fewer names")
    places = {name: place for place, name in enumerate(names)}
    with whole_file(out / SOURCES_NAME) as temporary, temporary.open("wb") as joined:
        for home, part in zip(homes, counts, strict=True):
            numbers = np.array([places[name] for name in part["sources"]], SOURCE_TYPE)
            joined.write(numbers[np.fromfile(home / SOURCES_NAME, NUMBER_TYPE)].tobytes())


def _join_morphemes(homes: list[Path], out: Path) -> None:
    """Bits of the bytes of all units, which meet in the middle of a byte of bits."""
    waiting = np.empty(0, np.uint8)  # the last of what was read, too few for a byte
    with whole_file(out / MORPHEMES_NAME) as temporary, temporary.open("wb") as joined:
        for home in homes:
            with (home / MORPHEMES_NAME).open("rb") as file:
                while block := file.read(JOIN_BYTES):
                    begins = np.concatenate([waiting, np.frombuffer(block, np.uint8)])
                    whole = len(begins) // 8 * 8
                    joined.write(np.packbits(begins[:whole], bitorder="little").tobytes())
                    waiting = begins[whole:]
        joined.write(np.packbits(waiting, bitorder="little").tobytes())
