"""``malmoi copy``: copy the finished stages of a run to object storage and back, or to another folder.

```
s3://bucket/smoke/tokenizer/vocab.txt, …     the files
s3://bucket/smoke/tokenizer/copied.json      size and sha256 of each file
s3://bucket/smoke/tokenizer/manifest.json    written last; it means that the copy is complete
```
Stages need a file system: they rename, lock and map files, which object storage cannot do. So a run works on a file
system, and finished stages are copied. All files are read once for the sha256, and again when they are copied back.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import typer

from corpus.documents.atomic_files import atomic_dir, digest_matches, file_digest, parse_json, with_digest
from corpus.documents.errors import BadInput, is_full_disk
from corpus.reading.files import is_local, to_path
from launch.console import set_up_console
from launch.errors import LaunchError
from launch.manifest import MANIFEST_NAME, STARTED_NAME

COPIED_NAME = "copied.json"
WORK_NAMES = {MANIFEST_NAME, STARTED_NAME, COPIED_NAME}  # not in the list of files
BLOCK_BYTES = 1 << 22


def copy(
    source: Annotated[str, typer.Argument(help="Folder of a run, such as runs/smoke, or the URL of a copy.")],
    target: Annotated[str, typer.Argument(help="Target folder or fsspec URL of the run, such as s3://bucket/smoke.")],
    stages: Annotated[
        str, typer.Option("--stages", help="Stages to copy, such as tokenizer,model. Default: all finished stages.")
    ] = "",
) -> None:
    """Copy the finished stages of a run to object storage, or back. Each stage is copied completely or not at all.

    Stages that are already there are skipped. URLs are opened with fsspec: install s3fs or gcsfs.

    Example:  malmoi copy runs/smoke s3://my-bucket/runs/smoke --stages corpus,tokenizer
    """
    set_up_console()
    for name, outcome in copy_run(source, target, [name for name in stages.split(",") if name]).items():
        typer.echo(f"{name}: {outcome}")


def copy_run(source: str, target: str, stages: Sequence[str] = ()) -> dict[str, str]:
    """Copy the finished ``stages`` (default: all) and return what was done for each.

    Raises:
        LaunchError: no such stage is finished, the target holds another one, a copy is damaged, or a place cannot be
            reached.
    """
    start, end = to_path(source), to_path(target)
    with _reached(source):
        names = [path.name for path in start.iterdir()] if start.is_dir() else []
        finished = sorted(name for name in names if (start / name / MANIFEST_NAME).is_file())
    if unknown := sorted(set(stages) - set(finished)):
        raise LaunchError(f"{source}: no finished stage {unknown[0]}; finished are: {', '.join(finished) or 'none'}")
    if not finished:
        raise LaunchError(f"{source}: no finished stage here; expected the folder of a run, or of a copy of one")
    outcomes = {}
    for name in stages or finished:
        with _reached(source, target):
            outcomes[name] = _copy_stage(start / name, end / name)
    return outcomes


def _copy_stage(source: Path, target: Path) -> str:
    manifest = (source / MANIFEST_NAME).read_bytes()
    if (target / MANIFEST_NAME).is_file():
        if (target / MANIFEST_NAME).read_bytes() == manifest:
            return "already there"
        raise LaunchError(f"{target}: has the stage of another run; delete it there, or name another target")
    digests = _listed(source)
    if is_local(target):
        if target.exists():
            raise LaunchError(f"{target}: exists but is not finished; delete it, or name another target")
        with atomic_dir(target) as folder:
            _copy_files(source, folder, digests)
            (folder / MANIFEST_NAME).write_bytes(manifest)
    else:
        _copy_files(source, target, digests)
        (target / COPIED_NAME).write_text(json.dumps(with_digest({"files": digests}), ensure_ascii=False), "utf-8")
        (target / MANIFEST_NAME).write_bytes(manifest)
    return f"{len(digests):,} files, {sum(size for size, _ in digests.values()) / 1e6:,.1f} MB"


def _listed(source: Path) -> dict[str, Any]:
    """Size and sha256 of each file of a stage, from the files, or for a copy from its list."""
    if is_local(source) and not (source / COPIED_NAME).is_file():
        files = sorted(path for path in source.rglob("*") if path.is_file() and not path.name.endswith(".partial"))
        names = [path.relative_to(source).as_posix() for path in files]
        return {name: file_digest(source / name) for name in names if name not in WORK_NAMES}
    try:
        found = parse_json((source / COPIED_NAME).read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        found = {}
    digests = found.get("files") if isinstance(found, dict) and digest_matches(found) else None
    if not isinstance(digests, dict) or any(_leaves(name) for name in digests):
        raise LaunchError(f"{source / COPIED_NAME}: not the list that `malmoi copy` writes; copy the stage there again")
    return digests


def _leaves(name: str) -> bool:
    """Whether a name points outside the folder."""
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name or name in WORK_NAMES


def _copy_files(source: Path, target: Path, digests: dict[str, Any]) -> None:
    for name, digest in digests.items():
        place = target / name
        if is_local(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        with (source / name).open("rb") as reader, place.open("wb") as writer:
            shutil.copyfileobj(reader, writer, BLOCK_BYTES)
        if is_local(place) and file_digest(place) != digest:
            raise LaunchError(f"{source / name}: changed since it was copied there (its size or sha256 differs)")
        if not is_local(place) and place.stat().st_size != digest[0]:
            raise LaunchError(f"{place}: {place.stat().st_size} bytes arrived of {digest[0]}; run the command again")


@contextmanager
def _reached(*names: str) -> Iterator[None]:
    """Turn errors of a storage client into one sentence."""
    try:
        yield
    except (LaunchError, BadInput):
        raise
    except Exception as error:
        far = [name for name in names if "://" in name]
        if not far or is_full_disk(error):
            raise
        raise LaunchError(f"{far[0]}: cannot be reached ({error}); check address and access") from error
