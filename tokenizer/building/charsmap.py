"""A table of replacements as the ``Precompiled`` normaliser of ``tokenizers`` reads it (sentencepiece's format).

```
4 bytes: size of the trie │ trie: double array of 32-bit units, UTF-8 bytes to a place │ replacements, each ended by NUL
```
The trie is laid out by first fit: no library, always the same bytes, 0.1 s for the 11,172 syllables, but quadratic
where keys differ much. The unit's bits are those of darts-clone (github.com/s-yata/darts-clone).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

HAS_LEAF = 1 << 8  # a key ends in this node; its value lies in the unit at the node's base
IS_LEAF = 1 << 31
OFFSET_BITS = 10  # position XOR base stands above these bits; below them the label, HAS_LEAF and a shift we never need
LONGEST_OFFSET = 1 << 21
BLOCK = 256  # a reader looks at base XOR any byte, so the array ends with a whole block


def precompile(replacements: Mapping[str, str]) -> bytes:
    """Bytes for ``tokenizers.normalizers.Precompiled``, the same for any order of the mapping.

    The reader cuts text into grapheme clusters. One of fewer than six bytes is replaced **whole** by the value of the
    shortest key it begins with; any other is read character by character. So keys should be single characters, and a
    character that may be followed by a combining mark of two bytes must be kept apart from it (see jamo.py).

    Raises:
        ValueError: an empty key, or a NUL in a key or a value.
    """
    values, places = bytearray(), {}
    for value in sorted(set(replacements.values())):
        places[value] = len(values)
        values += value.encode() + b"\0"
    keys = {key.encode(): places[value] for key, value in replacements.items()}
    if b"" in keys or any(b"\0" in key for key in keys) or any("\0" in value for value in places):
        raise ValueError("a replaced text must not be empty, and neither it nor its replacement may hold NUL")
    trie = _lay_out(_trie(keys))
    return len(trie).to_bytes(4, "little") + trie + bytes(values)


@dataclass(slots=True)
class _Node:
    """A prefix of keys; ``value`` where it is a key itself."""

    children: dict[int, _Node] = field(default_factory=dict)  # by byte, ascending
    value: int | None = None


def _trie(keys: Mapping[bytes, int]) -> _Node:
    root = _Node()
    for key, value in sorted(keys.items()):
        node = root
        for byte in key:
            node = node.children.setdefault(byte, _Node())
        node.value = value
    return root


def _lay_out(root: _Node) -> bytes:
    """Units of the double array, little-endian: the child for byte b of a node lies at the node's base XOR b."""
    units: dict[int, int] = {0: 0}  # by position; the root lies at 0
    bases: set[int] = {0}
    tried: dict[tuple[int, ...], int] = {}  # by labels: where the search for a base left off
    waiting = deque([(root, 0)])
    while waiting:
        node, position = waiting.popleft()
        labels = (*([] if node.value is None else [0]), *node.children)
        if not labels:  # the root of no keys at all
            continue
        base = _fit(labels, units, bases, tried.get(labels, 1))
        tried[labels] = base ^ labels[0]
        bases.add(base)
        offset = position ^ base
        assert offset < LONGEST_OFFSET, "more units than this simple layout can address"
        units[position] |= offset << OFFSET_BITS
        if node.value is not None:
            units[position] |= HAS_LEAF
            units[base] = IS_LEAF | node.value
        for byte, child in node.children.items():
            units[base ^ byte] = byte
            waiting.append((child, base ^ byte))
    blocks = max(units) // BLOCK + 1
    # an unused unit passes for a leaf, so that no byte, 0 included, leads there
    return b"".join(units.get(position, IS_LEAF).to_bytes(4, "little") for position in range(blocks * BLOCK))


def _fit(labels: tuple[int, ...], units: Mapping[int, int], bases: set[int], start: int) -> int:
    """The first base with room for all labels that no other node has (a shared one would lend it their children)."""
    position = start  # of the first label; what was taken before the start stays taken
    while True:
        base = position ^ labels[0]
        if base not in bases and not any(base ^ label in units for label in labels):
            return base
        position += 1
