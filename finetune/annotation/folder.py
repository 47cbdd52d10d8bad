"""Files of a benchmark folder: items, votes, gold and drops as JSON lines, and the counts of each step.

Every file is written atomically, so a stopped step starts again from whole files. Worker ids are replaced by keyed
hashes; the key stays in the folder, in a file that only its owner can read, and is never published.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field

from corpus.documents.atomic_files import atomic_file, write_json
from corpus.documents.errors import BadInput
from finetune.annotation.config import FILE_NAME, Benchmark, load_benchmark
from finetune.data.custom_files import read_json_lines
from finetune.data.files import validate

ITEMS, VOTES, GOLD, DROPPED = "items.jsonl", "votes.jsonl", "gold.jsonl", "dropped.jsonl"
EXCLUDED, KEY = "excluded.json", "worker-key"
SPLITS = ("train", "dev", "test")
ETHICS = ("hate", "bias", "pii")  # what workers report (6.2)
Span = tuple[int, int, str]
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Item:
    """A candidate: texts by name, spans in the first text, and what is known (date, group, section, pair …)."""

    id: str
    source: str
    texts: Annotated[Mapping[str, str], Field(min_length=1)]
    spans: tuple[Span, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The first text, to which spans refer."""
        return next(iter(self.texts.values()))


@dataclass(frozen=True, slots=True)
class Vote:
    """A worker's label for an item.

    Attributes:
        worker: hashed id; "" if unknown.
        value: as ``TaskForm.vote`` says; None where the worker reported the item or could not decide.
        role: worker, author (wrote the text and meant this label) or adjudicator (decides alone).
        reports: hate, bias, pii, undecided, translation.
    """

    item: str
    worker: str
    value: Any
    role: str = "worker"
    reports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gold:
    """The settled label of an item."""

    item: str
    value: Any
    votes: int


def read_items(folder: Path) -> list[Item]:
    """The items of a folder in order; ``BadInput`` if there are none or an id occurs twice."""
    items = list(_read(folder / ITEMS, Item, "`malmoi benchmark draw` or take-in"))
    if len({item.id for item in items}) < len(items):
        twice = next(name for name, count in Counter(item.id for item in items).items() if count > 1)
        raise BadInput(f"{folder / ITEMS}: two items have the id {twice}; remove one")
    return items


def read_votes(folder: Path) -> dict[str, list[Vote]]:
    """Votes by item, in the order of their file."""
    votes = defaultdict[str, list[Vote]](list)
    for vote in _read(folder / VOTES, Vote, "`malmoi benchmark take-in`"):
        votes[vote.item].append(vote)
    return votes


def read_gold(folder: Path) -> dict[str, Gold]:
    """Gold by item."""
    return {gold.item: gold for gold in _read(folder / GOLD, Gold, "`malmoi benchmark settle`")}


def read_kept_votes(folder: Path) -> dict[str, list[Vote]]:
    """Votes by item without those of excluded workers."""
    return without(read_votes(folder), read_object(folder / EXCLUDED))


def without(votes: Mapping[str, Sequence[Vote]], excluded: Mapping[str, str]) -> dict[str, list[Vote]]:
    """The votes of workers who are not excluded."""
    return {item: [vote for vote in item_votes if vote.worker not in excluded] for item, item_votes in votes.items()}


def count_labels(gold: Iterable[Gold]) -> dict[str, int]:
    """Number of items with each label, or of spans."""
    values = [g.value for g in gold]
    labels = Counter(value for value in values if isinstance(value, str))
    spans = Counter(s[2] for value in values if isinstance(value, list) for s in value if len(s) == 3)
    return dict(sorted((labels or spans).items()))


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object that a step wrote; empty before that step."""
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def _read(path: Path, kind: type[Row], step: str) -> Iterator[Row]:
    if not path.is_file():
        raise BadInput(f"{path}: no such file; run {step} first")
    for record in read_json_lines(path):
        yield validate(kind, record.values, record.where)


def order_key(seed: int, *names: str) -> str:
    """A hash of names, by which items are drawn and ordered at random."""
    return hashlib.blake2b("\0".join((str(seed), *names)).encode(), digest_size=8).hexdigest()


def run_step(folder: Path, step: str, work: Callable[[Benchmark, Path], dict[str, Any]]) -> dict[str, Any]:
    """Run a step of the benchmark in a folder, and record its counts in ``counts/STEP.json``."""
    counts = work(load_benchmark(folder), folder)
    write_json(folder / "counts" / f"{step}.json", counts)
    return counts


def hash_worker(folder: Path, worker: str) -> str:
    """Twelve hex digits, by the key of a folder, which the first call creates; "" for an unknown worker."""
    path = folder / KEY
    if not path.is_file():
        if not (folder / FILE_NAME).is_file():
            raise BadInput(f"{folder}: no {FILE_NAME} in this folder; expected the folder of a benchmark")
        with atomic_file(path) as temporary:
            temporary.touch(0o600)
            temporary.write_bytes(secrets.token_hex(16).encode())
    return hashlib.blake2b(worker.encode(), key=path.read_bytes(), digest_size=6).hexdigest() if worker else ""
