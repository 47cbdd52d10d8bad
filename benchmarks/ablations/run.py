"""``python -m benchmarks ablations``: the paper's Tables 33 to 35 at a small size, with seeds and intervals.

Every vocabulary x text (plain or pseudonymized) x seed is a model, trained with equal operations and fine-tuned on KLUE
(``experiment``). In addition to the paper's tables, the ablation measures how much the models memorize of personal data
planted in the text (``exposure``), and how well they predict words of held-out text (``bits_per_character``).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.ablations.bits_per_character import cut_windows, measure_bits
from benchmarks.ablations.canaries import count_planted, draw_alternatives, plant, read_canaries
from benchmarks.ablations.experiment import SEEN, TEXTS, UNSEEN, Experiment, Variant, read_vocabularies
from benchmarks.ablations.exposure import measure_exposure
from benchmarks.ablations.masked_model import MaskedModel
from benchmarks.ablations.tables import COUNT_NAME, MEASURED_NAME, SETTINGS_NAME, show_results
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

SEED = 0  # for planted values and evaluation
SAMPLE_SEEN, SAMPLE_UNSEEN = ("news.jsonl", "encyclopedia.jsonl", "dialogue.parquet"), ("reviews.jsonl.gz",)


class Selection(NamedTuple):
    """The variants that this command trains; others in the folder stay."""

    vocabularies: Sequence[str]
    texts: Sequence[str]
    seeds: Sequence[int]
    tasks: Sequence[str]  # of KLUE; all if empty


class Amounts(NamedTuple):
    """Numbers of ``canaries`` per type and rate, of ``alternatives`` for ranking, of ``windows`` of held-out text."""

    canaries: int
    alternatives: int
    windows: int


def run_ablations(experiment: Experiment, selection: Selection, amounts: Amounts) -> dict[str, Any]:
    """Train every selected variant that is not complete, then write tables of all variants in ``experiment.out``.

    Args:
        experiment: without raw text, the embedded sample and its KLUE files are used.

    Returns:
        the content of results.json.

    Raises:
        BadInput, LaunchError: an input cannot be used, ``out`` has another experiment, or a variant failed; complete
            variants stay.
    """
    _check(selection, amounts)
    experiment = _with_sample(experiment)
    recipe = experiment.load()
    vocabularies = read_vocabularies(selection.vocabularies, recipe)
    tasks = _tasks(experiment, recipe, selection.tasks)
    _check_settings(experiment, recipe, amounts)
    with hold_lock(experiment.out / ".text.lock", waits=True):
        _prepare_text(experiment, recipe, amounts, selection.texts or TEXTS)
    variants = [
        Variant(vocabulary, text, seed)
        for seed in selection.seeds
        for vocabulary in vocabularies
        for text in selection.texts or TEXTS
    ]
    failures = [failure for variant in variants if (failure := _make_variant(variant, experiment, amounts, tasks))]
    results = show_results(experiment.out, experiment.klue)
    if failures:
        raise LaunchError("\n".join(failures))
    return results


def _check(selection: Selection, amounts: Amounts) -> None:
    for name, amount in zip(("--canaries", "--alternatives", "--windows"), amounts, strict=True):
        if amount < 1:
            raise BadInput(f"{name} must be above 0")
    if len(set(selection.seeds)) < len(selection.seeds) or min(selection.seeds, default=-1) < 0:
        raise BadInput("--seed: expected different seeds, 0 or more")
    if unknown := sorted(set(selection.texts) - set(TEXTS)):
        raise BadInput(f"--text {unknown[0]}: expected {' or '.join(TEXTS)}")


def _with_sample(experiment: Experiment) -> Experiment:
    """Use the embedded sample for missing text (one source of it unseen) and missing KLUE files."""
    recipe, sample = experiment.load(), experiment.out / "sample"
    klue, has_text = experiment.klue or recipe.finetune.data, recipe.corpus.inputs or recipe.corpus.sources
    if has_text and klue != SAMPLE:
        return replace(experiment, klue=klue)
    if not (sample / "klue").is_dir():
        unpack(sample)
    klue = str(sample / "klue") if klue in (None, SAMPLE) else klue
    if has_text:
        return replace(experiment, klue=klue)
    read, unread = (tuple(str(sample / "corpus" / file) for file in files) for files in (SAMPLE_SEEN, SAMPLE_UNSEEN))
    return replace(experiment, klue=klue, inputs={SEEN: read, UNSEEN: experiment.inputs[UNSEEN] or unread})


def _tasks(experiment: Experiment, recipe: Recipe, names: Sequence[str]) -> tuple[str, ...]:
    """The tasks to fine-tune, none without KLUE files; BadInput if files are missing."""
    tasks = tuple(full_name(name) for name in names) or recipe.finetune.tasks
    if experiment.klue is None:
        if names:
            raise BadInput(f"--task {names[0]}: needs the KLUE files; set their folder with --klue")
        log.warning("no --klue: only memorization and held-out text are measured")
        return ()
    config = recipe.finetune.model_copy(update={"tasks": tasks})
    if missing := missing_files(config, Path(experiment.klue), tasks):
        raise BadInput(f"{experiment.klue}: missing {', '.join(missing)}; set --klue, or choose tasks with --task")
    return tasks


def _check_settings(experiment: Experiment, recipe: Recipe, amounts: Amounts) -> None:
    """Record what all variants of the folder share; BadInput if it differs from the record."""
    inputs = [*raw_inputs(recipe), *find_inputs(experiment.inputs[UNSEEN], {}, recipe.corpus.text_field)]
    prints = fingerprints([item.path for item in inputs if isinstance(item.path, Path)])
    now = {
        "operations": experiment.operations,
        "amounts": amounts._asdict(),
        "text": sorted(identify() for identify in prints.values()),
        "pretrain": recipe.pretrain.identity(),
        "tokenizer": recipe.tokenizer.model_dump(mode="json"),
        "finetune": recipe.finetune.model_dump(mode="json", include={"overrides", "max_train_examples", "protocol"}),
    }
    path = experiment.out / SETTINGS_NAME
    if not path.is_file():
        experiment.out.mkdir(parents=True, exist_ok=True)
        write_json(path, now)
    recorded = read_json(path)
    if changed := [key for key, value in now.items() if recorded.get(key) != json.loads(json.dumps(value))]:
        raise BadInput(f"{experiment.out}: {', '.join(changed)} differ from {path}; choose another --out")


def _prepare_text(experiment: Experiment, recipe: Recipe, amounts: Amounts, texts: Sequence[str]) -> None:
    """Plant values, run the corpus stage for all texts, and count the planted values in the results."""
    if not (experiment.out / "text").is_dir():
        counts = plant(recipe.corpus, amounts.canaries, SEED, experiment.out / "text")
        log.info("planted %(sentences)d sentences with %(canaries)d values in %(documents)d documents", counts)
    for text in (*texts, SEEN, *([UNSEEN] if experiment.inputs[UNSEEN] else [])):
        corpus = experiment.corpus(text)
        path = corpus.parent / COUNT_NAME
        if text in TEXTS and not path.is_file():
            write_json(path, count_planted(read_canaries(experiment.out / "text"), corpus))


def _make_variant(variant: Variant, experiment: Experiment, amounts: Amounts, tasks: Sequence[str]) -> str | None:
    """Run the missing stages of a variant. Returns a message if that fails."""
    try:
        made = experiment.folder_of_vocabulary(variant)
        made.mkdir(parents=True, exist_ok=True)
        with hold_lock(made / ".vocabulary.lock", waits=True):
            experiment.vocabulary(variant)
        run = experiment.folder_of(variant)
        run.mkdir(parents=True, exist_ok=True)
        with hold_lock(run / ".variant.lock") as is_ours:
            if not is_ours:
                log.info("%s: skipped, another command works on it", variant.name)
                return None
            log.info("%s", variant.name)
            experiment.train(variant)
            if not (run / MEASURED_NAME).is_file():
                write_json(run / MEASURED_NAME, _measure_variant(variant, experiment, amounts))
            if tasks:
                experiment.finetune(variant, tasks)
    except (BadInput, LaunchError) as error:
        log.warning("%s: %s", variant.name, error)
        return f"{variant.name}: {error}"
    return None


def _measure_variant(variant: Variant, experiment: Experiment, amounts: Amounts) -> dict[str, Any]:
    """The content of measured.json: the variant, its training, exposures and bits per character."""
    recipe, run = experiment.recipe_of(variant), experiment.folder_of(variant)
    log.info("%s: measuring memorization and held-out text", variant.name)
    model = MaskedModel(run / "model", find_device(recipe.pretrain.engine.device, "pretrain.engine.device"))
    canaries = read_canaries(experiment.out / "text")
    bits = {}
    for text in (SEEN, UNSEEN):
        corpus = experiment.out / "corpora" / text / "corpus"
        if corpus.is_dir():
            documents = (document for shard in shard_paths(corpus / "documents") for document in read_documents(shard))
            # a piece has at least one character; [CLS] and [SEP] have none
            windows = cut_windows(documents, recipe.pretrain.rows.sequence_length - 2, amounts.windows)
            bits[text] = measure_bits(model, model.tokenizer, windows, model.max_length)
    return {
        "vocabulary": variant.vocabulary.name,
        "text": variant.text,
        "seed": variant.seed,
        "trained": _trained(recipe, run),
        "exposure": measure_exposure(model, canaries, draw_alternatives(canaries, amounts.alternatives, SEED)),
        "bits": bits,
    }


def _trained(recipe: Recipe, run: Path) -> dict[str, Any]:
    """Figures of the training; the number of characters (without white space) is an estimate."""
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
