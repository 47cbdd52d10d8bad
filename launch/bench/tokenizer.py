"""``malmoi bench tokenizer``: vocabularies built, timed and compared on the same text in one run.

Without options it runs on the embedded sample, so anyone can repeat it. Ratios carry over to other machines, absolute
figures do not. A fresh process for every build; wall time, as the library's trainer is threads and ours processes.
"""

from __future__ import annotations

import os
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, shard_paths
from corpus.documents.units import map_units, shared_processes
from launch.bench.material import GIVEN, SAMPLE, byte_count, mix_texts, write_corpus
from launch.bench.rivals import ENCODE_WAYS, build_common_vocabulary, encode_with_library, load_library_tokenizer
from launch.bench.timing import fresh_in_turns, time_in_turns, timed, versions_of, write_figures
from launch.console import PlainConsole, figures_of, print_table
from launch.sample.unpack import unpack
from tokenizer.config import TokenizerConfig

ALPHABETS = {"malmoi": 3_000, "klue": 2_000, "bpe": 2_000}
COMMON = "common recipe"
OTHERS = ("klue", "bpe", "malmoi-hardened", "malmoi-8k", "klue-8k")
SMALL_ALPHABET, SMALL_SIZE = 1_500, 8_000


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

    Args are the command's; ``mix_texts`` tells of ``texts`` (the embedded sample if none), ``measured``, ``megabytes``.

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
        if not texts:
            unpack(scratch / "sample")
        mix = mix_texts(texts or [str(scratch / "sample" / "corpus")], measured, megabytes)
        home, corpus = out or scratch / "vocabularies", write_corpus(mix.documents, scratch / "corpus")
        builds = build(("malmoi", COMMON), corpus, home, workers, rounds)
        if not timing_only:
            builds |= build(OTHERS, corpus, home, workers)
        encoded = [name for name in ("malmoi", "malmoi-hardened") if name in builds]
        results: dict[str, Any] = {
            "material": {"texts": GIVEN if texts else SAMPLE, **mix.describe()},
            "builds": {"rows": builds, "rounds": rounds, **_times_faster(builds["malmoi"], builds[COMMON])},
            "encoding": {name: bench_encoding(mix.measured, home / name) for name in encoded},
            "compared": [] if timing_only else compare([*(home / n for n in builds), *others], mix.measured, gold),
            "workers": workers,
            "versions": versions_of(("tokenizers", "python-mecab-ko", "python-mecab-ko-dic")),
        }
    _print_results(results)
    return write_figures(results, out / "bench.json" if out else None)


# --- building


def build(names: tuple[str, ...], corpus: Path, home: Path, workers: int, rounds: int = 1) -> dict[str, dict[str, Any]]:
    """Tokenizer folders in ``home``, built in fresh processes; of each the seconds of its steps and in all, memory."""
    from tokenizer.building.export import export, read_vocabulary

    orders = {name: [name, str(corpus), str(home / name), workers] for name in names}
    for name in names:
        (home / name).mkdir(parents=True, exist_ok=True)
    found = fresh_in_turns(run_build, orders, rounds, {"RAYON_NUM_THREADS": str(workers)})
    for name in names:
        export(read_vocabulary(home / name / "vocab.txt"), configuration(name), "", home / name)
    return found


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


def run_build(order: tuple[str, str, str, int]) -> dict[str, Any]:
    """In the fresh process: a build with as many processes as threads."""
    from tokenizer.building.pruning import write_pieces

    name, corpus, target, workers = order
    way = build_common_vocabulary if name == COMMON else build_ours
    with TemporaryDirectory(prefix="malmoi-build-") as work, shared_processes(workers):
        vocabulary, figures = way(Path(corpus), Path(work), configuration(name), workers)
    write_pieces(Path(target) / "vocab.txt", vocabulary)
    return figures


def build_ours(corpus: Path, work: Path, config: TokenizerConfig, workers: int) -> tuple[list[str], dict[str, Any]]:
    """The functions of ``tokenizer.run`` one after another, each timed."""
    from tokenizer.building.export import build_vocabulary
    from tokenizer.measuring.statistics import measure_fit
    from tokenizer.run import count_corpus, learn, prune_pieces, weigh_types

    seconds: dict[str, float] = {}
    step, do = partial(timed, seconds, clock=time.perf_counter), partial(map_units, workers=workers)
    with step("count_s"):
        types, counts = count_corpus(shard_paths(corpus / "documents"), work, do)
    with step("analyse_s"):
        segmented, analysed = weigh_types(types, counts["frequencies"], config, work, do)
    with step("merge_s"):
        learnt, units = learn(segmented, counts["alphabet"], config, work)
    with step("prune_s"):
        pieces, pruning = prune_pieces(learnt, segmented, config, work, do)
    vocabulary = build_vocabulary(pieces, config)
    with step("fit_s"):
        measure_fit(vocabulary, types, segmented, config, work, do)
    sizes = {name: counts[name] for name in ("documents", "eojeols", "eojeol_types")}
    return vocabulary, {**seconds, "sizes": sizes | analysed | {"units": units}, "pruning": pruning}


def _times_faster(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, float]:
    """With and without the figures over the corpus, which the common recipe does not make."""
    whole = ours["wall_s"]
    without_fit = theirs["wall_s"] / (whole - ours["fit_s"])
    return {"times_faster": theirs["wall_s"] / whole, "times_faster_without_fit": without_fit}


# --- encoding


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
    works |= {way: partial(encode_with_library, library, prepared, way, encoder.dtype) for way in ENCODE_WAYS}
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


def _print_results(results: dict[str, Any]) -> None:
    """A table for each section, the comparisons last."""
    from launch.tools.tokenizer_tables import print_comparison

    console, material, builds = PlainConsole(), results["material"], results["builds"]
    console.print(
        f"{material['documents']:,} documents, {material['megabytes']:.1f} MB of {material['texts']}; measured on "
        f"{material['measured_megabytes']:.1f} MB that nothing was learnt from"
    )
    columns = {step: f"{{{step}_s:.1f}}" for step in ("count", "analyse", "merge", "prune", "fit")}
    columns |= {"whole": "{wall_s:,.0f}", "CPU": "{cpu_s:,.0f}", "MiB": "{peak_mib:,.0f}"}
    note = (
        f"Seconds with {results['workers']} processes or threads (medians of {builds['rounds']} for the first two), "
        "CPU seconds, peak memory of the main process and of a worker in MiB. The common recipe is mecab-ko over all "
        f"text and the library's trainer: {builds['times_faster']:.2f} times the time of malmoi, "
        f"{builds['times_faster_without_fit']:.2f} times without the figures over the corpus, which it does not make."
    )
    print_table(figures_of("Building", builds["rows"], columns | {"worker": "{peak_worker_mib:,.0f}"}, note), console)
    ways = {way: f"{{{way}_mb_per_s:.1f}}" for way in ("ours", *ENCODE_WAYS)}
    note = "The library, encode_batch_fast, is given whole documents or sentences."
    print_table(figures_of("Encoding, MB/s of one core", results["encoding"], ways, note), console)
    if results["compared"]:
        print_comparison(results["compared"], console)
