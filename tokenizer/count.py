"""Shards to eojeol counts, with one context window for every eojeol type.

Types grow far more slowly than text, so the analyser (the slow part) sees each type once. It must see it in context:
alone, one token in 26 is cut wrongly (최고|의 becomes 최|고의); with one neighbour on each side, one in 118.

Which occurrence lends its window must depend on neither shards nor workers: it is the first one in the document
whose id has the smallest hash. Rows are sorted by eojeol in every file, so that joining files is a streaming merge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from heapq import merge
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents import Document, read_documents

TYPES_NAME = "types.tsv"
TYPES_PER_CHUNK = 50_000
LONGEST_NEIGHBOUR = 50  # characters; longer ones say nothing about the next word


class EojeolType(NamedTuple):
    """A row of a types file: an eojeol, how often it occurs, and the window it was met in."""

    eojeol: str
    frequency: int
    document: str  # hash of the id of the document that the window is from, hexadecimal
    left: str  # the neighbours, empty at the ends of a sentence
    right: str


def count_shard(shard: Path, scratch: Path) -> dict[str, Any]:
    """Unit of work: one document shard to ``types.tsv``; returns documents, characters and sources."""
    documents: Counter[str] = Counter()
    characters = 0

    def seen() -> Iterator[Document]:
        nonlocal characters
        for document in read_documents(shard):
            documents[document.source] += 1
            characters += sum(map(len, document.sentences))
            yield document

    write_types(scratch / TYPES_NAME, count_eojeols(seen()))
    return {"sources": dict(sorted(documents.items())), "characters": characters}


def count_eojeols(documents: Iterable[Document]) -> list[EojeolType]:
    """Eojeol types of the documents, sorted; the same for any order of the documents."""
    counts: Counter[str] = Counter()
    windows: dict[str, tuple[str, str, str]] = {}
    for document in documents:
        key = blake2b(document.id.encode(), digest_size=8).hexdigest()
        for sentence in document.sentences:
            eojeols = sentence.split()
            counts.update(eojeols)
            for position, eojeol in enumerate(eojeols):
                known = windows.get(eojeol)
                if known is None or key < known[0]:
                    left = eojeols[position - 1][-LONGEST_NEIGHBOUR:] if position else ""
                    right = eojeols[position + 1][:LONGEST_NEIGHBOUR] if position + 1 < len(eojeols) else ""
                    windows[eojeol] = (key, left, right)
    return [EojeolType(eojeol, counts[eojeol], *windows[eojeol]) for eojeol in sorted(counts)]


def merge_types(runs: Iterable[Iterable[EojeolType]]) -> Iterator[EojeolType]:
    """Sorted runs to one sorted run without duplicates: counts add up, the smallest window wins."""
    for eojeol, same in groupby(merge(*runs), key=attrgetter("eojeol")):
        rows = list(same)
        yield EojeolType(eojeol, sum(row.frequency for row in rows), *min(row[2:] for row in rows))


def merge_shards(parts: list[Path], scratch: Path) -> dict[str, Any]:
    """Unit of work: the types files of all shards to chunks of ``TYPES_PER_CHUNK`` types; returns sizes."""
    chunk: list[EojeolType] = []
    chunks = types = eojeols = 0
    for row in merge_types(read_types(part) for part in parts):
        chunk.append(row)
        types, eojeols = types + 1, eojeols + row.frequency
        if len(chunk) == TYPES_PER_CHUNK:
            write_types(scratch / chunk_name(chunks), chunk)
            chunk, chunks = [], chunks + 1
    if chunk:
        write_types(scratch / chunk_name(chunks), chunk)
        chunks += 1
    return {"chunks": chunks, "types": types, "eojeols": eojeols}


def chunk_name(number: int) -> str:
    """File of a chunk of merged types."""
    return f"types-{number:05}.tsv"


def write_types(path: Path, rows: Iterable[EojeolType]) -> None:
    """Tab-separated, one row a line; eojeols hold no white space, so nothing needs quoting."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines("\t".join(map(str, row)) + "\n" for row in rows)


def read_types(path: Path) -> Iterator[EojeolType]:
    """Rows of a types file, one in memory at a time."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            eojeol, frequency, document, left, right = line[:-1].split("\t")
            yield EojeolType(eojeol, int(frequency), document, left, right)
