"""Files of custom tasks as examples: one reader for each kind. See ``finetune.data.custom_files``.

A text is an input under the name of its column. Without a ``guid`` column an example is named by file and line. In a
file without the label column no example has a gold (a test file).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

from corpus.documents.atomic_files import parse_json
from corpus.documents.errors import BadInput
from corpus.documents.section import warn_once
from finetune.custom_config import CustomColumns, spell_label
from finetune.data.custom_files import Record, Words, holds_words, missing_columns, nfc, read_table, read_words
from finetune.data.files import remark_on_nfd
from finetune.examples import Example
from finetune.tasks.labels import is_finite_number

log = logging.getLogger(__name__)

MARKS = {"B": "B", "I": "I", "S": "B", "U": "B", "E": "I", "L": "I"}  # BIOES and BILOU as BIO
OUTSIDE = "O"
SPELT_SHARE = 0.9  # of the words of a file; in text cut into words, at most half are one letter or a sign


def class_of(known: Sequence[str] | None, columns: CustomColumns, record: Record) -> str:
    """The class of a row; ``known``: all classes, None: any."""
    label = text_in(record, columns.gold_field, may_be_number=True)
    if known is not None and label not in known:
        raise BadInput(f"{record.where}: no label {label!r} in training; there are {', '.join(known)}")
    return label


def number_of(columns: CustomColumns, record: Record) -> float:
    """The number of a row."""
    return number_in(record, columns.gold_field)


def read_texts(columns: CustomColumns, gold_of: Callable[[CustomColumns, Record], Any], path: Path) -> list[Example]:
    """The texts of each row, and what ``gold_of`` finds in it; no golds in a file without the label column."""
    fields = (*columns.text_fields, *(columns.choices or ()))
    records = read_table(path, fields)
    labelled = _has_golds(records, columns.gold_field)
    remark_on_nfd(path, (record.values.get(columns.gold_field) for record in records))
    return [
        Example(
            guid_of(columns, record, path),
            gold_of(columns, record) if labelled else None,
            {name: text_in(record, name) for name in fields},
        )
        for record in records
    ]


def _has_golds(records: Sequence[Record], column: str) -> bool:
    without = [record for record in records if column not in record.values]
    if 0 < len(without) < len(records):
        raise BadInput(f"{without[0].where}: no {column!r}, which other rows have; label all rows of a file or none")
    return not without


def guid_of(columns: CustomColumns, record: Record | Words, path: Path) -> str:
    """The name of an example: from the column that the recipe names, or ``dev.csv:17``."""
    if columns.guid is not None and isinstance(record, Record):
        return text_in(record, columns.guid, may_be_number=True)
    return (isinstance(record, Words) and record.name) or f"{path.name}:{record.line}"


def number_in(record: Record, column: str) -> float:
    """The number of a column, which may be written as text; ``BadInput`` if it is none, or not finite."""
    value = record.values[column]
    try:
        number = float(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if not is_finite_number(number):
        raise BadInput(f"{record.where}: column {column!r} should hold a number, found {value!r:.60}")
    return float(number)


def text_in(record: Record, column: str, *, may_be_number: bool = False) -> str:
    """The text of a column in NFC; ``BadInput`` if it is missing or no text."""
    if column not in record.values:
        raise BadInput(f"{record.where}: {missing_columns(record, [column])}")
    value = record.values[column]
    text = spell_label(value) if may_be_number else nfc(value)
    if not isinstance(text, str) or not text.strip():
        raise BadInput(f"{record.where}: column {column!r} should hold a text, found {value!r:.60}; remove the row")
    return text


def read_entities(columns: CustomColumns, known: Sequence[str] | None, path: Path) -> list[Example]:
    """Sentences with a tag for each character except spaces; ``known``: all types, None: any."""
    token_column, tag_column = columns.tokens or "tokens", columns.gold_field
    if not columns.has_spans and holds_words(path, [token_column]):
        return _from_words(columns, [(words, words.words, words.tags) for words in read_words(path)], known, path)
    text_column = columns.text_fields[0] if columns.has_spans else token_column
    records = read_table(path, [text_column])
    labelled = _has_golds(records, tag_column)
    if not columns.has_spans:
        sentences = [(r, list_in(r, token_column), list_in(r, tag_column) if labelled else []) for r in records]
        return _from_words(columns, sentences, known, path)
    examples = []
    for record in records:
        text = text_in(record, text_column)
        tags = _tags_of_spans(record, text, record.values[text_column], tag_column) if labelled else None
        examples.append(Example(guid_of(columns, record, path), tags, {"text": text}))
        _refuse_unknown(record.where, tags or (), known)
    return examples


def list_in(record: Record, column: str) -> list[str]:
    """Words or tags of a cell: a list, a JSON list, or separated by spaces."""
    value = record.values[column]
    if isinstance(value, str) and value.startswith("[") and value.rstrip().endswith("]"):
        value = _json_in(record, column)
    words = value.split() if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        raise BadInput(f"{record.where}: column {column!r} should hold words, found {value!r:.60}")
    return [normalize("NFC", word) for word in words]


def _json_in(record: Record, column: str) -> Any:
    value = record.values[column]
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value or "[]")
    except ValueError:
        raise BadInput(f"{record.where}: column {column!r} should hold JSON, found {value!r:.60}") from None


def _from_words(
    columns: CustomColumns, sentences: Sequence[tuple[Record | Words, list[str], list[str]]],
    known: Sequence[str] | None, path: Path,
) -> list[Example]:  # fmt: skip
    """Words are joined by a space, unless nearly all words of the file are one letter or sign, as in KLUE-NER."""
    signs = [sum(map(str.isalnum, word)) < 2 for _, words, _ in sentences for word in words]
    is_spelt = sum(signs) > SPELT_SHARE * len(signs)
    has_tags = any(any(tags) for _, _, tags in sentences)
    examples, mended = [], 0
    for place, words, tags in sentences:
        if has_tags and (len(tags) != len(words) or not all(tags)):
            raise BadInput(f"{place.where}: {len(words)} words but {sum(map(bool, tags))} tags; expected one each")
        text = ("" if is_spelt else " ").join(words)
        if not text.strip():
            raise BadInput(f"{place.where}: a sentence of spaces only; remove it")
        letters = [tag for pair in zip(words, tags, strict=True) for tag in _spread(*pair, place.where)] if tags else []
        mended += _begin_all(letters)
        _refuse_unknown(place.where, letters, known)
        examples.append(Example(guid_of(columns, place, path), letters if has_tags else None, {"text": text}))
    if mended:
        log.warning("%s: %d entities begin with I-; they are read as B-", path, mended)
    return examples


def _spread(word: str, tag: str, where: str) -> list[str]:
    """The tags of a word's characters."""
    count = sum(not letter.isspace() for letter in word)
    mark, _, kind = tag.partition("-")
    if tag == OUTSIDE:
        return [OUTSIDE] * count
    if mark not in MARKS or not kind:
        raise BadInput(f"{where}: tag {tag!r}; expected O, B-TYPE or I-TYPE")
    return [f"{MARKS[mark]}-{kind}", *[f"I-{kind}"] * (count - 1)][:count]


def _begin_all(tags: list[str]) -> int:
    """Replace each I- that continues nothing by B-; returns the number."""
    mended = 0
    for place, tag in enumerate(tags):
        if tag.startswith("I-") and (not place or tags[place - 1][2:] != tag[2:]):
            tags[place] = f"B-{tag[2:]}"
            mended += 1
    return mended


def _refuse_unknown(where: str, tags: Sequence[str], known: Sequence[str] | None) -> None:
    odd = next((tag for tag in tags if tag != OUTSIDE and known is not None and tag[2:] not in known), None)
    if odd is not None:
        raise BadInput(f"{where}: no type {odd[2:]!r} in training; there are {', '.join(known or ())}")


def _tags_of_spans(record: Record, text: str, raw: str, column: str) -> list[str]:
    """Offsets count characters of the file's own text, which may be NFD; the end is exclusive."""
    tags = [OUTSIDE] * len(text)
    spans = _json_in(record, column)
    for span in spans if isinstance(spans, list) else [None]:
        begin, end, kind = _span_of(span, record, column)
        is_inside = end <= len(raw)
        begin, end = (len(normalize("NFC", raw[:place])) for place in (begin, end))
        if not is_inside or not 0 <= begin < end <= len(text) or any(tag != OUTSIDE for tag in tags[begin:end]):
            raise BadInput(f"{record.where}: span {span!r:.60} is empty, overlaps another, or ends after its text")
        tags[begin:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - begin - 1)]
        first = next((place for place in range(begin, end) if not text[place].isspace()), None)
        if first is not None:
            tags[first] = f"B-{kind}"
    return [tag for letter, tag in zip(text, tags, strict=True) if not letter.isspace()]


def _span_of(span: Any, record: Record, column: str) -> tuple[int, int, str]:
    """``[0, 2, "LC"]`` or ``{"start": 0, "end": 2, "label": "LC"}``."""
    match [span.get(name) for name in ("start", "end", "label")] if isinstance(span, dict) else span:
        case [int(begin), int(end), str(kind)] if 0 <= begin < end and kind:
            return begin, end, normalize("NFC", kind)
    raise BadInput(f"{record.where}: column {column!r} should hold a list of [start, end, label], found {span!r:.60}")


def read_answers(columns: CustomColumns, path: Path) -> list[Example]:
    """Questions, passages and answers, "" for none; an answer without offset must occur once in the passage, and one
    that is not at its offset is moved to its place if that is clear."""
    question, context = columns.question or "question", columns.context or "context"
    column = columns.gold_field
    records = read_table(path, [question, context])
    labelled = _has_golds(records, column)
    examples, moved = [], 0
    for record in records:
        passage = text_in(record, context)
        texts, starts = _answers_in(record, column, columns, passage) if labelled else ([], [])
        places = [_place_of(text, passage, start, record.where) for text, start in zip(texts, starts, strict=True)]
        moved += places != starts
        inputs = {"question": text_in(record, question), "context": passage, "start": places[0] if places else None}
        gold = {"answers": texts, "question_type": None} if labelled else None
        examples.append(Example(guid_of(columns, record, path), gold, inputs))
    if moved:
        warn_once(f"{path}: {moved:,} of {len(records):,} answers are not at their start; moved to their place")
    return examples


def _answers_in(record: Record, column: str, columns: CustomColumns, passage: str) -> tuple[list[str], list[int]]:
    start, raw = columns.start, record.values[columns.context or "context"]
    value: Any = record.values[column]
    places: Any = record.values.get(start or "start")
    if isinstance(value, dict):  # as the Hub has SQuAD: {"text": […], "answer_start": […]}
        value, places = value.get("text"), value.get("answer_start")
    elif start is not None and value and places is None:
        raise BadInput(f"{record.where}: {missing_columns(record, [start])}")
    texts = value if isinstance(value, list) else [value] if value not in ("", None) else []
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise BadInput(f"{record.where}: column {column!r} should hold words of the passage, found {value!r:.60}")
    texts = [text if (text := nfc(answer)) in passage else text.strip() for answer in texts]
    if places in ("", None):
        return texts, [_only_place(text, passage, record.where) for text in texts]
    listed = places if isinstance(places, list) else [places]
    numbers = [int(place) if isinstance(place, str) and place.isdecimal() else place for place in listed]
    if len(numbers) != len(texts) or not all(type(number) is int and 0 <= number < len(raw) for number in numbers):
        raise BadInput(f"{record.where}: expected the number of each answer's first character, found {places!r:.60}")
    return texts, [len(normalize("NFC", raw[:number])) for number in numbers]


def _place_of(text: str, passage: str, start: int, where: str) -> int:
    """``start`` if the answer is there, the character before or after it, or the only place of the answer."""
    if passage.startswith(text, start):
        return start
    near = [place for place in (start - 1, start + 1) if place >= 0 and passage.startswith(text, place)]
    return near[0] if len(near) == 1 else _only_place(text, passage, where)


def _only_place(text: str, passage: str, where: str) -> int:
    count = passage.count(text)
    if count != 1:
        advice = "correct its column 'start', or add one, with the offset of its first character"
        raise BadInput(
            f"{where}: answer {text!r:.60} occurs {count} times in its passage; "
            f"{advice if count else 'expected words of the passage, unchanged'}"
        )
    return passage.find(text)
