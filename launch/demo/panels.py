"""The panels of the local page as HTML: each a pure function of text and findings, without gradio and without a model.

All that was typed, and all that a model's files hold, passes through ``escape``: it can neither open a tag nor begin an
expression of the templates that gradio fills in the browser.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from corpus.documents.escaping import escape_controls
from corpus.pii.detect import Span

TEMPLATE_SIGNS = str.maketrans({sign: f"&#{ord(sign)};" for sign in "{}$`"})
FAMILIES = {  # types of personal data that share a colour
    "reach": ("TEL", "EMAIL", "ADDRESS", "MENTION", "HANDLE"),
    "person": ("PERSON", "RRN", "FRN", "PASSPORT", "DRIVER", "HEALTH"),
    "money": ("ACCOUNT", "CARD", "BRN", "ORG_NUMBER", "CUSTOMS"),
    "machine": ("IP", "MAC", "URL"),
}
FAMILY = {kind: family for family, kinds in FAMILIES.items() for kind in kinds}
PII_NAMES = {
    "TEL": ("telephone", "전화번호"), "RRN": ("resident number", "주민등록번호"),
    "FRN": ("foreigner number", "외국인등록번호"), "EMAIL": ("e-mail", "전자우편"), "IP": ("IP address", "IP 주소"),
    "MAC": ("MAC address", "MAC 주소"), "MENTION": ("mention", "멘션"), "ADDRESS": ("address", "주소"),
    "ACCOUNT": ("bank account", "계좌번호"), "PASSPORT": ("passport", "여권번호"),
    "DRIVER": ("driver's licence", "운전면허"),
    "BRN": ("business number", "사업자번호"), "HEALTH": ("health insurance", "건강보험"), "CARD": ("card", "카드번호"),
    "PLATE": ("number plate", "차량번호"), "URL": ("web address", "웹 주소"), "PERSON": ("person", "사람 이름"),
    "ORG_NUMBER": ("corporation number", "법인번호"), "HANDLE": ("account name", "아이디"),
    "CUSTOMS": ("customs code", "통관부호"), "COURIER": ("tracking number", "운송장번호"),
    "MEMBERSHIP": ("membership", "회원번호"),
}  # fmt: skip
ENTITY_NAMES = {
    "PS": ("person", "사람"), "LC": ("place", "장소"), "OG": ("organization", "기관"), "DT": ("date", "날짜"),
    "TI": ("time", "시간"), "QT": ("quantity", "수량"),
}  # fmt: skip
PieceKind = Literal["begins", "continues", "unknown", "special"]


@dataclass(frozen=True, slots=True)
class Mark:
    """``text[start:end]`` in the colour ``colour``, with a short name beside it."""

    start: int
    end: int
    name: str
    colour: str


@dataclass(frozen=True, slots=True)
class Cut:
    """A text in the pieces of one tokenizer, special tokens left out."""

    name: str
    entries: int  # of the vocabulary
    pieces: Sequence[tuple[str, PieceKind]]


def escape(text: str) -> str:
    """Text as HTML that is nothing but text; characters that cannot be seen appear as their numbers."""
    return html.escape(escape_controls(text)).translate(TEMPLATE_SIGNS)


def panel(title: str, body: str, note: str = "", kind: str = "") -> str:
    """A section of the page; ``title`` and ``note`` are text, ``body`` is HTML."""
    small = f"<small>{escape(note)}</small>" if note else ""
    return f'<section class="panel {kind}"><h2>{escape(title)}{small}</h2>{body}</section>'


def message(text: str) -> str:
    """A quiet line in place of findings."""
    return f'<p class="quiet">{escape(text)}</p>'


def marked(text: str, marks: Iterable[Mark]) -> str:
    """The text with marks in it; of marks that overlap the first stays."""
    shown, at = [], 0
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        if mark.start < at:
            continue
        shown.append(escape(text[at : mark.start]))
        name = f"<small>{escape(mark.name)}</small>"
        shown.append(f'<mark class="{escape(mark.colour)}">{escape(text[mark.start : mark.end])}{name}</mark>')
        at = mark.end
    return f'<p class="text">{"".join(shown)}{escape(text[at:])}</p>'


def personal_data(text: str, spans: Sequence[Span], language: str) -> str:
    """Personal data in colours by what it leads to, each value named below with its type and score."""
    names = {kind: pair[language == "ko"] for kind, pair in PII_NAMES.items()}
    marks = [Mark(span.start, span.end, span.type, FAMILY.get(span.type, "other")) for span in spans]
    rows = [
        f'<li><i class="dot {mark.colour}"></i><b>{mark.name}</b> {escape(names.get(mark.name, ""))}'
        f'<span class="n">{span.score:.2f}</span></li>'
        for mark, span in zip(marks, spans, strict=True)
    ]
    return marked(text, marks) + (f'<ul class="found">{"".join(rows)}</ul>' if rows else "")


def pieces(cuts: Sequence[Cut], heads: Mapping[str, str]) -> str:
    """Tokenizers below each other, so that pieces of one place can be compared; ``heads`` names the figures."""
    return "".join(map(_cut_row, cuts, [heads] * len(cuts)))


def _cut_row(cut: Cut, heads: Mapping[str, str]) -> str:
    unknown = sum(kind == "unknown" for _, kind in cut.pieces)
    chips = "".join(f'<span class="{kind}">{_piece(text)}</span>' for text, kind in cut.pieces)
    figures = (
        f"<span><b>{len(cut.pieces):,}</b> {escape(heads['pieces'])}</span>"
        f'<span class="{"bad" if unknown else ""}"><b>{unknown:,}</b> {escape(heads["unknown"])}</span>'
        f"<span>{cut.entries:,} {escape(heads['entries'])}</span>"
    )
    head = f'<h3>{escape(cut.name)}</h3><p class="figures">{figures}</p>'
    return f'<div class="cut">{head}<p class="chips">{chips}</p></div>'


def _piece(text: str) -> str:
    return f"<i>##</i>{escape(text[2:])}" if text.startswith("##") and len(text) > 2 else escape(text)


def bars(rows: Sequence[tuple[str, float]], *, mono: bool = False) -> str:
    """Names with probabilities, 0..1, in the order given."""
    return '<ol class="bars{}">{}</ol>'.format(
        " mono" if mono else "",
        "".join(
            f'<li><span>{escape(name)}</span><i><i style="width:{100 * share:.1f}%"></i></i>'
            f'<span class="n">{100 * share:.1f} %</span></li>'
            for name, share in rows
        ),
    )


def candidates(places: Sequence[Sequence[tuple[str, float]]]) -> str:
    """What a model would put in each [MASK], the likeliest first."""
    if len(places) == 1:
        return bars(places[0], mono=True)
    shown = (f"<div><h4>[MASK] {number}</h4>{bars(place, mono=True)}</div>" for number, place in enumerate(places, 1))
    return f'<div class="places">{"".join(shown)}</div>'


def entities(text: str, found: Iterable[tuple[int, int, str]], language: str) -> str:
    """Entities marked in the text: ``(start, end, type)``, the types of KLUE-NER."""
    names = {kind: pair[language == "ko"] for kind, pair in ENTITY_NAMES.items()}
    colours = {kind: kind.lower() for kind in names}
    return marked(text, [Mark(b, e, names.get(kind, kind), colours.get(kind, "other")) for b, e, kind in found])


def plain(lines: Iterable[str]) -> str:
    """Lines as they are printed."""
    return f"<pre>{'&#10;'.join(escape(line.expandtabs(2)) for line in lines)}</pre>"


def side_by_side(bodies: Mapping[str, str]) -> str:
    """The findings of several models, as HTML by name."""
    shown = (f'<div class="of"><h3>{escape(name)}</h3>{body}</div>' for name, body in bodies.items())
    return f'<div class="ofs">{"".join(shown)}</div>'
