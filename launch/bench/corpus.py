"""``malmoi bench corpus``: sentences, personal data, decontamination and the whole stage beside other ways, in one run.

Without options it runs on the embedded sample, so anyone can repeat it; what was invented is said to be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from corpus.documents.errors import BadInput
from launch.bench.decontamination import bench_decontamination, decontamination_table
from launch.bench.material import byte_count, gather_material, spread
from launch.bench.pii import bench_pii, pii_table
from launch.bench.rivals import PLAIN_RULE, SPLITTERS, Split, load_splitters, split_at_stops
from launch.bench.timing import ROUNDS, machine, run_fresh, time_in_turns, versions_of, write_figures
from launch.console import PlainConsole, Table, figures, print_table

FAST_MEGABYTES, SLOW_MEGABYTES = 5.0, 0.1
BEGINNING_CHARS = 2_000
PAPER_BYTES = 62.65e9  # Table 28


def run_corpus_bench(
    texts: list[str],
    sentences: Path | None,
    pii: Path | None,
    benchmarks: list[str],
    megabytes: float,
    json_path: Path | None,
) -> dict[str, Any]:
    """Measure on what is given and for the rest on the sample, print tables, write the figures to ``json_path``.

    Args:
        sentences, pii, benchmarks: see ``launch.bench.material``.
        megabytes: text taken for the whole stage, UTF-8; the sections before it take a part of that.

    Returns:
        "material", "splitting", "personal_data", "decontamination", "whole_stage", "rounds", "machine".

    Raises:
        BadInput: an input cannot be used, or ``megabytes`` is not above 0.
    """
    if megabytes <= 0:
        raise BadInput(f"--megabytes {megabytes:g}: nothing to measure; give a number above 0")
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        (Path(folder) / "sample").mkdir()
        material = gather_material(texts, sentences, pii, benchmarks, megabytes, Path(folder) / "sample")
        results: dict[str, Any] = {
            "material": material.named,
            "splitting": bench_splitting(material.documents, material.gold),
            "personal_data": bench_pii(material.documents, material.labelled),
            "decontamination": bench_decontamination(material.documents, material.benchmarks),
            "whole_stage": bench_whole_stage(material.documents, material.benchmarks, Path(folder)),
            "rounds": ROUNDS,
            "machine": machine(),
        }
    console, named = PlainConsole(), results["material"]
    for table in (
        _splitting_table(results["splitting"], named["sentences"]),
        pii_table(results["personal_data"], named["pii"], named["texts"]),
        decontamination_table(results["decontamination"], named["texts"]),
        _stage_table(results["whole_stage"], named["texts"]),
    ):
        print_table(table, console)
    console.print(f"CPU time of one core, medians of {ROUNDS} rounds taken in turns; ratios are of this run.")
    return write_figures(results, json_path)


class Scores(NamedTuple):
    """Means over the gold sentences, 0..1; white space is left out of all comparisons.

    Fields:
        em: found exactly.
        f1: best overlap F1, in characters, with a predicted sentence that overlaps no other one better.
        nf1: the same, times gold over predicted sentences of the document where it was cut into more.
        gold: gold sentences.
    """

    em: float
    f1: float
    nf1: float
    gold: int


def bench_splitting(documents: list[str], gold: list[list[str]]) -> dict[str, Any]:
    """Scores on ``gold`` and MB/s on ``documents`` of ours, the plain rule, and kiwi and kss where installed.

    Kiwi and kss are a hundred times slower: they get a small part of the text, and ours once more beside them.
    """
    from corpus.sentences.split import split_sentences

    fast: dict[str, Split] = {"ours": split_sentences, PLAIN_RULE: split_at_stops}
    slow = load_splitters()
    rows: dict[str, Any] = {name: score_splits(gold, split)._asdict() for name, split in (fast | slow).items()}
    much, few = spread(documents, FAST_MEGABYTES), _beginnings(documents, SLOW_MEGABYTES)
    for name, speed in _speeds(fast, much).items():
        rows[name]["mb_per_s"] = speed
    for name, split in slow.items():
        speeds = _speeds({"ours": split_sentences, name: split}, few)
        rows[name] |= {"mb_per_s": speeds[name], "ours_times_faster": speeds["ours"] / speeds[name]}
    return {
        "rows": rows,
        "gold_sentences": sum(map(len, gold)),
        "timed_megabytes": byte_count(much) / 1e6,
        "timed_megabytes_slow": byte_count(few) / 1e6,
        "versions": versions_of(SPLITTERS.values()),
    }


def score_splits(gold: Iterable[list[str]], split: Split) -> Scores:
    """Compare with gold documents; the input of ``split`` is the sentences of a document joined as they are."""
    exact = total = 0
    f1 = nf1 = 0.0
    for sentences in gold:
        wanted, found = _spans(sentences), _spans(split("".join(sentences)))
        best = _best_overlaps(wanted, found)
        total += len(wanted)
        exact += len(set(wanted) & set(found))
        f1 += sum(best)
        nf1 += sum(best) * min(1.0, len(wanted) / len(found))
    return Scores(exact / total, f1 / total, nf1 / total, total)


def _best_overlaps(wanted: list[tuple[int, int]], found: list[tuple[int, int]]) -> list[float]:
    """A predicted sentence counts for the gold one it overlaps best: swallowing several finds one of them."""
    best = [0.0] * len(wanted)
    first = 0
    for start, end in found:
        while first < len(wanted) and wanted[first][1] <= start:
            first += 1
        scores = []
        for number in range(first, len(wanted)):
            if wanted[number][0] >= end:
                break
            overlap = min(wanted[number][1], end) - max(wanted[number][0], start)
            scores.append((2 * overlap / (wanted[number][1] - wanted[number][0] + end - start), number))
        if scores:
            score, number = max(scores)
            best[number] = max(best[number], score)
    return best


def _spans(sentences: list[str]) -> list[tuple[int, int]]:
    """Where sentences begin and end in the text without white space."""
    ends = [0]
    for sentence in sentences:
        ends.append(ends[-1] + len("".join(sentence.split())))
    return list(pairwise(ends))


def _speeds(splitters: dict[str, Split], texts: list[str]) -> dict[str, float]:
    """MB/s, UTF-8."""
    works = {name: lambda split=split: [split(text) for text in texts] for name, split in splitters.items()}
    return {name: byte_count(texts) / 1e6 / seconds for name, seconds in time_in_turns(works).items()}


def _beginnings(documents: list[str], megabytes: float) -> list[str]:
    """Beginnings of documents spread over the whole list, about ``megabytes`` of UTF-8."""
    beginnings = [text[:BEGINNING_CHARS] for text in documents]
    return beginnings[:: max(1, round(byte_count(beginnings) / (megabytes * 1e6)))]


def bench_whole_stage(documents: list[str], benchmarks: list[Path], scratch: Path) -> dict[str, Any]:
    """The stage over ``documents``, written to ``scratch``, with everything on and without decontamination.

    Every rate is a difference: the run over all text less the run over one document, which takes the start of Python
    and the index of benchmark sentences out (paid once for any size; "fixed_cpu_s").
    """
    sizes = {"all": documents, "one": documents[:1]}
    for name, texts in sizes.items():
        _write_texts(scratch / name, texts)
    runs: dict[tuple[str, bool], list[dict[str, float]]] = {}

    def run(name: str, decontaminates: bool, workers: int, label: str) -> dict[str, float]:
        out = scratch / f"out-{label}-{name}-{decontaminates}"
        out.mkdir()
        chosen = [str(path) for path in benchmarks] if decontaminates else []
        return run_fresh(run_stage, [str(scratch / name), chosen, str(out), workers], "the corpus stage")

    for number in range(ROUNDS):
        for name in sizes:
            for decontaminates in (True, False):
                found = run(name, decontaminates, 1, str(number))
                runs.setdefault((name, decontaminates), []).append(found)
    megabytes = byte_count(documents) / 1e6
    result: dict[str, Any] = {
        "megabytes": megabytes,
        "documents": len(documents),
        "peak_mib_one_process": max(found["peak_mib"] for found in runs["all", True]),
        "peak_mib_worker": run("all", True, 2, "two")["peak_worker_mib"],
    }
    for key, decontaminates in (("everything", True), ("without_decontamination", False)):
        seconds = {name: median(found["cpu_s"] for found in runs[name, decontaminates]) for name in sizes}
        working = max(seconds["all"] - seconds["one"], 1e-3)
        result[key] = {
            "mb_per_s_core": megabytes / working,
            "fixed_cpu_s": seconds["one"],
            "core_hours_62_gb": (working / megabytes * PAPER_BYTES / 1e6 + seconds["one"]) / 3600,
        }
    return result


def run_stage(order: tuple[str, list[str], str, int]) -> dict[str, Any]:
    """In the fresh process: the stage over a folder of texts."""
    from corpus.config import CorpusConfig, DecontaminateConfig
    from corpus.reading.inputs import find_inputs
    from corpus.run import CorpusInputs, run

    texts, benchmarks, out, workers = order
    config = CorpusConfig(inputs=[texts], decontaminate=DecontaminateConfig(enabled=bool(benchmarks)))
    inputs = CorpusInputs(find_inputs([texts], {}, "text"), [Path(path) for path in benchmarks])
    run(config, inputs, Path(out), workers=workers)
    return {}


def _write_texts(folder: Path, texts: list[str]) -> None:
    """Two files, so that two workers have a unit each."""
    folder.mkdir()
    for number, part in enumerate((texts[::2], texts[1::2])):
        lines = (json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in part)
        if part:
            (folder / f"texts-{number}.jsonl").write_text("".join(lines), "utf-8")


def _splitting_table(found: dict[str, Any], gold: str) -> Table:
    rows = []
    for name, row in found["rows"].items():
        faster = f"{row['ours_times_faster']:,.0f} x" if "ours_times_faster" in row else ""
        rows.append([name, *(f"{row[score]:.3f}" for score in ("em", "f1", "nf1")), f"{row['mb_per_s']:.3g}", faster])
    rows += [[name, "not installed", "", "", "", ""] for name in SPLITTERS if name not in found["rows"]]
    note = (
        f"{found['gold_sentences']:,} gold sentences of {gold}; speed on {found['timed_megabytes']:.1f} MB "
        f"(kiwi and kss {found['timed_megabytes_slow']:.2f} MB)"
    )
    return figures("Sentence splitting", ("splitter", "EM", "F1", "nF1", "MB/s", "ours is faster"), rows, note)


def _stage_table(stage: dict[str, Any], texts: str) -> Table:
    rows = []
    for key, name in (("everything", "everything on"), ("without_decontamination", "without decontamination")):
        row = stage[key]
        rows.append([name, *(f"{row[rate]:,.1f}" for rate in ("mb_per_s_core", "fixed_cpu_s", "core_hours_62_gb"))])
    note = (
        f"{stage['documents']:,} documents, {stage['megabytes']:.1f} MB of {texts}. Peak memory: "
        f"{stage['peak_mib_one_process']:,.0f} MiB in one process, {stage['peak_mib_worker']:,.0f} MiB a worker of two."
    )
    return figures("Whole stage", ("", "MB/s a core", "once, CPU s", "62.65 GB, core-hours"), rows, note)
