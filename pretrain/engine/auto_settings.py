"""Values for settings that are "auto": precision, micro-batch and compilation, found on this machine.

On an accelerator, micro-batch and compilation are found by trial steps on a copy of the model, so the run itself does
not change; all processes use the smallest micro-batch. The identity of a run keeps the "auto" of the recipe, so a run
may move to another machine. The values are written to engine.json. ``pretrain.engine.start`` chooses the engine.
"""

from __future__ import annotations

import copy
import gc
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import torch
from transformers import PreTrainedModel

from corpus.documents.accelerator import PrecisionChoice, PrecisionName, choose_precision, device_name
from corpus.documents.atomic_files import digest_matches, read_json_object
from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.engine.memory import is_out_of_memory, memory_of, needed_memory, out_of_memory
from pretrain.engine.optimizer import fit_micro_batch
from pretrain.engine.start import choose_engine, start_engine
from pretrain.engine.world import World, peak_memory, wait_for_device
from pretrain.model.loss import PretrainingModule, mean_loss

log = logging.getLogger(__name__)

PRECISION_KEY = "pretrain.engine.precision"
SETTINGS_KEY = "settled"  # of engine.json
MIN_SPEEDUP = 1.03  # that makes twice the memory worth it
MAX_FILL = 0.9  # of a device's memory: the rest is for buffers of several processes and for fragmentation
TIMED_STEPS = 3
FIRST_WITH_TENSOR_CORES = (7, 0)  # compute capability of V100; the first with bf16 is 8.0
REUSED_KEYS = ("micro_batch", "compile")  # taken from an earlier start of the run on the same machine
BatchOf = Callable[[int], Any]  # a batch of N sequences
SecondsOf = Callable[[int], float | None]  # seconds of a micro-batch of N sequences; None if it does not fit


def read_earlier_settings(path: Path) -> dict[str, Any]:
    """The values that an earlier start of this run found, from ``engine.json``; empty if there was none."""
    advice = "delete this file; it is written again"
    content = read_json_object(path, advice) if path.is_file() else {}
    if SETTINGS_KEY in content and not digest_matches(content):
        raise BadInput(f"{path}: changed after it was written (its sha256 differs); {advice}")
    settings: dict[str, Any] = content.get(SETTINGS_KEY, {})
    return settings


def with_precision(config: PretrainConfig, world: World, earlier: Mapping[str, Any]) -> PretrainConfig:
    """The configuration with its precision resolved; all processes call it and get the same."""
    choice = world.in_first(lambda: _choose_precision(config.engine.precision, world.device))
    resolved = config.replaced("engine", precision=choice.precision)
    choose_engine(resolved, world, 0)  # raises if the processes cannot do it
    precision = resolved.engine.precision
    log.info("precision %s: %s", precision, choice.reason)
    if world.is_first and choice.warning:
        log.warning("%s", choice.warning)
    if earlier.get("precision", precision) != precision:
        log.info("precision changed from %s to %s; resuming in %s", earlier["precision"], precision, precision)
    return resolved


def _choose_precision(requested: PrecisionName, device: torch.device) -> PrecisionChoice:
    """As for fine-tuning, but fp16 on V100 and T4, whose tensor cores have fp16 only."""
    choice = choose_precision(requested, PRECISION_KEY, device)
    if device.type != "cuda" or requested != "auto" or choice.precision != "fp32":
        return choice
    if torch.cuda.get_device_capability(device) < FIRST_WITH_TENSOR_CORES:
        return choice
    return PrecisionChoice("fp16", f"{choice.reason}, so fp16 with loss scaling, not float32")


def describe_settings(config: PretrainConfig, world: World) -> dict[str, Any]:
    """The resolved values, and the machine they are for, for ``engine.json``."""
    settings = {"precision": config.engine.precision, "micro_batch": fit_micro_batch(config, world.size)}
    return settings | {
        "compile": config.engine.compile is True, "device": device_name(world.device), "processes": world.size,
    }  # fmt: skip


def with_device_settings(
    config: PretrainConfig,
    network: PreTrainedModel,
    batch_of: BatchOf,
    world: World,
    earlier: Mapping[str, Any],
) -> PretrainConfig:
    """The configuration with micro-batch and compilation resolved; all processes call it and get the same.

    ``batch_of`` makes a batch of N sequences of the heaviest phase. The values of an ``earlier`` start are reused on
    the same machine. BadInput: not even one sequence fits the memory.
    """
    if world.device.type == "cpu":
        return config.replaced("engine", compile=config.engine.compile is True)
    same = {"precision": config.engine.precision, "device": device_name(world.device), "processes": world.size}
    if all(earlier.get(key) == value for key, value in same.items()) and all(key in earlier for key in REUSED_KEYS):
        known = {key: earlier[key] for key in REUSED_KEYS if getattr(config.engine, key) == "auto"}
        config = config.replaced("engine", **known)
    if config.engine.micro_batch == "auto":
        config = config.replaced("engine", micro_batch=_search(config, network, batch_of, world))
    if config.engine.compile == "auto":
        config = config.replaced("engine", compile=_compiles(config, network, batch_of, world))
    return config


def best_size(sizes: Sequence[int], seconds_of: SecondsOf) -> int:
    """The last of the rising ``sizes`` that fits and still makes training faster; 0 if not even the first fits."""
    best, fastest = 0, 0.0
    for size in sizes:
        seconds = seconds_of(size)
        if seconds is None or size / seconds < MIN_SPEEDUP * fastest:
            break
        best, fastest = size, size / seconds
    return best


def sizes_to_try(config: PretrainConfig, ranks: int) -> list[int]:
    """Divisors of a process's share of a step, from 1 to the full share, each about twice the one before."""
    share = config.global_batch // ranks
    limits = (1 << n for n in range(share.bit_length() + 1))
    return sorted({fit_micro_batch(config.replaced("engine", micro_batch=limit), ranks) for limit in limits})


def _search(config: PretrainConfig, network: PreTrainedModel, batch_of: BatchOf, world: World) -> int:
    began = time.monotonic()
    sizes = sizes_to_try(config, world.size)
    with trial(config.replaced("engine", compile=False), network, batch_of, world.device) as seconds_of:
        micro_batch = best_size(sizes, seconds_of)
    if not micro_batch and config.engine.name == "deepspeed":  # the full model does not fit, but its parts may
        parameters, vocab_size = sum(p.numel() for p in network.parameters()), network.config.vocab_size
        needed = {size: sum(needed_memory(config, vocab_size, parameters, size, world.size)) for size in sizes}
        micro_batch = max((size for size in sizes if needed[size] < MAX_FILL * memory_of(world.device)[0]), default=0)
    micro_batch = min(world.gathered(micro_batch))
    if not micro_batch:
        raise BadInput(out_of_memory(config, world, 1))
    log.info("micro-batch: %d sequences, found in %.0f s of trial steps", micro_batch, time.monotonic() - began)
    return micro_batch


def _compiles(config: PretrainConfig, network: PreTrainedModel, batch_of: BatchOf, world: World) -> bool:
    """Whether a compiled step works in every process; the reason is logged if not."""
    cause = ""
    is_stage_3 = config.engine.name == "deepspeed" and config.engine.zero_stage == 3
    if world.device.type != "cuda" or is_stage_3:
        cause = f"not tried for {'ZeRO stage 3' if is_stage_3 else world.device.type}"
    else:
        try:
            with trial(config.replaced("engine", compile=True), network, batch_of, world.device) as seconds_of:
                cause = "" if seconds_of(fit_micro_batch(config, world.size)) else "not enough memory"
        except Exception as error:  # the compiler raises errors of any kind
            cause = (str(error).strip() or type(error).__name__).partition("\n")[0]
        finally:
            torch.compiler.reset()
    works = not any(world.gathered(cause))
    log.info("compile: %s", "on" if works else f"off, {cause or 'it failed in another process'}")
    return works


@contextmanager
def trial(
    config: PretrainConfig, network: PreTrainedModel, batch_of: BatchOf, device: torch.device
) -> Iterator[SecondsOf]:
    """Train a copy of the network inside the block; the function it yields times a micro-batch."""
    alone, engine = World(0, 1, device), None
    devices, kind = ([], "cuda") if device.type == "cpu" else ([device], device.type)

    def seconds_of(size: int) -> float | None:
        nonlocal engine
        try:
            if engine is None:
                plain = config.replaced("engine", name="plain")
                engine = start_engine(plain, PretrainingModule(copy.deepcopy(network)), alone)
            seconds = median(_time_steps(engine, batch_of(size), config, device))
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            return None
        is_full = device.type != "cpu" and peak_memory(device) > MAX_FILL * memory_of(device)[1]
        return None if is_full else seconds

    try:
        with torch.random.fork_rng(devices=devices, device_type=kind):
            yield seconds_of
    finally:
        engine = None
        gc.collect()
        if device.type != "cpu":
            torch.accelerator.empty_cache()
            if device.type != "mps":
                torch.accelerator.reset_peak_memory_stats(device)


def _time_steps(engine: Any, batch: Any, config: PretrainConfig, device: torch.device) -> list[float]:
    """Seconds of ``TIMED_STEPS`` micro-batches, after one for warm-up."""
    spent = []
    for _ in range(1 + TIMED_STEPS):
        wait_for_device(device)
        began = time.perf_counter()
        sums = engine(*batch.to(device))
        engine.backward(mean_loss(sums, batch.predictions, batch.others))
        wait_for_device(device)
        spent.append(time.perf_counter() - began)
        engine.update(0.0)
    return spent[1:]
