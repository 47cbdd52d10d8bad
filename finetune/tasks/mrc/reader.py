"""KLUE-MRC files: reading questions and passages, writing predictions, and converting the copy on the Hub."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from finetune.data.files import CUSTOM_HINT, format_json, read_json, text_of
from finetune.examples import Example

ABOUT = ("title", "news_category", "source", "context")  # what questions of one passage share in the Hub's copy


def get_field(record: Any, key: str, kind: type, place: str) -> Any:
    """``record[key]``, which must be of ``kind``."""
    if not isinstance(record, Mapping) or not isinstance(record.get(key), kind):
        field = record.get(key) if isinstance(record, Mapping) else record
        raise BadInput(f"{place}: expected {key!r} to be a {kind.__name__}; found {field!r:.60}")
    return record[key]


def read(path: Path) -> list[Example]:
    """Questions of an official file; a reduced file may have ``null`` in fields that are not needed.

    Gold: ``answers`` (texts, none if unanswerable) and ``question_type`` (1 paraphrase, 2 multi-sentence, 3
    unanswerable, None unknown); None in a test file. ``inputs``: ``question``, ``context``, first answer's ``start``.
    """
    document = read_json(path)
    if not isinstance(document, dict):
        raise BadInput(f"{path}: expected data[].paragraphs[].qas[]; {CUSTOM_HINT}")
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
            raise BadInput(f"{place}: answer {text!r} at 'answer_start' {start} is empty or outside its context")
    gold = {"answers": [answer["text"] for answer in answers], "question_type": record.get("question_type")}
    return Example(record["guid"], gold, {**inputs, "start": answers[0]["answer_start"] if answers else None})


def answer_span(example: Example) -> tuple[int, int] | None:
    """Characters [begin, end) of the first answer, which training uses; None if there is none."""
    begin = example.inputs["start"]
    return None if begin is None else (begin, begin + len(example.gold["answers"][0]))


def is_misplaced(example: Example) -> bool:
    """Whether the first answer is not at its offset: such a question is not used for training."""
    if example.gold is None or not example.gold["answers"]:
        return False
    span = answer_span(example)
    return span is None or example.inputs["context"][slice(*span)] != example.gold["answers"][0]


def write(official: Path, values: Mapping[str, Any], target: Path) -> None:
    """Write the official file with predicted ``answers`` (none for ""), at the first place of the text in the context;
    ``answer_start`` is null if the context does not contain it (possible with the published decoding)."""
    document = read_json(official)
    for context, question in questions_of(document, official):
        text = values[question["guid"]]
        match = re.search(r"\s+".join(map(re.escape, text.split())), context)
        answer = {"text": match[0], "answer_start": match.start()} if match else {"text": text, "answer_start": None}
        question.update(answers=[answer] if text else [], is_impossible=not text)
        question.pop("plausible_answers", None)
    atomic_write(target, json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def convert(rows: Sequence[dict[str, Any]], split: str) -> str:
    """The Hub's rows as an official file. The copy strips texts but keeps their offsets; the reader checks them."""
    articles = []
    for key, questions in groupby(rows, key=itemgetter(*ABOUT)):
        title, category, source, context = key
        paragraph = {"context": context, "qas": [_convert_question(row) for row in questions]}
        articles.append({"title": title, "paragraphs": [paragraph], "news_category": category, "source": source})
    return format_json({"version": "KLUE-MRC, from the Hub", "data": articles})


def _convert_question(row: dict[str, Any]) -> dict[str, Any]:
    """The Hub has plausible answers of an unanswerable question under its answers."""
    answers = row["answers"]
    if not isinstance(answers, list):  # an object of lists, as the release of ``datasets`` has it
        answers = [dict(zip(answers, answer, strict=True)) for answer in zip(*answers.values(), strict=True)]
    answers = [{"text": answer["text"], "answer_start": answer["answer_start"]} for answer in answers]
    question = {key: row[key] for key in ("guid", "question", "question_type", "is_impossible")}
    return question | ({"answers": [], "plausible_answers": answers} if row["is_impossible"] else {"answers": answers})
