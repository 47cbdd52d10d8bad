"""Convert namumark, the markup of NamuWiki dumps, to plain text.

Two passes in linear time. The first handles nested markup (links, braces, footnotes, macros) with one pattern and a
stack of open marks; the second handles lines (headings, tables, lists, quotations). An unclosed mark loses only its
marker. Templates are not expanded, tables become rows of text, and marks nested deeper than 64 levels are not
distinguished.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass

MAX_DEPTH = 64  # bounds the work for each closing mark
MAX_FORMULA_CHARS = 4_000  # longer: an opening mark without its closing mark

# style of text, which is kept: {{{+1 …}}}, {{{#red …}}}, {{{#fff,#000 …}}}, {{{#!wiki style="…" …}}}
STYLE = r"[+-][1-5][ \n]|\#[0-9A-Za-z]{3,20}(?:,\#?[0-9A-Za-z]{3,20})?[ \n]"
WIKI = r"""\#!wiki(?:[ ]*+[a-z-]++=(?:"[^"\n{}]*+"|'[^'\n{}]*+'))*+[ ]*+\n?"""
SPECIAL = re.compile(r"[\\\[\]{}|]")
SPECIAL_INSIDE = re.compile(r"[\\\[\]{}|\n]")  # line ends matter to open marks only
TOKEN = re.compile(
    rf"""
    (?P<line_end>\n)
    |(?P<link>\[\[(?![ ]?(?i:파일|분류|file|image|category):)
        (?P<target>[^\[\]{{}}|\\\n]*+)(?:\|(?P<label>[^\[\]{{}}|\\\n]*+))?\]\])
    |(?P<open_link>\[\[)
    |(?P<open_note>\[\*)
    |(?P<macro>\[(?i:목차|각주|tableofcontents|toc|footnote|clearfix|pagecount|date|datetime|time|anchor|age|dday
        |youtube|kakaotv|nicovideo|navertv|vimeo|tvpot)(?:\([^\[\](){{}}\n]*+\))?\])
    |(?P<ruby>\[(?i:ruby)\((?P<base>[^\[\](){{}},\n]*+),[^\[\](){{}}\n]*+\)\])
    |(?P<open_include>\[(?i:include)\()
    |(?P<open>\[)
    |(?P<close>\]++)
    |(?P<brace>\{{\{{\{{(?:(?:{STYLE}|{WIKI})|(?P<code>\#!(?:syntax|latex)\b)|(?P<html>\#!html\b)
        |\#![^\n{{}}]*+\n?|(?P<literal>)))
    |(?P<close_brace>\}}\}}\}})
    |(?P<pipe>(?<!\|)\|(?!\|))
    |(?P<escape>\\[^\n])
    """,
    re.X,
)
BRACES = re.compile(r"\\[^\n]|(\{\{\{)|(\}\}\})")
HIDDEN = re.compile(r" ?(?:파일|분류|file|image|category):", re.I)
COMMENT = re.compile(r"^##[^\n]*+\n?", re.M)
HTML_TAG = re.compile(r"<[^<>]{1,500}>")

ENDS_WITH_LINE = ("open", "open_link", "open_note")
ENDS_WITH_PARAGRAPH = (*ENDS_WITH_LINE, "open_include")

HEADING = re.compile(r"(={2,6}|=(?= ))(#?) ?([^= ](?:.*[^= ])?) ?\2\1")
RULER = re.compile(r"-{4,9}")
LIST_ITEM = re.compile(r"\*|[1aAiI]\.(?:#\d{1,5})?(?= )")
CAPTION = re.compile(r"\|([^|]++)\|(?!\|)")
# cell options: <-2>, <|3>, <:>, <bgcolor=#fff>; other text in angle brackets is usually Korean and is kept
CELL = re.compile(r"(?:\|\|)++(?:<[-:()|^#0-9A-Za-z][^<>가-힣]{0,120}>|<\)>)*")
LINE_BREAK = re.compile(r"\[br\]", re.I)
PAIRED = re.compile(
    r"''(?!')((?:[^'\n]|'(?!'))++)''"
    r"|~~(?!\s)((?:[^~\n]|~(?!~))++)(?<!\s)~~"
    r"|--(?![\s-])((?:[^\n-]|-(?!-))++)(?<!\s)--"
    r"|__(?!\s)((?:[^_\n]|_(?!_))++)(?<!\s)__"
    r"|\^\^(?!\s)((?:[^^\n]|\^(?!\^))++)(?<!\s)\^\^"
    r"|,,(?!\s)((?:[^,\n]|,(?!,))++)(?<!\s),,"
)
BLANKS = re.compile(r" {2,}")


@dataclass(slots=True)
class _Mark:
    """An open mark: its name in ``TOKEN``, the piece before its content, and the piece before the label of a link."""

    kind: str
    piece: int
    label: int | None = None


def plain_text(markup: str) -> str:
    """The visible text of a page: one line per paragraph, heading, list item or table row, without empty lines.

    Links become their labels; files, categories, macros, footnotes, formulas, code and comments are removed.
    """
    text = markup.replace("\r\n", "\n").replace("\t", " ")
    text = cut_spans(text, "[math(", ")]", MAX_FORMULA_CHARS)
    text = cut_spans(text, "<math>", "</math>", MAX_FORMULA_CHARS)
    text = _Unnester(COMMENT.sub("", text)).run()
    text = "\n".join(part for line in text.split("\n") for part in _read_line(line.rstrip())).replace("'''", "")
    for _ in range(2):  # one kind inside another: ''~~…~~''
        text = PAIRED.sub(lambda match: match[match.lastindex or 0], text)
    return "\n".join(line for line in map(str.strip, BLANKS.sub(" ", text).split("\n")) if line)


def cut_spans(text: str, opener: str, closer: str, max_chars: int) -> str:
    """Remove spans from ``opener`` to ``closer`` of at most ``max_chars`` without a second opener."""
    pieces = []
    position, end, start = 0, -1, text.find(opener)
    while start >= 0:
        following = text.find(opener, start + len(opener))
        if end < start:
            end = text.find(closer, start)
            if end < 0:
                break
        if end - start <= max_chars and not start < following < end:
            pieces.append(text[position:start])
            position = end + len(closer)
        start = following
    pieces.append(text[position:])
    return "".join(pieces)


class _Unnester:
    """The first pass: a stack of open marks and a list of text pieces."""

    def __init__(self, text: str) -> None:
        self.text, self.paired_braces = text, _paired_braces(text)
        self.pieces: list[str] = []
        self.marks: list[_Mark] = []
        self.literal_depth = 0  # in {{{…}}} without a directive, only braces are markup
        self.braces_too_deep = 0

    def run(self) -> str:
        """The text without nested marks; lines are unchanged."""
        text, pieces = self.text, self.pieces
        done = 0
        special = SPECIAL.search(text)
        while special:
            start = special.start()
            token = TOKEN.match(text, start)
            if token:
                if start > done:
                    pieces.append(text[done:start])
                done = token.end()
                self._read(token)
            # no token: a single brace, ||, a backslash at the end of a line
            special = (SPECIAL_INSIDE if self.marks else SPECIAL).search(text, done if token else start + 1)
        pieces.append(text[done:])
        return "".join(pieces)

    def _read(self, token: re.Match[str]) -> None:
        kind = token.lastgroup or ""
        if kind in ("brace", "close_brace"):
            if token.start() in self.paired_braces:
                (self._open_brace if kind == "brace" else self._close_brace)(token)
        elif self.literal_depth:
            self.pieces.append(token[0])
        elif kind == "line_end":
            is_paragraph = self.text.startswith("\n", token.end())
            self._forget(ENDS_WITH_PARAGRAPH if is_paragraph else ENDS_WITH_LINE)
            self.pieces.append("\n")
        elif kind == "close":
            self._close(token)
        elif kind in ENDS_WITH_PARAGRAPH:
            if len(self.marks) < MAX_DEPTH:
                self.marks.append(_Mark(kind, len(self.pieces)))
            self.pieces.append("[" if kind == "open" else "")
        elif kind == "pipe" and self._top() == "open_link":
            link = self.marks[-1]
            link.label = len(self.pieces) if link.label is None else link.label
        elif kind != "macro":
            self.pieces.append(_replacement(kind, token))

    def _top(self) -> str:
        return self.marks[-1].kind if self.marks else ""

    def _forget(self, kinds: Container[str]) -> bool:
        """Drop unclosed innermost marks of these kinds; False if no marks are open."""
        while self._top() in kinds:
            self.marks.pop()
        return bool(self.marks)

    def _close(self, token: re.Match[str]) -> None:
        """A run of ``]``: each closes the innermost mark, two close a link; others stay as text."""
        left = len(token[0])
        while left:
            top = self._top()
            if top == "open_link" and left >= 2:
                left -= 2
                link = self.marks.pop()
                if HIDDEN.match("".join(self.pieces[link.piece : link.piece + 3])):
                    del self.pieces[link.piece :]
                elif link.label is not None:
                    del self.pieces[link.piece : link.label]
                continue
            left -= 1
            if top == "open_note" or (top == "open_include" and self.text[token.end() - left - 2] == ")"):
                del self.pieces[self.marks.pop().piece :]
                continue
            if top == "open":
                self.marks.pop()
            elif left:  # a single ]] is the rest of a link
                left -= 1
                continue
            self.pieces.append("]")

    def _open_brace(self, token: re.Match[str]) -> None:
        if self.literal_depth or token["literal"] is not None:
            self.literal_depth += 1
        elif len(self.marks) >= MAX_DEPTH:
            self.braces_too_deep += 1
        else:
            kind = "code" if token["code"] else "html" if token["html"] else "brace"
            self.marks.append(_Mark(kind, len(self.pieces)))
        if token[0].endswith("\n"):  # the line of a directive
            self.pieces.append("\n")

    def _close_brace(self, token: re.Match[str]) -> None:
        if self.literal_depth:
            self.literal_depth -= 1
        elif self.braces_too_deep:
            self.braces_too_deep -= 1
        elif self._forget(ENDS_WITH_PARAGRAPH):  # else a backslash hides the partner: {{{#!folding \\{{{{
            mark = self.marks.pop()
            if mark.kind == "code":
                del self.pieces[mark.piece :]
            elif mark.kind == "html":
                self.pieces[mark.piece :] = [HTML_TAG.sub("", "".join(self.pieces[mark.piece :]))]


def _paired_braces(text: str) -> set[int]:
    """Offsets of all matching ``{{{`` and ``}}}``."""
    opened: list[int] = []
    paired: set[int] = set()
    for match in BRACES.finditer(text):
        if match[1]:
            opened.append(match.start())
        elif match[2] and opened:
            paired |= {opened.pop(), match.start()}
    return paired


def _replacement(kind: str, token: re.Match[str]) -> str:
    """The text of a token that needs no stack; links without a label show their target without the section."""
    if kind == "link" and not token["label"]:
        target = token["target"].removeprefix(":")  # of [[:분류:…]]
        return target if "://" in target else target.partition("#")[0] or target[1:]
    if kind in ("link", "ruby"):
        return token["label"] or token["base"]
    return token[0][1:] if kind == "escape" else token[0]


def _read_line(line: str) -> list[str]:
    """The lines of text for one line of markup."""
    if line.startswith("=") and (heading := HEADING.fullmatch(line)):
        return [heading[3]]
    if RULER.fullmatch(line):
        return []
    body = line.lstrip(" >")
    if len(line) > len(body) and line[len(line) - len(body) - 1] == " ":
        body = LIST_ITEM.sub("", body, count=1) if LIST_ITEM.match(body) else body
    if body.startswith("|") and (caption := CAPTION.match(body)):
        return [LINE_BREAK.sub(" ", CELL.sub(" ", f"{caption[1]} {body[caption.end() :]}"))]
    if body.startswith("||") or body.endswith("||") or "|| " in body:
        return [LINE_BREAK.sub(" ", CELL.sub(" ", body))]
    return LINE_BREAK.split(body)
