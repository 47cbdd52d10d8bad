"""Vocabularies built in fresh processes: ours step by step, and the recipe that everybody copies.

The common recipe: mecab-ko over every sentence (``MeCab().morphs`` of python-mecab-ko), morphemes set apart by spaces
in text files, ``BertWordPieceTokenizer.train`` on them. Both run with the same number of processes and threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from corpus.documents.shards import Portion, documents_of, shard_paths
from corpus.documents.units import map_units, shared_processes, unit_folder
from launch.bench.fresh import report_measured, run_fresh
from tokenizer.config import TokenizerConfig

Result = TypeVar("Result")
TEXT_NAME = "morphemes.txt"


def build(kind: str, corpus: Path, out: Path, config: TokenizerConfig, workers: int) -> dict[str, Any]:
    """Build a vocabulary of ``kind`` ("ours", "common"): vocab.txt in ``out``; seconds, memory, seconds of steps."""
    out.mkdir(parents=True)
    order = [kind, str(corpus), str(out), config.model_dump(mode="json"), workers]
    return run_fresh("launch.bench.builds", order, f"a build ({kind})", {"RAYON_NUM_THREADS": str(workers)})


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

    work = out / "work"
    types, counts = timed(
        "counting and windows", lambda: count_corpus(shard_paths(corpus / "documents"), work, workers)
    )
    parts, analysed = timed("analysis", lambda: weigh_types(types, counts["frequencies"], config, work, workers))
    learnt = timed("merges", lambda: learn(parts, counts["alphabet"], config, work))
    pieces, pruning = timed(
        "pruning", lambda: prune_pieces(read_pieces(learnt["path"]), parts, config, work, workers)
    )  # fmt: skip
    vocabulary = build_vocabulary(pieces, config)
    timed("statistics", lambda: measure_fit(vocabulary, types, parts, config, work, workers))
    write_pieces(out / "vocab.txt", vocabulary)
    names = ("documents", "eojeols", "eojeol_types")
    sizes = {name: counts[name] for name in names} | analysed | {"units": learnt["units"]}
    return {"steps": seconds, "sizes": sizes, "pruning": pruning}


def build_common(corpus: Path, out: Path, config: TokenizerConfig, workers: int) -> dict[str, Any]:
    """In-context analysis of all text, then the library's trainer."""
    from tokenizers import BertWordPieceTokenizer

    from tokenizer.building.count import divide

    start = time.perf_counter()
    portions, _ = divide(shard_paths(corpus / "documents"))
    map_units(_analyse, portions, out / "work", workers=workers, title="morphemes")
    analysed = time.perf_counter()
    library = BertWordPieceTokenizer(lowercase=False, strip_accents=False)
    library.train(
        [str(unit_folder(out / "work", number) / TEXT_NAME) for number in range(len(portions))],
        vocab_size=config.vocab_size - config.unused,
        min_frequency=config.min_frequency,
        limit_alphabet=config.alphabet,
        show_progress=False,
    )
    library.save_model(str(out))
    return {"steps": {"analysis": analysed - start, "training": time.perf_counter() - analysed}}


def _analyse(portion: Portion, scratch: Path) -> dict[str, Any]:
    from mecab import MeCab

    analyser = MeCab()
    with (scratch / TEXT_NAME).open("w", encoding="utf-8") as file:
        for document in documents_of(portion.tables()):
            file.writelines(" ".join(analyser.morphs(sentence)) + "\n" for sentence in document.sentences)
    return {}


BUILDS = {"ours": build_ours, "common": build_common}


def _work(order: tuple[str, str, str, dict[str, Any], int]) -> dict[str, Any]:
    kind, corpus, out, config, workers = order
    with shared_processes(workers):
        return BUILDS[kind](Path(corpus), Path(out), TokenizerConfig.model_validate(config), workers)


if __name__ == "__main__":
    report_measured(_work)
