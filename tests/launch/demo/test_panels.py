"""Panels are HTML in which all that was typed stays text, and the tree is an SVG with one arc a link."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.documents.escaping import escape_controls
from corpus.pii.detect import find_pii
from corpus.pii.types import ALL_TYPES
from launch.demo.panels import (
    ENTITY_NAMES,
    PII_NAMES,
    Cut,
    Mark,
    bars,
    candidates,
    entities,
    escape,
    marked,
    message,
    panel,
    personal_data,
    pieces,
    side_by_side,
)
from launch.demo.tree import ROW, draw_tree

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)> ${alert(3)} {{x}} `\" '&amp;\u202e\x1b"
HEADS = {"pieces": "pieces", "unknown": "unknown", "entries": "entries"}
OURS = {"section", "h2", "h3", "h4", "small", "p", "mark", "ul", "ol", "li", "i", "b", "span", "div", "svg", "title",
        "path", "text"}  # fmt: skip


class Reader(HTMLParser):
    """Tags, attributes and text of a piece of HTML, as a browser reads them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def all_panels(text: str) -> list[str]:
    return [
        marked(text, [Mark(0, 3, text, text)]),
        personal_data(text, find_pii(text, ALL_TYPES), "en"),
        pieces([Cut(text, 8000, [(text, "begins"), (f"##{text}", "continues"), (text, "unknown")])], HEADS),
        candidates([[(text, 0.5)], [(text, 0.25)]]),
        entities(text, [(0, 2, "PS"), (2, 4, text)], "ko"),
        bars([(text, 1.0)]),
        side_by_side({text: message(text)}),
        panel(text, "", text),
        draw_tree([text, "끝."], [2, 0], [text, "VP"], text),
    ]


def test_no_text_opens_a_tag_gets_an_attribute_or_begins_an_expression() -> None:
    for html in all_panels(EVIL):
        read = Reader(html)
        assert read.tags <= OURS
        assert not any(name.startswith("on") or name == "src" for name in read.attributes)
        assert "<script>alert(1)</script>" in read.text  # seen as typed
        assert not set("{}$`\u202e\x1b") & set(html)


@settings(max_examples=40)
@given(st.text(max_size=60))
def test_what_is_marked_reads_as_the_text_itself(text: str) -> None:
    assert Reader(escape(text)).text == escape_controls(text)
    marks = [Mark(2, 5, "TEL", "reach"), Mark(0, 1, "X", "other"), Mark(3, 9, "ADDRESS", "reach")]
    shown = marked(text, [mark for mark in marks if mark.end <= len(text)])
    for name in ("TEL", "X", "ADDRESS"):
        shown = shown.replace(f"<small>{name}</small>", "")
    assert Reader(shown).text == "".join(map(escape_controls, text))


def test_personal_data_is_marked_with_its_type_and_named_below() -> None:
    text = "문의: 010-0123-4567, kim@example.com"
    html = personal_data(text, find_pii(text, ALL_TYPES), "ko")
    assert '<mark class="reach">010-0123-4567<small>TEL</small></mark>' in html
    assert "전화번호" in html and "전자우편" in html
    assert "<ul" not in personal_data("없음", [], "ko")


def test_every_type_has_a_name_in_both_languages() -> None:
    assert PII_NAMES.keys() == set(ALL_TYPES)
    assert all(all(pair) for pair in (*PII_NAMES.values(), *ENTITY_NAMES.values()))


def test_pieces_are_counted_and_unknown_ones_stand_out() -> None:
    html = pieces([Cut("small", 8000, [("한빛", "begins"), ("##시", "continues"), ("뷁", "unknown")])], HEADS)
    assert "<b>3</b> pieces" in html and '<span class="bad"><b>1</b> unknown' in html and "8,000 entries" in html
    assert '<span class="continues"><i>##</i>시</span><span class="unknown">뷁</span>' in html


def test_several_masks_have_a_list_each() -> None:
    assert candidates([[("가", 0.5), ("나", 0.25)]]).count("<li>") == 2
    html = candidates([[("가", 0.5)], [("나", 0.25)]])
    assert html.index("[MASK] 1") < html.index("50.0 %") < html.index("[MASK] 2") < html.index("25.0 %")


def svg_of(words: list[str], heads: list[int]) -> ET.Element:
    return ET.fromstring(draw_tree(words, heads, ["NP"] * len(words)))


def paths(svg: ET.Element, kind: str) -> list[str]:
    return [path.attrib["d"] for path in svg.iter("path") if path.attrib["class"] == kind]


@settings(max_examples=40)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=12))
def test_a_tree_has_an_arc_for_each_link_and_all_of_it_lies_inside(heads: list[int]) -> None:
    words = [f"낱말{number}" for number in range(len(heads))]
    svg = svg_of(words, heads)
    linked = [head for at, head in enumerate(heads, 1) if 0 < head <= len(words) and head != at]
    assert len(paths(svg, "arc")) == len(paths(svg, "tip")) == len(linked)
    assert [text.text for text in svg.iter("text")][::2] == words
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    assert height == ROW * len(words)
    assert all(0 < float(text.attrib["x"]) < width for text in svg.iter("text"))


def test_an_arc_goes_around_those_inside_it_and_a_long_sentence_stays_narrow() -> None:
    outer, middle, _ = (
        float(d.split("H")[1].split("Q")[0]) for d in paths(svg_of(list("가나다라"), [4, 3, 4, 0]), "arc")
    )
    assert outer < middle  # drawn in the order of words: the arc from 라 to 가 goes around
    count = 60
    svg = svg_of(["낱말"] * count, [*[count] * (count - 1), 0])
    assert float(svg.attrib["viewBox"].split()[2]) < 360
    svg = svg_of(["가" * 300, "끝"], [2, 0])
    assert float(svg.attrib["viewBox"].split()[2]) < 360 and "가…" in "".join(svg.itertext())
