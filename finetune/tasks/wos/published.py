"""WoS as published: KLUE-baseline 8a03c94, ``data/wos.py`` and ``models/dialogue_state_tracking.py``, with its quirks.

Not reproduced: value and gate have separate dropout (published: one draw for both; equal in expectation); copying
probabilities below 1e-12 (published: an infinite loss); slots are the 45 of WoS v1.1 (published: those in the loaded
files, the same 45 for the official ones); an empty value is an error (published: an empty text is learned).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from finetune.examples import Example, Feature, Module, Tokenizer, pad_rows
from finetune.tasks.labels import build_head
from finetune.tasks.wos.reader import GATES, PTR, SLOTS, join_turns, split_state
from finetune.tasks.wos.values import state_fields

STEPS = 10  # tokens of a generated value, its end included; longer values are cut
TEACHER_FORCING = 0.5  # share of training batches


def featurize(examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool) -> list[Feature]:
    """One feature per turn, with ``targets`` for all 45 slots.

    Quirks: an absent slot is to be generated as "none", and dontcare, yes and no are generated, too; a value "none" is
    an absent slot; a value with a hyphen loses the spaces around it; a word with one unknown character is one unknown
    token.
    """
    pairs = [[split_state(entry, example.guid) for entry in example.gold or ()] for example in examples]
    states = [{slot: value.strip() if "-" in value else value for slot, value in state} for state in pairs]
    texts = [text for example in examples for text in example.inputs["turns"]]
    unique = list(dict.fromkeys([*texts, *(value for state in states for value in state.values()), "none"]))
    encoded = tokenizer(unique, add_special_tokens=False, verbose=False)["input_ids"]
    ids: dict[str, list[int]] = dict(zip(unique, encoded, strict=True))
    begin, end = int(tokenizer.cls_token_id), int(tokenizer.sep_token_id)
    targets = {value: [*ids[value], end] for value in {"none"}.union(*(state.values() for state in states))}
    features = []
    for number, (example, state) in enumerate(zip(examples, states, strict=True)):
        if is_training and example.gold is None:
            continue
        values = [state.get(slot, "none") for slot in SLOTS]
        features.append(
            {
                "input_ids": join_turns(example.inputs["turns"], ids, begin, end, max_tokens),
                "example": number,
                "gates": [GATES.index(value) if value in GATES else PTR for value in values],
                "targets": {slot: targets[value] for slot, value in enumerate(values)},
                "values": state,
            }
        )
    return features


def make_published_speller(tokenizer: Tokenizer) -> Callable[[Sequence[int]], str]:
    """Ids of a value to text in NFC. Quirks: an unknown token ends a value; only " : ", " , " and "##" are fixed, so a
    value with & ( ) = or another sign keeps the spaces around it and is never right."""

    def spell(ids: Sequence[int]) -> str:
        text = str(tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=True))
        return unicodedata.normalize("NFC", text).replace(" : ", ":").replace(" , ", ", ").replace("##", "")

    return spell


def build(encoder: str, tokenizer: Tokenizer) -> Module:
    """The generator as published.

    Quirks: it starts from the pooler, which is untrained in most encoders (a new one if there is none); the gate sees
    the first context only; half of the batches use their own words; the sum of a slot's pieces includes padding up to
    the longest slot name; any special token ends a value, and so does the tenth step.
    """
    names = [slot.replace("-", " ") for slot in SLOTS]
    pieces = tokenizer(names, add_special_tokens=False)["input_ids"]
    padded = pad_rows(pieces, int(tokenizer.pad_token_id)).tolist()
    return build_head(
        "StateGenerator", encoder, tokenizer,
        slots=dict(zip(SLOTS, padded, strict=True)),
        gates=len(GATES),
        spell_gate=PTR,
        ends=tokenizer.all_special_ids,
        spell=make_published_speller(tokenizer),
        design={
            "starts_pooled": True, "gate_sees_state": False, "is_scaled": False, "teacher_forcing": TEACHER_FORCING,
            "max_steps": STEPS,
        },
    )  # fmt: skip


# Quirks: values are kept as generated, a value "none" is left out, an empty one is kept.
QUIRKS = {
    "featurize": featurize,
    "model": build,
    **state_fields(lambda _, __, raw, slot: str(raw["values"][slot]), "none"),
}
