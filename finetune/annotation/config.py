"""``benchmark.yaml``: what a benchmark is made from, and the rules of each step (KLUE, sections 2 and 3).

Defaults are the paper's values. A benchmark is one folder with this file; every step reads and writes files in it.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml
from pydantic import Field, model_validator

from corpus.documents.errors import BadInput
from corpus.documents.section import Section
from finetune.custom_config import CustomKind, Label
from finetune.data.files import read_text, validate

FILE_NAME = "benchmark.yaml"
TaskName = Literal["tc", "sts", "nli", "ner", "mrc", "re", "dp", "dst"]
VoteKind = Literal["label", "score", "spans", "answer", "words", "state"]
SplitMethod = Literal["random", "date", "bins", "one-side", "unseen-entities"]
NLI_LABELS = ("entailment", "contradiction", "neutral")


class TaskForm(NamedTuple):
    """What the items and votes of a task are.

    Attributes:
        texts: names of the texts of an item.
        vote: label: one of the labels. score: a number. spans: list of [start, end, label]. answer: list of
            [start, end] in the first text, empty for no answer. words: one "head:relation" for each word. state: slot
            to value.
        kind: of the custom task that ``finetune`` trains; None if there is none.
        split: default method.
        votes: number of workers for each item.
        spans: whether items carry spans: a subject and an object (RE), or pre-tagged entities (NER).
    """

    texts: tuple[str, ...]
    vote: VoteKind
    kind: CustomKind | None
    split: SplitMethod
    votes: int
    spans: bool = False


TASK_FORMS: dict[str, TaskForm] = {
    "tc": TaskForm(("text",), "label", "label", "date", 3),
    "sts": TaskForm(("sentence1", "sentence2"), "score", "similarity", "bins", 7),
    "nli": TaskForm(("premise", "hypothesis"), "label", "pair", "one-side", 5),
    "ner": TaskForm(("text",), "spans", "tagging", "unseen-entities", 1, spans=True),
    "mrc": TaskForm(("context", "question"), "answer", "span", "random", 1),
    "re": TaskForm(("text",), "label", "label", "unseen-entities", 3, spans=True),
    "dp": TaskForm(("text",), "words", None, "random", 1),
    "dst": TaskForm(("text",), "state", None, "random", 1),
}


class Source(Section):
    """A source corpus: where its documents are, and its row of the licence sheet (Table 2)."""

    documents: str = Field(description="Folder of document shards, for example runs/mine/corpus/documents.")
    source: str | None = Field(None, description="Only documents whose source begins with this. Default: all.")
    licence: str = Field("", description="Licence, for the card.")
    url: str = Field("", description="Address of the corpus, for the card.")
    style: Literal["formal", "colloquial", ""] = Field("", description="Style, for the card.")
    count: int | None = Field(None, ge=1, description="Number of items from this source. Default: an equal share.")
    toxicity: dict[str, float] = Field({}, description="Minimum score by label of draw.classifier that drops an item.")


class DrawRules(Section):
    """How candidates are drawn from document shards."""

    count: int = Field(1_000, ge=1, description="Number of items.")
    unit: Literal["sentence", "title", "document", "passage"] | None = Field(None, description="Default: by task.")
    min_chars: int | None = Field(None, ge=1, description="Default: 20 (NLI 20, MRC 512, others 5).")
    max_chars: int | None = Field(None, ge=1, description="Default: 90 for NLI, 400 for NER and RE, 2,048 for MRC.")
    metadata: str | None = Field(None, description="Table with id (of a document) and date, which its items keep.")
    groups: str | None = Field(None, description="Table with text, intent and topic: STS pairs by these (PARAKQC).")
    triples: str | None = Field(None, description="TSV of subject, relation, object: RE pairs by a triple list.")
    tagger: str | None = Field(None, description="NER and RE: folder of a saved KLUE-NER model, which pre-tags.")
    classifier: str | None = Field(None, description="Folder or Hub name of a toxicity classifier (2.3).")
    translator: str | None = Field(None, description="STS: model of round-trip pairs, such as openai-api/NAME/MODEL.")


class AgreeRules(Section):
    """Which workers are excluded (3.2.1)."""

    min_pearson: float = Field(0.80, ge=-1, le=1, description="Pearson's r with the others, tasks with scores.")
    min_alpha: float = Field(0.20, ge=-1, le=1, description="Nominal alpha with the others.")
    min_shared: int = Field(10, ge=2, description="Workers who share fewer votes with others are kept and reported.")
    pilot_share: float = Field(0.8, ge=0, le=1, description="Share of pilot items that a worker must label right.")


class SettleRules(Section):
    """How votes become gold."""

    rule: Literal["majority", "mean", "dawid-skene", "mace"] | None = Field(None, description="Default: by task.")
    min_votes: int | None = Field(None, ge=1, description="Fewer drop an item. Default: 5 for scores, else half.")
    max_std: float = Field(2.0, gt=0, description="Scores with a larger standard deviation are dropped (3.2.1).")
    max_reports: int = Field(0, ge=0, description="Items with more reports of hate, bias or PII are dropped.")


class SplitRules(Section):
    """How gold items are divided into train, dev and test."""

    method: SplitMethod | None = Field(None, description="Default: by task (3.1 to 3.7); tc without dates: random.")
    dev: float = Field(0.1, gt=0, lt=1, description="Share of dev.")
    test: float = Field(0.1, ge=0, lt=1, description="Share of test; 0 for none.")
    after: date | None = Field(None, description="date: items from this day on are dev and test.")
    side: str | None = Field(None, description="one-side: the text that a model sees alone. Default: the last one.")
    nearest: float = Field(0.2, gt=0, lt=1, description="one-side: share of sets nearest to uniform (3.3.1).")
    per_source: dict[str, int] | None = Field(None, description="Number of items of each source in dev and in test.")


class Benchmark(Section):
    """A benchmark."""

    name: str = Field(pattern=r"^[A-Za-z][\w-]*$", description="Name of the benchmark and of its custom task.")
    task: TaskName = Field(description="tc, sts, nli, ner, mrc, re, dp or dst.")
    about: str = Field("", description="One sentence for the card.")
    seed: int = Field(1, ge=0, description="Seed of all steps.")
    licence: str = Field("", description="Licence of the benchmark, for the card.")
    guideline: str | None = Field(None, description="Markdown file with the guideline for workers.")
    labels: tuple[Label, ...] = Field((), description="Labels in order. Default for nli: the three of KLUE.")
    votes: int | None = Field(None, ge=1, description="Number of votes for each item. Default: the paper's.")
    sources: dict[str, Source] = Field({}, description="Source corpora by name.")
    draw: DrawRules = DrawRules()
    agree: AgreeRules = AgreeRules()
    settle: SettleRules = SettleRules()
    split: SplitRules = SplitRules()

    @model_validator(mode="before")
    @classmethod
    def _has_the_labels_of_its_task(cls, content: Any) -> Any:
        if isinstance(content, dict) and content.get("task") == "nli" and not content.get("labels"):
            return {**content, "labels": NLI_LABELS}
        return content

    @model_validator(mode="after")
    def _is_complete(self) -> Benchmark:
        if len(set(self.labels)) < len(self.labels):
            raise ValueError(f"labels: {max(self.labels, key=self.labels.count)} is listed twice")
        if self.form.vote in ("label", "spans") and not self.labels:
            raise ValueError(f"labels: task {self.task} needs a list of labels")
        if self.settle.rule not in (None, "majority") and self.form.vote != (
            "score" if self.settle.rule == "mean" else "label"
        ):
            raise ValueError(f"settle.rule: {self.settle.rule} cannot settle task {self.task}; leave it out")
        if self.task == "re" and self.sources and not self.draw.tagger:
            raise ValueError("draw.tagger: missing; pairs of task re are drawn from tagged entities")
        if self.draw.classifier is None and any(source.toxicity for source in self.sources.values()):
            raise ValueError("draw.classifier: missing; sources have thresholds of toxicity")
        if self.split.dev + self.split.test >= 1:
            raise ValueError("split: dev and test together must be less than 1")
        return self

    @property
    def votes_per_item(self) -> int:
        """Number of votes that each item should get; an author's label is one of them."""
        return self.votes or self.form.votes

    @property
    def min_votes(self) -> int:
        """Number of votes below which an item has no gold: 5 for scores, more than half of the votes for others."""
        return self.settle.min_votes or (5 if self.form.vote == "score" else self.votes_per_item // 2 + 1)

    @property
    def form(self) -> TaskForm:
        """What items and votes of the task are."""
        return TASK_FORMS[self.task]


def load_benchmark(folder: Path) -> Benchmark:
    """The benchmark of a folder; ``BadInput`` with the first problem of its file."""
    path = folder / FILE_NAME
    try:
        content = yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        where = f", line {place.line + 1}" if place else ""
        raise BadInput(f"{path}{where}: not readable as YAML; expected keys and values such as task: tc") from None
    return validate(Benchmark, content if isinstance(content, dict) else {}, str(path))
