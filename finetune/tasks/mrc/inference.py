"""KLUE-MRC on new text: a question and a passage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finetune.examples import Example, Prediction
from finetune.task import Inference, RawInput
from finetune.tasks.text_input import parse_texts

COLUMNS = ("question", "context")


def parse_input(raw: RawInput, where: str) -> dict[str, Any] | None:
    """``question`` and ``context``, without an answer."""
    texts = parse_texts(COLUMNS, raw, where)
    return texts and {**texts, "start": None}


def to_result(example: Example, prediction: Prediction) -> dict[str, Any]:
    """Both texts, and ``score``: the lead of the best answer over "no answer", negative if there is no answer."""
    ahead = (prediction.scores or {}).get("null")
    return {**{name: example.inputs[name] for name in COLUMNS}, "score": None if ahead is None else -ahead}


def format_lines(result: Mapping[str, Any]) -> list[str]:
    """Answer, score and question."""
    score = "" if result["score"] is None else f"{result['score']:+.2f}"
    return ["\t".join([result["prediction"] or "no answer", score, result["question"]])]


INFERENCE = Inference(parse_input, to_result, format_lines)
