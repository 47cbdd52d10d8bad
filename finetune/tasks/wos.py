"""WoS: dialogue state tracking over 45 slots (KLUE paper 3.8, 5.1).

An example is a user turn; the model sees `[CLS] earlier turns [SEP] system turn [SEP] user turn [SEP]`, the oldest
tokens cut off. A gate decides for each slot between absent, dontcare, yes, no and a value to be spelt. A spelt value
becomes the ontology's own string, or else the dialogue's, wherever the two differ in white space only.
Legend: ``B`` turns, ``K`` slots to spell, ``T`` tokens of a value.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from finetune.config import BadInput
from finetune.files import read_json, read_records
from finetune.metrics.wos import score
from finetune.padding import IGNORED, pad_inputs
from finetune.task import Example, Feature, Files, Hyperparameters, Prediction, Task

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerBase

log = logging.getLogger(__name__)

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
    return "".join(text.split())


def find_ontology(path: Path) -> Path | None:
    """``ontology.json`` beside a data file, or in a benchmark folder that lies beside the file's own."""
    folders = [path.parent, *sorted(path.absolute().parent.parent.parent.glob(f"*/{path.parent.name}"))]
    names = [folder / name for folder in folders for name in ("ontology.json", "ontology.json.zst")]
    return next((name for name in names if name.is_file()), None)


def read_ontology(path: Path) -> Ontology:
    """All values of each slot.

    Raises:
        BadInput: not a map from the 45 known slots to lists of texts.
    """
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


def split_state(entry: Any, place: str) -> tuple[str, str]:
    """``"식당-예약 시간-18:30"`` to its slot and its value, which may hold hyphens itself."""
    parts = entry.split("-", 2) if isinstance(entry, str) else []
    if len(parts) != 3 or f"{parts[0]}-{parts[1]}" not in SLOTS or not parts[2]:
        raise BadInput(
            f"{place}: state {entry!r} is not domain-slot-value with one of the {len(SLOTS)} slots of WoS v1.1"
        )
    return f"{parts[0]}-{parts[1]}", parts[2]


def read_wos(path: Path) -> list[Example]:
    """User turns of an official file, guid ``<dialogue>-<number of the user turn>``.

    ``inputs``: ``dialogue``; ``turns``, all texts so far, system and user in turns, the first one empty; ``ontology``.
    """
    where = find_ontology(path)
    if where is None:
        log.warning("%s: no ontology.json beside it; values are spelt as generated, their spaces may be wrong", path)
    ontology = read_ontology(where) if where else {}
    examples = [example for place, record in read_records(path) for example in read_dialogue(record, ontology, place)]
    if not examples:
        raise BadInput(f"{path}: no user turn found; expected the WoS v1.1 format")
    return examples


def read_dialogue(record: Mapping[str, Any], ontology: Ontology, place: str) -> Iterator[Example]:
    if not isinstance(record.get("dialogue"), list):
        raise BadInput(f"{place}: expected a list of turns under 'dialogue'")
    turns, users = [""], 0
    for turn in record["dialogue"]:
        role = "user" if len(turns) % 2 else "sys"
        if not isinstance(turn, dict) or turn.get("role") != role or not isinstance(turn.get("text"), str):
            raise BadInput(f"{place}: turn {len(turns)} of 'dialogue' should have role {role!r} and a text")
        turns.append(turn["text"])
        if role == "user":
            here = f"{place}, turn {len(turns) - 1}"
            if not isinstance(turn.get("state"), list):
                raise BadInput(f"{here}: expected a list under 'state'")
            for entry in turn["state"]:
                split_state(entry, here)
            inputs = {"dialogue": record["guid"], "turns": tuple(turns), "ontology": ontology}
            yield Example(f"{record['guid']}-{users}", list(turn["state"]), inputs)
            users += 1


def tokenize_once(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> dict[str, list[int]]:
    unique = list(dict.fromkeys(texts))
    return dict(zip(unique, tokenizer(unique, add_special_tokens=False)["input_ids"], strict=True)) if unique else {}


def featurize_wos(
    examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, max_tokens: int, is_training: bool
) -> list[Feature]:
    """One feature a turn: ``gates`` of all slots and ``targets``, slot number to the tokens of its value and [SEP]."""
    states = [dict(split_state(entry, example.guid) for entry in example.gold) for example in examples]
    turns = tokenize_once([text for example in examples for text in example.inputs["turns"]], tokenizer)
    values = tokenize_once([value for state in states for value in state.values()], tokenizer)
    begin, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    features = []
    for number, (example, state) in enumerate(zip(examples, states, strict=True)):
        texts = example.inputs["turns"]
        history = texts if len(texts) > 2 else ("", *texts)  # an empty history has its [SEP], too
        ids = [token for text in history for token in (*turns[text], end)]
        gates = {slot: value if value in SPOKEN else "ptr" for slot, value in state.items()}
        spelt = [slot for slot in SLOTS if gates.get(slot) == "ptr"]
        features.append(
            {
                "input_ids": [begin, *ids[-(max_tokens - 1) :]],
                "example": number,
                "gates": [GATES.index(gates.get(slot, "none")) for slot in SLOTS],
                "targets": {SLOTS.index(slot): [*values[state[slot]], end] for slot in spelt},
            }
        )
    return features


def collate_wos(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Batch as ``StateGenerator.forward`` describes it."""
    width = max(1, *(len(feature["targets"]) for feature in features))
    steps = max([len(ids) for feature in features for ids in feature["targets"].values()], default=1)
    slots_BK = np.zeros((len(features), width), dtype=np.int64)
    targets_BKT = np.full((len(features), width, steps), IGNORED)
    for row, feature in enumerate(features):
        for k, (slot, ids) in enumerate(feature["targets"].items()):
            slots_BK[row, k] = slot
            targets_BKT[row, k, : len(ids)] = ids
    gates_BS = np.array([feature["gates"] for feature in features])
    return {**pad_inputs(features, pad_id), "gates": gates_BS, "slots": slots_BK, "targets": targets_BKT}


def spell_value(ids: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> str:
    """Text of a generated value; a colon has no spaces around it (18:30)."""
    return re.sub(r"\s*:\s*", ":", str(tokenizer.decode(list(ids)))).strip()


def build_wos(encoder: str, tokenizer: PreTrainedTokenizerBase) -> nn.Module:
    """Encoder and dialogue state generator."""
    from finetune.encoder import load_encoder
    from finetune.heads.dialogue import StateGenerator

    names = [slot.replace("-", " ") for slot in SLOTS]
    pieces = tokenizer(names, add_special_tokens=False)["input_ids"]
    return StateGenerator(
        load_encoder(encoder),
        slots=list(zip(SLOTS, pieces, strict=True)),
        gates=len(GATES),
        spell_gate=PTR,
        end_id=tokenizer.sep_token_id,
        spell=partial(spell_value, tokenizer=tokenizer),
    )


def restore_value(text: str, known: Mapping[str, Sequence[str]], turns: Sequence[str]) -> str:
    """The value that a spelt text stands for.

    The ontology decides about all its spaces. Where it knows no such value, the latest turn that writes it decides
    about the spaces beside punctuation, which tokenizers add.
    """
    values = known.get(squeeze(text), ())
    if values:
        return text if text in values else values[0]
    parts = re.findall(r"\w+|[^\w\s]", text)
    if not parts:
        return text
    gaps = [r"\s+" if a[-1].isalnum() and b[0].isalnum() else r"\s*" for a, b in pairwise(parts)]
    pattern = re.compile("".join(re.escape(part) + gap for part, gap in zip(parts, [*gaps, ""], strict=True)))
    found = (match.group() for turn in reversed(turns) if (match := pattern.search(turn)))
    return next(found, text)


def decode_wos(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[Prediction]:
    """State of each turn as ``domain-slot-value``, in the slots' order; a value spelt as nothing is left out."""
    predictions: list[Prediction] = [Prediction([])] * len(examples)
    for feature, raw in zip(features, raws, strict=True):
        inputs, state = examples[feature["example"]].inputs, []
        for slot, gate in zip(SLOTS, raw["gates"], strict=True):
            value = GATES[gate]
            if gate == PTR:
                value = restore_value(raw["values"][slot], inputs["ontology"].get(slot, {}), inputs["turns"])
            if gate != NONE and value:
                state.append(f"{slot}-{value}")
        predictions[feature["example"]] = Prediction(state)
    return predictions


def predict_trivially(train: Sequence[Example], examples: Sequence[Example]) -> list[Prediction]:
    """An empty state at every turn."""
    return [Prediction([]) for _ in examples]


def dialogue_of(example: Example) -> str:
    return str(example.inputs["dialogue"])


WOS = Task(
    name="wos",
    files=Files("wos-v1.1/wos-v1.1_train.json", "wos-v1.1/wos-v1.1_dev.json", ("wos-v1.1/ontology.json",)),
    read=read_wos,
    featurize=featurize_wos,
    collate=collate_wos,
    model=build_wos,
    decode=decode_wos,
    score=score,
    trivial=predict_trivially,
    select_by="slot_micro_f1",
    defaults=Hyperparameters(lr=3e-5, epochs=5, batch_size=16, warmup_share=0.1, weight_decay=0.01, max_tokens=510),
    paper_dev={
        "klue/bert-base": {"joint_goal_acc": 49.34, "slot_micro_f1": 92.07},
        "klue/roberta-small": {"joint_goal_acc": 45.92, "slot_micro_f1": 91.25},
        "klue/roberta-base": {"joint_goal_acc": 47.40, "slot_micro_f1": 91.67},
        "klue/roberta-large": {"joint_goal_acc": 50.25, "slot_micro_f1": 92.03},
    },
    group=dialogue_of,
)
