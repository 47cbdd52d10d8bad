"""What the checks look at: items with texts and a label, and the table of all checks.

Files are read leniently: what is wrong with a record becomes a problem of its item, not an error of the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from finetune.custom_config import CustomColumns

Level = Literal["error", "remark"]
Problem = tuple[str, str]  # name of the check, what is wrong
CHECKS: Mapping[str, tuple[Level, str]] = {  # an error is wrong in the item itself; a remark is something to look at
    "empty": ("error", "A text or a label is empty."),
    "id": ("error", "Two items of a split have one id."),
    "label": ("error", "The label is not one of the task, or out of its range."),
    "duplicate": ("error", "The same input and label twice in a split."),
    "conflict": ("error", "The same input with different labels."),
    "overlap": ("error", "The same input in another split."),
    "offset": ("error", "A span is not where its offset says."),
    "tags": ("error", "Entity tags that cannot be: I- after O, an entity that begins or ends with a space."),
    "brackets": ("error", "Entity brackets in the sentence are broken, or differ from the tags."),
    "spreadsheet": ("error", "A cell that a spreadsheet changed: date, ###, 1.2E+11, lost zeros."),
    "markup": ("error", "Remains of HTML, wiki or escapes, broken letters, control characters."),
    "word": ("error", "The words of a tree differ from its sentence."),
    "tree": ("error", "Heads that are no tree, or an unknown relation."),
    "state": ("error", "A dialogue state with an unknown slot or two values, or turns out of order."),
    "votes": ("error", "The label does not follow from the votes in the file."),
    "near-duplicate": ("remark", "Nearly the same input: spaces, signs, or up to a tenth of the letters differ."),
    "shared-text": ("remark", "One of the texts also occurs in another split."),
    "same-texts": ("remark", "The texts of an item are equal."),
    "characters": ("remark", "Invisible or decomposed characters, or spaces at the ends or in a row."),
    "set-size": ("remark", "More items share a first text than is usual in the split."),
    "length": ("remark", "A premise outside the 20 to 90 characters of KLUE-NLI."),
    "author": ("remark", "The label is not the one the author meant."),
    "label-error": ("remark", "Out of fold, a counting model is sure of another label."),
    "one-side": ("remark", "One text alone predicts the label much better than the best constant."),
    "spelling": ("remark", "Labels that differ only in case."),
    "fields": ("remark", "Splits have different fields."),
    "refused": ("remark", "`malmoi finetune` refuses a file as it is."),
    "leak": ("remark", "A sentence of the item occurs in the corpus."),
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
        return (
            item.texts["context"]
            if self.kind == "span" and "context" in item.texts
            else next(iter(item.texts.values()))
        )


class Finding(NamedTuple):
    """A problem of an item, or of a whole split (guid ""); ``other``: the item of which it is a copy."""

    check: str
    split: str
    guid: str
    message: str
    other: str = ""
