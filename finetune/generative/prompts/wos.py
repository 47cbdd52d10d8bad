"""WoS: from the dialogue so far to one line "영역-슬롯: 값" (domain-slot: value) per slot of the state.

Yes, no and "dontcare" are written in Korean. The instruction lists the slots, but not the thousands of values in the
ontology, which corrects the spaces of a value afterwards, as for encoders. A line with one of the five domains and an
unknown slot makes the whole answer invalid. Other lines are ignored.
"""

from __future__ import annotations

import re
from itertools import chain

from finetune.examples import Example
from finetune.generative.prompts.answers import answer_text, bare, undecorate
from finetune.generative.prompts.prompt import TaskPrompt, korean_texts
from finetune.task_names import klue_facts
from finetune.tasks.wos.reader import SLOTS, split_state
from finetune.tasks.wos.values import restore_value

EMPTY = "없음"
SPEAKERS = ("상담원", "손님")
UNREADABLE = f"{SLOTS[0]}-\ufffd"  # a well-formed entry that no state has, wrong even if the gold state is empty
SAID = {"dontcare": "상관없음", "yes": "예", "no": "아니요"}
UNDERSTOOD = korean_texts("names")["wos"]
ABSENT = {EMPTY, "none", "null", "미정", "해당 없음", "언급 없음", "", "-", "?", "n/a"}  # a slot without a value
COUNTED = {"예약 명수": "명", "예약 기간": "일|박"}  # slots with a number, and the units that models add
MAX_VALUE_CHARS = 80  # the longest value of the ontology has 23
MAX_TOKENS = 512  # dev has up to 20 entries

SLOTS_OF = klue_facts("wos")["slots"]  # by domain
_DOMAINS, _SLOTS = "|".join(SLOTS_OF), "|".join(dict.fromkeys(chain.from_iterable(SLOTS_OF.values())))
_SLOT = rf"[\W_]{{0,20}}(?:\d{{1,2}}\s{{0,3}}\|\s{{0,3}})?({_DOMAINS})\s{{0,3}}[-–—]\s{{0,3}}"
_LINE = re.compile(_SLOT + r"([^:=→|\n]{1,40}?)[\"'`*\s]*(?:[:=→|]|->)(.*)")
_ENTRY = re.compile(_SLOT + r"([^-:=→\n]{1,40})\s*-(?!>)(.*)")  # as the official files write it
_NEXT = re.compile(  # of several entries on one line
    rf"[,;]\s*(?=[\"'`*]*(?:{_DOMAINS})\s*[-–—])"
    rf"|[/|·]\s{{0,3}}(?=[\"'`*]{{0,3}}(?:{_DOMAINS})\s?[-–—]\s?(?:{_SLOTS})[\"'`*]{{0,3}}\s?[-:=→|])"
)
_BY_SPELLING = {"".join(slot.split()): slot for slot in SLOTS}


def render_input(example: Example) -> str:
    """All turns so far; the last one is the user's."""
    turns = list(enumerate(example.inputs["turns"]))
    return "\n".join(["대화:", *(f"{SPEAKERS[place % 2]}: {text.strip()}" for place, text in turns if text.strip())])


def render_gold(example: Example) -> str:
    """The entries of the state, one per line."""
    entries = (split_state(entry, example.guid) for entry in example.gold)
    return "\n".join(f"{slot}: {SAID.get(value, value)}" for slot, value in entries) or EMPTY


def parse(answer: str, example: Example) -> list[str] | None:
    """The state as ``domain-slot-value``; None if it has an unknown slot, or neither an entry nor 없음 (none)."""
    state: dict[str, None] = {}
    is_state = False
    for line in (part for whole in answer_text(answer).split("\n") for part in _NEXT.split(whole)):
        is_state = is_state or bare(line) == EMPTY or line.strip() in ("[]", "{}")
        entry = undecorate(line)
        match = _ENTRY.fullmatch(entry) or _LINE.fullmatch(entry)
        if match is None:
            continue
        slot = _BY_SPELLING.get("".join(f"{match[1]}-{match[2]}".split()))
        if slot is None:
            return None
        is_state = True
        if value := _read_value(slot, match[3], example):
            state[f"{slot}-{value}"] = None
    return list(state) if is_state else None


def _read_value(slot: str, written: str, example: Example) -> str:
    """The value in the spelling of the ontology or of the dialogue; "" for a slot without a value."""
    text = written.strip().rstrip(",").strip(" \t\"'`*“”‘’{}[]|").removesuffix(".")
    if text.lower() in ABSENT:
        return ""
    if (meant := UNDERSTOOD.get(text.lower())) is not None:
        return meant
    if unit := COUNTED.get(slot.partition("-")[2]):
        number = re.fullmatch(rf"([0-9]{{1,3}})\s?(?:{unit})", text)
        text = number[1] if number else text
    if len(text) > MAX_VALUE_CHARS:
        return text
    return restore_value(text, example.inputs["ontology"].get(slot, {}), example.inputs["turns"])


WOS = TaskPrompt(
    task="wos",
    render_input=render_input,
    render_gold=render_gold,
    parse=parse,
    unparsed=lambda example: [UNREADABLE],
    max_tokens=MAX_TOKENS,
    shot_class=lambda example: " ".join(sorted({entry.partition("-")[0] for entry in example.gold})),  # domains
    fields=(("slots", "\n".join(f"{domain}: {', '.join(names)}" for domain, names in SLOTS_OF.items())),),
)
