"""The pretrain stage: token store in; checkpoints, metrics and the weights of a Hugging Face model out.

```
out/checkpoints/        to go on from, each with a Hugging Face folder (see pretrain.checkpoints)
out/metrics.jsonl       one line per interval, one per measurement on held-out text
out/engine.json         the engine's settings, for the record
out/model/              the finished Hugging Face folder
out/result.json         what was trained on what, and the held-out scores
```
Run it in one process, or in many by torchrun, deepspeed or Slurm: every process calls ``run`` with the same arguments.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor
from transformers import PreTrainedModel

from corpus.documents.whole_files import whole_folder, write_whole
from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import fit_micro_batch
from pretrain.engine.plain import PlainEngine
from pretrain.engine.start import Engine, describe_engine, ready_for_engine, start_engine
from pretrain.engine.world import World, join_world
from pretrain.interruption import StopRequest
from pretrain.loop import Watch, train
from pretrain.model.init_from import check_init_from, with_sizes_of
from pretrain.model.isolation import isolate_documents
from pretrain.model.module import PretrainingModule
from pretrain.model.networks import build_network
from pretrain.pack.store import TokenStore, open_store, read_pieces
from pretrain.rows.batches import TrainingBatches
from pretrain.rows.masking import Pieces, describe_pieces
from pretrain.rows.split import Split, split_rows
from pretrain.saved.checkpoints import Checkpoints, mean_weights, require_disk_space
from pretrain.saved.export import MODEL_NAME, RESULT_NAME, save_model
from pretrain.watch.baselines import count_baselines, score_baselines
from pretrain.watch.flops import flops_by_phase
from pretrain.watch.held_out import measure
from pretrain.watch.meter import Meter
from pretrain.watch.trackers import require_trackers

log = logging.getLogger(__name__)

METRICS_NAME = "metrics.jsonl"


class PretrainInputs(NamedTuple):
    """``tokens``: folder of a token store; ``tokenizer``: the folder it was packed with."""

    tokens: Path
    tokenizer: Path


class Material(NamedTuple):
    """What a process trains with, the same on all of them but for ``world``."""

    config: PretrainConfig
    store: TokenStore
    vocabulary: list[str]
    pieces: Pieces
    split: Split
    world: World
    network: PreTrainedModel
    checkpoints: Checkpoints


def run(config: PretrainConfig, inputs: PretrainInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Train, or go on training, and leave the model in ``out``; returns what result.json holds.

    Args:
        workers: not used: the launcher decides how many processes train, and each loads its own rows.

    Raises:
        BadInput: store and tokenizer do not belong together, the corpus is too small, the processes cannot share the
            global batch, a checkpoint in ``out`` is of other settings, there is no room, or the loss is not finite.
        Interrupted: a signal asked for the end; a checkpoint is saved.
    """
    require_trackers(config)
    check_init_from(config, inputs.tokenizer)
    store = open_store(inputs.tokens, inputs.tokenizer)
    vocabulary = read_pieces(inputs.tokenizer)
    pieces = describe_pieces(vocabulary, store.meta["special_ids"])
    split = split_rows(store, config)
    with StopRequest() as stop, join_world() as world, ready_for_engine(config, world):
        fit_micro_batch(config, world.size)  # refuses what cannot be shared, before anything is built
        network = _network(config, store)
        facts = _describe(config, store, split, network)
        if world.is_first:
            require_disk_space(out, network, config)
        save = partial(save_model, network=network, tokenizer=inputs.tokenizer, config=config)
        checkpoints = Checkpoints(out / "checkpoints", config, facts, world, save)
        material = Material(config, store, vocabulary, pieces, split, world, network, checkpoints)
        _train(material, stop, out)
        weights = mean_weights(checkpoints.newest(config.saved.average_last)) if world.is_first else {}
        last = world.broadcast(checkpoints.newest_loop() if world.is_first else None)
        held_out = _measure_finished(material, weights, last["held_out"])
        result = facts | last["progress"] | {"held_out": held_out}
        if world.is_first:
            log.info("held out: %s", {name: value for name, value in held_out.items() if name != "sources"})
            _save_result(out, partial(save, weights=weights, facts=result), result)
        world.wait_for_all()
    return result


def _train(material: Material, stop: StopRequest, out: Path) -> None:
    """From the newest checkpoint, or from the start, to the last step."""
    config, world = material.config, material.world
    micro_batch = fit_micro_batch(config, world.size)
    batches = TrainingBatches(material.split, material.pieces, config, world.rank, world.size, micro_batch)
    found = material.checkpoints.find()
    step, meter_state = (found.loop["step"], found.loop["meter"]) if found else (0, None)
    if found:
        material.network.load_state_dict(found.weights(), strict=False)  # a tied weight is stored under one name
        log.info("going on from %s", found.folder)
    engine = start_engine(config, PretrainingModule(material.network), world)
    if found:
        found.give_to(engine)
    sizes = with_sizes_of(material.network.config, config)
    flops = flops_by_phase(batches, sizes, material.store.meta["vocab_size"])
    resumed = (step, meter_state)
    meter = Meter(
        out / METRICS_NAME, config, world, resumed, lambda n: flops[batches.phase_of(n)], batches.names_of_step
    )
    if world.is_first:
        _write_json(out / "engine.json", describe_engine(config, world))
        _log_plan(material, micro_batch)
        if step < config.steps:
            _log_first_row(batches, step + 1, material)
    with closing(meter):
        watch = Watch(meter, material.checkpoints, partial(_measure, engine, material, micro_batch), stop)
        train(engine, batches, watch, config, world, first_step=step + 1)


def _measure(engine: Engine, material: Material, micro_batch: int) -> dict[str, Any]:
    names = material.store.source_names
    return measure(
        engine, material.split.held_out, names, material.pieces, material.config, material.world, micro_batch
    )


def _measure_finished(material: Material, weights: dict[str, Tensor], scores: dict[str, Any]) -> dict[str, Any]:
    """Held-out scores of the finished weights, and what guessing by counts reaches on the same predictions.

    Args:
        scores: those of the last checkpoint.
    """
    config, world, split = material.config, material.world, material.split
    if config.saved.average_last > 1 and world.is_first:  # every other model was measured with its checkpoint
        alone = World(0, 1, world.device)
        engine = _engine_with(weights, _network(config, material.store), config, alone)
        scores = _measure(engine, material._replace(world=alone), config.engine.micro_batch)
    if world.is_first:
        baselines = count_baselines(split.training, material.pieces)
        scores["baselines"] = score_baselines(baselines, split.held_out, material.pieces, config)
    found: dict[str, Any] = world.broadcast(scores)
    return found


def _engine_with(weights: dict[str, Tensor], network: PreTrainedModel, config: PretrainConfig, world: World) -> Engine:
    """An engine of this process alone that measures these weights in the precision of the training.

    Args:
        network: a fresh one; DeepSpeed may have cut the trained one into parts.
    """
    network.load_state_dict(weights, strict=False)  # tied weights are stored under one of their names
    module = PretrainingModule(network)
    precision = "fp32" if config.engine.precision == "fp32" else "bf16"
    return PlainEngine(config.replaced("engine", precision=precision), module, world.device)


def _network(config: PretrainConfig, store: TokenStore) -> PreTrainedModel:
    network = build_network(config, store.meta["vocab_size"], store.meta["special_ids"])
    if config.rows.packing == "documents":
        isolate_documents(network)
    return network


def _describe(config: PretrainConfig, store: TokenStore, split: Split, network: PreTrainedModel) -> dict[str, Any]:
    return {
        "architecture": config.model.architecture,
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "steps": config.steps,
        "training_rows": split.training.count(0),
        "held_out_rows": split.held_out.count(0),
        "sources": store.meta["sources"],
        "vocabulary_sha256": store.meta["tokenizer_sha256"],
    }


def _log_plan(material: Material, micro_batch: int) -> None:
    config, world = material.config, material.world
    log.info(
        "%s with %.2f M parameters, %d rows an epoch; a step is %d processes x %d micro-batches x %d sequences on %s",
        config.model.architecture,
        sum(parameter.numel() for parameter in material.network.parameters()) / 1e6,
        material.split.training.count(0),
        world.size,
        config.global_batch // world.size // micro_batch,
        micro_batch,
        world.device,
    )


def _log_first_row(batches: TrainingBatches, step: int, material: Material) -> None:
    """Show one masked row as the model gets it: most data bugs are visible there."""
    batch, vocabulary = batches.of_step(step)[0], material.vocabulary
    shown = [vocabulary[id_] for id_ in batch.ids_BL[0].tolist()]
    for position, target in zip(batch.positions_BM[0].tolist(), batch.targets_BM[0].tolist(), strict=True):
        if target >= 0:
            shown[position] = f"<{shown[position]}|{vocabulary[target]}>"
    log.info("first row of step %d, <shown|to predict>: %s", step, " ".join(shown))


def _save_result(out: Path, save_into: Callable[[Path], None], result: dict[str, Any]) -> None:
    """Write the model under another name and rename it, then result.json: it says that all is done."""
    with whole_folder(out / MODEL_NAME) as folder:
        save_into(folder)
    _write_json(out / RESULT_NAME, result)


def _write_json(path: Path, content: Any) -> None:
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
