"""Records that cannot be read: one line each in ``quarantine/records.jsonl``, with file, line, byte and reason.

The excerpt shows the form of the record, not its words: digits, letters and syllables are masked, and so are bytes that
are not UTF-8 (names in another encoding), because a broken record holds personal data as often as a good one and no
detector can be trusted with it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from corpus.documents.errors import BadInput
from corpus.documents.escaping import visible_json
from corpus.reading.containers import EXCERPT_BYTES
from corpus.reading.read import Reject

QUARANTINE_RECORDS = Path("quarantine") / "records.jsonl"
ALWAYS_ALLOWED = 10  # a share means nothing for a handful of records
MASKS = (
    (re.compile(r"\d"), "0"),  # of all scripts: full-width ones too
    (re.compile("[A-Za-z]"), "a"),
    (re.compile(r"[^\W\d_a-zA-Z]"), "가"),
    (re.compile("[\udc80-\udcff]"), "\N{REPLACEMENT CHARACTER}"),
)


def quarantine_line(file: str, reject: Reject) -> str:
    """A JSON line; a byte that is not UTF-8 appears as ``�``."""
    excerpt = mask(reject.raw[:EXCERPT_BYTES])
    row = {"file": file, "line": reject.line, "offset": reject.offset, "reason": reject.reason, "excerpt": excerpt}
    return visible_json(json.dumps(row, ensure_ascii=False)) + "\n"


def join_quarantine(parts: Sequence[tuple[Path, int]], out: Path) -> Path:
    """Join the lines of all units; no file where there are none.

    Args:
        parts: each unit's file, and the number of lines of its input that stand before it.

    Returns:
        the path of ``quarantine/records.jsonl``.
    """
    path = out / QUARANTINE_RECORDS
    shutil.rmtree(path.parent, ignore_errors=True)
    parts = [(part, before) for part, before in parts if part.stat().st_size]
    if parts:
        path.parent.mkdir()
        with path.open("w", encoding="utf-8") as joined:
            for part, before in parts:
                for line in part.read_text("utf-8").splitlines():
                    row = json.loads(line)
                    row["line"] += before
                    joined.write(visible_json(json.dumps(row, ensure_ascii=False)) + "\n")
    return path


def mask(raw: bytes) -> str:
    """The form of a record: 0 for digits, a for Latin letters, 가 for all others, � for bytes that are not UTF-8."""
    text = raw.decode("utf-8", "surrogateescape")
    for pattern, symbol in MASKS:
        text = pattern.sub(symbol, text)
    return text


def check_share(rejected: Mapping[str, int], records: int, max_share: float, where: str) -> None:
    """Stop the run when more than ``max_share`` of the records could not be read.

    Raises:
        BadInput: with the number of records per reason.
    """
    bad = sum(rejected.values())
    if bad > max(ALWAYS_ALLOWED, max_share * (records + bad)):
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(rejected.items()))
        raise BadInput(
            f"{bad} of {records + bad} records could not be read ({reasons}), more than corpus.max_bad_share "
            f"{max_share} allows; see {where} for file and line, mend the files or raise the limit"
        )
