"""Tensors written in slices, by each process what it holds of them, and read whole by any number of processes.

```
optimizer-00001-of-00002.safetensors    slices of one dimension; the header's metadata says of each the shape of its
optimizer-00002-of-00002.safetensors    tensor and where in it, row by row, it begins
weights-00001-of-00002.safetensors      the same, until the first process has put them together as model.safetensors
```
Slices are put together tensor by tensor, on the disk: no process needs room for more than its own and one tensor. The
price is that the weights are written twice. Processes of several nodes meet in one folder; of the file system nothing
more is asked than that who opens a file sees what was written before it was closed, as on NFS.
"""

from __future__ import annotations

import json
import math
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from types import MappingProxyType

import torch
from safetensors import safe_open
from torch import Tensor

from corpus.documents.atomic_files import file_digest, fsync, locate_errors
from corpus.documents.errors import BadInput
from pretrain.checkpoint.found import OPTIMIZER, part_name
from pretrain.engine.optimizer import MODEL, Slice
from pretrain.engine.world import World

FOR_TORCH = MappingProxyType({"format": "pt"})  # what transformers looks for
SLICES = "slices"  # in the metadata of a file: {key: [shape, start]}
WEIGHTS = "weights"
SEEN_WITHIN_SECONDS = 60.0  # a network file system may remember for so long that there was no such file
Seals = dict[str, list[int | str]]


class Stored(Mapping[str, Tensor]):
    """Tensors of safetensors files, each read when it is asked for, and put together where the files hold slices."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._scales: Mapping[str, float] = {}
        self._pieces: dict[str, list[tuple[int, str]]] = {}
        self._files = {str(path): safe_open(path, "pt") for path in paths}
        for path, file in self._files.items():
            cut = json.loads((file.metadata() or {}).get(SLICES, "{}"))
            for key in file.keys():  # noqa: SIM118
                shape, start = cut.get(key) or (file.get_slice(key).get_shape(), 0)
                self.shapes[key] = tuple(shape)
                self._pieces.setdefault(key, []).append((start, path))

    def __getitem__(self, key: str) -> Tensor:
        pieces = [(start, self._files[path].get_tensor(key)) for start, path in sorted(self._pieces[key])]
        shape, ends = self.shapes[key], 0
        for start, values in pieces:
            if start != ends:
                break
            ends += values.numel()
        if ends != math.prod(shape):
            raise RuntimeError(f"{key}: slices of {ends} values in a row, where {math.prod(shape)} were expected")
        whole = (pieces[0][1] if len(pieces) == 1 else torch.cat([values for _, values in pieces])).reshape(shape)
        return whole * self._scales[key] if key in self._scales else whole

    def scaled(self, scales: Mapping[str, float]) -> Stored:
        """The same files, with the tensors that ``scales`` names multiplied when they are read."""
        other = copy(self)
        other._scales = dict(scales)
        return other

    def close(self) -> None:
        self._files.clear()

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], names: Iterable[str], metadata: Mapping[str, str] = FOR_TORCH
) -> None:
    """A safetensors file of some of the tensors in float32, one after the other; byte for byte as by ``save_file``.

    safetensors itself takes all of them at once, and then holds them twice.
    """
    shapes = tensors.shapes if isinstance(tensors, Stored) else {name: tuple(t.shape) for name, t in tensors.items()}
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    ordered, end = sorted(names), 0
    for name in ordered:
        begin, end = end, end + 4 * math.prod(shapes[name])
        header[name] = {"dtype": "F32", "shape": list(shapes[name]), "data_offsets": [begin, end]}
    told = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    told += b" " * (-len(told) % 8)
    with locate_errors(path), path.open("wb") as file:
        file.write(struct.pack("<Q", len(told)) + told)
        for name in ordered:
            values = tensors[name].detach().to("cpu", torch.float32).contiguous()
            file.write(values.numpy().astype("<f4", copy=False).data)


def copied(slices: Iterable[Slice]) -> list[Slice]:
    """Copies on the CPU, one by one, without what is empty."""
    return [cut._replace(values=cut.values.to("cpu", copy=True)) for cut in slices if cut.values.numel()]


def write_slices(folder: Path, slices: list[Slice], world: World) -> Seals:
    """Write what this process holds into ``folder``, which the first process has made; all call it together.

    Returns size and sha256 of the files of all processes, by name, which are on the disk by then. BadInput or OSError,
    on all processes: one of them could not write. ``slices`` is emptied.
    """
    try:
        found: Seals | Exception = _write_own(folder, slices, world)
    except (BadInput, OSError) as error:
        found = error
    except Exception as error:  # what others cannot be sent must not keep them waiting
        found = RuntimeError(f"process {world.rank}: {error!r}")
    seals: Seals = {}
    for one in world.gathered(found):
        if isinstance(one, Exception):
            raise one
        seals |= one
    return seals


def require_seen(folder: Path, seals: Seals) -> None:
    """BadInput where a file that another process wrote is not there, as on a node with a disk of its own."""
    for name, (size, _) in seals.items():
        _wait_for(folder / name, partial(_has_size, size))


@contextmanager
def put_together(folder: Path, seals: Seals) -> Iterator[Stored]:
    """The weights whose slices lie in a folder; afterwards their files are deleted.

    BadInput: one of them is not as it was written.
    """
    paths = [folder / name for name in seals if name.startswith(f"{WEIGHTS}-")]
    for path in paths:
        if file_digest(path) != seals[path.name]:
            raise BadInput(f"{path}: not as it was written; check the file system, and run the same command again")
    weights = Stored(paths)
    yield weights
    weights.close()  # what somebody has open NFS keeps under another name
    for path in paths:
        path.unlink()


def _write_own(folder: Path, slices: list[Slice], world: World) -> Seals:
    _wait_for(folder, Path.is_dir)
    seals: Seals = {}
    by_file: dict[str, list[Slice]] = {WEIGHTS: [], OPTIMIZER: []}
    for cut in slices:
        by_file[WEIGHTS if cut.key.startswith(f"{MODEL}/") else OPTIMIZER].append(cut)
    slices.clear()
    for stem, cuts in by_file.items():
        path = folder / part_name(stem, world.rank + 1, world.size)
        values = {cut.key.removeprefix(f"{MODEL}/"): cut.values for cut in cuts}
        places = json.dumps({cut.key.removeprefix(f"{MODEL}/"): [cut.shape, cut.start] for cut in cuts})
        write_tensors(path, values, values, {SLICES: places})
        fsync(path)
        seals[path.name] = file_digest(path)
    return seals


def _has_size(size: int | str, path: Path) -> bool:
    return path.stat().st_size == size


def _wait_for(path: Path, is_there: Callable[[Path], bool]) -> None:
    ends = time.monotonic() + SEEN_WITHIN_SECONDS
    while True:
        try:
            if is_there(path):
                return
        except FileNotFoundError:
            pass
        if time.monotonic() > ends:
            raise BadInput(
                f"{path}: written by another process, and after {SEEN_WITHIN_SECONDS:.0f} s not seen by this one; the "
                "folder of the run must be on a file system that all nodes share"
            )
        time.sleep(0.05)
