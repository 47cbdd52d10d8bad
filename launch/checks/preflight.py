"""What will stop a run, found before its first stage works: a wrong name must not cost a pretraining.

Only what is cheap to know is looked at: settings, names, sizes, the configuration and tokenizer of an encoder. Content
is left to the stages, but for benchmark files that hours of other stages would come before. ``malmoi run`` refuses to
start where anything is found, ``--dry-run`` lists it.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from corpus.documents.accelerator import find_device, has_nvidia_devices
from finetune.config import FRESH
from launch import manifest
from launch.checks.estimate import GIB, Machine, estimate, planned_tokens
from launch.console import say_duration
from launch.errors import is_for_user, missing_modules, one_sentence, require
from launch.executors.mapper import check_engine
from launch.pipeline import (
    NO_KLUE_FILES,
    NO_TEXT,
    Stage,
    head_by_now,
    is_done,
    learns_pieces,
    may_go_on,
    raw_inputs,
    require_stage,
)
from launch.recipe import OWN_MODEL, SAMPLE, SEARCH_FOLDER, Recipe
from pretrain.model.sizes import count_parameters

LONG_STAGES = {"corpus", "tokenizer", "tokens", "pretrain"}
LONGEST_ON_CPU = 365 * 86_400  # seconds: nobody means to wait that long
Check = Callable[[], object]


def find_problems(
    verb: str, stages: Sequence[Stage], recipe: Recipe, run: Path, machine: Machine | None, processes: int = 1
) -> list[str]:
    """Sentences about what would stop the stages of a verb, each saying what to do; none where they can start.

    ``machine``: the one that works, which is this one; None: others, of which nothing is known.
    """
    if missing := missing_modules(stage.name for stage in stages):  # other checks need them, too
        return list(_collected(lambda: require(verb, missing)))
    waiting = [stage for stage in stages if not is_done(stage, recipe, run)]
    names = {stage.name for stage in waiting}
    checks: list[Check] = [partial(_other_recipes, stages, recipe, run)]
    checks += [
        partial(require_stage, run, name) for stage in waiting for name in stage.after(recipe) if name not in names
    ]
    checks += [partial(stage.outside, recipe) for stage in stages]
    if names & {"corpus", "tokenizer", "tokens", "finetune"}:
        checks.append(partial(check_engine, recipe.launch))
    checks += [partial(require, key, [module]) for key, module in _optional_modules(names, recipe, processes)]
    if "corpus" in names and SAMPLE not in recipe.corpus.inputs:
        checks.append(partial(raw_inputs, recipe, run))
    if machine is not None and has_nvidia_devices():
        devices = {"pretrain": recipe.pretrain.engine.device, "finetune": recipe.finetune.device}
        keys = {"pretrain": "pretrain.engine.device", "finetune": "finetune.device"}
        checks += [partial(find_device, devices[name], keys[name]) for name in sorted(names & devices.keys())]
    if "finetune" in names:
        checks.append(partial(_klue_files, recipe, reads=bool(names & LONG_STAGES)))
        checks += [partial(_encoder, name) for name in recipe.finetune.models]
    if machine is not None:
        checks.append(partial(_resources, waiting, recipe, run, machine))
    return list(dict.fromkeys(problem for check in checks for problem in _collected(check)))


def format_problems(name: str, problems: Sequence[str]) -> str:
    """The problems of the recipe ``name`` as an error message, one per line."""
    missing = all(problem in (NO_TEXT, NO_KLUE_FILES) for problem in problems)
    if len(problems) == 1 and not missing:
        return problems[0]
    plural = "s" if len(problems) > 1 else ""
    count = f"{len(problems)} setting{plural} {'are' if plural else 'is'} missing" if missing else ""
    lines = [f"{name}: {count or f'{len(problems)} problem{plural}'}", *problems]
    return "\n  ".join(line.replace("\n", "\n  ") for line in lines)


def _optional_modules(stages: Collection[str], recipe: Recipe, processes: int) -> Iterator[tuple[str, str]]:
    """Settings that need a package of an optional extra, each with the module."""
    if "corpus" in stages and recipe.corpus.splitter != "rules":
        yield f"corpus.splitter={recipe.corpus.splitter}", {"kiwi": "kiwipiepy", "kss": "kss"}[recipe.corpus.splitter]
    if "tokenizer" in stages and learns_pieces(recipe) and recipe.tokenizer.analyser == "kiwi":
        yield "tokenizer.analyser=kiwi", "kiwipiepy"
    if "pretrain" in stages and needs_deepspeed(recipe, processes):
        yield "pretrain.engine.name=deepspeed", "deepspeed"
    if "finetune" in stages and (recipe.finetune.lora or any(one.lora for one in recipe.finetune.settings.values())):
        yield "finetune.lora", "peft"
    if SEARCH_FOLDER in stages and recipe.finetune.search.method == "tpe":
        yield "finetune.search.method=tpe", "optuna"


def needs_deepspeed(recipe: Recipe, processes: int) -> bool:
    """Whether pretraining in this number of processes will use DeepSpeed, as ``choose_engine`` decides."""
    from pretrain.engine.start import MAX_PARAMETERS_OF_DDP

    engine = recipe.pretrain.engine
    if engine.name != "auto" or engine.precision == "fp16":
        return engine.name in ("auto", "deepspeed")
    parameters = count_parameters(recipe.pretrain.model, recipe.tokenizer.vocab_size)
    return processes > 1 and parameters > MAX_PARAMETERS_OF_DDP


def _collected(check: Check) -> Iterator[str]:
    """The sentences of a generator, and the message of an error for users that any check runs into."""
    try:
        found = check()
        if isinstance(found, Iterator):
            yield from found
    except Exception as error:
        if not is_for_user(error):
            raise
        yield one_sentence(error)


def _other_recipes(stages: Sequence[Stage], recipe: Recipe, run: Path) -> Iterator[str]:
    """Folders that hold the result of other settings, of stages or of those before them."""
    for stage in stages:
        if found := manifest.read_head(run / stage.name):
            head = head_by_now(stage, recipe, run, found)
            if head.key != found["key"] and not may_go_on(stage, recipe, run, head):
                yield manifest.refuse_other(run / stage.name, found, head)


def _klue_files(recipe: Recipe, *, reads: bool) -> Iterator[str]:
    """What is missing; ``reads``: what is broken, too, as hours of other stages come first."""
    from finetune.data.hub import find_copy
    from finetune.registry import klue_tasks, missing_files

    data, config = recipe.finetune.data or "", recipe.finetune
    if not data and klue_tasks(config):
        yield NO_KLUE_FILES
        return
    is_folder = bool(data) and data != SAMPLE and Path(data).is_dir() and find_copy(data) is None
    if is_folder and (missing := missing_files(config, Path(data))):
        yield (
            f"{data}: missing {', '.join(missing)} (plain or .zst); add them, or name only the tasks that are there "
            "with finetune.tasks=…"
        )
    elif reads:
        for name in config.tasks if is_folder else config.own.keys() & set(config.tasks):
            yield from _collected(partial(_read_task, name, recipe))


def _read_task(name: str, recipe: Recipe) -> None:
    from finetune.data.split import load_data
    from finetune.registry import task_of

    load_data(task_of(name, recipe.finetune), Path(recipe.finetune.data or ""), recipe.finetune)


def _encoder(name: str) -> Iterator[str]:
    plain = name.removeprefix(FRESH)
    if plain == OWN_MODEL:
        return
    from finetune.encoder import check_encoder

    if Path(plain).exists() or plain.count("/") > 1 or _is_on_hand(plain):
        check_encoder(name)
    else:
        yield f"{plain}: no such folder, and the Hub cannot be reached; go online, or name a folder"


def _is_on_hand(name: str) -> bool:
    """Whether the Hub's cache has a model, or the Hub can be asked; its client would try for half a minute."""
    from huggingface_hub import constants, try_to_load_from_cache

    if name.startswith((".", "/", "~")) or isinstance(try_to_load_from_cache(name, "config.json"), str):
        return True
    if getproxies():  # names may be known to the proxy alone
        return True
    try:
        socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, None)
    except OSError:
        return False
    return True


def _resources(waiting: Sequence[Stage], recipe: Recipe, run: Path, machine: Machine) -> Iterator[str]:
    costs = {stage.name: estimate(stage.name, recipe, machine) for stage in waiting}
    training = costs.get("pretrain")
    if training and training.seconds and machine.gpu is None and training.seconds > LONGEST_ON_CPU:
        yield (
            f"pretraining: {planned_tokens(recipe):,} tokens would take about {say_duration(training.seconds)} on this "
            "processor and there is no GPU; start it where one is, or lower pretrain.steps or pretrain.global_batch"
        )
    if training and training.least_memory > machine.memory:
        yield (
            f"pretraining: weights and optimizer alone need {training.least_memory / GIB:.1f} GiB, this machine has "
            f"{machine.memory / GIB:.1f}; take a smaller model"
        )
    needed = sum(cost.disk or 0 for cost in costs.values())
    place = next(folder for folder in (run, *run.absolute().parents) if folder.is_dir())
    if needed > (free := shutil.disk_usage(place).free):
        yield f"{place}: {free / GIB:.1f} GiB free, about {needed / GIB:.1f} GiB needed; free some, or use --runs"
