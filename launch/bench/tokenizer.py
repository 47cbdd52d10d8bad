"""``malmoi bench tokenizer``: vocabularies built, timed and compared on the same text in one run.

Without options it runs on the embedded sample, so anyone can repeat it. Ratios carry over to other machines, absolute
figures do not. A fresh process for every build; wall time, as the library's trainer is threads and ours processes.
"""

from __future__ import annotations

import json
import logging
import platform
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, to_table
from launch.bench.builds import build
from launch.bench.encoding import bench_encoding
from launch.bench.mix import Mix, mix_texts, write_corpus
from launch.bench.rounds import byte_count, time_in_turns, version_of
from launch.bench.vocabulary_tables import as_json, print_results, write_results
from launch.console import PlainConsole
from tokenizer.config import TokenizerConfig

if TYPE_CHECKING:
    from tokenizer.measuring.compare import Comparison

log = logging.getLogger(__name__)

ALPHABETS = {"malmoi": 3_000, "klue": 2_000, "bpe": 2_000}
TIMED = ("malmoi", "common recipe")
OTHERS = ("klue", "bpe", "malmoi-hardened", "malmoi-8k", "klue-8k")
SMALL_ALPHABET = 1_500
SMALL_SIZE = 8_000
SHARES = (16, 8, 4, 2, 1)  # of the mix, for the curve
COUNTED_MEGABYTES = 8.0


def run_tokenizer_bench(
    texts: list[str],
    measured: list[str],
    gold: Path | None,
    others: list[Path],
    megabytes: float,
    workers: int,
    rounds: int,
    curve: bool,
    timing_only: bool,
    out: Path | None,
) -> dict[str, Any]:
    """Measure, print tables, and write figures, tables, pictures and vocabularies into ``out`` if given.

    Args:
        texts: files, folders or globs of raw text; empty for the embedded sample.
        measured: those whose held-out documents are measured; all by default.
        gold: a KLUE-DP file.
        others: tokenizers to compare with.
        megabytes: text to learn from, UTF-8.
        workers: processes of each build.
        rounds: times that the two timed builds are done; medians count.
        curve: build from 1/16, 1/8 … of the text as well.
        timing_only: the two timed builds and nothing that is compared; for much text.

    Returns:
        "material", "builds", "counting", "encoding", "compared", "curve", "machine".

    Raises:
        BadInput: an input cannot be used, or ``megabytes`` is not above 0.
    """
    if megabytes <= 0 or workers < 1 or rounds < 1:
        raise BadInput("--megabytes, --workers and --rounds must be above 0")
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        scratch = Path(folder)
        mix = mix_texts(texts or [_sample(scratch / "sample")], measured, megabytes)
        corpus = write_corpus(mix.documents, scratch / "corpus")
        home = out or scratch / "vocabularies"
        builds = _build_all(corpus, home, workers, rounds, OTHERS if not timing_only else ())
        paths = {name: home / name for name in builds["rows"]}
        results: dict[str, Any] = {
            "material": _describe(mix, texts),
            "builds": builds,
            "counting": _time_counting(mix.documents),
            "encoding": {
                name: bench_encoding(mix.measured, paths[name])
                for name in ("malmoi", "malmoi-hardened")
                if name in paths
            },
            "compared": [] if timing_only else _compare([*paths.values(), *others], mix, gold),
            "curve": _draw_curve(mix, scratch / "curve", gold, workers) if curve else [],
            "machine": {"python": platform.python_version(), "architecture": platform.machine(), "workers": workers},
            "versions": {name: version_of(name) for name in ("tokenizers", "python-mecab-ko", "python-mecab-ko-dic")},
        }
        print_results(results, PlainConsole())
        if out:
            write_results(results, out)
    return dict(json.loads(as_json(results)))


def configuration(name: str) -> TokenizerConfig:
    """Settings of a build by its name: "malmoi", "malmoi-hardened", "klue-8k" …; ids in the order of BERT."""
    builder = name.split("-")[0]
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
    rows: dict[str, list[dict[str, Any]]] = {}
    for _ in range(rounds):
        for name in TIMED:
            rows.setdefault(name, []).append(_build(name, corpus, home, workers))
    for name in others:
        rows[name] = [_build(name, corpus, home, workers)]
    fit = median(row["steps"]["statistics"] for row in rows["malmoi"])
    medians = {name: median(row["wall_s"] for row in found) for name, found in rows.items()}
    return {
        "rows": {name: found[0] | {"wall_s": medians[name]} for name, found in rows.items()},
        "rounds": rounds,
        "times_faster": medians["common recipe"] / medians["malmoi"],
        "times_faster_without_fit": medians["common recipe"] / (medians["malmoi"] - fit),
    }


def _build(name: str, corpus: Path, home: Path, workers: int) -> dict[str, Any]:
    """Build, and leave a tokenizer folder ``home/name`` behind."""
    from tokenizer.building.export import export, read_vocabulary

    log.info("building %s", name)
    is_common = name == "common recipe"
    config = configuration("klue" if is_common else name)
    with TemporaryDirectory(prefix="malmoi-build-") as folder:
        built = Path(folder) / "built"
        figures = build("common" if is_common else "ours", corpus, built, config, workers)
        (home / name).mkdir(parents=True, exist_ok=True)
        export(read_vocabulary(built / "vocab.txt"), config, "", home / name)
    return figures


def _compare(paths: Sequence[Path], mix: Mix, gold: Path | None) -> list[Comparison]:
    from tokenizer.measuring.compare import compare

    return compare(paths, mix.measured, gold)


def _draw_curve(mix: Mix, scratch: Path, gold: Path | None, workers: int) -> list[tuple[float, Comparison]]:
    """The malmoi builder on growing parts of the mix: megabytes, and the figures of each vocabulary."""
    sizes, paths = [], []
    for share in SHARES:
        documents = mix.documents[: max(1, len(mix.documents) // share)]
        home = scratch / f"1-{share}"
        corpus = write_corpus(documents, home / "corpus")
        paths.append(home / f"{share}")
        _build("malmoi", corpus, home, workers)
        (home / "malmoi").replace(paths[-1])
        sizes.append(byte_count([s for d in documents for s in d.sentences]) / 1e6)
    return list(zip(sizes, _compare(paths, mix, gold), strict=True))


def _time_counting(documents: Sequence[Document]) -> dict[str, float]:
    """What windows add to counting, in MB/s of one core."""
    import pyarrow.compute as pc

    from tokenizer.building.count import count_table

    table, size = to_table([]), 0.0
    for end in range(1, len(documents) + 1):
        size += byte_count(list(documents[end - 1].sentences)) / 1e6
        if size >= COUNTED_MEGABYTES or end == len(documents):
            table = to_table(documents[:end])
            break
    sentences = table["sentences"].combine_chunks().flatten()
    seconds = time_in_turns(
        {
            "alone": lambda: pc.value_counts(pc.utf8_split_whitespace(sentences).flatten()),
            "with_windows": lambda: count_table(table),
        }
    )
    return {"megabytes": size} | {f"{name}_mb_per_s": size / spent for name, spent in seconds.items()}


def _describe(mix: Mix, texts: list[str]) -> dict[str, Any]:
    return {
        "texts": "files given" if texts else "embedded sample (invented)",
        "megabytes": mix.megabytes,
        "documents": len(mix.documents),
        "sources": mix.sources,
        "measured_megabytes": byte_count(mix.measured) / 1e6,
    }


def _sample(folder: Path) -> str:
    from launch.sample.unpack import unpack

    unpack(folder)
    return str(folder / "corpus")
