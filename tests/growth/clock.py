"""Does CPU time grow with the length or with its square? Ratios only: the speed of the machine plays no part."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time
from typing import NamedTuple

FLOOR_SECONDS = 0.05  # a run that takes less on the longest text is never judged
TOO_LONG_SECONDS = 1.5  # no longer text is tried behind a run of that length
MAX_RATIO = 2.9  # of both doublings; linear is 2, square 4
FIRST_CHARS = 500


class Growth(NamedTuple):
    """CPU seconds for n, 2n and 4n characters, where both doublings cost too much."""

    chars: tuple[int, int, int]
    seconds: tuple[float, float, float]

    def __str__(self) -> str:
        return ", ".join(f"{n} characters {s * 1000:.0f} ms" for n, s in zip(self.chars, self.seconds, strict=True))


def steep_growth(run: Callable[[str], object], text_of: Callable[[int], str], longest: int) -> Growth | None:
    """How ``run`` grows over the last two doublings up to ``longest`` characters, if that is steeper than linear.

    None where it is not. Measured three times before it counts.
    """
    probe = longest // 4
    # what grows with the square and reaches the floor on the longest text takes at least this on the probe
    if _is_quick(run, text_of, probe, FLOOR_SECONDS / 16 / 2):
        return None
    growth = None
    for _ in range(3):
        growth = _growth(run, text_of, longest)
        if growth is None:
            return None
    return growth


def _is_quick(run: Callable[[str], object], text_of: Callable[[int], str], chars: int, seconds: float) -> bool:
    """Whether a text of that length takes less; shorter ones first, so that a cubic run ends."""
    for count in (chars // 16, chars):
        if (taken := _seconds(run, text_of(count), 1)) > TOO_LONG_SECONDS / 16:
            return False
    return taken < seconds


def _growth(run: Callable[[str], object], text_of: Callable[[int], str], longest: int) -> Growth | None:
    chars, seconds = [], []
    count = longest
    while count > FIRST_CHARS:
        count //= 2
    while count <= longest:
        if 2 * count > longest and seconds[-1] <= MAX_RATIO * seconds[-2]:
            return None  # both doublings must be steep, so the longest text need not be tried
        chars.append(count)
        seconds.append(_seconds(run, text_of(count), 2))
        if seconds[-1] > TOO_LONG_SECONDS and len(seconds) > 2:
            break
        count *= 2
    first, second, third = seconds[-3:]
    is_steep = third > FLOOR_SECONDS and second > MAX_RATIO * first and third > MAX_RATIO * second
    return Growth((chars[-3], chars[-2], chars[-1]), (first, second, third)) if is_steep else None


def _seconds(run: Callable[[str], object], text: str, rounds: int) -> float:
    best = float("inf")
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            start = process_time()
            run(text)
            best = min(best, process_time() - start)
            if best > FLOOR_SECONDS:
                break  # long enough to exceed the noise
    finally:
        if is_collecting:
            gc.enable()
    return best
