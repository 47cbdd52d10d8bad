"""Plain text, processed in blocks of lines, because labels and table headers may be in earlier lines.

A block ends at a blank line, or after 500 lines or 64 KiB; the next block keeps the header of its table. Line ends are
unchanged. A text is one document, so equal values get equal replacements.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from corpus.reading.containers import UnreadableRecord
from launch.pii.json_text import check_record, literal
from launch.pii.streams import ReportProblem, TextLine
from launch.pii.work import Finding, Hiding, SpanRow, Work, nfc

BLOCK_LINES, BLOCK_CHARS = 500, 64 << 10
DOCUMENT = "0"
_TABLE_HEAD = re.compile(r"[^\d\n]{1,400}")
_CELL_END = re.compile(r"[,;|\t]")


class Block(NamedTuple):
    """Consecutive lines, and the header of their table if it is in an earlier block."""

    lines: list[TextLine]
    head: str

    @property
    def text(self) -> str:
        """The text of the block in NFC."""
        return "\n".join([*([self.head] if self.head else []), *(nfc(line.text) for line in self.lines)])


def change_blocks(lines: Iterable[TextLine], work: Work, report: ReportProblem, *, refuses_json: bool) -> Iterator[str]:
    """The text without personal data, or a JSON line per line; raises as ``blocks_of``."""
    for block in blocks_of(lines, report, refuses_json):
        yield find_in_block(block, work) if isinstance(work, Finding) else hide_in_block(block, work)


def blocks_of(lines: Iterable[TextLine], report: ReportProblem, refuses_json: bool) -> Iterator[Block]:
    """The readable lines in blocks; blank lines end a block. ``UnreadableRecord`` for an object if ``refuses_json``."""
    held: list[TextLine] = []
    size, head = 0, ""
    for line in lines:
        if line.problem:
            report(f"line {line.number}", line.problem, line.text)
            continue
        if refuses_json and _is_json(line.text.strip()):
            raise UnreadableRecord(f"json_in_text: {line.number}")
        is_blank = not line.text.strip()
        held.append(line)
        size += len(line.text)
        if is_blank or len(held) >= BLOCK_LINES or size >= BLOCK_CHARS:
            yield Block(held, head)
            first = held[0].text
            is_head = not is_blank and not head and _CELL_END.search(first) and _TABLE_HEAD.fullmatch(first)
            head = nfc(first) if is_head else head * (not is_blank)
            held, size = [], 0
    if held:
        yield Block(held, head)


def _is_json(text: str) -> bool:
    if text.startswith("{") and text.endswith("}") and '"' in text:
        with suppress(UnreadableRecord):
            return bool(check_record(text))
    return False


def hide_in_block(block: Block, work: Hiding) -> str:
    """The block without personal data, with unchanged line ends."""
    before = block.text.split("\n")
    drops = work.protection.mode == "drop"
    after = _without_lines(before[:], work) if drops else work.hidden(block.text, DOCUMENT).split("\n")
    skipped = 1 if block.head else 0
    if len(after) == len(before):
        rows = zip(block.lines, before[skipped:], after[skipped:], strict=True)
        return "".join((line.text if new == old else new) + line.end for line, old, new in rows)
    # a hidden value contained a line end
    return (block.lines[0].end or "\n").join(after[skipped:]) + block.lines[-1].end


def _without_lines(lines: list[str], work: Hiding) -> list[str]:
    """Drop sentences with personal data and keep their lines; a line with a value only in context becomes empty."""
    while touched := {
        number
        for number, _ in spans_by_line(lines, Finding(work.protection.types, name_model=work.protection.name_model))
    }:
        for number in touched:
            hidden = work.hidden(lines[number], DOCUMENT)
            lines[number] = "" if hidden == lines[number] else hidden
    return lines


def spans_by_line(lines: list[str], work: Finding) -> Iterator[tuple[int, SpanRow]]:
    """Pairs (line, span); a value that crosses a line end has a span in each line."""
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    for span in work.find("\n".join(lines)):
        for number in range(bisect_right(starts, span.start) - 1, bisect_left(starts, span.end)):
            first, last = max(span.start - starts[number], 0), min(span.end - starts[number], len(lines[number]))
            if first < last:
                yield number, work.format_span(replace(span, start=first, end=last))


def find_in_block(block: Block, work: Finding) -> str:
    """A JSON line per line: ``{"text": …, "spans": [[start, end, TYPE], …]}``."""
    lines = block.text.split("\n")
    line_spans: list[list[SpanRow]] = [[] for _ in lines]
    for number, span in spans_by_line(lines, work):
        line_spans[number].append(span)
    rows = list(zip(lines, line_spans, strict=True))[1 if block.head else 0 :]
    return "".join(literal({"text": text, "spans": spans}) + "\n" for text, spans in rows)
