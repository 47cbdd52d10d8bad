"""Read the text fields of benchmark files: the eight KLUE tasks as published, and any .txt or .jsonl file.

Fields are split into sentences, so each sentence is found alone. Headlines are not split, because their parts ("논란",
controversy) are common words. The file name selects the reader (``klue-nli-v1.1_dev.json.zst``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from corpus.decontamination.match_rule import RULE
from corpus.documents.errors import BadInput
from corpus.reading.files import file_format, find_files, name_files, read_blocks
from corpus.reading.inputs import AUTO, Input, Unit
from corpus.reading.read import RejectedRecord, read_unit
from corpus.sentences.folding import fold
from corpus.sentences.split import split_sentences

UNSPLIT_TASKS = {"ynat"}  # headlines


class BenchmarkText(NamedTuple):
    """One sentence of a benchmark, or several short ones joined; ``key`` is ``guid#field``."""

    task: str
    key: str
    text: str


Fields = Iterator[tuple[str, str, Any]]  # guid, field, text
CustomTexts = Mapping[str, Sequence[tuple[str, str]]]  # guid and text, by task


def _read_records(*names: str) -> Callable[[str], Fields]:
    return lambda content: ((record["guid"], name, record[name]) for record in json.loads(content) for name in names)


def _read_passages(content: str) -> Fields:
    """MRC, without the titles, which models do not see."""
    for article in json.loads(content)["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                yield question["guid"], "context", paragraph["context"]
                yield question["guid"], "question", question["question"]


def _read_dialogues(content: str) -> Fields:
    for dialogue in json.loads(content):
        for number, turn in enumerate(dialogue["dialogue"]):
            yield dialogue["guid"], f"turn{number}", turn["text"]


def _read_tagged_characters(content: str) -> Fields:
    """NER: the characters of the tag lines; the inline markup is ambiguous for text with brackets."""
    for block in content.split("\n\n"):
        guid, characters = "", []
        for line in block.splitlines():
            if _is_head(line):
                guid = line[3:].split("\t")[0].strip()
            elif guid and "\t" in line:
                characters.append(line.split("\t")[0] or " ")
        if guid:
            yield guid, "sentence", "".join(characters)


def _read_parsed_words(content: str) -> Fields:
    for guid, sentence in (line[3:].split("\t", 1) for line in content.splitlines() if _is_head(line)):
        yield guid.strip(), "sentence", sentence


def _is_head(line: str) -> bool:
    return line.startswith("## ") and "\t" in line and "-v1" in line


def _read_columns(content: str) -> Fields:
    """Two columns, guid and text, with or without a header."""
    for guid, _, text in (line.partition("\t") for line in content.splitlines()):
        if guid != "guid" and text:
            yield guid, "sentence", text


# task (the start of the file name), end of the file name, reader; the first match counts
KLUE_FILES: tuple[tuple[str, str, Callable[[str], Fields]], ...] = (
    ("ynat", ".json", _read_records("title")),
    ("klue-sts", ".json", _read_records("sentence1", "sentence2")),
    ("klue-nli", ".json", _read_records("premise", "hypothesis")),
    ("klue-re", ".json", _read_records("sentence")),
    ("klue-mrc", ".json", _read_passages),
    ("wos", ".json", _read_dialogues),
    ("ynat", "_unlabelled.tsv", _read_columns),
    ("klue-ner", "_raw_sentences.tsv", _read_columns),
    ("klue-ner", ".tsv", _read_tagged_characters),
    ("klue-dp", ".tsv", _read_parsed_words),
)


def _klue_file(path: Path) -> tuple[str, Callable[[str], Fields]] | None:
    name = path.name.removesuffix(file_format(path).packing)
    rows = (row for row in KLUE_FILES if name.startswith(row[0] + "-v1") and name.endswith(row[1]))
    return next(((task, read) for task, _, read in rows), None)


def find_benchmarks(patterns: Sequence[str]) -> list[Path]:
    """Benchmark files: in folders those named like KLUE's, and any .txt or .jsonl file named itself.

    Raises:
        BadInput: a path is missing or not a benchmark file, a folder holds none.
    """
    named = {Path(pattern).expanduser() for pattern in patterns}

    def accepts(path: Path) -> bool:
        return _klue_file(path) is not None or (path in named and file_format(path).kind in (".txt", ".jsonl"))

    return find_files(patterns, accepts, "benchmark file (a KLUE v1.1 file, or a .txt or .jsonl file named directly)")


def read_benchmark(path: Path, name: str | None = None) -> list[BenchmarkText]:
    """All sentences of a benchmark file in order; ``null`` fields are skipped.

    Neighboring sentences that are too short are joined; reviews of NSMC often consist of two such sentences.

    Args:
        name: task name for files that are not of KLUE; default: the file name.

    Raises:
        BadInput: the file does not have the layout of its name, or has no text.
    """
    task, read = _klue_file(path) or (name or path.name, None)
    try:
        content = b"".join(read_blocks(path)).decode("utf-8").replace("\r\n", "\n") if read else ""
        fields = list(read(content) if read else _plain(path))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path}: not in the layout of this KLUE file ({error!r}); download it again") from error
    if texts := list(_sentences(task, fields)):
        return texts
    raise BadInput(f"{path}: no text in this benchmark file; remove it from corpus.benchmarks")


def read_benchmarks(paths: Sequence[Path], custom: CustomTexts | None = None) -> list[BenchmarkText]:
    """The sentences of all files, and of texts of ``custom`` tasks."""
    named = zip(paths, name_files(paths), strict=True)
    texts = [text for path, name in named for text in read_benchmark(path, name)]
    for task, rows in (custom or {}).items():
        texts += _sentences(task, ((guid, "text", text) for guid, text in rows))
    return texts


def _sentences(task: str, fields: Iterable[tuple[str, str, Any]]) -> Iterator[BenchmarkText]:
    for guid, field, text in fields:
        if isinstance(text, str):
            for sentence in [text] if task in UNSPLIT_TASKS else _join_short(split_sentences(text)):
                yield BenchmarkText(task, f"{guid}#{field}", sentence)


def _join_short(sentences: list[str]) -> Iterator[str]:
    for is_long, group in groupby(sentences, lambda sentence: RULE.is_long_enough(sentence, fold(sentence))):
        texts = list(group)
        yield from texts if is_long else [" ".join(texts)]


def _plain(path: Path) -> Fields:
    for record in read_unit(Unit(Input(path, path.name, encoding=AUTO).inspected()), Counter()):
        if isinstance(record, RejectedRecord):
            raise BadInput(f"{path}, line {record.line}: {record.reason}; benchmark files must be readable in full")
        yield record.id, "text", record.text
