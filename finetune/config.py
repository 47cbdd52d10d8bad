"""Settings of the finetune stage; defaults are the published configuration (KLUE-baseline, run_all.sh).

Learning rates, epochs and lengths differ from task to task, so their defaults stand with the tasks
(``finetune.task.Hyperparameters``); ``overrides`` replaces single values of single tasks.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, BeforeValidator, Field, field_validator

from corpus.documents.device import DeviceName
from corpus.documents.errors import BadInput

TaskName = Literal["ynat", "klue-sts", "klue-nli", "klue-ner", "klue-re", "klue-dp", "klue-mrc", "wos"]
ProtocolName = Literal["malmoi", "klue-baseline"]
FRESH = "fresh:"  # before an encoder's name: its architecture and tokenizer, weights at random
TASK_NAMES: tuple[TaskName, ...] = get_args(TaskName)
SHORT_NAMES: dict[str, TaskName] = {name.removeprefix("klue-"): name for name in TASK_NAMES}
PAPER_NAMES: dict[str, TaskName] = {"tc": "ynat", "dst": "wos"}  # where the paper calls a task otherwise


def full_name(name: str) -> TaskName:
    """A task's own name from any of its names; ``BadInput`` with the nearest ones where there is none.

    >>> full_name("ner"), full_name("KLUE-NER"), full_name("klue-dst")
    ('klue-ner', 'klue-ner', 'wos')
    """
    known = SHORT_NAMES | PAPER_NAMES
    short = name.lower().replace("_", "-").removeprefix("klue-")
    if short in known:
        return known[short]
    near = sorted(get_close_matches(short, known, n=2), key=lambda other: sorted(other) != sorted(short))
    hint = f"did you mean {' or '.join(known[other] for other in near)}? The" if near else "the"
    raise BadInput(f"{name}: no such task; {hint} tasks are {', '.join(TASK_NAMES)}")


AnyTaskName = Annotated[TaskName, BeforeValidator(lambda name: full_name(name) if isinstance(name, str) else name)]


class HyperparameterOverride(BaseModel, frozen=True, extra="forbid"):
    """Values of one task that replace its published ones; None keeps the published value."""

    lr: float | None = Field(None, gt=0, description="Peak learning rate (published: 3e-5 or 5e-5).")
    epochs: int | None = Field(None, gt=0, description="Passes over the training examples (published: 3 to 10).")
    batch_size: int | None = Field(None, gt=0, description="Features per step (published: 16 or 32).")
    warmup_share: float | None = Field(None, ge=0, lt=1, description="Share of steps with a rising rate.")
    weight_decay: float | None = Field(None, ge=0, description="Decay of matrices, not of biases and norms.")
    max_tokens: int | None = Field(None, ge=16, description="Longest input in tokens, specials included.")
    accumulation: int | None = Field(None, gt=0, description="Parts in which a step is done, to save memory.")


class FinetuneConfig(BaseModel, frozen=True, extra="forbid"):
    """Tasks x models x seeds, each trained and scored once (paper section 5)."""

    data: str | None = Field(
        None, description="Folder laid out like the KLUE repository, plain or .zst; may hold several such folders."
    )
    tasks: tuple[AnyTaskName, ...] = Field(TASK_NAMES, min_length=1, description="Tasks to train and score.")
    models: tuple[str, ...] = Field(
        ("model",),
        min_length=1,
        description='Encoders: "model" is this run\'s own, else a folder or a Hub name; '
        '"fresh:" before a name: the same encoder with random weights, as a baseline.',
    )
    seeds: tuple[int, ...] = Field((42,), min_length=1, description="One training per seed (published: 42 only).")
    protocol: ProtocolName = Field(
        "malmoi",
        description="How text becomes features and outputs become predictions: malmoi is right, klue-baseline compares "
        "with the published figures (its alignment, its decoding, its faults).",
    )
    max_train_examples: int | None = Field(None, gt=0, description="Seeded sample of the training examples; none: all.")
    max_dev_examples: int | None = Field(None, gt=0, description="Seeded sample of the dev examples; none: all.")
    split_dev: tuple[AnyTaskName, ...] = Field(
        (), description="Tasks that may train on a part of their dev file where there is no train file; others refuse."
    )
    dev_split_share: float = Field(
        0.2, gt=0, lt=1, description="Of a divided dev file (split_dev): share held out for scoring, the rest trains."
    )
    split_seed: int = Field(42, description="Draws splits and samples, the same for all trainings.")
    bootstrap_samples: int = Field(
        200, ge=0, description="Resamples of the predictions behind each 95 % interval; 0: no intervals."
    )
    pos_tags: bool = Field(
        True, description="KLUE-DP: gold part-of-speech tags are among the inputs, as in the published scores."
    )
    predict_test: bool = Field(
        False, description="Also predict the test file of each task and write it in its own layout beside the scores."
    )
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="bf16: autocast in training and scoring; auto: bf16 where it is clearly faster, else fp32."
    )
    device: DeviceName = Field("auto", description="cpu: the processor, even where there is an accelerator.")
    evaluations_per_epoch: int = Field(
        0,
        ge=0,
        description="Evaluations on the scored split in an epoch, the best weights kept; 0: the last weights are "
        "(published: 4, so each published figure is the maximum over the split that it reports).",
    )
    overrides: dict[AnyTaskName, HyperparameterOverride] = Field(
        default_factory=dict, description="Hyperparameters by task that differ from the published ones."
    )
    save: Literal["best", "all", "none"] = Field(
        "best",
        description="Models that stay, as a Hugging Face folder model/ of each training: of all its seeds the one that "
        "scored best (equal: the lower seed), all of them, or none.",
    )

    @field_validator("tasks", "models", "seeds")
    @classmethod
    def _has_no_duplicates(cls, values: tuple[object, ...]) -> tuple[object, ...]:
        if len(set(values)) < len(values):
            raise ValueError(f"named twice: {', '.join(sorted({str(v) for v in values if values.count(v) > 1}))}")
        return values
