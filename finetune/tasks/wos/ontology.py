"""The 45 slots of WoS v1.1, the gates of a slot, and ``ontology.json`` with the values of each slot (KLUE paper 3.8).

``finetune/klue.yaml`` lists the slots. The ontology is optional: with it a generated value gets its official spelling
(``finetune.tasks.wos.values``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from finetune.data.custom_files import squeeze
from finetune.data.files import read_json
from finetune.task_names import klue_facts

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
    found = find_slot(entry)
    if found is None:
        raise BadInput(f"{place}: state {entry!r} is not domain-slot-value with one of the {len(SLOTS)} slots of WoS")
    return found
