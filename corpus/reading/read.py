"""Read units of work: each raw record becomes a ``Record`` or a ``RejectedRecord`` with a reason, or is skipped.

An unreadable record does not affect others; it goes to the quarantine with its letters masked. Text is normalized to
NFC here, once.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.encoding import UTF8
from corpus.documents.errors import BadInput
from corpus.documents.escaping import escape_controls, escape_json
from corpus.documents.section import warn_once
from corpus.reading.containers import EXCERPT_BYTES, INVALID_UTF8, TOO_LONG, Item, UnreadableRecord, parse_object
from corpus.reading.files import DamagedFile
from corpus.reading.formats import ADAPTERS, SkippedRecord
from corpus.reading.hub import HubSet, read_shard
from corpus.reading.inputs import AUTO, DAMAGED, Input, Unit, scan_unit
from corpus.reading.parquet import Rows, as_bytes, cell_value, open_parquet, read_rows, stored_schema

log = logging.getLogger(__name__)

FIRST_FILES, FIRST_RECORDS = 100, 10
NO_TEXT, TEXT_IS_NO_STRING, OTHER_LAYOUT = "no_text", "text_is_not_a_string", "not_laid_out_as_"
MAX_KEYS = 12
PUBLIC_KEY = re.compile(r"[^\W\d]\w{0,39}")  # a longer key may be text
NAME_CHARS = 200
SURROGATE = re.compile("[\ud800-\udfff]")
DOC_ATTRIBUTE = re.compile(r'(?<!\w)(\w++)="([^"]*+)"')


class Record(NamedTuple):
    """A raw document in NFC; ``place`` is its file and byte (Parquet: row, array: item)."""

    place: str
    id: str
    source: str
    text: str


class RejectedRecord(NamedTuple):
    """``line``: line, row or item within the unit, from 1; ``offset``: byte in the decompressed file."""

    line: int
    offset: int
    reason: str
    raw: bytes


def read_unit(unit: Unit, counts: Counter[str], max_documents: int | None = None) -> Iterator[Record | RejectedRecord]:
    """The first ``max_documents`` of a unit, and rejected records; adds "records", "empty", "skipped" to ``counts``."""
    left = max_documents if max_documents is not None else -1
    rows = _read_rows(unit) if unit.input.container in ("parquet", "hub") else _read_items(unit, counts)
    for record in rows:
        if left == 0:
            return
        if isinstance(record, SkippedRecord):
            counts[f"skipped.{record}"] += 1
            continue
        counts["records"] += 1
        left -= isinstance(record, Record)
        yield record
        del record  # free a large record before the next one is read


def check_first_records(inputs: Sequence[Input]) -> None:
    """Read a few records of up to ``FIRST_FILES`` files, because a wrong text field should not cost hours.

    Raises:
        BadInput: no file of a source and kind has text under the expected key; names the keys that are there.
    """
    problems: dict[tuple[str | None, str], list[str]] = {}
    files = [item for item in inputs if not isinstance(item.path, HubSet)]
    for item in files[:: max(1, len(files) // FIRST_FILES)]:
        records = list(islice(read_unit(Unit(item.inspected()), Counter()), FIRST_RECORDS))
        rejected = [record for record in records if isinstance(record, RejectedRecord)]
        is_bad = records and len(rejected) == len(records)
        problems.setdefault((item.source, item.container), []).append(_explain_keys(item, rejected) if is_bad else "")
    for of_kind in problems.values():
        if all(of_kind):
            raise BadInput(of_kind[0])
        for problem in filter(None, of_kind):
            warn_once(problem)


def _explain_keys(item: Input, rejected: Sequence[RejectedRecord]) -> str:
    """Which keys records have in place of the expected ones, and which setting to change; "" for other problems."""
    is_field = item.format == AUTO
    reasons = (NO_TEXT, TEXT_IS_NO_STRING) if is_field else (OTHER_LAYOUT + item.format,)
    if any(record.reason not in reasons for record in rejected):
        return ""
    chars: Counter[str] = Counter()
    for record in rejected:
        with suppress(UnreadableRecord):  # a block of markup
            fields = parse_object(record.raw)
            chars.update({key: len(value) if isinstance(value, str) else 0 for key, value in fields.items()})
            if is_field and fields.get(item.text_field, "") is None:
                return ""  # a record without text
    keys = [key for key, _ in chars.most_common() if PUBLIC_KEY.fullmatch(key)]
    section = f"corpus.sources.{item.source}" if item.source else "corpus"
    expected = f"no text under {item.text_field!r}" if is_field else f"not in the layout of the format {item.format}"
    setting = f"{section}.text_field={next(filter(chars.get, keys), '…')}" if is_field else f"{section}.format"
    return (
        f"{item.path}: {expected} in the first {len(rejected)} records (keys there, longest text first: "
        f"{', '.join(keys[:MAX_KEYS]) or 'none'}); set {setting}"
    )


def _read_items(unit: Unit, counts: Counter[str]) -> Iterator[Record | RejectedRecord | SkippedRecord]:
    item = unit.input
    parse = PARSERS[item.container]
    for raw_item in scan_unit(unit, counts):
        number, offset, raw, problem, _ = raw_item
        if not problem and not raw.strip():
            counts["empty"] += 1
            continue
        place = f"{item.name}#{number}" if item.container == "array" else f"{item.name}@{offset}"
        record = problem or _record(item, place, parse, raw_item)
        if record == INVALID_UTF8 and item.encoding != UTF8:
            record = f"invalid_{item.encoding}"
        yield RejectedRecord(number, offset, record, raw) if isinstance(record, str) else record


def _read_rows(unit: Unit) -> Iterator[Record | RejectedRecord | SkippedRecord]:
    item = unit.input
    shard = f"{unit.start}." if isinstance(item.path, HubSet) else ""
    number = unit.first - 1
    try:
        for fields in _rows(unit):
            number += 1
            place = f"{item.name}#{shard}{number}"
            record = fields if isinstance(fields, str) else _record(item, place, _decode, fields)
            if isinstance(record, str):
                raw = b"" if isinstance(fields, str) else fields.get(item.text_field)
                raw = raw if isinstance(raw, bytes) else repr(raw).encode("utf-8", "replace")
                yield RejectedRecord(number, 0, record, raw[:EXCERPT_BYTES])
            else:
                yield record
            del fields, record  # free a large row before the next one is read
    except DamagedFile as error:
        yield RejectedRecord(number + 1, 0, DAMAGED, str(error).partition(": ")[2].encode())


def _parse_doc(item: Item) -> dict[str, Any]:
    head, _, text = item.raw.decode("utf-8").partition("\n")
    return dict(DOC_ATTRIBUTE.findall(head)) | {"text": text}


def _decode(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value.decode("utf-8") if isinstance(value, bytes) else value for key, value in fields.items()}


PARSERS: dict[str, Callable[[Item], dict[str, Any]]] = {
    "lines": lambda item: parse_object(item.raw),
    "array": lambda item: item.value,
    "text": lambda item: {"text": item.raw.decode("utf-8")},
    "docs": _parse_doc,
}


def _record(
    item: Input, place: str, parse: Callable[[Any], Mapping[str, Any]], raw: Any
) -> Record | SkippedRecord | str:
    """A record, a skipped record, or the reason why it is unreadable."""
    try:
        fields = parse(raw)
        text, name = _text_and_id(item, fields)
    except UnicodeDecodeError:
        return INVALID_UTF8
    except UnreadableRecord as error:
        return str(error)
    except SkippedRecord as skip:
        return skip
    if text is None:
        return NO_TEXT
    if not isinstance(text, str):
        return TEXT_IS_NO_STRING
    if SURROGATE.search(text):
        return "lone_surrogate"
    default = item.path.name.rpartition("/")[2] if isinstance(item.path, HubSet) else item.path.name.split(".")[0]
    source = escape_controls(item.source or _name(fields.get("source"), default))
    return Record(place, _name(name, place), source, unicodedata.normalize("NFC", text))


def _text_and_id(item: Input, fields: Mapping[str, Any]) -> tuple[Any, Any]:
    if item.format == AUTO:
        return fields.get("text" if item.container == "text" else item.text_field), fields.get("id")
    adapter = ADAPTERS[item.format]
    try:
        return adapter.text_of(fields), adapter.id_of(fields)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise UnreadableRecord(f"{OTHER_LAYOUT}{item.format}") from None


def _name(value: Any, default: str) -> str:
    """``value`` if it is a valid id or source (a short string or an integer), else ``default``."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return default
    name = str(value).strip()
    return name if 0 < len(name) <= NAME_CHARS and not SURROGATE.search(name) else default


def _rows(unit: Unit) -> Iterator[dict[str, Any] | str]:
    """Rows as dicts; a string is the reason why a row is unreadable."""
    item = unit.input
    if isinstance(item.path, HubSet):
        for row in read_shard(item.path, unit.start):
            _check_columns(item, list(row))
            yield row
        return
    with item.path.open("rb") as source, open_parquet(source, str(item.path)) as file:
        names = stored_schema(file).names
        _check_columns(item, names)
        columns = [name for name in dict.fromkeys((item.text_field, "id", "source")) if name in names]
        groups = range(unit.start, file.num_row_groups if unit.end is None else unit.end)
        for rows in read_rows(file, source, str(item.path), groups, columns if item.format == AUTO else None):
            yield from _rows_of(rows)
            del rows


def _check_columns(item: Input, names: list[str]) -> None:
    if item.format == AUTO and item.text_field not in names:
        columns = ", ".join(names)
        raise BadInput(f"{item.path}: no column {item.text_field!r} (there are: {columns}); set corpus.text_field")


def _rows_of(rows: Rows) -> Iterator[dict[str, Any] | str]:
    """Rows as dicts with strings as bytes, one at a time, because Python objects need much memory."""
    columns = dict(zip(rows.table.schema.names, map(as_bytes, rows.table.columns), strict=True))
    for place in range(rows.table.num_rows):
        try:
            is_short = place not in rows.too_long
            yield {name: cell_value(column, place) for name, column in columns.items()} if is_short else TOO_LONG
        except UnicodeDecodeError:  # in a nested column
            yield INVALID_UTF8


QUARANTINE_RECORDS = Path("quarantine") / "records.jsonl"
ALWAYS_ALLOWED = 10  # a share is meaningless for a few records
MASKS = (
    (re.compile(r"\d"), "0"),  # of all scripts
    (re.compile("[A-Za-z]"), "a"),
    (re.compile(r"[^\W\d_a-zA-Z]"), "가"),
    (re.compile("[\udc80-\udcff]"), "\N{REPLACEMENT CHARACTER}"),
)


def quarantine_line(file: str, reject: RejectedRecord) -> str:
    """The JSON line of a rejected record; its text is masked, because a detector may miss values in broken records."""
    raw = reject.raw[:EXCERPT_BYTES]
    excerpt = raw.decode("utf-8", "replace") if reject.reason == DAMAGED else mask_record(raw)  # our own message
    row = {"file": file, "line": reject.line, "offset": reject.offset, "reason": reject.reason, "excerpt": excerpt}
    return escape_json(json.dumps(row, ensure_ascii=False)) + "\n"


def mask_record(raw: bytes) -> str:
    """Mask a record: 0 for digits, a for Latin letters, 가 for other letters, � for bytes that are not UTF-8."""
    text = raw.decode("utf-8", "surrogateescape")
    for pattern, symbol in MASKS:
        text = pattern.sub(symbol, text)
    return text


def join_quarantine(parts: Sequence[tuple[Path, int]], out: Path) -> Path:
    """Join the files of all units, given with the number of lines before each; writes no file without records."""
    path = out / QUARANTINE_RECORDS
    shutil.rmtree(path.parent, ignore_errors=True)
    if any(part.stat().st_size for part, _ in parts):
        path.parent.mkdir()
        with path.open("w", encoding="utf-8") as joined:
            for part, before in parts:
                for row in map(json.loads, part.read_text("utf-8").splitlines()):
                    row["line"] += before
                    joined.write(escape_json(json.dumps(row, ensure_ascii=False)) + "\n")
    return path


def check_rejected_share(rejected: Mapping[str, int], records: int, max_share: float, where: str) -> None:
    """``BadInput`` if more than ``max_share`` of the records are unreadable, a warning if any are."""
    bad = sum(rejected.values())
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(rejected.items()))
    losses = "; each damaged file has also lost an unknown number of records" if DAMAGED in rejected else ""
    summary = f"{bad} of {records + bad} records could not be read ({reasons}{losses})"
    if bad > max(ALWAYS_ALLOWED, max_share * (records + bad)):
        raise BadInput(
            f"{summary}, more than corpus.max_bad_share={max_share}. See {where} for file and line; fix the files or "
            "increase the limit"
        )
    if bad:
        log.warning("%s; see %s for file and line", summary, where)
