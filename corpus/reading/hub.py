"""Text of Hugging Face Hub data sets, streamed by ``datasets``: ``hub:NAME[:CONFIG][@REVISION][#SPLIT]``.

The shards of the data set are the units of work. NAME may also be a local folder in the layout of the Hub.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.errors import BadInput, first_line

PREFIX = "hub:"
_NAME = re.compile(r"hub:(?P<name>[^:@#]+)(?::(?P<config>[^@#]+))?(?:@(?P<revision>[^#]+))?(?:#(?P<split>.+))?")


class HubSet(NamedTuple):
    """A split of a configuration of a data set."""

    name: str
    config: str | None
    revision: str | None
    split: str

    def __str__(self) -> str:
        config, revision = f":{self.config}" if self.config else "", f"@{self.revision}" if self.revision else ""
        return f"{PREFIX}{self.name}{config}{revision}#{self.split}"


def parse_hub_name(text: str) -> HubSet:
    """Raises: BadInput when the name is not of the form above."""
    match = _NAME.fullmatch(text)
    if not match:
        raise BadInput(f"{text}: not a Hub data set; expected hub:NAME[:CONFIG][@REVISION][#SPLIT]")
    return HubSet(match["name"], match["config"], match["revision"], match["split"] or "train")


def count_shards(data_set: HubSet) -> int:
    return int(_stream(data_set).num_shards)


def read_shard(data_set: HubSet, shard: int) -> Iterator[dict[str, Any]]:
    stream = _stream(data_set)
    yield from stream.shard(num_shards=stream.num_shards, index=shard)


def dataset_state(data_set: HubSet) -> str:
    """Identifies the state of a data set: the commit on the Hub, or the dates of the files of a folder."""
    folder = Path(data_set.name)
    if folder.is_dir():
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return repr([(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files])
    from huggingface_hub import HfApi

    try:
        return str(HfApi().dataset_info(data_set.name, revision=data_set.revision).sha)
    except Exception as error:
        raise _hub_error(data_set, "the Hub does not answer", error, "name and network") from error


def _stream(data_set: HubSet) -> Any:
    from datasets import load_dataset

    try:
        return load_dataset(
            data_set.name, data_set.config, split=data_set.split, revision=data_set.revision, streaming=True
        )
    except Exception as error:
        raise _hub_error(data_set, "cannot be opened", error, "name, configuration, split and network") from error


def _hub_error(data_set: HubSet, what: str, error: Exception, advice: str) -> BadInput:
    return BadInput(f"{data_set}: {what} ({first_line(error)}); check {advice}")
