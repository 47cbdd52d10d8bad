"""``malmoi bench corpus``: the corpus stage measured beside named baselines on the same input in one run.

Without options it runs on the embedded sample, so anyone can repeat it; what was invented is said to be. Ratios carry
over to other machines, absolute figures do not.
"""

from __future__ import annotations

import json
import platform
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from corpus.documents.errors import BadInput
from corpus.documents.whole_files import write_whole
from launch.bench.decontamination import bench_decontamination
from launch.bench.material import gather_material
from launch.bench.personal_data import bench_personal_data
from launch.bench.rounds import ROUNDS
from launch.bench.splitting import bench_splitting
from launch.bench.tables import print_results
from launch.bench.whole_stage import bench_whole_stage, compare_with_naive
from launch.console import PlainConsole


def run_corpus_bench(
    texts: list[str],
    sentences: Path | None,
    pii: Path | None,
    benchmarks: list[str],
    megabytes: float,
    json_path: Path | None,
) -> dict[str, Any]:
    """Measure, print tables, and write the figures to ``json_path`` if given.

    Args:
        texts: files, folders or globs of raw text; empty for the embedded sample, as all that follows.
        sentences: folder of gold sentences: .txt, a sentence a line, a blank line between documents.
        pii: JSON lines of ``text`` and ``spans``.
        benchmarks: folders or files of benchmark sentences.
        megabytes: text taken for the whole stage, UTF-8; the sections before it take a part of that.

    Returns:
        "material", "splitting", "personal_data", "decontamination", "whole_stage", "naive", "rounds", "machine".

    Raises:
        BadInput: an input cannot be used, or ``megabytes`` is not above 0.
    """
    if megabytes <= 0:
        raise BadInput(f"--megabytes {megabytes:g}: nothing to measure; give a number above 0")
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        scratch = Path(folder)
        (scratch / "sample").mkdir()
        material = gather_material(texts, sentences, pii, benchmarks, megabytes, scratch / "sample")
        if not material.documents:
            raise BadInput(f"no document in {', '.join(texts)}; name text files with records in them")
        splitting = bench_splitting(material.documents, material.gold)
        personal_data = bench_personal_data(material.documents, material.labelled)
        decontamination = bench_decontamination(material.documents, material.benchmarks)
        whole_stage = bench_whole_stage(material.documents, material.benchmarks, scratch)
    results = {
        "material": material.named,
        "splitting": splitting,
        "personal_data": personal_data,
        "decontamination": decontamination,
        "whole_stage": whole_stage,
        "naive": compare_with_naive(whole_stage, splitting, personal_data, decontamination),
        "rounds": ROUNDS,
        "machine": {"python": platform.python_version(), "architecture": platform.machine()},
    }
    print_results(results, PlainConsole())
    if json_path:
        write_whole(json_path, json.dumps(results, ensure_ascii=False, indent=2))
    return results
