"""``python -m benchmarks pack``: compare the encoder of ``malmoi pack`` with the tokenizers library.

Ours is the work of ``malmoi pack`` without file access: eojeol starts, separators and counts included; its eojeol
table is empty at first. The library only computes ids, of whole documents in fresh processes (``time_library``), so
versions that cannot be installed here can take part. Loading is not timed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import time_library
from benchmarks.texts import GIVEN, SAMPLE, byte_count, read_texts
from benchmarks.timing import ROUNDS, versions_of, write_figures
from corpus.documents.errors import BadInput
from corpus.documents.shards import Document
from launch.console import PlainConsole, print_table, record_table
from launch.sample.unpack import unpack

OURS = "malmoi pack"
PARALLEL = "TOKENIZERS_PARALLELISM"


def run_pack_bench(
    tokenizers: Sequence[Path], texts: Sequence[str], megabytes: float, others: Sequence[Path], json_file: Path | None
) -> dict[str, Any]:
    """Measure, print a table for each tokenizer, and write the figures to ``json_file`` if given.

    Args:
        tokenizers: folders with tokenizer.json.
        texts: files, an equal share of each; the embedded sample if empty.
        others: Python executables with other versions of the library.

    Returns:
        "material", "encoding" by tokenizer, "machine", "versions".

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
        "encoding": {str(tokenizer): bench_encoding(documents, tokenizer, others) for tokenizer in tokenizers},
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


def bench_encoding(documents: Sequence[str], tokenizer: Path, others: Sequence[Path] = ()) -> dict[str, Any]:
    """Encode the same documents with ours, with the installed library and with those of other Pythons.

    Returns:
        "megabytes" of UTF-8, "documents", and by name "encoders", each with "mb_per_s"; those of the library with
        "times", their seconds divided by ours, and "documents_that_differ" from our ids.
    """
    from pretrain.pack.encode import EojeolEncoder
    from pretrain.pack.run import in_batches, pack_batch
    from pretrain.pack.store import piece_ids

    prepared = [Document(str(number), "", _sentences(text)) for number, text in enumerate(documents)]
    encoder = EojeolEncoder(tokenizer)

    def ours() -> dict[str, float]:
        encoder.forget()
        start = time.process_time()
        for batch in in_batches(prepared):
            pack_batch(encoder, batch)
        return {"seconds": max(time.process_time() - start, 1e-6)}

    digests = [
        time_library.digest(piece_ids(encoder.encode(document.sentences).marked).tolist()) for document in prepared
    ]
    works: dict[str, Callable[[], dict[str, Any]]] = {OURS: ours}
    encoders: dict[str, dict[str, Any]] = {OURS: {}}
    with TemporaryDirectory(prefix="malmoi-bench-") as folder, _one_thread():
        texts = Path(folder) / "texts.json"
        texts.write_text(json.dumps([" ".join(document.sentences) for document in prepared]), "utf-8")
        for python in (Path(sys.executable), *others):
            theirs = encode_elsewhere(python, tokenizer, texts)
            name = f"tokenizers {theirs['version']}"
            works[name] = partial(encode_elsewhere, python, tokenizer, texts)
            encoders[name] = {"documents_that_differ": sum(map(str.__ne__, digests, theirs["digests"]))}
        rounds = [{name: work()["seconds"] for name, work in works.items()} for _ in range(ROUNDS)]
    seconds = {name: median(spent[name] for spent in rounds) for name in works}
    megabytes = byte_count(sentence for document in prepared for sentence in document.sentences) / 1e6
    for name, figures in encoders.items():
        figures["mb_per_s"] = megabytes / seconds[name]
        if name != OURS:
            figures["times"] = seconds[name] / seconds[OURS]
    return {"megabytes": megabytes, "documents": len(prepared), "encoders": encoders}


def encode_elsewhere(python: Path, tokenizer: Path, texts: Path) -> dict[str, Any]:
    """Run ``time_library`` with another Python; returns what it prints.

    Raises:
        BadInput: that Python cannot run it.
    """
    command = [str(python), time_library.__file__, str(tokenizer / "tokenizer.json"), str(texts)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise BadInput(
            f"--library {python}: cannot be started ({error.strerror}); expected the path of a Python"
        ) from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        needs = f"it needs the package tokenizers, and {tokenizer} needs a tokenizer.json"
        raise BadInput(f"--library {python}: cannot encode ({last}); {needs}")
    return dict(json.loads(done.stdout))


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
