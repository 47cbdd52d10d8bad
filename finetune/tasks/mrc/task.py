"""KLUE-MRC: extractive question answering with unanswerable questions (KLUE paper 3.7, 5.1).

`[CLS] question [SEP] context [SEP]`; a long context becomes overlapping windows. Spans are found, and answers cut out
of the context, by character offsets. Where a token holds the end of the answer and its particle, the model also learns
how many characters of the token to cut off. Protocol ``klue-baseline``: ``finetune.tasks.mrc.published``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from finetune.data.files import format_json, read_json, text_of
from finetune.data.formats import OWN, name_text
from finetune.examples import Example, Feature, Module, Prediction, Row, Shown, Tokenizer
from finetune.hyperparameters import Hyperparameters
from finetune.task import Files, HubLayout, Merging, Task, table_36
from finetune.tasks.mrc import published
from finetune.tasks.mrc.empty import choose_threshold, keep_some, warn_of_empty
from finetune.tasks.mrc.merging import keep, merge
from finetune.tasks.mrc.metrics import score, tables
from finetune.tasks.mrc.new import USE
from finetune.tasks.mrc.windows import Passage, Target, keep_trainable, make_features, record

ANSWER_TOKENS = 64  # longest answer; published: 30, but one of the 839 answers at hand has 36
CUTS = 4  # most characters cut off the answer's last token; particles such as 에서는 have three
AROUND_ANSWER = 60  # characters of a passage shown on each side of an answer
ABOUT = ("title", "news_category", "source", "context")  # what questions of one passage share in the Hub's copy


def get_field(record: Any, key: str, kind: type, place: str) -> Any:
    """``record[key]``, which must be of ``kind``."""
    if not isinstance(record, Mapping) or not isinstance(record.get(key), kind):
        found = record.get(key) if isinstance(record, Mapping) else record
        raise BadInput(f"{place}: expected {key!r} to be a {kind.__name__}; found {found!r:.60}")
    return record[key]


def read(path: Path) -> list[Example]:
    """Questions of an official file; fields that a reduced file leaves ``null`` are not needed.

    Gold: ``answers`` (texts, none where unanswerable) and ``question_type`` (1 paraphrase, 2 multi-sentence, 3
    unanswerable, None unknown); None in a test file. ``inputs``: ``question``, ``context``, first answer's ``start``.
    """
    document = read_json(path)
    if not isinstance(document, dict):
        raise BadInput(f"{path}: expected data[].paragraphs[].qas[]; {name_text(format_json(document)) or OWN}")
    examples = [parse_question(question, context, str(path)) for context, question in questions_of(document, path)]
    if not examples:
        raise BadInput(f"{path}: no question found; expected data[].paragraphs[].qas[] of KLUE-MRC v1.1")
    return examples


def questions_of(document: Any, path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Context and record of each question of an official file."""
    return [
        (context, question)
        for article in get_field(document, "data", list, str(path))
        for paragraph in get_field(article, "paragraphs", list, str(path))
        for context in [get_field(paragraph, "context", str, str(path))]
        for question in get_field(paragraph, "qas", list, str(path))
    ]


def parse_question(record: Any, context: str, file: str) -> Example:
    if isinstance(record, dict) and "guid" not in record and "id" in record:
        raise BadInput(f"{file}: this looks like SQuAD or KorQuAD ('id', not 'guid', names a question); {OWN}")
    place = f"{file}, {get_field(record, 'guid', str, file)}"
    inputs = {"question": text_of(record, "question", place), "context": context, "start": None}
    if record.get("answers") is None and record.get("is_impossible") is None:
        return Example(record["guid"], None, inputs)
    answers = get_field(record, "answers", list, place)
    if get_field(record, "is_impossible", bool, place) == bool(answers):
        raise BadInput(f"{place}: 'is_impossible' is {record['is_impossible']}, but there are {len(answers)} answers")
    for answer in answers:
        text = get_field(answer, "text", str, place)
        has_no_place = "answer_start" in answer and answer["answer_start"] is None  # a prediction that is no quotation
        start = 0 if has_no_place else get_field(answer, "answer_start", int, place)
        if not text.strip() or start < 0 or (start + len(text) > len(context) and not has_no_place):
            raise BadInput(
                f"{place}: answer {text!r} at 'answer_start' {start} is empty or outside its context of "
                f"{len(context)} characters"
            )
    gold = {"answers": [answer["text"] for answer in answers], "question_type": record.get("question_type")}
    return Example(record["guid"], gold, {**inputs, "start": answers[0]["answer_start"] if answers else None})


def answer_span(example: Example) -> tuple[int, int] | None:
    """Characters [begin, end) of the first answer, which is the training's; None where there is none."""
    begin = example.inputs["start"]
    return None if begin is None else (begin, begin + len(example.gold["answers"][0]))


def is_misplaced(example: Example) -> bool:
    """Whether the first answer does not stand at its offset: such a question is no training example."""
    if example.gold is None or not example.gold["answers"]:
        return False
    span = answer_span(example)
    return span is None or example.inputs["context"][slice(*span)] != example.gold["answers"][0]


def featurize(
    examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool, empty_share: float = 1.0
) -> list[Feature]:
    """Windows of every question (``make_features``); misplaced answers are left out when training, with a warning, and
    of the windows without an answer ``empty_share`` are kept then (``keep_some``)."""

    def find_targets(examples: Sequence[Example], passages: Sequence[Passage]) -> list[Target | None]:
        return [find_tokens(passage, answer_span(e)) for e, passage in zip(examples, passages, strict=True)]

    features = make_features(examples, tokenizer, max_tokens, find_targets)
    if not is_training:
        return features
    kept = keep_some(keep_trainable(features, examples, is_misplaced), examples, empty_share)
    warn_of_empty(kept)
    return kept


def find_tokens(passage: Passage, span: tuple[int, int] | None) -> Target | None:
    """The tokens that hold any character of a span, and how many characters of the last one lie after it."""
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


def ends_of_starts(feature: Feature, end_L: NDArray[Any]) -> NDArray[Any]:
    """Scores of the ends that each start may have, (starts, ``ANSWER_TOKENS``), -inf after the context. Spans start
    where this window shows most around it."""
    begin, last = feature["max_context"]
    end = end_L[begin : feature["context_at"] + len(feature["offsets"])]
    padded = np.pad(end, (0, ANSWER_TOKENS - 1), constant_values=-np.inf)
    return np.lib.stride_tricks.sliding_window_view(padded, ANSWER_TOKENS)[: last - begin + 1]


def best_span(feature: Feature, start_L: NDArray[Any], end_L: NDArray[Any]) -> tuple[float, int, int]:
    """Score and positions of the best span of a window, at most ``ANSWER_TOKENS`` long; -inf if there is none."""
    if feature["max_context"] is None:
        return -np.inf, 0, 0
    begin, last = feature["max_context"]
    ends = ends_of_starts(feature, end_L)
    length = ends.argmax(axis=1)
    total = start_L[begin : last + 1] + ends.max(axis=1)
    best = int(total.argmax())
    return float(total[best]), begin + best, begin + best + int(length[best])


def best_spans(feature: Feature, raw: Any, most: int) -> list[tuple[float, int, int]]:
    """Scores and characters of the best spans of a window, its ``best_span`` first."""
    if feature["max_context"] is None:
        return []
    begin, last = feature["max_context"]
    ends = ends_of_starts(feature, raw["end"])
    total = (raw["start"][begin : last + 1, None] + ends).ravel()
    some = np.argpartition(-total, min(most, len(total)) - 1)[:most]
    some = some[total[some] > -np.inf]
    start, length = np.divmod(some, ANSWER_TOKENS)
    order = np.lexsort((length, -ends[start, length], start, -total[some]))
    spans = zip(total[some], start + begin, start + length + begin, strict=True)
    found = [(float(score), *characters_of(feature, raw, first, end)) for score, first, end in spans]
    return [found[number] for number in order]


def characters_of(feature: Feature, raw: Any, first: int, last: int) -> tuple[int, int]:
    """The characters [begin, end) of a span of positions, without what the model cuts off the last token."""
    at = feature["context_at"]
    begin, (kept, end) = feature["offsets"][first - at, 0], feature["offsets"][last - at]
    return int(begin), max(int(end) - int(raw["cut"][last]), int(kept) + 1)


def decode(
    examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any], always_answers: bool = False
) -> list[Prediction]:
    """The best span over all windows as text of the context, or "". Scores: ``null``, how much "no answer" is ahead."""
    null = [np.inf] * len(examples)
    best: list[tuple[float, int, int]] = [(-np.inf, 0, 0)] * len(examples)
    for feature, raw in zip(features, raws, strict=True):
        example = feature["example"]
        null[example] = min(null[example], float(raw["start"][0] + raw["end"][0]))
        total, first, last = best_span(feature, raw["start"], raw["end"])
        if total > best[example][0]:
            best[example] = total, *characters_of(feature, raw, first, last)
    predictions = []
    for number, (total, begin, end) in enumerate(best):
        ahead = null[number] - total
        span = examples[number].inputs["context"][begin:end].strip()  # a token may bring the space before it
        text = "" if ahead > 0 and not always_answers else span
        predictions.append(Prediction(text, {"null": ahead if np.isfinite(ahead) else None}))
    return predictions


def build(encoder: str, tokenizer: Tokenizer) -> Module:
    """Encoder and span head."""
    from finetune.encoder import load_encoder
    from finetune.heads.span import SpanFinder

    return SpanFinder(load_encoder(encoder, tokenizer), CUTS)


def tune(model: Any, examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> dict[str, float]:
    """Set the score that "no answer" must be ahead by, from what an untuned model predicts of unseen examples."""
    predictions = decode(examples, features, raws, always_answers=True)
    threshold = choose_threshold(examples, predictions)
    model.threshold.fill_(threshold)
    return {"no_answer_threshold": threshold}


def thin(task: Task, share: float) -> Task:
    """KLUE-MRC trained on this share of the windows without an answer."""
    return replace(task, featurize=partial(featurize, empty_share=share))


def predict_trivially(train: Sequence[Example], examples: Sequence[Example]) -> list[Prediction]:
    """No question has an answer: right for the unanswerable ones, 31 % of the reduced dev file."""
    return [Prediction("") for _ in examples]


def fault_of_text(example: Example, prediction: Prediction) -> str | None:
    """A text, empty for no answer."""
    value = prediction.value
    return None if isinstance(value, str) else f"expected a text, empty for no answer; found {value!r:.60}"


def write(official: Path, values: Mapping[str, Any], target: Path) -> None:
    """The official file with predicted ``answers`` (none for ""), at the first place where the context has the text;
    ``answer_start`` is null where it has not (the published decoding can make such a text)."""
    document = read_json(official)
    for context, question in questions_of(document, official):
        text = values[question["guid"]]
        found = re.search(r"\s+".join(map(re.escape, text.split())), context)
        answer = {"text": found[0], "answer_start": found.start()} if found else {"text": text, "answer_start": None}
        question.update(answers=[answer] if text else [], is_impossible=not text)
        question.pop("plausible_answers", None)
    atomic_write(target, json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def convert(rows: Sequence[dict[str, Any]], split: str) -> str:
    """The Hub's rows as an official file. The copy strips texts but keeps their offsets; the reader judges."""
    articles = []
    for key, questions in groupby(rows, key=itemgetter(*ABOUT)):
        title, category, source, context = key
        paragraph = {"context": context, "qas": [_convert_question(row) for row in questions]}
        articles.append({"title": title, "paragraphs": [paragraph], "news_category": category, "source": source})
    return format_json({"version": "KLUE-MRC, from the Hub", "data": articles})


def _convert_question(row: dict[str, Any]) -> dict[str, Any]:
    """The Hub files plausible answers of an unanswerable question under its answers."""
    found = row["answers"]
    if not isinstance(found, list):  # an object of lists, as the release of ``datasets`` has it
        found = [dict(zip(found, answer, strict=True)) for answer in zip(*found.values(), strict=True)]
    answers = [{"text": answer["text"], "answer_start": answer["answer_start"]} for answer in found]
    question = {key: row[key] for key in ("guid", "question", "question_type", "is_impossible")}
    return question | ({"answers": [], "plausible_answers": answers} if row["is_impossible"] else {"answers": answers})


def show(example: Example, row: Row) -> Shown:
    """The question, the passage around the answer, and both answers."""
    context, start = example.inputs["context"], example.inputs.get("start")
    length = len(row.gold["answers"][0]) if row.gold["answers"] else len(row.prediction)
    place = start if start is not None else max(0, context.find(row.prediction))
    begin, end = max(0, place - AROUND_ANSWER), place + length + AROUND_ANSWER
    passage = f"{'…' if begin else ''}{context[begin:end]}{'…' if end < len(context) else ''}"
    gold = list(dict.fromkeys(row.gold["answers"])) or ["no answer"]
    return {"question": example.inputs["question"], "passage": passage}, gold, [row.prediction or "no answer"]


KLUE_MRC = Task(
    name="klue-mrc",
    predicts="answer to a question as a span of the passage, or none",
    files=Files("klue-mrc-v1.1", "json"),
    hub=HubLayout((*ABOUT, "guid", "question", "question_type", "is_impossible", "answers"), convert),
    dev_examples=5_841,
    read=read,
    featurize=featurize,
    collate=collate,
    model=build,
    decode=decode,
    merging=Merging(merge, partial(keep, best_spans)),
    as_published=published.AS_PUBLISHED,
    tune=tune,
    thin=thin,
    score=score,
    tables=tables,
    trivial=predict_trivially,
    record=partial(record, is_misplaced),
    write=write,
    fault=fault_of_text,
    show=show,
    use=USE,
    differs=lambda row: score([row])["exact_match"] < 100,
    group=lambda example: str(example.inputs["context"]),
    select_by="rouge_w",
    defaults=Hyperparameters(lr=3e-5, epochs=5, batch_size=16, warmup_share=0.0, max_tokens=510),
    large=Hyperparameters(lr=3e-5, epochs=5, batch_size=16, warmup_share=0.0, max_tokens=510),
    paper_dev=table_36(exact_match=(62.42, 57.83, 69.65, 76.46), rouge_w=(68.15, 63.23, 74.72, 81.19)),
)
