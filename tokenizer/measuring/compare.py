"""Several tokenizers side by side over one text: Table 35's figures, mecab-ko's boundaries, and a person's.

The text is read once and each eojeol analysed once, however many tokenizers there are. All eojeol types are in memory,
about 0.3 KB each: this is for samples, not for 62 GB.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document
from tokenizer.building.count import count_eojeols
from tokenizer.measuring.boundaries import BoundaryScores, read_gold, score_boundaries, silver_cuts
from tokenizer.measuring.encoder import FILE_NAMES, load_tokenizer, make_encoder
from tokenizer.measuring.statistics import TokenizerStatistics, measure_counts

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One tokenizer among others: ``silver`` is mecab-ko's opinion on the text, ``gold`` a person's on KLUE-DP."""

    name: str
    fit: TokenizerStatistics
    silver: BoundaryScores
    gold: BoundaryScores | None


def compare(tokenizers: Sequence[Path], texts: Iterable[str], gold: Path | None = None) -> list[Comparison]:
    """All figures of several tokenizers over one text, which is read once and analysed once.

    Args:
        tokenizers: folders or vocab.txt files (``load_tokenizer``); names are made of their paths.
        texts: documents; eojeols are analysed with one neighbour on each side of their line.
        gold: a KLUE-DP file.

    Raises:
        BadInput: no tokenizer there or one twice, no word in the text, or no KLUE-DP file.
    """
    names = name_tokenizers(tokenizers)
    loaded = [load_tokenizer(path) for path in tokenizers]
    gold_cuts, without_gold = read_gold(gold) if gold else ([], 0)
    types = list(count_eojeols(_documents(texts)))
    log.info("%d eojeol types; mecab-ko cuts each of them once", len(types))
    silver, without_silver = silver_cuts(types)
    counts = [(row.eojeol, row.frequency) for row in types]
    found = []
    for name, tokenizer in zip(names, loaded, strict=True):
        log.info("%s: measuring", name)
        fit = measure_counts(tokenizer, counts)
        encoder = make_encoder(tokenizer, [eojeol for eojeol, _ in counts])
        found.append(
            Comparison(
                name=name,
                fit=fit,
                silver=score_boundaries(encoder.spans, silver, without_silver),
                gold=score_boundaries(encoder.spans, gold_cuts, without_gold) if gold else None,
            )
        )
    return found


def _documents(texts: Iterable[str]) -> Iterator[Document]:
    for text in texts:
        # by content, not by place: the window of an eojeol is the same for any order of the texts
        id_ = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        yield Document(id_, "", tuple(text.splitlines()))


def name_tokenizers(paths: Sequence[Path]) -> list[str]:
    """Names of folders or files, with as much of the path as tells them apart; BadInput where one is given twice."""
    whole = [path.parent.resolve() / path.name if path.is_file() else path.resolve() for path in paths]
    for path, count in Counter(whole).items():
        if count > 1:
            raise BadInput(f"{path}: this tokenizer is given twice; name each one once")
    short = [
        path if path.is_dir() else path.parent if path.name in FILE_NAMES else path.with_suffix("") for path in whole
    ]
    parts = [path.parts for path in (short if len(set(short)) == len(short) else whole)]
    return [_shortest(own, [other for other in parts if other is not own]) for own in parts]


def _shortest(own: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> str:
    lengths = range(1, len(own))
    enough = next((n for n in lengths if all(other[-n:] != own[-n:] for other in others)), len(own))
    return str(Path(*own[-enough:]).as_posix())
