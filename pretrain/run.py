"""The pretrain stage: token store in; checkpoints, metrics and the weights of a Hugging Face model out.

```
out/checkpoints/        to go on from, each with a Hugging Face folder (see pretrain/checkpoint/checkpoints.py)
out/metrics.jsonl       one line per interval, one per measurement on held-out text
out/engine.json         the engine's settings, for the record
out/ranks/              where each process is (see pretrain/metrics/watchdog.py)
out/tokens.checked      which token store was read and found whole
out/model/              the finished Hugging Face folder
out/origin.json         of a branch: the checkpoint it began from (see pretrain/checkpoint/origin.py)
out/result.json         what was trained on what, and the held-out scores
```
Run it in one process, or in many by torchrun, deepspeed or Slurm: every process calls ``run`` with the same arguments.
"""

from __future__ import annotations

import json
import logging
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor
from transformers import PreTrainedModel

from corpus.documents.atomic_files import atomic_dir, atomic_write, with_digest
from corpus.documents.errors import BadInput
from pretrain.batching.batches import Batch, Split, TrainingBatches, split_rows
from pretrain.batching.masking import Pieces, describe_pieces
from pretrain.checkpoint.checkpoints import Checkpoints, SaveModel, mean_weights, require_disk_space
from pretrain.checkpoint.export import MODEL_NAME, RESULT_NAME, save_model
from pretrain.checkpoint.origin import Origin, find_origin
from pretrain.checkpoint.states import with_usual_states
from pretrain.config import PretrainConfig
from pretrain.engine.machine import describe_settled, read_settled, settle
from pretrain.engine.memory import describe_memory, explained_memory, needed_memory
from pretrain.engine.optimizer import fit_micro_batch
from pretrain.engine.start import (
    Engine,
    choose_engine,
    cuts_state,
    describe_engine,
    ready_for_engine,
    start_engine,
)
from pretrain.engine.trial import try_device
from pretrain.engine.world import World, explained_loss, join_world
from pretrain.interruption import GOES_ON, Interrupted, StopRequest
from pretrain.loop import Watch, train
from pretrain.metrics.baselines import count_baselines, score_baselines
from pretrain.metrics.flops import flops_by_phase
from pretrain.metrics.held_out import measure
from pretrain.metrics.meter import Meter
from pretrain.metrics.trackers import require_trackers
from pretrain.metrics.watchdog import Watchdog
from pretrain.model.extended import NewRows, read_new_rows
from pretrain.model.init_from import check_init_from, with_sizes_of
from pretrain.model.isolation import isolate_documents
from pretrain.model.module import PretrainingModule
from pretrain.model.networks import build_network
from pretrain.model.starts import count_first_values, give_first_values
from pretrain.pack.cached import cached_store
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
    """What a process trains with, the same on all of them but for ``world``.

    ``facts`` is what cards and result.json say of the run before it has begun.
    """

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
    new_rows: NewRows
    origin: Origin | None


def run(config: PretrainConfig, inputs: PretrainInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Train, or go on training, and leave the model in ``out``; returns what result.json holds.

    ``workers`` is not used: the launcher decides how many processes train, and each loads its own rows.

    Raises:
        BadInput: store and tokenizer do not belong together, the corpus is too small, the processes cannot share the
            global batch, a checkpoint in ``out`` is of other settings, the disk is full, or the loss is not finite.
        Interrupted: a signal asked for the end; a checkpoint is saved. ProcessLost, a kind of it: none is.
    """
    require_trackers(config)
    check_init_from(config, inputs.tokenizer)
    joined = join_world(config.engine.device, config.watch.hang_minutes)
    with StopRequest() as stop, joined as world, explained_loss(world):
        prepared = _prepare(config, inputs, out, world)
        tells = explained_memory(prepared.config, world, prepared.micro_batch)
        with tells, ready_for_engine(prepared.config, world):
            _train(prepared, stop)
            result = _finish(prepared)
        if stop.is_made:  # too late to save more than there is, but not to end what would follow
            raise Interrupted(
                f"stopped by a signal or with its launcher after step {config.steps}, the last; {GOES_ON}"
            )
    return result


def _prepare(config: PretrainConfig, inputs: PretrainInputs, out: Path, world: World) -> Prepared:
    """Open and check everything; nothing is trained, and little is written."""
    before = world.in_first(lambda: read_settled(out / ENGINE_NAME))
    asked, config = config, settle(config, world, before)
    fit_micro_batch(config, world.size)  # refuses what the processes cannot share
    store = open_store(inputs.tokens, inputs.tokenizer)
    if config.engine.store_cache:
        store = cached_store(store, inputs.tokenizer, Path(config.engine.store_cache).expanduser())
    is_original = inputs.tokens == store.folder  # a copy was checked by its node
    world.in_first(lambda: check_store(store, out / CHECKED_NAME) if is_original else None)
    vocabulary = read_pieces(inputs.tokenizer)
    counts_V = store.piece_counts() if config.rows.masking.rare_power else None
    pieces = describe_pieces(vocabulary, store.meta["special_ids"], counts_V)
    split = split_rows(store, config)
    new_rows = read_new_rows(inputs.tokenizer, store.meta["vocab_size"])
    network = _network(config, store, new_rows)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    config = config.replaced("engine", name=choose_engine(config, world, parameters))
    config = try_device(config, network, partial(_trial_batch, split, pieces, config, world), world, before)
    micro_batch = fit_micro_batch(config, world.size)
    is_sharded = cuts_state(config, world) if config.saved.sharded == "auto" else config.saved.sharded
    world.in_first(lambda: require_disk_space(out, network, config, is_sharded=is_sharded))
    facts = {
        "architecture": config.model.architecture,
        "parameters": parameters,
        "steps": config.steps,
        "engine": describe_settled(config, world),
        "training_rows": split.training.count(0),
        "held_out_rows": split.held_out.count(0),
        "sources": store.meta["sources"],
        "vocabulary_sha256": store.meta["tokenizer_sha256"],
    }
    origin = find_origin(config, out, network, facts["vocabulary_sha256"], world)
    if origin:
        facts["continued_from"] = origin.facts
    save = partial(save_model, network=network, tokenizer=inputs.tokenizer, config=config)
    checkpoints = Checkpoints(out / "checkpoints", asked, facts, world, save, is_sharded=is_sharded)
    return Prepared(
        config, store, vocabulary, pieces, split, world, micro_batch, network, facts, save, checkpoints, out, new_rows,
        origin,
    )  # fmt: skip


def _train(prepared: Prepared, stop: StopRequest) -> None:
    """From the newest checkpoint, or from the start, to the last step."""
    config, world, out, origin = prepared.config, prepared.world, prepared.out, prepared.origin
    first_epoch = origin.facts["first_epoch"] if origin else 0
    batches = TrainingBatches(
        prepared.split, prepared.pieces, config, world.rank, world.size, prepared.micro_batch, first_epoch
    )
    found = prepared.checkpoints.find()
    given = found or (origin.found(config) if origin else None)
    if given:
        _load(prepared.network, given.weights())
        log.info("going on from %s", given.folder)
    else:
        _start_from_counts(prepared)
    engine = start_engine(config, PretrainingModule(prepared.network), world)
    if given:
        given.give_to(engine)
    resumed = (found.loop["step"], found.loop["meter"]) if found else (0, None)
    sizes = with_sizes_of(prepared.network.config, config)
    flops = flops_by_phase(batches, sizes, prepared.store.meta["vocab_size"])
    meter = Meter(
        out / METRICS_NAME, config, world, resumed, lambda n: flops[batches.phase_of(n)], batches.names_of_step
    )
    first_step = resumed[0] + 1
    if world.is_first:
        _write_json(
            out / ENGINE_NAME, with_digest(describe_engine(config, world) | {"settled": prepared.facts["engine"]})
        )
        _log_plan(prepared)
        if first_step <= config.steps:
            _log_first_row(batches, first_step, prepared.vocabulary)
    watchdog = Watchdog(out, 60 * config.watch.hang_minutes, world, partial(batches.names_of_step, rank=world.rank))
    with closing(meter), prepared.checkpoints.finishing(), watchdog:
        measures = partial(_measure, engine, prepared, watchdog.sign)
        watch = Watch(meter, prepared.checkpoints, measures, stop, watchdog.at)
        train(engine, batches, watch, config, world, first_step)


def _finish(prepared: Prepared) -> dict[str, Any]:
    """Write the model and result.json, which says that all is done; returns what it holds."""
    result: dict[str, Any] = prepared.world.in_first(lambda: _write_result(prepared))
    prepared.world.wait_for_all()
    return result


def _write_result(prepared: Prepared) -> dict[str, Any]:
    newest = prepared.checkpoints.newest(prepared.config.saved.average_last)
    if not newest or newest[0].loop["step"] != prepared.config.steps:
        raise BadInput(
            f"{prepared.out / 'checkpoints'}: the last checkpoint was damaged after it was written; run the same "
            "command again, it goes on from the one before"
        )
    last = newest[0].loop
    weights = mean_weights([found.weights() for found in reversed(newest)])
    held_out = _score_finished(prepared, weights, last["held_out"])
    log.info("held out: %s", {name: value for name, value in held_out.items() if name != "sources"})
    result = prepared.facts | last["progress"] | {"held_out": held_out}
    with atomic_dir(prepared.out / MODEL_NAME) as folder:
        prepared.save_model(folder, weights=with_usual_states(weights), facts=result)
    _write_json(prepared.out / RESULT_NAME, result)
    return result


def _measure(engine: Engine, prepared: Prepared, sign: Callable[[], None] = lambda: None) -> dict[str, Any]:
    _, store, _, pieces, split, world, micro_batch, *_ = prepared
    with engine.averaged():
        return measure(engine, split.held_out, store.source_names, pieces, prepared.config, world, micro_batch, sign)


def _score_finished(prepared: Prepared, weights: dict[str, Tensor], scores: dict[str, Any]) -> dict[str, Any]:
    """In the first process: held-out scores of the finished weights, and what guessing by counts reaches.

    ``scores`` are those of the last checkpoint.
    """
    config, split = prepared.config, prepared.split
    if config.saved.average_last > 1:  # every other model was measured with its checkpoint
        # a fresh one: DeepSpeed may have cut the trained one into parts
        network = _network(config, prepared.store, prepared.new_rows)
        _load(network, weights)
        alone = World(0, 1, prepared.world.device)
        precision = "fp32" if config.engine.precision == "fp32" else "bf16"
        plain = config.replaced("engine", name="plain", precision=precision, compile=False)
        engine = start_engine(plain, PretrainingModule(network), alone)
        scores = _measure(engine, prepared._replace(world=alone, micro_batch=config.engine.most_sequences))
    baselines = count_baselines(split.training, prepared.pieces)
    return scores | {"baselines": score_baselines(baselines, split.held_out, prepared.pieces, config)}


def _network(config: PretrainConfig, store: TokenStore, new_rows: NewRows) -> PreTrainedModel:
    network = build_network(config, store.meta["vocab_size"], store.meta["special_ids"], new_rows)
    if config.rows.packing == "documents":
        isolate_documents(network)
    return network


def _start_from_counts(prepared: Prepared) -> None:
    """Counted in the first process only: another machine may round otherwise."""
    config, network, world = prepared.config, prepared.network, prepared.world
    hidden = network.config.hidden_size
    counted = partial(count_first_values, prepared.split.training, prepared.pieces, hidden, config)
    give_first_values(network, world.in_first(counted))


def _trial_batch(split: Split, pieces: Pieces, config: PretrainConfig, world: World, size: int) -> Batch:
    """So many sequences of what takes the most memory in a run, which ``size`` divides."""
    heaviest = max(phases(config), key=lambda phase: (phase.length, phase.share))
    batches = TrainingBatches(split, pieces, config, 0, world.size, size).of_step(heaviest.after + 1)
    return max(batches, key=lambda batch: batch.targets_BM.numel())


def _load(network: PreTrainedModel, weights: Mapping[str, Tensor]) -> None:
    network.load_state_dict(weights, strict=False)  # tied weights are stored under one of their names


def _log_plan(prepared: Prepared) -> None:
    config, world, micro_batch = prepared.config, prepared.world, prepared.micro_batch
    log.info(
        "%s with %.2f M parameters, %d rows an epoch; a step is %d processes x %d micro-batches x %d sequences on %s",
        *(config.model.architecture, prepared.facts["parameters"] / 1e6, prepared.facts["training_rows"], world.size),
        *(config.global_batch // world.size // micro_batch, micro_batch, world.device),
    )
    parts = phases(config)
    if len(parts) > 1:
        told = [f"{phase.length} tokens, {phase.share:.1%} masked, up to step {phase.last}" for phase in parts]
        log.info("rows by phase: %s", "; ".join(told))
    sizes = with_sizes_of(prepared.network.config, config)
    vocab_size, parameters = prepared.store.meta["vocab_size"], prepared.facts["parameters"]
    needed = needed_memory(sizes, vocab_size, parameters, micro_batch, world.size)
    log.info("%s", describe_memory(needed, micro_batch, world.device))


def _log_first_row(batches: TrainingBatches, step: int, vocabulary: list[str]) -> None:
    """Print one row as the model gets it, a masked one where there is any: most data bugs are visible there."""
    found = batches.of_step(step)
    batch = next((batch for batch in found if batch.positions_BM is not None), found[0])
    seen = [vocabulary[id_] for id_ in batch.ids_BL[0].tolist()]
    if batch.positions_BM is not None:
        for position, target in zip(batch.positions_BM[0].tolist(), batch.targets_BM[0].tolist(), strict=True):
            if target >= 0:  # beside causal rows, of the place after it
                seen[position] = f"<{seen[position]}|{vocabulary[target]}>"
    log.info("first row of step %d, <shown|to predict>: %s", step, unicodedata.normalize("NFC", " ".join(seen)))


def _write_json(path: Path, content: Any) -> None:
    atomic_write(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
