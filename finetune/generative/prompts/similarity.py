"""KLUE-STS: a number from 0 to 5 with two decimals.

An unparsed answer counts as the end of the scale farther from the gold, the worst possible answer. Counting it as the
middle of the scale, or leaving it out, could raise the correlation of a model that skips hard questions.
"""

from __future__ import annotations

import re
from functools import partial

from finetune.examples import Example
from finetune.generative.prompts.answers import after_prefixes, bare, clean, doubts, lines_of, refuses
from finetune.generative.prompts.labels import render_fields
from finetune.generative.prompts.prompt import TaskPrompt
from finetune.tasks.sts.metrics import MOST_SIMILAR

NUMBER = re.compile(
    r"(?<![A-Za-z0-9.,/])-?\d{1,9}(?:\.\d{1,20})?(?![A-Za-z0-9/%]|[.,]\d|\s?(?:개|번|명|가지|문장|단어|줄))"
)
# numbers that are not answers: the scale, and the names of the sentences
SCALE = re.compile(
    r"(?<![\d.])[01](?:\.0)?\s?점?\s?(?:[~∼〜-]|에서|부터)\s?5(?:\.0)?(?!\.?\d)\s?점?(?:\s?(?:사이|까지))?"
    r"|5(?:\.0)?\s?점\s?(?:만점|척도)|(?:between|from)\s0\s(?:and|to)\s5(?!\.?\d)"
)
OUT_OF = re.compile(r"(?<=\d)(?:\s?점)?\s?(?:/|out of)\s?5(?:\.0)?(?:\s?점)?(?![\d.])")
SENTENCE = re.compile(r"(?:문장|sentence)\s?[12](?:\s?(?:과|와|,|and)\s?(?:문장|sentence)?\s?2(?!\.))?", re.IGNORECASE)
POINTS = re.compile(r"(?<=\d)\s?점")


def render_gold(example: Example) -> str:
    """The gold with two decimals at most: "3.71", "4.0"."""
    rounded = f"{example.gold:.2f}"
    return rounded.removesuffix("0")


def parse(answer: str, example: Example) -> float | None:
    """The stated number, alone on a line or after "답:", else the only number in the text; 0 to 5."""
    lines = [_plain(line) for line in lines_of(answer)]
    stated = [number for line in lines if (number := _whole(bare(line))) is not None]
    stated += [number for part in after_prefixes(clean(answer)) for number in _numbers(_plain(part))]
    found = stated or (
        [] if refuses(answer) or doubts(answer) else [number for line in lines for number in _numbers(line)]
    )
    value = found[0] if len(set(found)) == 1 else None
    return value if value is not None and 0 <= value <= MOST_SIMILAR else None


def _plain(line: str) -> str:
    return POINTS.sub(" ", SENTENCE.sub(" ", SCALE.sub(" ", OUT_OF.sub("", line))))


def _whole(text: str) -> float | None:
    return float(text) if (found := NUMBER.match(text)) and found.end() == len(text) else None


def _numbers(text: str) -> list[float]:
    return [float(found[0]) for found in NUMBER.finditer(text)]


def far_end(example: Example) -> float:
    """0 or 5, whichever is farther from the gold; 0 without a gold."""
    return MOST_SIMILAR if example.gold is not None and example.gold < MOST_SIMILAR / 2 else 0.0


def integer_part(example: Example) -> str:
    """The integer part of the gold, 5 counted as 4; few-shot examples are balanced over it."""
    return str(min(int(example.gold), 4))


KLUE_STS = TaskPrompt(
    task="klue-sts",
    render_input=partial(render_fields, {"sentence1": "문장 1", "sentence2": "문장 2"}),
    render_gold=render_gold,
    parse=parse,
    unparsed=far_end,
    max_tokens=16,
    shot_class=integer_part,
)
