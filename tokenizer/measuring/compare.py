"""Comparison of several tokenizers on the same texts: figures of Table 35, boundaries of mecab-ko and of gold files.

Each text is read once and each eojeol analysed once. All texts and eojeol types (about 0.5 KB each) are in memory, so
this is for samples, not for 62 GB.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Tokenizer

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document
from tokenizer.building.count import EojeolType, count_eojeols
from tokenizer.measuring.boundaries import (
    BoundaryScores,
    CutEojeol,
    count_boundaries,
    cut_by_mecab,
    fertility_interval,
    score_boundaries,
)
from tokenizer.measuring.encoder import FILE_NAMES, load_tokenizer, make_encoder
from tokenizer.measuring.gold import Gold, read_gold
from tokenizer.measuring.samples import Interval, Sample, make_sample, resample
from tokenizer.measuring.statistics import TokenizerStatistics, add_up, summarize

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OnText:
    """Figures of a tokenizer on one text, or on all texts; ``silver``: compared with mecab-ko."""

    text: str
    fit: TokenizerStatistics
    fertility_interval: Interval | None  # 95 % (``measuring.samples``)
    silver: BoundaryScores


@dataclass(frozen=True, slots=True)
class OnGold:
    """A tokenizer compared with the annotations of one file."""

    file: str
    convention: str
    scores: BoundaryScores


@dataclass(frozen=True, slots=True)
class Comparison:
    """All figures of one tokenizer."""

    name: str
    whole: OnText  # all texts together
    texts: tuple[OnText, ...]  # each text, if there are several
    golds: tuple[OnGold, ...]


def compare(
    tokenizers: Sequence[Path], texts: Mapping[str, Iterable[str]], golds: Sequence[Path] = ()
) -> list[Comparison]:
    """Measure several tokenizers on named texts.

    Args:
        tokenizers: folders or vocab.txt files (``load_tokenizer``), named by their paths.
        texts: documents by the name of their text.
        golds: KLUE-DP or CoNLL-U files (``read_gold``).
    """
    names = name_tokenizers(tokenizers)
    loaded = [load_tokenizer(path) for path in tokenizers]
    references = dict(zip(name_files(golds, "gold file"), map(read_gold, golds), strict=True))
    types, samples = _count(texts)
    log.info("%d eojeol types to analyse with mecab-ko", len(types))
    silver = [cut_by_mecab(row) for row in types]
    comparisons = []
    for name, tokenizer in zip(names, loaded, strict=True):
        log.info("%s: measuring", name)
        whole, *parts = _measure_texts(tokenizer, silver, samples)
        on_gold = tuple(_measure_gold(tokenizer, file, gold) for file, gold in references.items())
        comparisons.append(Comparison(name, whole, tuple(parts), on_gold))
    return comparisons


def _count(texts: Mapping[str, Iterable[str]]) -> tuple[list[EojeolType], dict[str, Sample]]:
    """Eojeol types of all texts, and their places in each text."""
    documents = {name: list(_documents(text)) for name, text in texts.items()}
    types = count_eojeols(chain.from_iterable(documents.values()))
    known = pa.array([row.eojeol for row in types], pa.large_string())
    samples = {name: _sample(rows, known) for name, rows in documents.items()}
    for name, sample in samples.items():
        if not sample.blocks:
            raise BadInput(f"{name}: no words in this text; give text files that are not empty")
    return types, samples


def _documents(texts: Iterable[str]) -> Iterator[Document]:
    for text in texts:
        # of the content, so that the window of an eojeol is the same for any order of the texts
        id_ = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        yield Document(id_, "", tuple(text.splitlines()))


def _sample(documents: Sequence[Document], types: pa.LargeStringArray) -> Sample:
    lines = pa.array(chain.from_iterable(document.sentences for document in documents), pa.large_string())
    words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(lines))  # as ``building.count`` does
    number = pc.index_in(words.flatten(), types)
    line = np.repeat(np.arange(len(lines)), np.diff(words.offsets.to_numpy()))
    is_word = number.is_valid().to_numpy(zero_copy_only=False)  # a blank line gives one empty word
    return make_sample(line[is_word], number.drop_null().to_numpy().astype(np.int64))


def _measure_texts(
    tokenizer: Tokenizer, eojeols: Sequence[CutEojeol], samples: Mapping[str, Sample]
) -> Iterator[OnText]:
    """All texts together, then each text if there are several."""
    names = [f"all {len(samples)} texts", *samples] if len(samples) > 1 else list(samples)
    counts = np.stack([sample.counts(len(eojeols)) for sample in samples.values()])
    if len(samples) > 1:
        counts = np.concatenate([counts.sum(axis=0, keepdims=True), counts])
    rows = ((eojeol.text, row) for eojeol, row in zip(eojeols, counts.T, strict=True))
    fits = [summarize(tokenizer, [sums]) for sums in add_up(tokenizer, rows, len(counts))]
    encoder = make_encoder(tokenizer, [eojeol.text for eojeol in eojeols])
    each = count_boundaries(encoder.spans, eojeols)
    sums = [sample.sums(each) for sample in samples.values()]
    drawn = [resample(blocks, number) for number, blocks in enumerate(sums)]
    totals = [blocks.sum(axis=0) for blocks in sums]
    if len(samples) > 1:  # each text is resampled by itself: the texts were chosen and are not a sample
        drawn, totals = [np.sum(drawn, axis=0), *drawn], [np.sum(totals, axis=0), *totals]
    for name, fit, total, resampled in zip(names, fits, totals, drawn, strict=True):
        yield OnText(name, fit, fertility_interval(resampled), score_boundaries(total, resampled))


def _measure_gold(tokenizer: Tokenizer, file: str, gold: Gold) -> OnGold:
    encoder = make_encoder(tokenizer, [word.text for word in gold.words])
    sums = gold.sample.sums(count_boundaries(encoder.spans, gold.words))
    return OnGold(file, gold.convention, score_boundaries(sums.sum(axis=0), resample(sums)))


def name_tokenizers(paths: Sequence[Path]) -> list[str]:
    return name_files(paths, "tokenizer", lambda path: path.parent if path.name in FILE_NAMES else path.with_suffix(""))


def _without_endings(path: Path) -> Path:
    return (path.with_suffix("") if path.suffix in (".gz", ".zst") else path).with_suffix("")


def name_files(paths: Sequence[Path], kind: str, shorten: Callable[[Path], Path] = _without_endings) -> list[str]:
    """The shortest unique endings of the paths; BadInput if one is given twice."""
    whole = [path.parent.resolve() / path.name if path.is_file() else path.resolve() for path in paths]
    for path, count in Counter(whole).items():
        if count > 1:
            raise BadInput(f"{path}: this {kind} is given twice; name each one once")
    short = [path if path.is_dir() else shorten(path) for path in whole]
    parts = [path.parts for path in (short if len(set(short)) == len(short) else whole)]
    return [_shortest(own, [other for other in parts if other is not own]) for own in parts]


def _shortest(own: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> str:
    lengths = range(1, len(own))
    enough = next((n for n in lengths if all(other[-n:] != own[-n:] for other in others)), len(own))
    return str(Path(*own[-enough:]).as_posix())
