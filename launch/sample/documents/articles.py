"""Documents before they are written to files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Draft:
    """A document as sentences or lines.

    Fields:
        id: unique among all sources.
        source: news, encyclopedia, reviews or dialogue.
        title: headline or headword; "" where there is none.
        kind: what it is about: kind of event, organisation, work, venue or dialogue.
        lines: sentences or utterances; joined by ``separator``.
        head: furniture before the text, e.g. a byline, with its own separator.
        tail: furniture after it, a line each.
        personal: personal data: line, start and end in the line, type.
    """

    id: str
    source: str
    title: str
    lines: tuple[str, ...]
    kind: str = ""
    separator: str = " "
    head: str = ""
    tail: tuple[str, ...] = ()
    gap: int = -1  # where further lines may go; -1 is the end
    personal: tuple[tuple[int, int, int, str], ...] = ()

    @property
    def text(self) -> str:
        """What the file holds."""
        body = self.head + self.separator.join(self.lines)
        return "\n".join((body, *self.tail))
