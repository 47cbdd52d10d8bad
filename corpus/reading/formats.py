"""Adapters from the formats in which the paper's corpora are distributed to documents (paper 2.1, appendix B).

An adapter says how records lie in a file (its container), which field names the document and how its text is put
together: a title is the first line, a paragraph or an utterance a line. It guesses nothing: a record of another shape
raises and is quarantined, a record that is no document raises ``Skip`` with the reason it is counted under. Layouts:
NIKL Modu corpora, CC-100, the NamuWiki dump, lovit's petitions archive, WikiExtractor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from corpus.reading.namumark import cut_spans, plain_text

Fields = Mapping[str, Any]

NEWS_BODIES = ("text", "content", "body", "article", "contents")
NEWS_TITLES = ("title", "headline")
MODU_PARTS = ("paragraph", "utterance", "sentence")  # written, spoken and messenger, annotated
REDIRECT = re.compile(r"\s*#(?:redirect|넘겨주기)\s", re.I)


class Skip(Exception):
    """A record that is not a document; ``reason`` is a name to count it under."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Adapter(NamedTuple):
    """One distributed format.

    ``container``: "lines" (a JSON object a line), "array" (a JSON array of objects, or one object that holds it under
    ``array_key``), "text" (documents between blank lines, field ``text``) or "docs" (``<doc id= url= title=>`` blocks,
    fields ``id``, ``url``, ``title``, ``text``). ``suffixes``: file kinds it reads, without the packing; "" is a name
    without a suffix. ``text_of`` returns the text or None where the field is null; it raises ``Skip`` for what is not a
    document, KeyError or TypeError for what has another shape.
    """

    name: str
    container: str
    array_key: str | None
    suffixes: tuple[str, ...]
    id_of: Callable[[Fields], Any]
    text_of: Callable[[Fields], str | None]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a string, found {type(value).__name__}")
    return value


def _with_title(title: str, body: str) -> str:
    """Title, then body; a body that begins with its title keeps it once."""
    title, body = title.strip(), body.strip()
    first, _, rest = body.partition("\n")
    return "\n".join(part for part in (title, rest.strip() if first.strip() == title else body) if part)


def _modu_text(document: Fields) -> str:
    part = next((part for part in MODU_PARTS if part in document), MODU_PARTS[0])
    forms = [_text(piece["form"]).strip() for piece in document[part]]
    return "\n".join(form for form in forms if form)  # an utterance nobody understood has an empty form


def _news_text(article: Fields) -> str | None:
    body = article[next((name for name in NEWS_BODIES if name in article), NEWS_BODIES[0])]
    title = next((article[name] for name in NEWS_TITLES if article.get(name) is not None), "")
    return None if body is None else _with_title(_text(title), _text(body))


def _petition_text(petition: Fields) -> str | None:
    body = petition["content"]
    return None if body is None else _with_title(_text(petition["title"]), _text(body))


def _namuwiki_text(page: Fields) -> str:
    if str(page["namespace"]) != "0":
        raise Skip("other_namespace")
    markup = _text(page["text"])
    if REDIRECT.match(markup):
        raise Skip("redirect")
    if not (body := plain_text(markup)):
        raise Skip("no_body")
    return _with_title(_text(page["title"]), body)


def _wikipedia_text(page: Fields) -> str:
    title = _text(page["title"]).strip()
    first, _, rest = _text(page["text"]).strip().partition("\n")
    body = clean_extract(rest if unescape(first.strip()) == unescape(title) else f"{first}\n{rest}")
    if not body:  # WikiExtractor writes redirects and empty pages as a bare title
        raise Skip("no_body")
    return f"{unescape(title)}\n{body}"


ADAPTERS: dict[str, Adapter] = {
    adapter.name: adapter
    for adapter in (
        Adapter("modu", "array", "document", (".json",), itemgetter("id"), _modu_text),
        Adapter("cc100", "text", None, (".txt",), lambda document: None, lambda document: _text(document["text"])),
        Adapter("namuwiki", "array", None, (".json",), itemgetter("title"), _namuwiki_text),
        Adapter("news", "lines", None, (".jsonl", ".json"), lambda article: article.get("id"), _news_text),
        Adapter("petitions", "lines", None, ("", ".jsonl", ".json"), itemgetter("petition_idx"), _petition_text),
        Adapter("wikipedia", "docs", None, ("", ".txt"), itemgetter("id"), _wikipedia_text),
        Adapter("wikipedia_json", "lines", None, ("", ".jsonl", ".json"), itemgetter("id"), _wikipedia_text),
    )
}  # fmt: skip


# What WikiExtractor leaves of templates and tables. {{llang|…}} and {{lang|…}} empty the brackets after a name:
# 유럽(, , )은 · 서버(, 1924년 ~ ) · 지구과학(地球科學, )
B = r"[^\S\n]"  # a blank, not a line end
WITHOUT_VALUE = re.compile(rf"([(,;]){B}{{0,3}}[가-힣][가-힣 ]{{0,20}}:(?={B}*+[,;)])")  # (본명: , 영어: )
COMMAS = re.compile(rf",(?:{B}+,)+")
BRACKET_HEAD = re.compile(rf"\((?:{B}*+(?:,|;(?={B})))++{B}*+(?![,;)])|(?<=[가-힣])\({B}++(?![,;)])")
BRACKET_TAIL = re.compile(rf"[,;]{B}++\)")
HANGUL = re.compile("[가-힣]")
CALL_END = re.compile("[A-Za-z0-9_]")
BRACKET_EMPTY = re.compile(rf"\((?:{B}|[,;])++\)")

LINE_BREAK = re.compile(r"<br\b[^<>\n]{0,200}>", re.I)
FOOTNOTE = re.compile(r"<ref\b[^<>\n]{0,300}(?<!/)>[^<>]{0,1000}</ref>|<!--[^<>]{0,1000}-->", re.I)
MAX_BLOCK_CHARS = 20_000
DROPPED_BLOCKS = ("score", "mapframe", "maplink", "timeline", "gallery", "imagemap")
WIKI_TAG = re.compile(
    rf"</?(?:{'|'.join(DROPPED_BLOCKS)}|ref|references|section|poem|onlyinclude|includeonly|noinclude|templatestyles|math"
    r"|chem|syntaxhighlight|nowiki)\b[^<>\n]{0,300}>",
    re.I,
)
FILE_LINK = re.compile(
    r"\[\[(?:파일|그림|분류|File|Image|Category):[^\[\]\n]*+(?:\[\[[^\[\]\n]*+\]\][^\[\]\n]*+)*+\]\]"
)
LINK = re.compile(r"\[\[(?:[^\[\]|\n]++\|)?([^\[\]|\n]++)\]\]")
SWITCH = re.compile(r"__[A-Z가-힣]{2,20}__")  # __목차__
PLACEHOLDER_LINE = re.compile(r"^(?:formula|codice)_\d+[.,;]?$", re.M)
ATTRIBUTE = (
    r"(?:colspan|rowspan|align|valign|style|width|class|scope|bgcolor)"
    r"[ ]{0,9}=[ ]{0,9}(?:\"[^\"\n|]{0,500}+\"|[^\s\"|]{1,100}+)"
)
TABLE_LINE = re.compile(rf"^(?:!(?!!)[^\n]*(?:\|\||!!|{ATTRIBUTE}[ ]{{0,9}}\|)|[^\n]*?\|\|[^\n]*?\|\|)[^\n]*$", re.M)
TABLE_CELL = re.compile(rf"(?:^[!|]|\|\||!!)[ ]*(?:(?:{ATTRIBUTE}[ ]{{0,9}}+){{1,9}}+\|)?")

# WikiExtractor ends a section head with a full stop; what ends like a sentence keeps it: 졸업함, 알아보자, but not 개요
HEAD = re.compile(
    r"^(?=[^\n]{0,30}[A-Za-z가-힣])([^\n.!? ]{1,20}(?<!다)|[^\n.!?]{1,30}(?<![다요죠까음임됨함])(?<![보하]자))\.$",
    re.M,
)
LAST_HEAD = re.compile(
    r"각주|주석|주해|출처|외부 링크|바깥 고리|(?:같이|함께) 보기|참고 ?(?:문헌|자료)|관련 항목|갤러리"
)


def unescape(text: str) -> str:
    """Undo what WikiExtractor escapes: ``&lt;``, ``&gt;``, ``&amp;``, the last one last so that each is undone once."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def clean_extract(text: str) -> str:
    """Body of a WikiExtractor page without what is clearly left over from markup; no empty lines.

    Emptied brackets lose their commas or go, section heads lose the full stop that the extractor gave them, heads of
    sections that it emptied go from the end, table rows become rows of text. Placeholders inside a sentence
    (``formula_3``) stay, for they hold the place of a noun; lines of nothing else go. Linear in the length.
    """
    text = unescape(text)
    if "<" in text:
        for block in DROPPED_BLOCKS:
            text = cut_spans(text, f"<{block}", f"</{block}>", MAX_BLOCK_CHARS)
        text = WIKI_TAG.sub("", FOOTNOTE.sub("", LINE_BREAK.sub("\n", text)))
    if "[[" in text:
        text = LINK.sub(r"\1", FILE_LINK.sub("", text))
    if "__" in text:
        text = SWITCH.sub("", text)
    if "||" in text or "!!" in text:
        text = TABLE_LINE.sub(lambda line: TABLE_CELL.sub(" ", line[0]), text)
    text = PLACEHOLDER_LINE.sub("", _clean_brackets(text))
    lines = [line for line in map(str.strip, HEAD.sub(r"\1", text).split("\n")) if line]
    while lines and LAST_HEAD.fullmatch(lines[-1]):
        lines.pop()
    return "\n".join(lines)


def _clean_brackets(text: str) -> str:
    if ":" in text:
        text = WITHOUT_VALUE.sub(r"\1", text)
    text = BRACKET_EMPTY.sub("()", COMMAS.sub(",", text))
    text = BRACKET_TAIL.sub(")", BRACKET_HEAD.sub("(", text))
    before, *others = text.split("()")
    pieces = []
    for after in others:
        # a call keeps its brackets, main() 함수; a name does not, 보잉 777()은
        is_call = CALL_END.search(before[-1:]) and not HANGUL.match(after)
        pieces += [before, "()"] if is_call else [before.removesuffix(" ")]
        before = after
    return "".join([*pieces, before])
