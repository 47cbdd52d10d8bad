"""What the checks look at: items with texts and a label, and the table of all checks.

Files are read leniently: what is wrong with a record becomes a problem of its item, not an error of the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from finetune.custom_config import CustomColumns

Level = Literal["error", "remark"]
Problem = tuple[str, str]  # name of the check, what is wrong
CHECKS: Mapping[str, tuple[Level, str]] = {  # level and meaning by name
    name: (level, what)
    for name, (level, what) in yaml.safe_load(Path(__file__).with_name("checks.yaml").read_text("utf-8")).items()
}


class Item(NamedTuple):
    """An item of a benchmark.

    Fields:
        texts: input texts by field, as in the file.
        gold: the label in comparable form; None if the file has none.
        exact: what else belongs to the input, such as spans.
        cells: cells that a spreadsheet keeps alone, such as the words of a tree, each with its form in the text.
        author: the label that the author of the item meant.
    """

    guid: str
    split: str
    texts: Mapping[str, str]
    gold: Any = None
    problems: Sequence[Problem] = ()
    cells: Sequence[tuple[str, str]] = ()
    exact: tuple[Any, ...] = ()
    author: str | None = None


class File(NamedTuple):
    """A file that was read; ``task``: name of the KLUE task, or "" and ``columns`` of a custom task."""

    path: Path
    split: str
    kind: str
    task: str
    items: list[Item]
    fields: frozenset[str] = frozenset()
    columns: CustomColumns | None = None


class Dataset(NamedTuple):
    """The files of one benchmark, train first."""

    name: str
    files: list[File]

    @property
    def kind(self) -> str:
        """Of the task: label, pair, similarity, choice, tagging, span, relation, tree or state."""
        return self.files[0].kind

    def group_of(self, item: Item) -> str:
        """The text that items of one set share: premise, passage, or the only text."""
        name = "context" if self.kind == "span" and "context" in item.texts else next(iter(item.texts))
        return item.texts[name]


class Finding(NamedTuple):
    """A problem of an item, or of a whole split (guid ""); ``other``: the item of which it is a copy."""

    check: str
    split: str
    guid: str
    message: str
    other: str = ""
