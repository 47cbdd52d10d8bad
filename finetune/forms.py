"""The form that a task's predictions have: each function says what is wrong with one in words, or None.

They look at predictions that anybody wrote, before these are scored or exported; ``Task.fault`` names the task's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from finetune.task import Example, Prediction


def fault_of_label(labels: Sequence[str], example: Example, prediction: Prediction) -> str | None:
    """One of ``labels``; ``scores``, where given, are a number for each of them."""
    value, scores = prediction
    if value not in labels:
        return f"no label {value!r}; labels here are {', '.join(labels)}"
    if scores is None or (isinstance(scores, list) and len(scores) == len(labels) and all(map(_is_finite, scores))):
        return None
    return f"'scores' should be {len(labels)} numbers, one for each of {', '.join(labels)}; found {scores!r:.60}"


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def fault_of_number(example: Example, prediction: Prediction) -> str | None:
    """A finite number."""
    value = prediction.value
    return None if _is_finite(value) else f"expected a finite number, found {value!r:.60}"


def fault_of_tags(tags: frozenset[str], example: Example, prediction: Prediction) -> str | None:
    """A list of ``tags``, one a character that is not a space."""
    value = prediction.value
    expected = sum(not character.isspace() for character in example.inputs["text"])
    if not isinstance(value, list) or len(value) != expected:
        found = f"{len(value)}" if isinstance(value, list) else repr(value)[:60]
        return f"expected {expected} tags, one a character that is not a space; found {found}"
    odd = next((tag for tag in value if not isinstance(tag, str) or tag not in tags), None)
    return None if odd is None else f"no tag {odd!r}; tags here are {', '.join(sorted(tags))}"


def fault_of_tree(labels: frozenset[str], example: Example, prediction: Prediction) -> str | None:
    """``heads`` (0 the root) and ``types`` (of ``labels``), one entry a word."""
    value = prediction.value
    words = len(example.inputs["words"])
    heads, types = (value.get("heads"), value.get("types")) if isinstance(value, dict) else (None, None)
    if not isinstance(heads, list) or not isinstance(types, list) or not len(heads) == len(types) == words:
        return f"expected 'heads' and 'types', lists of {words}, one entry a word; found {value!r:.60}"
    for head in heads:
        if type(head) is not int or not 0 <= head <= words:
            return f"no head {head!r}; heads are 0 (root) and the words 1 to {words}"
    odd = next((name for name in types if not isinstance(name, str) or name not in labels), None)
    return None if odd is None else f"no relation {odd!r}; relations here are {', '.join(sorted(labels))}"


def fault_of_text(example: Example, prediction: Prediction) -> str | None:
    """A text, empty for no answer."""
    value = prediction.value
    return None if isinstance(value, str) else f"expected a text, empty for no answer; found {value!r:.60}"


def fault_of_state(slots: frozenset[str], example: Example, prediction: Prediction) -> str | None:
    """A list of domain-slot-value."""
    value = prediction.value
    for entry in value if isinstance(value, list) else [None]:
        parts = entry.split("-", 2) if isinstance(entry, str) else []
        if len(parts) != 3 or "-".join(parts[:2]) not in slots or not parts[2]:
            found = value if entry is None else entry
            return f"expected a list of domain-slot-value with one of the {len(slots)} slots; found {found!r:.60}"
    return None
