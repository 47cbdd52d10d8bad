"""The pretrain stage: a token store is the input; checkpoints, metrics and a Hugging Face model are the output.

```
out/checkpoints/        to resume from, each with a Hugging Face folder (see pretrain/checkpoint/checkpoints.py)
out/metrics.jsonl       one line per interval, and one per measurement on held-out text
out/engine.json         settings of the engine, as a record
out/ranks/              the current place of each process (see pretrain/metrics/watchdog.py)
out/tokens.checked      which token store was verified
out/model/              the finished Hugging Face folder
out/origin.json         for a branch: the checkpoint it started from (see pretrain/checkpoint/branch_origin.py)
out/result.json         data, training and held-out scores
```
All processes (one, or those that torchrun, deepspeed or Slurm started) call ``run`` with the same arguments.
"""

from __future__ import annotations

import json
import logging
import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from transformers import PreTrainedModel

from corpus.documents.accelerator import device_name
from corpus.documents.atomic_files import atomic_dir, atomic_write, with_digest
from corpus.documents.errors import BadInput
from pretrain.batching.batches import Batch, TrainingBatches
from pretrain.batching.held_out_split import Split, split_rows
from pretrain.batching.masking import Pieces, describe_pieces
from pretrain.checkpoint.branch_origin import Origin, find_origin
from pretrain.checkpoint.checkpoints import Checkpoints, SaveModel, require_disk_space
from pretrain.checkpoint.export import MODEL_NAME, RESULT_NAME, save_model, with_export_scales
from pretrain.config import PretrainConfig
from pretrain.engine.auto_settings import (
    SETTINGS_KEY,
    describe_settings,
    read_earlier_settings,
    with_device_settings,
    with_precision,
)
from pretrain.engine.memory import describe_memory, explained_memory, needed_memory
from pretrain.engine.optimizer import fit_micro_batch
from pretrain.engine.start import choose_engine, describe_engine, is_sharded, ready_for_engine, start_engine
from pretrain.engine.world import World, explained_loss, join_world
from pretrain.interruption import RESUME_ADVICE, Interrupted, StopRequest
from pretrain.loop import Monitors, train
from pretrain.metrics.baselines import count_baselines, score_baselines
from pretrain.metrics.device_speed import Speed, cpu_speed, gpu_speed
from pretrain.metrics.flops import flops_by_phase
from pretrain.metrics.held_out import measure
from pretrain.metrics.meter import Meter
from pretrain.metrics.watchdog import Watchdog
from pretrain.model.existing_model import NewRows, check_init_from, read_new_rows
from pretrain.model.families import sizes_of
from pretrain.model.initialization import count_initial_values, write_initial_values
from pretrain.model.isolation import has_kernel, isolate_documents, isolate_pairs
from pretrain.model.loss import PretrainingModule
from pretrain.model.networks import build_network
from pretrain.model.rotary import set_rope_theta
from pretrain.pack.store import TokenStore, check_store, open_store, read_pieces
from pretrain.schedule import phases

log = logging.getLogger(__name__)

ENGINE_NAME = "engine.json"
METRICS_NAME = "metrics.jsonl"
CHECKED_NAME = "tokens.checked"


class PretrainInputs(NamedTuple):
    """``tokens``: folder of a token store; ``tokenizer``: the folder it was packed with."""

    tokens: Path
    tokenizer: Path


class Prepared(NamedTuple):
    """The parts of a training; ``facts``: values for cards and result.json that are known before the run."""

    config: PretrainConfig
    store: TokenStore
    vocabulary: list[str]
    pieces: Pieces
    split: Split
    world: World
    micro_batch: int
    network: PreTrainedModel
    facts: dict[str, Any]
    save_model: SaveModel
    checkpoints: Checkpoints
    out: Path
    origin: Origin | None


def run(config: PretrainConfig, inputs: PretrainInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Start or resume training and write the model to ``out``; returns the content of result.json.

    ``workers`` is not used: the launcher decides how many processes train, and each loads its own rows.

    Interrupted: stopped by a signal, with a checkpoint saved; its subclass ProcessLost: without a checkpoint.
    """
    check_init_from(config, inputs.tokenizer)
    joined = join_world(config.engine.device, config.watch.hang_minutes)
    with StopRequest() as stop, joined as world, explained_loss(world):
        prepared = _prepare(config, inputs, out, world)
        memory_errors = explained_memory(prepared.config, world, prepared.micro_batch)
        with memory_errors, ready_for_engine(prepared.config, world):
            _train(prepared, stop)
            result: dict[str, Any] = world.in_first(lambda: _write_result(prepared))
            world.wait_for_all()
        if stop.is_made:  # training is complete, but the stages after it must not start
            raise Interrupted(
                f"stopped by a signal or with its launcher after step {config.steps}, the last; {RESUME_ADVICE}"
            )
    return result


def _prepare(config: PretrainConfig, inputs: PretrainInputs, out: Path, world: World) -> Prepared:
    """Open and check everything before training."""
    earlier = world.in_first(lambda: read_earlier_settings(out / ENGINE_NAME))
    requested, config = config, with_precision(config, world, earlier)
    for phase in phases(config):
        fit_micro_batch(phase.config, world.size)  # raises if the processes cannot share the batch
    store = open_store(inputs.tokens, inputs.tokenizer)
    world.in_first(lambda: check_store(store, out / CHECKED_NAME))
    vocabulary = read_pieces(inputs.tokenizer)
    pieces = describe_pieces(vocabulary, store.meta["special_ids"])
    split = split_rows(store, config)
    new_rows = read_new_rows(inputs.tokenizer, store.meta["vocab_size"])
    network = _network(config, store, new_rows, world)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    config = config.replaced("engine", name=choose_engine(config, world, parameters))
    trial_batch = partial(_trial_batch, split, pieces, config, world)
    config = with_device_settings(config, network, trial_batch, world, earlier)
    micro_batch = fit_micro_batch(config, world.size)
    sharded = is_sharded(config, world)
    world.in_first(lambda: require_disk_space(out, network, config, is_sharded=sharded))
    facts = {
        "architecture": config.model.architecture,
        "parameters": parameters,
        "steps": config.steps,
        "engine": describe_settings(config, world),
        "training_rows": split.training.count(0),
        "held_out_rows": split.held_out.count(0),
        "sources": store.meta["sources"],
        "vocabulary_sha256": store.meta["tokenizer_sha256"],
    }
    origin = find_origin(config, out, network, facts["vocabulary_sha256"], world)
    if origin:
        facts["continued_from"] = origin.facts
    save = partial(save_model, network=network, tokenizer=inputs.tokenizer, config=config)
    checkpoints = Checkpoints(out / "checkpoints", requested, facts, world, save, is_sharded=sharded)
    return Prepared(
        config, store, vocabulary, pieces, split, world, micro_batch, network, facts, save, checkpoints, out, origin,
    )  # fmt: skip


def _train(prepared: Prepared, stop: StopRequest) -> None:
    """Train from the newest checkpoint, or from the start, to the last step."""
    config, world, out, origin = prepared.config, prepared.world, prepared.out, prepared.origin
    first_epoch = origin.facts["first_epoch"] if origin else 0
    batches = TrainingBatches(
        prepared.split, prepared.pieces, config, world.rank, world.size, prepared.micro_batch, first_epoch
    )
    own = prepared.checkpoints.find()
    resumed = (own.loop["step"], own.loop["meter"]) if own else (0, None)
    begin_phase = _phase_setter(prepared.network, batches, resumed[0] + 1)
    checkpoint = own or (origin.checkpoint(config) if origin else None)
    if checkpoint:
        # strict=False: tied weights are stored under one of their names
        prepared.network.load_state_dict(checkpoint.weights(), strict=False)
        log.info("resuming from %s", checkpoint.folder)
    else:
        _initialize_from_counts(prepared)
    engine = start_engine(config, PretrainingModule(prepared.network), world)
    if checkpoint:
        checkpoint.restore(engine)
    sizes = config.replaced("model", **sizes_of(prepared.network.config))  # of the model, not those of the recipe
    flops = flops_by_phase(batches, sizes, prepared.store.meta["vocab_size"])
    meter = Meter(
        out / METRICS_NAME, config, world, resumed, lambda n: flops[batches.phase_of(n)], batches.names_of_step,
        _expected_speed(sizes, prepared.store.meta["vocab_size"], world),
    )  # fmt: skip
    first_step = resumed[0] + 1
    if world.is_first:
        settings = with_digest(describe_engine(config, world) | {SETTINGS_KEY: prepared.facts["engine"]})
        atomic_write(out / ENGINE_NAME, json.dumps(settings, ensure_ascii=False, indent=1) + "\n")
        _log_plan(prepared, sizes, batches, first_step)
    watchdog = Watchdog(out, 60 * config.watch.hang_minutes, world, partial(batches.names_of_step, rank=world.rank))
    with prepared.checkpoints.finishing(), watchdog:
        held_out, names, pieces = prepared.split.held_out, prepared.store.source_names, prepared.pieces
        measures = partial(
            measure, engine, held_out, names, pieces, config, world, prepared.micro_batch, watchdog.sign
        )  # fmt: skip
        monitors = Monitors(meter, prepared.checkpoints, measures, stop, begin_phase, watchdog.at)
        train(engine, batches, monitors, config, world, first_step)


def _write_result(prepared: Prepared) -> dict[str, Any]:
    """Write the model and then result.json, which marks the end of the stage; returns its content."""
    last = prepared.checkpoints.newest()
    if last is None or last.loop["step"] != prepared.config.steps:
        raise BadInput(
            f"{prepared.out / 'checkpoints'}: the last checkpoint was damaged after it was written; run the same "
            "command again, which resumes from the one before it"
        )
    baselines = count_baselines(prepared.split.training, prepared.pieces)
    scores = score_baselines(baselines, prepared.split.held_out, prepared.pieces, prepared.config)
    held_out = last.loop["held_out"] | {"baselines": scores}
    log.info("held out: %s", {name: value for name, value in held_out.items() if name != "sources"})
    result = prepared.facts | last.loop["progress"] | {"held_out": held_out}
    with atomic_dir(prepared.out / MODEL_NAME) as folder:
        prepared.save_model(folder, weights=with_export_scales(last.weights()), facts=result)
    atomic_write(prepared.out / RESULT_NAME, json.dumps(result, ensure_ascii=False, indent=1) + "\n")
    return result


def _network(config: PretrainConfig, store: TokenStore, new_rows: NewRows, world: World) -> PreTrainedModel:
    network = build_network(config, store.meta["vocab_size"], store.meta["special_ids"], new_rows)
    if config.rows.packing == "documents":
        isolate_documents(network)
    elif config.model.nsp and has_kernel(world.device, config.engine.precision):
        isolate_pairs(network)
    return network


def _initialize_from_counts(prepared: Prepared) -> None:
    """Counts are made in the first process only, because rounding may differ between machines."""
    config, network, world = prepared.config, prepared.network, prepared.world
    hidden = network.config.hidden_size
    count = partial(count_initial_values, prepared.split.training, prepared.pieces, hidden, config)
    write_initial_values(network, world.in_first(count))


def _trial_batch(split: Split, pieces: Pieces, config: PretrainConfig, world: World, size: int) -> Batch:
    """A batch of ``size`` sequences of the phase that needs the most memory."""
    heaviest = max(phases(config), key=lambda phase: (phase.length, phase.share))
    batches = TrainingBatches(split, pieces, config, 0, world.size, size).of_step(heaviest.after + 1)
    return max(batches, key=lambda batch: batch.targets_BM.numel())


def _phase_setter(network: PreTrainedModel, batches: TrainingBatches, first_step: int) -> Callable[[int], None]:
    """A function that gives the network the rotary positions of the phase of a step; called for the first one."""
    rope = getattr(network.config, "rope_parameters", None) or {}
    usual = rope.get("full_attention", {}).get("rope_theta")

    def begin(step: int) -> None:
        phase = batches.phase_at(step)
        if usual is not None:
            set_rope_theta(network, phase.rope_theta or usual)
        if len(batches.phases) > 1:
            log.info("steps %s to %s: %s", f"{phase.after + 1:,}", f"{phase.last:,}", phase)

    begin(first_step)
    return begin


def _expected_speed(sizes: PretrainConfig, vocab_size: int, world: World) -> Speed | None:
    """Of all devices, in the first process; ``sizes``: the settings with the sizes of the model."""
    if not world.is_first:
        return None
    if world.device.type == "cpu":
        return cpu_speed(sizes, vocab_size, world.size)
    return gpu_speed(device_name(world.device), sizes.engine.precision, world.size)


def _log_plan(prepared: Prepared, sizes: PretrainConfig, batches: TrainingBatches, first_step: int) -> None:
    config, world, micro_batch = prepared.config, prepared.world, prepared.micro_batch
    log.info(
        "%s with %.2f M parameters, %d rows an epoch; a step is %d processes x %d micro-batches x %d sequences on %s",
        *(config.model.architecture, prepared.facts["parameters"] / 1e6, prepared.facts["training_rows"], world.size),
        *(config.global_batch // world.size // micro_batch, micro_batch, world.device),
    )
    if len(batches.phases) > 1:
        log.info("phases: %s", "; ".join(f"{phase}, up to step {phase.last:,}" for phase in batches.phases))
    if by_source := batches.progress(config.steps).get("source_epochs"):
        log.info("epochs of each source at the end: %s", ", ".join(f"{name} {n:.2f}" for name, n in by_source.items()))
    vocab_size, parameters = prepared.store.meta["vocab_size"], prepared.facts["parameters"]
    is_cpu = world.device.type == "cpu"
    needed = needed_memory(sizes, vocab_size, parameters, micro_batch, world.size, is_cpu=is_cpu)
    log.info("%s", describe_memory(needed, micro_batch, world.device))
    if first_step <= config.steps:
        _log_first_row(batches, first_step, prepared.vocabulary)


def _log_first_row(batches: TrainingBatches, step: int, vocabulary: list[str]) -> None:
    """Log one input row of the model: most data bugs are visible there."""
    batch = batches.of_step(step)[0]
    shown = [vocabulary[id_] for id_ in batch.ids_BL[0].tolist()]
    if batch.positions_BM is not None:
        for position, target in zip(batch.positions_BM[0].tolist(), batch.targets_BM[0].tolist(), strict=True):
            if target >= 0:
                shown[position] = f"<{shown[position]}|{vocabulary[target]}>"
    log.info("first row of step %d, <shown|to predict>: %s", step, unicodedata.normalize("NFC", " ".join(shown)))
