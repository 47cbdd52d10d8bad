"""What a reader is shown of a unit's cleaning: sentences that were dropped, text before and after a change.

Personal data stand there as ``[TEL]``. They are looked for where they stood, with the words around them, and before the
text is cut to size: a label left out, or half a number, would be no longer recognized and yet be somebody's. What comes
of it is looked at once more, alone, as readers get it.
"""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path

from corpus.audit import Guard
from corpus.pii.cover import cover
from corpus.pii.detect import find_pii
from corpus.pii.protect import Protected
from corpus.reading.read import Record
from corpus.samples import CHANGED, DROPPED, SAMPLE_CHARS, Sample, Samples, write_samples

DROPPED_NAME = "dropped.parquet"
CHANGED_NAME = "changed.parquet"
PII = "pii."
AROUND_CHARS = 60
CONTEXT_CHARS = 300  # labels stand at most 30 characters before a value


class Shown:
    """Samples of one unit, up to ``limit`` a rule; without a guard where the run keeps personal data."""

    def __init__(self, limit: int, seed: int, guard: Guard | None) -> None:
        self._dropped = Samples(limit, seed)
        self._changed = Samples(limit, seed)
        self._guard = guard

    def drop(self, rule: str, record: Record, sentence: str, before: str = "", note: str = "") -> None:
        """A sentence that goes; ``before`` is the sentence before it, which may name what it holds."""
        order = self._dropped.place(rule, record.id, sentence)
        if order is not None:
            self._dropped.keep(Sample(rule, record.source, record.id, note, sentence, order, before))

    def change(self, rule: str, record: Record, before: str, after: str) -> None:
        """A text that a rule changed."""
        order = self._changed.place(rule, record.id, record.place)
        if order is not None:
            start = _first_difference(before, after)
            left = max(0, start - CONTEXT_CHARS)
            was, is_now = (text[left : start + CONTEXT_CHARS] for text in (before, after))
            self._changed.keep(Sample(rule, record.source, record.id, was, is_now, order))

    def protect(self, record: Record, sentences: list[str], protected: Protected) -> None:
        """Sentences with personal data, before and after it was replaced."""
        for n, (text, spans) in enumerate(zip(protected.sentences, protected.spans, strict=True)):
            for name in sorted({span.type for span in spans}):
                order = self._changed.place(f"{PII}{name}", record.id, f"{record.place} {n}")
                if order is not None:
                    before = cover(sentences[n], spans, "tag")
                    marks = tuple(self._guard.marks(protected.sentences, protected.left)) if self._guard else ()
                    sample = Sample(f"{PII}{name}", record.source, record.id, before, text or "", order, marks=marks)
                    self._changed.keep(sample)

    def write(self, folder: Path) -> None:
        """Write both kinds without personal data."""
        dropped = [sample._replace(text=self._hide(sample.text, sample.context)) for sample in self._dropped]
        changed = [sample if sample.rule.startswith(PII) else self._excerpt(sample) for sample in self._changed]
        write_samples(folder / DROPPED_NAME, [self._alone(sample) for sample in dropped], DROPPED, for_merging=True)
        write_samples(folder / CHANGED_NAME, [self._alone(sample) for sample in changed], CHANGED, for_merging=True)

    def _hide(self, text: str, context: str = "") -> str:
        return self._guard.tag(text, context) if self._guard else text

    def _alone(self, sample: Sample) -> Sample:
        if not self._guard:
            return sample
        note, text = (self._guard.show(part, SAMPLE_CHARS, sample.marks) for part in (sample.note, sample.text))
        return sample._replace(note=note.text, text=text.text, marks=(*note.marks, *text.marks))

    def _excerpt(self, sample: Sample) -> Sample:
        start = _first_difference(sample.note, sample.text)
        left = max(sample.note.rfind("\n", 0, start) + 1, start - AROUND_CHARS)
        before, after = (self._cut(text, left, start + 2 * AROUND_CHARS) for text in (sample.note, sample.text))
        return sample._replace(note=before, text=after)

    def _cut(self, text: str, left: int, right: int) -> str:
        """``text[left:right]`` with whole values in place of those that reach into it."""
        pieces, position = [], left
        for span in find_pii(text, self._guard.types) if self._guard else ():
            if span.end > left and span.start < right:
                pieces += [text[position : max(position, span.start)], f"[{span.type}]"]
                position = span.end
        return self._hide(("".join(pieces) + text[position:right]).strip())


def _first_difference(a: str, b: str) -> int:
    return bisect_left(range(min(len(a), len(b))), True, key=lambda n: a[: n + 1] != b[: n + 1])
