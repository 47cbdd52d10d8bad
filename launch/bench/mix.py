"""What the tokenizer bench learns from and what it measures on: whole documents, no document in both.

Every file gives the same number of bytes; what a small one lacks is shared among the others. One document in twenty,
chosen by its content, is held out before anything is taken, so the same text is measured whatever the size of the mix.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, write_shard
from launch.bench.material import read_texts

HELD_OUT = 20  # one document in so many
SHARD_DOCUMENTS = 10_000
MEASURED_MEGABYTES = 4.0


@dataclass(frozen=True, slots=True)
class Mix:
    """``documents`` in an order by content, so that any beginning is a fair sample; ``measured`` is held-out text."""

    documents: list[Document]
    measured: list[str]
    sources: dict[str, float]  # megabytes of each file

    @property
    def megabytes(self) -> float:
        return sum(self.sources.values())


def mix_texts(patterns: Sequence[str], measured: Sequence[str], megabytes: float) -> Mix:
    """Read files, hold out, and take an equal share of each.

    Args:
        patterns: files, folders or globs of raw text.
        measured: those whose held-out documents are measured; all by default.
        megabytes: UTF-8 text to learn from.

    Raises:
        BadInput: nothing to learn from or nothing to measure.
    """
    files = {path: _read(path) for path in _paths(patterns)}
    wanted = set(_paths(measured)) if measured else set(files)
    taken: dict[str, list[Document]] = {}
    sources: dict[str, float] = {}
    left = megabytes * 1e6
    smallest_first = sorted(files, key=lambda path: (sum(_size(d) for d in files[path][0]), path))
    for number, path in enumerate(smallest_first):
        taken[path] = _take(files[path][0], left / (len(files) - number))
        size = sum(map(_size, taken[path]))
        sources[Path(path).name] = size / 1e6
        left -= size
    held_out = [document for path in sorted(files) if path in wanted for document in files[path][1]]
    for path in wanted - set(files):
        held_out += _read(path)[1]
    texts = ["\n".join(document.sentences) for document in _take(sorted(held_out, key=_key), MEASURED_MEGABYTES * 1e6)]
    # not in the order they were taken by: large files gave the beginnings of theirs, and would all stand in front
    documents = sorted((document for part in taken.values() for document in part), key=lambda document: document.id)
    if not documents or not texts:
        raise BadInput(f"{', '.join(patterns)}: too few documents to learn from some and measure others; give more")
    return Mix(documents, texts, sources)


def write_corpus(documents: Sequence[Document], folder: Path) -> Path:
    """A folder as the corpus stage leaves it."""
    (folder / "documents").mkdir(parents=True)
    for number, start in enumerate(range(0, len(documents), SHARD_DOCUMENTS)):
        shard = folder / "documents" / f"shard-{number:05}.parquet"
        write_shard(shard, documents[start : start + SHARD_DOCUMENTS])
    return folder


def _paths(patterns: Sequence[str]) -> list[str]:
    from corpus.reading.inputs import find_inputs

    return [str(found.path) for found in find_inputs(list(patterns), {}, "text")]


def _read(path: str) -> tuple[list[Document], list[Document]]:
    """Documents of one file to learn from, and those held out, in an order by content."""
    from corpus.sentences.split import split_sentences

    kept: list[Document] = []
    held_out: list[Document] = []
    for raw in read_texts([path], math.inf):
        text = unicodedata.normalize("NFC", raw)
        sentences = tuple(s for line in text.splitlines() for s in split_sentences(line) if s.strip())
        digest = blake2b(text.encode(), digest_size=8).hexdigest()
        document = Document(digest, Path(path).name, sentences)
        (held_out if int(digest, 16) % HELD_OUT == 0 else kept).append(document)
    return sorted(kept, key=_key), held_out


def _take(documents: Sequence[Document], size: float) -> list[Document]:
    taken = []
    for document in documents:
        if _size(document) <= size:
            taken.append(document)
            size -= _size(document)
    return taken


def _size(document: Document) -> int:
    return sum(len(sentence.encode()) for sentence in document.sentences)


def _key(document: Document) -> str:
    return blake2b(document.id.encode(), digest_size=8, person=b"order").hexdigest()
