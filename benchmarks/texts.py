"""Input texts of the benchmarks: the given files, and the embedded sample for what is not given.

The sample is invented and easier than real text. Each of several files gives the same share, so that a few megabytes
contain every source. Vocabularies are measured on held-out text.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, write_shard

SAMPLE, FILES = "embedded sample (invented)", "files given"
HELD_OUT = 20  # one of 20 documents, chosen by its content
MEASURED_MEGABYTES = 4.0
SHARD_DOCUMENTS = 10_000


def read_texts(patterns: Sequence[str], megabytes: float) -> Iterator[str]:
    """Yield documents of the files, an equal share of each, about ``megabytes`` of UTF-8 in total."""
    from corpus.reading.inputs import find_inputs, plan_units
    from corpus.reading.read import Record, read_unit

    units = list(plan_units(find_inputs(list(patterns), {}, "text"), whole_files=True))
    left = megabytes * 1e6
    for number, unit in enumerate(units):
        share = left / (len(units) - number)  # later files get what a small file lacks
        for record in read_unit(unit, Counter()):
            if not isinstance(record, Record):
                continue
            yield record.text
            size = byte_count([record.text])
            share, left = share - size, left - size
            if share <= 0:
                break


@dataclass(frozen=True, slots=True)
class Mix:
    """``documents`` ordered by content, so that any prefix is a fair sample; ``measured`` is held-out text."""

    documents: list[Document]
    measured: list[str]
    sources: dict[str, float]  # megabytes of each file

    def describe(self) -> dict[str, Any]:
        """Sizes, in megabytes of UTF-8."""
        return {
            "megabytes": sum(self.sources.values()),
            "documents": len(self.documents),
            "sources": self.sources,
            "measured_megabytes": byte_count(self.measured) / 1e6,
        }


def mix_texts(patterns: Sequence[str], measured: Sequence[str], megabytes: float) -> Mix:
    """Choose documents for learning a vocabulary, and different ones for measuring it.

    Every file gives the same number of bytes; the others share what a small one lacks. Documents are held out first, so
    the measured text does not depend on ``megabytes``.

    Args:
        patterns: files, folders or globs of raw text.
        measured: files whose held-out documents are measured; default: all.
        megabytes: UTF-8 text to learn from.

    Raises:
        BadInput: too few documents.
    """
    sources_read, sources_measured = _paths(patterns), _paths(measured or patterns)
    files = {path: _read_documents(path) for path in sorted({*sources_read, *sources_measured})}
    taken: list[Document] = []
    sources: dict[str, float] = {}
    left = megabytes * 1e6
    for number, path in enumerate(sorted(sources_read, key=lambda path: sum(map(_size, files[path][0])))):
        documents = _take(files[path][0], left / (len(sources_read) - number))
        size = sum(map(_size, documents))
        taken += documents
        sources[Path(path).name] = size / 1e6
        left -= size
    held_out = sorted((document for path in sources_measured for document in files[path][1]), key=_key)
    texts = ["\n".join(document.sentences) for document in _take(held_out, MEASURED_MEGABYTES * 1e6)]
    if not taken or not texts:
        raise BadInput(f"{', '.join(patterns)}: too few documents; add text")
    # by id: in the order of taking, large files (of which only a part is used) would come first
    return Mix(sorted(taken, key=lambda document: document.id), texts, sources)


def _paths(patterns: Sequence[str]) -> list[str]:
    from corpus.reading.inputs import find_inputs

    return sorted({str(item.path) for item in find_inputs(list(patterns), {}, "text")})


def _read_documents(path: str) -> tuple[list[Document], list[Document]]:
    """Documents of one file for learning, ordered by content, and held-out documents."""
    from corpus.sentences.split import split_sentences

    training: list[Document] = []
    held_out: list[Document] = []
    for raw in read_texts([path], math.inf):
        text = unicodedata.normalize("NFC", raw)
        sentences = tuple(s for line in text.splitlines() for s in split_sentences(line) if s.strip())
        digest = blake2b(text.encode(), digest_size=8).hexdigest()
        document = Document(digest, Path(path).name, sentences)
        (held_out if int(digest, 16) % HELD_OUT == 0 else training).append(document)
    return sorted(training, key=_key), held_out


def _take(documents: Sequence[Document], size: float) -> list[Document]:
    taken = []
    for document in documents:
        if _size(document) <= size:
            taken.append(document)
            size -= _size(document)
    return taken


def _size(document: Document) -> int:
    return byte_count(document.sentences)


def _key(document: Document) -> str:
    return blake2b(document.id.encode(), digest_size=8, person=b"order").hexdigest()


def write_corpus(documents: Sequence[Document], folder: Path) -> Path:
    """Write documents as the corpus stage does."""
    (folder / "documents").mkdir(parents=True)
    for number, start in enumerate(range(0, len(documents), SHARD_DOCUMENTS)):
        shard = folder / "documents" / f"shard-{number:05}.parquet"
        write_shard(shard, documents[start : start + SHARD_DOCUMENTS])
    return folder


def byte_count(texts: Iterable[str]) -> int:
    """UTF-8 bytes."""
    return sum(len(text.encode()) for text in texts)


def spread(texts: list[str], megabytes: float) -> list[str]:
    """Texts evenly spread over the list, about ``megabytes`` of UTF-8; all if there are fewer."""
    share = min(1.0, megabytes * 1e6 / max(byte_count(texts), 1))
    selected: list[str] = []
    seen = taken = 0
    for text in texts:
        size = byte_count([text])
        seen += size
        if taken + size / 2 <= seen * share:
            selected.append(text)
            taken += size
    return selected or texts[:1]


# --- an invented token store: words of one to three pieces with Zipf frequencies

SPECIAL_PIECES = ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")  # KLUE-RoBERTa's order
SYLLABLES = 11_172  # of modern Hangul, from 가 (ga)
DOCUMENT_WORDS = (4.6, 0.9)  # mean and deviation of the logarithm; the median document has 100 words
SENTENCE_WORDS = 9


def write_invented_store(folder: Path, vocab_size: int, tokens: int) -> tuple[Path, Path]:
    """Write ``folder/tokens`` (about ``tokens`` pieces, deterministic) and ``folder/tokenizer``; returns both."""
    from transformers import BertTokenizer

    from pretrain.config import PackConfig
    from pretrain.pack.run import PackInputs
    from pretrain.pack.run import run as pack

    store, tokenizer = folder / "tokens", folder / "tokenizer"
    store.mkdir(parents=True)
    tokenizer.mkdir()
    vocabulary = invent_vocabulary(vocab_size)
    (tokenizer / "vocab.txt").write_text("\n".join(vocabulary) + "\n", "utf-8")
    BertTokenizer(
        vocab=str(tokenizer / "vocab.txt"), do_lower_case=False, strip_accents=False, model_max_length=512
    ).save_pretrained(tokenizer)
    documents = invent_documents(vocabulary, tokens // 2, np.random.default_rng(1))
    pack(PackConfig(), PackInputs(write_corpus(documents, folder / "corpus"), tokenizer), store)
    return store, tokenizer


def invent_vocabulary(size: int) -> list[str]:
    """Special pieces, then word beginnings of two syllables, then as many "##" pieces."""
    begins = (size - len(SPECIAL_PIECES) + 1) // 2
    words = [chr(ord("가") + n % SYLLABLES) + chr(ord("가") + n // SYLLABLES * 28) for n in range(begins)]
    return [*SPECIAL_PIECES, *words, *(f"##{text}" for text in words[: size - len(SPECIAL_PIECES) - begins])]


def invent_documents(vocabulary: list[str], words: int, rng: np.random.Generator) -> list[Document]:
    """Documents of ``words`` words in total, with two pieces per word on average."""
    begins = [piece for piece in vocabulary if piece[0] not in "[#"]
    ends = [piece.removeprefix("##") for piece in vocabulary if piece.startswith("##")]
    types = [
        begin + "".join(ends[(number * 31 + place * 17) % len(ends)] for place in range(extra))
        for number, (begin, extra) in enumerate(zip(begins, rng.integers(3, size=len(begins)), strict=True))
    ]
    shares = 1 / (np.arange(len(types)) + 2.7)  # Zipf and Mandelbrot
    text = [types[number] for number in rng.choice(len(types), words, p=shares / shares.sum())]
    lengths = np.maximum(2, rng.lognormal(*DOCUMENT_WORDS, size=words // 2)).astype(int)
    documents: list[Document] = []
    start = 0
    while start < words:
        end = start + int(lengths[len(documents)])
        places = range(start, min(end, words), SENTENCE_WORDS)
        sentences = tuple(" ".join(text[at : min(at + SENTENCE_WORDS, end)]) for at in places)
        documents.append(Document(f"{len(documents):08}", "invented", sentences))
        start = end
    return documents
