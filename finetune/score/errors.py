"""A readable sample of wrong predictions: the text, what is right, what was predicted, only where the two differ.

Where a prediction has probabilities the most certain errors come first, in KLUE-STS the largest distances; elsewhere a
seeded draw decides. At most one error comes from a group (a dialogue, a passage), or one long dialogue would fill the
page. The price of "most certain first": it shows the worst of labels and model, not the average error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from finetune.task import Example, Row, Task

MOST_ERRORS = 10  # of one task, encoder and seed
DISTANT_FROM = 1.0  # an STS prediction so many points (of 5) away counts as wrong
AROUND_ANSWER = 60  # characters of a passage shown on each side of an answer
LONGEST_TEXT = 400  # characters


@dataclass(frozen=True, slots=True)
class Sample:
    """One wrong prediction as people read it; ``value`` is what the sample is sorted by, None where it was drawn."""

    guid: str
    texts: dict[str, str]  # name of the field to text
    gold: list[str]  # only what the prediction lacks or has otherwise
    predicted: list[str]
    value: float | None = None


def find_errors(
    task: Task, examples: Sequence[Example], rows: Sequence[Row], most: int = MOST_ERRORS, seed: int = 42
) -> dict[str, Any]:
    """The content of ``errors.json``; the same for the same rows in any order.

    Args:
        examples: as read from the file, one for each row.
        seed: draws the sample where nothing sorts it.

    Returns:
        ``wrong`` of ``n`` rows with a gold, ``sorted_by`` ("probability", "distance" or None), and ``samples``, at most
        ``most``, each as ``Sample``. A KLUE-STS pair is wrong from ``DISTANT_FROM`` on, a question where its exact
        match is below 100, everything else where it differs at all.
    """
    pairs = [pair for pair in zip(examples, rows, strict=True) if pair[1].gold is not None]
    wrong = [pair for pair in pairs if _is_wrong(task, pair[1])]
    values = {row.guid: _value(task.name, row) for _, row in wrong}
    order = sorted(wrong, key=lambda pair: (-(values[pair[1].guid] or 0.0), _draw(seed, pair[1].guid)))
    first_of_group: dict[str, tuple[Example, Row]] = {}
    for pair in order:
        first_of_group.setdefault(task.group(pair[0]), pair)
    shown = list(first_of_group.values())[:most]
    sorted_by = None
    if any(value is not None for value in values.values()):
        sorted_by = "distance" if task.name == "klue-sts" else "probability"
    samples = [asdict(_describe(task.name, example, row, values[row.guid])) for example, row in shown]
    return {"task": task.name, "n": len(pairs), "wrong": len(wrong), "sorted_by": sorted_by, "samples": samples}


def _is_wrong(task: Task, row: Row) -> bool:
    if task.name == "klue-sts":
        return abs(row.gold - row.prediction) >= DISTANT_FROM
    if task.name == "klue-mrc":
        return task.score([row])["exact_match"] < 100
    if task.name == "wos":
        return set(row.gold) != set(row.prediction)
    return bool(row.gold != row.prediction)


def _value(task: str, row: Row) -> float | None:
    """What the errors of a task are sorted by, the highest first."""
    if task == "klue-sts":
        return round(abs(row.gold - row.prediction), 4)
    return max(row.scores) if isinstance(row.scores, list) and row.scores else None


def _draw(seed: int, guid: str) -> bytes:
    return hashlib.blake2b(f"{seed}:errors:{guid}".encode(), digest_size=8).digest()


def _describe(task: str, example: Example, row: Row, value: float | None) -> Sample:
    texts, gold, predicted = DESCRIPTIONS[task](example, row)
    shown = {name: " ".join(text.split()) for name, text in texts.items() if text}  # the first system turn is empty
    cut = {name: text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…" for name, text in shown.items()}
    return Sample(row.guid, cut, gold, predicted, value)


Described = tuple[dict[str, str], list[str], list[str]]


def _fields(*names: str) -> Callable[[Example, Row], Described]:
    """For tasks whose inputs are texts and whose prediction is one label."""
    return lambda example, row: ({name: example.inputs[name] for name in names}, [row.gold], [row.prediction])


def _similarity(example: Example, row: Row) -> Described:
    texts = {name: example.inputs[name] for name in ("sentence1", "sentence2")}
    return texts, [f"{row.gold:.2f}"], [f"{row.prediction:.2f}"]


def _relation(example: Example, row: Row) -> Described:
    sentence = example.inputs["sentence"]
    subject, object_ = (sentence[slice(*example.inputs[name])] for name in ("subject", "object"))
    return {"sentence": sentence, "subject → object": f"{subject} → {object_}"}, [row.gold], [row.prediction]


def _entities(example: Example, row: Row) -> Described:
    text = example.inputs["text"]
    gold, predicted = (find_entities(text, tags) for tags in (row.gold, row.prediction))

    def only(some: list[tuple[str, int, int]], others: list[tuple[str, int, int]]) -> list[str]:
        return [f"{text[begin:end]} {kind}" for kind, begin, end in some if (kind, begin, end) not in others]

    return {"sentence": text}, only(gold, predicted), only(predicted, gold)


def find_entities(text: str, tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Type, first and last-plus-one character in ``text`` of each entity, ``tags`` being those of its non-spaces.

    A stray ``I-`` (no entity by the metric) is given with its type in brackets, so that people see it.
    """
    positions = [number for number, character in enumerate(text) if not character.isspace()]
    entities: list[tuple[str, int, int]] = []
    previous = "O"
    for position, tag in zip(positions, tags, strict=False):  # klue-baseline may predict fewer tags than characters
        prefix, _, kind = tag.partition("-")
        if prefix == "I" and previous.endswith(f"-{kind}"):
            entities[-1] = (*entities[-1][:2], position + 1)
        elif prefix != "O":
            entities.append((kind if prefix == "B" else f"({kind})", position, position + 1))
        previous = tag
    return entities


def _arcs(example: Example, row: Row) -> Described:
    words = example.inputs["words"]

    def arc(word: str, head: int | None, kind: str | None) -> str:
        return f"{word} → {'–' if head is None else words[head - 1] if head else 'root'} {kind or ''}".rstrip()

    columns = zip_longest(words, *(tree[key] for tree in (row.gold, row.prediction) for key in ("heads", "types")))
    differing = [column for column in columns if column[1:3] != column[3:5]]
    gold = [arc(word, head, kind) for word, head, kind, _, _ in differing]
    return {"sentence": " ".join(words)}, gold, [arc(word, head, kind) for word, _, _, head, kind in differing]


def _answer(example: Example, row: Row) -> Described:
    context, start = example.inputs["context"], example.inputs.get("start")
    length = len(row.gold["answers"][0]) if row.gold["answers"] else len(row.prediction)
    place = start if start is not None else max(0, context.find(row.prediction))
    begin, end = max(0, place - AROUND_ANSWER), place + length + AROUND_ANSWER
    passage = f"{'…' if begin else ''}{context[begin:end]}{'…' if end < len(context) else ''}"
    gold = list(dict.fromkeys(row.gold["answers"])) or ["no answer"]
    return {"question": example.inputs["question"], "passage": passage}, gold, [row.prediction or "no answer"]


def _state(example: Example, row: Row) -> Described:
    *_, system, user = example.inputs["turns"]
    missed = [value for value in row.gold if value not in row.prediction]
    return {"system": system, "user": user}, missed, [value for value in row.prediction if value not in row.gold]


DESCRIPTIONS: Mapping[str, Callable[[Example, Row], Described]] = {
    "ynat": _fields("title"),
    "klue-sts": _similarity,
    "klue-nli": _fields("premise", "hypothesis"),
    "klue-ner": _entities,
    "klue-re": _relation,
    "klue-dp": _arcs,
    "klue-mrc": _answer,
    "wos": _state,
}
