"""The inputs of a run: files, fsspec URLs and Hub data sets, each with its format and source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from corpus.config import SourceConfig
from corpus.documents.errors import BadInput
from corpus.documents.escaping import escape_controls
from corpus.reading.encoding import UTF8, inspect_text
from corpus.reading.files import HOW_TO_READ, file_format, find_files, find_texts, is_local, name_files
from corpus.reading.formats import ADAPTERS
from corpus.reading.hub import PREFIX, HubSet, dataset_state, parse_hub_name

AUTO = "auto"
CONTAINERS = {".txt": "text", ".jsonl": "lines", ".ndjson": "lines", ".parquet": "parquet"}


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

    @property
    def is_packed(self) -> bool:
        return not isinstance(self.path, HubSet) and bool(file_format(self.path).packing)


def find_inputs(
    patterns: Sequence[str], sources: Mapping[str, SourceConfig], text_field: str, encoding: str = AUTO
) -> list[Input]:
    """All inputs: those of ``patterns`` in order, then those of the sources; each file once."""
    found = [Input(path, "", text_field=text_field, encoding=encoding) for path in _locate(patterns, find_texts)]
    for name, source in sources.items():
        paths = _locate(source.inputs, _finder(source.format, name))
        rest = (source.format, name, source.text_field or text_field, encoding)
        found += [Input(path, "", *rest) for path in paths]
    first: dict[Any, Input] = {}
    for item in found:
        first.setdefault(item.path if isinstance(item.path, HubSet) else item.path.resolve(), item)
    files = [item for item in first.values() if not isinstance(item.path, HubSet)]
    names = dict(zip(files, name_files([item.file for item in files]), strict=True))
    return [item._replace(name=escape_controls(names.get(item, str(item.path)))) for item in first.values()]


def _locate(patterns: Sequence[str], finder: Callable[[Sequence[str]], list[Path]]) -> list[Path | HubSet]:
    found = ([parse_hub_name(p)] if p.startswith(PREFIX) else finder([p]) for p in patterns)
    return list(chain.from_iterable(found))


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
    return lambda patterns: find_files(patterns, accepts, expected, HOW_TO_READ)


def input_state(item: Input) -> str:
    """Identifies the state of an input, without reading its content."""
    if isinstance(item.path, HubSet):
        return dataset_state(item.path)
    if is_local(item.path):
        found = item.path.stat()
        return f"{found.st_size} {found.st_mtime_ns}"
    remote: Any = item.path
    return str(remote.fs.ukey(remote.path))
