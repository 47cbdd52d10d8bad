"""Last passes: decide which sentences of the units to drop, and write the kept ones to ``shard-00000.parquet``.

Sentences of a dropped document are dropped too and do not count as first occurrences, so no sentence is dropped as the
repeat of a dropped one. One byte per sentence gives the reason, 0 for kept sentences.

A shard has the same documents however the text was cut into units. It is read and written a few rows at a time. When a
document has lost sentences, the detector runs again, because the remaining sentences have new neighbors. The final
check reads the finished shard again. Shapes: N documents, S sentences, P values of personal data in a batch of rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.card.samples import DROPPED_NAME, Sample, Samples, write_unit_samples
from corpus.card.statistics import HAS_PII, OTHER_SOURCES, SourceCounts
from corpus.config import CorpusConfig
from corpus.documents.shards import SCHEMA, write_tables
from corpus.duplicates.exact import load_repeats
from corpus.final_check import CheckedDocument, check_shard
from corpus.pii.cover import cover_spans
from corpus.pii.hide import DocumentHider, load_document_hider
from corpus.pii.types import ALL_TYPES
from corpus.quality.boilerplate import BOILERPLATE
from corpus.quality.toxicity import TOXIC_NAME
from corpus.unit_files import DOCUMENTS_NAME, LENGTHS_NAME

SHARD_NAME = "shard.parquet"
SHARD_DOCUMENTS = 10_000
MAX_SHARDS = 10_000  # files in a folder that the Hub recommends; above 100 million documents, shards are larger
POWERS = [str(1 << power) for power in range(40)]
REASONS = ("", "duplicate_document", "toxic", BOILERPLATE, "duplicate_sentence", HAS_PII)
KEPT, DUPLICATE_DOCUMENT, TOXIC, IN_MANY, DUPLICATE_SENTENCE, PERSONAL = range(len(REASONS))
REASONS_NAME = "reasons.npy"
RENAMED_NAME = "renamed.npy"


class Comparisons(NamedTuple):
    """Result folders: of ``find_repeats`` and ``find_boilerplate`` for each range, and of toxicity scores by unit."""

    documents: Sequence[Path] = ()
    ids: Sequence[Path] = ()
    sentences: Sequence[Path] = ()
    toxic: Sequence[Path] = ()
    lines: Sequence[Path] = ()


def reasons_of_documents(number: int, folder: Path, compared: Comparisons) -> np.ndarray:
    """Drop reasons per sentence, uint8, without repeated sentences."""
    lengths_N = np.load(folder / LENGTHS_NAME, allow_pickle=False)
    document_N = np.zeros(len(lengths_N), np.uint8)
    document_N[load_repeats(compared.documents, number)] = DUPLICATE_DOCUMENT
    reason_S = np.repeat(document_N, lengths_N)
    if compared.toxic:
        is_toxic = np.load(compared.toxic[number] / TOXIC_NAME)
        reason_S[is_toxic & (reason_S == KEPT)] = TOXIC
    lines = load_repeats(compared.lines, number)
    reason_S[lines[reason_S[lines] == KEPT]] = IN_MANY
    return reason_S


def write_drops(numbered: tuple[int, Path], scratch: Path, *, compared: Comparisons) -> dict[str, Any]:
    """Write the drop reason of every sentence and which ids to change; returns the number of kept documents."""
    number, folder = numbered
    reason_S = reasons_of_documents(number, folder, compared)
    repeats = load_repeats(compared.sentences, number)
    reason_S[repeats[reason_S[repeats] == KEPT]] = DUPLICATE_SENTENCE
    np.save(scratch / REASONS_NAME, reason_S)
    lengths_N = np.load(folder / LENGTHS_NAME, allow_pickle=False)
    is_renamed = np.zeros(len(lengths_N), bool)
    is_renamed[load_repeats(compared.ids, number)] = True
    np.save(scratch / RENAMED_NAME, is_renamed)
    return {"documents": len(lengths_N), "kept": int(kept_documents(reason_S, lengths_N).sum())}


def kept_documents(reason_S: np.ndarray, lengths_N: np.ndarray) -> np.ndarray:
    """Whether any sentence of a document is kept, bool per document."""
    document_S = np.repeat(np.arange(len(lengths_N)), lengths_N)
    return np.bincount(document_S[reason_S == KEPT], minlength=len(lengths_N)) > 0


# --- shards


class UnitRows(NamedTuple):
    """Rows ``start`` to ``end`` of the documents of a unit, and the folder that says which sentences are dropped."""

    unit: Path
    drops: Path
    start: int
    end: int


def plan_shards(units: Sequence[Path], drops: Sequence[Path], counts: Sequence[dict[str, Any]]) -> list[list[UnitRows]]:
    """The rows of each shard: an equal number of kept documents and the dropped ones before them.

    ``counts`` are the results of ``write_drops``.
    """
    size = max(SHARD_DOCUMENTS, -(-sum(unit_counts["kept"] for unit_counts in counts) // MAX_SHARDS))
    shards: list[list[UnitRows]] = [[]]
    missing = size  # documents that the last shard can still take
    for unit, of_unit, unit_counts in zip(units, drops, counts, strict=True):
        start, kept_left = 0, unit_counts["kept"]
        while kept_left > missing:
            is_kept = kept_documents(np.load(of_unit / REASONS_NAME), np.load(unit / LENGTHS_NAME))
            end = int(np.flatnonzero(is_kept)[missing - 1 - kept_left]) + 1 if missing else start
            shards[-1].append(UnitRows(unit, of_unit, start, end))
            shards.append([])
            start, kept_left, missing = end, kept_left - missing, size
        shards[-1].append(UnitRows(unit, of_unit, start, unit_counts["documents"]))
        missing -= kept_left
    return shards


def write_shard_of(
    sources: list[UnitRows], scratch: Path, *, config: CorpusConfig, private: Path, names: Collection[str]
) -> dict[str, Any]:
    """Write one shard, with the sources in ``names`` and others as one, and samples; returns counts by source.

    Raises:
        BadInput: the shard contains personal data.
    """
    shard = _Shard(load_document_hider(config, private), SourceCounts(), Samples(config.seed), [])
    kept_names = pa.array(sorted(names))
    batches = (batch for source in sources for batch in _batches(source, kept_names))
    write_tables(scratch / SHARD_NAME, (_keep(batch, shard) for batch in batches))
    write_unit_samples(scratch / DROPPED_NAME, shard.samples)
    shard.hider.write_originals(scratch)
    audit = None
    if config.pii.mode != "keep":
        number = scratch.name.partition(".")[0].removeprefix("unit-")
        audit = check_shard(scratch / SHARD_NAME, shard.checked, shard.hider, f"documents/shard-{number}.parquet")
    return {"sources": shard.counts, "audit": audit}


class _Shard(NamedTuple):
    """The hider of the run, the counts and samples of a shard, and its documents as the detector last saw them."""

    hider: DocumentHider
    counts: SourceCounts
    samples: Samples
    checked: list[CheckedDocument]


class _Batch:
    """Some rows of a unit, with the drop reason of each sentence, and whether each document needs another id."""

    def __init__(self, table: pa.Table, reason_S: np.ndarray, is_renamed_N: np.ndarray) -> None:
        sentences = table["sentences"].combine_chunks()
        self.table, self.reason_S, self.is_renamed_N = table, reason_S, is_renamed_N
        self.texts = sentences.flatten()
        self.ids, self.sources = table["id"].to_pylist(), table["source"].to_pylist()
        self.checked = list(map(CheckedDocument, table["digest"].to_pylist(), table["replacements"].to_pylist()))
        self.lengths_N = np.diff(sentences.offsets.to_numpy())
        self.last_N = np.cumsum(self.lengths_N)
        self.first_N = self.last_N - self.lengths_N
        self.document_S = np.repeat(np.arange(len(table)), self.lengths_N)

    def kept_sentences(self) -> np.ndarray:
        """Number of kept sentences of each document."""
        return np.bincount(self.document_S[self.reason_S == KEPT], minlength=len(self.table))

    def spread(self, group: str, names: Sequence[str], document_X: np.ndarray, kind_X: np.ndarray) -> _Counts:
        """Counts per document by kind, as columns named ``group.kind``."""
        K = len(names)
        counted_NK = np.bincount(document_X * K + kind_X, minlength=len(self.table) * K).reshape(-1, K)
        return {
            f"{group}.{name}": counted_N for name, counted_N in zip(names, counted_NK.T, strict=True) if counted_N.any()
        }


_Counts = dict[str, np.ndarray]  # one number per document


def _batches(source: UnitRows, names: pa.Array) -> Iterator[_Batch]:
    reason_S = np.load(source.drops / REASONS_NAME, mmap_mode="r")
    is_renamed_N = np.load(source.drops / RENAMED_NAME, mmap_mode="r")
    first_S = np.concatenate([[0], np.cumsum(np.load(source.unit / LENGTHS_NAME), dtype=np.int64)])
    row = 0
    with pq.ParquetFile(source.unit / DOCUMENTS_NAME) as part:
        for group in range(part.num_row_groups):
            end = row + part.metadata.row_group(group).num_rows
            low, high = max(row, source.start), min(end, source.end)
            if low < high:
                table = part.read_row_group(group).slice(low - row, high - low)
                column, is_named = table["source"], pc.is_in(table["source"], value_set=names)
                table = table.set_column(1, "source", pc.if_else(is_named, column, OTHER_SOURCES))
                yield _Batch(table, np.array(reason_S[first_S[low] : first_S[high]]), np.array(is_renamed_N[low:high]))
            row = end


def _keep(batch: _Batch, shard: _Shard) -> pa.Table:
    """The kept rows, in the columns of document shards."""
    _hide_again(batch, shard.hider, shard.counts)
    is_kept_S, kept_N = batch.reason_S == KEPT, batch.kept_sentences()
    texts = batch.texts.filter(pa.array(is_kept_S))
    counts = _count_kept(batch, texts, is_kept_S, kept_N) | _count_pii(batch, is_kept_S) | _count_dropped(batch, kept_N)
    sources = batch.table["source"].combine_chunks()
    codes = sources.dictionary_encode()
    for key, count_N in counts.items():
        summed = np.bincount(codes.indices.to_numpy(), count_N, len(codes.dictionary))
        for name, count in zip(codes.dictionary.to_pylist(), summed.tolist(), strict=True):
            if count:
                shard.counts[name][key] += int(count)
    _add_samples(batch, shard)
    kept_rows = np.flatnonzero(kept_N).tolist()
    for n in np.flatnonzero(batch.is_renamed_N & (kept_N > 0)).tolist():
        name = f"{batch.ids[n]}~{batch.table['place'][n].as_py()}"
        batch.ids[n] = shard.hider.hide_in_name(name)
    shard.checked.extend(batch.checked[n] for n in kept_rows)
    lists = pa.ListArray.from_arrays(pa.array(np.cumsum([0, *kept_N[kept_rows]]), pa.int32()), texts)
    return pa.table(
        [pa.array([batch.ids[n] for n in kept_rows], pa.string()), sources.filter(pa.array(kept_N > 0)), lists],
        schema=SCHEMA,
    )


def _hide_again(batch: _Batch, hider: DocumentHider, counts_of: SourceCounts) -> None:
    """Hide what the detector finds in documents that lost sentences."""
    changed: dict[int, str] = {}
    kept_N = batch.kept_sentences()
    has_new_neighbors_N = (kept_N > 0) & (kept_N < batch.lengths_N)
    for document in np.flatnonzero(has_new_neighbors_N).tolist():
        first = int(batch.first_N[document])
        places = [n for n in range(first, int(batch.last_N[document])) if batch.reason_S[n] == KEPT]
        sentences, known = [batch.texts[n].as_py() for n in places], batch.checked[document].replacements
        hidden = hider.hide_one(batch.ids[document], sentences, known)
        batch.checked[document] = CheckedDocument(hidden.digest, hidden.replacements)
        for place, text, spans in zip(places, hidden.sentences, hidden.spans, strict=True):
            if text is None:
                batch.reason_S[place] = PERSONAL
                changed[place] = cover_spans(batch.texts[place].as_py(), spans, "tag")  # for its sample
            elif spans:
                changed[place] = text
                had_some = {value // len(ALL_TYPES) for value in batch.table["pii"][document].as_py()}
                counts = counts_of[batch.sources[document]]
                counts.update(f"pii.{span.type}" for span in spans)
                counts["sentences_with_pii"] += place - first not in had_some
    if changed:
        batch.texts = pa.array([changed.get(n, text) for n, text in enumerate(batch.texts.to_pylist())], pa.string())


def _count_kept(batch: _Batch, texts: pa.Array, is_kept_S: np.ndarray, kept_N: np.ndarray) -> _Counts:
    document_S, kept_rows = batch.document_S[is_kept_S], np.flatnonzero(kept_N)
    sizes = {"characters": pc.utf8_length(texts), "bytes": pc.binary_length(texts), "words": _count_words(texts)}
    return {
        "documents": kept_N > 0,
        "sentences": kept_N,
        **{name: np.bincount(document_S, size_S.to_numpy(), len(kept_N)) for name, size_S in sizes.items()},
        **batch.spread("chars_per_sentence", POWERS, document_S, _power(sizes["characters"].to_numpy())),
        **batch.spread("sentences_per_document", POWERS, kept_rows, _power(kept_N[kept_rows])),
    }


def _power(values: np.ndarray) -> np.ndarray:
    """Exponent of the largest power of two that is at most the value."""
    return np.frexp(values.astype(np.float64))[1] - 1


def _count_words(texts: pa.Array) -> pa.Array:
    """Eojeols per sentence; fast where all blanks are single spaces, which the noise rules ensure by default."""
    if pc.any(pc.match_substring_regex(texts, r"\s\s|[^\S ]")).as_py():
        return pc.count_substring_regex(texts, r"\S+")
    return pc.add(pc.count_substring(texts, " "), 1)


def _count_pii(batch: _Batch, is_kept_S: np.ndarray) -> _Counts:
    pii = batch.table["pii"].combine_chunks()
    values_P = pii.flatten().to_numpy(zero_copy_only=False)
    document_P = np.repeat(np.arange(len(batch.table)), np.diff(pii.offsets.to_numpy()))
    sentence_P = batch.first_N[document_P] + values_P // len(ALL_TYPES)
    is_kept_P = is_kept_S[sentence_P]
    sentences = batch.document_S[np.unique(sentence_P[is_kept_P])]
    return {
        "sentences_with_pii": np.bincount(sentences, minlength=len(batch.table)),
        **batch.spread("pii", ALL_TYPES, document_P[is_kept_P], values_P[is_kept_P] % len(ALL_TYPES)),
    }


def _count_dropped(batch: _Batch, kept_N: np.ndarray) -> _Counts:
    """Drop reasons of sentences and documents; the reason of a document is that of its first sentence, if it applies
    to documents."""
    gone, dropped = np.flatnonzero(kept_N == 0), np.flatnonzero(batch.reason_S != KEPT)
    reason = batch.reason_S[batch.first_N[gone]]
    reason[reason != DUPLICATE_DOCUMENT] = KEPT
    names = ("no_sentence_left", *REASONS[1:])
    document_S, reason_S = batch.document_S[dropped], batch.reason_S[dropped]
    chars_S = pc.utf8_length(batch.texts).to_numpy()[dropped]
    chars = {name: np.bincount(document_S, chars_S * (reason_S == n), len(kept_N)) for n, name in enumerate(REASONS)}
    return {
        **batch.spread("dropped_sentences", REASONS, document_S, reason_S),
        **{f"dropped_characters.{name}": chars_N for name, chars_N in chars.items()},
        **batch.spread("dropped_documents", names, gone, reason),
    }


def _add_samples(batch: _Batch, shard: _Shard) -> None:
    """Sample dropped sentences without personal data; a dropped document is one sample."""
    for n in np.flatnonzero(batch.reason_S != KEPT).tolist():
        reason, document = int(batch.reason_S[n]), int(batch.document_S[n])
        text = batch.texts[n].as_py()
        if reason == DUPLICATE_DOCUMENT:
            if n != batch.first_N[document]:
                continue
            text = "\n".join(batch.texts[n : batch.last_N[document]].to_pylist())
        order = shard.samples.order_of(REASONS[reason], batch.ids[document], text)
        if order is not None:
            known = batch.checked[document].replacements
            sample = Sample(REASONS[reason], batch.sources[document], batch.ids[document], "", text, order, known)
            shard.samples.keep(sample.without_pii(shard.hider))
