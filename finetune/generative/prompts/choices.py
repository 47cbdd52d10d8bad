"""Find the choice that an answer names: one reader for all closed sets, of KLUE tasks and of files.

```
answer ─ stated ("정답은 …", JSON, …) ─▶ the claims in it
       └ otherwise ─▶ sentences ─▶ every named choice with its status ─▶ the only claim, else the only mention
```
No rule guesses. A choice is *claimed* if a predicate asserts it ("경제입니다", "경제인 것으로 보입니다"), *denied* in "경제가
아니라", *possible* in "경제로 볼 수도 있지만" and "경제일까?", else *mentioned*. Denied and possible choices never count. Of two
different claims, one must stand in a conclusion ("따라서"), otherwise nothing is found. A choice is a whole word with
particles, so "Based" is not B and "경제적" (economical) is not 경제 (economy).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from finetune.generative.prompts.answers import bare, clean, doubts, lines_of, refuses, stated

Status = Literal["claimed", "conceded", "mentioned", "void", "same"]

_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*|__([^_\n]{1,80})__")
_QUOTED = re.compile(r"[\"'`“‘「『《〈\[【]([^\"'`“”‘’「」『』《》〈〉\[\]【】\n]{1,80})[\"'`”’」』》〉\]】]")
_CIRCLED = {0x2460 + number: f"{number + 1}번" for number in range(9)}
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[다요])\s*(?=\()|\n")
_CONCLUDES = re.compile(
    r"\s*(?:따라서|그러므로|그래서|결국|결론적으로|결론은|종합하면|종합적으로|종합해|요약하면|요컨대|즉|고로|이에|최종적으로|하지만 최종"
    r"|so\b|therefore|thus|hence|in conclusion|finally|overall)",
    re.IGNORECASE,
)

# --- what may follow a choice

_NOUN = (
    r"(?:[\"'”’」』》〉)\]]{0,2}(?:\([^()\n]{0,40}\))?\s?(?:의|인)?\s?(?:관련\s?)?(?:분야|관계|뉴스|기사|주제|카테고리|범주|영역|부문|섹션|토픽|제목|내용"
    r"|판정|유형|라벨|레이블|쪽|면|번|소식|이슈|문제|상태|선택지|보기|옵션|항목)?){1,2}"
)
_BE = r"(?:입니다|이에요|예요|이다|임|이네요|네요|이군요|군요|이죠|죠|이지요|지요|이야|이랍니다|랍니다|이라네요|였습니다|이었습니다|이올시다)"
_SURE = r"(?:가장 |매우 |더 |제일 |아주 |상당히 |훨씬 |거의 )?"
_THINK = (
    r"(?:생각|판단|보이|보입|보여|보인|봅|보았|봤|본다|볼 수 있|할 수 있|할 만|분류|답|추정|여겨|여깁|사료|결론|하겠|정하|정했|선택|골랐|고르"
    r"|간주|예상|추론|이해|규정|말할 수 있|말씀|해석|추측|평가|느껴|짐작|확인|나타|정의|표시|표현|처리|지정|선정|봐야|보는 것이|하는 것이|파악|결정"
    r"|사려|기재|적었|적습|매기|제출|부를 수 있|구분|설명)"
)
_ASSERTED = re.compile(
    _NOUN + r"\s?(?:"
    rf"{_BE}|(?:요|다|야|임)(?![가-힣])|(?:이요|이오)(?![가-힣])"
    r"|인 (?:것|걸|거|듯|셈|편|게)|(?:인데|이고|이며|이므로|이니|이기|이라서|이라|여서|이어서|이자|인 만큼|인지라)"
    rf"|일 (?:것|겁|거|듯|(?:가능성|확률|공산)[이가]? {_SURE}(?:높|커|크|큽|농후))"
    rf"|(?:이라고|라고|이라|라|으로|로)\s?(?:\S{{1,8}}\s)?{_SURE}{_THINK}"
    rf"|(?:에|에게|와|과)\s?{_SURE}(?:해당|속|속해|가깝|가까|들어|포함|부합|적합|어울|맞)"
    rf"|(?:을|를)\s?{_SURE}(?:선택|고르|고릅|골|택|답|제시|뜻|의미|나타|가리|다룬|다룹|다루고 있)"
    rf"|(?:이|가)\s?{_SURE}(?:적절|적합|맞|정답|답|알맞|올바|타당|옳|됩|된|되)"
    r"|(?:합니다|됩니다|한다|된다|해요|돼요|함|됨)"
    r")"
)
_CONCEDED = re.compile(r"[^.!?\n]{0,40}?(?:지만|다만|니다만|[는은]데도|더라도|해도|으나|긴 하나|기는 하나|\bbut\b|although)")
_POSSIBLE = re.compile(
    r"[^,.!?\n]{0,14}?(?:[일볼할될] 수도|[로라]도 볼|도 볼 수|가능성도|가능성이 (?:있|없|낮|적)|측면도|요소도|여지도)"
    r"|(?:일까|인가(?! 봅)|인지|일지|라면|이라면|려면|이?라기보다|보다는?|처럼|대신|같[지이은]|도 (?:고려|생각|언급|다루|관련|있|될|가능)|여부)"
)
_DENIED = re.compile(
    r"[^,!?\n]{0,24}?(?:아니(?!면)|아닙|아닌|아님|아닐|아녀|않|(?<!틀림)(?<!다름)(?<!수밖에 )(?<!여지가 )(?<!의심할 바 )없|무관|어렵|힘들"
    r"|틀리|틀렸|틀린|오답|제외|배제|부적절|거리가|못)"
)
_CLAUSE_END = re.compile(r"(?:이고|이며|이므로|므로|하고|하며|되며|으며|니까|[아어]서|는데|인데|지만|,|때문|다\.)")
_JOINED = re.compile(
    r"(?:도|이나|나|와|과|및|랑|이랑|이거나|거나|하고|인지|\s|,|·|/|또는|혹은|아니면|or|and|nor|vs\.?|중|보다는?|[\"'”’」』》〉“‘「『《〈*])*",
    re.IGNORECASE,
)
_PARTICLES = (
    r"(?:입니다|이에요|예요|이다|다|임|이나|나|이라고|라고|이라|라|이므로|이며|이고|이니|이기|이자|인데|여서|이어서|으로|로|에|에서|을|를|은|는|이|가"
    r"|의|와|과|도|만|랑|보다|처럼|분야|기사|뉴스|관계|주제|번|합니다|됩니다|한다|된다|해요|돼요|하지|되지|함|됨|네요|요|죠|지요|군요|야|임을"
    r"|인(?=\s?[것걸거듯셈편지가])|일(?=\s?[것겁거듯까지]|\s(?:수|가능|확률))|이[네죠군지야]?요?|랍니다|같[지은이]|뿐|쪽|였습니다|이었습니다){0,3}"
)
_NOT_BEFORE = "".join(
    f"(?<!{word} )" for word in ("not", "not a", "not an", "n't", "nor", "neither", "rather than", "whether", "could be",
                                 "might be", "may be", "could also be", "might also be", "may also be", "if")
)  # fmt: skip
_OPEN = re.compile(r"\b(?:whether|if)\b[^.!?]*$", re.IGNORECASE)
_IS_BEFORE = re.compile(r"(?:\bis|\bbe|:|=|\bas|\bchoose|\bselect|\bpick|\boption|\bchoice|정답은?|답은?|선택은?)\s*[\"'“‘(\[*]*$", re.I)
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
        marked = [choice for groups in pattern.finditer(text) if (choice := reader.exact(bare(max(groups.groups(""))))) ]
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
            self._pattern = re.compile(rf"(?<![A-Za-z0-9.])({words})(?![A-Za-z0-9]|\.[0-9])(?=번?{_PARTICLES}(?!{letter}))")
        elif REPLIES.issuperset(names):  # "예를 들어" (for example) is no yes
            self._pattern = re.compile(rf"(?<!{letter})({words})(?={_AFTER_REPLY})", re.IGNORECASE)
        else:
            self._pattern = re.compile(rf"{_NOT_BEFORE}(?<!{letter})({words})(?={_PARTICLES}(?!{letter}))", re.IGNORECASE)

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
        matches = [*self._pattern.finditer(sentence)]
        are_joined = [bool(_JOINED.fullmatch(sentence[a.end() : b.start()])) for a, b in zip(matches, matches[1:], strict=False)]
        joined = [before or after for before, after in zip([False, *are_joined], [*are_joined, False], strict=True)]
        return [match for match, is_joined in zip(matches, joined, strict=False) if is_joined or self._is_option(sentence, match)]

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
