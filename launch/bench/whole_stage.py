"""The whole corpus stage in fresh processes: MB/s per core, peak memory, and what a naive pipeline would take.

Every figure is a difference: the run over all text less the run over one document, which takes the start of Python and
the index of benchmark sentences out (both are paid once, whatever the size; they are given beside it). CPU time of the
process and its children counts, so that several cores cannot make a core look fast.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from launch.bench.fresh import report_measured, run_fresh
from launch.bench.rounds import ROUNDS, byte_count

PAPER_BYTES = 62.65e9  # Table 28


def bench_whole_stage(documents: list[str], benchmarks: list[Path], scratch: Path) -> dict[str, Any]:
    """Runs the stage over ``documents`` written to ``scratch``, with everything on and without decontamination."""
    sizes = {"all": documents, "one": documents[:1]}
    for name, texts in sizes.items():
        _write_texts(scratch / name, texts)
    runs: dict[tuple[str, bool], list[dict[str, float]]] = {}
    for number in range(ROUNDS):
        for name in sizes:
            for decontaminates in (True, False):
                out = scratch / f"out-{number}-{name}-{decontaminates}"
                found = _run_stage(scratch / name, benchmarks if decontaminates else [], out, workers=1)
                runs.setdefault((name, decontaminates), []).append(found)
    parallel = _run_stage(scratch / "all", benchmarks, scratch / "out-parallel", workers=2)
    megabytes = byte_count(documents) / 1e6
    result: dict[str, Any] = {
        "megabytes": megabytes,
        "documents": len(documents),
        "benchmark_files": len(benchmarks),
        "peak_mib_one_process": max(run["peak_mib"] for run in runs["all", True]),
        "peak_mib_worker": parallel["peak_worker_mib"],
    }
    for name, decontaminates in (("everything", True), ("without_decontamination", False)):
        seconds = {size: median(run["cpu_s"] for run in runs[size, decontaminates]) for size in sizes}
        working = max(seconds["all"] - seconds["one"], 1e-3)
        result[name] = {
            "mb_per_s_core": megabytes / working,
            "fixed_cpu_s": seconds["one"],
            "core_hours_62_gb": (working / megabytes * PAPER_BYTES / 1e6 + seconds["one"]) / 3600,
        }
    return result


def compare_with_naive(
    stage: dict[str, Any], splitting: dict[str, Any], pii: dict[str, Any], bm25: dict[str, Any]
) -> dict[str, Any]:
    """CPU seconds a MB of a pipeline of ready-made parts, from the rates measured in the other sections of this run.

    Its parts are Kiwi (the plain rule where it is not installed), sixteen passes of ``re``, and rank_bm25 for every
    sentence; rank_bm25's rate, measured with ``items`` benchmark sentences, is scaled to all of them by 1/N.
    """
    splitter = "kiwi" if "kiwi" in splitting["rows"] else "[.!?] + blank"
    all_items = bm25["benchmark_sentences"]
    sentences_per_mb = pii["speed"]["sentences"] / pii["speed"]["megabytes"]
    parts = {
        "splitting": 1 / splitting["rows"][splitter]["mb_per_s"],
        "personal_data": 1 / pii["speed"]["sixteen_passes_mb_per_s"],
        "decontamination": sentences_per_mb / bm25["rank_bm25_per_s"] * all_items / bm25["items"],
    }
    naive = sum(parts.values())
    rest = naive - parts["decontamination"]
    return {
        "splitter": splitter,
        "cpu_s_per_mb": parts,
        "benchmark_sentences": all_items,
        "times_faster_everything": naive * stage["everything"]["mb_per_s_core"],
        "times_faster_without_decontamination": rest * stage["without_decontamination"]["mb_per_s_core"],
        "core_hours_62_gb": naive * PAPER_BYTES / 1e6 / 3600,
    }


def _write_texts(folder: Path, texts: list[str]) -> None:
    """Two files, so that two workers have a unit each."""
    folder.mkdir()
    half = (len(texts) + 1) // 2
    for number, part in enumerate((texts[:half], texts[half:])):
        lines = (json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in part)
        if part:
            (folder / f"texts-{number}.jsonl").write_text("".join(lines), "utf-8")


def _run_stage(texts: Path, benchmarks: list[Path], out: Path, workers: int) -> dict[str, float]:
    """Figures of a fresh process that runs the stage."""
    out.mkdir()
    order = [str(texts), [str(path) for path in benchmarks], str(out), workers]
    return run_fresh("launch.bench.whole_stage", order, "the corpus stage")


def _work(order: tuple[str, list[str], str, int]) -> None:
    from corpus.config import CorpusConfig, DecontaminateConfig
    from corpus.reading.inputs import find_inputs
    from corpus.run import CorpusInputs, run

    texts, benchmarks, out, workers = order
    config = CorpusConfig(inputs=[texts], decontaminate=DecontaminateConfig(enabled=bool(benchmarks)))
    inputs = CorpusInputs(find_inputs([texts], {}, "text"), [Path(path) for path in benchmarks])
    run(config, inputs, Path(out), workers=workers)


if __name__ == "__main__":
    report_measured(_work)
