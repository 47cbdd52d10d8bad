"""Commands that run at the same time agree on the names of settings before results record them.

```
.names.lock             held while a command reads all names and adds its own
.names-<digest>.json    the names of a running command
.names-<digest>.lock    held as long as that command runs; names of a killed command are dropped
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
from finetune.queue.jobs import Job, NamedRecipe, Recipe, name_settings

PREFIX = ".names"


@contextmanager
def named(jobs: Sequence[Job], recipes: Mapping[Job, Recipe], out: Path) -> Iterator[list[Job]]:
    """The jobs as ``name_settings`` names them; until the end of the block no other command uses these names for other
    settings. ``BadInput`` as there."""
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
    """Whether no other command works in this folder; none can start until the end of the block."""
    with hold_lock(out / f"{PREFIX}.lock", waits=True):
        yield len(list(_alive(out))) <= 1  # this one


def _of_others(out: Path) -> Iterator[NamedRecipe]:
    for path in _alive(out):
        yield from (NamedRecipe(*given) for given in read_json(path))


def _alive(out: Path) -> Iterator[Path]:
    """Names of running commands; those of killed commands are removed."""
    for path in sorted(out.glob(f"{PREFIX}-*.json")):
        with hold_lock(path.with_suffix(".lock")) as is_dead:
            if is_dead:
                _forget(path)
            else:
                yield path


def _forget(path: Path) -> None:
    for doomed in (path, path.with_suffix(".lock")):
        doomed.unlink(missing_ok=True)
