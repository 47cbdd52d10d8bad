"""A KLUE task is a record of plain functions; training, prediction and scoring know nothing else about it.

```
file ─ read ─▶ examples ─ featurize ─▶ features ─ model ─▶ raw outputs ─ decode ─▶ predictions ─ score ─▶ metrics
                                                                                        └ write ─▶ official layout
```
One example may give several features (windows of a long passage, turns of a dialogue). Everything after ``decode`` is
JSON, so a predictions file can be scored again by anybody. Of a task only its model needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from finetune.config import FinetuneConfig, ProtocolName
from finetune.examples import Example, Feature, Module, Prediction, Row, Shown, Table, Tokenizer
from finetune.hyperparameters import Hyperparameters

LARGE_HIDDEN = 1_024
PAPER_MODELS = ("klue/bert-base", "klue/roberta-small", "klue/roberta-base", "klue/roberta-large")


class Files(NamedTuple):
    """The files of a task in a folder laid out like the KLUE repository, ``.zst`` allowed."""

    folder: str
    suffix: str
    own: Mapping[str, str] | None = None  # split to path, of a task that is not KLUE's

    def of(self, split: str) -> str:
        """``ynat-v1.1/ynat-v1.1_dev.json``; the "test" file has no labels. An own task's path, "" for none."""
        if self.own is not None:
            return self.own.get(split, "")
        return f"{self.folder}/{self.folder}_{split}.{self.suffix}"

    @property
    def train(self) -> str:
        return self.of("train")

    @property
    def dev(self) -> str:
        return self.of("dev")


class HubLayout(NamedTuple):
    """What the Hub's copy of a task has, and what makes the official file's text of its rows."""

    columns: tuple[str, ...]  # those needed
    convert: Callable[[Sequence[dict[str, Any]], str], str]  # rows and "train" or "dev" to text
    lacks: str | None = None  # an official file below the folder that the copy has not
    without_it: str = ""  # what follows from that


Given = str | Sequence[str] | Mapping[str, Any]  # new text: a line, its columns, or a record of JSON


class Use(NamedTuple):
    """How a task meets new text, and how people read what was predicted.

    Fields:
        accept: ``(given, where)`` to an example's inputs in NFC; None where a text is blank, so that nothing can be
            predicted; raises ``BadInput`` with ``where`` and what was expected.
        tell: the example's texts and what people want of its prediction, as JSON.
        lines: the same for people, from all of the result: ``tell`` with "prediction" and "scores".
        is_block: ``lines`` are several, so an empty one parts them from the next.
    """

    accept: Callable[[Given, str], dict[str, Any] | None]
    tell: Callable[[Example, Prediction], dict[str, Any]]
    lines: Callable[[Mapping[str, Any]], list[str]]
    is_block: bool = False


Record = dict[str, Any]  # what an ensemble needs of one example: flat arrays of numbers and lists of texts, by name
Member = Sequence[Record]  # of one model, in the order of the examples
Keep = Callable[[Sequence[Example], Sequence[Feature], Sequence[Any]], list[Record]]


class Merging(NamedTuple):
    """How what several models say of the same examples becomes one prediction each, without the models.

    Fields:
        merge: the members to predictions, by the task's own decoding. One member, or copies of one, give what it
            predicted itself.
        keep: ``(examples, features, raw outputs)`` to a record an example, all with the same names; None: a row of the
            predictions file is all that ``merge`` needs, the record being its ``prediction`` and ``scores``.
    """

    merge: Callable[[Sequence[Member]], list[Prediction]]
    keep: Keep | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """Everything that differs between the eight tasks, and those that users add (``finetune.tasks.own``).

    Fields:
        read: one file to examples; raises ``BadInput`` naming file, record and what was expected.
        featurize: ``(examples, tokenizer, max_tokens, is_training)`` to features. Long inputs are truncated or cut
            into windows here. Features without a usable training target are left out when training.
        collate: ``(features, pad_id)`` to a batch of arrays, padded to its longest row, keys as ``model`` wants.
        model: ``(encoder folder or name, tokenizer)`` to a module. ``module(**batch)`` returns a dict with
            "loss"; ``module.predict(**batch)`` returns one raw output (numpy or JSON) per row of the batch, and must
            not depend on the batch's other rows or on padding.
        decode: ``(examples, features, raws)`` to one prediction per example, in order of the examples.
        score: rows to metrics, 0..100, by the names of the KLUE paper; the first named is the headline. Any metric may
            be nan.
        tables: rows to further figures by class or question type, under their titles.
        trivial: ``(training examples, examples)`` to predictions that need no model: majority class, mean, nothing.
        record: ``(example, its features, max_tokens)`` to JSON: what the model sees of an example and what it is to
            learn, for people and for comparison with other implementations.
        write: ``(official file, value by guid, target)``: the official file again, with predictions for labels; one for
            each example, of the task's form.
        fault: what is wrong with the form of somebody's prediction for an example, in words; None where nothing is.
        show: an example and its row as people read an error, gold and prediction only where they differ.
        distance: how far a prediction is from its gold; it counts as an error from 1 on. None: ``differs`` decides.
        group: examples that must stay on one side when a file is split, e.g. turns of one dialogue; ``group_of_guid``
            is the same where there is only a predictions file.
        as_published: fields of this record that protocol ``klue-baseline`` replaces, oddities included.
        tune: ``(model, examples unseen in training, their features, raw outputs)``: set in the model what is left to
            choose after the training (KLUE-MRC: by how much "no answer" must be ahead); returns it for the result.
        thin: ``(task, share)``: the task trained on a share of its features without a target (KLUE-MRC).
        plain: the task without gold annotation among its inputs (KLUE-DP: part-of-speech tags).
        adapt: ``(task, configuration)``: the task as keys of the configuration for it alone want it (KLUE-RE).
        learn: what ``decode`` takes of the training examples, as JSON that a kept model keeps; then it is ``learned``.
        own: what ``finetune.tasks.own.own_task`` makes a user's task of; None for those of KLUE.
        use: what is done with new text; None: nothing can be.
        merging: how ensembles of it are made; None: not at all.
        revision: counts the changes of conversion or head that make results and kept models of before another task's.
    """

    name: str
    predicts: str  # what from what, in a few words
    files: Files
    hub: HubLayout
    dev_examples: int  # of the official dev file
    read: Callable[[Path], list[Example]]
    featurize: Callable[[Sequence[Example], Tokenizer, int, bool], list[Feature]]
    collate: Callable[[Sequence[Feature], int], dict[str, NDArray[Any]]]
    model: Callable[[str, Tokenizer], Module]
    decode: Callable[[Sequence[Example], Sequence[Feature], Sequence[Any]], list[Prediction]]
    score: Callable[[Sequence[Row]], dict[str, float]]
    tables: Callable[[Sequence[Row]], dict[str, Table]]
    trivial: Callable[[Sequence[Example], Sequence[Example]], list[Prediction]]
    record: Callable[[Example, Sequence[Feature], int], dict[str, Any]]
    write: Callable[[Path, Mapping[str, Any], Path], None]
    fault: Callable[[Example, Prediction], str | None]
    show: Callable[[Example, Row], Shown]
    select_by: str  # the metric by which the published baseline selects checkpoints
    defaults: Hyperparameters  # published for small and base models
    large: Hyperparameters  # published for large models
    paper_dev: Mapping[str, Mapping[str, float]]  # paper Table 36, model to metric to value
    differs: Callable[[Row], bool] = lambda row: bool(row.gold != row.prediction)
    distance: Callable[[Row], float] | None = None
    group: Callable[[Example], str] = lambda example: example.guid
    group_of_guid: Callable[[str], str] = str
    special_tokens: tuple[str, ...] = ()  # markers, added to the tokenizer before ``featurize``
    as_published: Mapping[str, Any] = field(default_factory=dict)
    tune: Callable[[Any, Sequence[Example], Sequence[Feature], Sequence[Any]], dict[str, float]] | None = None
    thin: Callable[[Task, float], Task] = lambda task, share: task
    plain: Callable[[Task], Task] = lambda task: task
    adapt: Callable[[Task, FinetuneConfig], Task] = lambda task, config: task
    learn: Callable[[Sequence[Example]], Mapping[str, Any]] | None = None
    learned: Mapping[str, Any] | None = None
    own: Mapping[str, Any] | None = None
    use: Use | None = None
    merging: Merging | None = None
    revision: int = 1

    @property
    def metrics(self) -> tuple[str, ...]:
        """Those of the paper, the headline first; none of an own task, whose ``score`` names its own."""
        return tuple(next(iter(self.paper_dev.values()), ()))

    def taught(self, training: Sequence[Example]) -> Task:
        """This task after it has seen the training examples."""
        return self.knowing(self.learn(training)) if self.learn else self

    def knowing(self, learned: Mapping[str, Any]) -> Task:
        """This task with what ``learn`` once returned."""
        decode: Any = self.decode
        return replace(self, learned=learned, decode=partial(decode, learned=learned))

    def with_protocol(self, protocol: ProtocolName) -> Task:
        """This task as a protocol does it: ``malmoi`` as it stands here, ``klue-baseline`` as published."""
        return replace(self, **self.as_published) if protocol == "klue-baseline" else self

    def published(self, hidden_size: int) -> Hyperparameters:
        """The published configuration for an encoder so wide."""
        return self.large if hidden_size >= LARGE_HIDDEN else self.defaults


def table_36(**figures: Sequence[float]) -> dict[str, dict[str, float]]:
    """Dev scores of the paper, model to metric to value, given by metric in the order of ``PAPER_MODELS``."""
    return {model: {name: column[i] for name, column in figures.items()} for i, model in enumerate(PAPER_MODELS)}
