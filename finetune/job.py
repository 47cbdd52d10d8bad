"""One task, one encoder, one seed: train, predict, score, write ``predictions.jsonl`` and, last, ``scores.json``.

A folder whose ``scores.json`` has the same fingerprint (settings, data, encoder) is finished and skipped, so a killed
run loses only the jobs in progress.
"""

from __future__ import annotations

import gc
import logging
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from corpus.documents.accelerator import PrecisionName
from corpus.documents.atomic_files import write_json
from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig, Hyperparameters
from finetune.data.files import read_json, write_json_lines
from finetune.data.split import SPLIT_SEED, Data, hold_out, load_data
from finetune.encoder.loading import load_config, load_tokenizer, max_input_tokens
from finetune.ensemble.run import RECORDS_NAME, write_records
from finetune.examples import Example, Prediction, to_rows
from finetune.heads.lora import shape_model
from finetune.queue.jobs import PREDICTIONS_NAME, SCORES_NAME, Files, Job, deciding, digest, fingerprint_of
from finetune.registry import task_of
from finetune.saved_models.save import Trained, keep_best, save_or_remove
from finetune.score.bootstrap import SAMPLES, SEED
from finetune.score.scores import defined, defined_tables, find_errors, installed_versions, scores_record
from finetune.task import MemberRecord, Task, ToRecords
from finetune.train.batched_prediction import predict
from finetune.train.trainer import START_EPOCHS, seed_everything, train

log = logging.getLogger(__name__)

ERRORS_NAME = "errors.json"
Hide = Callable[[dict[str, Any]], dict[str, Any]]
PACKAGES = ("malmoi", "torch", "transformers", "tokenizers", "numpy")  # versions in results


def finetune_one(
    job: Job, precision: PrecisionName, data_folder: Path, out: Path, parts: int = 1, hide: Hide | None = None,
    samples: int = SAMPLES,
) -> dict[str, Any]:  # fmt: skip
    """Finish one job below ``out``, or find it finished; returns the content of its ``scores.json``.

    ``precision`` is the resolved ``config.precision``; ``parts`` further divides each step; ``hide`` is applied to the
    wrong predictions on a custom task, which quote texts; ``samples``: resamples of the intervals, 0 for none. Writes
    ``predictions.jsonl``, ``errors.json``, the scores for ensembles if they are enabled, the model as ``config.save``
    says, and ``scores.json`` last.
    """
    config = job.config
    task = task_of(job.task, config)
    data = load_data(task, data_folder, config)
    task = task.fit(data.training)
    settings = settings_of(task, config, job.encoder)
    origin = origin_of(job, task, precision, settings, {job.task: data.files})
    folder = job.folder(out)
    if (finished := find_result(job, task, out, origin["fingerprint"])) is not None:
        return finished
    settings = in_parts(settings, parts)
    for name in (SCORES_NAME, RECORDS_NAME):  # they mark an earlier training as finished
        (folder / name).unlink(missing_ok=True)
    began = time.perf_counter()
    trained, scored, about, records = _train_and_predict(task, job, precision, settings, data)
    rows = to_rows(data.scored, scored)
    write_json_lines(folder / PREDICTIONS_NAME, (row._asdict() for row in rows), private=bool(task.custom))
    errors = find_errors(task, data.scored, rows)
    write_json(folder / ERRORS_NAME, hide(errors) if hide and task.custom else errors)
    if records:
        write_records(folder / RECORDS_NAME, data.scored, task.group, records)
    result = {
        "task": job.task, "model": job.model, "settings": job.settings, "seed": job.seed, "protocol": config.protocol,
        "split": data.split, "is_official_dev": data.is_official_dev, "n": len(rows), "n_train": len(data.training),
        **scores_record(task, rows, data.training, data.scored, samples, SEED),
        **({"searched_on": config.searched_on} if config.searched_on else {}),
        "tables": defined_tables(task.inspection.tables(rows)),
        "hyperparameters": settings.recorded(), **about, "data": data.files, "versions": installed_versions(*PACKAGES),
        "seconds": round(time.perf_counter() - began, 1), "halved_for_memory": parts > 1, **origin,
        **({"own": task.custom} if task.custom else {}), **({"learned": task.learned} if task.learned else {}),
    }  # fmt: skip
    save_or_remove(folder, config, trained, result)
    del trained
    gc.collect()  # the model, before the next one
    write_json(folder / SCORES_NAME, result)
    keep_best(folder, config)
    return result


def settings_of(task: Task, config: FinetuneConfig, encoder: str) -> Hyperparameters:
    """The published hyperparameters for the size of the encoder, with overrides, limited to its input length."""
    override = config.overrides.get(task.name)
    encoder_config = load_config(encoder)
    start = task.hyperparameters_for(int(encoder_config.hidden_size))
    settings = start.replaced(**(override.chosen() if override else {}))
    if settings.average == "swa" and settings.epochs <= START_EPOCHS:
        raise BadInput(
            f"finetune.overrides.{task.name}: average=swa starts after epoch {START_EPOCHS}, but epochs is "
            f"{settings.epochs}; raise epochs"
        )
    most = max_input_tokens(encoder_config)
    return settings.replaced(max_tokens=min(settings.max_tokens, most or settings.max_tokens))


def _train_and_predict(
    task: Task, job: Job, precision: PrecisionName, settings: Hyperparameters, data: Data
) -> tuple[Trained, list[Prediction], dict[str, Any], list[MemberRecord]]:
    """The model, its predictions of the scored examples, the training's part of scores.json, and the records for
    ensembles."""
    config, tokenizer = job.config, load_tokenizer(job.encoder, task.special_tokens)
    pad_id, learned, unseen = int(tokenizer.pad_token_id), data.training, list[Example]()
    if task.tune and config.mrc_threshold_share:
        learned, unseen = hold_out(data.training, config.mrc_threshold_share, SPLIT_SEED, task.group)
    training, held, scored = (
        task.featurize(examples, tokenizer, settings.max_tokens, examples is learned) if examples else []
        for examples in (learned, unseen, data.scored)
    )
    if not training:
        raise BadInput(f"{job.task}: no training example can be used; the warnings above say why")
    seed = seed_everything(job.seed, job.task)
    model, merge, parameters = shape_model(task.model(job.encoder, tokenizer), task, config, tokenizer)

    def score(_: nn.Module) -> float:
        predictions = task.decode(data.scored, scored, predict(task, model, scored, pad_id, precision))
        return task.score(to_rows(data.scored, predictions))[task.select_by]

    report = train(
        task, model, training, settings, seed, pad_id, precision=precision, uses_cpu=config.device == "cpu",
        evaluations_per_epoch=config.evaluations_per_epoch, score=score,
        as_published=config.protocol == "klue-baseline",
    )  # fmt: skip
    merge()
    tuned = None
    if task.tune and unseen:
        tuned = {"n": len(unseen), **task.tune(model, unseen, held, predict(task, model, held, pad_id, precision))}
    about = {
        "losses": [round(loss, 5) for loss in report.losses], "steps": report.steps,
        "selected": {"by": task.select_by, **defined(report.selected._asdict())} if report.selected else None,
        "evaluations": [[step, None if math.isnan(score) else score] for step, score in report.evaluations],
        "tuned": tuned, **({"averaged": report.averaged} if report.averaged else {}),
        "features": {"train": len(training), "dev": len(scored)}, "parameters": parameters,
        "peak_mib": report.peak_mib, "device": next(model.parameters()).device.type, "precision": precision,
    }  # fmt: skip
    raws, keep = predict(task, model, scored, pad_id, precision), records_function(task, config)
    predictions, records = task.decode(data.scored, scored, raws), keep(data.scored, scored, raws) if keep else []
    return Trained(model, tokenizer), predictions, about, records


def origin_of(
    job: Job, task: Task, precision: PrecisionName, settings: Hyperparameters, files: Mapping[str, Files]
) -> dict[str, Any]:
    """What decides a result: recipe, encoder, revision of the task, and a digest of all."""
    recipe, encoder = deciding(job.task, job.config, precision, files), digest(job.encoder)
    return {
        "recipe": recipe,
        "encoder": encoder,
        "revision": task.revision,
        "fingerprint": fingerprint_of(job.task, job.seed, encoder, recipe, settings, task.revision),
    }


def in_parts(settings: Hyperparameters, parts: int) -> Hyperparameters:
    """The same steps in ``parts`` times as many parts; ``MemoryError`` if they cannot be smaller."""
    micro_batch = settings.batch_size // settings.accumulation
    if micro_batch % parts:
        raise MemoryError(f"a micro-batch of {micro_batch} cannot be halved")
    return settings.replaced(accumulation=settings.accumulation * parts)


def find_result(job: Job, task: Task, out: Path, fingerprint: str) -> dict[str, Any] | None:
    """The finished result of a job with everything that its recipe asks for, or None."""
    folder = job.folder(out)
    result = read_json(folder / SCORES_NAME) if (folder / SCORES_NAME).is_file() else None
    if result is None:
        return None
    if not isinstance(result, dict) or result.get("fingerprint") != fingerprint:
        log.info("%s: made from another encoder or by another release; training again", folder)
        return None
    if records_function(task, job.config) and not (folder / RECORDS_NAME).is_file():
        log.info("%s: kept no scores for ensembles; training again, with the same result", folder)
        return None
    return result


def records_function(task: Task, config: FinetuneConfig) -> ToRecords | None:
    """The function that makes a job's records for ensembles; None if none are kept or predictions are enough."""
    return task.ensembling.to_records if task.ensembling and (config.keep_scores or config.ensembles) else None
