"""Damage of single texts: spreadsheets, mark-up, broken letters. Patterns take linear time.

A spreadsheet turns 3-4 into a date, 0.9% into 0.90%, 007 into 7, and what does not fit into ### (KLUE#36). It changes
whole cells, so numbers and dates count only where they are one, and where the text has something else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from unicodedata import is_normalized

from finetune.annotation.check.items import Finding, Item, Problem

ERROR_CELL = re.compile(r"#(?:NAME\?|REF!|VALUE!|DIV/0!|N/A|NUM!|NULL!|SPILL!|CALC!)|#{4,}")
MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
DATE_CELL = re.compile(
    rf"\d{{1,2}}-(?:{MONTHS})(?:-\d{{2,4}})?|(?:{MONTHS})-\d{{2}}|0\d월 \d\d일|1\d월 0\d일|\d{{4}}-\d\d-\d\d 00:00:00"
)
SCIENTIFIC_CELL = re.compile(r"-?\d(?:\.\d{1,20})?E\+\d{2,3}")
CELLS = (ERROR_CELL, DATE_CELL, SCIENTIFIC_CELL)
NUMBER = re.compile(r"([-+]?)(\d+)(?:\.(\d+))?(%?)")
DATE_SOURCE = re.compile(r"\d{1,4}[-/.]\d{1,2}(?:[-/.]\d{1,4})?")
TAGS = "a|b|br|p|i|u|s|em|strong|font|span|div|img|ref|sub|sup|small|big|li|ul|ol|td|tr|th|table|h[1-6]|nowiki"
MARKUP = re.compile(
    rf"</?(?:{TAGS})(?:\s[a-z-]{{1,20}}=[^<>]{{0,200}})?\s?/?>|&(?:amp|lt|gt|quot|apos|nbsp|middot|hellip|#\d{{2,6}}|#x[0-9a-f]{{2,6}});"
    r"|\[\[|\]\]|\{\{|\}\}|'''|\\[nrt\"]|\\u[0-9a-f]{4}",
    re.IGNORECASE,
)
CP1252 = "\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"  # second and third byte of a syllable in UTF-8, read as CP1252
BROKEN = re.compile(f"[\ufffd\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|占쏙옙|[ê-í][{CP1252}]{{2}}|[À-ÿ]{{4}}")
INVISIBLE = re.compile("[\u00a0\u00ad\u200b-\u200f\u2028-\u202e\u2060\u3000\ufeff\ue000-\uf8ff]")
CONJOINING = re.compile("[\u1100-\u11ff]")
MIN_IDS, USUAL_SHARE = 10, 0.9  # ids from which their usual width counts, and the share that has it
AROUND = 20  # characters shown on each side


def damage_of_cell(cell: str, source: str) -> str | None:
    """How a spreadsheet turned ``source`` into ``cell``, in words; None if it did not.

    >>> damage_of_cell("0.90%", "0.9%"), damage_of_cell("4-Mar", "3-4"), damage_of_cell("감", "감을")
    ('the number 0.9%', 'the date 3-4', None)
    """
    if cell == source:
        return None
    if ERROR_CELL.fullmatch(cell):
        return f"an error of {source}"
    if ((value := _number(cell)) and value == _number(source)) or (SCIENTIFIC_CELL.fullmatch(cell) and source):
        return f"the number {source}"
    is_date = DATE_CELL.fullmatch(cell) or (DATE_SOURCE.fullmatch(source) and re.fullmatch(r"[\d\s:./-]+", cell))
    return f"the date {source}" if is_date else None


def _number(text: str) -> tuple[str, str, str, str] | None:
    """Sign, digits without zeros at their ends, and %."""
    match = NUMBER.fullmatch(text)
    return match and (match[1].strip("+"), match[2].lstrip("0"), (match[3] or "").rstrip("0"), match[4])


def check_texts(items: Sequence[Item]) -> Iterator[Finding]:
    """Damage of the texts, labels and cells of items."""
    for item in items:
        problems = [("empty", f"{name} is empty") for name, text in item.texts.items() if not text.strip()]
        for name, text in item.texts.items():
            problems += _damage_of_text(name, text)
        if isinstance(item.gold, str) and any(pattern.fullmatch(item.gold) for pattern in CELLS):
            problems.append(("spreadsheet", f"the label is {item.gold!r}"))
        damaged = [(cell, damage) for cell, source in item.cells if (damage := damage_of_cell(cell, source))]
        problems += [("spreadsheet", f"{cell!r} in place of {damage}") for cell, damage in damaged]
        texts = [text.strip() for text in item.texts.values()]
        if len(set(texts)) < len(texts) and all(texts):
            problems.append(("same-texts", texts[-1]))
        yield from (Finding(check, item.split, item.guid, message) for check, message in dict.fromkeys(problems))


def _damage_of_text(name: str, text: str) -> Iterator[Problem]:
    cell = text.strip()
    if any(pattern.fullmatch(cell) for pattern in CELLS):
        yield "spreadsheet", f"{name} is {cell!r}"
    elif (match := ERROR_CELL.search(text)) and match[0].strip("#"):
        yield "spreadsheet", f"{name}: {_around(text, match)}"
    if match := MARKUP.search(text) or BROKEN.search(text):
        yield "markup", f"{name}: {_around(text, match)}"
    if match := INVISIBLE.search(text):
        yield "characters", f"{name}: U+{ord(match[0]):04X} in {_around(text, match)}"
    if not is_normalized("NFC", text) or CONJOINING.search(text):
        yield "characters", f"{name} has decomposed letters: {text[:60]}"
    if text != cell or "  " in text:
        yield "characters", f"{name} has spaces at its ends or in a row: {text[:60]!r}"


def _around(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - AROUND) : match.end() + AROUND]


def check_ids(items: Sequence[Item]) -> Iterator[Finding]:
    """Ids of a split that occur twice, and numbers among them that lost their leading zeros."""
    counts = Counter(item.guid for item in items)
    yield from (Finding("id", items[0].split, guid, "occurs twice") for guid, count in counts.items() if count > 1)
    numbers = [guid for guid in counts if guid.isdecimal()]
    usual, count = Counter(map(len, numbers)).most_common(1)[0] if numbers else (0, 0)
    if count >= MIN_IDS and count >= USUAL_SHARE * len(numbers) and any(guid.startswith("0") for guid in numbers):
        for guid in numbers:
            if len(guid) < usual:
                message = f"id {guid} lost its leading zeros; {count:,} ids have {usual} digits"
                yield Finding("spreadsheet", items[0].split, guid, message)
