"""WoS: dialogue state tracking over 45 slots (KLUE paper 3.8, 5.1).

An example is a user turn with the whole dialogue before it. A gate decides for each slot between absent, dontcare, yes,
no and a generated value; a generated value is replaced by the matching string of the ontology, or else of the dialogue.
Protocol ``klue-baseline``: ``finetune.tasks.wos.published``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from corpus.documents.errors import BadInput
from finetune.data.custom_files import nfc
from finetune.examples import ErrorView, Example, Feature, Module, Prediction, Row, Tokenizer
from finetune.task import Files, HubLayout, Inference, Inspection, RawInput, Task, published_facts
from finetune.tasks.labels import build_head
from finetune.tasks.wos import reader
from finetune.tasks.wos.metrics import score, tables
from finetune.tasks.wos.published import QUIRKS
from finetune.tasks.wos.reader import GATES, PTR, SLOTS, SPOKEN, drop_absent, find_slot, split_state
from finetune.tasks.wos.values import cut_readably, find_unknown, make_speller, restore_value, state_fields

log = logging.getLogger(__name__)

MAX_STEPS = 64  # tokens of a value, its end included; 9 are the most in dev with KLUE's vocabulary


def featurize(examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool) -> list[Feature]:
    """One feature per turn: ``gates`` of all slots and ``targets``, slot number to the tokens of its value and
    [SEP]."""
    states = [dict(split_state(entry, example.guid) for entry in example.gold or ()) for example in examples]
    turns = cut_readably([text for example in examples for text in example.inputs["turns"]], tokenizer)
    values = cut_readably([value for state in states for value in state.values()], tokenizer)
    if too_long := [value for value, pieces in values.items() if len(pieces.ids) >= MAX_STEPS]:
        log.warning("%d values are longer than %d tokens and cannot be spelt: %s", len(too_long), MAX_STEPS, too_long)
    ids = {text: pieces.ids for text, pieces in turns.items()}
    ontologies = {id(example.inputs["ontology"]): example.inputs["ontology"] for example in examples}.values()
    known = (value for ontology in ontologies for values in ontology.values() for value in values)
    unknown = find_unknown(known, tokenizer)
    begin, end = int(tokenizer.cls_token_id), int(tokenizer.sep_token_id)
    features = []
    for number, (example, state) in enumerate(zip(examples, states, strict=True)):
        if is_training and example.gold is None:
            continue
        texts = example.inputs["turns"]
        gates = {slot: value if value in SPOKEN else "ptr" for slot, value in state.items()}
        spelt = [slot for slot in SLOTS if gates.get(slot) == "ptr"]
        features.append(
            {
                "input_ids": reader.join_turns(texts, ids, begin, end, max_tokens),
                "example": number,
                "gates": [GATES.index(gates.get(slot, "none")) for slot in SLOTS],
                "targets": {SLOTS.index(slot): [*values[state[slot]].ids, end] for slot in spelt},
                "values": state,
                "unknown": unknown.union(*(turns[text].unknown for text in texts)),
            }
        )
    return features


def build(encoder: str, tokenizer: Tokenizer) -> Module:
    """Encoder and dialogue state generator."""
    names = [slot.replace("-", " ") for slot in SLOTS]
    pieces = cut_readably(names, tokenizer)
    return build_head(
        "StateGenerator", encoder, tokenizer,
        slots={slot: pieces[name].ids for slot, name in zip(SLOTS, names, strict=True)},
        gates=len(GATES),
        spell_gate=PTR,
        ends=[int(tokenizer.sep_token_id)],
        spell=make_speller(tokenizer),
        design={"max_steps": MAX_STEPS},
    )  # fmt: skip


def value_of(example: Example, feature: Feature, raw: Any, slot: str) -> str:
    """The generated value of a slot, as ontology or dialogue write it."""
    known = example.inputs["ontology"].get(slot, {})
    return restore_value(raw["values"][slot], known, example.inputs["turns"], feature["unknown"])


def validate_state(example: Example, prediction: Prediction) -> str | None:
    """A list of domain-slot-value."""
    value = prediction.value
    for entry in value if isinstance(value, list) else [None]:
        if find_slot(entry) is None:
            wrong = value if entry is None else entry
            return f"expected a list of domain-slot-value with one of the {len(SLOTS)} slots; found {wrong!r:.60}"
    return None


def show(example: Example, row: Row) -> ErrorView:
    """The last two turns, and the entries that only one side has."""
    *_, system, user = example.inputs["turns"]
    missed = [value for value in row.gold if value not in row.prediction]
    return {"system": system, "user": user}, missed, [value for value in row.prediction if value not in row.gold]


def parse_input(raw: RawInput, where: str) -> dict[str, Any] | None:
    """``turns``, all texts in order, after an empty first system turn; a system turn at the end is dropped."""
    if isinstance(raw, Mapping):
        turns = raw.get("dialogue")
        if not isinstance(turns, list):
            raise BadInput(f"{where}: 'dialogue' should be a list of turns, user and system alternating")
    else:
        turns = raw.split("\t") if isinstance(raw, str) else list(raw)
    texts = [_text_of(turn, ("sys", "user")[n % 2], f"{where}, turn {n}") for n, turn in enumerate(turns, 1)]
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


WOS = Task(
    **state_fields(value_of, ""),  # an empty value is left out
    name="wos",
    predicts="dialogue state after each user turn, 45 slots",
    files=Files(reader.FOLDER, "json"),
    read=reader.read,
    write=reader.write,
    featurize=featurize,
    collate=reader.collate,
    model=build,
    score=score,
    select_by="slot_micro_f1",
    published=published_facts("wos", QUIRKS),
    inspection=Inspection(
        tables=tables,
        validate=validate_state,
        show=show,
        differs=lambda row: set(row.gold) != set(row.prediction),
        spell=drop_absent,
    ),
    hub=HubLayout(("guid", "domains", "dialogue"), reader.convert),
    inference=Inference(parse_input, to_result, format_lines, is_block=True),
    group=lambda example: str(example.inputs["dialogue"]),
    group_of_guid=lambda guid: guid.rpartition("-")[0],
    revision=2,  # inputs are normalized, queries projected
)
