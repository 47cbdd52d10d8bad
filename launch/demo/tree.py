"""A dependency tree as an inline SVG: words below each other, arcs beside them, so that it is as narrow as a phone.

```
╭─▶ 한빛도서관이  NP_SBJ
│ ╭─▶ 새         DP
│ ╭─▶ 강좌를     NP_OBJ
╰─┴── 연다.      VP
```
An arc goes from a head to its dependent, where the arrow is; arcs inside others are drawn inside them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from launch.demo.panels import escape

ROW, LANE, SIZE, LABEL = 30, 16, 15.0, 11.5  # heights, widths and letters, in pixels
WIDEST = 132  # of all lanes together
LONGEST = 16  # letters of a word; more would make all of it small on a phone


def draw_tree(words: Sequence[str], heads: Sequence[int], labels: Sequence[str], title: str = "") -> str:
    """The tree as ``<svg>``; ``heads`` are numbers of words from 1, 0 for the root, one for each word.

    Links that are no word's number are left out, as is a word's link to itself; long words end in "…".
    """
    words = [word if len(word) <= LONGEST else f"{word[: LONGEST - 1]}…" for word in words]
    arcs = [(at, head - 1) for at, head in enumerate(heads) if 0 < head <= len(words) and head - 1 != at]
    depths = _depths(arcs)
    lane = min(LANE, WIDEST / max(depths.values(), default=1))
    edge = lane * max(depths.values(), default=0) + 12
    text_x = edge + 10
    column = text_x + max((_width(word, SIZE) for word in words), default=0) + 12
    width = column + max((_width(label, LABEL) for label in labels), default=0) + 4
    drawn = [_arc(dependent, head, edge, lane * depths[dependent]) for dependent, head in arcs]
    lines = [
        _word(row, word, label, text_x, column, is_root=head == 0)
        for row, (word, label, head) in enumerate(zip(words, labels, heads, strict=True))
    ]
    height = ROW * len(words)
    return (
        f'<svg class="tree" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" role="img">'
        f"<title>{escape(title)}</title>{''.join(drawn)}{''.join(lines)}</svg>"
    )


def _depths(arcs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Lanes of arcs by dependent, 1 the nearest to the words: one more than the deepest arc inside.

    Arcs are met from short to long, so that each finds those inside it done: ``deepest[i]`` is the deepest lane so far
    that covers the gap between the words ``i`` and ``i + 1``.
    """
    deepest: dict[int, int] = {}
    lanes = {}
    for dependent, head in sorted(arcs, key=lambda arc: (abs(arc[0] - arc[1]), arc)):
        gaps = range(min(dependent, head), max(dependent, head))
        lanes[dependent] = 1 + max(deepest.get(gap, 0) for gap in gaps)
        deepest.update(dict.fromkeys(gaps, lanes[dependent]))
    return lanes


def _arc(dependent: int, head: int, edge: float, reach: float) -> str:
    start, end = ROW * (head + 0.5), ROW * (dependent + 0.5)
    sign = 1 if end > start else -1
    start += 4 * sign  # arcs to a head's two sides leave apart
    round_ = min(8.0, reach, abs(end - start) / 2)
    left = edge - reach
    path = (
        f"M{edge:.1f} {start:.1f}H{left + round_:.1f}Q{left:.1f} {start:.1f} {left:.1f} {start + sign * round_:.1f}"
        f"V{end - sign * round_:.1f}Q{left:.1f} {end:.1f} {left + round_:.1f} {end:.1f}H{edge:.1f}"
    )
    tip = f"M{edge - 5:.1f} {end - 4:.1f}L{edge + 2:.1f} {end:.1f}L{edge - 5:.1f} {end + 4:.1f}Z"
    return f'<path class="arc" d="{path}"/><path class="tip" d="{tip}"/>'


def _word(row: int, word: str, label: str, text_x: float, column: float, *, is_root: bool) -> str:
    y = ROW * (row + 0.5) + 5
    return (
        f'<text class="{"root" if is_root else "word"}" x="{text_x:.1f}" y="{y:.1f}">{escape(word)}</text>'
        f'<text class="label" x="{column:.1f}" y="{y:.1f}">{escape(label)}</text>'
    )


def _width(text: str, size: float) -> float:
    """An upper guess: Hangul and Han characters are square, others a little wider than half."""
    return size * sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.64 for letter in text)
