"""WoS on new text: a dialogue of alternating user and system turns; the state is that after the last user turn.

New text has no ontology, so values have the spaces of the dialogue, or are kept as generated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corpus.documents.errors import BadInput
from finetune.examples import Example, Prediction
from finetune.task import Inference, RawInput
from finetune.tasks.text_input import nfc
from finetune.tasks.wos.ontology import find_slot

ROLES = ("user", "sys")


def parse_input(raw: RawInput, where: str) -> dict[str, Any] | None:
    """``turns``, all texts in order, after an empty first system turn; a system turn at the end is dropped."""
    if isinstance(raw, Mapping):
        turns = raw.get("dialogue")
        if not isinstance(turns, list):
            raise BadInput(f"{where}: 'dialogue' should be a list of turns, user and system alternating")
    else:
        turns = raw.split("\t") if isinstance(raw, str) else list(raw)
    texts = [_text_of(turn, ROLES[number % 2], f"{where}, turn {number + 1}") for number, turn in enumerate(turns)]
    if not any(map(str.strip, texts)):
        return None
    if blank := [number for number, text in enumerate(texts, start=1) if not text.strip()]:
        raise BadInput(f"{where}, turn {blank[0]}: it is empty; user and system take turns, each with a text")
    users = texts if len(texts) % 2 else texts[:-1]
    return {"dialogue": where, "turns": ("", *users), "ontology": {}}


def _text_of(turn: Any, role: str, where: str) -> str:
    """The text of a turn, which is one or an object with ``role`` and ``text``."""
    text = turn.get("text") if isinstance(turn, Mapping) and turn.get("role", role) == role else turn
    if not isinstance(text, str):
        raise BadInput(f"{where}: expected a text of role {role!r}, the user's first; found {turn!r:.60}")
    return nfc(text)


def to_result(example: Example, prediction: Prediction) -> dict[str, Any]:
    """``turns``, and ``state``: slot (``식당-지역``) to value."""
    return {"turns": list(example.inputs["turns"][1:]), "state": dict(filter(None, map(find_slot, prediction.value)))}


def format_lines(result: Mapping[str, Any]) -> list[str]:
    """The last turn, and below it each slot and its value."""
    state = [f"  {slot}\t{value}" for slot, value in result["state"].items()]
    return [result["turns"][-1], *(state or ["  empty state"])]


INFERENCE = Inference(parse_input, to_result, format_lines, is_block=True)
