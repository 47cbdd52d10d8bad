"""The form that a file demands of its answers, told by its golds: the control score beside each metric, and reading.

```
             demanded ("control")                      read, where it is not demanded so
choice       one of the file's gold answers, alone     the only gold answer that the text names as a word of its own
number       one number, alone                         the only number in the text
entities     lines (or words) of name(class)           the lines that have that form
text         anything but nothing; no control score    the text
```
The published code has a table of checks by the name of the task, and reads nothing that is not demanded. An answer that
cannot be read counts as wrong, and its share stands beside the score. Golds are read in the same way: 3.50 is 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from unicodedata import normalize

from launch.llm.kr_eval.files import TaskFile
from launch.llm.kr_eval.metrics import CORRELATIONS, NUMBER, lines_of, number_in

MOST_CHOICES, LONGEST_CHOICE = 60, 30  # classes, characters
FEWEST_OF_A_CHOICE = 2  # golds a class, on average, from which a file's golds are taken for all that may be answered
KNOWN_CHOICES = {  # a short file may lack some of them
    "kornli": ("entailment", "contradiction", "neutral"),
    "kobest_copa": ("1", "2"),
    "kobest_hs": ("0", "1", "2", "3"),
    "kobest_sn": ("positive", "negative"),
    "kobest_wic": ("예", "아니오"),
    "kmmlu": ("A", "B", "C", "D"),
}
ENTITY = re.compile(r"\S(?:.*\S)?\(([^()\s]+)\)")
MARKS = " \t\n\"'`“”‘’*.,。:「」『』[]()<>"
LEADS = re.compile(r"^\s*(?:정답|답변?|응답|출력|answer|output)\s*(?:은|는|:|：)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Form:
    """``is_demanded``: the control score of a stripped answer; ``read``: what is scored, None where nothing can be."""

    name: str
    about: str
    is_demanded: Callable[[str], bool] | None
    read: Callable[[str], str | None]


def form_of(task: TaskFile) -> Form:
    """What a file demands: its own classes, a number, entities, or any text."""
    golds = [pair.output.strip() for pair in (*task.samples, *task.few_shots)]
    choices = _choices_of(task, golds)
    if any(metric in CORRELATIONS for metric in task.metrics):
        return NUMBERS
    if choices:
        return _choice(choices)
    if all(NUMBER.fullmatch(gold) for gold in golds):
        return NUMBERS
    if any(golds) and all(ENTITY.fullmatch(line) for gold in golds for line in lines_of(gold)):
        return ENTITIES
    return TEXT


def clean(answer: str) -> str:
    """An answer in NFC with lines that end in ``\\n``, full-width letters and digits as plain ones, without bold type,
    fences of code and quotes around it; further paragraphs of an answer are left to ``Form.read``."""
    text = normalize("NFC", answer).replace("\r\n", "\n").replace("\r", "\n")
    text = "".join(normalize("NFKC", c) if "！" <= c <= "～" else c for c in text)
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text) if NUMBER.fullmatch(text.replace(",", "").strip()) else text
    text = re.sub(r"(?m)^\s*```\w*\s*$", "", text).replace("**", "").strip()
    return text.strip("\"'`“”‘’").strip()


def _choices_of(task: TaskFile, golds: Sequence[str]) -> tuple[str, ...]:
    known = next((c for name, c in KNOWN_CHOICES.items() if task.name == name or task.name.startswith(f"{name}_")), ())
    if known and set(golds) <= set(known):
        return known
    found = tuple(dict.fromkeys(golds))
    is_short = all(gold and "\n" not in gold and len(gold) <= LONGEST_CHOICE for gold in found)
    is_repeated = len(golds) >= FEWEST_OF_A_CHOICE * len(found)
    return found if is_short and is_repeated and 1 < len(found) <= MOST_CHOICES else ()


def _choice(choices: Sequence[str]) -> Form:
    allowed = frozenset(choices)
    folded = {choice.casefold(): choice for choice in choices}

    def read(answer: str) -> str | None:
        if answer in allowed:
            return answer
        if found := folded.get(LEADS.sub("", answer.split("\n\n")[0]).strip(MARKS).casefold()):
            return found
        named = [choice for choice in choices if _names(answer, choice)]
        rest = answer.replace(named[0], "") if len(named) == 1 else ""
        return named[0] if len(named) == 1 and not any(_begins_a_word(rest, choice) for choice in choices) else None

    return Form("choice", f"one of {', '.join(choices)}", lambda answer: answer in allowed, read)


def _names(text: str, choice: str) -> bool:
    """Whether a text has the choice as a word: Latin letters and digits alone, Hangul with nothing before it and at
    most the ending of a sentence after it. ``Based`` does not name B."""
    if re.search("[가-힣]", choice):
        after = r"(?=$|[^가-힣A-Za-z0-9]|입니다|이다|이며|에 해당|예요|이에요|으로|로 )"
        return re.search(rf"(?<![가-힣A-Za-z0-9]){re.escape(choice)}{after}", text) is not None
    return re.search(rf"(?<![A-Za-z0-9.+-]){re.escape(choice)}(?![A-Za-z0-9]|[.]\d)", text) is not None


def _begins_a_word(text: str, choice: str) -> bool:
    """Whether another answer may be meant as well: ``예나 아니오`` (yes or no) is none."""
    return "가" <= choice[:1] <= "힣" and re.search(rf"(?<![가-힣A-Za-z0-9]){re.escape(choice)}", text) is not None


def _read_number(answer: str) -> str | None:
    return None if (value := number_in(answer)) is None else f"{Decimal(str(value)).normalize():f}"


def _read_entities(answer: str) -> str | None:
    found = [line for line in lines_of(answer) if ENTITY.fullmatch(line)]
    return "\n".join(found) if found else None


NUMBERS = Form("number", "one number", lambda answer: NUMBER.fullmatch(answer) is not None, _read_number)
ENTITIES = Form(
    "entities", "lines of name(class)",
    lambda answer: bool(lines_of(answer)) and all(ENTITY.fullmatch(line) for line in lines_of(answer)), _read_entities,
)  # fmt: skip
TEXT = Form("text", "any text", None, lambda answer: answer or None)
