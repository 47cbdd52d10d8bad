"""KLUE-DP: one line per numbered word, with the number of its head and the relation.

```
1 아이가        1: 3 NP_SBJ
2 밥을    ──▶   2: 3 NP_OBJ
3 먹는다.       3: 0 VP
```
A line may repeat the word between the numbers. Lists of all heads and relations are numbered. Words are read one by
one, so a truncated answer keeps its complete lines. A word is wrong if it has no line, two different lines, or an
unknown head or relation: its arc then points to the word itself, as in no gold tree. Part-of-speech tags, an input of
the published encoders, are not shown.
"""

from __future__ import annotations

import re
from typing import Any

from finetune.examples import Example
from finetune.generative.prompts.answers import answer_text, clean
from finetune.generative.prompts.prompt import TaskPrompt
from finetune.tasks.dp.metrics import DP_LABELS

MAX_TOKENS = 768  # dev has up to 35 words a sentence; 15 tokens per line

_ARC = re.compile(r"\W*([0-9]{1,4})\W+([0-9]{1,4})\W+([A-Za-z]{1,3}(?:_[A-Za-z]{3})?)\W*")
_UNNUMBERED = re.compile(r"[0-9]{1,4}\W+[A-Za-z]{1,3}(?:_[A-Za-z]{3})?\W*")
_NEXT = re.compile(r"\n|[,;]\s+(?=[0-9]{1,4}\s?:)")
_NUMBER = re.compile(r"\W{0,9}([0-9]{1,4})(?![0-9])")


def render_input(example: Example) -> str:
    """The words, numbered from 1."""
    words = example.inputs["words"]
    return "\n".join(["어절:", *(f"{number} {word}" for number, word in enumerate(words, start=1))])


def render_gold(example: Example) -> str:
    """``1: 3 NP_SBJ``, one line per word; 0 is the root."""
    arcs = zip(example.gold["heads"], example.gold["types"], strict=True)
    return "\n".join(f"{number}: {head} {kind}" for number, (head, kind) in enumerate(arcs, start=1))


def parse(answer: str, example: Example) -> dict[str, Any] | None:
    """The tree; None if no word has a valid line."""
    words = example.inputs["words"]
    arcs_by_word: dict[int, set[tuple[int, str]]] = {}
    lines = [line for line in _NEXT.split(answer_text(answer)) if line.strip()]
    if len(lines) == len(words) and all(map(_UNNUMBERED.fullmatch, lines)):
        lines = [f"{number}: {line}" for number, line in enumerate(lines, start=1)]
    for line in lines:
        if arc := _read_line(line, words):
            number, head, kind = arc
            arcs_by_word.setdefault(number, set()).add((head, kind))
    certain = {number: arcs.pop() for number, arcs in arcs_by_word.items() if len(arcs) == 1}
    if not certain:
        return None
    tree = unparsed(example)
    for number, (head, kind) in certain.items():
        tree["heads"][number - 1], tree["types"][number - 1] = head, kind
    return tree


def _read_line(line: str, words: list[str]) -> tuple[int, int, str] | None:
    """Number, head and relation of a line that contains nothing else, except the word itself."""
    start = _NUMBER.match(line)
    if start is None or not 1 <= (number := int(start[1])) <= len(words):
        return None
    rest = line[start.end() :].replace(clean(words[number - 1]), " ", 1)
    arc = _ARC.fullmatch(line) or _ARC.fullmatch(f"{number} {rest}")
    if arc is None or int(arc[1]) != number:
        return None
    head, kind = int(arc[2]), arc[3].upper()
    return (number, head, kind) if head <= len(words) and head != number and kind in DP_LABELS else None


def unparsed(example: Example) -> dict[str, Any]:
    """Every word is its own head, which is never right."""
    words = len(example.inputs["words"])
    return {"heads": list(range(1, words + 1)), "types": [DP_LABELS[0]] * words}


KLUE_DP = TaskPrompt(
    task="klue-dp",
    render_input=render_input,
    render_gold=render_gold,
    parse=parse,
    unparsed=unparsed,
    max_tokens=MAX_TOKENS,
    fields=(("labels", ", ".join(DP_LABELS)),),
)
