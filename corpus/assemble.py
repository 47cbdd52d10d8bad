"""Last pass, one shard at a time: what stays of the units becomes ``shard-00000.parquet``, counted on the way.

A shard holds the same documents however the text was cut into units; it is read and written a few rows at a time. A
document that lost sentences is looked at for personal data again, because its sentences have other neighbours now; the
shard as a whole is, once it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.audit import Guard, Look, load_guard, scan_shard
from corpus.config import CorpusConfig
from corpus.documents.shards import SCHEMA, write_tables
from corpus.drops import (
    DUPLICATE_DOCUMENT,
    KEPT,
    NEAR_DUPLICATE,
    PERSONAL,
    REASONS,
    REASONS_NAME,
    RENAMED_NAME,
    kept_documents,
)
from corpus.pii.cover import cover
from corpus.pii.types import ALL_TYPES
from corpus.samples import DROPPED, SAMPLE_CHARS, Sample, Samples, write_samples
from corpus.statistics import Tally
from corpus.unit_files import LENGTHS_NAME, PART_NAME

SHARD_NAME = "shard.parquet"
SAMPLES_NAME = "dropped.parquet"
HISTOGRAM_BINS = 40


class Source(NamedTuple):
    """Rows ``start`` to ``end`` of a unit's documents, and the folder that says which of them are dropped."""

    unit: Path
    drops: Path
    start: int
    end: int


def plan_shards(
    units: Sequence[Path], drops: Sequence[Path], counts: Sequence[dict[str, Any]], size: int
) -> list[list[Source]]:
    """Rows for each shard: ``size`` documents that stay, and the dropped ones before them.

    Args:
        counts: of ``write_drops``.
    """
    shards: list[list[Source]] = [[]]
    missing = size  # documents that the last shard can still take
    for unit, of_unit, found in zip(units, drops, counts, strict=True):
        start, kept = 0, found["kept"]
        while kept > missing:
            ends = np.flatnonzero(_kept(unit, of_unit))
            end = int(ends[len(ends) - kept + missing - 1]) + 1 if missing else start
            shards[-1].append(Source(unit, of_unit, start, end))
            shards.append([])
            start, kept, missing = end, kept - missing, size
        shards[-1].append(Source(unit, of_unit, start, found["documents"]))
        missing -= kept
    return shards


def _kept(unit: Path, drops: Path) -> np.ndarray:
    return kept_documents(np.load(drops / REASONS_NAME), np.load(unit / LENGTHS_NAME))


def write_shard_of(sources: list[Source], scratch: Path, *, config: CorpusConfig, private: Path) -> dict[str, Any]:
    """Write one shard and the samples of what was dropped here; returns counts by source.

    Args:
        private: the run's own folder, which holds its secret.

    Raises:
        BadInput: the shard holds personal data.
    """
    shard = _Shard(Tally(), Samples(config.samples_per_rule, config.seed), load_guard(config, private), [])
    write_tables(scratch / SHARD_NAME, (_keep(batch, shard) for source in sources for batch in _batches(source)))
    write_samples(scratch / SAMPLES_NAME, list(shard.samples), DROPPED, for_merging=True)
    if shard.guard:
        number = scratch.name.partition(".")[0].removeprefix("unit-")
        scan_shard(scratch / SHARD_NAME, shard.looks, shard.guard, f"documents/shard-{number}.parquet")
        shard.guard.write(scratch)
    return {"sources": shard.tally}


class _Shard(NamedTuple):
    """What a shard is made with, and what each document written was like when it was looked at."""

    tally: Tally
    samples: Samples
    guard: Guard | None
    looks: list[Look]


class _Batch(NamedTuple):
    """Some rows of a unit. N documents, S sentences, P values of personal data."""

    table: pa.Table
    reason_S: np.ndarray
    is_renamed_N: np.ndarray


def _batches(source: Source) -> Iterator[_Batch]:
    reason_S = np.load(source.drops / REASONS_NAME, mmap_mode="r")
    is_renamed_N = np.load(source.drops / RENAMED_NAME, mmap_mode="r")
    first_S = np.concatenate([[0], np.cumsum(np.load(source.unit / LENGTHS_NAME), dtype=np.int64)])
    row = 0
    with pq.ParquetFile(source.unit / PART_NAME) as part:
        for group in range(part.num_row_groups):
            end = row + part.metadata.row_group(group).num_rows
            low, high = max(row, source.start), min(end, source.end)
            if low < high:
                table = part.read_row_group(group).slice(low - row, high - low)
                yield _Batch(table, np.array(reason_S[first_S[low] : first_S[high]]), np.array(is_renamed_N[low:high]))
            row = end


def _keep(batch: _Batch, shard: _Shard) -> pa.Table:
    """The rows that stay, in the columns of document shards."""
    tally = shard.tally
    sentences = batch.table["sentences"].combine_chunks()
    lengths_N = np.diff(sentences.offsets.to_numpy())
    document_S = np.repeat(np.arange(len(lengths_N)), lengths_N)
    looks_N = list(map(Look, batch.table["seal"].to_pylist(), batch.table["marks"].to_pylist()))
    texts = _hide_again(batch, sentences.flatten(), lengths_N, looks_N, shard)
    is_kept_S = batch.reason_S == KEPT
    kept_N = np.bincount(document_S[is_kept_S], minlength=len(lengths_N))
    sources = batch.table["source"].combine_chunks().dictionary_encode()
    code_N, names = sources.indices.to_numpy(), sources.dictionary.to_pylist()
    _count_kept(tally, names, code_N, texts.filter(pa.array(is_kept_S)), document_S[is_kept_S], kept_N)
    _count_pii(tally, names, code_N, batch.table["pii"].combine_chunks(), is_kept_S, lengths_N)
    if not is_kept_S.all():
        _count_dropped(shard, batch, texts, document_S, kept_N, looks_N)
    offsets = np.concatenate([[0], np.cumsum(kept_N[kept_N > 0])]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), texts.filter(pa.array(is_kept_S)))
    rows = batch.table.filter(pa.array(kept_N > 0))
    ids = rows["id"].to_pylist()
    for n in np.flatnonzero(batch.is_renamed_N[kept_N > 0]).tolist():
        name = f"{ids[n]}~{rows['place'][n].as_py()}"
        ids[n] = shard.guard.public_name(name) if shard.guard else name
    shard.looks.extend(looks_N[n] for n in np.flatnonzero(kept_N > 0).tolist())
    return pa.table([pa.array(ids, pa.string()), rows["source"].combine_chunks(), lists], schema=SCHEMA)


def _hide_again(batch: _Batch, texts: pa.Array, lengths_N: np.ndarray, looks_N: list[Look], shard: _Shard) -> pa.Array:
    """The sentences without what is personal data between the neighbours that they have now.

    Where sentences go for it, ``batch.reason_S`` says so; ``looks_N`` follows.
    """
    if not shard.guard:
        return texts
    last_N = np.cumsum(lengths_N)
    kept_S = np.concatenate([[0], np.cumsum(batch.reason_S == KEPT)])
    kept_N = kept_S[last_N] - kept_S[last_N - lengths_N]
    changed: dict[int, str] = {}
    for document in np.flatnonzero((kept_N > 0) & (kept_N < lengths_N)).tolist():
        first, last = int(last_N[document] - lengths_N[document]), int(last_N[document])
        places = [place for place in range(first, last) if batch.reason_S[place] == KEPT]
        name, marks = batch.table["id"][document].as_py(), looks_N[document].marks
        protected = shard.guard.hide([texts[place].as_py() for place in places], name, marks)
        marks = [*marks, *shard.guard.marks(protected.sentences, protected.left)]
        looks_N[document] = Look(shard.guard.seal([text for text in protected.sentences if text is not None]), marks)
        if not any(protected.spans):
            continue
        for place, text, spans in zip(places, protected.sentences, protected.spans, strict=True):
            if text is None:
                batch.reason_S[place] = PERSONAL
                changed[place] = cover(texts[place].as_py(), spans, "tag")  # for its sample
            elif spans:
                changed[place] = text
                _count_new(shard.tally, batch, document, place - first, [span.type for span in spans])
    if not changed:
        return texts
    return pa.array([changed.get(place, text) for place, text in enumerate(texts.to_pylist())], pa.string())


def _count_new(tally: Tally, batch: _Batch, document: int, sentence: int, names: list[str]) -> None:
    counts = tally[batch.table["source"][document].as_py()]
    had_some = any(value // len(ALL_TYPES) == sentence for value in batch.table["pii"][document].as_py())
    counts.update(f"pii.{name}" for name in names)
    counts["sentences_with_pii"] += not had_some


def _count_kept(
    tally: Tally, names: list[str], code_N: np.ndarray, texts: pa.Array, document_S: np.ndarray, kept_N: np.ndarray
) -> None:
    code_S = code_N[document_S]
    chars_S = pc.utf8_length(texts).to_numpy()
    sums = {
        "documents": np.bincount(code_N[kept_N > 0], minlength=len(names)),
        "sentences": np.bincount(code_S, minlength=len(names)),
        "words": np.bincount(code_S, _count_words(texts), len(names)),
        "characters": np.bincount(code_S, chars_S, len(names)),
        "bytes": np.bincount(code_S, pc.binary_length(texts).to_numpy(), len(names)),
    }
    _add(tally, names, sums)
    _add_histogram(tally, names, "chars_per_sentence", code_S, chars_S)
    _add_histogram(tally, names, "sentences_per_document", code_N[kept_N > 0], kept_N[kept_N > 0])


def _count_words(texts: pa.Array) -> np.ndarray:
    """Eojeols of each sentence; blanks stand alone unless the rule for them is off."""
    if pc.any(pc.match_substring_regex(texts, r"\s\s|[^\S ]")).as_py():
        counted: np.ndarray = pc.count_substring_regex(texts, r"\S+").to_numpy()
    else:
        counted = pc.count_substring(texts, " ").to_numpy() + 1
    return counted


def _count_pii(
    tally: Tally, names: list[str], code_N: np.ndarray, pii: pa.ListArray, is_kept_S: np.ndarray, lengths_N: np.ndarray
) -> None:
    values_P = pii.flatten().to_numpy(zero_copy_only=False)
    if not len(values_P):
        return
    document_P = np.repeat(np.arange(len(lengths_N)), np.diff(pii.offsets.to_numpy()))
    first_S = np.cumsum(lengths_N) - lengths_N
    sentence_P = first_S[document_P] + values_P // len(ALL_TYPES)
    is_kept_P = is_kept_S[sentence_P]
    code_P, kind_P = code_N[document_P][is_kept_P], values_P[is_kept_P] % len(ALL_TYPES)
    _add(
        tally,
        names,
        {f"pii.{t}": np.bincount(code_P[kind_P == n], minlength=len(names)) for n, t in enumerate(ALL_TYPES)},
    )
    first_P = np.unique(sentence_P[is_kept_P], return_index=True)[1]
    _add(tally, names, {"sentences_with_pii": np.bincount(code_P[first_P], minlength=len(names))})


def _count_dropped(
    shard: _Shard,
    batch: _Batch,
    texts: pa.Array,
    document_S: np.ndarray,
    kept_N: np.ndarray,
    looks_N: list[Look],
) -> None:
    """Reasons of sentences and documents, with samples; a dropped document is one sample."""
    tally = shard.tally
    ids, sources = batch.table["id"].to_pylist(), batch.table["source"].to_pylist()
    for n in np.flatnonzero(batch.reason_S != KEPT).tolist():
        reason, document = int(batch.reason_S[n]), int(document_S[n])
        tally[sources[document]][f"dropped_sentences.{REASONS[reason]}"] += 1
        if reason not in (DUPLICATE_DOCUMENT, NEAR_DUPLICATE):
            _add_sample(
                shard, REASONS[reason], sources[document], ids[document], texts[n].as_py(), looks_N[document].marks
            )
    for document in np.flatnonzero(kept_N == 0).tolist():
        of_document = document_S == document
        reason = int(batch.reason_S[of_document].max(initial=0)) if of_document.any() else 0
        name = REASONS[reason] if reason in (DUPLICATE_DOCUMENT, NEAR_DUPLICATE) else "no_sentence_left"
        tally[sources[document]][f"dropped_documents.{name}"] += 1
        if reason in (DUPLICATE_DOCUMENT, NEAR_DUPLICATE):
            text = "\n".join(texts.filter(pa.array(of_document)).to_pylist())
            _add_sample(shard, name, sources[document], ids[document], text, looks_N[document].marks)


def _add_sample(shard: _Shard, rule: str, source: str, document: str, text: str, marks: list[int]) -> None:
    """A sample of what was dropped, without what is personal data where it stands alone."""
    order = shard.samples.place(rule, document, text)
    if order is None:
        return
    shown, own = shard.guard.show(text, SAMPLE_CHARS, marks) if shard.guard else (text, ())
    shard.samples.keep(Sample(rule, source, document, "", shown, order, marks=own))


def _add(tally: Tally, names: list[str], sums: dict[str, np.ndarray]) -> None:
    for key, sum_of_code in sums.items():
        for name, count in zip(names, sum_of_code.tolist(), strict=True):
            if count:
                tally[name][key] += int(count)


def _add_histogram(tally: Tally, names: list[str], key: str, code: np.ndarray, values: np.ndarray) -> None:
    """Numbers of ``values`` by the power of two they reach."""
    power = np.frexp(values.astype(np.float64))[1] - 1  # 2^power <= value
    counted = np.bincount(code * HISTOGRAM_BINS + power, minlength=len(names) * HISTOGRAM_BINS)
    for place in np.flatnonzero(counted).tolist():
        name, bin_ = divmod(place, HISTOGRAM_BINS)
        tally[names[name]][f"{key}.{1 << bin_}"] += int(counted[place])
