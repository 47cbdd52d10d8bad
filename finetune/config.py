"""Recipe section ``finetune``. Defaults are those of KLUE-baseline (run_all.sh).

Learning rates, epochs and lengths differ between tasks: their defaults are in ``klue.yaml``. ``overrides`` replaces
single values; it uses the same class, of which only the values that are set count. ``settings`` names further trainings
by the keys of this section that they change.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from corpus.documents.accelerator import DeviceName
from corpus.documents.section import Section, problem_text
from finetune.custom_config import CUSTOM_NAME, CustomTask
from finetune.task_names import PAPER_NAMES, SHORT_NAMES, TASK_NAMES, full_name, short_name

NOT_WORTH_IT = "it was not shown to help in our measurements"


class Hyperparameters(Section):
    """Hyperparameters of one task; unset values are those of KLUE-baseline for the task and the size of the encoder."""

    removed: ClassVar[Mapping[str, str]] = {
        "ema_decay": f"the moving average of the weights was removed, because {NOT_WORTH_IT}; use average: swa",
        "average_after": "averaging starts after the first epoch",
        "head_lr_factor": NOT_WORTH_IT,
        "dropout": f"{NOT_WORTH_IT}; the dropout of the encoder's config.json is used",
        "r_drop": NOT_WORTH_IT,
        "fgm": NOT_WORTH_IT,
        "reset_layers": NOT_WORTH_IT,
    }

    lr: float = Field(5e-5, gt=0, description="Peak learning rate (published: 1e-5 to 5e-5).")
    epochs: int = Field(4, gt=0, description="Passes over the training examples (published: 3 to 15).")
    batch_size: int = Field(32, gt=0, description="Features per optimizer step (published: 8 to 32).")
    warmup_share: float = Field(0.1, ge=0, lt=1, description="Share of the steps in which the learning rate rises.")
    weight_decay: float = Field(0.0, ge=0, description="Weight decay of matrices; biases and norms have none.")
    max_tokens: int = Field(128, ge=16, description="Maximum input length in tokens, special tokens included.")
    accumulation: int = Field(1, gt=0, description="Gradient accumulation: parts of a step, to save memory.")
    schedule: Literal["linear", "cyclic-cosine"] = Field(
        "linear",
        description="Learning rate schedule. linear: warmup, then linear decay to 0. cyclic-cosine: five half periods "
        "of a cosine per epoch between lr and a tenth of it.",
    )
    average: Literal["none", "swa"] = Field(
        "none",
        description="Weights that are scored and saved. swa: stochastic weight averaging, the mean of the weights "
        "after each epoch but the first.",
    )
    swa_lr: float | None = Field(None, gt=0, description="Constant learning rate while swa averages. Default: lr.")
    layer_decay: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Layer-wise learning rate decay: rate of each layer relative to the layer above it.",
    )

    @model_serializer(mode="wrap")
    def _leave_out_unset_values(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if name in self.model_fields_set}

    def replaced(self, **changes: Any) -> Self:
        """A copy with other values, which are not validated."""
        return self.model_copy(update=changes)

    def chosen(self) -> dict[str, Any]:
        """The values that were set explicitly."""
        return self.model_dump(exclude_none=True)

    def recorded(self) -> dict[str, Any]:
        """As in ``scores.json``: the published hyperparameters, and the others where they are not the default."""
        return {name: value for name, value in self if name in PUBLISHED or value != DEFAULT_VALUES[name]}


PUBLISHED = ("lr", "epochs", "batch_size", "warmup_share", "weight_decay", "max_tokens", "accumulation")
DEFAULT_VALUES: Mapping[str, Any] = dict(Hyperparameters())


ProtocolName = Literal["malmoi", "klue-baseline"]
MODEL_INFO_NAME = "malmoi.json"  # in the folder of a saved model: its task, protocol and files
FRESH = "fresh:"  # prefix of an encoder's name: its architecture and tokenizer with random weights
CHANGEABLE = frozenset({
    "protocol", "pos_tags", "max_train_examples", "evaluations_per_epoch", "mrc_empty_windows", "mrc_threshold_share",
    "re_markers", "re_restricted", "overrides", "lora",
})  # fmt: skip


def _full_task_name(name: Any, info: ValidationInfo) -> Any:
    """The full name of a KLUE task, a custom task's name as it is. If ``custom`` is invalid, that is the error."""
    custom = (info.data or {}).get("custom", {name} if info.data is not None else ())
    return full_name(name, tuple(custom)) if isinstance(name, str) else name


AnyTaskName = Annotated[str, BeforeValidator(_full_task_name)]
SettingsName = Annotated[str, Field(pattern=r"^[^\W_][\w.-]*$", max_length=60)]
SearchValue = int | float | bool | str


class Lora(Section):
    """Low-rank adapters (LoRA, Hu et al. 2021) in the linear layers of the encoder, merged after training."""

    removed: ClassVar[Mapping[str, str]] = {
        "dropout": "adapters are trained without dropout",
        "targets": "all linear layers of the encoder get adapters",
    }

    rank: int = Field(16, gt=0, description="Rank of each adapter.")
    alpha: int = Field(32, gt=0, description="Scaling: the output of an adapter is multiplied by alpha / rank.")


class EnsembleConfig(Section):
    """An ensemble: the results of its members are averaged for each seed, and over all seeds."""

    models: tuple[str, ...] = Field((), description="Members, of finetune.models. Default: all.")
    settings: tuple[str, ...] | None = Field(
        None,
        description="Names of finetune.settings whose results are averaged together; '' means the recipe itself. "
        "Default: one ensemble for each of them.",
    )


class SearchConfig(Section):
    """Hyperparameter search: one study for each task and encoder."""

    removed: ClassVar[Mapping[str, str]] = {
        "trials_per_round": "no trial depends on another; trials sets their number",
        "prunes": "every trial is trained to its end; try fewer trials, or fewer epochs in space",
    }

    method: Literal["grid", "random"] = Field(
        "grid", description="grid: every combination once, in an order drawn by seed. random: independent draws."
    )
    trials: int | None = Field(None, gt=0, description="Number of combinations to try. Default: the whole grid.")
    seed: int = Field(42, description="Draws the combinations. Trainings use the first of finetune.seeds.")
    space: dict[str, tuple[SearchValue, ...] | None] = Field(
        default_factory=dict,
        description="Values to try for each hyperparameter; others have the values of the grid of paper section 5.2. "
        "null: do not search this hyperparameter.",
    )
    select_on: Literal["train", "dev"] = Field(
        "train", description="Scores that select: on a held-out part of train, or on dev as in the paper."
    )
    held_out_share: float = Field(0.2, gt=0, lt=1, description="Share of the training examples that is held out.")

    @field_validator("method", mode="before")
    @classmethod
    def _tpe_was_removed(cls, method: object) -> object:
        if method == "tpe":
            raise ValueError("tpe was removed: use random, whose best of 10 to 30 trials was within 0.1 points of it")
        return method

    @field_validator("space", mode="before")
    @classmethod
    def _single_values_are_lists(cls, space: object) -> object:
        """``batch_size: 16`` means ``batch_size: [16]``."""
        return {key: _as_list(values) for key, values in space.items()} if isinstance(space, dict) else space

    @field_validator("space")
    @classmethod
    def _values_are_hyperparameters(cls, space: dict[str, Any]) -> dict[str, Any]:
        known = Hyperparameters.model_fields
        for key in sorted(space.keys() - known.keys()):
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise ValueError(f"{key}: no such hyperparameter; {hint}")
        return {key: values if values is None else _read_values(key, values) for key, values in space.items()}

    @model_validator(mode="after")
    def _has_a_number_of_trials(self) -> SearchConfig:
        if self.method != "grid" and self.trials is None:
            raise ValueError(f"trials: method {self.method} needs a number of trials, for example trials: 40")
        return self


def _as_list(values: object) -> object:
    is_one = isinstance(values, int | float) or (isinstance(values, str) and "," not in values)
    return (values,) if is_one else values


def _read_values(key: str, values: tuple[SearchValue, ...]) -> tuple[SearchValue, ...]:
    """The values with the type of their hyperparameter; ``ValueError`` names the first that is invalid."""
    read = []
    for value in values:
        try:
            read.append(getattr(Hyperparameters.model_validate({key: value}), key))
        except ValidationError as error:
            raise ValueError(f"{key}: {value}: {problem_text(error.errors()[0])}") from None
    if not read or len(set(read)) < len(read):
        raise ValueError(f"{key}: list at least one value, and each once, as {key}: [1, 2], or null to leave it out")
    return tuple(read)


class FinetuneConfig(Section):
    """Tasks x models x settings x seeds; each combination is trained and scored once (paper section 5)."""

    renamed: ClassVar[Mapping[str, str]] = {"own": "custom"}
    removed: ClassVar[Mapping[str, str]] = {
        "dev_split_share": "a divided dev file always holds 20 % out for scoring",
        "split_seed": "splits and samples are drawn with seed 42, so that all results compare",
        "bootstrap_samples": "intervals always come from 200 resamples",
        "predict_test": "predict the test file with `malmoi predict`, then `malmoi finetune export` writes its format",
        "bidirectional": "decoders read from left to right; use an encoder where a token must see the text after it",
        "pooling": "encoders represent a text by [CLS], decoders by the last token",
        "start_from": "name the model/ folder of the other task's training in finetune.models",
    }

    custom: dict[str, CustomTask] = Field(  # before the fields that hold names of tasks
        default_factory=dict, description="Custom tasks by name. Without `tasks`, only these are trained."
    )
    data: str | None = Field(
        None,
        description="Folder with the layout of the KLUE repository, plain or .zst, or a folder of such folders. klue: "
        "download from the Hugging Face Hub.",
    )
    tasks: tuple[AnyTaskName, ...] = Field(TASK_NAMES, min_length=1, description="Tasks to train and score.")
    models: tuple[str, ...] = Field(
        ("model",),
        min_length=1,
        description='Encoders. "model" is the model of this run; others are folders or Hub names. "fresh:NAME": '
        "the same encoder with random weights, as a baseline.",
    )
    seeds: tuple[int, ...] = Field((42,), min_length=1, description="Random seeds, one training each (published: 42).")
    protocol: ProtocolName = Field(
        "malmoi",
        description="malmoi: our corrected evaluation. klue-baseline: reproduces the published code with its bugs, for "
        "comparison with Table 36.",
    )
    max_train_examples: int | None = Field(None, gt=0, description="Random sample of the training set. Default: all.")
    max_dev_examples: int | None = Field(None, gt=0, description="Random sample of the dev examples. Default: all.")
    split_dev: tuple[AnyTaskName, ...] = Field(
        (),
        description="Tasks that train on 80 % of their dev file and score on the rest if there is no training file. "
        "For other tasks a missing training file is an error.",
    )
    pos_tags: bool = Field(True, description="KLUE-DP: gold part-of-speech tags as input, as in the published scores.")
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="bf16: autocast in training and scoring. auto: bf16 where it is clearly faster."
    )
    device: DeviceName = Field("auto", description="cpu: use the CPU even if there is an accelerator.")
    evaluations_per_epoch: int = Field(
        0, ge=0, description="Evaluations on the scored split that select the best weights (published: 4). 0: the last."
    )
    overrides: dict[AnyTaskName, Hyperparameters] = Field(
        default_factory=dict, description="Hyperparameters by task that differ from the published ones."
    )
    mrc_empty_windows: float = Field(
        1.0, ge=0, le=1, description="KLUE-MRC: share of windows without an answer used in training (protocol malmoi)."
    )
    mrc_threshold_share: float = Field(
        0.0, ge=0, lt=1, description="KLUE-MRC: share of train that tunes the no-answer threshold (protocol malmoi)."
    )
    save: Literal["best", "all", "none"] = Field(
        "best", description="Models to save as Hugging Face folders: of the seed with the best score, of all, or none."
    )
    settings: dict[SettingsName, dict[str, Any]] = Field(
        default_factory=dict,
        description=f"Further trainings by name; each lists the keys that differ: {', '.join(sorted(CHANGEABLE))}.",
    )
    price_per_hour: float | None = Field(None, ge=0, description="Price of a device per hour, for the cost in the log.")
    re_markers: Literal["plain", "typed"] = Field(
        "plain", description="KLUE-RE: entity markers. typed: with the types of the entities (protocol malmoi)."
    )
    re_restricted: bool = Field(
        False, description="KLUE-RE: only relations that train has between these entity types (protocol malmoi)."
    )
    search: SearchConfig = Field(SearchConfig(), description="Hyperparameter search of `malmoi search`.")
    held_out_share: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Share of train, by group, that is scored instead of dev, to compare settings. 0: dev.",
    )
    searched_on: Literal["train", "dev"] | None = Field(
        None,
        description="Split that selected these hyperparameters. Set by `malmoi search` and reported with each score.",
    )
    lora: Lora | None = Field(
        None, description="Train low-rank adapters and the head instead of the encoder's weights (needs malmoi[lora])."
    )
    keep_scores: bool = Field(
        False, description="Save the scores that an ensemble needs next to each result (kept_scores.parquet)."
    )
    ensembles: dict[SettingsName, EnsembleConfig] = Field(
        default_factory=dict, description="Ensembles by name. They turn keep_scores on."
    )

    def with_settings(self, name: str) -> FinetuneConfig:
        """This configuration with the changes of ``settings[name]``; "" is the recipe itself.

        ValueError: a key cannot be changed by settings, or its value is invalid.
        """
        changes = {key: value for key, value in self.settings.get(name, {}).items() if value is not None}
        if not changes:
            return self
        for key in sorted(changes.keys() - CHANGEABLE - self.removed.keys()):
            near = get_close_matches(key, CHANGEABLE, n=1)
            hint = f"did you mean {near[0]}?" if near else f"keys here are: {', '.join(sorted(CHANGEABLE))}"
            raise ValueError(f"settings.{name}.{key}: unknown key; {hint}")
        values = self.model_dump(exclude_unset=True, exclude={"settings", "ensembles"})
        try:
            checked = FinetuneConfig.model_validate({**values, **changes})
            if "overrides" in changes:
                old = {task: self.overrides.get(task, Hyperparameters()) for task in checked.overrides}
                new = {task: old[task].replaced(**override.chosen()) for task, override in checked.overrides.items()}
                checked = checked.model_copy(update={"overrides": self.overrides | new})
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, ("settings", name, *first["loc"])))
            said = problem_text(first)
            raise ValueError(f"{place}: {said}" if first["loc"] else f"{place}.{said}") from None
        return self.model_copy(update={key: getattr(checked, key) for key in changes})

    @field_validator("settings")
    @classmethod
    def _names_are_not_seeds(cls, values: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        if bad := [name for name in values if name.startswith("seed-")]:
            raise ValueError(f"{bad[0]}: seed folders have such names; choose another name")
        return values

    @model_validator(mode="after")
    def _settings_are_valid(self) -> FinetuneConfig:
        for name in self.settings:
            self.with_settings(name)
        return self

    @model_validator(mode="after")
    def _ensembles_have_members(self) -> FinetuneConfig:
        for name, ensemble in self.ensembles.items():
            for key, known in (("models", self.models), ("settings", ("", *self.settings))):
                if unknown := {*(getattr(ensemble, key) or ())} - {*known}:
                    raise ValueError(f"ensembles.{name}: finetune.{key} has no {min(unknown)!r}")
            columns = len(ensemble.models or self.models) * len(ensemble.settings or "1")
            if columns * len(self.seeds) < 2:
                raise ValueError(f"ensembles.{name}: an ensemble needs at least two models or seeds")
        return self

    @model_validator(mode="before")
    @classmethod
    def _custom_tasks_replace_the_default(cls, values: Any) -> Any:
        custom = (values.get("custom") or values.get("own")) if isinstance(values, dict) else None
        return {"tasks": tuple(custom), **values} if isinstance(custom, dict) else values

    @field_validator("custom")
    @classmethod
    def _custom_names_are_free(cls, custom: dict[str, CustomTask]) -> dict[str, CustomTask]:
        for name in custom:
            if not CUSTOM_NAME.fullmatch(name):
                raise ValueError(f"{name}: use letters, digits, _ and -, and start with a letter")
            if (short := short_name(name)) in SHORT_NAMES | PAPER_NAMES:
                raise ValueError(f"{name}: KLUE has a task {(SHORT_NAMES | PAPER_NAMES)[short]}; choose another name")
        return custom

    @field_validator("tasks", "models", "seeds")
    @classmethod
    def _has_no_duplicates(cls, values: tuple[object, ...]) -> tuple[object, ...]:
        if len(set(values)) < len(values):
            raise ValueError(f"listed twice: {', '.join(sorted({str(v) for v in values if values.count(v) > 1}))}")
        return values
