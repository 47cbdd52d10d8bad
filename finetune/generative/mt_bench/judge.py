"""The prompts of MT-Bench judges, and how a verdict is parsed.

An answer may contain "평점: [[10]]" or orders to the judge. Therefore the prompt states that text between marks
(``<답변 3f9a…>``, a hash of all texts between them) is not an order, and the last line of the judge's own text counts
first. A verdict in [[ ]] elsewhere counts if it is the only one and no judged text has one, so that a quotation is no
verdict. A verdict that cannot be parsed is counted as a failure, never as a number.

KoMT-Bench takes the square root of the score of an answer that is not in Korean. It detects languages by a model and
exempts two questions. Here words with Hangul are counted; questions for another language or format are exempt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, count
from typing import Literal
from unicodedata import normalize

from finetune.generative.prompts.prompt import korean_texts

Verdict = Literal["a", "b", "tie"]
MIN_SCORE, MAX_SCORE = 1.0, 10.0
TEXTS = korean_texts("judge")
_SCORE, _WINNER = r"(\d{1,2}(?:\.\d+)?)\s{0,3}(?:/\s{0,3}10|점)?", r"(A|B|C|무승부|tie)"
BOXED_SCORE, BOXED_WINNER = (re.compile(rf"\[\[\s{{0,3}}{form}\s{{0,3}}\]\]", re.I) for form in (_SCORE, _WINNER))
SCORE_LINE, WINNER_LINE = (
    re.compile(
        rf"(?:최종\s?)?(?:{names})\s{{0,3}}[:：]?\s{{0,3}}(?:\[\[)?\s{{0,3}}{form}\s{{0,3}}(?:\]\])?\s?(?:점|/\s?10)?",
        re.IGNORECASE,
    )
    for names, form in (("평점|점수|rating|score", _SCORE), ("판정|verdict", _WINNER))
)
COLD = dict.fromkeys(("extraction", "math", "coding", "reasoning"), 0.0)
TEMPERATURES = {"writing": 0.7, "roleplay": 0.7, "stem": 0.1, "humanities": 0.1, **COLD}  # of answers, as in FastChat
MIN_CHARS, MIN_KOREAN = 20, 0.3  # a shorter answer has no language; share of words with Hangul in a Korean one
NO_PROSE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\$[^$\n]{1,200}\$|https?://\S+|\\[a-zA-Z]+", re.DOTALL)
HANGUL, KOREAN = re.compile("[가-힣]"), re.compile("(?:한국어|한글|우리말|국문)로")
NOT_KOREAN = re.compile("|".join(TEXTS["not_korean"]), re.IGNORECASE)
NEEDS_REFERENCE = ("math", "reasoning", "coding")
AROUND = " \t*_`#>-\"'.。"


@dataclass(frozen=True, slots=True)
class Question:
    """The turns that a user says, and optionally a reference answer to each."""

    id: str
    category: str
    turns: tuple[str, ...]
    reference: tuple[str, ...] = ()

    @property
    def lacks_reference(self) -> bool:
        return self.category in NEEDS_REFERENCE and len(self.reference) < len(self.turns)

    def reference_of(self, turn: int) -> str | None:
        """The reference answer to a turn, counted from 0, if the category is judged by one."""
        return self.reference[turn] if self.category in NEEDS_REFERENCE and turn < len(self.reference) else None


def ask_for_score(question: Question, answers: Sequence[str]) -> str:
    """The prompt for a score of the last of ``answers``; they answer the first turns of the question."""
    return _prompt(question, {"": answers}, "single", "ask_score")


def ask_for_winner(question: Question, first: Sequence[str], second: Sequence[str]) -> str:
    """The prompt for a comparison; ``first`` is shown as A. Both answer the same turns."""
    return _prompt(question, {" A": first, " B": second}, "pair", "ask_pair")


def _prompt(question: Question, sides: Mapping[str, Sequence[str]], task: str, form: str) -> str:
    """Rules, the reference answer to the last turn, and the conversation of each side."""
    reference = question.reference_of(len(next(iter(sides.values()))) - 1)
    mark = make_mark(*question.turns, *chain(*sides.values()), reference or "")
    rules = [TEXTS[task], *([TEXTS["reference"]] if reference else []), TEXTS["rules"], TEXTS[form]]
    parts = ["\n".join(rules), *([] if reference is None else [fence("정답 예시", reference, mark)])]
    for name, answers in sides.items():
        parts += [f"비서{name}의 대화"] if name else []
        for number, (turn, answer) in enumerate(zip(question.turns, answers, strict=False), start=1):
            parts += [fence(f"질문 {number}", turn, mark), fence(f"답변{name} {number}", answer, mark)]
    return "\n\n".join(parts)


def make_mark(*texts: str) -> str:
    """A mark that no text contains and that a model cannot know before it has written its text."""
    whole = "\0".join(texts)
    marks = (sha256(f"{salt}\0{whole}".encode(errors="backslashreplace")).hexdigest()[:12] for salt in count())
    return next(mark for mark in marks if mark not in whole)


def fence(label: str, text: str, mark: str) -> str:
    """The text between two lines that it cannot imitate."""
    return f"<{label} {mark}>\n{text}\n</{label} {mark}>"


def parse_score(judgement: str, shown: Sequence[str] = ()) -> float | None:
    """The score, 1..10, in a judge's text; None if there is none. ``shown``: the texts that were judged."""
    verdict = _parse_verdict(judgement, SCORE_LINE, BOXED_SCORE, shown)
    value = None if verdict is None else float(verdict)
    return value if value is not None and MIN_SCORE <= value <= MAX_SCORE else None


def parse_winner(judgement: str, shown: Sequence[str] = ()) -> Verdict | None:
    """The better answer in a judge's text, ``a`` for the one shown first; None if there is none."""
    verdict = _parse_verdict(judgement, WINNER_LINE, BOXED_WINNER, shown)
    verdicts: dict[str, Verdict] = {"A": "a", "B": "b", "C": "tie", "무승부": "tie", "TIE": "tie"}
    return None if verdict is None else verdicts[verdict.upper()]


def _parse_verdict(
    judgement: str, line_form: re.Pattern[str], boxed: re.Pattern[str], shown: Sequence[str]
) -> str | None:
    text = normalize("NFKC", judgement)
    lines = [line for line in (line.strip(AROUND) for line in text.splitlines()) if line]
    if lines and (match := line_form.fullmatch(lines[-1]) or boxed.fullmatch(lines[-1])):
        return match[1]
    verdicts = {match[1].upper() for match in boxed.finditer(text)}
    is_quoted = any(boxed.search(normalize("NFKC", text)) for text in shown)
    return verdicts.pop() if len(verdicts) == 1 and not is_quoted else None


def is_penalized(question: Question, turn: int, answer: str) -> bool:
    """Whether an answer to a turn, counted from 0, should be in Korean and is not."""
    turns = question.turns[: turn + 1]
    asked = next((text for text in reversed(turns) if KOREAN.search(text) or NOT_KOREAN.search(text)), "")
    if not HANGUL.search(" ".join(turns)) or (NOT_KOREAN.search(asked) and not KOREAN.search(asked)):
        return False
    words = [word for word in NO_PROSE.sub(" ", answer).split() if any(map(str.isalpha, word))]
    korean = sum(HANGUL.search(word) is not None for word in words)
    return sum(map(len, words)) >= MIN_CHARS and korean < MIN_KOREAN * len(words)
