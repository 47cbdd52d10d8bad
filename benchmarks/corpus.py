"""``python -m benchmarks corpus``: compare sentence splitting, PII detection and decontamination with other tools.

Without options it runs on the embedded sample, so that anyone can repeat it; the tables say which text is invented.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.baselines import (
    DETECTORS,
    PLAIN_RULE,
    SPLITTERS,
    Detect,
    Split,
    cut_ngrams,
    load_bm25,
    load_detectors,
    load_splitters,
    split_at_stops,
)  # fmt: skip
from benchmarks.gold import (
    Labelled,
    gold_sentences,
    labelled_documents,
    read_gold,
    read_labelled,
    score_spans,
    score_splits,
)
from benchmarks.texts import FILES, SAMPLE, byte_count, read_texts, spread
from benchmarks.timing import ROUNDS, fresh_in_turns, record_table, run_fresh, time_in_turns, versions_of, write_figures
from corpus.documents.errors import BadInput
from launch.console import PlainConsole, Table, print_table
from launch.sample.unpack import unpack

FAST_MEGABYTES, SLOW_MEGABYTES, QUERY_MEGABYTES = 5.0, 0.1, 3.0
BEGINNING_CHARS = 2_000
MAX_ITEMS = 12_000
BRUTE_QUERIES = 24
BATCH = 4_000  # sentences per call, about as many as in the stage
PAPER_BYTES = 62.65e9  # Table 28


def run_corpus_bench(
    texts: list[str],
    sentences: Path | None,
    pii: Path | None,
    benchmarks: list[str],
    megabytes: float,
    out: Path | None,
) -> dict[str, Any]:
    """Run on the given files and otherwise on the sample, print tables, and write bench.json to ``out``.

    Args:
        sentences, pii: see ``read_gold`` and ``read_labelled``.
        megabytes: UTF-8 text for the whole stage; the other sections use a part of it.

    Raises:
        BadInput: an input cannot be used, or ``megabytes`` is not above 0.
    """
    from corpus.decontamination.benchmarks import find_benchmarks

    if megabytes <= 0:
        raise BadInput(f"--megabytes {megabytes:g}: must be above 0")
    options = {"texts": texts, "sentences": sentences, "pii": pii, "benchmarks": benchmarks}
    material = {kind: FILES if value else SAMPLE for kind, value in options.items()}
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        scratch = Path(folder)
        unpack(scratch / "sample")
        documents = list(read_texts(texts or [str(scratch / "sample" / "corpus")], megabytes))
        if not documents:
            raise BadInput(f"{', '.join(texts)}: no documents")
        gold = read_gold(sentences) if sentences else gold_sentences()
        labelled = read_labelled(pii) if pii else labelled_documents()
        items = find_benchmarks(benchmarks or [str(scratch / "sample" / "klue")])
        results: dict[str, Any] = {
            "material": material,
            "splitting": bench_splitting(documents, gold),
            "personal_data": bench_pii(documents, labelled),
            "decontamination": bench_decontamination(documents, items),
            "whole_stage": bench_whole_stage(documents, items, scratch),
            "rounds": ROUNDS,
            "versions": versions_of((*SPLITTERS.values(), "ko-pii", "rank-bm25")),
        }
    console = PlainConsole()
    for table in _tables(results):
        print_table(table, console)
    console.print(f"CPU time of one core, medians of {ROUNDS} rounds in turns.")
    return write_figures(results, out / "bench.json" if out else None)


# --- sentences


def bench_splitting(documents: list[str], gold: list[list[str]]) -> dict[str, Any]:
    """Scores on ``gold`` and MB/s on ``documents``; kiwi and kss, hundreds of times slower, on a small part of them."""
    from corpus.sentences.split import split_sentences

    fast: dict[str, Split] = {"ours": split_sentences, PLAIN_RULE: split_at_stops}
    slow = load_splitters()
    rows: dict[str, Any] = {name: score_splits(gold, split)._asdict() for name, split in (fast | slow).items()}
    beginnings = [text[:BEGINNING_CHARS] for text in documents]
    few = beginnings[:: max(1, round(byte_count(beginnings) / (SLOW_MEGABYTES * 1e6)))]
    much = spread(documents, FAST_MEGABYTES)
    for name, speed in _speeds(fast, much).items():
        rows[name]["mb_per_s"] = speed
    for name, split in slow.items():
        speeds = _speeds({"ours": split_sentences, name: split}, few)
        rows[name] |= {"mb_per_s": speeds[name], "ours_times_faster": speeds["ours"] / speeds[name]}
    sizes = {"timed_megabytes": byte_count(much) / 1e6, "timed_megabytes_slow": byte_count(few) / 1e6}
    return {"rows": rows, "gold_sentences": sum(map(len, gold)), **sizes}


def _speeds(splitters: dict[str, Split], texts: list[str]) -> dict[str, float]:
    """MB/s, UTF-8."""
    works = {name: lambda split=split: [split(text) for text in texts] for name, split in splitters.items()}
    return {name: byte_count(texts) / 1e6 / seconds for name, seconds in time_in_turns(works).items()}


# --- personal data


def bench_pii(documents: list[str], labelled: Labelled) -> dict[str, Any]:
    """Scores on ``labelled`` of ours, and of ko-pii if installed; speed of ours on ``documents``."""
    from corpus.pii.detect import find_pii
    from corpus.sentences.split import split_sentences

    detectors: dict[str, Detect] = {"ours": lambda text: [(span.start, span.end, span.type) for span in find_pii(text)]}
    sentences = [sentence for text in spread(documents, QUERY_MEGABYTES) for sentence in split_sentences(text)]
    seconds = time_in_turns({"ours": lambda: [find_pii(sentence) for sentence in sentences]})["ours"]
    megabytes = byte_count(sentences) / 1e6
    return {
        "rows": {name: score_spans(labelled, detect) for name, detect in (detectors | load_detectors()).items()},
        "texts": len(labelled),
        "values": sum(len(spans) for _, spans in labelled),
        "without": sum(not spans for _, spans in labelled),
        "megabytes": megabytes,
        "mb_per_s": megabytes / seconds,
    }


# --- decontamination


def bench_decontamination(documents: list[str], benchmarks: list[Path]) -> dict[str, Any]:
    """Sentences per second: both with at most ``MAX_ITEMS`` benchmark sentences, and ours with all.

    rank_bm25 scores every benchmark sentence for every query, so it gets few queries, already cut into n-grams.
    """
    from corpus.decontamination.benchmarks import read_benchmarks
    from corpus.decontamination.index import build_index
    from corpus.decontamination.match_rule import MatchRule
    from corpus.sentences.folding import fold
    from corpus.sentences.split import split_sentences

    rule = MatchRule(min_item_words=1)  # folded below, so that each is one word
    folded = dict.fromkeys(fold(text.text) for text in read_benchmarks(benchmarks))
    items = [text for text in folded if len(text) >= rule.min_item_chars]
    few = _evenly(items, MAX_ITEMS)
    queries = [sentence for text in spread(documents, QUERY_MEGABYTES) for sentence in split_sentences(text)]
    batches = [queries[first : first + BATCH] for first in range(0, len(queries), BATCH)]
    index, everything = (build_index(listed, rule)[0] for listed in (few, items))
    scores = load_bm25(few, rule.ngram)
    long_enough = [text for query in queries if len(text := fold(query)) >= rule.min_item_chars]
    asked = [list(dict.fromkeys(cut_ngrams(query, rule.ngram))) for query in _evenly(long_enough, BRUTE_QUERIES)]
    seconds = time_in_turns(
        {
            "ours": lambda: list(map(index.find, batches)),
            "ours_all": lambda: list(map(everything.find, batches)),
            "rank_bm25": lambda: list(map(scores, asked)),
        }
    )
    ours, theirs = len(queries) / seconds["ours"], len(asked) / seconds["rank_bm25"]
    return {
        "rows": {
            "ours": {"items": len(few), "per_s": ours, "times": ours / theirs},
            "rank_bm25": {"items": len(few), "per_s": theirs, "times": 1.0},
            "ours, all": {"items": len(items), "per_s": len(queries) / seconds["ours_all"]},
        },
        "queries": len(queries),
        "rank_bm25_queries": len(asked),
    }


def _evenly(texts: Sequence[str], limit: int) -> list[str]:
    """At most ``limit`` of the texts, evenly spaced."""
    count = min(limit, len(texts))
    return [texts[number * len(texts) // count] for number in range(count)]


# --- the whole stage


def bench_whole_stage(documents: list[str], benchmarks: list[Path], scratch: Path) -> dict[str, Any]:
    """Time the stage over ``documents`` with all steps and without decontamination.

    Every rate is the difference of a run over all text and a run over one document. This removes the start of Python
    and the index of benchmark sentences, a fixed cost ("fixed_cpu_s").
    """
    modes = {"all steps": list(map(str, benchmarks)), "without decontamination": []}
    orders: dict[str, Any] = {}
    for size, texts in (("all text", documents), ("one document", documents[:1])):
        _write_texts(scratch / size, texts)
        orders |= {f"{mode}, {size}": [str(scratch / size), files, 1] for mode, files in modes.items()}
    runs = fresh_in_turns(run_stage, orders, ROUNDS)
    in_two = run_fresh(run_stage, [str(scratch / "all text"), modes["all steps"], 2], "the stage, two workers")
    megabytes, rows = byte_count(documents) / 1e6, {}
    for mode in modes:
        once = runs[f"{mode}, one document"]["cpu_s"]
        working = max(runs[f"{mode}, all text"]["cpu_s"] - once, 1e-3)
        hours = (working / megabytes * PAPER_BYTES / 1e6 + once) / 3600
        rows[mode] = {"mb_per_s_core": megabytes / working, "fixed_cpu_s": once, "core_hours_62_gb": hours}
    return {
        "rows": rows,
        "megabytes": megabytes,
        "documents": len(documents),
        "peak_mib_one_process": runs["all steps, all text"]["peak_mib"],
        "peak_mib_worker": in_two["peak_worker_mib"],
    }


def run_stage(order: tuple[str, list[str], int]) -> dict[str, Any]:
    """In the fresh process: run the stage over a folder of texts."""
    from corpus.config import CorpusConfig, DecontaminateConfig
    from corpus.reading.inputs import find_inputs
    from corpus.run import CorpusInputs, run

    texts, benchmarks, workers = order
    config = CorpusConfig(inputs=[texts], decontaminate=DecontaminateConfig(enabled=bool(benchmarks)))
    inputs = CorpusInputs(find_inputs([texts], {}, "text"), [Path(path) for path in benchmarks])
    with TemporaryDirectory(prefix="malmoi-bench-") as out:
        run(config, inputs, Path(out), workers=workers)
    return {}


def _write_texts(folder: Path, texts: list[str]) -> None:
    """Write two files, so that each of two workers has a unit."""
    folder.mkdir()
    for number, part in enumerate((texts[::2], texts[1::2])):
        lines = (json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in part)
        if part:
            (folder / f"texts-{number}.jsonl").write_text("".join(lines), "utf-8")


# --- tables


def _tables(results: dict[str, Any]) -> list[Table]:
    material, stage = results["material"], results["whole_stage"]
    return [
        _splitting_table(results["splitting"], material["sentences"]),
        _pii_table(results["personal_data"], material["pii"], material["texts"]),
        _decontamination_table(results["decontamination"], material["texts"]),
        record_table(
            "Whole stage",
            stage["rows"],
            {
                "MB/s per core": "{mb_per_s_core:,.1f}",
                "fixed, CPU s": "{fixed_cpu_s:,.1f}",
                "62.65 GB, core-hours": "{core_hours_62_gb:,.1f}",
            },
            f"{stage['documents']:,} documents, {stage['megabytes']:.1f} MB of {material['texts']}. Peak memory: "
            f"{stage['peak_mib_one_process']:,.0f} MiB in one process, {stage['peak_mib_worker']:,.0f} MiB per "
            "worker of two.",
        ),
    ]


def _splitting_table(results: dict[str, Any], gold: str) -> Table:
    columns = {"EM": "{em:.3f}", "F1": "{f1:.3f}", "nF1": "{nf1:.3f}", "MB/s": "{mb_per_s:.3g}"}
    note = (
        f"{results['gold_sentences']:,} gold sentences of {gold}; speed on {results['timed_megabytes']:.1f} MB "
        f"(kiwi and kss {results['timed_megabytes_slow']:.2f} MB)"
    )
    rows = results["rows"] | _not_installed(SPLITTERS, results["rows"])
    return record_table("Sentence splitting", rows, columns | {"ours is faster": "{ours_times_faster:,.0f} x"}, note)


def _pii_table(results: dict[str, Any], labelled: str, texts: str) -> Table:
    rows = {name: row | {"alarms": f"{row['flagged']}/{results['without']}"} for name, row in results["rows"].items()}
    columns = {"precision": "{precision:.3f}", "recall": "{recall:.3f}", "F1": "{f1:.3f}", "false alarms": "{alarms}"}
    note = (
        f"{results['values']} values in {results['texts']:,} texts ({results['without']:,} without any) of {labelled}. "
        f"Speed of ours on {results['megabytes']:.1f} MB of {texts}: {results['mb_per_s']:.3g} MB/s."
    )
    return record_table("Personal data", rows | _not_installed(DETECTORS, rows), columns, note)


def _decontamination_table(results: dict[str, Any], texts: str) -> Table:
    columns = {"benchmark sentences": "{items:,}", "sentences/s": "{per_s:,.0f}", "times": "{times:,.0f}"}
    note = f"{results['queries']:,} sentences of {texts} as queries (rank_bm25 {results['rank_bm25_queries']})"
    return record_table("Decontamination", results["rows"], columns, note)


def _not_installed(names: Iterable[str], rows: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{name}, not installed": {} for name in names if name not in rows}
