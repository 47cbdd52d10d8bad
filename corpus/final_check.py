"""The final check of the stage: read all output again and stop if it contains personal data.

Context decides what the detector finds, so every text is checked in the form in which it is published: sentences in
their final document, samples after cutting. Only replacements may be found; their fingerprints are known. Pages and
JSON files contain numbers and addresses of their own, so they are checked for fingerprints of original values instead.
The independent audit (``corpus.audit``) then reads the same files; what it finds is reported and does not stop the run.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.audit import Audit, Match
from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, iter_documents, read_tables
from corpus.pii.detect import Span, find_pii, find_pii_in_sentences
from corpus.pii.hide import ORIGINALS_NAME, DocumentHider, values_of
from corpus.pii.replace import normal_forms

SOURCE_COLUMN = "source"
TEXT_COLUMNS = ("note", "text", "before", "after")
"""Columns of sample tables in which the name model looks for names too; ids and sources are no sentences."""
BLOCK_CHARS = 1 << 20


class CheckedDocument(NamedTuple):
    """Digest of a document as the detector last saw it, and the fingerprints of its replacements."""

    digest: int
    replacements: Sequence[int]


def check_shard(path: Path, documents: Sequence[CheckedDocument], hider: DocumentHider, name: str) -> dict[str, Any]:
    """Check a shard called ``name`` in messages; documents with an unchanged digest were already checked.

    Returns:
        the result of the independent audit.

    Raises:
        BadInput: something other than a replacement is found; the message gives the place, not the value.
    """
    audit, first = Audit(), 0
    for table in read_tables(path):
        lists = table["sentences"].combine_chunks()
        document_S, own = pc.list_parent_indices(lists).to_numpy(), documents[first : first + len(table)]
        audit.read(
            lists.flatten(),
            lambda n, at=first + 1, of_S=document_S: f"{name}, document {at + of_S[n]}",  # type: ignore[misc]
            lambda n, text, match, of_S=document_S, own=own: _is_known(text, match, hider, own[of_S[n]].replacements),  # type: ignore[misc]
        )
        for document, checked in zip(iter_documents([table]), own, strict=True):
            first += 1
            _check_document(document, checked, hider, f"{name}, document {first}")
    assert first == len(documents)
    return audit.result()


def _check_document(document: Document, checked: CheckedDocument, hider: DocumentHider, place: str) -> None:
    for span in find_pii(document.id, hider.types):
        raise _found_error(f"{place}, id", span)
    if document.source != hider.hide_in_source(document.source):
        raise _found_error(f"{place}, source", find_pii(document.source, hider.types)[0])
    if hider.digest(document.sentences) == checked.digest:
        return
    sentence_spans = find_pii_in_sentences(document.sentences, hider.types, hider.hider.name_model)
    for number, (sentence, spans) in enumerate(zip(document.sentences, sentence_spans, strict=True), 1):
        for span in spans:
            if hider.fingerprint(sentence[span.start : span.end]) not in checked.replacements:
                raise _found_error(f"{place} ({document.id}), sentence {number}", span)


def _is_known(text: str, match: Match, hider: DocumentHider, known: Collection[int]) -> bool:
    """Whether a match of the audit is a replacement, or overlaps one."""
    value = text[match.start : match.end]
    forms = (value, *normal_forms(match.name, value))
    return bool(known) and (
        any(hider.fingerprint(form) in known for form in forms)
        or any(
            hider.fingerprint(text[span.start : span.end]) in known
            for span in find_pii(text, hider.types)
            if span.start < match.end and match.start < span.end
        )
    )


def check_folder(
    out: Path,
    written: Iterable[str],
    hider: DocumentHider,
    units: Sequence[Path],
    replacements: Collection[int],
    names: Iterable[Any],
    audit: Audit,
) -> None:
    """Check the files and folders ``written`` below ``out``; ``audit`` reads them too.

    Args:
        units: folders with fingerprints of original values, none of which may be in pages and JSON files.
        replacements: fingerprints of replacements, the only values that may be in sample tables.
        names: settings and templates; their own addresses are no original values.

    Raises:
        BadInput: as ``check_shard``.
    """
    originals = np.unique(np.concatenate([np.zeros(0, np.uint64), *(np.load(u / ORIGINALS_NAME) for u in units)]))
    texts = [name if isinstance(name, str) else json.dumps(name, ensure_ascii=False, indent=0) for name in names]
    values = values_of(texts, [find_pii(text, hider.types) for text in texts])
    own = {hider.fingerprint(form) for kind, value in values for form in normal_forms(kind, value)}
    entries = [out / entry for entry in written]
    files = sorted(path for entry in entries for path in [entry, *entry.rglob("*")] if path.is_file())
    for path in sorted(files, key=lambda file: file.suffix != ".parquet"):  # tables first: pages show their rows
        name = path.relative_to(out).as_posix()
        if path.suffix == ".parquet":
            _check_table(path, name, hider, replacements, audit)
        else:
            _check_page(path, name, hider, originals, own.union(replacements), audit)


def _check_table(path: Path, name: str, hider: DocumentHider, replacements: Collection[int], audit: Audit) -> None:
    with pq.ParquetFile(path) as file:
        columns = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
        rows = 0
        for batch in file.iter_batches(10_000, columns=columns):
            for column in columns:
                values = batch.column(column)
                audit.read(
                    values,
                    lambda n, place=f"{name}, column {column}", first=rows: f"{place}, row {first + n + 1}",  # type: ignore[misc]
                    lambda n, text, match: _is_known(text, match, hider, replacements),
                )
                name_model = hider.hider.name_model if column in TEXT_COLUMNS else None
                for value in pc.unique(values).drop_null().to_pylist():
                    for span in find_pii(value, hider.types, name_model=name_model):
                        may_stay = column == SOURCE_COLUMN and span.type == "URL"
                        if not may_stay and hider.fingerprint(value[span.start : span.end]) not in replacements:
                            row = rows + pc.index(values, value).as_py() + 1
                            raise _found_error(f"{name}, row {row}, column {column}", span)
            rows += batch.num_rows


def _check_page(
    path: Path, name: str, hider: DocumentHider, originals: np.ndarray, allowed: set[int], audit: Audit
) -> None:
    line = 1
    with path.open(encoding="utf-8", newline="\n") as file:
        while lines := file.readlines(BLOCK_CHARS):
            text = "".join(lines)
            audit.read(
                pa.array(lines),
                lambda n, first=line: f"{name}, line {first + n}",  # type: ignore[misc]
                lambda n, text, match: _is_known(text, match, hider, allowed),
            )
            for span in find_pii(text, hider.types):
                value = text[span.start : span.end]
                forms = [hider.fingerprint(form) for form in normal_forms(span.type, value)]
                is_allowed = not allowed.isdisjoint([*forms, hider.fingerprint(value)])
                if not is_allowed and np.isin(np.array(forms, np.uint64), originals).any():
                    raise _found_error(f"{name}, line {line + text.count(chr(10), 0, span.start)}", span)
            line += len(lines)


def _found_error(where: str, span: Span) -> BadInput:
    return BadInput(
        f"{where}, characters {span.start} to {span.end}: found {span.type} that is not a replacement. Do not publish "
        "this folder; please report this as a bug of malmoi"
    )
