"""The form of answer that an llm-kr-eval file demands, detected from its golds; used to check and to parse answers.

```
             exact form (the "control score")           parsed otherwise
choice       one of the file's gold answers, alone     the one that the text names (``prompts.answers``)
number       one number, alone                         the only number in the text
entities     lines of name(class)                      the lines of that form
lines        any lines; no control score               all lines
text         any text; no control score                the first paragraph
```
The published code has one check per task name and parses nothing else. Golds are parsed like answers: 3.50 equals 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from finetune.generative.kr_eval.files import TaskFile
from finetune.generative.kr_eval.metrics import CORRELATIONS, NUMBER, parse_number, split_lines
from finetune.generative.prompts import PROMPTS, answers

MAX_CHOICES, MAX_CHOICE_CHARS = 60, 30
MIN_GOLDS_PER_CHOICE = 2  # on average; golds that repeat less are free text, not classes
KNOWN_CHOICES = {  # a short file may not contain all of them
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
    """A form of answers.

    Fields:
        is_exact: whether a cleaned answer has exactly this form; None if any answer has.
        parse: the part of a cleaned answer that is scored; None if there is none.
    """

    name: str
    about: str
    is_exact: Callable[[str], bool] | None
    parse: Callable[[str], str | None]


def detect_form(task: TaskFile) -> Form:
    """The form of a file's golds."""
    golds = [sample.output.strip() for sample in (*task.samples, *task.few_shots)]
    if any(metric in CORRELATIONS for metric in task.metrics):
        return NUMBERS
    if choices := _detect_choices(task, golds):
        return _choice_form(choices)
    if all(NUMBER.fullmatch(gold) for gold in golds):
        return NUMBERS
    if any(golds) and all(not gold or _are_entities(gold) for gold in golds):
        return ENTITIES
    return LINES if "set_f1" in task.metrics else TEXT


def clean(answer: str) -> str:
    """Normalize an answer; a number alone loses its thousands separators."""
    text = answers.clean(answer).strip()
    return text.replace(",", "") if re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", text) else text


def _detect_choices(task: TaskFile, golds: Sequence[str]) -> tuple[str, ...]:
    known = next((c for name, c in KNOWN_CHOICES.items() if task.name == name or task.name.startswith(f"{name}_")), ())
    known = known or next((prompt.choices for prompt in PROMPTS.values() if prompt.file_name == task.name), ())
    if known and set(golds) <= set(known):
        return known
    distinct = tuple(dict.fromkeys(golds))
    is_short = all(gold and "\n" not in gold and len(gold) <= MAX_CHOICE_CHARS for gold in distinct)
    is_repeated = len(golds) >= MIN_GOLDS_PER_CHOICE * len(distinct)
    return distinct if is_short and is_repeated and 1 < len(distinct) <= MAX_CHOICES else ()


def _choice_form(choices: Sequence[str]) -> Form:
    names = {choice: choice for choice in choices}
    are_numbers = all(choice.isdecimal() for choice in choices)

    def parse(answer: str) -> str | None:
        if answer in names:
            return answer
        if are_numbers and re.search(r"\d[.]\d", answer):  # 1.5 is neither 1 nor 5
            return None
        return answers.find_choice(re.sub(r"(?<=\d)번", "", answer) if are_numbers else answer, names)

    return Form("choice", f"one of {', '.join(choices)}", lambda answer: answer in names, parse)


def _parse_number(answer: str) -> str | None:
    return None if (value := parse_number(answer)) is None else f"{Decimal(str(value)).normalize():f}"


def _parse_entities(answer: str) -> str | None:
    return "\n".join(line for line in answers.lines_of(answer) if ENTITY.fullmatch(line)) or None


def _parse_paragraph(answer: str) -> str | None:
    """As in the published code."""
    return answer.split("\n\n")[0].strip().strip(QUOTES).strip() or None


def _are_entities(answer: str) -> bool:
    lines = split_lines(answer)
    return bool(lines) and all(ENTITY.fullmatch(line) for line in lines)


NUMBERS = Form("number", "one number", lambda answer: NUMBER.fullmatch(answer) is not None, _parse_number)
ENTITIES = Form("entities", "lines of name(class)", _are_entities, _parse_entities)
TEXT = Form("text", "any text", None, _parse_paragraph)
LINES = Form("lines", "any lines", None, lambda answer: "\n".join(answers.lines_of(answer)) or None)
