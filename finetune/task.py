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
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from finetune.config import ProtocolName

if TYPE_CHECKING:
    from torch.nn import Module
    from transformers import PreTrainedTokenizerBase as Tokenizer
else:  # annotations only, so that reading, converting, decoding and scoring need no torch
    Module = Tokenizer = Any

# A feature is what the model sees of (part of) one example: "input_ids" (list or array of int), "example" (index of its
# example) and whatever the task's collate and decode need.
Feature = dict[str, Any]

IGNORED = -100  # a target that the loss skips: special tokens, padding


@dataclass(frozen=True, slots=True)
class Example:
    """One scored unit of a benchmark file: a title, a pair, a sentence, a question, a user turn."""

    guid: str
    gold: Any  # JSON: a label name, a number, a list of tags …; None in a file without labels
    inputs: Mapping[str, Any]  # the task's own fields


class Prediction(NamedTuple):
    """What was predicted for one example: ``value`` as JSON like the gold, ``scores`` as JSON or None."""

    value: Any
    scores: Any = None


class Row(NamedTuple):
    """One line of predictions.jsonl."""

    guid: str
    gold: Any
    prediction: Any
    scores: Any = None


@dataclass(frozen=True, slots=True)
class Files:
    """Names inside a folder laid out like the KLUE repository, ``.zst`` allowed: ``ynat-v1.1/ynat-v1.1_dev.json``."""

    train: str
    dev: str

    @property
    def test(self) -> str:
        """The name of the test file, which has no labels."""
        return self.dev.replace("_dev.", "_test.")


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """The published configuration (KLUE-baseline run_all.sh)."""

    lr: float = 5e-5
    epochs: int = 4
    batch_size: int = 32
    warmup_share: float = 0.1
    weight_decay: float = 0.0
    max_tokens: int = 128
    accumulation: int = 1  # a step of ``batch_size`` features is done in so many parts


@dataclass(frozen=True, slots=True)
class Task:
    """Everything that differs between the eight tasks.

    Fields:
        predicts: what is predicted from what, in a few words.
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
        trivial: ``(training examples, examples)`` to predictions that need no model: majority class, mean, nothing.
        record: ``(example, its features, max_tokens)`` to JSON: what the model sees of an example and what it is to
            learn, for people and for comparison with other implementations.
        tables: rows to further figures: title to a list of rows (name of column to value), by class or question type.
        write: ``(official file, value by guid, target)``: the official file again, with predictions for labels; one for
            each example, of the task's form.
        fault: what is wrong with the form of somebody's prediction for an example, in words; None where nothing is.
        select_by: the metric that the published baseline selects checkpoints by.
        defaults: the published configuration of small and base models.
        large: the published configuration of large models (hidden size 1,024).
        paper_dev: paper Table 36, model name to metric to value.
        group: examples that must stay on one side when a file is split, e.g. turns of one dialogue.
        special_tokens: added to the tokenizer before ``featurize`` (markers); the encoder's embeddings grow.
        as_published: fields of this record that protocol ``klue-baseline`` replaces, oddities included.
        plain: the task without gold annotation among its inputs (KLUE-DP: part-of-speech tags).
    """

    name: str
    predicts: str
    files: Files
    read: Callable[[Path], list[Example]]
    featurize: Callable[[Sequence[Example], Tokenizer, int, bool], list[Feature]]
    collate: Callable[[Sequence[Feature], int], dict[str, NDArray[Any]]]
    model: Callable[[str, Tokenizer], Module]
    decode: Callable[[Sequence[Example], Sequence[Feature], Sequence[Any]], list[Prediction]]
    score: Callable[[Sequence[Row]], dict[str, float]]
    trivial: Callable[[Sequence[Example], Sequence[Example]], list[Prediction]]
    record: Callable[[Example, Sequence[Feature], int], dict[str, Any]]
    tables: Callable[[Sequence[Row]], dict[str, list[dict[str, Any]]]]
    write: Callable[[Path, Mapping[str, Any], Path], None]
    fault: Callable[[Example, Prediction], str | None]
    select_by: str
    defaults: Hyperparameters
    large: Hyperparameters
    paper_dev: Mapping[str, Mapping[str, float]]
    group: Callable[[Example], str] = lambda example: example.guid
    special_tokens: tuple[str, ...] = ()
    as_published: Mapping[str, Any] = field(default_factory=dict)
    plain: Callable[[Task], Task] = lambda task: task

    def under(self, protocol: ProtocolName) -> Task:
        """This task as a protocol does it: ``malmoi`` as it stands here, ``klue-baseline`` as published."""
        return replace(self, **self.as_published) if protocol == "klue-baseline" else self
