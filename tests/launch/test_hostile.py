"""Names and texts with control characters or markup stay text in the corpus stage, the report and the console."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import unicodedata
import warnings
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from rich.table import Table as RichTable

from corpus.documents.escaping import ESCAPED_CATEGORIES
from launch.console import PlainConsole, PlainFormatter, set_up_console
from launch.report.blocks import Pictures, Section, Table, Text
from launch.report.run import render
from launch.report.stages import Curve, corpus_section, line_chart
from tests.command import run_command

TEXT = (
    "가온시 도서관이 새 강좌를 연다. <script>alert({n})</script> 오늘은 | 맑다{n}. `x` [x](javascript:alert({n})) "
    "![i](javascript:i{n}) **끝** \x1b[31m빨강{n}\x9b2J \u202e거꾸로\u202c [red]글[/red]이다. <img src=x onerror=a>"
)
NAMES = (
    b"a\x1b[31m.txt",
    b"b\nmalmoi: all is well.txt",
    b"<img src=x onerror=alert(1)>.jsonl",
    "c\u202etxt.jsonl".encode(),
    b"d\xff.txt",
    b"[red]e[link=x].txt",
    b"f|`g`.txt",
    b"h#1 [i](javascript:j).jsonl",
)
LIVE = {"script", "img", "a", "b", "iframe", "em", "strong"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[bytes]]:
    home = tmp_path_factory.mktemp("hostile")
    folder = os.fsencode(home / "in")
    Path(os.fsdecode(folder)).mkdir()
    for number, name in enumerate(NAMES):
        text = TEXT.replace("{n}", str(number))
        record = json.dumps({"text": text, "source": None if number % 2 else f"\x1b]0;{text[:30]}"})
        content = f"{record}\n{{broken \x1b[2J\x9b\u202e\n" if name.endswith(b"jsonl") else text
        Path(os.fsdecode(os.path.join(folder, name))).write_text(content, "utf-8")  # noqa: PTH118 (bytes)
    command = [sys.executable, "-m", "launch", "corpus", "smoke", "corpus.inputs=in", "finetune.data=null"]
    return home / "runs/smoke/corpus", subprocess.run([*command, "workers=1"], cwd=home, capture_output=True)


def unshown(text: str) -> set[str]:
    return {f"U+{ord(c):04X}" for c in text if c != "\n" and unicodedata.category(c) in ESCAPED_CATEGORIES}


class Elements(HTMLParser):
    """Tags of a page, and whatever in it would run or lead away."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.live: list[str] = []
        self.links: list[str | None] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.live += [name for name, _ in attrs if name.startswith("on") or name == "src"]
        self.links += [value for name, value in attrs if name == "href"]


def as_html(markdown: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown))


def test_every_page_record_and_line_is_safe_to_print(ran: tuple[Path, subprocess.CompletedProcess[bytes]]) -> None:
    folder, result = ran
    assert result.returncode == 0, result.stderr
    files = [path for path in folder.rglob("*") if path.suffix in (".md", ".html", ".json", ".jsonl")]
    assert {path.name for path in files} >= {"README.md", "card.html", "statistics.json", "records.jsonl"}
    for path in files:
        assert not unshown(path.read_text("utf-8")), path
    assert not unshown((result.stdout + result.stderr).decode())


def test_no_name_and_no_text_becomes_a_part_of_a_card(ran: tuple[Path, subprocess.CompletedProcess[bytes]]) -> None:
    folder, _ = ran
    for html in ((folder / "card.html").read_text("utf-8"), as_html((folder / "README.md").read_text("utf-8"))):
        page = Elements(html)
        assert not page.live
        assert not page.tags & {"script", "img", "iframe"}
        assert all(place == "../report/report.html" or str(place).startswith("#") for place in page.links)
    text = (folder / "card.html").read_text("utf-8")
    for shown in ("d⟨U+DCFF⟩", "b↵malmoi: all is well", "⟨U+001B⟩]0;가온시", "&lt;img src=x onerror"):
        assert shown in text, shown


def test_the_quarantine_names_its_files(ran: tuple[Path, subprocess.CompletedProcess[bytes]]) -> None:
    lines = (ran[0] / "quarantine" / "records.jsonl").read_text("utf-8").splitlines()
    assert {json.loads(line)["file"] for line in lines} == {
        "<img src=x onerror=alert(1)>.jsonl", "c⟨U+202E⟩txt.jsonl", "h#1 [i](javascript:j).jsonl"
    }  # fmt: skip


def page_of(*sections: Section) -> dict[str, Any]:
    nasty = TEXT + "\n# oh"
    stages = [{"name": "corpus", "summary": nasty, "cost": "1 s"}]
    return {
        "title": nasty,
        "about": nasty,
        "verdict": [nasty],
        "stages": stages,
        "sections": list(sections),
        "links": [],
    }


def test_no_block_of_the_report_lets_text_through(ran: tuple[Path, subprocess.CompletedProcess[bytes]]) -> None:
    nasty = TEXT + "\n# oh\n```\n- x"
    blocks = [
        Text(nasty), Text(nasty, "warning"), Text(nasty, "heading"), Text(nasty, "code"),
        Pictures([(nasty, line_chart([Curve([1], [1])], nasty, nasty))]),
        Table([nasty, "n"], [[nasty, "1"]], title=nasty), Table(["a"], [["b"]], title=nasty, folded=True),
    ]  # fmt: skip
    page = page_of(Section(nasty, blocks), corpus_section(ran[0].parent))
    html, markdown = render("page.html.j2", page), render("page.md.j2", page)
    for text in (html, as_html(markdown)):
        assert not unshown(text)
        found = Elements(text)
        assert not found.live
        assert not found.tags & {"script", "img", "iframe"}
        assert all(str(place).startswith("#") for place in found.links)
    plain = as_html(markdown)
    assert plain.count("<h1>") == 1
    assert plain.count("<pre>") == 1
    assert "<em>" not in plain and "<ol>" not in plain and "<ul>" not in plain


def test_tables_of_the_console_show_text_as_it_is() -> None:
    out = StringIO()
    console = PlainConsole(file=out, width=200, force_terminal=True, color_system="truecolor")
    table = RichTable("[red]head", title="\x1b[5mtitle :smile:")
    table.add_row("[link=file:///etc]runs/\x1b]8;;x\x07[/link]")
    console.print(table)
    console.print("[bold]runs\u202e/\x9b2J[/bold]")
    text = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())  # the library's own colours
    assert not unshown(text)
    for shown in ("[red]head", ":smile:", "[link=file:///etc]runs/⟨U+001B⟩]8;;x⟨U+0007⟩[/link]", "[bold]runs⟨U+202E⟩"):
        assert shown in text


def test_log_lines_and_warnings_show_names_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, "%s: read\n  twice", ("a\x1b[2J\nmalmoi: ok",), None)
    assert PlainFormatter("%(message)s").format(record) == "a⟨U+001B⟩[2J↵malmoi: ok: read\n  twice"
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    with warnings.catch_warnings():
        set_up_console()
        assert not unshown(warnings.formatwarning("a\x1b[2J\u202e", UserWarning, "f.py", 1))
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("a\x1b[31m", ("corpus", "push", "{}", "a/b")),
        ("b\nmalmoi: all is well", ("corpus", "push", "{}", "a/b")),
        ("c\u202e", ("corpus", "{}.yaml")),
        ("d\x9b\nok", ("corpus", "{}")),
        ("[red]e\n", ("run", "smoke", "{}")),
    ],
)
def test_errors_name_the_input_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    name: str,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_command(capfd, *(argument.replace("{}", name) for argument in arguments))
    lines = result.errors.splitlines()
    assert result.code == 2
    assert len(lines) == 1 and lines[0].startswith("malmoi: ")
    assert not unshown(lines[0])


@pytest.mark.parametrize("encoding", ["ascii", "cp949"])
def test_no_terminal_encoding_crashes_a_command(
    encoding: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = (("run", "smoke", "--dry-run"), ("--help",), ("corpus", "--help"), ("run", "없는 요리법 \u2028"))
    for arguments in commands:
        sys.stdout.reconfigure(encoding=encoding, errors="strict")
        sys.stderr.reconfigure(encoding=encoding, errors="backslashreplace")
        outcome = run_command(capfd, *arguments)
        assert outcome.code in (0, 2) and "Traceback" not in outcome.errors
        assert outcome.output or outcome.errors.startswith("malmoi: ")
