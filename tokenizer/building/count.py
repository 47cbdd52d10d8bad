"""Shards to eojeol counts, with one context window for every eojeol type, on columns (Arrow, NumPy).

The analyser gets each type once, with one neighbor on each side: without context, one token in 23 is split wrongly;
with it, one in 160. A process counts one portion at a time and writes its types to a run on disk, partitioned by a hash
of the eojeol. The window of a type is of the first occurrence in the document with the smallest hash of its content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.documents.shards import Document, ShardPortion, row_group_sizes, split_into_portions, to_table

LEFT_NEIGHBOUR, RIGHT_NEIGHBOUR = 4, 3  # characters; text further away decides one boundary in 2,000
BATCH_BYTES = 8 << 20
MAX_TYPES = 2_000_000  # in memory of a process, about 1 GB; a run is written above
SMALLEST_PORTION, LARGEST_PORTION = 4 << 20, 64 << 20  # bytes of text
MAX_PORTIONS = 64  # until portions have their largest size
PARTITION_BYTES = 2 << 20  # text of one partition in a small corpus
GROWTH_OF_TYPES = 0.75  # types grow with this power of text (measured from 1 to 200 MB), so partitions do

TYPES_NAME = "types.parquet"
TYPES = pa.schema(
    [
        ("eojeol", pa.string()),
        ("frequency", pa.int64()),
        ("documents", pa.int64()),
        ("document", pa.uint64()),
        ("left", pa.string()),
        ("right", pa.string()),
    ]
)


class EojeolType(NamedTuple):
    """An eojeol, its count, the ends of its neighbors (empty at the ends of a sentence), and its documents."""

    eojeol: str
    frequency: int
    left: str
    right: str
    documents: int = 1


def divide(shards: Sequence[Path]) -> tuple[list[ShardPortion], int]:
    """Portions of all shards, and the number of partitions; both depend on the shards alone."""
    total = sum(size for shard in shards for size in row_group_sizes(shard))
    wanted = min(max(total // MAX_PORTIONS, SMALLEST_PORTION), LARGEST_PORTION)
    return split_into_portions(shards, wanted), max(1, round((total / PARTITION_BYTES) ** GROWTH_OF_TYPES))


def count_portion(portion: ShardPortion, scratch: Path, *, partitions: int) -> dict[str, Any]:
    """Unit of work: a portion to runs of eojeol types; returns documents by source, characters and runs."""
    sources: Counter[str] = Counter()
    characters = runs = 0
    held: list[pa.Table] = []
    for batch in _batches(portion):
        sources.update(batch["source"].to_pylist())
        characters += pc.sum(pc.utf8_length(_sentences(batch).flatten())).as_py() or 0
        held.append(count_table(batch))
        if sum(map(len, held)) > MAX_TYPES:
            held = [merge_types(held)]
            if len(held[0]) > MAX_TYPES:
                write_run(scratch / run_name(runs), held.pop(), partitions)
                runs += 1
    if held:
        write_run(scratch / run_name(runs), merge_types(held), partitions)
        runs += 1
    return {"sources": dict(sorted(sources.items())), "characters": characters, "runs": runs}


def _batches(portion: ShardPortion) -> Iterator[pa.Table]:
    """Tables of about ``BATCH_BYTES``, small row groups joined and large ones divided, or of one document."""
    held: list[pa.Table] = []
    for table in portion.tables():
        rows = max(1, len(table) * BATCH_BYTES // table.nbytes)
        for start in range(0, len(table), rows):
            held.append(table.slice(start, rows))
            if sum(part.nbytes for part in held) >= BATCH_BYTES:
                yield pa.concat_tables(held)
                held = []
    if held:
        yield pa.concat_tables(held)


def count_table(documents: pa.Table) -> pa.Table:
    """Eojeol types of a table of documents (``corpus.documents.shards.SCHEMA``), in the columns of ``TYPES``."""
    keys = _content_keys(documents)
    order = np.argsort(keys, kind="stable")
    sentences = _sentences(documents.take(order))
    words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(sentences.flatten()))  # a blank one gives one empty word
    tokens, starts = words.flatten(), words.offsets.to_numpy()
    coded = tokens.dictionary_encode()  # in order of first occurrence, so the codes rise by one at each
    codes = coded.indices.to_numpy()
    first = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1)) if len(codes) else codes
    sentence = np.searchsorted(starts, first, side="right") - 1
    document = np.searchsorted(sentences.offsets.to_numpy(), sentence, side="right") - 1
    columns = [
        coded.dictionary,
        np.bincount(codes, minlength=len(first)),
        _count_documents(codes, len(first), starts[sentences.offsets.to_numpy()]),
        keys[order][document],
        pc.utf8_slice_codeunits(_neighbours(tokens, first - 1, first == starts[sentence]), -LEFT_NEIGHBOUR),
        pc.utf8_slice_codeunits(_neighbours(tokens, first + 1, first + 1 == starts[sentence + 1]), 0, RIGHT_NEIGHBOUR),
    ]
    table = pa.table(columns, schema=TYPES)
    return table.filter(pc.not_equal(table["eojeol"], ""))


def _count_documents(codes: np.ndarray, kinds: int, bounds: np.ndarray) -> np.ndarray:
    """Number of documents of each code; ``bounds``: begins and ends of documents among the codes."""
    homes = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    return np.bincount(np.unique(homes * kinds + codes) % max(kinds, 1), minlength=kinds)


def _sentences(documents: pa.Table) -> pa.ListArray:
    chunks = documents["sentences"].chunks
    return pa.concat_arrays(chunks) if chunks else pa.array([], documents.schema.field("sentences").type)


def _neighbours(tokens: pa.StringArray, places: np.ndarray, is_edge: np.ndarray) -> pa.StringArray:
    return tokens.take(pa.array(places, mask=is_edge)).fill_null("")


def _content_keys(documents: pa.Table) -> np.ndarray:
    """A hash of id and text for every document, uint64; documents with equal hashes give equal windows."""
    keys = np.zeros(len(documents), np.uint64)
    rows = zip(documents["id"].to_pylist(), documents["sentences"].to_pylist(), strict=True)
    for number, (id_, sentences) in enumerate(rows):
        digest = blake2b(id_.encode(), digest_size=8)
        digest.update("\n".join(("", *sentences)).encode())
        keys[number] = int.from_bytes(digest.digest(), "little")
    return keys


def merge_types(tables: Sequence[pa.Table]) -> pa.Table:
    """One row for every eojeol: counts add up, the window of the smallest document key stays."""
    ordered = pa.concat_tables(tables).sort_by("document")
    columns = [("frequency", "sum"), ("documents", "sum"), *((name, "first") for name in ("document", "left", "right"))]
    merged = ordered.group_by("eojeol", use_threads=False).aggregate(columns)
    return merged.rename_columns(TYPES.names).cast(TYPES).combine_chunks()


def count_eojeols(documents: Iterable[Document]) -> list[EojeolType]:
    """Eojeol types of documents in memory, sorted; the same for any order of the documents."""
    return list(rows_of(merge_types([count_table(to_table(list(documents)))]).sort_by("eojeol")))


def rows_of(types: pa.Table) -> Iterator[EojeolType]:
    """Rows of a table of types, in its order."""
    yield from map(EojeolType, *(types[name].to_pylist() for name in EojeolType._fields))


def run_name(number: int) -> str:
    return f"run-{number:05}.arrow"


def write_run(path: Path, types: pa.Table, partitions: int) -> None:
    """Types by partition, one record batch for each, so that a partition is read without the others."""
    homes = np.fromiter((crc32(eojeol.encode()) for eojeol in types["eojeol"].to_pylist()), np.int64, len(types))
    homes %= partitions
    ordered = types.take(np.argsort(homes, kind="stable")).combine_chunks()
    ends = np.cumsum(np.bincount(homes, minlength=partitions))
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, TYPES, options=options) as writer:
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            rows = ordered.slice(start, end - start)
            writer.write_batch(pa.record_batch([column.combine_chunks() for column in rows.columns], schema=TYPES))


def merge_partition(number: int, scratch: Path, *, runs: Sequence[Path]) -> dict[str, Any]:
    """Unit of work: a partition of all runs to ``types.parquet``, sorted; returns its sizes and ``frequencies``."""
    tables = [TYPES.empty_table()]
    for run in runs:
        with pa.memory_map(str(run)) as file:
            tables.append(pa.Table.from_batches([pa.ipc.open_file(file).get_batch(number)]))
    types = merge_types(tables).sort_by("eojeol")
    pq.write_table(types, scratch / TYPES_NAME, compression="zstd")
    frequencies = types["frequency"].to_numpy()
    kinds, numbers = np.unique(frequencies, return_counts=True)
    return {
        "types": len(types),
        "eojeols": int(frequencies.sum()),
        "frequencies": {str(kind): number for kind, number in zip(kinds.tolist(), numbers.tolist(), strict=True)},
        "characters": count_characters(types["eojeol"].to_pylist(), frequencies),
    }


def count_characters(texts: Sequence[str], counts: np.ndarray) -> dict[str, int]:
    """Occurrences of each character in the texts, of which text i occurs ``counts[i]`` times."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    weights = np.repeat(counts, [len(text) for text in texts])
    kinds, places = np.unique(codes, return_inverse=True)
    totals = np.zeros(len(kinds), np.int64)
    np.add.at(totals, places, weights)
    return dict(zip(map(chr, kinds.tolist()), totals.tolist(), strict=True))


def lowest_frequency(frequencies: Mapping[int, int], max_types: int) -> int:
    """The smallest f for which at most ``max_types`` types occur f times or more; the most frequent always stay."""
    total, lowest = 0, max(frequencies, default=1)
    for frequency in sorted(frequencies, reverse=True):
        total += frequencies[frequency]
        if total > max_types:
            break
        lowest = frequency
    return lowest
