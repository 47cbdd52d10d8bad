"""KLUE-DP for generative models: a line for each numbered word, with the number of its head and the relation.

```
1 아이가        1: 3 NP_SBJ
2 밥을    ──▶   2: 3 NP_OBJ
3 먹는다.       3: 0 VP
```
A line may repeat the word between the numbers. A word without a line, with two lines that differ, or with a head or a
relation that the sentence or the tag set does not have, counts as wrong by itself, the others are scored: an answer
that was cut off keeps what it has. A wrong arc is one from the word to itself, which no gold tree has. Part-of-speech
tags, which the encoders' published scores take as inputs, are not shown.
"""

from __future__ import annotations

import re
from typing import Any

from finetune.examples import Example
from finetune.generative.prompts.answers import clean
from finetune.generative.prompts.record import Generation
from finetune.tasks.dp.metrics import DP_LABELS

MOST_TOKENS = 768  # 35 words are the most in dev, 15 tokens a line are ample

_ARC = re.compile(r"\W*([0-9]{1,4})\W+([0-9]{1,4})\W+([A-Za-z]{1,3}(?:_[A-Za-z]{3})?)\W*")
_NUMBER = re.compile(r"\W{0,9}([0-9]{1,4})(?![0-9])")


def ask(example: Example) -> str:
    """The words, numbered from 1."""
    words = example.inputs["words"]
    return "\n".join(["어절:", *(f"{number} {word}" for number, word in enumerate(words, start=1))])


def tell(example: Example) -> str:
    """``1: 3 NP_SBJ``, a line a word; 0 is the root."""
    if example.gold is None:
        raise ValueError(f"{example.guid}: no gold to tell")
    arcs = zip(example.gold["heads"], example.gold["types"], strict=True)
    return "\n".join(f"{number}: {head} {kind}" for number, (head, kind) in enumerate(arcs, start=1))


def parse(answer: str, example: Example) -> dict[str, Any] | None:
    """The tree; None where no word has a valid line."""
    words = example.inputs["words"]
    found: dict[int, set[tuple[int, str]]] = {}
    for line in clean(answer).split("\n"):
        if arc := _read_line(line, words):
            number, head, kind = arc
            found.setdefault(number, set()).add((head, kind))
    certain = {number: arcs.pop() for number, arcs in found.items() if len(arcs) == 1}
    if not certain:
        return None
    tree = unparsed(example)
    for number, (head, kind) in certain.items():
        tree["heads"][number - 1], tree["types"][number - 1] = head, kind
    return tree


def _read_line(line: str, words: list[str]) -> tuple[int, int, str] | None:
    """Number, head and relation of a line that holds them, and at most the word besides."""
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
    """Every word its own head: valid for the scores, right for none."""
    words = len(example.inputs["words"])
    return {"heads": list(range(1, words + 1)), "types": [DP_LABELS[0]] * words}


KLUE_DP = Generation(
    task="klue-dp",
    instruction=(
        "번호가 붙은 어절들로 이루어진 문장이 있습니다. "
        "어절마다 그 어절이 꾸미거나 이어지는 지배소 어절의 번호와 의존 관계를 찾으세요.\n"
        "문장 전체의 중심이 되는 어절은 지배소를 0으로 씁니다.\n"
        "의존 관계는 구의 종류(NP 체언, VP 용언, VNP 긍정 지정사구, AP 부사, DP 관형사, IP 감탄사, X 의사구, "
        "L·R 왼쪽·오른쪽 부호)이고, 기능이 있으면 밑줄로 덧붙입니다"
        "(SBJ 주어, OBJ 목적어, MOD 관형어, AJT 부사어, CMP 보어, CNJ 접속어).\n"
        f"쓸 수 있는 관계: {', '.join(DP_LABELS)}\n"
        "어절마다 한 줄씩 ‘번호: 지배소번호 관계’ 꼴로 쓰고 다른 말은 붙이지 마세요. 예: 1: 3 NP_SBJ"
    ),
    ask=ask,
    tell=tell,
    parse=parse,
    unparsed=unparsed,
    max_tokens=MOST_TOKENS,
)
