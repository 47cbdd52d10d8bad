"""One study: a task and an encoder, its trials in order, and its two result files.

``trials.jsonl`` has a line for each finished trial; ``best.json`` has the best trial and the settings of the study.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus.documents.atomic_files import atomic_write
from finetune.config import FinetuneConfig, SearchConfig
from finetune.data.files import write_json
from finetune.hyperparameters import Hyperparameters
from finetune.queue.jobs import Job, folder_name
from finetune.search.grid import Values, fixed_values, search_values, trial_count
from finetune.search.propose import Trial

TRIALS_NAME, BEST_NAME = "trials.jsonl", "best.json"


@dataclass
class Study:
    """What is searched, and the trials of the finished rounds."""

    task: str
    model: str
    encoder: str
    config: FinetuneConfig  # that of its trials, without the values of any
    metric: str
    scored_on: str
    trials: list[Trial] = field(default_factory=list)

    def folder(self, out: Path) -> Path:
        return out / self.task / folder_name(self.model)

    def overrides(self, values: Values) -> Hyperparameters:
        """The hyperparameters of a trial with these values."""
        before = self.config.overrides.get(self.task, Hyperparameters())
        return before.replaced(**values)

    def job(self, values: Values) -> Job:
        """The training of a trial."""
        overrides = {**self.config.overrides, self.task: self.overrides(values)}
        config = self.config.model_copy(update={"overrides": overrides})
        return Job(self.task, self.model, self.encoder, config.seeds[0], config)


def trial_config(config: FinetuneConfig, task: str) -> FinetuneConfig:
    """The configuration of all trials of a task: scored on a part of train or on dev, with nothing saved."""
    search = config.search
    fixed = fixed_values(search, task, is_custom=task in config.custom)
    before = config.overrides.get(task, Hyperparameters())
    if "max_tokens" not in before.model_fields_set:
        before = before.replaced(**fixed)
    return config.model_copy(
        update={
            "held_out_share": search.held_out_share if search.select_on == "train" else 0.0,
            "searched_on": None, "save": "none", "bootstrap_samples": 0, "predict_test": False,
            "overrides": {**config.overrides, task: before},
        }
    )  # fmt: skip


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The complete trial with the highest score, the first of equals; None if none is complete."""
    complete = [trial for trial in trials if trial.state == "complete" and trial.score is not None]
    return max(complete, key=lambda trial: (trial.numeric_score, -trial.number), default=None)


def write_study(study: Study, trials: Sequence[Trial], search: SearchConfig, out: Path) -> None:
    """Write ``trials.jsonl`` and ``best.json`` from the trials known so far."""
    folder = study.folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(_line(study, trial), ensure_ascii=False) + "\n" for trial in trials)
    atomic_write(folder / TRIALS_NAME, "".join(lines))
    write_json(folder / BEST_NAME, _summary(study, trials, search))


def _line(study: Study, trial: Trial) -> dict[str, Any]:
    fields = {key: value for key, value in trial._asdict().items() if value is not None or key == "score"}
    return {**fields, "metric": study.metric, "scored_on": study.scored_on}


def _summary(study: Study, trials: Sequence[Trial], search: SearchConfig) -> dict[str, Any]:
    best = best_of(trials)
    states = [trial.state for trial in trials]
    return {
        "task": study.task, "model": study.model, "metric": study.metric, "scored_on": study.scored_on,
        "selected_on": search.select_on,
        "search": {**search.model_dump(mode="json"), "space": search_values(search), "size": trial_count(search)},
        "trials": len(trials), **{state: states.count(state) for state in ("complete", "pruned", "failed")},
        "seconds": round(sum(trial.seconds for trial in trials), 1),
        "best": None if best is None else {"number": best.number, "values": best.values, "score": best.score,
                                           "overrides": study.overrides(best.values).chosen()},
    }  # fmt: skip
