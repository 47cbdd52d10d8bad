"""The form that a file demands of its answers, told by its golds: the control score beside each metric, and reading.

```
             demanded ("control")                      read, where it is not demanded so
choice       one of the file's gold answers, alone     the one that the text names (``prompts.answers``)
number       one number, alone                         the only number in the text
entities     lines (or words) of name(class)           the lines that have that form
text         anything but nothing; no control score    the first paragraph; of a file scored by lines all of them
```
The published code has a table of checks by the name of the task, and reads nothing that is not demanded. An answer that
cannot be read counts as wrong, and its share stands beside the score. Golds are read in the same way: 3.50 is 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from finetune.generative.kr_eval.files import TaskFile, file_name
from finetune.generative.kr_eval.metrics import CORRELATIONS, NUMBER, number_in
from finetune.generative.prompts import answers
from finetune.generative.prompts.registry import GENERATIONS

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
QUOTES = "\"'`“”‘’"


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
    if any(golds) and all(not gold or _has_entities(gold) for gold in golds):
        return ENTITIES
    return LINES if "set_f1" in task.metrics else TEXT


def clean(answer: str) -> str:
    """An answer in NFC, full-width signs as plain ones, thousands of a lone number without commas, nothing around."""
    text = answers.clean(answer).strip()
    return text.replace(",", "") if re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", text) else text


def _choices_of(task: TaskFile, golds: Sequence[str]) -> tuple[str, ...]:
    known = next((c for name, c in KNOWN_CHOICES.items() if task.name == name or task.name.startswith(f"{name}_")), ())
    known = known or next((GENERATIONS[task_].choices for task_ in GENERATIONS if file_name(task_) == task.name), ())
    if known and set(golds) <= set(known):
        return known
    found = tuple(dict.fromkeys(golds))
    is_short = all(gold and "\n" not in gold and len(gold) <= LONGEST_CHOICE for gold in found)
    is_repeated = len(golds) >= FEWEST_OF_A_CHOICE * len(found)
    return found if is_short and is_repeated and 1 < len(found) <= MOST_CHOICES else ()


def _choice(choices: Sequence[str]) -> Form:
    allowed, names = frozenset(choices), {choice: choice for choice in choices}
    are_numbers = all(choice.isdecimal() for choice in choices)

    def read(answer: str) -> str | None:
        if answer in allowed:
            return answer
        if are_numbers and re.search(r"\d[.]\d", answer):  # 1.5 is neither 1 nor 5
            return None
        return answers.find_choice(re.sub(r"(?<=\d)번", "", answer) if are_numbers else answer, names)

    return Form("choice", f"one of {', '.join(choices)}", lambda answer: answer in allowed, read)


def _read_number(answer: str) -> str | None:
    return None if (value := number_in(answer)) is None else f"{Decimal(str(value)).normalize():f}"


def _read_entities(answer: str) -> str | None:
    found = [line for line in answers.lines_of(answer) if ENTITY.fullmatch(line)]
    return "\n".join(found) if found else None


def _read_paragraph(answer: str) -> str | None:
    """What the published code takes, too."""
    return answer.split("\n\n")[0].strip().strip(QUOTES).strip() or None


def _has_entities(answer: str) -> bool:
    lines = [line for line in map(str.strip, answer.split("\n")) if line]
    return bool(lines) and all(ENTITY.fullmatch(line) for line in lines)


NUMBERS = Form("number", "one number", lambda answer: NUMBER.fullmatch(answer) is not None, _read_number)
ENTITIES = Form("entities", "lines of name(class)", _has_entities, _read_entities)
TEXT = Form("text", "any text", None, _read_paragraph)
LINES = Form("lines", "any lines", None, lambda answer: "\n".join(answers.lines_of(answer)) or None)
