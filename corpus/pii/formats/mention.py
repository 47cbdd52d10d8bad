"""MENTION: ``@`` and a handle of a social network, in Latin letters or Hangul.

Code contains ``@`` too (decorators, Razor, SQL, packages), so handles that look like code, or are next to words about
code, are not reported. Handles in Hangul need a label, a particle of address (님, 에게), or the form of a name.
"""

from __future__ import annotations

import re
from random import Random

from corpus.pii.formats.shapes import faker
from corpus.pii.labels import SURNAME
from corpus.pii.types import BY_LABEL, CERTAIN, LABEL_WORDS, Format, PiiType, Scope

_NO_CODE = f"(?!(?i:{'|'.join(LABEL_WORDS['code'])})(?![A-Za-z0-9_]))"
MENTION_LATIN = re.compile(
    rf"(?<![A-Za-z0-9@_\\])(?<![A-Za-z0-9@*_\\\-][*\-])(?<![^가-힣A-Za-z0-9_]/)(?<!^/)(?<![A-Za-z0-9]\.)@{_NO_CODE}(?=[0-9_.]{{0,9}}[A-Za-z])"
    r"[A-Za-z0-9_][A-Za-z0-9_.]{0,28}[A-Za-z0-9_](?![A-Za-z0-9_@*\[=]|\((?=[A-Za-z0-9\"'){\[@_])|/[A-Za-z]|-[A-Za-z]|\.[A-Za-z0-9])"
)
MENTION_HYPHEN = re.compile(
    r"(?<![A-Za-z0-9@/*_\\\-.])@[A-Za-z][A-Za-z0-9_.]{0,20}(?:-[A-Za-z0-9_]{1,20}){1,3}(?![A-Za-z0-9_@*(\[/=\-])"
)
_BEFORE_HANGUL = r"(?:(?<![A-Za-z0-9@./*_\-가-힣])|(?<=인스타)|(?<=그램)|(?<=트위터)|(?<=유튜브)|(?<=채널))"
_PARTICLES = "에게서|에게|한테서|한테|께서|께|님[이은을의께도]?|씨[가는를의]?"
_COPULAS = "입니다|이에요|예요|이고|이다|에서|[을를은는이가의와과로]|으로|라고|이라고"
MENTION_MIXED = re.compile(rf"{_BEFORE_HANGUL}@[가-힣]{{2,20}}[A-Za-z0-9_.]{{0,20}}[A-Za-z0-9_](?![A-Za-z0-9@*])")
MENTION_CALLED = re.compile(rf"{_BEFORE_HANGUL}@[가-힣]{{2,20}}?(?= ?(?:{_PARTICLES})(?![가-힣]))")
MENTION_NAME = re.compile(
    rf"(?<!\S)@{SURNAME}[가-힣][가-힣](?<![은는을를의도로게역점돔숲골])(?<![^길]동)(?=\s|[.,!?~]|$)"
)
MENTION_HANGUL = re.compile(rf"{_BEFORE_HANGUL}@[가-힣]{{2,20}}?(?=(?:{_COPULAS})?(?![가-힣A-Za-z0-9_@*]))")
_NO_HANDLE = re.compile(
    r".*\.(?i:com|net|org|edu|kr)|@[A-Z][A-Z0-9_]*|@[A-Z][a-z]+(?:\.?[A-Z][a-z]*)*|@[a-z]+(?:\.?[A-Z][a-z]*)+"
    r"|@(?i:tbl|tmp|var|param|arg|str|int|num|val|id|require)(?:[A-Z0-9_][A-Za-z0-9_]*)?"
    r"|@[a-z_]+\.(?:event|command|remote|save|each|map|route|get|task|register|setter|cache\w*)|@\w+_required"
    r"|@[a-z_]+_(?:id|ids|num|no|date|time|name|count|cnt|size|color|type|key|url|path|code|value|list|idx|index|post|get)"
)
_CALLED = re.compile(
    rf" ?(?:{_PARTICLES}|계정)|[아야](?= )| (?:언니|오빠|누나|형|선배|쌤|선생님|팀장님?|과장님?|대리님?)(?![가-힣])"
)
_ASK = re.compile(
    "(?:문의|담당|제보|작성|요청|사진|글|작가|헤어|메이크업|의상|리뷰어?|(?<![A-Za-z])(?i:cc|by))[자은는]?[ :]{1,3}\\Z"
)
_NAMED = re.compile(
    r"(?:(?:^|[\s(])(?i:cc|via|by|rt|from|dm|feat\.?)[ :]?|[ⓒ©] ?|[=/가-힣]|@[A-Za-z0-9_.]{2,10}[ ,·/]{1,2})\Z"
)
_SPEAKS = re.compile("(?: ?[!,:~]|의|이?가|이랑|랑) ?[가-힣]|[)\"'’”](?![(])")
_LATIN = re.compile("[A-Za-z_]")
_CODE_BEHIND = re.compile(
    " ?(?:지시[문어]|키워드|블록|특성|속성|태그|함수|메서드|메소드|데코레이터|변수|매개|애너테이션|어노테이션|패키지"
    "|모듈|파라미터|라이브러리|플러그인|인터페이스|클래스|컴포넌트|연산자)"
)
_ASSIGNED, _COMPARED = re.compile(" ?[:+*/-]?=(?!=)| ?: ?[0-9#\"']"), re.compile("(?:[<>:]?=|<>) $")
_SQL = re.compile(r"(?:^|[\s(])(?:INTO|VALUES|EXEC|CALL|BETWEEN|DECLARE|SELECT|WHERE|UPDATE)[ (][^\n가-힣]*\Z")
_CODE_BEFORE = re.compile(r"(?:^|\s)(?:INSERT|INTO|DECLARE|SET|SELECT|FROM|IF|RETURNS|EXEC|WHERE|AND|VALUES)[ (]+$")


def _is_handle(match: re.Match[str], label: str | None) -> bool:
    """At least three characters; not the rest of a masked address (``@naver.com``) or code (``@ECHO``)."""
    text, start, end = match.string, match.start(), match.end()
    if end - start <= 3 or _CODE_BEFORE.search(text, max(0, start - 12), start):
        return False
    if label == "MENTION" or _CALLED.match(text, end):  # 인스타 @name 태그
        return True
    before = text[max(0, start - 80) : start]
    is_code = any(code.search(before) for code in (_COMPARED, _SQL)) or _NO_HANDLE.fullmatch(match.group())
    if is_code or _CODE_BEHIND.match(text, end) or _ASSIGNED.match(text, end):
        return False
    # a word of letters is often code (@tailrec), so the context must address or name a person
    is_word = match.group()[1:].isalpha()
    is_named = any(words.search(text, max(0, start - 12), start) for words in (_NAMED, _ASK))
    return not is_word or is_named or bool(_SPEAKS.match(text, end))


def _is_asked(match: re.Match[str], label: str | None) -> bool:
    """A handle with hyphens, which packages have too, after a word such as 문의 (ask) or before 님."""
    if label == "MENTION" or _CALLED.match(match.string, match.end()):
        return True
    return bool(_ASK.search(match.string, max(0, match.start() - 8), match.start()))


def _is_hangul_handle(match: re.Match[str], label: str | None) -> bool:
    """Excludes places (``@벙커1``: at Bunker 1): Latin letters, an underscore, or a label are required."""
    return label == "MENTION" or bool(_LATIN.search(match.group()) or _CALLED.match(match.string, match.end()))


def fake_mention(rng: Random, value: str) -> str:
    """A handle in the same script."""
    if "가" <= value[1] <= "힣":
        return f"@{faker(rng).name().replace(' ', '')}_{rng.randrange(10_000):04}"
    return f"@{faker(rng).user_name()}_{rng.randrange(10_000):04}"


_AROUND_AT = Scope("@", "", before=2, after=36)

MENTION = PiiType(
    "MENTION",
    (
        Format(MENTION_LATIN, CERTAIN, _is_handle, _AROUND_AT),
        Format(MENTION_MIXED, CERTAIN, _is_hangul_handle, _AROUND_AT),
        Format(MENTION_CALLED, CERTAIN, scope=_AROUND_AT),
        Format(MENTION_NAME, CERTAIN, scope=_AROUND_AT),
        Format(MENTION_HANGUL, BY_LABEL, scope=_AROUND_AT),
        Format(MENTION_HYPHEN, CERTAIN, _is_asked, scope=_AROUND_AT),
    ),
    fake_mention,
    "@hong_0000",
)
