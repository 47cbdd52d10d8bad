"""Draw a case: one of the layouts, or a value in disguise."""

from __future__ import annotations

from random import Random

from tests.corpus.pii.layouts.disguises import disguised
from tests.corpus.pii.layouts.kinds import LAYOUTS
from tests.corpus.pii.layouts.texts import Case


def draw_case(rng: Random) -> Case:
    """Three cases in four are layouts, the fourth is in disguise; all chance comes from ``rng``."""
    return disguised(rng) if rng.randrange(4) == 0 else rng.choice(LAYOUTS)(rng)
