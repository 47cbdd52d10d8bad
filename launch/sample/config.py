"""Setting of the embedded sample: how much of it is written."""

from __future__ import annotations

from pydantic import BaseModel, Field


class SampleConfig(BaseModel, frozen=True, extra="forbid"):
    """The embedded sample; its KLUE files are always whole, as ``finetune.max_train_examples`` makes those smaller."""

    share: float = Field(1.0, gt=0, le=1, description="Share of the documents, evenly spread over each source.")
