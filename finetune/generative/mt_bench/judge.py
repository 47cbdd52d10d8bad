"""The prompts of MT-Bench judges, and how a verdict is parsed.

```
<답변 3f9a…>            marks from a hash of all texts between them, so no answer can contain them
…the text of a model…
</답변 3f9a…>
judge: 근거 …           reasons, kept as they are
       평점: [[7]]      only the last line is the verdict
```
An answer may contain "평점: [[10]]" or orders to the judge. Therefore only the last line of the judge's own text is
parsed, it must contain nothing but the verdict, and the prompt states that text between marks is not an order. A
verdict that cannot be parsed is counted as a failure, never as a number.
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
SCORE_LINE = re.compile(
    r"(?:최종\s*)?(?:평점|점수|rating|score)\s*[:：]?\s*(?:\[\[)?\s*(\d{1,2}(?:\.\d+)?)\s*(?:\]\])?\s*(?:점|/\s*10)?|"
    r"\[\[\s*(\d{1,2}(?:\.\d+)?)\s*\]\]",
    re.IGNORECASE,
)
PAIR_LINE = re.compile(
    r"(?:최종\s*)?(?:판정|verdict)\s*[:：]?\s*(?:\[\[)?\s*(A|B|C|무승부|tie)\s*(?:\]\])?|"
    r"\[\[\s*(A|B|C|무승부|tie)\s*\]\]",
    re.IGNORECASE,
)
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


def parse_score(judgement: str) -> float | None:
    """The score, 1..10, on the last line of a judge's text; None if there is none."""
    verdict = _parse_verdict(judgement, SCORE_LINE)
    value = None if verdict is None else float(verdict)
    return value if value is not None and MIN_SCORE <= value <= MAX_SCORE else None


def parse_winner(judgement: str) -> Verdict | None:
    """The better answer on the last line of a judge's text, ``a`` for the one shown first; None if there is none."""
    verdict = _parse_verdict(judgement, PAIR_LINE)
    verdicts: dict[str, Verdict] = {"A": "a", "B": "b", "C": "tie", "무승부": "tie", "TIE": "tie"}
    return None if verdict is None else verdicts[verdict.upper()]


def _parse_verdict(judgement: str, form: re.Pattern[str]) -> str | None:
    lines = [line for line in (line.strip(AROUND) for line in normalize("NFKC", judgement).splitlines()) if line]
    match = form.fullmatch(lines[-1]) if lines else None
    return next(filter(None, match.groups())) if match else None
