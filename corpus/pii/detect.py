"""Find personal data in Korean text: ``find_pii`` (paper section 2.3 and Table 29).

```
text ─ fold signs ─▶ plain copy ─ search for clues ─▶ formats around clues ─▶ candidates ─ resolve overlaps ─▶ spans
                         └ fold disguises ─▶ second reading ─ the same ─▶ more candidates ─┘
```
One search finds all clues; text without digits, ``@`` or hosts has none. Patterns run only around clues. Of overlapping
candidates the strongest wins: the strength of its format, plus two if the nearest label or the column header announces
its type. The plain reading wins ties.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from operator import attrgetter

from corpus.pii.columns import Tables
from corpus.pii.extra.person_by_model import NameSpan, NameTagger
from corpus.pii.extra.person_by_rules import PERSON, find_names
from corpus.pii.fold import AFTER_SIGN, CLUES, REACH, SIGNS, fold_disguises, fold_signs
from corpus.pii.folded_text import Folded, widen
from corpus.pii.formats.table import TABLE
from corpus.pii.formats.url import trim_url
from corpus.pii.labels import Labels
from corpus.pii.types import BY_LABEL, CERTAIN, LIKELY, NOBODY, NUMBERS, PII_TYPES, WEAK, Format, PiiType, Scope


@dataclass(frozen=True, slots=True)
class Span:
    """``text[start:end]`` is a value of ``type``, one of ``ALL_TYPES``; offsets are ``str`` indices.

    ``score`` (0..1) is the confidence, and ``why`` gives reasons: "pattern", "label", "checksum", "model". Equality
    ignores both.
    """

    start: int
    end: int
    type: str
    score: float = field(default=1.0, compare=False)
    why: tuple[str, ...] = field(default=("pattern",), compare=False)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible span; ``strength`` rates its format and the labels around it."""

    start: int
    end: int
    strength: int
    kind: PiiType
    score: float = 1.0
    why: tuple[str, ...] = ("pattern",)
    needs_previous: bool = False
    """Counts only after a value of the same type: in a list, the label is before the first value."""
    is_plain: bool = True
    """Not only found in the second reading (``fold_disguises``)."""


_LABELS = Labels(TABLE)
LABEL_BONUS = 2
SCORES = (0.4, 0.5, 0.65, 0.8, 0.9, 0.9, 0.95)
"""Confidence of a span of each strength, 0..1, without label and check digit."""
MAX_CLUSTER_DIGITS = 32
MAX_LIST_GAP = 24
_BETWEEN = re.compile(r"(?:[^0-9A-Za-z가-힣<>]|<[^<>]{1,12}>|[<>])+")
_DIGIT = re.compile("[0-9]")


Forms = list[tuple[PiiType, Format]]
FORMS: dict[Scope, Forms] = {}
for _kind in TABLE:
    for _form in _kind.formats:
        FORMS.setdefault(_form.scope, []).append((_kind, _form))
_NUMBER_FORMS = [
    {
        lead: [(kind, form) for kind, form in FORMS[NUMBERS] if form.digits <= count and lead in form.leads]
        for lead in "0123456789(+"
    }
    for count in range(MAX_CLUSTER_DIGITS + 1)
]
"""Formats of ``NUMBERS`` by the number of digits and by first character."""
_NAMED_NUMBER_FORMS = [(kind, form) for kind, form in FORMS[NUMBERS] if not form.leads]
_NUMBER_START = re.compile("(?<![0-9])[0-9(+]")
# fewer than ten digits: a number of the 15xx series, a landline, an IP address
_SHORT_NUMBER = re.compile(r"[0-9]{3,4}[^0-9]{0,3}[0-9]{4}(?![0-9])|[0-9]{8}|\.[0-9]{1,3}\.[0-9]{1,3}\.")


def _join_clues(scopes: Iterable[Scope]) -> re.Pattern[str]:
    """One pattern for the clues of ``scopes`` and for characters to fold; it starts with one class, so it is fast."""
    rests: dict[str, list[str]] = {"0-9": []}
    for scope in scopes:
        rests.setdefault(scope.first, []).append(f"(?:{scope.rest})")
    groups = {first: [f"(?={'|'.join(group)})"] for first, group in rests.items()}
    groups["0-9"][0] = f"(?<![0-9][0-9]){groups['0-9'][0]}"
    for first, rest in CLUES.items():
        if first != "." or first in groups:
            groups.setdefault(first, []).append(rest)
    ways = [f"(?<=[{first}])(?:{'|'.join(group)})" for first, group in groups.items()]
    return re.compile(f"[{''.join(groups)}{SIGNS}](?:{'|'.join(ways)}|(?<=[{SIGNS}])(?={AFTER_SIGN})(?P<sign>))")


_CLUE = _join_clues(FORMS)
# points are frequent, so they are searched separately when only the existence of a clue matters
_CLUE_BUT_POINTS = _join_clues(scope for scope in FORMS if scope.first != ".")
_CLUE_AT_POINT = re.compile("\\.(?:" + "|".join([*(s.rest for s in FORMS if s.first == "."), CLUES["."]]) + ")")
_DISGUISE = re.compile("|".join(f"[{first}]{rest}" for first, rest in CLUES.items()))
_SCOPES_AT: dict[str, list[Scope]] = {
    c: [scope for scope in FORMS if re.match(f"[{scope.first}]", c)] for c in (*map(chr, range(0x20, 0x7F)), "맥")
}


def find_pii(
    text: str, types: Collection[str] | None = None, label: str = "", name_model: NameTagger | None = None
) -> list[Span]:
    """Personal data in ``text``: sorted, never overlapping, in time linear in the length of the text.

    Spans cover the value only: no particles, no punctuation of the sentence, no bank names.

    Args:
        types: names in ``PII_TYPES`` and ``EXTRA_TYPES`` to report; default: ``PII_TYPES``, the 16 of Table 29.
        label: words outside the text that announce the value, such as the name of its column or key.
        name_model: also finds names of people; adds type PERSON.
    """
    if name_model is not None:
        spans = _find_by_rules(text, {*(PII_TYPES if types is None else types), "PERSON"}, label)
        return _add_names(spans, name_model.find(text))
    return _find_by_rules(text, types, label)


def _add_names(by_rules: list[Span], names: Sequence[NameSpan]) -> list[Span]:
    """Both in order. On overlap the rules win, except where the model found a longer name."""
    spans, at = list[Span](), 0
    for name in names:
        while at < len(by_rules) and by_rules[at].end <= name.start:
            spans.append(by_rules[at])
            at += 1
        last = at
        while last < len(by_rules) and by_rules[last].start < name.end:
            last += 1
        inside = by_rules[at:last]
        if all(s.type == "PERSON" and name.start <= s.start and s.end <= name.end for s in inside):
            is_known = any((s.start, s.end) == (name.start, name.end) for s in inside)
            spans += inside if is_known else [Span(name.start, name.end, "PERSON", name.score, ("model",))]
            at = last
    return spans + by_rules[at:]


def _find_by_rules(text: str, types: Collection[str] | None, label: str) -> list[Span]:
    if types is not None and not types:
        return []
    by_rules = types is not None and PERSON.name in types
    first = _CLUE_BUT_POINTS.search(text)
    if not (by_rules or first or _CLUE_AT_POINT.search(text)):
        return []
    front = f"{label[-40:]}: " if label else ""
    spans = _spans(front + text, by_rules, first.start() if first and not front else 0)
    if front:
        spans = [replace(s, start=s.start - len(front), end=s.end - len(front)) for s in spans if s.start >= len(front)]
    return spans if types is None else [span for span in spans if span.type in types]


def _spans(text: str, by_rules: bool, first: int) -> list[Span]:
    """``first``: where to search for clues; an earlier point may be one too."""
    clues = list(_CLUE.finditer(text, first if text.find(".", 0, first) < 0 else 0))
    if not (clues or by_rules):
        return []
    folded = Folded(text)
    if any(clue.lastgroup == "sign" for clue in clues):
        folded = fold_signs(text)
        clues = list(_CLUE.finditer(folded.text))
    candidates = [*_around_clues(folded.text, clues), *_names(folded.text, by_rules)]
    # formats come first in a clue, so a disguise at the same position is searched again
    if disguised := [c.start() for c in clues if c.lastgroup != "sign" and _DISGUISE.match(folded.text, c.start())]:
        reading = fold_disguises(folded.text, disguised)
        windows = list[tuple[int, int]]()
        for start, end in reading.new:
            widen(windows, start - REACH, end + REACH)
        clues = [clue for window in windows for clue in _CLUE.finditer(reading.text, *window)]
        names = _names(reading.text, by_rules and bool(windows))
        candidates += from_second_reading(reading, [*_around_clues(reading.text, clues), *names])
    return resolve_overlaps(candidates, folded)


def from_second_reading(reading: Folded, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """The candidates that contain a disguise, at their positions in the text before ``fold_disguises``."""
    for candidate in candidates:
        first = bisect_left(reading.new, (candidate.start,))
        if first < len(reading.new) and reading.new[first][0] < candidate.end:
            start, end = reading.original(candidate.start, candidate.end)
            strength = candidate.strength
            if strength >= CERTAIN:  # an e-mail address wins against its plain host, a host loses against any number
                strength = CERTAIN + LABEL_BONUS + 1 if candidate.kind.name == "EMAIL" else WEAK
            yield replace(candidate, start=start, end=end, strength=strength, is_plain=False)


def _names(text: str, by_rules: bool) -> list[Candidate]:
    names = find_names(text) if by_rules else []
    return [Candidate(name.start, name.end, LIKELY, PERSON, name.score, (name.why,)) for name in names]


def resolve_overlaps(candidates: Iterable[Candidate], folded: Folded) -> list[Span]:
    """The candidates that win their overlaps, sorted, as spans of the text before folding."""
    winners: list[Candidate] = []
    for candidate in sorted(candidates, key=attrgetter("start")):
        if candidate.needs_previous and not _continues(winners, candidate, folded.text):
            continue
        if winners and winners[-1].end > candidate.start and _outranks(candidate, winners[-1]):
            winners.pop()
        if not winners or winners[-1].end <= candidate.start:
            winners.append(candidate)
    return [Span(*folded.original(c.start, c.end), c.kind.name, c.score, c.why) for c in winners]


def find_pii_in_sentences(
    sentences: Sequence[str],
    types: Collection[str] | None = None,
    name_model: NameTagger | None = None,
    label: str = "",
    joint: str = "\n",
) -> list[list[Span]]:
    """Personal data in each sentence of a document; a label may be in the sentence before its value.

    A value that continues in the next sentence is reported in both, each with its part; ``joint`` is between sentences.
    """
    sentence_spans: list[list[Span]] = [[] for _ in sentences]
    spans = find_pii(joint.join(sentences), types, label, name_model)
    starts = list(accumulate((len(sentence) + len(joint) for sentence in sentences), initial=0)) if spans else []
    for span in spans:
        number = bisect_right(starts, span.start) - 1
        while number < len(sentences) and starts[number] < span.end:
            start, end = max(0, span.start - starts[number]), min(len(sentences[number]), span.end - starts[number])
            if start < end or span.end >= starts[number + 1]:
                sentence_spans[number].append(replace(span, start=start, end=end))
            number += 1
    return sentence_spans


def _continues(winners: Sequence[Candidate], candidate: Candidate, text: str) -> bool:
    """Whether the candidate continues a list: only separators, brackets and tags after a value of its type."""
    last = next((value for value in reversed(winners[-2:]) if value.end <= candidate.start), candidate)
    is_near = last.kind is candidate.kind and 0 <= candidate.start - last.end <= MAX_LIST_GAP
    return is_near and bool(_BETWEEN.fullmatch(text, last.end, candidate.start))


def _outranks(candidate: Candidate, other: Candidate) -> bool:
    """Whether ``candidate`` wins against an overlapping one; a part of a value of the same type never does."""
    if candidate.kind is other.kind and candidate.end <= other.end:
        return False
    length, other_length = candidate.end - candidate.start, other.end - other.start
    return (candidate.strength, length, candidate.is_plain) > (other.strength, other_length, other.is_plain)


# --- candidates


def _around_clues(text: str, clues: Sequence[re.Match[str]]) -> Iterator[Candidate]:
    """Try all formats, each around the clues of its scope."""
    context = Context(text)
    windows: dict[Scope, list[tuple[int, int]]] = {}
    done: dict[Scope, int] = {}
    for clue in clues:
        here = clue.start()
        for scope in _SCOPES_AT.get(clue[0], ()):
            if here < done.get(scope, 0) or not (match := scope.clue.match(text, here)):
                continue
            if scope.cluster:
                cluster = scope.cluster.match(text, here)
                assert cluster, "a cluster may be empty"
                done[scope] = cluster.end()
                yield from _numbers(text, cluster, context)
            elif scope.run:
                start = _run_start(text, here, scope)
                yield from _match_formats(text, FORMS[scope], start, match.end() + scope.after, context)
            else:
                widen(windows.setdefault(scope, []), here - scope.before, match.end() + scope.after)
    for scope, places in windows.items():
        for start, end in places:
            yield from _try_formats(text, FORMS[scope], start, end, context)


_LEADING_SIGNS = re.compile(r"(?:[.%+\-]|\*(?!\.))*+")


def _run_start(text: str, here: int, scope: Scope) -> int:
    assert scope.run
    head = text[max(0, here - scope.before) : here][::-1]
    run = scope.run.match(head)
    assert run, "a run may be empty"
    signs = _LEADING_SIGNS.match(text, here - run.end(), here)
    assert signs, "there may be no signs"
    return signs.end()


def _numbers(text: str, cluster: re.Match[str], context: Context) -> Iterator[Candidate]:
    digits = len(_DIGIT.findall(cluster[0]))
    if digits < 10 and not _SHORT_NUMBER.search(cluster[0]):
        return
    forms_of = _NUMBER_FORMS[min(digits, MAX_CLUSTER_DIGITS)]
    end = cluster.end() + NUMBERS.after
    for start in _NUMBER_START.finditer(text, max(0, cluster.start() - 3), cluster.end()):
        yield from _match_formats(text, forms_of[start[0]], start.start(), end, context)
    yield from _try_formats(text, _NAMED_NUMBER_FORMS, max(0, cluster.start() - NUMBERS.before), end, context)


def _match_formats(text: str, forms: Forms, start: int, end: int, context: Context) -> Iterator[Candidate]:
    for kind, form in forms:
        if match := form.pattern.match(text, start, end):
            yield from judge_match(match, kind, form, context)


def _try_formats(text: str, forms: Forms, start: int, end: int, context: Context) -> Iterator[Candidate]:
    for kind, form in forms:
        if not form.needs or form.needs.search(text, start, end):
            for match in form.pattern.finditer(text, start, end):
                yield from judge_match(match, kind, form, context)


class Context:
    """Labels around the values of a text, and headers of their columns."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _tables(self) -> Tables | None:
        return Tables(self._text) if any(sign in self._text for sign in ("\n", "<t", "<T")) else None

    def type_of(self, start: int, end: int) -> str | None:
        """The announced type, ``OTHER`` if it is no personal data, None without a label."""
        header = self._tables.header(start) if self._tables else ""
        return (header and _LABELS.meaning(header)) or _LABELS.nearest(self._text, start, end)


def judge_match(match: re.Match[str], kind: PiiType, form: Format, context: Context) -> Iterator[Candidate]:
    """The candidate for a match of ``form``; none if its check or a label rules it out."""
    group = "value" if "value" in form.pattern.groupindex else 0
    start, end = match.span(group)
    label = context.type_of(start, end)
    is_announced = label == kind.name
    is_ruled_out = not is_announced and (form.strength == BY_LABEL or (label in NOBODY and form.strength <= LIKELY))
    if form.strength == WEAK and not is_announced and match.string[max(0, start - 1) : start] == "_":
        is_ruled_out = True  # part of a file name
    needs_previous = False
    if is_ruled_out or not form.check(match, label):
        needs_previous = is_announced = label is None and form.check(match, kind.name)
        if not needs_previous:
            return
    if kind.name == "URL":
        end = start + len(trim_url(match[group], match.string[max(0, start - 1) : start]))
    why = ("pattern", *["label"] * is_announced, *["checksum"] * form.has_checksum)
    score = SCORES[min(form.strength, len(SCORES) - 1)] + 0.2 * is_announced + 0.1 * form.has_checksum
    strength = form.strength + LABEL_BONUS * is_announced
    yield Candidate(start, end, strength, kind, round(min(1.0, score), 2), why, needs_previous)
