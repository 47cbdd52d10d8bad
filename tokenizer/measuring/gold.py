"""Morpheme boundaries set by people: the LEMMA column of a KLUE-DP file (paper section 3.6), for the eojeols it fits.

The column lists morphemes in dictionary form. Where they join to the eojeol itself (눈물|을) they are its boundaries;
where they do not (했다 is 하 었 다) no place in the text is one, and the eojeol is skipped and counted: 18 % of dev.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from pathlib import Path

from corpus.documents.errors import BadInput
from corpus.documents.whole_files import read_bytes
from tokenizer.measuring.boundaries import CutEojeol, locate_pieces
from tokenizer.words import bert_words

COLUMNS = ("INDEX", "WORD_FORM", "LEMMA", "POS", "HEAD", "DEPREL")
LARGEST_BYTES = 1 << 28  # unpacked; the official dev file has 1.2 MB


def read_gold(path: Path) -> tuple[list[CutEojeol], int]:
    """Eojeols of a KLUE-DP file (plain or .zst) with their morpheme boundaries, and how many were skipped.

    Equal eojeols with equal boundaries are one row, rows in the order of the text.

    Raises:
        BadInput: not such a file, damaged, or without an eojeol that is the sum of its morphemes.
    """
    counts: Counter[tuple[str, tuple[int, ...]]] = Counter()
    skipped = 0
    for number, line in enumerate(_read(path).split("\n"), start=1):
        row = line.removesuffix("\r")
        if not row or row.startswith("##"):
            continue
        columns = row.split("\t")
        if len(columns) != len(COLUMNS) or not columns[0].isdecimal():
            raise BadInput(
                f"{path}, line {number}: not a word of a KLUE-DP file; expected six columns {', '.join(COLUMNS)} "
                f"with tabs between them, as in klue-dp-v1.1_dev.tsv"
            )
        eojeol, morphemes = columns[1], columns[2].split(" ")
        if "".join(morphemes) == eojeol:
            cuts = dict.fromkeys(accumulate(map(len, morphemes)))  # an empty morpheme makes no second boundary
            counts[eojeol, tuple(cut for cut in cuts if 0 < cut < len(eojeol))] += 1
        else:
            skipped += 1
    if not counts:
        raise BadInput(
            f"{path}: none of its {skipped} words is the sum of its morphemes (LEMMA); give a KLUE-DP file, "
            f"such as klue-dp-v1.1_dev.tsv"
        )
    return [
        CutEojeol(eojeol, count, cuts, locate_pieces(eojeol, bert_words(eojeol)))
        for (eojeol, cuts), count in counts.items()
    ], skipped


def _read(path: Path) -> str:
    if not path.is_file():
        raise BadInput(f"{path}: no such file; expected a KLUE-DP file, plain or .zst")
    try:
        return read_bytes(path, LARGEST_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start} is not UTF-8; expected a KLUE-DP file") from None
