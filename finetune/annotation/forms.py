"""What a worker is asked about an item, and how an answer becomes votes; the same for every annotation tool.

An item whose last text is blank is to be written: a hypothesis for each label of NLI, a question with its answer for
MRC. What a worker writes becomes an item of its own, in the group of the first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from corpus.documents.errors import BadInput
from finetune.annotation.config import Benchmark
from finetune.annotation.folder import Item, Span, Vote
from finetune.annotation.split import mark_entities
from finetune.annotation.take_in import REPORTS, Import, item_of

SCORES = tuple(map(str, range(6)))
ANSWER = "answer"  # label of a span that answers a question


class Form(NamedTuple):
    """Parts of the screen.

    Attributes:
        shown: names of the texts, the first of which is marked.
        choices: labels of which one is chosen; () for none.
        span_labels: labels of spans; () for none.
        boxes: names of texts to write; () for none.
    """

    shown: tuple[str, ...]
    choices: tuple[str, ...]
    span_labels: tuple[str, ...]
    boxes: tuple[str, ...]

    def texts(self, item: Item) -> dict[str, str]:
        """The shown texts; the sentence of RE has marked entities."""
        return {name: mark_entities(item) if name == "marked" else item.texts[name] for name in self.shown}

    def one_text(self, item: Item) -> str:
        """The text of spans, or all shown texts as paragraphs, for tools that show one text."""
        return item.text if self.span_labels else "\n\n".join(self.texts(item).values())

    def tags(self, item: Item) -> tuple[Span, ...]:
        """The item's spans, if the form asks for spans."""
        return item.spans if self.span_labels else ()


class Answer(NamedTuple):
    """What a worker did with an item."""

    item: str
    worker: str
    choice: str | None
    spans: Sequence[Span]
    boxes: Mapping[str, str]
    reports: Sequence[str]


def is_blank(item: Item) -> bool:
    """Whether a text of the item is to be written."""
    return any(not text for text in item.texts.values())


def form_of(benchmark: Benchmark, *, is_writing: bool) -> Form:
    """The form of a task; ``is_writing``: for items with a blank text. ``BadInput`` for a task without a form."""
    form, texts = benchmark.form, benchmark.form.texts
    if benchmark.task in ("dp", "dst"):
        raise BadInput(f"task {benchmark.task}: no hand-out; annotate elsewhere and take in CoNLL-U or WoS files")
    if form.vote == "spans":
        return Form(texts, (), benchmark.labels, ())
    if form.vote == "answer":
        return Form(texts[:1] if is_writing else texts, (), (ANSWER,), texts[1:] if is_writing else ())
    if is_writing:
        return Form(texts[:-1], (), (), benchmark.labels)
    shown = ("marked",) if benchmark.task == "re" else texts
    return Form(shown, SCORES if form.vote == "score" else benchmark.labels, (), ())


def to_import(benchmark: Benchmark, items: Mapping[str, Item], answer: Answer, where: str) -> list[Import]:
    """The votes of an answer, with the items that it writes."""
    item, reports = item_of(items, answer.item, where), tuple(name for name in REPORTS if name in answer.reports)
    if reports or not is_blank(item):
        value = None if is_blank(item) else _value(benchmark, answer)
        is_open = value is None and not reports
        return [] if is_open else [Import(where, [Vote(item.id, answer.worker, value, "worker", reports)])]
    written = []
    for name, text in answer.boxes.items():
        if text := " ".join(text.split()):
            digest = hashlib.blake2b(f"{answer.worker}\0{name}\0{text}".encode(), digest_size=4).hexdigest()
            new = Item(f"{item.id}-{digest}", item.source, {**item.texts, benchmark.form.texts[-1]: text}, (),
                       {**item.about, "group": item.id})  # fmt: skip
            value = _value(benchmark, answer) if benchmark.form.vote == "answer" else name
            written.append(Import(where, [Vote(new.id, answer.worker, value, "author")], new))
    return written


def _value(benchmark: Benchmark, answer: Answer) -> object:
    kind = benchmark.form.vote
    if kind in ("spans", "answer"):
        spans = sorted(dict.fromkeys(answer.spans))
        return [list(span if kind == "spans" else span[:2]) for span in spans]
    return float(answer.choice) if kind == "score" and answer.choice is not None else answer.choice


def to_python_offsets(text: str, span: Span, surface: str | None, where: str) -> Span:
    """A span in characters, from one that may count UTF-16 units, as browsers do; ``surface`` decides.

    >>> to_python_offsets("😀서울", (2, 4, "LC"), "서울", "")
    (1, 3, 'LC')
    """
    start, end, label = span
    if surface is None or text[start:end] == surface:
        return span
    units = text.encode("utf-16-le")
    first, last = (len(units[: 2 * offset].decode("utf-16-le", "replace")) for offset in (start, end))
    if text[first:last] != surface:
        raise BadInput(f"{where}: span {start}:{end} is {text[start:end]!r:.40}, not {surface!r:.40}; text changed?")
    return first, last, label
