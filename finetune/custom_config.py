"""Recipe section ``finetune.custom``: a custom task, described by its kind, files, columns and labels.

Classes and the scale of numbers come from the training file (``finetune.tasks.custom.task``).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal
from unicodedata import normalize

from pydantic import BeforeValidator, Field, field_validator, model_validator

from corpus.documents.section import Section

CUSTOM_NAME = re.compile(r"[^\W\d_][\w-]*")
CustomKind = Literal["label", "pair", "similarity", "choice", "tagging", "span"]
COLUMNS_OF_KIND: dict[CustomKind, tuple[str, ...]] = {
    "label": ("text", "label"),
    "pair": ("text", "label"),
    "similarity": ("text", "label"),
    "choice": ("text", "choices", "label", "first", "phrases"),
    "tagging": ("tokens", "tags", "text", "spans"),
    "span": ("question", "context", "answer", "start"),
}


def label_text(value: Any) -> str:
    """A label in NFC; whole numbers become text. ``ValueError`` for others, such as true, which YAML reads for yes."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError('a label is a text; put yes, no, on, off, null and 0.5 in quotes, such as "yes"')
    return normalize("NFC", str(value))


def spell_label(label: Any) -> Any:
    """A label as golds and predictions are compared: a whole number as text, without spaces around it, and ``true`` of
    ``TRUE`` (Excel) and ``True`` (pandas), which files mix. Other values, such as 1.0, unchanged."""
    if not isinstance(label, str | bool | int):
        return label
    text = normalize("NFC", str(label)).strip()
    return text.lower() if text.lower() in ("true", "false") else text


Label = Annotated[str, BeforeValidator(label_text)]


class CustomColumns(Section):
    """Kind, column names and labels of a custom task. A saved model stores this description."""

    kind: CustomKind = Field(
        description="label: one class per text. pair: one class per two texts. similarity: a number for two texts. "
        "choice: the right one of several answers. tagging: entities in a text. "
        "span: the answer to a question in a passage, or no answer."
    )
    text: str | tuple[str, str] | None = Field(
        None, description='Text column; two for pair and similarity, one or two for choice. Default: "text".'
    )
    choices: tuple[str, ...] | None = Field(None, description="choice: columns of the possible answers.")
    first: Literal[0, 1] | None = Field(
        None, description="choice: label of the first answer, if labels are numbers. Default: from the training file."
    )
    phrases: dict[str, str] | None = Field(
        None, description="choice: what replaces values of the second text column. Default: nothing."
    )
    label: str | None = Field(None, description='Column of the class, the number or the answer. Default: "label".')
    tokens: str | None = Field(None, description='tagging: words, a list or separated by spaces. Default: "tokens".')
    tags: str | None = Field(None, description='tagging: BIO tags, one per word. Default: "tags".')
    spans: str | None = Field(
        None, description="tagging: JSON list of [start, end, label] in text, as an alternative to tags."
    )
    question: str | None = Field(None, description='span: question column. Default: "question".')
    context: str | None = Field(None, description='span: passage column. Default: "context".')
    answer: str | None = Field(
        None, description='span: answer text from the passage, empty for no answer. Default: "answer".'
    )
    start: str | None = Field(
        None, description="span: offset of the answer's first character. Default: the only place of the answer."
    )
    guid: str | None = Field(None, description="Column with example ids. Default: file name and line number.")
    labels: tuple[Label, ...] | None = Field(
        None, description="Classes or entity types in this order. Default: those of the training file."
    )

    @property
    def text_fields(self) -> tuple[str, ...]:
        """The columns of the texts, which are also the names of an example's inputs."""
        return self.text if isinstance(self.text, tuple) else (self.text or "text",)

    @property
    def has_spans(self) -> bool:
        """Whether a table of kind tagging has texts and spans, not words and tags."""
        return self.spans is not None or self.text is not None

    @property
    def gold_field(self) -> str:
        """The column of the labels."""
        if self.kind == "tagging":
            return (self.spans or "spans") if self.has_spans else (self.tags or "tags")
        return (self.answer or "answer") if self.kind == "span" else (self.label or "label")

    @field_validator(*{name for names in COLUMNS_OF_KIND.values() for name in names})
    @classmethod
    def _in_nfc(cls, names: Any) -> Any:
        if isinstance(names, dict):
            return {cls._in_nfc(key): cls._in_nfc(value) for key, value in names.items()}
        if isinstance(names, tuple):
            return tuple(map(cls._in_nfc, names))
        return normalize("NFC", names) if isinstance(names, str) else names

    @model_validator(mode="after")
    def _has_the_columns_of_its_kind(self) -> CustomColumns:
        others = {name for names in COLUMNS_OF_KIND.values() for name in names} - set(COLUMNS_OF_KIND[self.kind])
        if named := sorted(name for name in others if getattr(self, name) is not None):
            raise ValueError(f"{', '.join(named)}: kind {self.kind} has {', '.join(COLUMNS_OF_KIND[self.kind])}")
        is_pair = self.kind in ("pair", "similarity")
        if self.kind != "choice" and is_pair != isinstance(self.text, tuple):
            expected = "two columns under text, as text: [question, answer]" if is_pair else "one column under text"
            raise ValueError(f"kind {self.kind} needs {expected}")
        if self.labels is not None and self.kind in ("similarity", "choice", "span"):
            raise ValueError(f"labels: kind {self.kind} has no labels")
        if self.labels is not None and len(set(map(spell_label, self.labels))) < len(self.labels):
            raise ValueError("labels: a label is listed twice; True and true are one label")
        columns = (*self.text_fields, *(self.choices or ()))
        if self.kind == "choice" and len(self.choices or ()) < 2:
            raise ValueError("choices: expected at least two columns, as choices: [answer_1, answer_2]")
        if len(set(columns)) < len(columns):
            raise ValueError(f"a column is named twice in {', '.join(columns)}; name each text and answer once")
        return self


class CustomTask(CustomColumns, frozen=True, extra="forbid"):
    """A custom task: CSV, TSV, JSON lines, a JSON list or CoNLL files, plain or compressed (.gz, .zst).

    If a named file does not exist, the same name with ``.gz`` or ``.zst`` is read.
    """

    @model_validator(mode="before")
    @classmethod
    def _has_dev(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and fields.get("dev") is None:
            raise ValueError("no dev; if there is one file, name it as dev, without train, and set finetune.split_dev")
        return fields

    train: str | None = Field(
        None, description="Training file. Default: a part of dev, if finetune.split_dev names the task."
    )
    dev: str = Field(description="File to score on.")
    test: str | None = Field(None, description="Test file. A corpus of the same recipe excludes its texts.")

    @field_validator("train", "dev", "test")
    @classmethod
    def _finds_compressed_files(cls, path: str | None) -> str | None:
        names = [path + packing for packing in ("", ".gz", ".zst")] if path is not None else []
        return next((name for name in names if Path(name).is_file()), path)

    @property
    def files(self) -> dict[str, str]:
        """Path of each split that the task has."""
        paths = {"train": self.train, "dev": self.dev, "test": self.test}
        return {split: path for split, path in paths.items() if path is not None}
