"""``python -m benchmarks pack``: compare the encoder of ``malmoi pack`` with the tokenizers library.

CPU time of one thread. Ours is the work of ``malmoi pack`` without file access: eojeol starts, separators and counts
included; its eojeol table is empty at first. The library only computes ids of whole documents, 100 per call. Loading
is not timed.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.texts import GIVEN, SAMPLE, byte_count, read_texts
from benchmarks.timing import record_table, time_in_turns, versions_of, write_figures
from corpus.documents.errors import BadInput
from corpus.documents.shards import Document
from launch.console import PlainConsole, print_table
from launch.sample.unpack import unpack

OURS, LIBRARY = "malmoi pack", "tokenizers"
PARALLEL = "TOKENIZERS_PARALLELISM"


def run_pack_bench(
    tokenizers: Sequence[Path], texts: Sequence[str], megabytes: float, json_file: Path | None
) -> dict[str, Any]:
    """Measure, print a table for each tokenizer, and write the figures to ``json_file`` if given.

    Args:
        tokenizers: folders with tokenizer.json.
        texts: files, an equal share of each; the embedded sample if empty.

    Raises:
        BadInput: an input cannot be used, or ``megabytes`` is not above 0.
    """
    if megabytes <= 0:
        raise BadInput("--megabytes must be above 0")
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        if not texts:
            unpack(Path(folder))
        documents = list(read_texts(texts or [str(Path(folder) / "corpus")], megabytes))
    results: dict[str, Any] = {
        "material": GIVEN if texts else SAMPLE,
        "encoding": {str(tokenizer): bench_encoding(documents, tokenizer) for tokenizer in tokenizers},
        "versions": versions_of(("tokenizers", "transformers")),
    }
    columns = {"MB/s": "{mb_per_s:.1f}", "ours": "{times:.2f} x", "other pieces": "{documents_that_differ}"}
    for name, encoding in results["encoding"].items():
        note = (
            f"{encoding['documents']:,} documents, {encoding['megabytes']:.1f} MB of {results['material']}, medians of "
            'CPU time on one thread. "ours": how many times as fast; "other pieces": documents with different pieces.'
        )
        print_table(record_table(name, encoding["encoders"], columns, note), PlainConsole())
    return write_figures(results, json_file)


def bench_encoding(documents: Sequence[str], tokenizer: Path) -> dict[str, Any]:
    """Encode the same documents with ours and with the library.

    Returns:
        "megabytes" of UTF-8, "documents", and "encoders" by name, each with "mb_per_s"; the library also with "times"
        (its seconds divided by ours) and "documents_that_differ" from our ids.
    """
    from tokenizers import Tokenizer

    from pretrain.pack.encode import EojeolEncoder
    from pretrain.pack.run import in_batches, pack_batch
    from pretrain.pack.store import piece_ids

    prepared = [Document(str(number), "", _sentences(text)) for number, text in enumerate(documents)]
    texts = [" ".join(document.sentences) for document in prepared]
    encoder, library = EojeolEncoder(tokenizer), Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    library.encode_special_tokens = True
    library.no_truncation()
    library.no_padding()

    def encode_with_ours() -> None:
        encoder.forget()
        for batch in in_batches(prepared):
            pack_batch(encoder, batch)

    def encode_with_library() -> list[list[int]]:
        batches = (texts[first : first + 100] for first in range(0, len(texts), 100))
        return [e.ids for batch in batches for e in library.encode_batch_fast(batch, add_special_tokens=False)]

    ours = [piece_ids(encoder.encode(document.sentences).marked).tolist() for document in prepared]
    with _one_thread():
        differ = sum(a != b for a, b in zip(ours, encode_with_library(), strict=True))
        seconds = time_in_turns({OURS: encode_with_ours, LIBRARY: encode_with_library})
    megabytes = byte_count(sentence for document in prepared for sentence in document.sentences) / 1e6
    encoders: dict[str, dict[str, Any]] = {name: {"mb_per_s": megabytes / spent} for name, spent in seconds.items()}
    encoders[LIBRARY] |= {"times": seconds[LIBRARY] / seconds[OURS], "documents_that_differ": differ}
    return {"megabytes": megabytes, "documents": len(prepared), "encoders": encoders}


def _sentences(text: str) -> tuple[str, ...]:
    """Split as the corpus stage does, without its filters."""
    from corpus.sentences.split import split_sentences

    return tuple(" ".join(sentence.split()) for sentence in split_sentences(unicodedata.normalize("NFC", text)))


@contextmanager
def _one_thread() -> Iterator[None]:
    before = os.environ.get(PARALLEL)
    os.environ[PARALLEL] = "false"
    try:
        yield
    finally:
        os.environ.pop(PARALLEL)
        if before is not None:
            os.environ[PARALLEL] = before
