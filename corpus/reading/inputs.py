"""The inputs of a run (files, fsspec URLs and Hub data sets, each with its format and source), and their units of work.

Units are independent of the number of processes, and small enough that one large file uses all cores.

```
plain .txt, .jsonl         byte ranges that end at the end of a record     read by the worker
Parquet                    row groups                                      read by the worker
Hub data set               shards                                          read by the worker
compressed, array, UTF-16  records, which are part of the unit             read once, by the main process
```
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from corpus.config import SourceConfig
from corpus.documents.encoding import AUTO, CP949, UTF8, UTF16, blocks_to_utf8, detect_encoding
from corpus.documents.errors import BadInput
from corpus.documents.escaping import escape_controls
from corpus.reading.containers import SCANNERS, Item, Window
from corpus.reading.files import CONTAINERS, DamagedFile, file_format, find_texts, is_local, name_files, read_blocks
from corpus.reading.formats import ADAPTERS
from corpus.reading.hub import PREFIX, HubSet, count_shards, dataset_state, parse_hub_name
from corpus.reading.parquet import open_parquet

log = logging.getLogger(__name__)

SAMPLE_BYTES = 1 << 20
UNIT_BYTES = 16 << 20
MAX_UNITS = 20_000  # units of very large corpora are larger
FED_BYTES = 64 << 20  # maximum size of the records in a unit
SMALL_BYTES = 2 << 20  # smaller compressed files are read by the worker
RECORD_ENDS = {
    "lines": re.compile(rb"\n"),
    "text": re.compile(rb"\n[ \t\r]*+\n"),
    "docs": re.compile(rb"\n</doc>[ \t\r]*+\n"),
}
DAMAGED = "damaged_file"


class Input(NamedTuple):
    """One raw input: a local file, one at an fsspec URL, or a Hub data set."""

    path: Path | HubSet
    name: str  # shortest unique name, used in ids and reports
    format: str = AUTO  # a name in ADAPTERS; "auto": by file name, with the text in text_field
    source: str | None = None  # None: from the record, else the file name
    text_field: str = "text"
    encoding: str = UTF8  # of text files
    has_mac_lines: bool = False

    def inspected(self) -> Input:
        """The same with the detected encoding and line ends."""
        if isinstance(self.path, HubSet) or self.container == "parquet":
            return self
        encoding, has_mac_lines = inspect_text(self.path, self.encoding)
        return self._replace(encoding=encoding, has_mac_lines=has_mac_lines)

    @property
    def file(self) -> Path:
        """The path of a file; not for Hub data sets."""
        assert not isinstance(self.path, HubSet)
        return self.path

    @property
    def container(self) -> str:
        """The container of the records: "lines", "text", "docs", "array", "parquet" or "hub"."""
        if isinstance(self.path, HubSet):
            return "hub"
        kind = file_format(self.path).kind
        return CONTAINERS[kind] if self.format == AUTO or kind == ".parquet" else ADAPTERS[self.format].container


def find_inputs(
    patterns: Sequence[str], sources: Mapping[str, SourceConfig], text_field: str, encoding: str = AUTO
) -> list[Input]:
    """All inputs: those of ``patterns`` in order, then those of the sources; each file once."""
    inputs = [Input(path, "", text_field=text_field, encoding=encoding) for path in _locate(patterns, find_texts)]
    for name, source in sources.items():
        paths = _locate(source.inputs, _finder(source.format, name))
        rest = (source.format, name, source.text_field or text_field, encoding)
        inputs += [Input(path, "", *rest) for path in paths]
    first: dict[Any, Input] = {}
    for item in inputs:
        first.setdefault(item.path if isinstance(item.path, HubSet) else item.path.resolve(), item)
    files = [item for item in first.values() if not isinstance(item.path, HubSet)]
    names = dict(zip(files, name_files([item.file for item in files]), strict=True))
    return [item._replace(name=escape_controls(names.get(item, str(item.path)))) for item in first.values()]


def _locate(patterns: Sequence[str], finder: Callable[[Sequence[str]], list[Path]]) -> list[Path | HubSet]:
    path_lists = ([parse_hub_name(p)] if p.startswith(PREFIX) else finder([p]) for p in patterns)
    return list(chain.from_iterable(path_lists))


def _finder(name: str, source: str) -> Callable[[Sequence[str]], list[Path]]:
    if name == AUTO:
        return find_texts
    adapter = ADAPTERS.get(name)
    if adapter is None:
        known = ", ".join(sorted(ADAPTERS))
        raise BadInput(f"corpus.sources.{source}.format: no format {name!r}; there are: {AUTO}, {known}")

    def accepts(path: Path) -> bool:
        kind, packing = file_format(path)
        return kind in adapter.suffixes or (kind == ".parquet" and not packing)

    kinds = ", ".join(suffix or "no suffix" for suffix in adapter.suffixes)
    expected = f"file of the format {name} ({kinds}, packed or not)"
    return partial(find_texts, accepts=accepts, expected=expected)


def input_state(item: Input) -> str:
    """Identifies the state of an input, without reading its content."""
    if isinstance(item.path, HubSet):
        return dataset_state(item.path)
    if is_local(item.path):
        stat = item.path.stat()
        return f"{stat.st_size} {stat.st_mtime_ns}"
    remote: Any = item.path
    return str(remote.fs.ukey(remote.path))


def inspect_text(path: Path, encoding: str) -> tuple[str, bool]:
    """The encoding of a file, which "auto" detects, and whether its lines end in a carriage return alone (old Mac).

    Raises:
        BadInput: ``encoding`` is "utf-8" and the file is clearly not UTF-8.
    """
    sample = b""
    with suppress(DamagedFile):  # reported when the file is read
        for block in read_blocks(path):
            sample += block
            if len(sample) >= SAMPLE_BYTES:
                break
    sample = sample[:SAMPLE_BYTES]
    actual = CP949 if encoding == CP949 else detect_encoding(sample)
    if encoding == UTF16:
        actual = actual if actual.startswith(UTF16) else UTF16  # with the byte order of the file
    if encoding == UTF8 != actual:
        setting = UTF16 if actual.startswith(UTF16) else actual
        raise BadInput(f"{path}: looks like {actual.upper()}, not UTF-8; set corpus.encoding={setting}, or auto")
    text = sample.decode(actual, "ignore") if b"\r" in sample else ""
    return actual, "\r" in text and "\n" not in text


# --- units of work


class Unit(NamedTuple):
    """A part of an input from ``start`` to ``end``: bytes, row groups of Parquet, or shards of a Hub data set."""

    input: Input
    start: int = 0
    end: int | None = None  # None: to the end
    first: int = 1  # number of the first row (Parquet)
    items: tuple[Item, ...] | None = None  # the records, if the main process has read them
    size: int = 0  # stored bytes, for the progress bar


def plan_units(inputs: Sequence[Input], *, whole_files: bool = False, feed: bool = True) -> Iterator[Unit]:
    """The units of all inputs in order, lazily.

    Args:
        whole_files: one unit per input, for runs that read only the first documents.
        feed: read compressed files here; False if units are listed first and processed on other nodes.
    """
    unit_bytes = max(UNIT_BYTES, total_bytes(inputs) // MAX_UNITS)
    for item in map(Input.inspected, inputs):
        if item.encoding not in (AUTO, UTF8):
            log.info("%s: read as %s", item.path, item.encoding.upper())
        if isinstance(item.path, HubSet):
            yield from (Unit(item, shard, shard + 1) for shard in range(count_shards(item.path)))
            continue
        size = item.file.stat().st_size
        is_packed = bool(file_format(item.file).packing)
        is_sequential = is_packed or item.container == "array" or item.encoding.startswith(UTF16)
        if whole_files or size <= (SMALL_BYTES if is_sequential else unit_bytes):
            yield Unit(item, size=size)
        elif is_sequential:
            yield from _feed(item, size, min(unit_bytes, FED_BYTES)) if feed else [Unit(item, size=size)]
        elif item.container == "parquet":
            yield from _cut_row_groups(item, size, unit_bytes)
        else:
            yield from _cut_bytes(item, size, unit_bytes)


def total_bytes(inputs: Iterable[Input]) -> int:
    """Stored bytes of all files, without Hub data sets."""
    return sum(item.file.stat().st_size for item in inputs if not isinstance(item.path, HubSet))


def scan_unit(unit: Unit, counts: Counter[str]) -> Iterator[Item]:
    """The records of a unit, and its damage if any; adds the "lines" of a byte range to ``counts``."""
    if unit.items is not None:
        yield from unit.items
        return
    yield from _scan(unit.input, _blocks(unit, counts), unit.start)


def _blocks(unit: Unit, counts: Counter[str]) -> Iterator[bytes]:
    line_end = b"\r" if unit.input.has_mac_lines else b"\n"
    for block in read_blocks(unit.input.file, unit.start, unit.end):
        if unit.end is not None:
            counts["lines"] += block.count(line_end)
        yield block


def _scan(item: Input, blocks: Iterator[bytes], offset: int) -> Iterator[Item]:
    """CP949 characters contain no line ends, so files are split like UTF-8; UTF-16 is read as one stream."""
    key = ADAPTERS[item.format].array_key if item.format != AUTO else None
    encoding = item.encoding
    if encoding.startswith(UTF16):
        blocks, encoding = blocks_to_utf8(blocks, encoding), UTF8
    blocks = _with_line_feeds(item, blocks)
    last = Item(0, 0, b"")
    try:
        for last in SCANNERS[item.container](blocks, key, encoding):
            yield last._replace(offset=last.offset + offset) if offset else last
    except DamagedFile as error:
        yield Item(last.number + 1, last.offset + len(last.raw), str(error).partition(": ")[2].encode(), DAMAGED)


def _with_line_feeds(item: Input, blocks: Iterator[bytes]) -> Iterator[bytes]:
    return (block.replace(b"\r", b"\n") for block in blocks) if item.has_mac_lines else blocks


def _feed(item: Input, size: int, unit_bytes: int) -> Iterator[Unit]:
    """Units of the records of a sequential file; sizes are shares of the compressed size."""
    taken: list[Item] = []
    held = fed = 0
    for record in _scan(item, read_blocks(item.file), 0):
        taken.append(record)
        held += len(record.raw)
        if held >= unit_bytes:
            stored = min(held // 4, size - fed)  # compressed text has about a quarter of its size
            yield Unit(item, items=tuple(taken), size=stored)
            taken, held, fed = [], 0, fed + stored
    yield Unit(item, items=tuple(taken), size=size - fed)


def _cut_bytes(item: Input, size: int, unit_bytes: int) -> Iterator[Unit]:
    """Byte ranges that end at the first end of a record after ``unit_bytes``."""
    start = 0
    while start < size:
        end = min(start + unit_bytes, size)
        window = Window(_with_line_feeds(item, read_blocks(item.file, end, size)))
        match = window.search(RECORD_ENDS[item.container], keep=64)
        end = end + window.offset + match.end() if match else size
        yield Unit(item, start, end, size=end - start)
        start = end


def _cut_row_groups(item: Input, size: int, unit_bytes: int) -> Iterator[Unit]:
    try:
        with item.file.open("rb") as source, open_parquet(source, str(item.file)) as file:
            groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
            group_sizes = [(group.num_rows, group.total_byte_size) for group in groups]
    except DamagedFile:
        yield Unit(item, size=size)  # reported when it is read
        return
    start, first, rows, held = 0, 1, 0, 0
    for end, (more_rows, more_bytes) in enumerate(group_sizes, 1):
        rows, held = rows + more_rows, held + more_bytes
        if held >= unit_bytes or end == len(group_sizes):
            yield Unit(item, start, end, first, size=size * (end - start) // len(group_sizes))
            start, first, rows, held = end, first + rows, 0, 0
