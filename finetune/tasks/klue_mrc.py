"""KLUE-MRC: extractive question answering with unanswerable questions (KLUE paper 3.7, 5.1).

`[CLS] question [SEP] context [SEP]`; a long context becomes overlapping windows. Spans are found, and answers cut out
of the context, by character offsets, so an answer ends before its particle wherever the sub-words do.
Legend: ``B`` windows, ``L`` positions.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from finetune.config import BadInput
from finetune.files import read_json, text_of
from finetune.metrics.mrc import score
from finetune.padding import pad_inputs, pad_rows
from finetune.task import Example, Feature, Files, Hyperparameters, Prediction, Task
from finetune.tasks.mrc_windows import QUESTION_TOKENS, cut_questions, find_tokens, make_windows

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerBase

log = logging.getLogger(__name__)

ANSWER_TOKENS = 30  # longest answer
NULL_THRESHOLD = 0.0  # "no answer" wins when its score is higher than the best span's by more than this


def get_field(record: Any, key: str, kind: type, place: str) -> Any:
    """``record[key]``, which must be of ``kind``."""
    if not isinstance(record, Mapping) or not isinstance(record.get(key), kind):
        found = record.get(key) if isinstance(record, Mapping) else record
        raise BadInput(f"{place}: expected {key!r} to be a {kind.__name__}; found {found!r:.60}")
    return record[key]


def read_klue_mrc(path: Path) -> list[Example]:
    """Questions of an official file; fields that a reduced file leaves ``null`` are not needed.

    Gold: ``answers`` (texts, none where unanswerable) and ``question_type`` (1 paraphrase, 2 multi-sentence, 3
    unanswerable, None unknown). ``inputs``: ``question``, ``context``, ``start`` of the first answer or None.
    """
    document = read_json(path)
    examples = [
        parse_question(question, context, str(path))
        for article in get_field(document, "data", list, str(path))
        for paragraph in get_field(article, "paragraphs", list, str(path))
        for context in [get_field(paragraph, "context", str, str(path))]
        for question in get_field(paragraph, "qas", list, str(path))
    ]
    if not examples:
        raise BadInput(f"{path}: no question found; expected data[].paragraphs[].qas[] of KLUE-MRC v1.1")
    return examples


def parse_question(record: Any, context: str, file: str) -> Example:
    place = f"{file}, {get_field(record, 'guid', str, file)}"
    answers = get_field(record, "answers", list, place)
    if get_field(record, "is_impossible", bool, place) == bool(answers):
        raise BadInput(f"{place}: 'is_impossible' is {record['is_impossible']}, but there are {len(answers)} answers")
    for answer in answers:
        text, start = get_field(answer, "text", str, place), get_field(answer, "answer_start", int, place)
        if not text.strip() or start < 0 or start + len(text) > len(context):
            raise BadInput(
                f"{place}: answer {text!r} at 'answer_start' {start} is empty or outside its context of "
                f"{len(context)} characters"
            )
    gold = {"answers": [answer["text"] for answer in answers], "question_type": record.get("question_type")}
    start = answers[0]["answer_start"] if answers else None
    inputs = {"question": text_of(record, "question", place), "context": context, "start": start}
    return Example(record["guid"], gold, inputs)


def answer_span(example: Example) -> tuple[int, int] | None:
    """Characters [begin, end) of the training answer, the first one; None where there is none."""
    begin = example.inputs["start"]
    return None if begin is None else (begin, begin + len(example.gold["answers"][0]))


def is_misplaced(example: Example) -> bool:
    span = answer_span(example)
    return span is not None and example.inputs["context"][slice(*span)] != example.gold["answers"][0]


def featurize_klue_mrc(
    examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, max_tokens: int, is_training: bool
) -> list[Feature]:
    """Windows of every question. Questions whose answer does not stand at its offset are no training examples."""
    limit = min(QUESTION_TOKENS, max_tokens // 2)
    questions = cut_questions([example.inputs["question"] for example in examples], tokenizer, limit)
    features, misplaced = list[Feature](), 0
    for number, (example, question) in enumerate(zip(examples, questions, strict=True)):
        if is_training and is_misplaced(example):
            misplaced += 1
            continue
        for feature in make_windows(example, question, tokenizer, max_tokens):
            start, end = find_tokens(feature, answer_span(example))
            features.append({**feature, "example": number, "start": start, "end": end})
    if misplaced:
        log.warning("klue-mrc: %d questions are left out of training, their answer is not at answer_start", misplaced)
    return features


def collate_klue_mrc(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Batch as ``SpanFinder.forward`` describes it."""
    candidates = [[1, *feature["in_context"][1:].tolist()] for feature in features]
    return {
        **pad_inputs(features, pad_id),
        "candidates": pad_rows(candidates, 0).astype(bool),
        "start": np.array([feature["start"] for feature in features]),
        "end": np.array([feature["end"] for feature in features]),
    }


def best_span(feature: Feature, start_L: NDArray[Any], end_L: NDArray[Any]) -> tuple[float, int, int]:
    """Score and positions of the best span of a window: at most ``ANSWER_TOKENS`` long, within the context, starting
    where this window is the one with the most context; -inf if there is none."""
    start = np.where(feature["can_start"], start_L, -np.inf)
    end = np.where(feature["in_context"], end_L, -np.inf)
    ends = np.lib.stride_tricks.sliding_window_view(
        np.pad(end, (0, ANSWER_TOKENS - 1), constant_values=-np.inf), ANSWER_TOKENS
    )
    length = ends.argmax(axis=1)
    total = start + ends[np.arange(len(start)), length]
    best = int(total.argmax())
    return float(total[best]), best, best + int(length[best])


def decode_klue_mrc(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[Prediction]:
    """The best span over all windows as text of the context, or "". Scores: ``null``, how much "no answer" is ahead."""
    null = [np.inf] * len(examples)
    best: list[tuple[float, int, int]] = [(-np.inf, 0, 0)] * len(examples)
    for feature, raw in zip(features, raws, strict=True):
        example = feature["example"]
        null[example] = min(null[example], float(raw["start"][0] + raw["end"][0]))
        total, first, last = best_span(feature, raw["start"], raw["end"])
        if total > best[example][0]:
            best[example] = total, int(feature["offsets"][first][0]), int(feature["offsets"][last][1])
    predictions = []
    for number, (total, begin, end) in enumerate(best):
        ahead = null[number] - total
        text = "" if ahead > NULL_THRESHOLD else examples[number].inputs["context"][begin:end]
        predictions.append(Prediction(text, {"null": ahead if np.isfinite(ahead) else None}))
    return predictions


def build_klue_mrc(encoder: str, tokenizer: PreTrainedTokenizerBase) -> nn.Module:
    """Encoder and span head."""
    from finetune.encoder import load_encoder
    from finetune.heads.span import SpanFinder

    return SpanFinder(load_encoder(encoder))


def predict_trivially(train: Sequence[Example], examples: Sequence[Example]) -> list[Prediction]:
    """No question has an answer: right for the unanswerable ones, 31 % of the reduced dev file."""
    return [Prediction("") for _ in examples]


KLUE_MRC = Task(
    name="klue-mrc",
    files=Files(train="klue-mrc-v1.1/klue-mrc-v1.1_train.json", dev="klue-mrc-v1.1/klue-mrc-v1.1_dev.json"),
    read=read_klue_mrc,
    featurize=featurize_klue_mrc,
    collate=collate_klue_mrc,
    model=build_klue_mrc,
    decode=decode_klue_mrc,
    score=score,
    trivial=predict_trivially,
    select_by="rouge_w",
    defaults=Hyperparameters(lr=3e-5, epochs=5, batch_size=16, warmup_share=0.0, max_tokens=510),
    paper_dev={
        "klue/bert-base": {"exact_match": 62.42, "rouge_w": 68.15},
        "klue/roberta-small": {"exact_match": 57.83, "rouge_w": 63.23},
        "klue/roberta-base": {"exact_match": 69.65, "rouge_w": 74.72},
        "klue/roberta-large": {"exact_match": 76.46, "rouge_w": 81.19},
    },
    group=lambda example: example.inputs["context"],
)
