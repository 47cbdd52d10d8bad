"""Label words: which type do the words around a number announce?

In ``신한은행 110-…, 연락처 010-…`` the nearest label before a number counts; without one, a label shortly after it
(``…로 입금``, ``… 차량``). Short bank names are also everyday words (국민 people, 하나 one), so they count only right
before the number. Words for other numbers (송장번호 waybill, 특허 patent) count only as whole words right before the
number, not in 특허법인 (patent firm), and they lower the strength of a format; no label rules out a clear one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from corpus.pii.types import LABEL_WORDS, NOBODY, PiiType, one_of

SURNAME = "[김이박최정강조윤장임한오서신권황안송류홍전고문손양배백허유남심노하곽성차주우구민]"
"""The most common surnames."""

BEFORE_CHARS, AFTER_CHARS = 30, 14
BANK_GAP_CHARS = 3
MAX_CELL_CHARS = 24

_SURE_BANKS = frozenset(LABEL_WORDS["sure banks"])
"""Short bank names that are no everyday words."""
_SHORT_BANKS = (*LABEL_WORDS["everyday banks"], *_SURE_BANKS)
# 운송장 번호는: 1234, 특허 제10-…
_OTHER_GAP = re.compile(
    r"(?: ?(?:번호|코드|no|id)|명)?[은는이가]?(?:[^0-9a-z가-힣]{0,5}|[^0-9a-z가-힣]{1,3}(?:제|no\.?) ?)"
)
_HAS_DIGIT = re.compile("[0-9]")
_DIGIT_NEXT = re.compile(" ?[0-9]")
_CAMEL = re.compile("(?<=[a-z])(?=[A-Z])")
_HANGUL = re.compile("[가-힣]")
_SPACED = re.compile("(?<![가-힣])(?:[가-힣] ){2,}[가-힣](?![가-힣])")
# the account holder may be between bank and number: 신한 홍길동 110-…
_PERSON = re.compile(rf"[ :/,(]{{1,3}}{SURNAME}[가-힣]{{1,2}}[ :/,)]{{1,3}}")
_IN_BRACKETS = re.compile(r" ?[(\[/,] ?")
_BANK_PARTICLE = re.compile(
    r"(?:은행|뱅크|계좌|통장|으?로[요만는]?(?![가-힣])|에(?![가-힣])|이(?:에요|고|며|구요|요)|예요|입니다|[)\],./]|$"
    rf"|(?= {SURNAME}[가-힣]{{2}}(?![가-힣])))"  # 우리 홍길동
)
# 110-… (국민은행): a note that consists of a label
_BEHIND_IN_BRACKETS = re.compile(r" ?[(\[（［]([^()\[\]\n]{2,12})[)\]）］]")


class Labels:
    def __init__(self, kinds: Iterable[PiiType]) -> None:
        self._meaning = dict.fromkeys(_SHORT_BANKS, "ACCOUNT")
        self._meaning |= {word: name for name in NOBODY for word in LABEL_WORDS[name]}
        self._meaning |= {word: kind.name for kind in kinds for word in kind.context}
        # Latin labels are whole words: "ip" does not match in "zip", or "sc" in "discount"
        latin = one_of(word for word in self._meaning if word[0].isascii())
        self._pattern = re.compile(
            f"{one_of(w for w in self._meaning if not w[0].isascii())}|(?<![a-z]){latin}(?![a-z])"
        )

    def nearest(self, text: str, start: int, end: int) -> str | None:
        """The announced type of ``text[start:end]``, ``OTHER`` for numbers that are no personal data, or None."""
        bracket = _BEHIND_IN_BRACKETS.match(text, end)
        if bracket and (meaning := self.meaning(bracket[1])):
            return meaning
        return self._before(text, start) or self._behind(text, end)

    def meaning(self, cell: str) -> str | None:
        """The type that the last label word of a header cell or key announces."""
        if len(cell) > MAX_CELL_CHARS or _HAS_DIGIT.search(cell):
            return None
        name = _words_apart(cell).strip()
        for match in reversed(list(self._pattern.finditer(name))):
            word = match.group()
            # short bank names are parts of other words
            if not (word in _SHORT_BANKS and word != name) and not self._is_part(name, match):
                return self._meaning[word]
        return None

    def _is_part(self, text: str, match: re.Match[str]) -> bool:
        """Whether a word for other numbers is only part of a word, or apart from the end of ``text``."""
        if self._meaning[match.group()] not in NOBODY:
            return False
        is_inside = bool(_HANGUL.match(text, max(0, match.start() - 1), match.start()))
        return is_inside or not _OTHER_GAP.fullmatch(text, match.end())

    def _before(self, text: str, start: int) -> str | None:
        window = _words_apart(_same_line(text[max(0, start - BEFORE_CHARS) : start]))
        for match in reversed(list(self._pattern.finditer(window))):
            word, gap = match.group(), window[match.end() :]
            if self._is_part(window, match):
                continue
            is_apart = len(gap) > BANK_GAP_CHARS or _HANGUL.search(gap)  # 하나는 (one is), 하나 더 (one more)
            if word in _SHORT_BANKS and is_apart and not _PERSON.fullmatch(gap):
                continue
            return self._meaning[word]
        return None

    def _behind(self, text: str, end: int) -> str | None:
        after = text[end : end + AFTER_CHARS].partition("\n")[0].lower()
        for match in self._pattern.finditer(after):
            word = match.group()
            if word in _SHORT_BANKS and not (
                (_IN_BRACKETS.fullmatch(after[: match.start()]) and not _DIGIT_NEXT.match(after, match.end()))
                or (match.start() <= 1 and _BANK_PARTICLE.match(after, match.end()))
                or (match.start() <= 1 and word in _SURE_BANKS and not _HANGUL.match(after, match.end()))
            ):
                continue
            if self._meaning[word] not in NOBODY:
                return self._meaning[word]
        return None


def _words_apart(text: str) -> str:
    """Lower case, with ``custTel`` split into two words and the spaces of ``계 좌 번 호`` removed."""
    return _SPACED.sub(lambda spaced: spaced[0].replace(" ", ""), _CAMEL.sub(" ", text).lower())


def _same_line(window: str) -> str:
    """The context of a value: its line, and the part of the previous line after its last number."""
    before, _, line = window.rpartition("\n")
    if _HAS_DIGIT.search(line):
        return line
    return _HAS_DIGIT.split(before.rpartition("\n")[2])[-1] + f" {line}"
