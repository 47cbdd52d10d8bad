"""Tensors written in slices, by each process its own part, and read in full by any number of processes.

```
optimizer-00001-of-00002.safetensors    one-dimensional slices; the header has the shape of each full tensor and the
optimizer-00002-of-00002.safetensors    index at which the slice begins
weights-00001-of-00002.safetensors      the same, until the first process has joined them as model.safetensors
```
A process needs memory for its own part and one tensor; the weights are written twice. All nodes must share the folder.
"""

from __future__ import annotations

import json
import math
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from types import MappingProxyType

import torch
from safetensors import safe_open
from torch import Tensor

from corpus.documents.atomic_files import file_digest, fsync, locate_errors
from corpus.documents.errors import BadInput
from corpus.documents.model_files import OPTIMIZER, part_name
from pretrain.engine.optimizer import MODEL, Slice
from pretrain.engine.world import World

FOR_TORCH = MappingProxyType({"format": "pt"})  # required by transformers
SLICES = "slices"  # in the metadata of a file: {key: [shape, start]}
WEIGHTS = "weights"
VISIBLE_WITHIN_SECONDS = 60.0  # a network file system may cache for this long that a file does not exist
Digests = dict[str, list[int | str]]  # size and sha256 by file name


class StoredTensors(Mapping[str, Tensor]):
    """Tensors of safetensors files, each read on access, and joined if the files hold slices."""

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
            raise RuntimeError(f"{key}: slices with {ends} consecutive values, expected {math.prod(shape)}")
        whole = (pieces[0][1] if len(pieces) == 1 else torch.cat([values for _, values in pieces])).reshape(shape)
        return whole * self._scales[key] if key in self._scales else whole

    def scaled(self, scales: Mapping[str, float]) -> StoredTensors:
        """The same files, with the tensors named in ``scales`` multiplied on access."""
        other = copy(self)
        changed = {name: self._scales.get(name, 1.0) * scale for name, scale in scales.items()}
        other._scales = {**self._scales, **changed}
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
    """Write the same bytes as ``save_file`` in float32, but one tensor at a time."""
    shapes = (
        tensors.shapes if isinstance(tensors, StoredTensors) else {name: tuple(t.shape) for name, t in tensors.items()}
    )
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    ordered, end = sorted(names), 0
    for name in ordered:
        begin, end = end, end + 4 * math.prod(shapes[name])
        header[name] = {"dtype": "F32", "shape": list(shapes[name]), "data_offsets": [begin, end]}
    header_bytes = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    header_bytes += b" " * (-len(header_bytes) % 8)
    with locate_errors(path), path.open("wb") as file:
        file.write(struct.pack("<Q", len(header_bytes)) + header_bytes)
        for name in ordered:
            values = tensors[name].detach().to("cpu", torch.float32).contiguous()
            file.write(values.numpy().astype("<f4", copy=False).data)


def copied(slices: Iterable[Slice]) -> list[Slice]:
    """Copies on the CPU, one by one, without empty slices."""
    return [cut._replace(values=cut.values.to("cpu", copy=True)) for cut in slices if cut.values.numel()]


def write_slices(folder: Path, slices: list[Slice], world: World) -> Digests:
    """Write this process's slices into ``folder`` and empty the list; all processes call it together.

    Returns size and sha256 of the files of all processes, by name. If one could not write, all raise its error.
    """
    try:
        own: Digests | Exception = _write_own(folder, slices, world)
    except (BadInput, OSError) as error:
        own = error
    except Exception as error:  # as text, because the error itself may not be picklable
        own = RuntimeError(f"process {world.rank}: {error!r}")
    digests: Digests = {}
    for part in world.gathered(own):
        if isinstance(part, Exception):
            raise part
        digests |= part
    return digests


def require_visible(folder: Path, digests: Digests) -> None:
    """BadInput if a file of another process is not visible, for example on the local disk of another node."""
    for name, (size, _) in digests.items():
        _wait_for(folder / name, lambda path, size=size: path.stat().st_size == size)  # type: ignore[misc]


@contextmanager
def joined_weights(folder: Path, digests: Digests) -> Iterator[StoredTensors]:
    """The weights whose slices are in a folder; afterwards their files are deleted. BadInput if one has changed."""
    paths = [folder / name for name in digests if name.startswith(f"{WEIGHTS}-")]
    for path in paths:
        if file_digest(path) != digests[path.name]:
            raise BadInput(
                f"{path}: changed after it was written; check the file system and run the same command again"
            )
    weights = StoredTensors(paths)
    yield weights
    weights.close()  # NFS keeps open files under another name
    for path in paths:
        path.unlink()


def _write_own(folder: Path, slices: list[Slice], world: World) -> Digests:
    _wait_for(folder, Path.is_dir)
    digests: Digests = {}
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
        digests[path.name] = file_digest(path)
    return digests


def _wait_for(path: Path, is_there: Callable[[Path], bool]) -> None:
    ends = time.monotonic() + VISIBLE_WITHIN_SECONDS
    while True:
        try:
            if is_there(path):
                return
        except FileNotFoundError:
            pass
        if time.monotonic() > ends:
            raise BadInput(
                f"{path}: written by another process, but not visible here after {VISIBLE_WITHIN_SECONDS:.0f} s; "
                "put the folder of the run on a file system that all nodes share"
            )
        time.sleep(0.05)
