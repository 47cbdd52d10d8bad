"""Tasks of the user's own as a recipe describes them: kind, files, columns, labels (``finetune.own``).

What only the data say (classes, the scale of numbers) ``finetune.tasks.own`` finds.
"""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, model_validator

from corpus.documents.section import Section

OWN_NAME = re.compile(r"[^\W\d_][\w-]*")
OwnKind = Literal["label", "pair", "similarity", "tagging", "span"]
OWN_COLUMNS: dict[OwnKind, tuple[str, ...]] = {  # what the files of a kind have
    "label": ("text", "label"),
    "pair": ("text", "label"),
    "similarity": ("text", "label"),
    "tagging": ("tokens", "tags", "text", "spans"),
    "span": ("question", "context", "answer", "start"),
}


class OwnColumns(Section):
    """What an own task is: its kind, what its columns are called, and its labels. A kept model carries this."""

    kind: OwnKind = Field(
        description="label: a text's class; pair: the class of two texts; similarity: a number for two texts; tagging: "
        "entities in a text; span: the answer to a question in a passage, or none."
    )
    text: str | tuple[str, str] | None = Field(None, description='Column of the text, two for pairs. Default: "text".')
    label: str | None = Field(None, description='Column of the class or the number. Default: "label".')
    tokens: str | None = Field(None, description='tagging: words, a list or parted by spaces. Default: "tokens".')
    tags: str | None = Field(None, description='tagging: B-, I- and O, one a word. Default: "tags".')
    spans: str | None = Field(None, description="tagging: JSON list of [start, end, label] in text, in place of tags.")
    question: str | None = Field(None, description='span: Default: "question".')
    context: str | None = Field(None, description='span: Default: "context".')
    answer: str | None = Field(None, description='span: words of the context, empty for none. Default: "answer".')
    start: str | None = Field(
        None, description="span: the answer's first character. Default: found, where it is clear."
    )
    guid: str | None = Field(None, description="Column that names the examples. Default: file and line do.")
    labels: tuple[str, ...] | None = Field(None, description="Classes or types in this order. Default: those of train.")

    @model_validator(mode="after")
    def _has_its_columns(self) -> OwnColumns:
        others = {name for names in OWN_COLUMNS.values() for name in names} - set(OWN_COLUMNS[self.kind])
        if named := sorted(name for name in others if getattr(self, name) is not None):
            raise ValueError(f"{', '.join(named)}: kind {self.kind} has {', '.join(OWN_COLUMNS[self.kind])}")
        is_pair = self.kind in ("pair", "similarity")
        if is_pair != isinstance(self.text, tuple):
            wanted = "two columns under text, as text: [question, answer]" if is_pair else "one column under text"
            raise ValueError(f"kind {self.kind} needs {wanted}")
        if self.labels is not None and (
            len(set(self.labels)) < len(self.labels) or self.kind in ("similarity", "span")
        ):
            raise ValueError(f"labels: a kind {self.kind} has none" if self.kind in ("similarity", "span") else
                             "labels: one stands there twice")  # fmt: skip
        return self


class OwnTask(OwnColumns, frozen=True, extra="forbid"):
    """A task of the user's own: CSV, TSV, JSON lines, a JSON list or CoNLL, plain or packed as .gz or .zst."""

    train: str | None = Field(None, description="File to train on; none: a part of dev, if split_dev names the task.")
    dev: str = Field(description="File to score on.")
    test: str | None = Field(None, description="File to predict only (predict_test).")
