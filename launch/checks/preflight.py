"""Checks before a run starts: a misspelt name must not cost a pretraining.

Settings, names, sizes, and everything that the finetune stage checks: its files, encoders and hyperparameters. The
other stages check content. ``malmoi run`` refuses to start if a problem is found; ``--dry-run`` lists the same.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from corpus.decontamination.benchmarks import find_benchmarks
from corpus.documents.accelerator import find_device, has_nvidia_devices
from corpus.pii.hide import load_name_model
from corpus.reading.read import check_first_records
from finetune.config import FRESH
from finetune.data.files import find_file
from finetune.data.hub import find_copy
from finetune.registry import klue_tasks
from launch import manifest, stage_inputs
from launch.checks.estimate import Machine, estimate, planned_tokens
from launch.errors import LaunchError, error_message, is_user_error, missing_modules, require
from launch.executors.mapper import check_engine
from launch.manifest import Head
from launch.numbers import duration
from launch.pipeline import Stage, can_continue, expected_head, is_done, require_stage, trains_tokenizer
from launch.recipe import OWN_MODEL, SAMPLE, SEARCH_FOLDER, Recipe
from launch.stage_inputs import NO_KLUE_FILES, NO_TEXT, custom_files, custom_texts, finetune_models, raw_inputs
from pretrain.checkpoint.find_checkpoint import locate_checkpoint
from pretrain.engine.memory import GIB
from pretrain.model.sizes import count_parameters

MAX_CPU_SECONDS = 365 * 86_400
NO_ENCODER = "no such folder, and the Hub cannot be reached; go online, or name a folder"
Check = Callable[[], object]


def find_problems(
    verb: str, stages: Sequence[Stage], recipe: Recipe, run: Path, machine: Machine | None, processes: int = 1
) -> list[str]:
    """Sentences about what would stop the stages of a verb, each with what to do; empty if they can start.

    Args:
        machine: this one if it runs the stages; None if unknown other machines do.
        processes: number of pretraining processes.
    """
    if missing := missing_modules(stage.name for stage in stages):  # other checks need them, too
        return list(_run_check(lambda: require(verb, missing)))
    waiting = [stage for stage in stages if not is_done(stage, recipe, run)]
    names = {stage.name for stage in waiting}
    checks: list[Check] = [partial(_check_folders, stages, recipe, run)]
    checks += [partial(require_stage, run, name) for s in waiting for name in s.depends_on(recipe) if name not in names]
    checks += [partial(stage.user_inputs, recipe) for stage in stages]
    if names & {"corpus", "tokenizer", "tokens", "finetune"}:
        checks.append(partial(check_engine, recipe.launch))
    checks += [partial(require, key, [module]) for key, module in _optional_modules(names, recipe, processes)]
    if "corpus" in names:
        base = None if SAMPLE in recipe.corpus.inputs else run
        checks.append(lambda: check_first_records(raw_inputs(recipe, base)))
        if recipe.corpus.benchmarks is None:
            checks.append(lambda: custom_files(recipe, "dev", "test") and custom_texts(recipe))
        checks += [partial(load_name_model, recipe.corpus.pii.names)] if recipe.corpus.pii.mode != "keep" else []
        here = [name for name in stage_inputs.benchmark_names(recipe) if Path(name).exists() and not find_copy(name)]
        checks += [partial(find_benchmarks, here)] if here else []
    if "pretrain" in names and (origin := recipe.pretrain.continue_from) and not (run / "pretrain").is_dir():
        checks.append(partial(locate_checkpoint, origin))
    if machine is not None and has_nvidia_devices():
        devices = {"embed.device": recipe.embed.device, "finetune.device": recipe.finetune.device}
        devices["pretrain.engine.device"] = recipe.pretrain.engine.device
        checks += [partial(find_device, devices[key], key) for key in devices if key.partition(".")[0] in names]
    if names & {"finetune", SEARCH_FOLDER}:
        checks += _finetune_checks(recipe, run)
    if "embed" in names:
        checks.append(partial(_embed_checks, recipe))
    if SEARCH_FOLDER in names and recipe.launch.engine != "local":
        checks.append(lambda: iter(["a search runs on one machine; set launch.engine=local"]))
    if machine is not None:
        checks.append(partial(_check_resources, waiting, recipe, run, machine))
    return list(dict.fromkeys(problem for check in checks for problem in _run_check(check)))


def format_problems(name: str, problems: Sequence[str]) -> str:
    """The problems of the recipe ``name`` as an error message, one per line."""
    is_missing = all(problem in (NO_TEXT, NO_KLUE_FILES) for problem in problems)
    if len(problems) == 1 and not is_missing:
        return problems[0]
    plural, verb = ("s", "are") if len(problems) > 1 else ("", "is")
    count = f"{len(problems)} setting{plural} {verb} missing" if is_missing else f"{len(problems)} problem{plural}"
    return "\n  ".join(line.replace("\n", "\n  ") for line in (f"{name}: {count}", *problems))


def _run_check(check: Check) -> Iterator[str]:
    """The sentences that a check yields, and the message of a user error that it raises."""
    try:
        problems = check()
        if isinstance(problems, Iterator):
            yield from problems
    except Exception as error:
        if not is_user_error(error):
            raise
        yield error_message(error)


def _optional_modules(stages: Collection[str], recipe: Recipe, processes: int) -> Iterator[tuple[str, str]]:
    """Settings that need a package of an optional extra, each with the module."""
    if "tokenizer" in stages and trains_tokenizer(recipe) and recipe.tokenizer.analyser == "kiwi":
        yield "tokenizer.analyser=kiwi", "kiwipiepy"
    if "pretrain" in stages and needs_deepspeed(recipe, processes):
        yield "pretrain.engine.name=deepspeed", "deepspeed"
    settings = ("", *recipe.finetune.settings)
    if {"finetune", SEARCH_FOLDER} & set(stages) and any(recipe.finetune.with_settings(name).lora for name in settings):
        yield "finetune.lora", "peft"


def needs_deepspeed(recipe: Recipe, processes: int) -> bool:
    """Whether pretraining in this number of processes uses DeepSpeed, as ``choose_engine`` decides."""
    from pretrain.engine.start import MAX_PARAMETERS_OF_DDP

    engine = recipe.pretrain.engine
    if engine.name != "auto":
        return engine.name == "deepspeed"
    parameters = count_parameters(recipe.pretrain.model, recipe.tokenizer.vocab_size)
    return processes > 1 and parameters > MAX_PARAMETERS_OF_DDP


def _check_folders(stages: Sequence[Stage], recipe: Recipe, run: Path) -> Iterator[str]:
    """Stage folders that hold files of something else, or results of other settings or changed inputs."""
    for stage in stages:
        folder = run / stage.name
        saved_head = manifest.read_head(folder)
        if saved_head is None:
            yield from _run_check(partial(manifest.check_foreign_files, folder))
            continue
        head = expected_head(stage, recipe, run, saved_head)
        with suppress(LaunchError, ValueError, OSError, KeyError):  # missing inputs are reported by other checks
            own = {name: head.inputs[name] for name in stage.depends_on(recipe)}
            current = {name: compute() for name, compute in stage.user_inputs(recipe).items()}
            head = Head(head.stage, head.settings, own | current)
        if head.key != saved_head["key"] and not can_continue(stage, recipe, run, head):
            yield manifest.explain_difference(folder, saved_head, head)


def _finetune_checks(recipe: Recipe, run: Path) -> list[Check]:
    """The checks of the stage itself, as far as its files and encoders are here."""
    from finetune.run import checks

    config, data = recipe.finetune, recipe.finetune.data or ""
    folder = run / "sample" / "klue" if data == SAMPLE else Path(data)
    is_here = bool(data) and folder.exists() and (data == SAMPLE or find_copy(data) is None)
    places = finetune_models(recipe, run)
    own = [name for name in config.models if name.removeprefix(FRESH) == OWN_MODEL]
    absent = [name for name in config.models if name not in own and not _is_available(name.removeprefix(FRESH))]
    here = {name: place for name, place in places.items() if name not in own + absent}
    if manifest.read_manifest(run / "model") is not None:
        here |= {name: places[name] for name in own}
    made = checks(config, folder if is_here else None, here)
    for name, task in config.custom.items():
        if not all(Path(path).is_file() for path in task.files.values()):
            made.pop(name, None)  # reported with the inputs of the stage
    problems = [f"{name.removeprefix(FRESH)}: {NO_ENCODER}" for name in absent]
    problems += [NO_KLUE_FILES] if not data and klue_tasks(config) else []
    return [partial(iter, problems), *made.values()]


def _embed_checks(recipe: Recipe) -> Iterator[str]:
    """Problems with the encoder and the files of embeddings; KLUE files are read by the stage."""
    from finetune.embed.data import NOTHING_TO_SCORE, read_evaluation, read_items
    from finetune.embed.embedder import load_embedder
    from finetune.embed.retrieval import Reranker
    from finetune.embed.run import check_widths
    from finetune.encoder.loading import check_encoder, load_config

    config, encoder = recipe.embed, recipe.embed.model
    if encoder != OWN_MODEL and not _is_available(encoder):
        yield f"{encoder}: {NO_ENCODER}"
    elif encoder != OWN_MODEL:
        yield from _run_check(partial(check_encoder, encoder))
    if config.dimensions and (encoder == OWN_MODEL or Path(encoder).is_dir()):
        width = recipe.pretrain.model.hidden if encoder == OWN_MODEL else load_config(encoder).hidden_size
        yield from _run_check(partial(check_widths, config, width))
    if config.reranker:
        yield from _run_check(partial(Reranker, config.reranker, "cpu"))
    if config.negatives_by:
        yield from _run_check(partial(load_embedder, Path(config.negatives_by), "cpu"))
    if config.train:
        yield from _run_check(partial(read_items, config, None, None))
    yield from _run_check(partial(read_evaluation, config, None, None))
    if (data := recipe.finetune.data) and Path(data).is_file():
        yield from _run_check(partial(find_file, Path(data), ""))
    if not data and not config.evaluate:
        yield NOTHING_TO_SCORE


def _is_available(name: str) -> bool:
    """Whether a model is a path or in the Hub's cache, or the Hub can be reached; its client would retry for half a
    minute."""
    from huggingface_hub import constants, try_to_load_from_cache

    is_path = Path(name).exists() or name.count("/") > 1 or name.startswith((".", "/", "~"))
    if is_path or isinstance(try_to_load_from_cache(name, "config.json"), str):
        return True
    if getproxies():  # only the proxy may be able to resolve names
        return True
    try:
        socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, None)
    except OSError:
        return False
    return True


def _check_resources(waiting: Sequence[Stage], recipe: Recipe, run: Path, machine: Machine) -> Iterator[str]:
    costs = {stage.name: estimate(stage.name, recipe, machine) for stage in waiting}
    training = costs.get("pretrain")
    if training and training.seconds and machine.gpu is None and training.seconds > MAX_CPU_SECONDS:
        yield (
            f"pretraining: {planned_tokens(recipe):,} tokens would take about {duration(training.seconds)} on this "
            "processor and there is no GPU; use a machine with a GPU, or lower pretrain.steps or pretrain.global_batch"
        )
    if training and training.min_memory > machine.memory:
        yield (
            f"pretraining: weights and optimizer alone need {training.min_memory / GIB:.1f} GiB, this machine has "
            f"{machine.memory / GIB:.1f}; choose a smaller model"
        )
    needed = sum(cost.disk or 0 for cost in costs.values())
    folder = next(folder for folder in (run, *run.absolute().parents) if folder.is_dir())
    if needed > (free := shutil.disk_usage(folder).free):
        yield f"{folder}: {free / GIB:.1f} GiB free, about {needed / GIB:.1f} GiB needed; set --runs to another disk"
