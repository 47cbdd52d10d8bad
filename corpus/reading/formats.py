"""Adapters from the formats in which the paper's corpora are distributed to documents (paper 2.1, appendix B).

An adapter defines the container of the records, the field with the document id, and how the text is assembled: the
title is the first line, and each paragraph or utterance is a line. Records in another layout are quarantined; records
that are not documents are skipped and counted. Layouts: NIKL Modu corpora, CC-100, the NamuWiki dump, lovit's petitions
archive, WikiExtractor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import unescape
from operator import itemgetter
from typing import Any, NamedTuple

from corpus.reading.namumark import plain_text

Fields = Mapping[str, Any]

NEWS_BODIES = ("text", "content", "body", "article", "contents")
NEWS_TITLES = ("title", "headline")
MODU_PARTS = ("paragraph", "utterance", "sentence")  # written, spoken and messenger, annotated
REDIRECT = re.compile(r"\s*#(?:redirect|넘겨주기)\s", re.I)


class SkippedRecord(Exception):
    """A record that is not a document; the message is the reason in the counts."""


class Adapter(NamedTuple):
    """One distributed format; ``text_of`` returns None for a null field and raises ``SkippedRecord`` for non-documents.

    ``container``: "lines" (a JSON object a line), "array" (of JSON objects, in an object under ``array_key``), "text"
    (documents between blank lines) or "docs" (blocks ``<doc id= title=>``). ``suffixes`` leave the packing out.
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
    """Title and body; the title is not repeated if the body starts with it."""
    title, body = title.strip(), body.strip()
    first, _, rest = body.partition("\n")
    return "\n".join(part for part in (title, rest.strip() if first.strip() == title else body) if part)


def _modu_text(document: Fields) -> str:
    part = next((part for part in MODU_PARTS if part in document), MODU_PARTS[0])
    forms = [_text(piece["form"]).strip() for piece in document[part]]
    return "\n".join(form for form in forms if form)  # unintelligible utterances have an empty form


def _news_text(article: Fields) -> str | None:
    body = article[next((name for name in NEWS_BODIES if name in article), NEWS_BODIES[0])]
    title = next((article[name] for name in NEWS_TITLES if article.get(name) is not None), "")
    return None if body is None else _with_title(_text(title), _text(body))


def _petition_text(petition: Fields) -> str | None:
    body = petition["content"]
    return None if body is None else _with_title(_text(petition["title"]), _text(body))


def _namuwiki_text(page: Fields) -> str:
    if str(page["namespace"]) != "0":
        raise SkippedRecord("other_namespace")
    markup = _text(page["text"])
    if REDIRECT.match(markup):
        raise SkippedRecord("redirect")
    if not (body := plain_text(markup)):
        raise SkippedRecord("no_body")
    return _with_title(_text(page["title"]), body)


def _wikipedia_text(page: Fields) -> str:
    title, text = unescape(_text(page["title"])).strip(), unescape(_text(page["text"])).strip()
    if text in ("", title):  # WikiExtractor writes only the title of redirects and empty pages
        raise SkippedRecord("no_body")
    return _with_title(title, text)


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
