"""``malmoi bench finetune``: conversion, an epoch and prediction beside an implementation in the published manner.

Same examples, same first weights, one thread, sides in turns in one process, CPU time. Without options it runs on the
embedded sample, so anyone can repeat it; ratios carry over, absolute figures do not. The model is invented and small: a
larger one spends a greater share in padding and so gains more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import BertTokenizer, BertTokenizerLegacy, RobertaConfig, RobertaModel
from transformers.utils.logging import disable_progress_bar

from corpus.documents.errors import BadInput
from finetune.data.files import find_file
from finetune.data.split import sample
from finetune.encoder import load_tokenizer
from finetune.examples import Example, Row
from finetune.registry import TASKS
from finetune.task import Task
from finetune.tasks.ner.metrics import score as score_ner
from finetune.train.predict import predict
from finetune.train.trainer import order_by_length, seed_everything, train
from launch.bench.material import GIVEN, SAMPLE
from launch.bench.rivals import CONVERTERS, convert_plainly, predict_plainly, train_plainly
from launch.bench.timing import time_in_turns, versions_of, write_figures
from launch.console import PlainConsole, figures, print_table
from launch.sample.unpack import unpack

log = logging.getLogger(__name__)

TASKS_TIMED = ("klue-ner", "klue-dp", "klue-sts", "klue-nli")
OURS, THEIRS = "malmoi", "published manner"
METRIC_SENTENCES = 5_000
SEED = 1
WARM_UP = 8  # examples that are converted before the clock starts, on both sides


class Measured(NamedTuple):
    """CPU seconds of one side."""

    convert: float
    epoch: float
    predict: float


def run_finetune_bench(
    klue: Path | None, vocabulary: Path | None, tasks: Sequence[str], most: int | None, rounds: int, out: Path | None
) -> dict[str, Any]:
    """Measure, print tables, and write the figures as JSON to ``out`` if given.

    Args:
        klue: folder laid out like the KLUE repository, whose dev files are used; None: the embedded sample.
        vocabulary: a WordPiece ``vocab.txt``; None: one learned from the examples.
        tasks: ``TASKS_TIMED`` where there are none.
        most: examples of a task, drawn by seed; None: all.

    Returns:
        "tasks": of each task examples, seconds of both sides, ratios, slots a token; "metric"; "versions".

    Raises:
        BadInput: an option or a file cannot be used.
    """
    unknown = sorted(set(tasks) - set(CONVERTERS))
    if unknown or rounds < 1 or (most is not None and most < 1):
        raise BadInput(f"--task takes {', '.join(CONVERTERS)}; --rounds and --examples must be at least 1")
    names = tuple(tasks) or TASKS_TIMED
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with TemporaryDirectory(prefix="malmoi-bench-") as folder:
            scratch = Path(folder)
            files = klue or _sample(scratch)
            examples = {name: sample(_read(TASKS[name], files), most, SEED) for name in names}
            encoder = make_encoder(vocabulary or learn_vocabulary(examples, scratch / "vocab.txt"), scratch / "encoder")
            found = {}
            for name in names:
                log.info("%s: %d examples", name, len(examples[name]))
                found[name] = measure_task(TASKS[name], examples[name], encoder, rounds)
            metric = measure_metric(examples["klue-ner"]) if "klue-ner" in names else None
    finally:
        torch.set_num_threads(threads)
    results = {
        "tasks": found,
        "metric": metric,
        "rounds": rounds,
        "versions": versions_of(("torch", "transformers", "tokenizers", "seqeval")),
        "material": SAMPLE if klue is None else GIVEN,
    }
    _print_results(results)
    return write_figures(results, out)


def _sample(folder: Path) -> Path:
    unpack(folder)
    return folder / "klue"


def _read(task: Task, klue: Path) -> list[Example]:
    path = find_file(klue, task.files.dev)
    if path is None:
        raise BadInput(f"{klue}: {task.files.dev} (or .zst) is missing; add it, or name the tasks that are there")
    return task.read(path)


def learn_vocabulary(examples: dict[str, list[Example]], target: Path) -> Path:
    """A small cased WordPiece vocabulary of the examples' texts."""
    from tokenizers import BertWordPieceTokenizer

    inputs = [value for listed in examples.values() for example in listed for value in example.inputs.values()]
    texts = [value if isinstance(value, str) else " ".join(map(str, value)) for value in inputs]
    tokenizer = BertWordPieceTokenizer(lowercase=False, strip_accents=False)
    tokenizer.train_from_iterator(texts, vocab_size=8_000, min_frequency=2, show_progress=False)
    pieces = sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    target.write_text("".join(piece + "\n" for piece, _ in pieces), "utf-8")
    return target


def make_encoder(vocabulary: Path, folder: Path) -> Path:
    """An invented RoBERTa with BERT-style inputs, 2 layers x 256, and its tokenizer."""
    tokenizer = BertTokenizer(vocab=str(vocabulary), do_lower_case=False, strip_accents=False)
    disable_progress_bar()
    torch.manual_seed(SEED)
    config = RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=1_024,
        max_position_embeddings=514, type_vocab_size=1, pad_token_id=int(tokenizer.pad_token_id),
    )  # fmt: skip
    RobertaModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "vocab.txt").write_text(vocabulary.read_text("utf-8"), "utf-8")
    return folder


def measure_task(task: Task, examples: Sequence[Example], encoder: Path, rounds: int) -> dict[str, Any]:
    """Both sides in turns; medians over the rounds."""
    runs: dict[str, list[Measured]] = {THEIRS: [], OURS: []}
    for _ in range(rounds):
        runs[THEIRS].append(_time_theirs(task, examples, encoder))
        runs[OURS].append(_time_ours(task, examples, encoder))
    sides = {side: Measured(*map(median, zip(*times, strict=True))) for side, times in runs.items()}
    ours, theirs = sides[OURS], sides[THEIRS]
    features = task.featurize(examples, load_tokenizer(str(encoder)), task.defaults.max_tokens, True)
    lengths_N = np.array([len(feature["input_ids"]) for feature in features])
    return {
        "examples": len(examples),
        "seconds": {side: times._asdict() for side, times in sides.items()},
        "times_faster": {name: getattr(theirs, name) / getattr(ours, name) for name in Measured._fields},
        "times_faster_convert_and_epoch": (theirs.convert + theirs.epoch) / (ours.convert + ours.epoch),
        "slots_per_token": {
            OURS: slots_per_token(lengths_N, task.defaults.batch_size),
            THEIRS: task.defaults.max_tokens * len(lengths_N) / int(lengths_N.sum()),
        },
    }


def slots_per_token(lengths_N: Any, batch_size: int) -> float:
    """Positions of the batches of one epoch, padding included, for each real token."""
    order = order_by_length(lengths_N, batch_size, np.random.default_rng(SEED))
    batches = [lengths_N[order[i : i + batch_size]] for i in range(0, len(order), batch_size)]
    return float(sum(len(batch) * batch.max() for batch in batches) / lengths_N.sum())


def _time_ours(task: Task, examples: Sequence[Example], encoder: Path) -> Measured:
    tokenizer, settings = load_tokenizer(str(encoder)), replace(task.defaults, epochs=1)
    pad_id = int(tokenizer.pad_token_id)
    task.featurize(examples[:WARM_UP], tokenizer, settings.max_tokens, True)
    features, convert = _timed(lambda: task.featurize(examples, tokenizer, settings.max_tokens, True))
    seed = seed_everything(SEED, task.name)
    model = task.model(str(encoder), tokenizer)
    _, epoch = _timed(lambda: train(task, model, features, settings, seed, pad_id))
    _, prediction = _timed(lambda: predict(task, model, features, pad_id))
    return Measured(convert, epoch, prediction)


def _time_theirs(task: Task, examples: Sequence[Example], encoder: Path) -> Measured:
    slow = BertTokenizerLegacy(str(encoder / "vocab.txt"), do_lower_case=False)
    fast, settings = load_tokenizer(str(encoder)), task.defaults
    pad_id = int(fast.pad_token_id)
    convert_plainly(task.name, examples[:WARM_UP], slow, settings.max_tokens)
    _, convert = _timed(lambda: convert_plainly(task.name, examples, slow, settings.max_tokens))
    features = task.featurize(examples, fast, settings.max_tokens, True)
    seed = seed_everything(SEED, task.name)
    model = task.model(str(encoder), fast)
    _, epoch = _timed(lambda: train_plainly(task, model, features, settings, seed, pad_id))
    _, prediction = _timed(lambda: predict_plainly(task, model, features, settings, pad_id))
    return Measured(convert, epoch, prediction)


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = process_time()
    return work(), max(process_time() - start, 1e-6)


def measure_metric(examples: Sequence[Example]) -> dict[str, Any]:
    """All scores of KLUE-NER on ``METRIC_SENTENCES`` sentences, beside seqeval's strict entity F1 alone."""
    golds = [examples[i % len(examples)].gold for i in range(METRIC_SENTENCES)]
    guesses = [[*gold[1:], "O"] if i % 5 == 0 else gold for i, gold in enumerate(golds)]
    rows = [Row(str(i), gold, guess) for i, (gold, guess) in enumerate(zip(golds, guesses, strict=True))]
    works: dict[str, Callable[[], object]] = {OURS: lambda: score_ner(rows)}
    if versions_of(["seqeval"])["seqeval"]:
        from seqeval.metrics import f1_score
        from seqeval.scheme import IOB2

        works["seqeval"] = lambda: f1_score(golds, guesses, average="macro", mode="strict", scheme=IOB2)
    return {"sentences": len(rows), "seconds": time_in_turns(works, 1)}


def _print_results(results: dict[str, Any]) -> None:
    """The table of tasks, then the metric."""
    rows = []
    for name, row in results["tasks"].items():
        times = [*row["times_faster"].values(), row["times_faster_convert_and_epoch"]]
        slots = (f"{value:.2f}" for value in row["slots_per_token"].values())
        rows.append([name, f"{row['examples']:,}", *(f"{value:.1f} x" for value in times), *slots])
    note = (
        f"{results['material']}; RoBERTa of 2 layers x 256, one thread, CPU time, medians of {results['rounds']} "
        "rounds. Both: conversion and epoch. Slots: positions of our batches, padding included, for each real token; "
        "fixed: the same of the other side."
    )
    heads = ("task", "examples", "convert", "epoch", "predict", "both", "slots", "fixed")
    console = PlainConsole()
    print_table(figures("Finetune beside the published manner", heads, rows, note), console)
    if results["metric"]:
        found = results["metric"]
        seconds = ", ".join(f"{side} {value:.3f} s" for side, value in found["seconds"].items())
        console.print(f"Scores of KLUE-NER, {found['sentences']:,} sentences: {seconds}")
