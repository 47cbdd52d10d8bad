"""``python -m benchmarks ablations``: the paper's Tables 33 to 35 at a size for two cores, with intervals.

Every vocabulary x text (as it is, or pseudonymized) x seed is a model, trained with the same operations and fine-tuned
on KLUE (``cells``). Beside the paper's tables stands what it could not show: what the models remember of personal data
planted in the text (``exposure``), and how well they guess words of other text (``bits``).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.ablations.bits import cut_windows, measure_bits
from benchmarks.ablations.cells import READ, TEXTS, UNREAD, Base, Cell, read_vocabularies
from benchmarks.ablations.exposure import measure_exposure
from benchmarks.ablations.plant import count_planted, draw_others, plant, read_canaries
from benchmarks.ablations.reader import MaskedModel
from benchmarks.ablations.results import COUNT_NAME, MEASURED_NAME, SETTINGS_NAME, show_results
from benchmarks.timing import versions_of
from corpus.documents.accelerator import find_device
from corpus.documents.errors import BadInput
from corpus.documents.locks import hold_lock
from corpus.documents.shards import read_documents, shard_paths
from corpus.reading.inputs import find_inputs
from finetune.registry import missing_files
from finetune.task_names import full_name
from launch.errors import LaunchError
from launch.manifest import fingerprints, read_manifest, write_json
from launch.recipe import SAMPLE, Recipe
from launch.report.results import read_json
from launch.sample.unpack import unpack
from launch.stage_inputs import raw_inputs

log = logging.getLogger(__name__)

SEED = 0  # of what is planted and measured, for all cells
SAMPLE_READ, SAMPLE_UNREAD = ("news.jsonl", "encyclopedia.jsonl", "dialogue.parquet"), ("reviews.jsonl.gz",)


class Chosen(NamedTuple):
    """What of the experiment this command does; all else in the folder stays."""

    vocabularies: Sequence[str]
    texts: Sequence[str]
    seeds: Sequence[int]
    tasks: Sequence[str]  # KLUE's; all if empty


class Measures(NamedTuple):
    """How much: ``canaries`` of each type and rate, ``others`` each is ranked among, ``windows`` of held-out text."""

    canaries: int
    others: int
    windows: int


def run_ablations(base: Base, chosen: Chosen, measures: Measures) -> dict[str, Any]:
    """Make every chosen cell that is not complete, then tables of all cells in ``base.out``.

    Args:
        base: where neither it nor its recipe names raw text, that is the embedded sample's, with its KLUE files.

    Returns:
        what results.json holds (``results``).

    Raises:
        BadInput, LaunchError: something cannot be used, ``out`` holds another experiment, or a cell failed; what is
            complete stays.
    """
    _check(chosen, measures)
    base = _with_sample(base)
    recipe = base.load()
    vocabularies = read_vocabularies(chosen.vocabularies, recipe)
    tasks = _tasks(base, recipe, chosen.tasks)
    _settle(base, recipe, measures)
    with hold_lock(base.out / ".text.lock", waits=True):
        _prepare_text(base, recipe, measures, chosen.texts or TEXTS)
    cells = [
        Cell(vocabulary, text, seed)
        for seed in chosen.seeds
        for vocabulary in vocabularies
        for text in chosen.texts or TEXTS
    ]
    failures = [failure for cell in cells if (failure := _do(cell, base, measures, tasks))]
    results = show_results(base.out, base.klue)
    if failures:
        raise LaunchError("\n".join(failures))
    return results


def _check(chosen: Chosen, measures: Measures) -> None:
    for name, amount in zip(("--canaries", "--others", "--windows"), measures, strict=True):
        if amount < 1:
            raise BadInput(f"{name} must be above 0")
    if len(set(chosen.seeds)) < len(chosen.seeds) or min(chosen.seeds, default=-1) < 0:
        raise BadInput("--seed: give each seed once, 0 or more")
    if unknown := sorted(set(chosen.texts) - set(TEXTS)):
        raise BadInput(f"--text {unknown[0]}: there are {', '.join(TEXTS)}")


def _with_sample(base: Base) -> Base:
    """Where no text is named that of the embedded sample, one source of it unread; where no KLUE files are, those."""
    recipe, sample = base.load(), base.out / "sample"
    klue, has_text = base.klue or recipe.finetune.data, recipe.corpus.inputs or recipe.corpus.sources
    if has_text and klue != SAMPLE:
        return replace(base, klue=klue)
    if not (sample / "klue").is_dir():
        unpack(sample)
    klue = str(sample / "klue") if klue in (None, SAMPLE) else klue
    if has_text:
        return replace(base, klue=klue)
    read, unread = (tuple(str(sample / "corpus" / file) for file in files) for files in (SAMPLE_READ, SAMPLE_UNREAD))
    return replace(base, klue=klue, inputs={READ: read, UNREAD: base.inputs[UNREAD] or unread})


def _tasks(base: Base, recipe: Recipe, names: Sequence[str]) -> tuple[str, ...]:
    """The tasks to fine-tune, none without KLUE files; BadInput where files of them are missing."""
    tasks = tuple(full_name(name) for name in names) or recipe.finetune.tasks
    if base.klue is None:
        if names:
            raise BadInput(f"--task {names[0]}: there are no KLUE files; give their folder with --klue")
        log.warning("no --klue: models are compared by what they remember and by held-out text alone")
        return ()
    wanted = recipe.finetune.model_copy(update={"tasks": tasks})
    if missing := missing_files(wanted, Path(base.klue)):
        raise BadInput(
            f"{base.klue}: missing {', '.join(missing)}; give the KLUE files with --klue, or choose with --task"
        )
    return tasks


def _settle(base: Base, recipe: Recipe, measures: Measures) -> None:
    """Write down what all cells of the folder share; BadInput where it was something else."""
    given = [*raw_inputs(recipe), *find_inputs(base.inputs[UNREAD], {}, recipe.corpus.text_field)]
    prints = fingerprints([item.path for item in given if isinstance(item.path, Path)])
    now = {
        "operations": base.operations,
        "measures": measures._asdict(),
        "text": sorted(identify() for identify in prints.values()),
        "pretrain": recipe.pretrain.identity(),
        "tokenizer": recipe.tokenizer.model_dump(mode="json"),
        "finetune": recipe.finetune.model_dump(mode="json", include={"overrides", "max_train_examples", "protocol"}),
    }
    path = base.out / SETTINGS_NAME
    if not path.is_file():
        base.out.mkdir(parents=True, exist_ok=True)
        write_json(path, now)
    found = read_json(path)
    if other := [key for key, value in now.items() if found.get(key) != json.loads(json.dumps(value))]:
        raise BadInput(
            f"{base.out}: its cells have another setting of {', '.join(other)} ({path}); choose another --out"
        )


def _prepare_text(base: Base, recipe: Recipe, measures: Measures, texts: Sequence[str]) -> None:
    """Plant, clean all texts, and count what is left of what was planted."""
    if not (base.out / "text").is_dir():
        counts = plant(recipe.corpus, measures.canaries, SEED, base.out / "text")
        log.info("planted %(sentences)d sentences about %(canaries)d values in %(documents)d documents", counts)
    for text in (*texts, READ, *([UNREAD] if base.inputs[UNREAD] else [])):
        corpus = base.corpus(text)
        path = corpus.parent / COUNT_NAME
        if text in TEXTS and not path.is_file():
            write_json(path, count_planted(read_canaries(base.out / "text"), corpus))


def _do(cell: Cell, base: Base, measures: Measures, tasks: Sequence[str]) -> str | None:
    """Make what the cell lacks; returns a sentence where that failed."""
    try:
        made = base.folder_of_vocabulary(cell)
        made.mkdir(parents=True, exist_ok=True)
        with hold_lock(made / ".vocabulary.lock", waits=True):
            base.vocabulary(cell)
        run = base.folder_of(cell)
        run.mkdir(parents=True, exist_ok=True)
        with hold_lock(run / ".cell.lock") as is_ours:
            if not is_ours:
                log.info("%s: another command is at work on it", cell.name)
                return None
            log.info("%s", cell.name)
            base.train(cell)
            if not (run / MEASURED_NAME).is_file():
                write_json(run / MEASURED_NAME, _measure(cell, base, measures))
            if tasks:
                base.finetune(cell, tasks)
    except (BadInput, LaunchError) as error:
        log.warning("%s: %s", cell.name, error)
        return f"{cell.name}: {error}"
    return None


def _measure(cell: Cell, base: Base, measures: Measures) -> dict[str, Any]:
    """What measured.json holds: the cell, what it was trained with, its exposures and bits."""
    recipe, run = base.recipe_of(cell), base.folder_of(cell)
    log.info("%s: planted data and held-out text", cell.name)
    model = MaskedModel(run / "model", find_device(recipe.pretrain.engine.device, "pretrain.engine.device"))
    canaries = read_canaries(base.out / "text")
    bits = {}
    for text in (READ, UNREAD):
        corpus = base.out / "corpora" / text / "corpus"
        if corpus.is_dir():
            documents = (document for shard in shard_paths(corpus / "documents") for document in read_documents(shard))
            # a piece has one character or more, [CLS] and [SEP] none
            windows = cut_windows(documents, recipe.pretrain.rows.sequence_length - 2, measures.windows)
            bits[text] = measure_bits(model, model.tokenizer, windows, model.longest)
    return {
        "vocabulary": cell.vocabulary.name,
        "text": cell.text,
        "seed": cell.seed,
        "trained": _trained(recipe, run),
        "exposure": measure_exposure(model, canaries, draw_others(canaries, measures.others, SEED)),
        "bits": bits,
    }


def _trained(recipe: Recipe, run: Path) -> dict[str, Any]:
    """Figures of the training, for the record; characters without white space, about."""
    result, fit = read_json(run / "pretrain" / "result.json"), read_json(run / "tokenizer" / "statistics.json")["fit"]
    tokens = result["steps"] * recipe.pretrain.global_batch * recipe.pretrain.rows.sequence_length
    return {
        "entries": fit["vocab_size"],
        "parameters": result["parameters"],
        "steps": result["steps"],
        "tokens": tokens,
        "characters": round(tokens / fit["tokens_per_character"]),
        "seconds": (read_manifest(run / "pretrain") or {}).get("seconds"),
        "versions": versions_of(("malmoi", "torch", "transformers")),
    }
