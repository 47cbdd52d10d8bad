"""``malmoi bench tokenizer``: vocabularies built, timed and compared on the same text in one run.

Without options it runs on the embedded sample, so anyone can repeat it. Ratios carry over to other machines, absolute
figures do not. A fresh process for every build; wall time, as the library's trainer is threads and ours processes.
"""

from __future__ import annotations

import logging
import os
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, shard_paths
from corpus.documents.units import shared_processes
from launch.bench.material import GIVEN, SAMPLE, Mix, byte_count, mix_texts, write_corpus
from launch.bench.rivals import ENCODE_WAYS, build_common_vocabulary, encode_with_library, load_library_tokenizer
from launch.bench.timing import machine, run_fresh, time_in_turns, versions_of, write_figures
from launch.console import PlainConsole, Table, figures, print_table
from launch.sample.unpack import unpack
from tokenizer.config import TokenizerConfig

log = logging.getLogger(__name__)

Result = TypeVar("Result")
ALPHABETS = {"malmoi": 3_000, "klue": 2_000, "bpe": 2_000}
COMMON = "common recipe"
OTHERS = ("klue", "bpe", "malmoi-hardened", "malmoi-8k", "klue-8k")
SMALL_ALPHABET = 1_500
SMALL_SIZE = 8_000


def run_tokenizer_bench(
    texts: list[str],
    measured: list[str],
    gold: Path | None,
    others: list[Path],
    megabytes: float,
    workers: int,
    rounds: int,
    timing_only: bool,
    out: Path | None,
) -> dict[str, Any]:
    """Measure, print tables, and write bench.json and the vocabularies into ``out`` if given.

    Args:
        texts, measured, megabytes: see ``mix_texts``; no texts: the embedded sample.
        gold: a KLUE-DP file.
        others: tokenizers to compare with.
        rounds: times that the two timed builds are done; medians count.
        timing_only: the two timed builds and nothing that is compared; for much text.

    Returns:
        "material", "builds", "encoding", "compared", "workers", "machine", "versions".

    Raises:
        BadInput: an input cannot be used, or ``megabytes`` is not above 0.
    """
    from tokenizer.measuring.compare import compare

    if megabytes <= 0 or workers < 1 or rounds < 1:
        raise BadInput("--megabytes, --workers and --rounds must be above 0")
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        scratch = Path(folder)
        mix = mix_texts(texts or [_sample(scratch / "sample")], measured, megabytes)
        home = out or scratch / "vocabularies"
        corpus = write_corpus(mix.documents, scratch / "corpus")
        builds = _build_all(corpus, home, workers, rounds, () if timing_only else OTHERS)
        paths = {name: home / name for name in builds["rows"]}
        encoded = [name for name in ("malmoi", "malmoi-hardened") if name in paths]
        compared = [] if timing_only else compare([*paths.values(), *others], mix.measured, gold)
        results: dict[str, Any] = {
            "material": _describe(mix, texts),
            "builds": builds,
            "encoding": {name: bench_encoding(mix.measured, paths[name]) for name in encoded},
            "compared": compared,
            "workers": workers,
            "machine": machine(),
            "versions": versions_of(("tokenizers", "python-mecab-ko", "python-mecab-ko-dic")),
        }
    _print_results(results)
    return write_figures(results, out / "bench.json" if out else None)


def configuration(name: str) -> TokenizerConfig:
    """Settings of a build by its name: "malmoi", "malmoi-hardened", "klue-8k" …; ids in the order of BERT."""
    builder = "klue" if name == COMMON else name.split("-")[0]
    small = name.endswith("-8k")
    return TokenizerConfig(
        builder=builder,
        alphabet=SMALL_ALPHABET if small else ALPHABETS[builder],
        vocab_size=SMALL_SIZE if small else 32_000,
        hardened="hardened" in name,
        special_tokens="bert",
    )


def _build_all(corpus: Path, home: Path, workers: int, rounds: int, others: Sequence[str]) -> dict[str, Any]:
    """The two that are timed ``rounds`` times in turns, the others once."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for name in [*("malmoi", COMMON) * rounds, *others]:
        log.info("building %s", name)
        runs.setdefault(name, []).append(build(name, corpus, home / name, configuration(name), workers))
    fit = median(run["steps"]["statistics"] for run in runs["malmoi"])
    rows = {name: found[0] | {"wall_s": median(run["wall_s"] for run in found)} for name, found in runs.items()}
    ours, theirs = rows["malmoi"]["wall_s"], rows[COMMON]["wall_s"]
    return {
        "rows": rows,
        "rounds": rounds,
        "times_faster": theirs / ours,
        "times_faster_without_fit": theirs / (ours - fit),
    }


def build(name: str, corpus: Path, target: Path, config: TokenizerConfig, workers: int) -> dict[str, Any]:
    """A tokenizer folder ``target``, built in a fresh process; seconds, memory, seconds of steps."""
    from tokenizer.building.export import export, read_vocabulary

    with TemporaryDirectory(prefix="malmoi-build-") as scratch:
        order = [name, str(corpus), scratch, config.model_dump(mode="json"), workers]
        figures_of_build = run_fresh(run_build, order, f"a build ({name})", {"RAYON_NUM_THREADS": str(workers)})
        target.mkdir(parents=True, exist_ok=True)
        export(read_vocabulary(Path(scratch) / "vocab.txt"), config, "", target)
    return figures_of_build


def run_build(order: tuple[str, str, str, dict[str, Any], int]) -> dict[str, Any]:
    """In the fresh process: a build with as many processes as threads."""
    name, corpus, out, config, workers = order
    way = build_common_vocabulary if name == COMMON else build_ours
    with shared_processes(workers):
        return way(Path(corpus), Path(out), TokenizerConfig.model_validate(config), workers)


def build_ours(corpus: Path, out: Path, config: TokenizerConfig, workers: int) -> dict[str, Any]:
    """The functions of ``tokenizer.run`` one after another, each timed."""
    from tokenizer.building.export import build_vocabulary
    from tokenizer.building.pruning import read_pieces, write_pieces
    from tokenizer.measuring.fit import measure_fit
    from tokenizer.run import count_corpus, learn, prune_pieces, weigh_types

    seconds: dict[str, float] = {}

    def timed(step: str, work: Callable[[], Result]) -> Result:
        start = time.perf_counter()
        result = work()
        seconds[step] = time.perf_counter() - start
        return result

    work, shards = out / "work", shard_paths(corpus / "documents")
    types, counts = timed("counting and windows", lambda: count_corpus(shards, work, workers))
    parts, analysed = timed("analysis", lambda: weigh_types(types, counts["frequencies"], config, work, workers))
    learnt = timed("merges", lambda: learn(parts, counts["alphabet"], config, work))
    pieces, pruning = timed("pruning", lambda: prune_pieces(read_pieces(learnt["path"]), parts, config, work, workers))
    vocabulary = build_vocabulary(pieces, config)
    timed("statistics", lambda: measure_fit(vocabulary, types, parts, config, work, workers))
    write_pieces(out / "vocab.txt", vocabulary)
    sizes = {name: counts[name] for name in ("documents", "eojeols", "eojeol_types")}
    return {"steps": seconds, "sizes": sizes | analysed | {"units": learnt["units"]}, "pruning": pruning}


def bench_encoding(documents: list[str], tokenizer: Path) -> dict[str, Any]:
    """Encoding for pretraining beside the tokenizers library, in this process on one thread, loading left out.

    Ours is the work of ``malmoi pack`` without reading and writing files: eojeol starts, separators and counts
    included, its table of eojeols empty at the start.

    Returns:
        for "ours" and for each way of the library ``…_mb_per_s`` of one core, UTF-8; for the latter
        ``times_faster_than_…``, too; ``megabytes``; ``documents``; ``documents_that_differ``, where the library finds
        other pieces in the whole document than ours eojeol by eojeol.
    """
    from pretrain.pack.encode import EojeolEncoder
    from pretrain.pack.run import in_batches, pack_batch
    from pretrain.pack.store import piece_ids

    prepared = [Document(str(number), "", _sentences(text)) for number, text in enumerate(documents)]
    encoder, library = EojeolEncoder(tokenizer), load_library_tokenizer(tokenizer)

    def ours() -> None:
        encoder.forget()
        for batch in in_batches(prepared):
            pack_batch(encoder, batch)

    def differs(document: Document) -> bool:
        theirs = library.encode(" ".join(document.sentences), add_special_tokens=False).ids
        return piece_ids(encoder.encode(document.sentences).marked).tolist() != theirs

    works: dict[str, Callable[[], object]] = {"ours": ours}
    for way in ENCODE_WAYS:
        works[way] = partial(encode_with_library, library, prepared, way, encoder.dtype)
    with _one_thread():
        seconds = time_in_turns(works)
        different = sum(map(differs, prepared))
    megabytes = byte_count(sentence for document in prepared for sentence in document.sentences) / 1e6
    return {
        **{f"{name}_mb_per_s": megabytes / spent for name, spent in seconds.items()},
        **{f"times_faster_than_{name}": seconds[name] / seconds["ours"] for name in ENCODE_WAYS},
        "megabytes": megabytes,
        "documents": len(prepared),
        "documents_that_differ": different,
    }


def _sentences(text: str) -> tuple[str, ...]:
    """As the corpus stage would leave them, but for its cleaning."""
    from corpus.sentences.split import split_sentences

    return tuple(" ".join(sentence.split()) for sentence in split_sentences(unicodedata.normalize("NFC", text)))


@contextmanager
def _one_thread(name: str = "TOKENIZERS_PARALLELISM") -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = "false"
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def _describe(mix: Mix, texts: list[str]) -> dict[str, Any]:
    return {
        "texts": GIVEN if texts else SAMPLE,
        "megabytes": mix.megabytes,
        "documents": len(mix.documents),
        "sources": mix.sources,
        "measured_megabytes": byte_count(mix.measured) / 1e6,
    }


def _sample(folder: Path) -> str:
    unpack(folder)
    return str(folder / "corpus")


def _print_results(results: dict[str, Any]) -> None:
    """A table for each section, the comparisons last."""
    from launch.tools.tokenizer_tables import print_comparison

    console, material = PlainConsole(), results["material"]
    console.print(
        f"{material['documents']:,} documents, {material['megabytes']:.1f} MB of {material['texts']}; measured on "
        f"{material['measured_megabytes']:.1f} MB that nothing was learnt from"
    )
    print_table(_builds_table(results["builds"], results["workers"]), console)
    print_table(_speed_table(results["encoding"]), console)
    if results["compared"]:
        print_comparison(results["compared"], console)


# step, as the builds name it → head of its column
STEPS = {
    "counting and windows": "count",
    "analysis": "analyse",
    "merges": "merge",
    "training": "train",
    "pruning": "prune",
    "statistics": "fit",
}
WHOLE = {"wall_s": "whole", "cpu_s": "CPU", "peak_mib": "MiB", "peak_worker_mib": "worker"}


def _builds_table(builds: dict[str, Any], workers: int) -> Table:
    rows = []
    for name, row in builds["rows"].items():
        each = [f"{row['steps'][step]:.1f}" if step in row["steps"] else "" for step in STEPS]
        rows.append([name, *each, *(f"{row[figure]:,.0f}" for figure in WHOLE)])
    note = (
        f"Seconds with {workers} processes or threads (medians of {builds['rounds']} for the first two), CPU seconds, "
        "peak memory of the main process and of a worker in MiB. The common recipe is mecab-ko over all text and the "
        f"library's trainer: {builds['times_faster']:.2f} times the time of malmoi, "
        f"{builds['times_faster_without_fit']:.2f} times without the figures over the corpus, which it does not make."
    )
    return figures("Building", ("", *STEPS.values(), *WHOLE.values()), rows, note)


def _speed_table(encoding: dict[str, Any]) -> Table:
    rows = [
        [f"{tokenizer}, {way.replace('_', ' ')}", f"{found[f'{way}_mb_per_s']:.1f}"]
        for tokenizer, found in encoding.items()
        for way in ("ours", *ENCODE_WAYS)
    ]
    return figures("Encoding, one core", ("", "MB/s"), rows)
