"""The jobs of a fine-tuning: which are done, which failed, and which host works on which. Nothing is written."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from corpus.documents.errors import BadInput
from corpus.documents.locks import read_lock_holder
from finetune.config import FinetuneConfig
from finetune.queue.claims import CLAIM_NAME
from finetune.queue.jobs import FAILED_NAME, SCORES_NAME, Job, folder_name, plan
from launch.checks.jobs import has_settings_of
from launch.cluster.status.lines import read_record

DEPTHS = ("*/*/seed-*", "*/*/*/seed-*")  # of a job's folder, the second with settings
UNKNOWN = "a host that does not say"


def read_jobs(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Counts of a finetune folder, as JSON; ``settings``: those that the stage was begun with.

    "planned" and "left" are None where the settings cannot be read. "running" counts claims by host, those of
    processes of this host that are gone left out ("abandoned").
    """
    homes = sorted(home for depth in DEPTHS for home in folder.glob(depth) if home.is_dir())
    results = {home: found for home in homes if (found := read_record(home / SCORES_NAME))}
    failed = [home for home in homes if home not in results and (home / FAILED_NAME).is_file()]
    running, abandoned = Counter[str](), 0
    for home in homes:
        if home in results or home in failed or not (home / CLAIM_NAME).is_file():
            continue
        holder = read_lock_holder(home / CLAIM_NAME)
        if holder is not None and holder.lives is False:
            abandoned += 1
        else:
            running[holder.host if holder else UNKNOWN] += 1
    planned = _planned(settings)
    done = len(results) if planned is None else sum(_is_done(job, results, folder) for job in planned)
    return {
        "planned": None if planned is None else len(planned),
        "done": done,
        "failed": len(failed),
        "running": dict(running),
        "abandoned": abandoned,
        "left": None if planned is None else len(planned) - done,
        "failures": {str(home.relative_to(folder)): _why(home) for home in failed},
    }


def _planned(settings: dict[str, Any]) -> list[Job] | None:
    try:
        config = FinetuneConfig.model_validate(settings)
        return list(dict.fromkeys(plan(config, {name: name for name in config.models})))
    except (ValidationError, BadInput):
        return None


def _is_done(job: Job, results: dict[Path, dict[str, Any]], folder: Path) -> bool:
    """Whether a result of its settings is there; which encoder it is of is left to the run, which reads that."""
    for home, result in results.items():
        task, model, *_, seed = home.relative_to(folder).parts
        is_its_own = (task, model, seed) == (job.task, folder_name(job.model), f"seed-{job.seed}")
        if is_its_own and isinstance(result.get("recipe"), dict) and has_settings_of(result, job):
            return True
    return False


def _why(home: Path) -> str:
    return str((read_record(home / FAILED_NAME) or {}).get("failure", "gave no reason"))
