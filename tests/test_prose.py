"""Plain English: no word of the style guide's list in docs, help, errors, docstrings and comments, no long sentences.

Each word of the list has a plain one: told (reported), stands (is), goes on (resumes), begins as (is initialized from),
but for (except), beside (next to, compared with), whatever the (any), so many (N), lest, afresh, anew, mend (fix),
fault (bug, error), want (need).
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source_graph import ROOT

WORDS = re.compile(
    r"\b(told|tells|stands?|standing|stood|(?:goes|gone|going|go) on|begins? as|but for|behind it|beside|whatever the|"
    r"so many|what is there|lest|afresh|anew|mend(?:s|ed|ing)?|by hand of|faults?|wants?|wanted)\b",
    re.IGNORECASE,
)
MAX_SENTENCE_WORDS = 40
TOP_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md")
PLACES = (
    "corpus",
    "tokenizer",
    "pretrain",
    "finetune",
    "launch",
    "benchmarks",
    "tests",
    "malmoi.py",
    "docs",
    *TOP_PAGES,
)
PAGES = [*map(ROOT.joinpath, TOP_PAGES), *sorted((ROOT / "docs").glob("*.md"))]
QUOTATIONS = (  # text of others, and lines of these rules themselves
    "tests/test_prose.py",
)


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a page, or comments, docstrings, names of functions and strings of several words of a Python file, with
    line numbers."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield node.lineno, node.name.replace("_", " ")
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for number, line in enumerate(node.value.splitlines()):
                yield node.lineno + number, line


def words_to_avoid(path: Path) -> list[str]:
    # reading the tokens of a file takes long; all that they hold is also in the text without quotes, breaks and escapes
    if not WORDS.search(re.sub(r"\\.|[\"'\s_]+", " ", path.read_text("utf-8"))):
        return []
    return [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}: {line.strip()}"
        for number, line in texts_of(path)
        for match in WORDS.finditer(line)
    ]


def files_of(place: str) -> list[Path]:
    path = ROOT / place
    files = [path] if path.is_file() else [f for f in path.rglob("*") if f.suffix in (".py", ".md", ".j2", ".yaml")]
    own = [file for file in files if "node_modules" not in file.parts]
    return sorted(file for file in own if file.relative_to(ROOT).as_posix() not in QUOTATIONS)


@pytest.mark.parametrize("place", PLACES)
def test_no_word_has_a_plainer_one(place: str) -> None:
    assert [line for file in files_of(place) for line in words_to_avoid(file)] == []


def sentences_of(page: str) -> Iterator[str]:
    """Sentences of a page, without code blocks, tables, headings and link targets."""
    page = re.sub(r"```.*?```|<!--.*?-->", "", page, flags=re.DOTALL)
    page = re.sub(r"^(\||#|    ).*$", "", page, flags=re.MULTILINE)
    page = re.sub(r"\]\([^)]*\)", "]", page)
    page = re.sub(r"`[^`]*`", "code", page)
    for paragraph in re.split(r"\n\s*\n|^\s*(?:[-*]|\d+\.) ", page, flags=re.MULTILINE):
        yield from re.split(r"(?<=[.!?:])[\s)\]*\"]+", " ".join(paragraph.split()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sentences_of_a_page_are_short(page: Path) -> None:
    long = [line for line in sentences_of(page.read_text("utf-8")) if len(line.split()) > MAX_SENTENCE_WORDS]
    assert not long, "\n".join(long)


def test_the_scan_reads_comments_docstrings_messages_and_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.test_prose.ROOT", tmp_path)
    path = tmp_path / "a.py"
    path.write_text(
        '"""Tells all."""\nwanted = f"{wanted} is a fault"  # lest it go on\nnew = "anew"\ndef so_many(): ...\n',
        "utf-8",
    )
    assert [line.split(": ")[1] for line in words_to_avoid(path)] == ["lest", "go on", "so many", "Tells", "fault"]


def test_sentences_end_at_stops_and_list_items() -> None:
    page = "# A heading\n\nOne `code. here` sentence. Two\nlines.\n\n- an item\n- another\n\n| a | table. |\n"
    assert [line for line in sentences_of(page) if line] == ["One code sentence.", "Two lines.", "an item", "another"]
