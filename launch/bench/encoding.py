"""Encoding for pretraining beside the tokenizers library: MB/s of one core, the same pieces.

Ours is the work of ``malmoi pack`` without reading and writing files: eojeol starts, separators and counts included,
its table of eojeols empty at the start. The library gets sentences, strings of 50 sentences (its fastest way) and
whole documents, and its ids are put into arrays, too. Loading is left out everywhere.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from corpus.documents.shards import Document
from launch.bench.rounds import byte_count, time_in_turns

DOCUMENTS_PER_CALL = 100
PARALLELISM = "TOKENIZERS_PARALLELISM"


def bench_encoding(documents: list[str], tokenizer: Path) -> dict[str, Any]:
    """Speeds over the documents with the tokenizer of a folder; runs in this process, on one thread.

    Returns:
        for "ours" and for each way of the library ``…_mb_per_s`` of one core, UTF-8; for the latter
        ``times_faster_than_…``, too; ``megabytes``; ``documents``; ``documents_that_differ``, where the library finds
        other pieces in the whole document than ours eojeol by eojeol.
    """
    from pretrain.encode import EojeolEncoder
    from pretrain.pack import in_batches, pack_batch

    prepared = [Document(str(number), "", _sentences(text)) for number, text in enumerate(documents)]
    encoder, library = EojeolEncoder(tokenizer), _load_library(tokenizer)

    def ours() -> None:
        encoder.forget()
        for batch in in_batches(prepared):
            pack_batch(encoder, batch)

    works: dict[str, Callable[[], object]] = {"ours": ours}
    for name, texts_of in WAYS.items():
        works[name] = partial(_encode_with_library, library, prepared, texts_of, encoder.dtype)
    with _one_thread():
        seconds = time_in_turns(works)
        differ = sum(not _is_equal(encoder, library, document) for document in prepared)
    megabytes = byte_count([sentence for document in prepared for sentence in document.sentences]) / 1e6
    return {
        **{f"{name}_mb_per_s": megabytes / spent for name, spent in seconds.items()},
        **{f"times_faster_than_{name}": seconds[name] / seconds["ours"] for name in WAYS},
        "megabytes": megabytes,
        "documents": len(prepared),
        "documents_that_differ": differ,
    }


def _by_fifty(sentences: tuple[str, ...]) -> list[str]:
    return [" ".join(sentences[first : first + 50]) for first in range(0, len(sentences), 50)]


# What the library is given of a document, by name
WAYS: dict[str, Callable[[tuple[str, ...]], list[str]]] = {
    "encode_batch_fast_documents": lambda sentences: [" ".join(sentences)],
    "encode_batch_fast_50_sentences": _by_fifty,
    "encode_batch_fast_sentences": list,
}


def _encode_with_library(
    library: Any, documents: list[Document], texts_of: Callable[[tuple[str, ...]], list[str]], dtype: Any
) -> None:
    for first in range(0, len(documents), DOCUMENTS_PER_CALL):
        called = documents[first : first + DOCUMENTS_PER_CALL]
        texts = list(chain.from_iterable(texts_of(document.sentences) for document in called))
        for encoding in library.encode_batch_fast(texts, add_special_tokens=False):
            np.array(encoding.ids, dtype)


def _sentences(text: str) -> tuple[str, ...]:
    """As the corpus stage would leave them, but for its cleaning."""
    from corpus.sentences.split import split_sentences

    return tuple(" ".join(sentence.split()) for sentence in split_sentences(unicodedata.normalize("NFC", text)))


def _load_library(tokenizer: Path) -> Any:
    """The same tokenizer for the library alone: text is text, nothing cut short."""
    from transformers import AutoTokenizer

    backend = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True).backend_tokenizer
    backend.encode_special_tokens = True
    backend.no_truncation()
    backend.no_padding()
    return backend


def _is_equal(encoder: Any, library: Any, document: Document) -> bool:
    from pretrain.store import piece_ids

    theirs = library.encode(" ".join(document.sentences), add_special_tokens=False).ids
    return piece_ids(encoder.encode(document.sentences).marked).tolist() == theirs


@contextmanager
def _one_thread() -> Iterator[None]:
    before = os.environ.get(PARALLELISM)
    os.environ[PARALLELISM] = "false"
    try:
        yield
    finally:
        os.environ.pop(PARALLELISM)
        if before is not None:
            os.environ[PARALLELISM] = before
