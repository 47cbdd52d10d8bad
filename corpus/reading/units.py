"""Units of work that do not depend on the number of processes, cut so that one large file uses every core.

```
plain .txt, .jsonl    byte ranges that end where a record does          read by the process that works on them
Parquet               runs of row groups                                 the same
Hub data set          its own shards                                     the same
packed, array, UTF-16 cut as they are unpacked, records in the unit      unpacked once, by the one that hands out work
```
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from corpus.reading.containers import SCANNERS, Item, Window
from corpus.reading.encoding import UTF8, UTF16, blocks_to_utf8
from corpus.reading.files import DamagedFile, read_blocks
from corpus.reading.formats import ADAPTERS
from corpus.reading.hub import HubSet, count_shards
from corpus.reading.inputs import AUTO, Input
from corpus.reading.parquet import open_parquet

UNIT_BYTES = 16 << 20
MAX_UNITS = 20_000  # terabytes come in larger units, or their number would be the work
FED_BYTES = 64 << 20  # the most that a unit carries itself
SMALL_BYTES = 2 << 20  # packed files below are unpacked by the process that works on them
RECORD_ENDS = {
    "lines": re.compile(rb"\n"),
    "text": re.compile(rb"\n[ \t\r]*+\n"),
    "docs": re.compile(rb"\n</doc>[ \t\r]*+\n"),
}
DAMAGED = "damaged_file"


class Unit(NamedTuple):
    """A part of one input, from ``start`` to ``end``: bytes, row groups of Parquet, or a shard of a Hub data set."""

    input: Input
    start: int = 0
    end: int | None = None  # all the rest
    first: int = 1  # number of its first row (Parquet)
    items: tuple[Item, ...] | None = None  # its records, where they were cut out beforehand
    size: int = 0  # bytes as stored, for the progress bar


def plan_units(inputs: Sequence[Input], *, whole_files: bool = False, feed: bool = True) -> Iterator[Unit]:
    """Units of all inputs in order, made as they are asked for.

    Args:
        whole_files: one unit per input, for runs that read only its head.
        feed: cut packed files here; False where units are listed first and worked on elsewhere.
    """
    unit_bytes = max(UNIT_BYTES, total_bytes(inputs) // MAX_UNITS)
    for item in map(Input.settled, inputs):
        if isinstance(item.path, HubSet):
            yield from (Unit(item, shard, shard + 1) for shard in range(count_shards(item.path)))
            continue
        size = item.file.stat().st_size
        is_sequential = item.is_packed or item.container == "array" or item.encoding == UTF16
        if whole_files or size <= (SMALL_BYTES if is_sequential else unit_bytes):
            yield Unit(item, size=size)
        elif is_sequential:
            yield from _feed(item, size, min(unit_bytes, FED_BYTES)) if feed else [Unit(item, size=size)]
        elif item.container == "parquet":
            yield from _cut_row_groups(item, size, unit_bytes)
        else:
            yield from _cut_bytes(item, size, unit_bytes)


def total_bytes(inputs: Iterable[Input]) -> int:
    """Bytes of all files as stored; data sets of the Hub do not tell theirs."""
    return sum(item.file.stat().st_size for item in inputs if not isinstance(item.path, HubSet))


def scan_unit(unit: Unit, counts: Counter[str]) -> Iterator[Item]:
    """Records of a unit of bytes, then its damage if there is any; adds the "lines" of a byte range to ``counts``."""
    if unit.items is not None:
        yield from unit.items
        return
    yield from _scan(unit.input, _blocks(unit, counts), unit.start)


def _blocks(unit: Unit, counts: Counter[str]) -> Iterator[bytes]:
    for block in read_blocks(unit.input.file, unit.start, unit.end):
        if unit.end is not None:
            counts["lines"] += block.count(b"\n")
        yield block


def _scan(item: Input, blocks: Iterator[bytes], offset: int) -> Iterator[Item]:
    """In CP949 no character holds a line end, so its files are cut like UTF-8; UTF-16 is read as one stream."""
    key = ADAPTERS[item.format].array_key if item.format != AUTO else None
    encoding = item.encoding
    if encoding == UTF16:
        blocks, encoding = blocks_to_utf8(blocks, UTF16), UTF8
    last = Item(0, 0, b"")
    try:
        for last in SCANNERS[item.container](blocks, key, encoding):
            yield last._replace(offset=last.offset + offset) if offset else last
    except DamagedFile as error:
        yield Item(last.number + 1, last.offset + len(last.raw), str(error).partition(": ")[2].encode(), DAMAGED)


def _feed(item: Input, size: int, unit_bytes: int) -> Iterator[Unit]:
    """Records of a sequential file in units; sizes are shares of the packed file."""
    taken: list[Item] = []
    held = fed = 0
    for found in _scan(item, read_blocks(item.file), 0):
        taken.append(found)
        held += len(found.raw)
        if held >= unit_bytes:
            stored = min(held // 4, size - fed)  # text packs to about a quarter
            yield Unit(item, items=tuple(taken), size=stored)
            taken, held, fed = [], 0, fed + stored
    yield Unit(item, items=tuple(taken), size=size - fed)


def _cut_bytes(item: Input, size: int, unit_bytes: int) -> Iterator[Unit]:
    """Byte ranges that end with the first end of a record after ``unit_bytes``."""
    start = 0
    while start < size:
        end = min(start + unit_bytes, size)
        window = Window(read_blocks(item.file, end, size))
        found = window.search(RECORD_ENDS[item.container], keep=64)
        end = end + window.offset + found.end() if found else size
        yield Unit(item, start, end, size=end - start)
        start = end


def _cut_row_groups(item: Input, size: int, unit_bytes: int) -> Iterator[Unit]:
    try:
        with item.file.open("rb") as source, open_parquet(source, str(item.file)) as file:
            groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
            counted = [(group.num_rows, group.total_byte_size) for group in groups]
    except DamagedFile:
        yield Unit(item, size=size)  # reading it says so
        return
    start, first, rows, held = 0, 1, 0, 0
    for end, (more_rows, more_bytes) in enumerate(counted, 1):
        rows, held = rows + more_rows, held + more_bytes
        if held >= unit_bytes or end == len(counted):
            yield Unit(item, start, end, first, size=size * (end - start) // len(counted))
            start, first, rows, held = end, first + rows, 0, 0
