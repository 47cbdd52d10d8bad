"""``malmoi copy``: the finished stages of a run to object storage and back, or to any other place.

```
s3://bucket/smoke/tokenizer/vocab.txt, …     files as they are
s3://bucket/smoke/tokenizer/copied.json      size and sha256 of each, and its own
s3://bucket/smoke/tokenizer/manifest.json    last: where it is, the copy is whole
```
Stages work on a file system: they rename, lock and map files, which object storage cannot. So inputs are read from
there, a run is worked on where it lies, and what is finished is copied. The price is one reading of all files for the
sha256, and a second by who copies them back.
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
    source: Annotated[str, typer.Argument(help="A run's folder, such as runs/smoke, or the URL of a copy.")],
    target: Annotated[str, typer.Argument(help="Folder or fsspec URL that becomes the run's: s3://bucket/smoke.")],
    stages: Annotated[str, typer.Option("--stages", help="Some of them: tokenizer,model. Default: all finished.")] = "",
) -> None:
    """Copy the finished stages of a run to object storage, or back; each is whole there or not at all.

    What is there already is left. URLs are opened with fsspec: install s3fs, gcsfs or the like.

    Example:  malmoi copy runs/smoke s3://my-bucket/runs/smoke --stages corpus,tokenizer
    """
    set_up_console()
    for name, told in copy_run(source, target, [name for name in stages.split(",") if name]).items():
        typer.echo(f"{name}: {told}")


def copy_run(source: str, target: str, stages: Sequence[str] = ()) -> dict[str, str]:
    """Copy the finished ``stages`` (none named: all) and return by stage what was done.

    Raises:
        LaunchError: no such stage is finished, the target holds another one, a copy is damaged, or a place cannot be
            reached.
    """
    start, end = to_path(source), to_path(target)
    with _reached(source):
        names = [path.name for path in start.iterdir()] if start.is_dir() else []
        found = sorted(name for name in names if (start / name / MANIFEST_NAME).is_file())
    if unknown := sorted(set(stages) - set(found)):
        raise LaunchError(f"{source}: no finished stage {unknown[0]}; finished are: {', '.join(found) or 'none'}")
    if not found:
        raise LaunchError(f"{source}: no finished stage here; expected the folder of a run, or of a copy of one")
    told = {}
    for name in stages or found:
        with _reached(source, target):
            told[name] = _copy_stage(start / name, end / name)
    return told


def _copy_stage(source: Path, target: Path) -> str:
    manifest = (source / MANIFEST_NAME).read_bytes()
    if (target / MANIFEST_NAME).is_file():
        if (target / MANIFEST_NAME).read_bytes() == manifest:
            return "is there already"
        raise LaunchError(f"{target}: holds the stage of another run; delete it there, or name another target")
    seals = _listed(source)
    if is_local(target):
        if target.exists():
            raise LaunchError(f"{target}: is there, but not finished; delete it, or name another target")
        with atomic_dir(target) as folder:
            _copy_files(source, folder, seals)
            (folder / MANIFEST_NAME).write_bytes(manifest)
    else:
        _copy_files(source, target, seals)
        (target / COPIED_NAME).write_text(json.dumps(with_digest({"files": seals}), ensure_ascii=False), "utf-8")
        (target / MANIFEST_NAME).write_bytes(manifest)
    return f"{len(seals):,} files, {sum(size for size, _ in seals.values()) / 1e6:,.1f} MB"


def _listed(source: Path) -> dict[str, Any]:
    """Size and sha256 of each file of a stage: read from the files, or for a copy from the list that it has."""
    if is_local(source) and not (source / COPIED_NAME).is_file():
        files = sorted(path for path in source.rglob("*") if path.is_file() and not path.name.endswith(".partial"))
        names = [path.relative_to(source).as_posix() for path in files]
        return {name: file_digest(source / name) for name in names if name not in WORK_NAMES}
    try:
        found = parse_json((source / COPIED_NAME).read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        found = {}
    seals = found.get("files") if isinstance(found, dict) and digest_matches(found) else None
    if not isinstance(seals, dict) or any(_leaves(name) for name in seals):
        raise LaunchError(f"{source / COPIED_NAME}: not the list that `malmoi copy` writes; copy the stage there again")
    return seals


def _leaves(name: str) -> bool:
    """Whether a name is none below the folder it is said to be in."""
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name or name in WORK_NAMES


def _copy_files(source: Path, target: Path, seals: dict[str, Any]) -> None:
    for name, seal in seals.items():
        place = target / name
        if is_local(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        with (source / name).open("rb") as reader, place.open("wb") as writer:
            shutil.copyfileobj(reader, writer, BLOCK_BYTES)
        if is_local(place) and file_digest(place) != seal:
            raise LaunchError(f"{source / name}: not as it was copied there (its size or sha256 differs)")
        if not is_local(place) and place.stat().st_size != seal[0]:
            raise LaunchError(f"{place}: {place.stat().st_size} bytes arrived of {seal[0]}; run the command again")


@contextmanager
def _reached(*names: str) -> Iterator[None]:
    """Around what places are asked; the words of a far one's client become one sentence."""
    try:
        yield
    except (LaunchError, BadInput):
        raise
    except Exception as error:
        far = [name for name in names if "://" in name]
        if not far or is_full_disk(error):
            raise
        raise LaunchError(f"{far[0]}: cannot be reached ({error}); check address and access") from error
