"""Hints for error messages: which known format a file has that a reader does not accept, and what to do with it.

Files are never read by a guess. The first lines decide, and the first matching row of a table counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from json import JSONDecodeError

LOOKED_AT = 1 << 16  # characters or bytes of the beginning
OWN = "own data is read with finetune.custom, from CSV, TSV, JSON lines or CoNLL (docs/finetune.md)"
GIVE_KLUE = f"give the KLUE file of this name; {OWN}"

BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"PAR1", "this is a Parquet file; give finetune.data the folder of the Hub's copy, or hub:NAME"),
    (b"PK\x03\x04", "this is a zip archive or an Excel file; unpack it, or save it as CSV UTF-8"),
    (b"\x28\xb5\x2f\xfd", "this is packed with zstd; give it a name that ends in .zst"),
    (b"\x1f\x8b", "this is packed with gzip; give it a name that ends in .gz"),
    (b"\xff\xfe", "this is UTF-16; save it as UTF-8"),
    (b"\xfe\xff", "this is UTF-16; save it as UTF-8"),
)
KEYS: tuple[tuple[set[str], str], ...] = (  # of the first record of a JSON list
    ({"title", "label"}, "YNAT"),
    ({"premise", "hypothesis", "gold_label"}, "KLUE-NLI"),
    ({"sentence1", "sentence2", "labels"}, "KLUE-STS"),
    ({"subject_entity", "object_entity"}, "KLUE-RE"),
    ({"dialogue", "domains"}, "WoS"),
)
COLUMNS: tuple[tuple[set[str], str], ...] = (  # in the first line of a table
    ({"genre", "filename", "sentence1", "sentence2", "score"}, "KorSTS (tab-separated: genre, filename, …)"),
    ({"sentence1", "sentence2", "gold_label"}, "KorNLI (tab-separated: sentence1, sentence2, gold_label)"),
    ({"id", "document", "label"}, "NSMC (tab-separated: id, document, label)"),
)


def name_bytes(content: bytes) -> str:
    """The format of bytes that are not UTF-8, as a hint; "convert the file to UTF-8" if none matches."""
    for beginning, said in BEGINNINGS:
        if content.startswith(beginning):
            return said
    try:
        content[:LOOKED_AT].decode("cp949")
    except UnicodeDecodeError as error:
        if error.start < min(len(content), LOOKED_AT) - 1:  # the cut may fall inside a character
            return "convert the file to UTF-8"
    return "it may be CP949, as Korean Windows writes; save it as UTF-8 (in Excel: CSV UTF-8)"


def name_text(text: str) -> str | None:
    """``this looks like KorSTS (…); give …``; None if no format matches."""
    head = text[:LOOKED_AT].lstrip("\ufeff")
    lines = [line.removesuffix("\r") for line in head.split("\n")]
    found = next((said for look in (_page, _json, _tagged, _table) if (said := look(head, lines))), None)
    return f"this looks like {found}" if found else None


def _page(head: str, lines: Sequence[str]) -> str | None:
    if re.match(r"\s*<(?:!doctype|html|\?xml)\b", head, re.IGNORECASE):
        return "a web page; download the file itself"
    return (
        "a pointer of Git LFS; fetch the file with `git lfs pull`" if head.startswith("version https://git") else None
    )


def _json(head: str, lines: Sequence[str]) -> str | None:
    start = head.lstrip()[:1]
    if start not in ("{", "["):
        return None
    if '"paragraphs"' in head and '"qas"' in head:
        return f"SQuAD or KorQuAD, as KLUE-MRC but with its own names; {OWN}" if '"guid"' not in head else "KLUE-MRC"
    record = _first_record(head)
    if record is None:
        return None
    task = next((name for keys, name in KEYS if keys <= record), None)
    if task is not None:
        return f"a file of {task}; {GIVE_KLUE}"
    if start == "{" and len(lines) > 1 and lines[1].lstrip().startswith("{"):
        return f"JSON lines; KLUE's files are JSON lists; {OWN}"
    return None


def _first_record(head: str) -> set[str] | None:
    begin = head.find("{")
    try:
        record, _ = json.JSONDecoder().raw_decode(head, begin) if begin >= 0 else (None, 0)
    except (JSONDecodeError, RecursionError, ValueError):
        return None
    return set(record) if isinstance(record, dict) else None


def _tagged(head: str, lines: Sequence[str]) -> str | None:
    """CoNLL-U, and tags of words or characters."""
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")][:50]
    if not rows:
        return None
    if all(len(row) == 10 for row in rows[:-1] or rows) and rows[0][0].partition("-")[0].isdecimal():
        return f"CoNLL-U (Universal Dependencies, ten columns); KLUE-DP has six; {GIVE_KLUE}"
    if len(rows[0]) == 6 and rows[0][0] == "1":
        return f"KLUE-DP (six columns); {GIVE_KLUE}"
    pairs = [row for line in lines[:50] if len(row := re.split(r"[\t ]", line)) == 2]
    tag = re.compile(r"O|[BIESLU]-\S+")
    if len(pairs) > 1 and sum(bool(tag.fullmatch(first)) for first, _ in pairs) > len(pairs) / 2:
        return f"tags before characters; KLUE-NER has the character first, then a tab and its tag; {OWN}"
    if len(pairs) > 1 and sum(bool(tag.fullmatch(last)) for _, last in pairs) > len(pairs) / 2:
        whole = any(len(first) > 1 for first, _ in pairs)
        what = "tags of words (CoNLL); KLUE-NER has one character a line" if whole else "tagged characters (KLUE-NER)"
        return f"{what}; {OWN}"
    return None


def _table(head: str, lines: Sequence[str]) -> str | None:
    cells = {name.strip().strip('"') for name in re.split(r"[\t,]", lines[0])}
    name = next((name for columns, name in COLUMNS if columns <= cells), None)
    if name is not None:
        return f"{name}; {OWN}"
    for mark, kind in (("\t", "a tab-separated table"), (",", "a CSV table")):
        counts = {line.count(mark) for line in lines[:3] if line}
        if len(lines) > 1 and len(counts) == 1 and min(counts) > 0 and lines[0].strip():
            return f"{kind} ({', '.join(lines[0].split(mark))[:80]}); {OWN}"
    return None
