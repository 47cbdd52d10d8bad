"""Dry steps before the first: how many sequences make an accelerator fast, and whether torch.compile works there.

They train a copy, one process without the others, under a generator of its own, so that nothing of the run is
changed. Batches do not depend on what is found, and the smallest answer of all processes is taken.
"""

from __future__ import annotations

import copy
import gc
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

import torch
from transformers import PreTrainedModel

from corpus.documents.accelerator import device_name
from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.engine.memory import is_out_of_memory, memory_of, needed_memory, out_of_memory
from pretrain.engine.optimizer import fit_micro_batch
from pretrain.engine.start import start_engine
from pretrain.engine.world import World, peak_memory, wait_for_device
from pretrain.model.module import PretrainingModule, mean_loss

log = logging.getLogger(__name__)

GROWS = 1.03  # times the speed that make twice the memory worth it
FULL = 0.9  # of a device: the rest is for the buffers of many processes and for what fragments
TIMED = 3
KEPT = ("micro_batch", "compile")  # taken over from an earlier start of the run on the same machine
BatchOf = Callable[[int], Any]  # a batch of so many sequences
SecondsOf = Callable[[int], float | None]  # seconds of a micro-batch of so many sequences; None where it does not fit


def try_device(
    config: PretrainConfig,
    network: PreTrainedModel,
    batch_of: BatchOf,
    world: World,
    before: Mapping[str, Any],
) -> PretrainConfig:
    """The configuration with micro-batch and compilation settled; all processes call it and get the same.

    Args:
        config: with precision and engine settled.
        network: to train; it stays as it is.
        batch_of: a batch of so many sequences in the heaviest phase of the run.
        before: what an earlier start settled, taken over if it was on the same machine.

    Raises:
        BadInput: not even one sequence fits the memory.
    """
    if world.device.type == "cpu":
        return config.replaced("engine", compile=config.engine.compile is True)
    same = {"precision": config.engine.precision, "device": device_name(world.device), "processes": world.size}
    if all(before.get(key) == value for key, value in same.items()) and all(key in before for key in KEPT):
        known = {key: before[key] for key in KEPT if getattr(config.engine, key) == "auto"}
        config = config.replaced("engine", **known)
    if config.engine.micro_batch == "auto":
        config = config.replaced("engine", micro_batch=_search(config, network, batch_of, world))
    if config.engine.compile == "auto":
        config = config.replaced("engine", compile=_compiles(config, network, batch_of, world))
    return config


def best_size(sizes: Sequence[int], seconds_of: SecondsOf) -> int:
    """Of rising ``sizes`` the last that fits and still makes training faster; 0 where not even the first fits."""
    best, fastest = 0, 0.0
    for size in sizes:
        seconds = seconds_of(size)
        if seconds is None or size / seconds < GROWS * fastest:
            break
        best, fastest = size, size / seconds
    return best


def sizes_to_try(config: PretrainConfig, ranks: int) -> list[int]:
    """About twice as many sequences each time, from 1 to all that a process has in a step, which each divides."""
    share = config.global_batch // ranks
    limits = (1 << n for n in range(share.bit_length() + 1))
    return sorted({fit_micro_batch(config.replaced("engine", micro_batch=limit), ranks) for limit in limits})


def _search(config: PretrainConfig, network: PreTrainedModel, batch_of: BatchOf, world: World) -> int:
    began = time.monotonic()
    sizes = sizes_to_try(config, world.size)
    with trial(config.replaced("engine", compile=False), network, batch_of, world.device) as seconds_of:
        found = best_size(sizes, seconds_of)
    if not found and config.engine.name in ("fsdp", "deepspeed"):  # the whole model does not fit, its parts may
        found = _by_count(config, network, world)
    found = world.least(found)
    if not found:
        raise BadInput(out_of_memory(config, world, 1))
    log.info("micro-batch: %d sequences, found in %.0f s of dry steps", found, time.monotonic() - began)
    return found


def _by_count(config: PretrainConfig, network: PreTrainedModel, world: World) -> int:
    parameters = sum(p.numel() for p in network.parameters())
    free = FULL * memory_of(world.device)[0]
    vocab_size = network.config.vocab_size
    fitting = (
        n for n in sizes_to_try(config, world.size)
        if sum(needed_memory(config, vocab_size, parameters, n, world.size)) < free
    )  # fmt: skip
    return max(fitting, default=0)


def _compiles(config: PretrainConfig, network: PreTrainedModel, batch_of: BatchOf, world: World) -> bool:
    """Whether a compiled step works in every process; in the log why not."""
    cause = ""
    if world.device.type != "cuda" or config.engine.name == "fsdp" or config.engine.name == "deepspeed":
        cause = f"not tried for {config.engine.name} on {world.device.type}"
    else:
        try:
            with trial(config.replaced("engine", compile=True), network, batch_of, world.device) as seconds_of:
                cause = "" if seconds_of(fit_micro_batch(config, world.size)) else "its memory does not suffice"
        except Exception as error:  # of any part of the compiler, or of what it calls
            cause = (str(error).strip() or type(error).__name__).partition("\n")[0]
        finally:
            torch.compiler.reset()
    works = bool(world.least(int(not cause)))
    log.info("compile: %s", "on" if works else f"off, {cause or 'it fails in another process'}")
    return works


@contextmanager
def trial(
    config: PretrainConfig, network: PreTrainedModel, batch_of: BatchOf, device: torch.device
) -> Iterator[SecondsOf]:
    """Train a copy of the network inside; the function it gives times a micro-batch."""
    precision = "fp32" if config.engine.precision == "fp32" else "bf16"
    alone, engine = World(0, 1, device), None
    devices, kind = ([], "cuda") if device.type == "cpu" else ([device], device.type)

    def seconds_of(size: int) -> float | None:
        nonlocal engine
        try:
            if engine is None:
                plain = config.replaced("engine", name="plain", precision=precision)
                engine = start_engine(plain, PretrainingModule(copy.deepcopy(network)), alone)
            seconds = median(_time_steps(engine, batch_of(size), config, device))
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            return None
        is_full = device.type != "cpu" and peak_memory(device) > FULL * memory_of(device)[1]
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
    """Seconds of ``TIMED`` micro-batches after one that is not counted; an update first gives Adam its averages."""
    spent = []
    for _ in range(1 + TIMED):
        wait_for_device(device)
        began = time.perf_counter()
        sums = engine(*batch.to(device))
        engine.backward(mean_loss(sums, batch.predictions, batch.others, config))
        wait_for_device(device)
        spent.append(time.perf_counter() - began)
        engine.update(0.0)
    return spent[1:]
