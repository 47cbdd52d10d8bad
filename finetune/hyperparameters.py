"""Hyperparameters of one training. The defaults of each task are those of KLUE-baseline (run_all.sh).

A recipe's ``finetune.overrides`` uses the same class: only the values that it sets replace those of the task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from corpus.documents.section import Section

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

    def values(self) -> dict[str, Any]:
        """All values, defaults included."""
        return {name: getattr(self, name) for name in type(self).model_fields}

    def recorded(self) -> dict[str, Any]:
        """As in ``scores.json``: the published hyperparameters, and the others where they are not the default."""
        return {
            name: value for name, value in self.values().items() if name in PUBLISHED or value != DEFAULT_VALUES[name]
        }


PUBLISHED = ("lr", "epochs", "batch_size", "warmup_share", "weight_decay", "max_tokens", "accumulation")
DEFAULT_VALUES: Mapping[str, Any] = Hyperparameters().values()
