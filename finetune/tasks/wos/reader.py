"""WoS v1.1 files: the 45 slots, ``ontology.json``, dialogues as user turns, and turns as model inputs (paper 3.8).

The ontology is optional: with it a generated value gets its official spelling (``finetune.tasks.wos.values``). An
example is a user turn with all turns before it. The model input is `[CLS] earlier turns [SEP] system turn [SEP] user
turn [SEP]`: every turn ends with [SEP], also an empty history and the empty first system turn; the oldest tokens are
cut off (paper 5.1; published so).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from corpus.documents.section import warn_once
from finetune.data.custom_files import squeeze
from finetune.data.files import format_json, read_json, read_records
from finetune.examples import IGNORED, Example, Feature, pad_inputs, pad_rows
from finetune.task_names import klue_facts

log = logging.getLogger(__name__)

FOLDER, NAME = "wos-v1.1", "ontology.json"  # as in the KLUE repository
SLOTS = tuple(f"{domain}-{slot}" for domain, slots in klue_facts("wos")["slots"].items() for slot in slots)
GATES = ("none", "dontcare", "ptr", "yes", "no")
SPOKEN = ("dontcare", "yes", "no")  # values that a gate alone says
NONE, PTR = GATES.index("none"), GATES.index("ptr")

# Slot to whitespace-free spelling to the values spelt so (월드컵경기장역 and 월드컵 경기장역 are two).
Ontology = Mapping[str, Mapping[str, Sequence[str]]]


def find_ontology(path: Path) -> Path | None:
    """``ontology.json`` in the folder of a data file, or in a neighboring benchmark folder."""
    folders = path.absolute().parent.parent.parent.glob(f"*/{FOLDER}") if path.absolute().parent.name == FOLDER else ()
    names = [folder / name for folder in (path.parent, *sorted(folders)) for name in (NAME, f"{NAME}.zst")]
    return next((name for name in names if name.is_file()), None)


def read_ontology(path: Path) -> Ontology:
    """All values of each slot; ``BadInput`` unless it is a map from the 45 slots to lists of texts."""
    values = read_json(path)
    if not isinstance(values, dict) or set(values) != set(SLOTS):
        odd = sorted(set(values) ^ set(SLOTS))[:3] if isinstance(values, dict) else type(values).__name__
        raise BadInput(f"{path}: not the {len(SLOTS)} slots of WoS v1.1 ({odd}); copy the file again")
    ontology: dict[str, dict[str, list[str]]] = {slot: {} for slot in SLOTS}
    for slot, texts in values.items():
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise BadInput(f"{path}: values of {slot!r} are not a list of texts")
        for text in texts:
            ontology[slot].setdefault(squeeze(text), []).append(text)
    return ontology


def find_slot(entry: Any) -> tuple[str, str] | None:
    """``"식당-예약 시간-18:30"`` as slot and value, which may contain hyphens itself; None for anything else."""
    parts = entry.split("-", 2) if isinstance(entry, str) else []
    slot = "-".join(parts[:2])
    return (slot, parts[2]) if len(parts) == 3 and slot in SLOTS and parts[2] else None


def drop_absent(state: Any) -> Any:
    """A state without slots of the value "none", which count as absent in golds and predictions."""
    return [entry for entry in state if not str(entry).endswith("-none")] if isinstance(state, list) else state


def split_state(entry: Any, place: str) -> tuple[str, str]:
    """``find_slot``; ``BadInput`` if there is no known slot."""
    slot_and_value = find_slot(entry)
    if slot_and_value is None:
        raise BadInput(f"{place}: state {entry!r} is not domain-slot-value with one of the {len(SLOTS)} slots of WoS")
    return slot_and_value


def read(path: Path) -> list[Example]:
    """User turns of an official file, guid ``<dialogue>-<number of the user turn>``.

    ``inputs``: ``dialogue``; ``turns``, alternating system and user texts so far, the first one empty; ``ontology``.
    The gold is the list under "state", or None if no turn of the file has one.
    """
    where = find_ontology(path)
    if where is None:
        log.warning(
            "%s: ontology.json not found in this folder. Generated values are not normalized, so their spaces may be "
            "wrong and lower the score. Copy the official ontology.json there.",
            path,
        )
    ontology = read_ontology(where) if where else {}
    records = read_records(path)
    dialogues = (record["dialogue"] for _, record in records if isinstance(record.get("dialogue"), list))
    labelled = any(isinstance(turn, dict) and "state" in turn for dialogue in dialogues for turn in dialogue)
    examples = [example for place, record in records for example in _read_dialogue(record, ontology, labelled, place)]
    if not examples:
        raise BadInput(f"{path}: no user turn found; expected the WoS v1.1 format")
    if count := sum(len(example.gold or ()) - len(drop_absent(example.gold or [])) for example in examples):
        warn_once(f"{path}: {count:,} state values are 'none'; these slots count as absent")
    return [replace(example, gold=drop_absent(example.gold)) for example in examples]


def _read_dialogue(record: Mapping[str, Any], ontology: Ontology, labelled: bool, place: str) -> Iterator[Example]:
    if not isinstance(record.get("dialogue"), list):
        raise BadInput(f"{place}: expected a list of turns under 'dialogue'")
    turns, users = [""], 0
    for turn in record["dialogue"]:
        role = "user" if len(turns) % 2 else "sys"
        if not isinstance(turn, dict) or turn.get("role") != role or not isinstance(turn.get("text"), str):
            raise BadInput(f"{place}: turn {len(turns)} of 'dialogue' should have role {role!r} and a text")
        turns.append(turn["text"])
        if role == "user":
            gold = _gold_of(turn, f"{place}, turn {len(turns) - 1}") if labelled else None
            inputs = {"dialogue": record["guid"], "turns": tuple(turns), "ontology": ontology}
            yield Example(f"{record['guid']}-{users}", gold, inputs)
            users += 1


def _gold_of(turn: Mapping[str, Any], place: str) -> list[str]:
    if not isinstance(turn.get("state"), list):
        raise BadInput(f"{place}: expected a list under 'state'")
    slots = [split_state(entry, place)[0] for entry in turn["state"]]
    if len(set(slots)) < len(slots):
        log.warning("%s: 'state' has two values of one slot; the last one is learned, both are scored", place)
    return list(turn["state"])


def join_turns(
    turns: Sequence[str], pieces: Mapping[str, Sequence[int]], begin: int, end: int, max_tokens: int
) -> list[int]:
    """Ids of a dialogue so far, at most ``max_tokens``; ``begin`` and ``end`` are [CLS], always kept, and [SEP]."""
    history = turns if len(turns) > 2 else ("", *turns)  # an empty history has its [SEP], too
    ids = [token for text in history for token in (*pieces[text], end)]
    return [begin, *ids[-(max_tokens - 1) :]]


def collate(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Batch as ``StateGenerator.forward`` describes it."""
    width = max(1, *(len(feature["targets"]) for feature in features))
    targets = [ids for f in features for ids in [*f["targets"].values(), *[[]] * (width - len(f["targets"]))]]
    targets_NT = pad_rows(targets if any(targets) else [[IGNORED]] * len(targets), IGNORED)
    return {
        **pad_inputs(features, pad_id),
        "gates": np.array([feature["gates"] for feature in features]),
        "slots": pad_rows([list(feature["targets"]) or [0] for feature in features], 0),
        "targets": targets_NT.reshape(len(features), width, -1),
    }


def write(source: Path, values: Mapping[str, Any], target: Path) -> None:
    """Write the official file with the predicted state of each guid under "state" of its user turn."""
    dialogues = read_json(source)
    for dialogue in dialogues:
        users = [turn for turn in dialogue["dialogue"] if turn["role"] == "user"]
        for number, turn in enumerate(users):
            turn["state"] = list(values[f"{dialogue['guid']}-{number}"])
    atomic_write(target, format_json(dialogues))


def convert(rows: Sequence[dict[str, Any]], split: str) -> str:
    """The Hub's rows as an official file, in which only user turns have a state."""
    for turn in (turn for row in rows for turn in row["dialogue"] if turn["role"] == "sys"):
        turn.pop("state", None)
    return format_json(rows)
