"""``python -m benchmarks tokenizer``: build vocabularies with every builder on the same text, and compare them.

Without options it runs on the embedded sample, so that anyone can repeat it. Ratios carry over to other machines,
absolute figures do not. Every build has a fresh process. Wall time counts, because the library's trainer uses threads
and ours processes.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.baselines import build_common_vocabulary
from benchmarks.texts import FILES, SAMPLE, mix_texts, write_corpus
from benchmarks.timing import fresh_in_turns, record_table, timed, versions_of, write_figures
from corpus.documents.errors import BadInput
from corpus.documents.shards import shard_paths
from corpus.documents.units import map_units, reuse_processes
from launch.console import PlainConsole, print_table
from launch.sample.unpack import unpack
from tokenizer.config import TokenizerConfig

ALPHABETS = {"malmoi": 3_000, "klue": 2_000, "bpe": 2_000}
COMMON = "MeCab + BertWordPieceTokenizer"
BUILDS = ("malmoi", COMMON, "klue", "bpe", "malmoi-jamo", "malmoi-8k", "klue-8k")
SMALL_ALPHABET, SMALL_SIZE = 1_500, 8_000


def run_tokenizer_bench(
    texts: list[str],
    measured: list[str],
    golds: list[Path],
    others: list[Path],
    megabytes: float,
    workers: int,
    out: Path | None,
) -> dict[str, Any]:
    """Build and compare, print tables, and write bench.json and the vocabularies to ``out`` if given.

    For ``texts`` (the embedded sample if empty), ``measured`` and ``megabytes`` see ``mix_texts``.

    Raises:
        BadInput: an input cannot be used, or ``megabytes`` is not above 0.
    """
    from tokenizer.measuring.compare import compare

    if megabytes <= 0 or workers < 1:
        raise BadInput("--megabytes and --workers must be above 0")
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        scratch = Path(folder)
        if not texts:
            unpack(scratch / "sample")
        mix = mix_texts(texts or [str(scratch / "sample" / "corpus")], measured, megabytes)
        home, corpus = out or scratch / "vocabularies", write_corpus(mix.documents, scratch / "corpus")
        builds = build(BUILDS, corpus, home, workers)
        held_out = {"held-out text": mix.measured}
        results: dict[str, Any] = {
            "material": {"texts": FILES if texts else SAMPLE, **mix.describe()},
            "builds": {"rows": builds, "times_faster": builds[COMMON]["wall_s"] / builds["malmoi"]["wall_s"]},
            "compared": compare([*(home / n for n in builds), *others], held_out, golds),
            "workers": workers,
            "versions": versions_of(("tokenizers", "python-mecab-ko", "python-mecab-ko-dic")),
        }
    _print_results(results)
    return write_figures(results, out / "bench.json" if out else None)


# --- building


def build(names: tuple[str, ...], corpus: Path, home: Path, workers: int) -> dict[str, dict[str, Any]]:
    """Build tokenizer folders in ``home``, each in a fresh process; returns times of the steps, and memory."""
    from tokenizer.building.export import export, read_vocabulary

    orders = {name: [name, str(corpus), str(home / name), workers] for name in names}
    for name in names:
        (home / name).mkdir(parents=True, exist_ok=True)
    figures = fresh_in_turns(run_build, orders, 1, {"RAYON_NUM_THREADS": str(workers)})
    for name in names:
        export(read_vocabulary(home / name / "vocab.txt"), configuration(name), "", home / name)
    return figures


def configuration(name: str) -> TokenizerConfig:
    """Settings of a build by its name: "malmoi", "malmoi-jamo", "klue-8k" …; ids in the order of BERT."""
    builder = "klue" if name == COMMON else name.split("-")[0]
    small = name.endswith("-8k")
    return TokenizerConfig(
        builder=builder,
        alphabet=SMALL_ALPHABET if small else ALPHABETS[builder],
        vocab_size=SMALL_SIZE if small else 32_000,
        jamo_fallback="jamo" in name,
        special_tokens="bert",
    )


def run_build(order: tuple[str, str, str, int]) -> dict[str, Any]:
    """In the fresh process: one build."""
    from tokenizer.building.pruning import write_pieces

    name, corpus, target, workers = order
    build_with = build_common_vocabulary if name == COMMON else build_ours
    with TemporaryDirectory(prefix="malmoi-build-") as work, reuse_processes(workers):
        vocabulary, figures = build_with(Path(corpus), Path(work), configuration(name), workers)
    write_pieces(Path(target) / "vocab.txt", vocabulary)
    return figures


def build_ours(corpus: Path, work: Path, config: TokenizerConfig, workers: int) -> tuple[list[str], dict[str, Any]]:
    """The functions of ``tokenizer.run`` in order, each timed."""
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


def _print_results(results: dict[str, Any]) -> None:
    """Print a table of the builds, then the comparisons."""
    from launch.tools.tokenizers import print_comparison

    console, material, builds = PlainConsole(), results["material"], results["builds"]
    console.print(
        f"{material['documents']:,} documents, {material['megabytes']:.1f} MB of {material['texts']}; measured on "
        f"{material['measured_megabytes']:.1f} MB of held-out text"
    )
    columns = {step: f"{{{step}_s:.1f}}" for step in ("count", "analyse", "merge", "prune", "fit")}
    columns |= {"total": "{wall_s:,.0f}", "CPU": "{cpu_s:,.0f}", "MiB": "{peak_mib:,.0f}"}
    note = (
        f"Seconds with {results['workers']} processes or threads, CPU seconds, MiB of the main process and a worker. "
        f"MeCab with the library's trainer takes {builds['times_faster']:.2f} times the time of malmoi."
    )
    print_table(record_table("Building", builds["rows"], columns | {"worker": "{peak_worker_mib:,.0f}"}, note), console)
    print_comparison(results["compared"], console)
