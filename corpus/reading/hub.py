"""Text of Hugging Face Hub data sets, streamed through ``datasets``: ``hub:NAME[:CONFIG][@REVISION][#SPLIT]``.

The data set's own shards are the units of work. NAME may be a local folder in the Hub's layout, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.errors import BadInput

PREFIX = "hub:"
_NAME = re.compile(r"hub:(?P<name>[^:@#]+)(?::(?P<config>[^@#]+))?(?:@(?P<revision>[^#]+))?(?:#(?P<split>.+))?")


class HubSet(NamedTuple):
    """One split of one configuration of a data set."""

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
        raise BadInput(f"{text}: a Hub data set is written hub:NAME[:CONFIG][@REVISION][#SPLIT]")
    return HubSet(match["name"], match["config"], match["revision"], match["split"] or "train")


def count_shards(found: HubSet) -> int:
    """Number of shards; asks the Hub."""
    return int(_stream(found).num_shards)


def read_shard(found: HubSet, shard: int) -> Iterator[dict[str, Any]]:
    """Rows of one shard in order."""
    stream = _stream(found)
    yield from stream.shard(num_shards=stream.num_shards, index=shard)


def dataset_state(found: HubSet) -> str:
    """What tells this state of the data set from another: the commit on the Hub, of a folder its files' dates."""
    folder = Path(found.name)
    if folder.is_dir():
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return repr([(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files])
    from huggingface_hub import HfApi

    try:
        return str(HfApi().dataset_info(found.name, revision=found.revision).sha)
    except Exception as error:
        raise _hub_error(found, "the Hub does not answer for it", error, "name and network") from error


def _stream(found: HubSet) -> Any:
    from datasets import load_dataset

    try:
        return load_dataset(found.name, found.config, split=found.split, revision=found.revision, streaming=True)
    except Exception as error:
        raise _hub_error(found, "cannot be opened", error, "name, configuration, split and network") from error


def _hub_error(found: HubSet, what: str, error: Exception, advice: str) -> BadInput:
    first_line = (str(error).splitlines() or [type(error).__name__])[0]
    return BadInput(f"{found}: {what} ({first_line}); check {advice}")
