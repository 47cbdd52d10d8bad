"""What can happen to a file; every harm leaves other bytes than were there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

FOREIGN = b'{"model": "\xea\xb0\x80", "of": "another program"}\n'  # as text, a JSON object of somebody else


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1 << 3
    path.write_bytes(content)


HARMS: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[: -(path.stat().st_size // 3)]),
    "emptied": lambda path: path.write_bytes(b""),
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "one bit flipped": _flip,
    "foreign": lambda path: path.write_bytes(FOREIGN),
    "missing": Path.unlink,
}


def flip_bits(path: Path, every: int) -> Iterator[None]:
    """Flip one bit of a file, of each byte in ``every`` in turn; the others are as they were."""
    content = path.read_bytes()
    for place in range(0, len(content), every):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        yield
