"""KLUE-MRC: extractive question answering with unanswerable questions (KLUE paper 3.7, 5.1).

`[CLS] question [SEP] context [SEP]`; a long context becomes overlapping windows. Spans are found, and answers cut out
of the context, by character offsets. Where a token holds the end of the answer and its particle, the model also learns
how many characters of the token to cut off. Protocol ``klue-baseline``: ``finetune.tasks.mrc.published``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finetune.config import FinetuneConfig
from finetune.examples import ErrorView, Example, Feature, Prediction, Row, Tokenizer
from finetune.task import Ensembling, Files, HubLayout, Inference, Inspection, RawInput, Task, published_facts
from finetune.tasks.labels import build_head
from finetune.tasks.mrc import published, windows
from finetune.tasks.mrc.decoding import best_spans, choose_threshold, decode, merge, to_records
from finetune.tasks.mrc.metrics import score, tables
from finetune.tasks.mrc.reader import ABOUT, answer_span, convert, is_misplaced, read, write
from finetune.tasks.mrc.windows import Passage, Target
from finetune.tasks.text_input import parse_texts

CUTS = 4  # most characters cut off the answer's last token; particles such as 에서는 have three
AROUND_ANSWER = 60  # characters of a passage shown on each side of an answer


def featurize(
    examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool, empty_share: float = 1.0
) -> list[Feature]:
    """Windows of every question (``make_features``). In training, misplaced answers are left out with a warning, and
    ``empty_share`` of the windows without an answer are kept (``keep_some``)."""

    def find_targets(examples: Sequence[Example], passages: Sequence[Passage]) -> list[Target | None]:
        return [find_tokens(passage, answer_span(e)) for e, passage in zip(examples, passages, strict=True)]

    features = windows.make_features(examples, tokenizer, max_tokens, find_targets)
    if not is_training:
        return features
    kept = windows.keep_some(windows.keep_trainable(features, examples, is_misplaced), examples, empty_share)
    windows.warn_of_empty(kept)
    return kept


def find_tokens(passage: Passage, span: tuple[int, int] | None) -> Target | None:
    """The tokens that contain any character of a span, and how many characters of the last one are after it."""
    if span is None:
        return None
    begin_N, end_N = passage.offsets_N2.T
    inside = np.flatnonzero((end_N > span[0]) & (begin_N < span[1]))
    if not len(inside):
        return None
    after = int(end_N[inside[-1]]) - span[1]
    return Target(int(inside[0]), int(inside[-1]), after if 0 < after <= CUTS else 0)


def collate(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Batch as ``SpanFinder.forward`` describes it; [CLS] and context can be ends of a span."""
    batch = published.collate(features, pad_id)
    place_L = np.arange(batch["input_ids"].shape[1])
    begin_B1 = np.array([[feature["context_at"]] for feature in features])
    end_B1 = np.array([[feature["context_at"] + len(feature["offsets"])] for feature in features])
    return {
        **batch,
        "candidates": (place_L == 0) | ((place_L >= begin_B1) & (place_L < end_B1)),
        "cut": np.array([feature["cut"] for feature in features]),
    }


def tune(model: Any, examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> dict[str, float]:
    """Set the no-answer threshold from the predictions of the untuned model on held-out examples."""
    predictions = decode(examples, features, raws, always_answers=True)
    threshold = choose_threshold(examples, predictions)
    model.threshold.fill_(threshold)
    return {"no_answer_threshold": threshold}


def configure(task: Task, config: FinetuneConfig) -> Task:
    """Train on a share of the windows without an answer (``finetune.mrc_empty_windows``)."""
    share = config.mrc_empty_windows
    return task if share == 1 else replace(task, featurize=partial(featurize, empty_share=share))


def validate_text(example: Example, prediction: Prediction) -> str | None:
    """A text, empty for no answer."""
    value = prediction.value
    return None if isinstance(value, str) else f"expected a text, empty for no answer; found {value!r:.60}"


def show(example: Example, row: Row) -> ErrorView:
    """The question, the passage around the answer, and both answers."""
    context, start = example.inputs["context"], example.inputs.get("start")
    length = len(row.gold["answers"][0]) if row.gold["answers"] else len(row.prediction)
    place = start if start is not None else max(0, context.find(row.prediction))
    begin, end = max(0, place - AROUND_ANSWER), place + length + AROUND_ANSWER
    passage = f"{'…' if begin else ''}{context[begin:end]}{'…' if end < len(context) else ''}"
    gold = list(dict.fromkeys(row.gold["answers"])) or ["no answer"]
    return {"question": example.inputs["question"], "passage": passage}, gold, [row.prediction or "no answer"]


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


KLUE_MRC = Task(
    name="klue-mrc",
    predicts="answer to a question as a span of the passage, or none",
    files=Files("klue-mrc-v1.1", "json"),
    read=read,
    write=write,
    featurize=featurize,
    collate=collate,
    model=partial(build_head, "SpanFinder", cuts=CUTS),
    decode=decode,
    score=score,
    select_by="rouge_w",
    published=published_facts("klue-mrc", published.QUIRKS),
    inspection=Inspection(
        tables=tables,
        validate=validate_text,
        show=show,
        differs=lambda row: score([row])["exact_match"] < 100,
    ),
    hub=HubLayout((*ABOUT, "guid", "question", "question_type", "is_impossible", "answers"), convert),
    inference=INFERENCE,
    ensembling=Ensembling(merge, partial(to_records, best_spans)),
    group=lambda example: str(example.inputs["context"]),
    configure=configure,
    tune=tune,
)
