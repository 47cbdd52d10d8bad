"""The pretrain stage: token store in; checkpoints, metrics and the weights of a Hugging Face model out.

```
out/checkpoints/        to go on from (see pretrain.checkpoints)
out/metrics.jsonl       one line per interval
out/deepspeed.json      the engine's settings, for the record
out/model/              config.json, model.safetensors (float32)
out/result.json         what was trained on what, and the held-out scores
```
Run it in one process, or in many by torchrun, deepspeed or Slurm: every process calls ``run`` with the same arguments.
"""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import save_file
from transformers import PreTrainedModel

from pretrain.batches import TrainingBatches
from pretrain.checkpoints import Checkpoints
from pretrain.config import PretrainConfig
from pretrain.engine import engine_settings, fit_micro_batch, full_precision_weights, start_engine
from pretrain.loop import measure, train
from pretrain.masking import Pieces, describe_pieces
from pretrain.meter import Meter
from pretrain.model import PretrainingModule, build_network
from pretrain.rows import split_rows
from pretrain.store import TokenStore, open_store, read_pieces
from pretrain.world import World, join_world

log = logging.getLogger(__name__)

METRICS_NAME = "metrics.jsonl"
MODEL_NAME = "model"
RESULT_NAME = "result.json"
PARTIAL = ".partial"


class PretrainInputs(NamedTuple):
    """``tokens``: folder of a token store; ``tokenizer``: the folder it was packed with."""

    tokens: Path
    tokenizer: Path


def run(config: PretrainConfig, inputs: PretrainInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Train, or go on training, and leave the model in ``out``; returns what result.json holds.

    Args:
        workers: not used: the launcher decides how many processes train, and each loads its own rows.

    Raises:
        BadInput: store and tokenizer do not belong together, the corpus is too small, the processes cannot share the
            global batch, a checkpoint in ``out`` is of other settings, or the loss is not finite.
    """
    store = open_store(inputs.tokens, inputs.tokenizer)
    vocabulary = read_pieces(inputs.tokenizer)
    pieces = describe_pieces(vocabulary, store.meta["special_ids"])
    training_rows, held_out_rows = split_rows(store, config)
    with join_world() as world:
        micro_batch = fit_micro_batch(config, world.size)
        batches = TrainingBatches(training_rows, pieces, config, world.rank, world.size, micro_batch)
        network = build_network(config, store.meta["vocab_size"], store.meta["special_ids"])
        parameters = sum(parameter.numel() for parameter in network.parameters())
        engine = start_engine(config, PretrainingModule(network), world)
        checkpoints = Checkpoints(out / "checkpoints", config, store.meta["tokenizer_sha256"], world)
        resumed = checkpoints.resume(engine)
        meter = Meter(out / METRICS_NAME, config, world, resumed)
        if world.is_first:
            _write_json(out / "deepspeed.json", engine_settings(config, world.size))
            _log_plan(config, world, parameters, training_rows.count(0), micro_batch)
            _log_first_row(batches, resumed[0] + 1, vocabulary, pieces)
        train(engine, batches, meter, checkpoints, config, world, first_step=resumed[0] + 1)
        held_out = measure(engine, held_out_rows, pieces, config, world, micro_batch)
        weights = full_precision_weights(engine)
        rows = {"training_rows": training_rows.count(0), "held_out_rows": held_out_rows.count(0)}
        result = _describe(config, store, parameters, rows, held_out)
        if world.is_first:
            log.info("held out: %s", held_out)
            _save_model(network, weights, out / MODEL_NAME)
            _write_json(out / RESULT_NAME, result)
        world.wait_for_all()
    return result


def _describe(
    config: PretrainConfig, store: TokenStore, parameters: int, rows: dict[str, int], held_out: dict[str, float]
) -> dict[str, Any]:
    sequences = config.steps * config.global_batch
    return {
        "architecture": config.architecture,
        "parameters": parameters,
        "steps": config.steps,
        "sequences": sequences,
        "tokens": sequences * config.sequence_length,
        "epochs": round(sequences / rows["training_rows"], 3),
        **rows,
        "held_out": held_out,
        "vocabulary_sha256": store.meta["tokenizer_sha256"],
    }


def _log_plan(config: PretrainConfig, world: World, parameters: int, rows: int, micro_batch: int) -> None:
    accumulation = config.global_batch // world.size // micro_batch
    log.info(
        "%s with %.2f M parameters, %d rows an epoch; a step is %d processes x %d micro-batches x %d sequences on %s",
        *(config.architecture, parameters / 1e6, rows, world.size, accumulation, micro_batch, world.device),
    )


def _log_first_row(batches: TrainingBatches, step: int, vocabulary: list[str], pieces: Pieces) -> None:
    """Show one masked row as the model gets it: most data bugs are visible there."""
    batch = batches.of_step(step)[0]
    shown = [vocabulary[id_] for id_ in batch.ids_BL[0].tolist()]
    for position, target in zip(batch.positions_BM[0].tolist(), batch.targets_BM[0].tolist(), strict=True):
        if target >= 0:
            shown[position] = f"<{shown[position]}|{vocabulary[target]}>"
    log.info("first row of step %d, <shown|to predict>: %s", step, " ".join(shown))


def _save_model(network: PreTrainedModel, weights: dict[str, Any], folder: Path) -> None:
    """Write config and weights under another name, then rename."""
    partial = folder.with_name(folder.name + PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    config = network.config
    config.architectures = [type(network).__name__]
    config.dtype = "float32"
    config.save_pretrained(partial)
    save_file(weights, partial / "model.safetensors", metadata={"format": "pt"})
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)


def _write_json(path: Path, content: Any) -> None:
    temporary = path.with_name(path.name + PARTIAL)
    temporary.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")
    temporary.replace(path)
