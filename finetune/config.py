"""Settings of the finetune stage; defaults are the published configuration (KLUE-baseline, run_all.sh).

Learning rates, epochs and lengths differ from task to task, so their defaults stand with the tasks
(``finetune.task.Hyperparameters``); ``overrides`` replaces single values of single tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from corpus.documents.accelerator import DeviceName
from corpus.documents.errors import BadInput
from corpus.documents.section import Section
from finetune.sections.ensembles import Ensemble, check_ensembles
from finetune.sections.own import OWN_NAME, OwnTask
from finetune.sections.spaces import SearchConfig, Value
from finetune.sections.starts import check_starts

TaskName = Literal["ynat", "klue-sts", "klue-nli", "klue-ner", "klue-re", "klue-dp", "klue-mrc", "wos"]
ProtocolName = Literal["malmoi", "klue-baseline"]
PoolingName = Literal["cls", "last", "mean"]
ScheduleName = Literal["linear", "cyclic-cosine"]
MarkerName = Literal["plain", "typed"]
AverageName = Literal["none", "swa", "ema"]
KEPT_NAME = "malmoi.json"  # in the folder of a kept model: its task, protocol and files
FRESH = "fresh:"  # before an encoder's name: its architecture and tokenizer, weights at random
TASK_NAMES: tuple[TaskName, ...] = get_args(TaskName)
SHORT_NAMES: dict[str, TaskName] = {name.removeprefix("klue-"): name for name in TASK_NAMES}
PAPER_NAMES: dict[str, TaskName] = {"tc": "ynat", "dst": "wos"}  # where the paper calls a task otherwise


def full_name(name: str, own: Iterable[str] = ()) -> str:
    """A task's own name from any of its names; ``BadInput`` with the nearest ones, those of ``own`` tasks too, where
    there is none.

    >>> full_name("ner"), full_name("KLUE-NER"), full_name("klue-dst")
    ('klue-ner', 'klue-ner', 'wos')
    """
    known: dict[str, str] = {**SHORT_NAMES, **PAPER_NAMES, **{other: other for other in own}}
    short = name if name in known else _short(name)
    if short in known:
        return known[short]
    near = sorted(get_close_matches(short, known, n=2), key=lambda other: sorted(other) != sorted(short))
    hint = f"did you mean {' or '.join(known[other] for other in near)}? The" if near else "the"
    raise BadInput(f"{name}: no such task; {hint} tasks are {', '.join([*TASK_NAMES, *own])}")


def _short(name: str) -> str:
    return name.lower().replace("_", "-").removeprefix("klue-")


def place_of(name: str) -> tuple[int, str]:
    """Where a task stands among others: those of KLUE as in the paper, then own ones by name."""
    return (TASK_NAMES.index(name), "") if name in TASK_NAMES else (len(TASK_NAMES), name)


def _known_name(name: Any, info: ValidationInfo) -> Any:
    """An own task's name as it stands, a KLUE task's in full; where ``own`` is wrong that is the problem to tell."""
    own = (info.data or {}).get("own", {name} if info.data is not None else ())
    return full_name(name, tuple(own)) if isinstance(name, str) else name


AnyTaskName = Annotated[str, BeforeValidator(_known_name)]


class SwitchOverride(Section):
    """What the published training does not do; None keeps it off, or a number of it at its default."""

    schedule: ScheduleName | None = Field(
        None, description="Of the rate. cyclic-cosine: five times in an epoch from lr to a tenth of it or back."
    )
    average: AverageName | None = Field(
        None,
        description="Weights that are scored and kept: swa: the mean of those after each epoch; ema: of those after "
        "each step, older ones counting less.",
    )
    average_after: int | None = Field(None, ge=0, description="Epochs before the first that is averaged (default: 1).")
    swa_lr: float | None = Field(None, gt=0, description="Constant rate while swa averages (default: lr).")
    ema_decay: float | None = Field(None, ge=0, lt=1, description="What an ema keeps of itself a step (default: 0.99).")
    layer_decay: float | None = Field(
        None, gt=0, le=1, description="Rate of each layer as a share of the next higher one's, embeddings the lowest."
    )
    head_lr_factor: float | None = Field(None, gt=0, description="Rate of all outside the encoder, in units of lr.")
    dropout: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="Share that the dropout layers drop (default: as config.json of the encoder says).",
    )
    r_drop: float | None = Field(
        None, ge=0, description="Weight of the difference between two passes under dropout; 0: one pass. Label tasks."
    )
    fgm: float | None = Field(
        None, ge=0, description="Length by which the embeddings of a text move against the loss; 0: none."
    )
    reset_layers: int | None = Field(None, ge=0, description="Highest layers that start again from random weights.")


class HyperparameterOverride(SwitchOverride, frozen=True, extra="forbid"):
    """Values of one task that replace its published ones; None keeps the published value."""

    lr: float | None = Field(None, gt=0, description="Peak learning rate (published: 3e-5 or 5e-5).")
    epochs: int | None = Field(None, gt=0, description="Passes over the training examples (published: 3 to 10).")
    batch_size: int | None = Field(None, gt=0, description="Features per step (published: 16 or 32).")
    warmup_share: float | None = Field(None, ge=0, lt=1, description="Share of steps with a rising rate.")
    weight_decay: float | None = Field(None, ge=0, description="Decay of matrices, not of biases and norms.")
    max_tokens: int | None = Field(None, ge=16, description="Longest input in tokens, specials included.")
    accumulation: int | None = Field(None, gt=0, description="Parts in which a step is done, to save memory.")


SettingsName = Annotated[str, Field(pattern=r"^[^\W_][\w.-]*$", max_length=60)]


class Lora(Section):
    """Low-rank adapters in place of the encoder's own weights (Hu et al. 2021), merged after the training."""

    rank: int = Field(16, gt=0, description="Rank of each adapter.")
    alpha: int = Field(32, gt=0, description="What an adapter adds is multiplied by alpha / rank.")
    dropout: float = Field(0.0, ge=0, lt=1, description="Dropout of the adapters' inputs.")
    targets: tuple[str, ...] = Field(
        (),
        description="Layers with adapters, by the ends of their names (q_proj, v_proj); none named: all linear ones.",
    )


class Settings(Section):
    """What differs in further trainings of the same tasks, models and seeds; None is as the recipe says."""

    protocol: ProtocolName | None = Field(None, description="As finetune.protocol.")
    pos_tags: bool | None = Field(None, description="As finetune.pos_tags.")
    max_train_examples: int | None = Field(None, gt=0, description="As finetune.max_train_examples.")
    evaluations_per_epoch: int | None = Field(None, ge=0, description="As finetune.evaluations_per_epoch.")
    mrc_empty_windows: float | None = Field(None, ge=0, le=1, description="As finetune.mrc_empty_windows.")
    mrc_threshold_share: float | None = Field(None, ge=0, lt=1, description="As finetune.mrc_threshold_share.")
    re_markers: MarkerName | None = Field(None, description="As finetune.re_markers.")
    re_restricted: bool | None = Field(None, description="As finetune.re_restricted.")
    overrides: dict[str, HyperparameterOverride] = Field(  # FinetuneConfig knows the names of tasks
        default_factory=dict, description="Hyperparameters by task; what is not named is as in finetune.overrides."
    )
    pooling: PoolingName | None = Field(None, description="As finetune.pooling.")
    bidirectional: bool | None = Field(None, description="As finetune.bidirectional.")
    lora: Lora | None = Field(None, description="As finetune.lora.")
    start_from: dict[str, str] | None = Field(None, description="As finetune.start_from; {}: from the encoder itself.")


def _read_values(key: str, values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Values of a search as their hyperparameter reads them; ``ValueError`` names the first that it refuses."""
    read = []
    for value in values:
        try:
            read.append(getattr(HyperparameterOverride.model_validate({key: value}), key))
        except ValidationError as error:
            raise ValueError(f"space.{key}: {value}: {error.errors()[0]['msg']}") from None
    if not read or len(set(read)) < len(read):
        raise ValueError(f"space.{key}: name at least one value and each once, as {key}: [1, 2], or null to leave it")
    return tuple(read)


class FinetuneConfig(Section):
    """Tasks x models x settings x seeds, each trained and scored once (paper section 5)."""

    own: dict[str, OwnTask] = Field(  # before the fields that name tasks
        default_factory=dict, description="Tasks of your own by name; without `tasks` they alone are trained."
    )
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
    mrc_empty_windows: float = Field(
        1.0,
        ge=0,
        le=1,
        description="KLUE-MRC: share of the windows without an answer that train, at least one a question "
        "(protocol malmoi).",
    )
    mrc_threshold_share: float = Field(
        0.0,
        ge=0,
        lt=1,
        description='KLUE-MRC: share of the training questions held out to choose by how much "no answer" must be '
        "ahead; 0: by nothing (protocol malmoi).",
    )
    save: Literal["best", "all", "none"] = Field(
        "best",
        description="Models that stay, as a Hugging Face folder model/ of each training: of all its seeds the one that "
        "scored best (equal: the lower seed), all of them, or none.",
    )
    settings: dict[SettingsName, Settings] = Field(
        default_factory=dict, description="Further settings by name, trained beside those of the recipe."
    )
    price_per_hour: float | None = Field(None, ge=0, description="Of one device, for the cost shown while it trains.")
    re_markers: MarkerName = Field(
        "plain", description="KLUE-RE: typed writes the types of the two entities into the text (protocol malmoi)."
    )
    re_restricted: bool = Field(
        False,
        description="KLUE-RE: only relations that training has between such types are predicted (protocol malmoi).",
    )
    search: SearchConfig = Field(SearchConfig(), description="What `malmoi search` tries.")
    held_out_share: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Of the training examples: share held out by whole groups and scored in place of dev, to compare "
        "settings without a look at dev; 0: dev is scored.",
    )
    searched_on: Literal["train", "dev"] | None = Field(
        None, description="Where a search chose these hyperparameters; every score says so. `malmoi search` sets it."
    )
    pooling: PoolingName | None = Field(
        None,
        description="What a text's label, KLUE-MRC's \"no answer\", KLUE-DP's root and WoS start from: the state of "
        "[CLS], that of the last token, or the mean of all; none: last of decoders, cls of encoders.",
    )
    bidirectional: bool = Field(
        False, description="Decoders see the whole text from every position (as LLM2Vec), not only what is to the left."
    )
    lora: Lora | None = Field(
        None, description="Train low-rank adapters and the head, not the encoder's weights (needs malmoi[lora])."
    )
    start_from: dict[AnyTaskName, AnyTaskName] = Field(
        default_factory=dict,
        description="Tasks that start from another one's trained encoder, and which: {klue-sts: klue-nli} trains "
        "KLUE-STS with each seed from what KLUE-NLI made of the encoder with that seed.",
    )
    keep_scores: bool = Field(
        False,
        description="Keep beside each result what an ensemble needs of the scored examples (kept_scores.parquet).",
    )
    ensembles: dict[SettingsName, Ensemble] = Field(
        default_factory=dict, description="Ensembles by name, made of kept scores (keep_scores is then on)."
    )

    def under(self, name: str) -> FinetuneConfig:
        """The configuration with further settings in it; "" is the recipe's own."""
        if not name:
            return self
        other = self.settings[name]
        changed = {key: value for key, value in other if value is not None and key != "overrides"}
        overrides = dict(self.overrides)
        for task, override in other.overrides.items():
            before = overrides.get(task, HyperparameterOverride())
            overrides[task] = before.model_copy(update=override.model_dump(exclude_none=True))
        return self.model_copy(update={**changed, "overrides": overrides})

    @field_validator("search")
    @classmethod
    def _searches_hyperparameters(cls, search: SearchConfig) -> SearchConfig:
        known = HyperparameterOverride.model_fields
        for key in sorted(search.space.keys() - known.keys()):
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise ValueError(f"space.{key}: no such hyperparameter; {hint}")
        read = {key: _read_values(key, values) for key, values in search.space.items() if values is not None}
        return search.model_copy(update={"space": {**search.space, **read}})

    @field_validator("settings")
    @classmethod
    def _names_folders_and_tasks(cls, values: dict[str, Settings], info: ValidationInfo) -> dict[str, Settings]:
        if bad := [name for name in values if name.startswith("seed-")]:
            raise ValueError(f"{bad[0]}: folders of seeds are called so; give these settings another name")
        full = partial(_known_name, info=info)
        named = {}
        for name, other in values.items():
            starts = other.start_from and {full(task): full(source) for task, source in other.start_from.items()}
            overrides = {full(task): override for task, override in other.overrides.items()}
            named[name] = other.model_copy(update={"overrides": overrides, "start_from": starts})
        return named

    @model_validator(mode="after")
    def _starts_are_trained(self) -> FinetuneConfig:
        for name in ("", *self.settings):
            where = f"settings.{name}.start_from" if name else "start_from"
            check_starts(self.under(name).start_from, self.tasks, where)
        return self

    @model_validator(mode="after")
    def _ensembles_have_members(self) -> FinetuneConfig:
        check_ensembles(self.ensembles, self.models, tuple(self.settings), self.seeds)
        return self

    @model_validator(mode="before")
    @classmethod
    def _own_tasks_alone(cls, values: Any) -> Any:
        alone = isinstance(values, dict) and isinstance(values.get("own"), dict) and values["own"]
        return {"tasks": tuple(values["own"]), **values} if alone else values

    @field_validator("own")
    @classmethod
    def _has_names_of_its_own(cls, own: dict[str, OwnTask]) -> dict[str, OwnTask]:
        for name in own:
            if not OWN_NAME.fullmatch(name):
                raise ValueError(f"{name}: a task is named by letters, digits, _ and -, a letter first")
            if (short := _short(name)) in SHORT_NAMES | PAPER_NAMES:
                raise ValueError(f"{name}: KLUE has a task {(SHORT_NAMES | PAPER_NAMES)[short]}; choose another name")
        return own

    @field_validator("tasks", "models", "seeds")
    @classmethod
    def _has_no_duplicates(cls, values: tuple[object, ...]) -> tuple[object, ...]:
        if len(set(values)) < len(values):
            raise ValueError(f"named twice: {', '.join(sorted({str(v) for v in values if values.count(v) > 1}))}")
        return values
