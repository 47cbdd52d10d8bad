"""What the corpus bench works on: the files given, and for each kind not given the embedded sample.

The sample is invented: it lets anyone run the bench, and it is easier than real text. Of many files every one gives the
same share, so that a few megabytes still hold every source.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corpus.documents.errors import BadInput

SAMPLE = "embedded sample (invented)"
Span = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Material:
    """Everything to measure on, and by ``named`` where each came from.

    Fields:
        documents: raw text of whole documents.
        gold: documents as lists of gold sentences that make the text when joined as they are.
        labelled: texts with their true spans of personal data: start, end, type.
        benchmarks: files of benchmark sentences.
        named: what "texts", "sentences", "pii" and "benchmarks" are.
    """

    documents: list[str]
    gold: list[list[str]]
    labelled: list[tuple[str, list[Span]]]
    benchmarks: list[Path]
    named: dict[str, str]


def gather_material(
    texts: list[str], sentences: Path | None, pii: Path | None, benchmarks: list[str], megabytes: float, scratch: Path
) -> Material:
    """Read the files given; the embedded sample is written into ``scratch`` where something is missing.

    Raises:
        BadInput: a file is missing, unreadable or not in its format.
    """
    from corpus.decontamination.benchmarks import find_benchmarks

    if not (texts and sentences and pii and benchmarks):
        _write_sample(scratch)
    named = {"texts": texts, "sentences": sentences, "pii": pii, "benchmarks": benchmarks}
    return Material(
        documents=list(read_texts(texts or [str(scratch / "corpus")], megabytes)),
        gold=read_gold(sentences or scratch / "sentences"),
        labelled=read_labelled(pii or scratch / "pii.jsonl"),
        benchmarks=find_benchmarks(benchmarks or [str(scratch / "klue")]),
        named={kind: "files given" if given else SAMPLE for kind, given in named.items()},
    )


def read_texts(patterns: list[str], megabytes: float) -> Iterator[str]:
    """Documents of the files, an equal share of each, about ``megabytes`` of UTF-8 in all."""
    from corpus.reading.inputs import find_inputs
    from corpus.reading.read import Record, read_unit
    from corpus.reading.units import plan_units

    units = list(plan_units(find_inputs(patterns, {}, "text"), whole_files=True))
    left = megabytes * 1e6
    for number, unit in enumerate(units):
        share = left / (len(units) - number)  # what a small file leaves goes to those after it
        for found in read_unit(unit, Counter()):
            if not isinstance(found, Record):
                continue
            yield found.text
            size = len(found.text.encode())
            share, left = share - size, left - size
            if share <= 0:
                break


def read_gold(folder: Path) -> list[list[str]]:
    """Documents of all ``*.txt`` files: a gold sentence a line, a blank line ends a document."""
    gold = []
    for path in sorted(folder.glob("*.txt")):
        for block in path.read_text("utf-8").split("\n\n"):
            if lines := [line for line in block.split("\n") if line.strip()]:
                gold.append(lines)
    if not gold:
        raise BadInput(
            f"{folder}: no gold sentences; expected .txt files, a sentence a line, a blank line after a document"
        )
    return gold


def read_labelled(path: Path) -> list[tuple[str, list[Span]]]:
    """Lines ``{"text": …, "spans": [[start, end, TYPE], …]}``."""
    rows = []
    try:
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            rows.append((row["text"], [(int(start), int(end), str(kind)) for start, end, kind in row["spans"]]))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; expected labelled text as JSON lines") from None
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: line {len(rows) + 1} is not an object with text and spans ({error!r})") from None
    if not rows:
        raise BadInput(f"{path}: no labelled text in this file")
    return rows


def _write_sample(folder: Path) -> None:
    from launch.sample.unpack import gold_sentences, labelled_documents, unpack

    unpack(folder)
    rows = ({"text": text, "spans": spans} for text, spans in labelled_documents())
    (folder / "pii.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    (folder / "sentences").mkdir()
    (folder / "sentences" / "sample.txt").write_text("\n\n".join(map("\n".join, gold_sentences())), "utf-8")
