"""Morpheme boundaries by annotators: KLUE-DP files (paper section 3.6) and CoNLL-U (UD_Korean-Kaist, UD_Korean-GSD).

Both have the morphemes of a word in the column LEMMA, KLUE-DP with spaces and CoNLL-U with ``+`` between them. Words
whose morphemes do not join to the word (했다 is 하 었 다) are counted as skipped. KLUE-DP has eojeols with their
punctuation, CoNLL-U without it.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np

from corpus.documents.atomic_files import read_bytes
from corpus.documents.errors import BadInput
from tokenizer.measuring.boundaries import CutEojeol, locate_pieces
from tokenizer.measuring.samples import Sample, make_sample
from tokenizer.words import bert_words

LARGEST_GOLD_BYTES = 1 << 28  # unpacked; the official KLUE-DP dev file has 1.2 MB
KLUE_DP, CONLL_U = "KLUE-DP", "CoNLL-U"
COLUMNS = {KLUE_DP: 6, CONLL_U: 10}
INDEX = {KLUE_DP: re.compile(r"[0-9]{1,9}"), CONLL_U: re.compile(r"[0-9]{1,9}(?:[-.][0-9]{1,9})?")}
EXPECTED = "expected KLUE-DP (klue-dp-v1.1_dev.tsv: six columns, tabs between them) or CoNLL-U (ten columns)"
PLUSES = re.compile(r"(\++)")


class Gold(NamedTuple):
    """Distinct words of a file with their cuts (None: skipped), and the sample of their places."""

    convention: str  # KLUE_DP or CONLL_U
    words: list[CutEojeol]
    sample: Sample


class Row(NamedTuple):
    """A line of the file; ``number`` is 3, in CoNLL-U also 3-4 (a word of several rows) and 3.1 (not in the text)."""

    sentence: int
    number: str
    form: str
    lemma: str


def read_gold(path: Path) -> Gold:
    """Read a KLUE-DP or CoNLL-U file, plain or .zst; the number of columns decides which it is."""
    convention, rows = _read_rows(path)
    cut = cut_at_spaces
    if convention == CONLL_U:
        rows, cut = _surface_words(rows), cut_at_pluses
    numbers: dict[tuple[str, tuple[int, ...] | None], int] = {}
    places = [numbers.setdefault((row.form, cut(row.form, row.lemma)), len(numbers)) for row in rows]
    if all(cuts is None for _, cuts in numbers):
        raise BadInput(f"{path}: none of its {len(rows)} words equals its joined morphemes (LEMMA); {EXPECTED}")
    words = [CutEojeol(form, cuts, locate_pieces(form, bert_words(form))) for form, cuts in numbers]
    return Gold(convention, words, make_sample(np.array([row.sentence for row in rows]), np.array(places)))


def _read_rows(path: Path) -> tuple[str, list[Row]]:
    convention, rows, sentence = "", list[Row](), 0
    for number, line in enumerate(_read(path).split("\n"), start=1):
        columns = line.removesuffix("\r").split("\t")
        if columns == [""]:
            sentence += 1
        elif not line.startswith("#"):
            current = next((name for name, count in COLUMNS.items() if len(columns) == count), "")
            if not current or current != (convention or current) or not INDEX[current].fullmatch(columns[0]):
                raise BadInput(f"{path}, line {number}: not a word of a {convention or 'gold'} file; {EXPECTED}")
            convention = current
            rows.append(Row(sentence, *columns[:3]))
    return convention, rows


def _read(path: Path) -> str:
    if not path.is_file():
        raise BadInput(f"{path}: no such file; expected a KLUE-DP or CoNLL-U file, plain or .zst")
    try:
        return unicodedata.normalize("NFC", read_bytes(path, LARGEST_GOLD_BYTES).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start} is not UTF-8; expected a KLUE-DP or CoNLL-U file") from None


def _surface_words(rows: list[Row]) -> list[Row]:
    """The words of the text: 3-4 gets the morphemes of 3 and 4 and replaces both, and 3.1 is left out."""
    words: list[tuple[Row, list[str]]] = []
    last = 0  # the end of the newest range
    for row in rows:
        first, _, end = row.number.partition("-")
        if "." in first:
            continue
        if not end and int(first) <= last and words[-1][0].sentence == row.sentence:
            words[-1][1].append(row.lemma)
        else:
            words.append((row, [] if end else [row.lemma]))
            last = int(end or 0)
    return [row._replace(lemma="+".join(lemmas)) for row, lemmas in words]


def cut_at_spaces(word: str, lemma: str) -> tuple[int, ...] | None:
    """Starts of the morphemes of a word, except the first; None if they do not join to the word.

    >>> cut_at_spaces("눈물을", "눈물 을"), cut_at_spaces("했다", "하 었 다")
    ((2,), None)
    """
    morphemes = lemma.split(" ")
    if "".join(morphemes) != word:
        return None
    cuts = dict.fromkeys(accumulate(map(len, morphemes)))  # an empty morpheme makes no second boundary
    return tuple(cut for cut in cuts if 0 < cut < len(word))


def cut_at_pluses(word: str, lemma: str) -> tuple[int, ...] | None:
    """The same for ``+``, which may also be a character of the word; None also if the cuts are ambiguous.

    >>> cut_at_pluses("눈물을", "눈물+을"), cut_at_pluses("3+4", "3+++4"), cut_at_pluses("C++를", "C+++를")
    ((2,), (1, 2), None)
    """
    cuts, place = list[int](), 0
    for part in PLUSES.split(lemma):
        end = place + len(part)
        if part.startswith("+"):
            end = place
            while word[end : end + 1] == "+":
                end += 1
            gaps = [gap for gap in range(place, end + 1) if 0 < gap < len(word)]
            between = len(part) - (end - place)  # pluses of the lemma that are not in the word
            if between not in (0, len(gaps)):
                return None
            cuts += gaps if between else []
        elif not word.startswith(part, place):
            return None
        place = end
    return tuple(cuts) if place == len(word) else None
