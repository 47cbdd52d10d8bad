"""WoS v1.1: dialogues as user turns, turns as model inputs, states, the 45 slots and the ontology (KLUE paper 3.8).

An example is a user turn with all turns before it. The model sees `[CLS] earlier turns [SEP] system turn [SEP] user
turn [SEP]`, every turn closed by [SEP], an empty history and the empty first system turn, too; the oldest tokens are
cut off (paper 5.1; published so). The ontology is optional: with it a value gets back its own spaces
(``finetune.tasks.wos.values``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from finetune.data.files import format_json, read_json, read_records
from finetune.data.formats import name_text
from finetune.examples import Example

log = logging.getLogger(__name__)

FOLDER, NAME = "wos-v1.1", "ontology.json"  # as in the KLUE repository
SLOTS = (
    "관광-경치 좋은", "관광-교육적", "관광-도보 가능", "관광-문화 예술", "관광-역사적", "관광-이름", "관광-종류",
    "관광-주차 가능", "관광-지역", "숙소-가격대", "숙소-도보 가능", "숙소-수영장 유무", "숙소-스파 유무",
    "숙소-예약 기간", "숙소-예약 명수", "숙소-예약 요일", "숙소-이름", "숙소-인터넷 가능", "숙소-조식 가능",
    "숙소-종류", "숙소-주차 가능", "숙소-지역", "숙소-헬스장 유무", "숙소-흡연 가능", "식당-가격대", "식당-도보 가능",
    "식당-야외석 유무", "식당-예약 명수", "식당-예약 시간", "식당-예약 요일", "식당-이름", "식당-인터넷 가능",
    "식당-종류", "식당-주류 판매", "식당-주차 가능", "식당-지역", "식당-흡연 가능", "지하철-도착지",
    "지하철-출발 시간", "지하철-출발지", "택시-도착 시간", "택시-도착지", "택시-종류", "택시-출발 시간", "택시-출발지",
)  # fmt: skip
GATES = ("none", "dontcare", "ptr", "yes", "no")
SPOKEN = ("dontcare", "yes", "no")  # values that a gate alone says
NONE, PTR = GATES.index("none"), GATES.index("ptr")

# Slot to whitespace-free spelling to the values spelt so (월드컵경기장역 and 월드컵 경기장역 are two).
Ontology = Mapping[str, Mapping[str, Sequence[str]]]


def squeeze(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())


def find_ontology(path: Path) -> Path | None:
    """``ontology.json`` beside a data file, or in a benchmark folder that lies beside the file's own."""
    beside = path.absolute().parent.parent.parent.glob(f"*/{FOLDER}") if path.absolute().parent.name == FOLDER else ()
    names = [folder / name for folder in (path.parent, *sorted(beside)) for name in (NAME, f"{NAME}.zst")]
    return next((name for name in names if name.is_file()), None)


def read_ontology(path: Path) -> Ontology:
    """All values of each slot; ``BadInput`` if that is no map from the 45 slots to lists of texts."""
    values = read_json(path)
    if not isinstance(values, dict) or set(values) != set(SLOTS):
        odd = sorted(set(values) ^ set(SLOTS))[:3] if isinstance(values, dict) else type(values).__name__
        raise BadInput(f"{path}: expected a map with the {len(SLOTS)} slots of WoS v1.1; differs in {odd}")
    ontology: dict[str, dict[str, list[str]]] = {slot: {} for slot in SLOTS}
    for slot, texts in values.items():
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise BadInput(f"{path}: values of {slot!r} are not a list of texts")
        for text in texts:
            ontology[slot].setdefault(squeeze(text), []).append(text)
    return ontology


def find_slot(entry: Any) -> tuple[str, str] | None:
    """``"식당-예약 시간-18:30"`` as slot and value, which may hold hyphens itself; None for anything else."""
    parts = entry.split("-", 2) if isinstance(entry, str) else []
    slot = "-".join(parts[:2])
    return (slot, parts[2]) if len(parts) == 3 and slot in SLOTS and parts[2] else None


def split_state(entry: Any, place: str) -> tuple[str, str]:
    """``find_slot``; ``BadInput`` where there is none."""
    found = find_slot(entry)
    if found is None:
        raise BadInput(
            f"{place}: state {entry!r} is not domain-slot-value with one of the {len(SLOTS)} slots of WoS v1.1"
        )
    return found


def read(path: Path) -> list[Example]:
    """User turns of an official file, guid ``<dialogue>-<number of the user turn>``.

    ``inputs``: ``dialogue``; ``turns``, all texts so far, system and user in turns, the first one empty; ``ontology``.
    The gold is the list under "state", or None in a file where no turn has one.
    """
    where = find_ontology(path)
    if where is None:
        log.warning("%s: no ontology.json beside it; values are spelt as generated, their spaces may be wrong", path)
    ontology = read_ontology(where) if where else {}
    records = read_records(path)
    dialogues = (record["dialogue"] for _, record in records if isinstance(record.get("dialogue"), list))
    labelled = any(isinstance(turn, dict) and "state" in turn for dialogue in dialogues for turn in dialogue)
    examples = [example for place, record in records for example in _read_dialogue(record, ontology, labelled, place)]
    if not examples:
        raise BadInput(f"{path}: no user turn found; expected the WoS v1.1 format")
    return examples


def _read_dialogue(record: Mapping[str, Any], ontology: Ontology, labelled: bool, place: str) -> Iterator[Example]:
    if not isinstance(record.get("dialogue"), list):
        said = name_text(format_json([record]))
        raise BadInput(f"{place}: expected a list of turns under 'dialogue'" + (f"; {said}" if said else ""))
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


def write(source: Path, values: Mapping[str, Any], target: Path) -> None:
    """The official file again, the predicted state of each guid under "state" of its user turn."""
    dialogues = read_json(source)
    for dialogue in dialogues:
        users = [turn for turn in dialogue["dialogue"] if turn["role"] == "user"]
        for number, turn in enumerate(users):
            turn["state"] = list(values[f"{dialogue['guid']}-{number}"])
    atomic_write(target, format_json(dialogues))


def convert(rows: Sequence[dict[str, Any]], split: str) -> str:
    """The Hub's rows as an official file, where only the user's turns have a state."""
    for turn in (turn for row in rows for turn in row["dialogue"] if turn["role"] == "sys"):
        turn.pop("state", None)
    return format_json(rows)
