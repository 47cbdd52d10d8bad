"""Commands side by side in one folder agree on what names stand for before there is a result that says so.

```
.names.lock             held while a command reads all names and adds its own
.names-<digest>.json    what the names of a command at work stand for
.names-<digest>.lock    held as long as that command lives; what a killed one named is forgotten
```
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from corpus.documents.atomic_files import atomic_write
from corpus.documents.locks import hold_lock
from finetune.data.files import read_json
from finetune.queue.jobs import Given, Job, Recipe, name_settings

PREFIX = ".names"


@contextmanager
def named(jobs: Sequence[Job], recipes: Mapping[Job, Recipe], out: Path) -> Iterator[list[Job]]:
    """The jobs as ``name_settings`` names them; as long as this goes on, no command gives other settings these names.

    ``BadInput`` as there.
    """
    out.mkdir(parents=True, exist_ok=True)
    own = out / f"{PREFIX}-{uuid4().hex}.json"
    with hold_lock(own.with_suffix(".lock")):
        try:
            with hold_lock(out / f"{PREFIX}.lock", waits=True):
                found, given = name_settings(jobs, recipes, out, _of_others(out))
                atomic_write(own, json.dumps(given, ensure_ascii=False))
            yield found
        finally:
            with hold_lock(out / f"{PREFIX}.lock", waits=True):  # nobody is reading
                _forget(own)


@contextmanager
def alone(out: Path) -> Iterator[bool]:
    """Inside ``named``: whether no other command is at work in this folder; none begins as long as this goes on."""
    with hold_lock(out / f"{PREFIX}.lock", waits=True):
        yield len(list(_alive(out))) <= 1  # this one


def _of_others(out: Path) -> Iterator[Given]:
    for path in _alive(out):
        yield from (Given(*given) for given in read_json(path))


def _alive(out: Path) -> Iterator[Path]:
    """What the commands at work name; that of a killed one is forgotten."""
    for path in sorted(out.glob(f"{PREFIX}-*.json")):
        with hold_lock(path.with_suffix(".lock")) as is_dead:
            if is_dead:
                _forget(path)
            else:
                yield path


def _forget(path: Path) -> None:
    for doomed in (path, path.with_suffix(".lock")):
        doomed.unlink(missing_ok=True)
