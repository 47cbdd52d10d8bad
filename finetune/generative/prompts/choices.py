"""Find the choice that an answer names: one reader for all closed sets, of KLUE tasks and of files.

```
answer ─ stated ("정답은 …", JSON, …) ─▶ the claims in it
       └ otherwise ─▶ sentences ─▶ every named choice with its status ─▶ the only claim, else the only mention
```
No rule guesses. A choice is claimed if a predicate asserts it ("경제입니다", "경제인 것으로 보입니다"), denied in
"경제가 아니라", possible in "경제로 볼 수도 있지만" and "경제일까?", else mentioned. Denied and possible choices never
count. Of two different claims, one must be in a conclusion ("따라서"), otherwise nothing is found. A choice is a whole
word with particles, so "Based" is not B and "경제적" (economical) is not 경제 (economy).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from finetune.generative.prompts.answers import any_of, bare, clean, doubts, lines_of, read_endings, refuses, stated

Status = Literal["claimed", "conceded", "mentioned", "void", "same"]

_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*|__([^_\n]{1,80})__")
_QUOTED = re.compile(r"[\"'`“‘「『《〈\[【]([^\"'`“”‘’「」『』《》〈〉\[\]【】\n]{1,80})[\"'`”’」』》〉\]】]")
_CIRCLED = {0x2460 + number: f"{number + 1}번" for number in range(9)}
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[다요])\s*(?=\()|\n")
_CONCLUDES = re.compile(rf"\s*{any_of('conclusions')}", re.IGNORECASE)

# --- what may follow a choice

_QUOTE = r"[\"'”’」』》〉)\]]"
_KIND = rf"(?:{_QUOTE}{{0,2}}(?:\([^()\n]{{0,40}}\))?\s?(?:의|인)?\s?(?:관련\s?)?{any_of('kinds')}?){{1,2}}"
_BE, _SURE = any_of("copulas"), rf"(?:{any_of('degrees')} )?"
_ASSERTED = re.compile(
    rf"{_KIND}\s?(?:{_BE}|(?:요|다|야|임|이요|이오)(?![가-힣])|{any_of('connected_copulas')}"
    rf"|인 (?:것|걸|거|듯|셈|편|게)|일 (?:것|겁|거|듯|(?:가능성|확률|공산)[이가]? {_SURE}(?:높|커|크|큽|농후))"
    rf"|(?:이라고|라고|이라|라|으로|로)\s?(?:\S{{1,8}}\s)?{_SURE}{any_of('verbs_of_thinking')}"
    rf"|(?:에|에게|와|과)\s?{_SURE}{any_of('verbs_of_belonging')}|(?:을|를)\s?{_SURE}{any_of('verbs_of_choosing')}"
    rf"|(?:이|가)\s?{_SURE}{any_of('adjectives_of_fit')}|(?:합니다|됩니다|한다|된다|해요|돼요|함|됨))"
)
_CONCEDED = re.compile(rf"[^.!?\n]{{0,40}}?{any_of('conceded')}")
_POSSIBLE = re.compile(rf"[^,.!?\n]{{0,14}}?{any_of('possible_near')}|{any_of('possible')}")
_DENIED = re.compile(rf"[^,!?\n]{{0,24}}?{any_of('denied')}")
_CLAUSE_END = re.compile(any_of("clause_ends"))
_JOINED = re.compile(f"{any_of('joined')}*", re.IGNORECASE)
_PARTICLES = f"{any_of('particles')}{{0,3}}"
_NOT_BEFORE = "".join(f"(?<!{word} )" for word in read_endings()["not_before"])
_OPEN = re.compile(r"\b(?:whether|if)\b[^.!?]*$", re.IGNORECASE)
_IS_BEFORE = re.compile(
    r"(?:\bis|\bbe|:|=|\bas|\bchoose|\bselect|\bpick|\boption|\bchoice|정답은?|답은?|선택은?)\s*[\"'“‘(\[*]*$",
    re.IGNORECASE,
)
REPLIES = frozenset(("예", "네", "아니오", "아니요", "아뇨", "yes", "no"))
_AFTER_REPLY = rf"\s?(?:{_BE}|또는|혹은|아니면|or\b|/|맞|같|다르|다릅|동일|그렇|라고|이라고|[\"'”’)\]*]|[,.!]|$)"
_OPTION_AFTER = re.compile(r"번|[.:)\]]|\s?\(|$|입니다|이다|이에요|예요|[은는이가을를로]|\s?[\"'”’*]")


class Named(NamedTuple):
    """A choice that a text names, and how; ``sentence`` is the number of the sentence."""

    choice: str
    status: Status
    sentence: int
    concludes: bool


def find_choice(answer: str, names: Mapping[str, str], question: str = "") -> str | None:
    """The choice that an answer names; None if it names none, or several of which none is marked.

    Args:
        names: accepted name (Korean words, English labels, option letters) to choice; a "/" in a name matches a sign, a
            space or nothing.
        question: the lines of the question that the answer repeats are ignored.
    """
    reader = _reader(tuple(names.items()))
    text = _without_echo(clean(answer), question).translate(_CIRCLED if reader.are_options else {})
    if parts := stated(text):
        read = [reader.read(_first_sentence(part), is_stated=True) for part in parts]
        if found := [named.choice for part in read for named in part if named.status == "claimed"]:
            return _only(found)
    return _search(reader, text)


def _search(reader: _Reader, text: str) -> str | None:
    lines = lines_of(text) if not reader.are_options else [line.strip() for line in text.split("\n") if line.strip()]
    alone = [choice for line in lines if (choice := reader.alone(line))]
    if alone:
        return _only(alone + [named.choice for named in reader.read(text) if named.status == "claimed"])
    for pattern in (_BOLD, _QUOTED):
        marked = [choice for groups in pattern.finditer(text) if (choice := reader.exact(bare(max(groups.groups("")))))]
        if marked and not doubts(text):
            return _only(marked)
    return _decide(reader.read(text), is_unsure=refuses(text) or doubts(text))


def _decide(found: Sequence[Named], *, is_unsure: bool = False) -> str | None:
    """The only claimed choice, else the only claim of a conclusion, else the only mentioned one."""
    claims = [named for named in found if named.status == "claimed"]
    if claims:
        return _only(named.choice for named in claims) or _only(n.choice for n in claims if n.concludes)
    conceded = {named.choice for named in found if named.status == "conceded"}
    rest = {named.choice for named in found if named.status == "mentioned"}
    return None if is_unsure else _only(rest or conceded)


def _only(candidates: Iterable[str]) -> str | None:
    distinct = set(candidates)
    return distinct.pop() if len(distinct) == 1 else None


def _first_sentence(text: str) -> str:
    return next((part for part in _SENTENCE_END.split(text.strip()) if bare(part)), text)


def _without_echo(text: str, question: str) -> str:
    asked = {"".join(line.split()) for line in question.split("\n")} - {""}
    return "\n".join(line for line in text.split("\n") if "".join(line.split()) not in asked) if asked else text


class _Reader:
    """Finds the names of one closed set."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._by_name = {_fold(name): choice for name, choice in names.items()}
        self.are_options = all(len(name) == 1 and name.isascii() for name in names)
        longest_first = sorted(names, key=len, reverse=True)
        words = "|".join(r"\s?[/·ㆍ,&-]?\s?".join(map(re.escape, name.split("/"))) for name in longest_first)
        letter = r"[^\W_]"
        if self.are_options:
            self._pattern = re.compile(
                rf"(?<![A-Za-z0-9.])({words})(?![A-Za-z0-9]|\.[0-9])(?=번?{_PARTICLES}(?!{letter}))"
            )
        elif REPLIES.issuperset(names):  # "예를 들어" (for example) is no yes
            self._pattern = re.compile(rf"(?<!{letter})({words})(?={_AFTER_REPLY})", re.IGNORECASE)
        else:
            self._pattern = re.compile(
                rf"{_NOT_BEFORE}(?<!{letter})({words})(?={_PARTICLES}(?!{letter}))", re.IGNORECASE
            )

    def exact(self, text: str) -> str | None:
        """The choice, if the text is its name."""
        return self._by_name.get(_fold(text))

    def alone(self, line: str) -> str | None:
        """The choice, if the line or its first sentence says nothing else: "경제", "경제입니다.", "C: 알 수 없음"."""
        if self.are_options:
            head = re.match(r"[(\[]?([A-Za-z0-9])(?:(?:번|[).:\]])+\s|\s\()", bare(line) + " ")
            if head and (choice := self.exact(head[1].upper() if head[1].isalpha() else head[1])):
                return choice
            line = line.upper() if len(bare(line)) == 1 else line
        return self.exact(bare(line)) or self.exact(re.sub(rf"번?\s?{_BE}$", "", bare(line)))

    def read(self, text: str, *, is_stated: bool = False) -> list[Named]:
        """The named choices in order. ``is_stated``: the text is marked as the answer, so a mention is a claim."""
        found: list[Named] = []
        for number, sentence in enumerate(part for part in _SENTENCE_END.split(text) if part):
            concludes = is_stated or _CONCLUDES.match(sentence) is not None
            matches = self._matches(sentence)
            ends = [*(match.start() for match in matches[1:]), len(sentence)][: len(matches)]
            statuses = [self._status(sentence, m, end) for m, end in zip(matches, ends, strict=True)]
            for place in range(len(statuses) - 1, -1, -1):
                if statuses[place] == "same":  # "함의도 모순도 아닌": what is said of the last is said of all
                    statuses[place] = statuses[place + 1] if place + 1 < len(statuses) else "mentioned"
            for match, status in zip(matches, statuses, strict=True):
                said: Status = "claimed" if is_stated and status == "mentioned" else status
                found.append(Named(self._by_name[_fold(match[1])], said, number, concludes))
        return [named for named in found if named.status != "void"]

    def _matches(self, sentence: str) -> list[re.Match[str]]:
        """The names in a sentence; of option letters those that are options, or joined with another one by "or"."""
        matches = [*self._pattern.finditer(sentence)]
        joined = [_JOINED.fullmatch(sentence[a.end() : b.start()]) is not None for a, b in pairwise(matches)]
        return [
            match
            for match, before, after in zip(matches, [False, *joined], [*joined, False], strict=False)
            if before or after or self._is_option(sentence, match)
        ]

    def _is_option(self, sentence: str, match: re.Match[str]) -> bool:
        """Option letters need a sign of one: "A번", "(A)", "정답은 A"; "A difficult question" is none."""
        if not self.are_options or _IS_BEFORE.search(sentence[: match.start()]):
            return True
        return _OPTION_AFTER.match(sentence, match.end()) is not None

    def _status(self, sentence: str, match: re.Match[str], end: int) -> Status:
        """How a choice is named; the text up to the next one decides."""
        tail = sentence[match.end() : end]
        if end < len(sentence) and _JOINED.fullmatch(tail):
            return "void" if re.search(r"보다는?\s*$", tail) else "same"
        is_open = sentence.rstrip(" )\"'”’").endswith("?") or _OPEN.search(sentence[: match.start()])
        if is_open or _POSSIBLE.match(tail):
            return "void"
        border = _CLAUSE_END.search(tail)
        if _DENIED.match(tail[: border.start()] if border and border.start() > 0 else tail):
            return "void"
        if _CONCEDED.match(tail) and not _ends_sentence(tail):
            return "claimed" if _ASSERTED.match(tail) and "다만" in tail[:8] else "conceded"
        is_claim = _ASSERTED.match(tail) or _IS_BEFORE.search(sentence[: match.start()]) or not bare(tail)
        return "claimed" if is_claim else "mentioned"


def _ends_sentence(tail: str) -> bool:
    return len(tail) < 4


@lru_cache
def _reader(names: Sequence[tuple[str, str]]) -> _Reader:
    return _Reader(dict(names))


def _fold(name: str) -> str:
    return re.sub(r"[\s/·ㆍ,&_-]", "", name).casefold()
