"""Clean the text that a model wrote, and find the demanded answer in it.

Answers come in Markdown, in quotes, after "답:", in full-width or decomposed letters, in a sentence, with an
explanation. No rule guesses: of two candidates one must be marked as the answer, otherwise nothing is found. A
candidate is a whole word with particles or a copula, so "Based" is not B and "경제적" (economical) is not 경제
(economy). All rules take time linear in the length of the answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

MAX_CHARS = 20_000  # of an answer; the rest is ignored

_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: " ", 0xA0: " ", 0x200B: "", 0xFEFF: ""}
_QUOTES = "\"'`“”‘’„«»「」『』《》〈〉<>[]【】()"
_EDGES = _QUOTES + "*_~#:.,;!。、 \t"
_FENCE = re.compile(r"^\s*(?:```|~~~).*$")
_BULLET = re.compile(r"^\s*(?:>\s*)*(?:[-*+•·▪◦‣]\s+|\(?\d{1,3}[.)]\s+|#{1,6}\s+|[①-⑳]\s*)?")
_PREFIX = re.compile(
    r"(?:최종\s?|올바른\s?)?(?:정답|답변|답안|답|결론|주제|분류|분야|관계|유사도|점수|결과|출력|응답|라벨|레이블|"
    r"final answer|answer|label|output|topic|category|relation|score)"
    r"[\"'”’`*_\s]*(?:은|는|:|=|->|→|⇒|입니다:)\s*",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*|__([^_\n]{1,80})__")
_QUOTED = re.compile(r"[\"'`“‘「『《〈\[【]([^\"'`“”‘’「」『』《》〈〉\[\]【】\n]{1,80})[\"'`”’」』》〉\]】]")
_REFUSED = re.compile(
    r"(?:답변?|대답|판단|분류|도움|도와|제공|응답|결정|처리)[을를]?\s?(?:드릴|할|해\s?드릴|될|줄)?\s?수(?:가|는)?\s?없"
    r"|죄송|미안|양해|거절|(?:I['’]m|I am) (?:sorry|unable|not able)|I (?:can(?:no|['’])t|won['’]t)|as an AI",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"모르겠|모릅니다|수\s?(?:가|는)?\s?없|어렵|어려|힘들|불분명|불명확|애매|확실(?:하지|치)|어느 것도|해당하지 않"
    r"|\bnot sure\b|\bunsure\b|\bunclear\b|\bcannot\b|\bnone of\b",
    re.IGNORECASE,
)
# copulas and particles that may follow a candidate within its word
_AFTER = (
    r"(?:입니다|이에요|예요|이다|다|임|이나|나|이라고|라고|이므로|이며|이고|으로|로|에|에서|을|를|은|는|이|가|의|와|과|도|"
    r"분야|기사|뉴스|관계|주제|이라|라|합니다|됩니다|한다|된다){0,3}"
)
_COPULA = re.compile(r"\s?(?:입니다|이에요|예요|이다)$")
_DENIED = r"\s?(?:이|가|은|는)?\s?(?:아니(?!면)|아닌|아닙|아님|아닐|않|없)"
_NOT_AFTER = "".join(f"(?<!{word} )" for word in ("not", "not a", "not an", "n't", "nor", "neither", "rather than"))


def clean(answer: str) -> str:
    """Normalize to NFC, half-width characters and ``\\n``; remove invisible characters and the thoughts up to </think>.

    An answer that was cut off while thinking is empty.
    """
    text = unicodedata.normalize("NFC", answer[:MAX_CHARS]).translate(_WIDE)
    text = text.rpartition("</think>")[2] if "</think>" in text else text.partition("<think>")[0]
    return text.replace("\r\n", "\n").replace("\r", "\n")


def lines_of(answer: str) -> list[str]:
    """The non-empty cleaned lines, without code fences, bullets, numbers and bold marks."""
    kept = (line for line in clean(answer).split("\n") if not _FENCE.match(line))
    return [line for line in (undecorate(line) for line in kept) if line]


def undecorate(line: str) -> str:
    """A line without its bullet or heading and without marks of bold and code."""
    return _BULLET.sub("", line, count=1).replace("**", "").replace("__", "").replace("`", "").strip()


def bare(text: str) -> str:
    """The text without surrounding quotes, brackets, punctuation and white space."""
    return text.strip(_EDGES)


def find_choice(answer: str, names: Mapping[str, str]) -> str | None:
    """The choice that an answer names; None if it names none, or several of which none is marked.

    Three kinds of places are searched: first text after "정답:" (answer) or alone on a line or in a first sentence,
    then bold text, then quotes. The first kind with a candidate decides; two different candidates there give None.
    Otherwise the whole answer is searched, unless it refuses or doubts.

    Args:
        names: accepted name (Korean words, English labels) to choice; a "/" in a name matches a sign, a space or
            nothing.
    """
    text = clean(answer)
    exact = _exact(tuple(names.items()))
    stated = [choice for line in lines_of(answer) if (choice := _said(line, exact))]
    for head, end, rest in (line.partition(". ") for line in lines_of(answer)):
        if end and (choice := _said(head, exact)) and {*_named(rest, names)} <= {choice}:
            stated.append(choice)
    stated += [choice for part in after_prefixes(text) for choice in _named(part, names)]
    bold = (bare(first or second) for first, second in _BOLD.findall(text))
    marked = [exact[key] for part in bold if (key := _fold(part)) in exact]
    quoted = [exact[key] for part in _QUOTED.findall(text) if (key := _fold(bare(part))) in exact]
    for candidates in (stated, marked, quoted):
        if candidates:
            return _only(candidates)
    return None if refuses(text) or doubts(text) else _only(_named(text, names))


def _said(sentence: str, exact: Mapping[str, str]) -> str | None:
    """The choice, if the sentence contains nothing else: "경제", "경제입니다."."""
    return exact.get(_fold(_COPULA.sub("", bare(sentence))))


def refuses(answer: str) -> bool:
    """Whether the model states that it cannot or will not answer."""
    return _REFUSED.search(clean(answer)) is not None


def doubts(answer: str) -> bool:
    """Whether the model states that it does not know; words that it mentions are then no answer."""
    return _UNSURE.search(clean(answer)) is not None


def after_prefixes(text: str) -> list[str]:
    """The text after each "답:" up to the end of its line."""
    plain = [undecorate(line) for line in text.split("\n")]
    return [part for line in plain for part in _PREFIX.split(line)[1:]]


def _named(text: str, names: Mapping[str, str]) -> list[str]:
    """The choices named in running text, except denied ones: "A가 아니라 B" (not A but B) names B."""
    pattern, by_name = _pattern(tuple(names)), _exact(tuple(names.items()))
    return [by_name[_fold(name)] for name, denied in pattern.findall(text) if not denied]


def _only(candidates: Iterable[str]) -> str | None:
    distinct = set(candidates)
    return distinct.pop() if len(distinct) == 1 else None


@lru_cache
def _exact(names: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Folded name to choice."""
    return {_fold(name): choice for name, choice in names}


@lru_cache
def _pattern(names: Sequence[str]) -> re.Pattern[str]:
    """Matches whole words; group 2 is a negation after the word."""
    longest_first = sorted(names, key=len, reverse=True)
    words = "|".join(r"\s?[/·ㆍ,&-]?\s?".join(map(re.escape, name.split("/"))) for name in longest_first)
    letter = r"[^\W_]"
    return re.compile(
        rf"{_NOT_AFTER}(?<!{letter})({words})(?:({_DENIED})|(?={_AFTER}(?!{letter})))",
        re.IGNORECASE,
    )


def _fold(name: str) -> str:
    return re.sub(r"[\s/·ㆍ,&_-]", "", name).casefold()
