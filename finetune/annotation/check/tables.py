"""Items of tables (CSV, TSV, JSON lines, JSON lists): KoBEST, KorNLI, KorSTS, NSMC and files of custom tasks.

Kind and columns are found by the names of columns; tables without a known name have their texts in the columns with
Hangul.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from corpus.documents.atomic_files import parse_json
from corpus.documents.errors import BadInput
from finetune.annotation.check.items import Item, Problem
from finetune.annotation.check.records import check_answers, number_in, text_in
from finetune.annotation.check.tagged import check_spans, check_tags
from finetune.custom_config import CustomColumns
from finetune.data.custom_files import Record

GUIDS = ("guid", "id", "idx", "index")
GOLDS = ("gold_label", "label", "labels", "tags", "ner_tags", "spans", "answer", "answers", "score", "similarity")
TEXTS = (
    "title", "text", "sentence", "document", "review", "comment", "premise", "sentence1", "context", "passage",
    "question", "query", "hypothesis", "sentence2", "target", "tokens",
)  # fmt: skip
COLUMNS = (*GUIDS, *GOLDS, *TEXTS)  # in lower case
PASSAGES = ("context", "passage", "text")
CHOICE = re.compile(r"(?:choice|option|ending|answer)?[ _]?\d", re.IGNORECASE)
HANGUL, DECIMAL = re.compile("[가-힣]"), re.compile(r"-?\d{1,3}(?:\.\d{1,20})?")
UNIQUE_SHARE = 0.9  # of different values in a column of ids; those of KorSTS count within their source
MAX_CLASSES = 10  # more different numbers than this are no classes


def find_columns(records: Sequence[Record], path: Path) -> CustomColumns:
    """Kind and columns of a table; ``BadInput`` if it has no texts."""
    columns = list(dict.fromkeys(name for record in records for name in record.values))
    cells = {name: [text_in(record.values.get(name)) for record in records] for name in columns}
    names = {name.lower(): name for name in columns}
    guid, gold = (next((names[key] for key in keys if key in names), None) for keys in (GUIDS, GOLDS))
    guid = guid if guid and len(set(cells[guid])) > UNIQUE_SHARE * len(records) else None
    choices = tuple(name for name in columns if CHOICE.fullmatch(name))
    rest = [name for name in columns if name not in (guid, gold, *choices)]
    texts = ["marked"] if "marked" in rest else [name for name in rest if name.lower() in TEXTS]
    texts = texts or [name for name in rest if 2 * sum(map(bool, map(HANGUL.search, cells[name]))) >= len(records)]
    if not texts:
        raise BadInput(f"{path}: no texts found in the columns {', '.join(columns)}; name one text or sentence1")
    text: str | tuple[str, str] = (texts[-2], texts[-1]) if len(texts) > 1 else texts[0]
    values = set(cells[gold]) if gold else set()
    if "tokens" in names:
        return CustomColumns(kind="tagging", tokens=names["tokens"], tags=gold, guid=guid)
    if gold and gold.lower() == "spans":
        return CustomColumns(kind="tagging", text=texts[0], spans=gold, guid=guid)
    if len(choices) > 1:
        return CustomColumns(kind="choice", text=text, choices=choices, label=gold, guid=guid)
    passage = next((name for name in texts if name.lower() in PASSAGES), None)
    if gold and gold.lower().startswith("answer") and passage and "question" in names and len(values) > MAX_CLASSES:
        return CustomColumns(kind="span", question=names["question"], context=passage, answer=gold, guid=guid)
    if isinstance(text, str):
        return CustomColumns(kind="label", text=text, label=gold, guid=guid)
    is_scored = len(values) > MAX_CLASSES and 2 * sum(map(bool, map(DECIMAL.fullmatch, values))) > len(values)
    return CustomColumns(kind="similarity" if is_scored else "pair", text=text, label=gold, guid=guid)


def read_row(columns: CustomColumns, record: Record, split: str) -> Item:
    """The item of a row."""
    values, key = record.values, columns.gold_field
    names = (*columns.text_fields, *(columns.choices or ()))
    if columns.kind == "span":
        names = (columns.question or "", columns.context or "")
    elif columns.kind == "tagging" and not columns.has_spans:
        names = (columns.tokens or "",)
    texts = {name: text_in(values.get(name)) for name in names}
    item = Item(text_in(values.get(columns.guid or "")) or str(record.line), split, texts)
    if key not in values:
        return item
    value, problems = _parsed(values[key]), list[Problem]()
    if columns.kind == "span":
        return _read_answer(item, texts[names[1]], value, values.get("start", values.get("answer_start")))
    if columns.kind == "tagging" and columns.has_spans:
        gold, problems = check_spans(texts[names[0]], value)
        return item._replace(gold=gold, problems=problems)
    if columns.kind == "tagging":
        return _read_tokens(item._replace(texts={}), names[0], _parsed(values[names[0]]), value)
    if columns.choices and len({texts[name] for name in columns.choices}) < len(columns.choices):
        problems.append(("label", "two choices are equal"))
    label = text_in(values[key]).strip()
    if not label:
        return item._replace(problems=[*problems, ("empty", f"{key} is empty")])
    if columns.kind != "similarity":
        return item._replace(gold=label, problems=problems)
    score = number_in(label)
    return item._replace(gold=score, problems=[] if score is not None else [("label", f"{label:.40} is no number")])


def _parsed(value: Any) -> Any:
    """A cell that holds a JSON list or object, parsed."""
    with suppress(ValueError):
        return parse_json(value) if isinstance(value, str) and value[:1] in "[{" and value else value
    return value


def _read_tokens(item: Item, name: str, tokens: Any, tags: Any) -> Item:
    words, found = (part.split() if isinstance(part, str) else [*map(str, part or ())] for part in (tokens, tags))
    problems = list(check_tags(found))
    if len(words) != len(found):
        problems.append(("tags", f"{len(words)} tokens, but {len(found)} tags"))
    return item._replace(texts={name: " ".join(words)}, gold=tuple(found), problems=problems)


def _read_answer(item: Item, passage: str, value: Any, starts: Any) -> Item:
    if isinstance(value, Mapping):  # as the Hub has SQuAD
        value, starts = value.get("text"), value.get("answer_start")
    answers = [*map(text_in, value)] if isinstance(value, list) else [text_in(value)] if value not in ("", None) else []
    gold, problems, cells = check_answers(passage, answers, starts if isinstance(starts, list) else [starts])
    return item._replace(gold=gold, problems=problems, cells=cells)
