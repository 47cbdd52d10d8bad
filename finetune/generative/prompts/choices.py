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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from finetune.generative.prompts.answers import any_of, bare, clean, corrected, doubts, lines_of, refuses, stated

Status = Literal["claimed", "marked", "mentioned", "conceded", "void", "same"]

CHARS_BEFORE = 100  # of a sentence, that decide how a choice is named
_CIRCLED = {0x2460 + n: f"{n + 1}번" for n in range(9)} | {0x24B6 + n: f"{chr(65 + n)}번" for n in range(26)}
_ORDINALS = {"첫": 1, "두": 2, "세": 3, "네": 4, "다섯": 5}
_ORDINAL = re.compile(
    rf"({'|'.join(_ORDINALS)})\s?번째(?= (?:보기|선택지|항목|것|문장|답|입니다)|[이가은는을를]|입니다)"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[다요])\s*(?=\()|\n")
_FIRST_WORDS = re.compile(r"(?<=[^\d])[.:](?=\s|$)|\s[-–—]\s|\s?\(")
_CONCLUDES = re.compile(rf"\s*{any_of('conclusions')}", re.IGNORECASE)

# --- what may follow a choice

_QUOTE_SIGNS, _OPENING = "\"'”’」』》〉)]*`_】", "\"'“‘「『《〈([*`_【"
_QUOTE = r"[\"'”’」』》〉)\]*`]"
_BRACKETS = re.compile(r"\([^()\n]{0,80}\)")
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
_MORE_THAN = re.compile(r"보다는?[\s\"'“‘*]*$")
_PARTICLES = f"{any_of('particles')}{{0,3}}"
_NOT_BEFORE = re.compile(rf"\b{any_of('not_before')}(?: the)?\s[\"'“‘*(]*$|n't\s[\"'“‘*(]*$", re.IGNORECASE)
_OPEN = re.compile(r"\b(?:whether|if)\b[^.!?]*$", re.IGNORECASE)
_IS_BEFORE = re.compile(
    r"(?:\bis|\bbe|:|=|\bas|\bchoose|\bselect|\bpick|\boption|\bchoice|정답은?|답은?|선택은?)\s*[\"'“‘(\[*]*$",
    re.IGNORECASE,
)
REPLIES = frozenset(("예", "네", "yes", "no"))  # "예를 들어" (for example) is no yes
_AFTER_REPLY = rf"\s?(?:{_BE}|또는|혹은|아니면|or\b|/|맞|같|다르|다릅|동일|그렇|라고|이라고|중|[\"'”’()\]*]|[,.!]|$)"
_OPTION_AFTER = re.compile(r"번|[.:)\]]|\s?\(|$|입니다|이다|이에요|예요|[은는이가을를로]|\s?[\"'”’*]")


# --- numbers

NUMBER_IN_TEXT = re.compile(
    r"(?<![A-Za-z0-9.,/])(-?\d{1,9}(?:\.\d{1,20})?)(?![A-Za-z0-9/%]|[.,]\d|\s?(?:개|번|명|가지|문장|단어|줄))"
)
# numbers that are not answers: the scale, and the names of the sentences
SCALE = re.compile(
    r"(?<![\d.])[01](?:\.0)?\s?점?\s?(?:[~∼〜-]|에서|부터)\s?5(?:\.0)?(?!\.?\d)\s?점?(?:\s?(?:사이|까지))?"
    r"|5(?:\.0)?\s?점\s?(?:만점|척도)|(?:between|from)\s0\s(?:and|to)\s5(?!\.?\d)"
)
OUT_OF = re.compile(r"(?<=\d)(?:\s?점)?\s?(?:/|out of)\s?5(?:\.0)?(?:\s?점)?(?![\d.])")
SENTENCE = re.compile(r"(?:문장|sentence)\s?[12](?:\s?(?:과|와|,|and)\s?(?:문장|sentence)?\s?2(?!\.))?", re.IGNORECASE)
# bounds and ranges, "4점에 가까운 3.8"; a point without a digit before it
_DECIMAL = r"\d{1,9}(?:\.\d{1,9})?"
BOUND = re.compile(
    rf"[≥≤]\s?{_DECIMAL}|(?<![\d.]){_DECIMAL}(?:\s?점)?(?:\s?(?:미만|초과)|대(?![가-힣])|에 가까운(?=\s\d))"
)
_POINT = re.compile(r"(?<![\d.])\.(?=\d)")
POINTS = re.compile(r"(?<=\d)\s?점")


class Named(NamedTuple):
    """A choice that a text names, and how; ``concludes``: its sentence is the conclusion, or marked as the answer."""

    choice: str
    status: Status
    concludes: bool


def find_choice(answer: str, names: Mapping[str, str], question: str = "") -> str | None:
    """The choice that an answer names; None if it names none, or several of which none is marked.

    Args:
        names: accepted name (Korean words, English labels, option letters) to choice; a "/" in a name matches a sign, a
            space or nothing.
        question: the lines of the question that the answer repeats are ignored.
    """
    reader, text = _choice_reader(tuple(names.items())), clean(answer)
    rest = _without_echo(text, question)
    return _search(reader, text if reader.are_options and not rest.strip() else rest)  # "2: 해가 떴다." alone


def find_number(answer: str) -> float | None:
    """The number that an answer gives; None if it gives none or several.

    The bounds of a scale from 0 to 5 and the numbers of the two sentences are not counted.
    """
    number = _search(NumberReader(), clean(answer))
    return None if number is None else float(number)


def _search(reader: Reader, text: str) -> str | None:
    if (after := corrected(text, has_replies=reader.has_replies)) and (choice := _search(reader, after)):
        return choice
    text = reader.prepare(text)
    if parts := stated(text):
        sentences = list(map(_first_sentence, parts))
        named = [[alone] if (alone := reader.alone(part)) else reader.claims(part) for part in sentences]
        if any(named):
            return _only([choice for choices in named for choice in choices] + _concluded(reader.read(text)))
    mentions, whole = reader.read(text), reader.lines(text)
    if lines := [choice for line in whole if (choice := reader.alone(line))]:
        is_first = not reader.are_options and reader.alone(whole[0]) is not None
        lines += _concluded(mentions) if is_first else [n.choice for n in mentions if n.status == "claimed"]
        return _only(lines)
    head, *rest = _FIRST_WORDS.split(whole[0]) if whole and not reader.are_options else [""]
    if rest and (choice := reader.alone(head)):  # "중립. 알 수 없습니다."
        return _only([choice] + [named.choice for named in mentions if named.status != "conceded"])
    return _decide(mentions, is_unsure=refuses(text) or doubts(text))


def _concluded(mentions: Sequence[Named]) -> list[str]:
    return [named.choice for named in mentions if named.status == "claimed" and named.concludes]


def _decide(mentions: Sequence[Named], *, is_unsure: bool) -> str | None:
    """The only claimed choice, or claim of a conclusion; without claims the only marked, mentioned or conceded one."""
    claims = [named for named in mentions if named.status == "claimed"]
    if claims:
        return _only(named.choice for named in claims) or _only(n.choice for n in claims if n.concludes)
    for status in ("marked", "mentioned", "conceded") if not is_unsure else ():
        if choices := {named.choice for named in mentions if named.status == status}:
            return _only(choices)
    return None


def _only(candidates: Iterable[str]) -> str | None:
    distinct = set(candidates)
    return distinct.pop() if len(distinct) == 1 else None


def _first_sentence(text: str) -> str:
    return next((part for part in _SENTENCE_END.split(text.strip()) if bare(part)), text)


def _without_echo(text: str, question: str) -> str:
    asked = {"".join(line.split()) for line in question.split("\n")} - {""}
    return "\n".join(line for line in text.split("\n") if "".join(line.split()) not in asked) if asked else text


class Reader:
    """Finds the names of one closed set and how a text names them."""

    are_options = has_replies = False

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    def prepare(self, text: str) -> str:
        return text

    def lines(self, text: str) -> list[str]:
        return lines_of(text)

    def alone(self, line: str) -> str | None:
        """The choice, if the line says nothing else."""
        raise NotImplementedError

    def choice(self, name: str) -> str:
        """The choice of a name."""
        raise NotImplementedError

    def matches(self, sentence: str) -> list[re.Match[str]]:
        """The names in a sentence."""
        return [*self._pattern.finditer(sentence)]

    def claims(self, part: str) -> list[str]:
        """The choices claimed in a text that is marked as the answer."""
        return [named.choice for named in self.read(part, is_stated=True) if named.status == "claimed"]

    def read(self, text: str, *, is_stated: bool = False) -> list[Named]:
        """The named choices in order, without void ones. ``is_stated``: the text is marked as the answer, so a mention
        is a claim."""
        mentions: list[Named] = []
        for sentence in filter(None, _SENTENCE_END.split(text)):
            concludes = is_stated or _CONCLUDES.match(sentence) is not None
            matches = self.matches(sentence)
            ends = [*(match.start() for match in matches[1:]), len(sentence)][: len(matches)]
            is_question = sentence.rstrip(" )\"'”’*").endswith("?")
            statuses = ["void" if is_question else _status(sentence, *pair) for pair in zip(matches, ends, strict=True)]
            for place in range(len(statuses) - 1, -1, -1):
                if statuses[place] == "same":  # "함의도 모순도 아닌": what is said of the last is said of all
                    statuses[place] = statuses[place + 1]
            for match, status in zip(matches, statuses, strict=True):
                said: Status = "claimed" if is_stated and status in ("mentioned", "marked") else status
                mentions.append(Named(self.choice(match[1]), said, concludes))
        return [named for named in mentions if named.status != "void"]


def _status(sentence: str, match: re.Match[str], end: int) -> Status:
    """How a choice is named; the text up to the next one decides."""
    before, rest = sentence[max(0, match.start() - CHARS_BEFORE) : match.start()], sentence[match.end() : end]
    if end < len(sentence) and _JOINED.fullmatch(rest):
        return "void" if _MORE_THAN.search(rest) else "same"
    tail = _BRACKETS.sub("", rest).lstrip(_QUOTE_SIGNS)
    if _OPEN.search(before) or _NOT_BEFORE.search(before) or _POSSIBLE.match(tail):
        return "void"
    border = _CLAUSE_END.search(tail)
    if _DENIED.match(tail[: border.start()] if border and border.start() > 0 else tail):
        return "void"
    if _CONCEDED.match(tail):
        return "claimed" if _ASSERTED.match(tail) and "다만" in tail[:8] else "conceded"
    is_conclusion = not bare(tail) and (_CONCLUDES.match(sentence) or doubts(before))  # "알 수 없으므로 중립"
    if is_conclusion or _ASSERTED.match(tail) or _IS_BEFORE.search(before):
        return "claimed"
    is_marked = before[-1:] in _OPENING and rest[:1] in _QUOTE_SIGNS and before and rest
    return "marked" if is_marked else "mentioned"


def asserted(sentence: str) -> Iterator[str]:
    """The beginnings of a sentence of which the rest asserts something, longest first: "경제" for "경제라고 봅니다"."""
    for place in range(len(sentence) - 1, 0, -1):
        said = sentence[:place].rstrip()
        is_inside = said[-1:] in ("이", "으") and len(said) > 1 and _has_final(said[-2])  # of 이라고, 으로
        is_inside = is_inside or (said.endswith("라") and sentence[place] in "고는며")
        if said and not is_inside and _ASSERTED.match(sentence, place) and not _DENIED.match(sentence, place):
            yield said


def _has_final(letter: str) -> bool:
    """Whether a syllable ends in a consonant; other letters may."""
    return not "가" <= letter <= "힣" or (ord(letter) - ord("가")) % 28 > 0


class ChoiceReader(Reader):
    """The names of a closed set: words, option letters or digits, yes and no."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._by_name = {_fold(name): choice for name, choice in names.items()}
        self.has_replies = not REPLIES.isdisjoint(names)
        self.are_options = all(len(name) == 1 and name.isascii() for name in names)
        longest_first = sorted(names, key=len, reverse=True)
        words = {name: r"\s?[/·ㆍ,&-]?\s?".join(map(re.escape, name.split("/"))) for name in longest_first}
        letter = r"[^\W_]"
        if self.are_options:
            alone = rf"(?<![A-Za-z0-9.])(?<![-−](?=\d))({'|'.join(words.values())})(?![A-Za-z0-9]|\.[0-9])"
            super().__init__(re.compile(rf"{alone}(?=번?{_PARTICLES}(?!{letter}))"))
            return
        ends = {name: _AFTER_REPLY if name in REPLIES else rf"{_PARTICLES}(?!{letter})" for name in names}
        whole = "|".join(f"{word}(?={ends[name]})" for name, word in words.items())
        super().__init__(re.compile(rf"(?<!{letter})({whole})", re.IGNORECASE))

    def prepare(self, text: str) -> str:
        """Circled options and "두 번째" (the second) as "2번"."""
        if not self.are_options:
            return text
        return _ORDINAL.sub(lambda match: f"{_ORDINALS[match[1]]}번", text.translate(_CIRCLED))

    def lines(self, text: str) -> list[str]:
        """Option lines keep their "1." """
        return [line.strip() for line in text.split("\n")] if self.are_options else lines_of(text)

    def choice(self, name: str) -> str:
        return self._by_name[_fold(name)]

    def alone(self, line: str) -> str | None:
        """The choice, if the line or its beginning says nothing else: "경제", "경제입니다.", "C: 알 수 없음"."""
        plain = bare(line)
        if self.are_options:
            head = re.match(r"[(\[]?([A-Za-z0-9])(?:(?:번|[).:\]])+\s|\s\()", plain + " ")
            if head and (choice := self._by_name.get(_fold(head[1]))):
                return choice
        return self._by_name.get(_fold(plain)) or self._by_name.get(_fold(re.sub(rf"번?\s?{_BE}$", "", plain)))

    def read(self, text: str, *, is_stated: bool = False) -> list[Named]:
        """A small letter is an option only where the answer is marked."""
        if is_stated and self.are_options:
            text = re.sub(r"^[\W_]*[a-j](?![A-Za-z])", lambda match: match[0].upper(), text)
        return super().read(text, is_stated=is_stated)

    def matches(self, sentence: str) -> list[re.Match[str]]:
        """Of option letters those that are options, or joined with another one by "or"."""
        matches = super().matches(sentence)
        joined = [_JOINED.fullmatch(sentence[a.end() : b.start()]) is not None for a, b in pairwise(matches)]
        return [
            match
            for match, before, after in zip(matches, [False, *joined], [*joined, False], strict=False)
            if before or after or not self.are_options or _is_option(sentence, match)
        ]


def _is_option(sentence: str, match: re.Match[str]) -> bool:
    """Whether there is a sign of an option: "A번", "(A)", "정답은 A"; "A difficult question" has none."""
    is_after = _IS_BEFORE.search(sentence[max(0, match.start() - CHARS_BEFORE) : match.start()])
    return bool(is_after or _OPTION_AFTER.match(sentence, match.end()) or _ASSERTED.match(sentence, match.end()))


class NumberReader(Reader):
    """The numbers of a text, without those of the scale and of the sentences."""

    def __init__(self) -> None:
        super().__init__(NUMBER_IN_TEXT)

    def prepare(self, text: str) -> str:
        for pattern, sign in ((OUT_OF, ""), (SCALE, " "), (SENTENCE, " "), (BOUND, " "), (_POINT, "0."), (POINTS, "")):
            text = pattern.sub(sign, text)
        outside = _BRACKETS.sub("", text)  # "1.14 (0: 전혀 다름, 5: 같음)"
        return outside if NUMBER_IN_TEXT.search(outside) else text

    def choice(self, name: str) -> str:
        return str(float(name))

    def alone(self, line: str) -> str | None:
        return self.choice(match[1]) if (match := NUMBER_IN_TEXT.fullmatch(bare(line))) else None


@lru_cache
def _choice_reader(names: Sequence[tuple[str, str]]) -> ChoiceReader:
    return ChoiceReader(dict(names))


def _fold(name: str) -> str:
    return re.sub(r"[\s/·ㆍ,&_]|-(?!\d)", "", name).casefold()
