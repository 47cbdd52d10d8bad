"""Parsing new text for tasks with labels or numbers, and formatting their predictions (``finetune.task.Inference``).

A line holds the texts of the task, separated by tabs; a JSON record has them under their names. Text is normalized to
NFC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from corpus.documents.errors import BadInput
from finetune.data.custom_files import nfc
from finetune.examples import Example, Prediction
from finetune.task import Inference, RawInput

ONE_TEXT = ("text", "sentence")  # other names of the text of a task that has one
LIKELIEST = 3  # labels shown with their probabilities


def parse_texts(columns: Sequence[str], raw: RawInput, where: str) -> dict[str, Any] | None:
    """The texts of ``columns``; a single text can also be under "text" or "sentence"."""
    if isinstance(raw, str):
        raw = raw.split("\t") if len(columns) > 1 else [raw]
    if not isinstance(raw, Mapping):
        if len(raw) != len(columns):
            names = ", a tab, ".join(columns)
            raise BadInput(f"{where}: expected {names}, or a line of JSON; texts found: {len(raw)}")
        raw = dict(zip(columns, raw, strict=True))
    texts = {column: nfc(_text_under(column, raw, len(columns) == 1, where)) for column in columns}
    return texts if all(text.strip() for text in texts.values()) else None


def _text_under(column: str, record: Mapping[str, Any], is_only: bool, where: str) -> str:
    names = (column, *ONE_TEXT) if is_only else (column,)
    key = next((name for name in names if name in record), column)
    if key not in record:
        found = ", ".join(map(str, record)) or "nothing"
        raise BadInput(f"{where}: no '{column}'; rows and JSON records have it as a text (found: {found:.80})")
    if not isinstance(record[key], str):
        raise BadInput(f"{where}: '{key}' should be a text, found {record[key]!r:.60}")
    return str(record[key])


def certainty(labels: Sequence[str], prediction: Prediction) -> dict[str, Any]:
    """``probability`` of the predicted label, and ``likeliest``, the first labels with their probabilities."""
    if not prediction.scores:
        return {}
    ranked = sorted(zip(labels, prediction.scores, strict=True), key=lambda pair: -pair[1])
    return {"probability": max(prediction.scores), "likeliest": dict(ranked[:LIKELIEST])}


def text_inference(columns: Sequence[str], labels: Sequence[str] | None) -> Inference:
    """For a task with one of ``labels``, or a number if there are none, per text or pair."""

    def to_result(example: Example, prediction: Prediction) -> dict[str, Any]:
        texts = {column: example.inputs[column] for column in columns}
        return {**texts, **(certainty(labels, prediction) if labels else {})}

    def format_lines(result: Mapping[str, Any]) -> list[str]:
        found = [result["prediction"], f"{result['probability']:.2f}"] if labels else [f"{result['prediction']:.2f}"]
        return ["\t".join([*found, *(result[column] for column in columns)])]

    return Inference(partial(parse_texts, columns), to_result, format_lines)
