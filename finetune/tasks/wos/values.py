"""Values of WoS as tokens and back: every value of the ontology or the dialogue must survive the round trip.

Tokens lose two things. Spaces around punctuation are restored from the ontology, or else from the dialogue. Words that
the vocabulary cannot represent are written character by character, so that an unknown token represents one character,
which ontology or dialogue then restore. These words (56 in 7,448 turns with KLUE's vocabulary) are not tokenized as in
pretraining.

An ensemble averages gates and votes for values, weighted by the member's probability of a value. A member has values
only for the slots that its own gate opened; a slot that no member opened takes the next best gate.
Legend: ``S`` slots, ``G`` gates.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from finetune.data.custom_files import squeeze
from finetune.examples import Example, Feature, Prediction, Tokenizer
from finetune.metrics import softmax
from finetune.task import Ensembling, MemberRecord, MemberRecords
from finetune.tasks.wos.reader import GATES, NONE, PTR, SLOTS

ValueOf = Callable[[Example, Feature, Any, str], str]  # example, feature, raw output and slot to a generated value
UNKNOWN = "\ufffd"  # in a spelt value: one character that the tokenizer does not know, or broken bytes


class Pieces(NamedTuple):
    """Tokens of a text, and its characters that the vocabulary lacks."""

    ids: list[int]
    unknown: frozenset[str] = frozenset()


class _Cut(NamedTuple):
    text: str
    ids: list[int]
    spans: list[tuple[int, int]]  # of unknown tokens in the text


def cut_readably(texts: Sequence[str], tokenizer: Tokenizer) -> dict[str, Pieces]:
    """The pieces of each text without special tokens; an unknown token represents one character, never a word. Every
    text starts with a space: a value has the same tokens alone and inside a turn, so it can be copied."""
    unique = list(dict.fromkeys(texts))
    cuts = _cut([f" {text}" for text in unique], tokenizer)
    words = (cut.text[start:end] for cut in cuts for start, end in cut.spans)
    for apart in (find_unknown(words, tokenizer), None):  # a second time where known characters make no known word
        numbers = [number for number, cut in enumerate(cuts) if any(end - start > 1 for start, end in cut.spans)]
        again = _cut([_set_apart(cuts[number], apart) for number in numbers], tokenizer)
        for number, cut in zip(numbers, again, strict=True):
            cuts[number] = cut
    return {
        text: Pieces(cut.ids, frozenset(cut.text[start:end] for start, end in cut.spans if end > start))
        for text, cut in zip(unique, cuts, strict=True)
    }


def _cut(texts: Sequence[str], tokenizer: Tokenizer) -> list[_Cut]:
    if not texts:
        return []
    encoded = tokenizer(list(texts), add_special_tokens=False, verbose=False)
    cuts, unknown = [], tokenizer.unk_token_id
    for number, (text, ids) in enumerate(zip(texts, encoded["input_ids"], strict=True)):
        offsets = encoded[number].offsets if unknown in ids else []
        cuts.append(_Cut(text, ids, [span for token, span in zip(ids, offsets, strict=False) if token == unknown]))
    return cuts


def find_unknown(texts: Iterable[str], tokenizer: Tokenizer) -> frozenset[str]:
    """The characters of the texts that are unknown on their own."""
    characters = sorted(set().union(*texts))
    return frozenset(cut.text for cut in _cut(characters, tokenizer) if cut.spans)


def _set_apart(cut: _Cut, apart: frozenset[str] | None) -> str:
    """The text with spaces around these (None: all) characters of its unknown words."""
    text = cut.text
    for start, end in reversed(cut.spans):
        word = "".join(f" {c} " if apart is None or c in apart else c for c in text[start:end])
        text = text[:start] + word + text[end:]
    return text


def make_speller(tokenizer: Tokenizer) -> Callable[[Sequence[int]], str]:
    """A function from the ids of a generated value to its text in NFC, with ``UNKNOWN`` for an unknown token, without
    other special tokens; a colon has no spaces around it (18:30)."""
    silent = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    unknown = tokenizer.unk_token

    def spell(ids: Sequence[int]) -> str:
        text = str(tokenizer.decode([token for token in ids if token not in silent]))
        text = unicodedata.normalize("NFC", text)
        if unknown and tokenizer.unk_token_id not in silent:
            text = text.replace(unknown, UNKNOWN)
        return ":".join(part.strip() for part in text.split(":"))

    return spell


def restore_value(
    text: str, known: Mapping[str, Sequence[str]], turns: Sequence[str], unknown: frozenset[str] = frozenset()
) -> str:
    """The value of a generated text.

    The ontology (``known``: values of the slot by their spelling without white space) decides about all spaces. If it
    has no such value, the latest of ``turns`` that contains it decides about the spaces around punctuation and
    ``unknown`` characters, those of turns and ontology that the tokenizer does not know; otherwise ``text`` is kept.
    """
    if UNKNOWN in text:
        if not unknown:
            return text
        text = _fill_from_dialogue(text, turns, unknown) or _fill_from_ontology(text, known, turns, unknown)
    if values := known.get(squeeze(text), ()):
        return text if text in values else values[0]
    parts = re.findall(r"\w+|[^\w\s]", text)
    if not parts:
        return text
    gaps = [r"\s+" if _is_plain(a[-1], unknown) and _is_plain(b[0], unknown) else r"\s*" for a, b in pairwise(parts)]
    pattern = re.compile("".join(re.escape(part) + gap for part, gap in zip(parts, [*gaps, ""], strict=True)))
    if match := _latest(pattern, turns):
        return match.group()
    return re.sub(rf"\s*{_one_of(unknown)}\s*", r"\1", text) if unknown else text


def _is_plain(character: str, unknown: frozenset[str]) -> bool:
    return character.isalnum() and character not in unknown


def _fill_from_dialogue(text: str, turns: Sequence[str], unknown: frozenset[str]) -> str | None:
    """The text with unknown characters as a turn has them between the same known ones."""
    match = _latest(_pattern(text, unknown, r"\s*"), turns)
    if match is None:
        return None
    characters = iter(match.groups())
    return re.sub(UNKNOWN, lambda _: next(characters), text)


def _fill_from_ontology(
    text: str, known: Mapping[str, Sequence[str]], turns: Sequence[str], unknown: frozenset[str]
) -> str:
    """A matching value, the one mentioned last if there are several; ``text`` if none matches."""
    pattern = _pattern(text, unknown, "")
    values = [value for key, spelt in known.items() if pattern.fullmatch(key) for value in spelt]
    return next((value for turn in reversed(turns) for value in values if value in turn), values[0] if values else text)


def _pattern(text: str, unknown: frozenset[str], between: str) -> re.Pattern[str]:
    one = _one_of(unknown)
    return re.compile(between.join(one if c == UNKNOWN else re.escape(c) for c in squeeze(text)))


def _one_of(characters: frozenset[str]) -> str:
    return "([" + "".join(map(re.escape, sorted(characters))) + "])"


def _latest(pattern: re.Pattern[str], turns: Sequence[str]) -> re.Match[str] | None:
    return next((match for turn in reversed(turns) if (match := pattern.search(turn))), None)


def state_fields(value_of: ValueOf, left_out: str) -> dict[str, Any]:
    """The fields of a task whose values come from ``value_of``; a value equal to ``left_out`` is dropped."""
    return {
        "decode": partial(decode, value_of, left_out),
        "ensembling": Ensembling(partial(merge, left_out), partial(to_records, value_of)),
    }


def decode(
    value_of: ValueOf, left_out: str, examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]
) -> list[Prediction]:
    """State of each turn as ``domain-slot-value``, in the slots' order."""
    predictions: list[Prediction] = [Prediction([])] * len(examples)
    for feature, raw in zip(features, raws, strict=True):
        example, state = examples[feature["example"]], []
        for slot, gate in zip(SLOTS, raw["gates"], strict=True):
            value = value_of(example, feature, raw, slot) if gate == PTR else GATES[gate]
            if gate != NONE and value != left_out:
                state.append(f"{slot}-{value}")
        predictions[feature["example"]] = Prediction(state)
    return predictions


def to_records(
    value_of: ValueOf, examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]
) -> list[MemberRecord]:
    """``gates``: S x G scores; ``slots``, numbers of those with a value, and ``values`` from ``value_of``."""
    records: list[MemberRecord] = [{}] * len(examples)
    for feature, raw in zip(features, raws, strict=True):
        example, opened = examples[feature["example"]], [s for s, gate in enumerate(raw["gates"]) if gate == PTR]
        records[feature["example"]] = {
            "gates": raw["gate_scores"].ravel(),
            "slots": np.array(opened, dtype=np.int32),
            "values": [value_of(example, feature, raw, SLOTS[slot]) for slot in opened],
        }
    return records


def merge(left_out: str, members: Sequence[MemberRecords]) -> list[Prediction]:
    """The state of each turn; a value equal to ``left_out`` is dropped."""
    return [Prediction(list(_state(left_out, records))) for records in zip(*members, strict=True)]


def _state(left_out: str, records: Sequence[MemberRecord]) -> list[str]:
    gates = [softmax(record["gates"].reshape(len(SLOTS), len(GATES))) for record in records]
    mean_SG, state = np.mean(gates, axis=0), []
    for slot, name in enumerate(SLOTS):
        if mean_SG[slot].argmax() == NONE:
            continue
        votes: dict[str, float] = defaultdict(float)
        for record, own_SG in zip(records, gates, strict=True):
            for place in np.flatnonzero(record["slots"] == slot):
                votes[record["values"][place]] += float(own_SG[slot, PTR])
        if not votes:
            mean_SG[slot, PTR] = 0
        gate = int(mean_SG[slot].argmax())
        value = max(votes, key=votes.__getitem__) if gate == PTR else GATES[gate]
        if gate != NONE and value != left_out:
            state.append(f"{name}-{value}")
    return state
