"""A task is a record of plain functions; training, prediction and scoring know nothing else about it.

```
file ─ read ─▶ examples ─ featurize ─▶ features ─ model ─▶ raw outputs ─ decode ─▶ predictions ─ score ─▶ metrics
                                                                                        └ write ─▶ official format
```
One example can give several features (windows of a long passage). Everything after ``decode`` is JSON, so anybody can
score a predictions file again. Only the model of a task needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from finetune.config import FinetuneConfig, Hyperparameters, ProtocolName
from finetune.examples import ErrorView, Example, Feature, Module, Prediction, Row, Table, Tokenizer
from finetune.task_names import klue_facts

LARGE_HIDDEN = 1_024
PAPER_MODELS = ("klue/bert-base", "klue/roberta-small", "klue/roberta-base", "klue/roberta-large")


class Files(NamedTuple):
    """The files of a task in a folder with the layout of the KLUE repository, ``.zst`` allowed."""

    folder: str
    suffix: str
    custom: Mapping[str, str] | None = None  # path of each split of a custom task

    def of(self, split: str) -> str:
        """``ynat-v1.1/ynat-v1.1_dev.json``; the path of a custom task, "" if it has no such file."""
        if self.custom is not None:
            return self.custom.get(split, "")
        return f"{self.folder}/{self.folder}_{split}.{self.suffix}"

    @property
    def train(self) -> str:
        return self.of("train")

    @property
    def dev(self) -> str:
        return self.of("dev")


class Published(NamedTuple):
    """Facts of the paper and of KLUE-baseline.

    Fields:
        dev_examples: number of examples of the official dev file.
        dev_scores: Table 36, model to metric to value; the first metric is the headline.
        hyperparameters: for small and base models; ``large``: for large models.
        quirks: fields of ``Task`` that protocol ``klue-baseline`` replaces, known bugs included.
    """

    dev_examples: int
    dev_scores: Mapping[str, Mapping[str, float]]
    hyperparameters: Hyperparameters
    large: Hyperparameters
    quirks: Mapping[str, Any] = {}


class Inspection(NamedTuple):
    """What people see of a task's data and predictions.

    Fields:
        tables: rows to further figures by class or question type, under their titles.
        validate: what is wrong with the form of a prediction for an example, in words; None if nothing is.
        spell: a gold or prediction of a file, in NFC, to the form that is compared.
        show: an example and its row as texts, gold and prediction only where they differ.
        differs: whether a prediction is an error.
        distance: distance of a prediction from its gold, an error from 1 on; None: ``differs`` decides.
    """

    tables: Callable[[Sequence[Row]], dict[str, Table]]
    validate: Callable[[Example, Prediction], str | None]
    show: Callable[[Example, Row], ErrorView]
    differs: Callable[[Row], bool] = lambda row: bool(row.gold != row.prediction)
    distance: Callable[[Row], float] | None = None
    spell: Callable[[Any], Any] = lambda value: value


class HubLayout(NamedTuple):
    """The task's copy on the Hugging Face Hub, and how it becomes the official file."""

    columns: tuple[str, ...]  # required columns
    convert: Callable[[Sequence[dict[str, Any]], str], str]  # rows and "train" or "dev" to the text of the file


RawInput = str | Sequence[str] | Mapping[str, Any]  # new text: a line, its columns, or a JSON record


class Inference(NamedTuple):
    """Prediction of new text.

    Fields:
        parse: ``(input, where)`` to an example's inputs in NFC; None for blank text, which has no prediction;
            ``BadInput`` with ``where`` and the expected form.
        to_result: the example's texts and the prediction in a readable form, as JSON.
        format_lines: the result, with "prediction" and "scores", as lines of text.
        is_block: ``format_lines`` gives several lines, so results are separated by an empty line.
    """

    parse: Callable[[RawInput, str], dict[str, Any] | None]
    to_result: Callable[[Example, Prediction], dict[str, Any]]
    format_lines: Callable[[Mapping[str, Any]], list[str]]
    is_block: bool = False


MemberRecord = dict[str, Any]  # what an ensemble needs of one example: arrays and lists of texts by name
MemberRecords = Sequence[MemberRecord]  # of one model, in the order of the examples
ToRecords = Callable[[Sequence[Example], Sequence[Feature], Sequence[Any]], list[MemberRecord]]


class Ensembling(NamedTuple):
    """How the outputs of several models become one prediction per example, without running the models.

    Fields:
        merge: records of all members to predictions. One member, or copies of one, give its own predictions.
        to_records: ``(examples, features, raw outputs)`` to a record per example; None: the ``prediction`` and
            ``scores`` of the predictions file are enough.
    """

    merge: Callable[[Sequence[MemberRecords]], list[Prediction]]
    to_records: ToRecords | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """What defines a task, and, from ``published`` on, what other parts of the program attach to it.

    Fields:
        read: a file to examples; ``BadInput`` names file, record and the expected form.
        write: ``(official file, value by guid, target)``: writes the file with predictions as labels.
        featurize: ``(examples, tokenizer, max_tokens, is_training)`` to features. Long inputs are truncated or cut into
            windows. In training, features without a usable target are left out.
        collate: ``(features, pad_id)`` to a batch of arrays, padded to its longest row.
        model: ``(encoder folder or name, tokenizer)`` to a module. ``module(**batch)`` returns a dict with "loss";
            ``module.predict(**batch)`` returns one raw output per row, independent of the other rows and of padding.
        decode: ``(examples, features, raw outputs)`` to one prediction per example.
        score: rows to metrics, 0..100, named as in the paper, the headline first. A metric may be nan.
        select_by: the metric by which the published baseline selects checkpoints.
        special_tokens: markers, added to the tokenizer before ``featurize``.
        group: examples of one group stay on one side of a split (turns of a dialogue); ``group_of_guid``: the same from
            the guid alone.
        configure: the task with the changes of a configuration's keys for this task.
        tune: ``(model, held-out examples, features, raw outputs)``: sets what is tuned after training (KLUE-MRC: the
            no-answer threshold) and returns it.
        learn: what ``decode`` needs from the training examples, as JSON; then it is ``learned``.
        custom: the definition of a custom task (``finetune.tasks.custom.task``); None for KLUE tasks.
        revision: counts changes of conversion or head that make older results and models incompatible.
    """

    name: str
    predicts: str  # in a few words
    files: Files
    read: Callable[[Path], list[Example]]
    write: Callable[[Path, Mapping[str, Any], Path], None]
    featurize: Callable[[Sequence[Example], Tokenizer, int, bool], list[Feature]]
    collate: Callable[[Sequence[Feature], int], dict[str, NDArray[Any]]]
    model: Callable[[str, Tokenizer], Module]
    decode: Callable[[Sequence[Example], Sequence[Feature], Sequence[Any]], list[Prediction]]
    score: Callable[[Sequence[Row]], dict[str, float]]
    select_by: str
    published: Published
    inspection: Inspection
    hub: HubLayout
    inference: Inference
    ensembling: Ensembling | None
    special_tokens: tuple[str, ...] = ()
    group: Callable[[Example], str] = lambda example: example.guid
    group_of_guid: Callable[[str], str] = str
    configure: Callable[[Task, FinetuneConfig], Task] = lambda task, config: task
    tune: Callable[[Any, Sequence[Example], Sequence[Feature], Sequence[Any]], dict[str, float]] | None = None
    learn: Callable[[Sequence[Example]], Mapping[str, Any]] | None = None
    learned: Mapping[str, Any] | None = None
    custom: Mapping[str, Any] | None = None
    revision: int = 1

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of the paper, the headline first; () for a custom task."""
        return tuple(next(iter(self.published.dev_scores.values()), ()))

    def fit(self, training: Sequence[Example]) -> Task:
        """The task with what it learns from the training examples."""
        return self.with_learned(self.learn(training)) if self.learn else self

    def with_learned(self, learned: Mapping[str, Any]) -> Task:
        """The task with what ``learn`` returned before."""
        decode: Any = self.decode
        return replace(self, learned=learned, decode=partial(decode, learned=learned))

    def with_protocol(self, protocol: ProtocolName) -> Task:
        """The task under a protocol: ``malmoi`` as it is, ``klue-baseline`` with the published quirks."""
        return replace(self, **self.published.quirks) if protocol == "klue-baseline" else self

    def hyperparameters_for(self, hidden_size: int) -> Hyperparameters:
        """The published hyperparameters for an encoder of this width."""
        return self.published.large if hidden_size >= LARGE_HIDDEN else self.published.hyperparameters


def published_facts(name: str, quirks: Mapping[str, Any] = {}) -> Published:
    """What ``klue.yaml`` has about a KLUE task."""
    facts = klue_facts(name)
    columns, usual = facts["dev_scores"], facts["hyperparameters"]
    scores = {model: {key: column[i] for key, column in columns.items()} for i, model in enumerate(PAPER_MODELS)}
    large = Hyperparameters(**usual | facts["large"])
    return Published(facts["dev_examples"], scores, Hyperparameters(**usual), large, quirks)
