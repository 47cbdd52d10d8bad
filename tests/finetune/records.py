"""Model inputs and targets of each example as JSON, to compare the conversion with published records.

The form is canonical (sorted keys, no spaces, unescaped characters), so two files can be compared line by line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from finetune.examples import IGNORED, Example, Feature
from finetune.task import Task
from finetune.tasks.dp.metrics import DP_LABELS
from finetune.tasks.mrc import published, reader
from finetune.tasks.mrc.windows import word_of_characters
from finetune.tasks.ner.metrics import NER_TAGS
from finetune.tasks.wos.reader import GATES, SLOTS


def make_records(
    task: Task, examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> Iterator[dict[str, Any]]:
    """The record of each example, in order."""
    by_example: list[list[Feature]] = [[] for _ in examples]
    for feature in task.featurize(examples, tokenizer, max_tokens, False):
        by_example[feature["example"]].append(feature)
    for example, own in zip(examples, by_example, strict=True):
        yield {"task": task.name, "guid": example.guid, **record_of(task, example, own, max_tokens)}


def canonical(record: dict[str, Any]) -> str:
    """One line of JSON; equal records give equal lines."""
    return json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def record_of(task: Task, example: Example, features: Sequence[Feature], max_tokens: int) -> dict[str, Any]:
    """Model inputs and targets of one example."""
    if task.name == "klue-mrc":
        module: Any = published if task.featurize is published.featurize else reader
        return record_windows(module.is_misplaced, example, features, max_tokens)
    return RECORDS[task.name](example, features)


def record_gold(name: str, example: Example, features: Sequence[Feature]) -> dict[str, Any]:
    """The inputs and the gold under ``name`` of the labels; null in a file without labels."""
    (feature,) = features
    return {**{key: feature[key] for key in ("input_ids", "token_type_ids")}, "labels": {name: example.gold}}


def record_tags(example: Example, features: Sequence[Feature]) -> dict[str, Any]:
    """Inputs, the tag of each token (null: not in the loss) and of each character; a sentence with several features has
    them under ``windows``."""
    inputs = [
        {"input_ids": feature["input_ids"], "token_type_ids": [0] * len(feature["input_ids"])} for feature in features
    ]
    tags = [[None if id_ == IGNORED else NER_TAGS[id_] for id_ in feature["tags"]] for feature in features]
    if len(features) == 1:
        return {**inputs[0], "labels": {"tags": tags[0], "char_tags": example.gold}}
    windows = [{**part, "tags": own} for part, own in zip(inputs, tags, strict=True)]
    return {"windows": windows, "labels": {"char_tags": example.gold}}


def record_tree(example: Example, features: Sequence[Feature]) -> dict[str, Any]:
    """Model inputs and targets of a sentence; null for a word without target."""
    (feature,) = features
    return {
        "input_ids": feature["input_ids"],
        "labels": {
            "word_starts": feature["first"][1:],
            "word_ends": feature["last"][1:],
            "heads": [None if head == IGNORED else head for head in feature["heads"]],
            "types": [None if number == IGNORED else DP_LABELS[number] for number in feature["types"]],
            "pos": example.inputs["pos"][: len(feature["heads"])],
        },
    }


def record_windows(
    is_misplaced: Callable[[Example], bool], example: Example, features: Sequence[Feature], max_tokens: int
) -> dict[str, Any]:
    """The windows with their targets, none if the question is not used for training, and the maximum length."""
    words = word_of_characters(example.inputs["context"])
    return {
        "max_seq_length": max_tokens,
        "windows": [] if is_misplaced(example) else [_record_window(feature, words) for feature in features],
        "labels": {"is_impossible": None if example.gold is None else not example.gold["answers"]},
    }


def _record_window(feature: Feature, words: NDArray[np.int64]) -> dict[str, Any]:
    offsets = feature["offsets"]
    ends = (int(offsets[0, 0]), int(offsets[-1, 0]), int(offsets[-1, 1])) if len(offsets) else None
    types = {"token_type_ids": feature["token_type_ids"].tolist()} if "token_type_ids" in feature else {}
    return {
        "input_ids": feature["input_ids"].tolist(),
        **types,
        "context_tokens": [feature["begin"], feature["begin"] + len(offsets)],
        "context_words": [int(words[ends[0]]), int(words[ends[1]])] if ends else None,
        "context_chars": [ends[0], ends[2]] if ends else None,
        "max_context": list(feature["max_context"]) if feature["max_context"] else None,
        "start_position": feature["start"],
        "end_position": feature["end"],
        "is_impossible": feature["start"] == 0,
    }


def record_state(example: Example, features: Sequence[Feature]) -> dict[str, Any]:
    """Inputs (segments are all 0), and for each slot of the state its gate, its value and the target tokens."""
    feature = features[0]
    inputs = {"input_ids": feature["input_ids"], "token_type_ids": [0] * len(feature["input_ids"])}
    if example.gold is None:
        return inputs
    slots = {}
    for slot, value in feature["values"].items():
        number = SLOTS.index(slot)
        gate, target = GATES[feature["gates"][number]], feature["targets"].get(number, [])
        slots[slot] = {"gate": gate, "value": value, "target_ids": target}
    return {**inputs, "labels": {"slots": slots, "state": example.gold}}


RECORDS: Mapping[str, Callable[[Example, Sequence[Feature]], dict[str, Any]]] = {
    **dict.fromkeys(("ynat", "klue-nli", "klue-re"), partial(record_gold, "class")),
    "klue-sts": partial(record_gold, "score"), "klue-ner": record_tags, "klue-dp": record_tree, "wos": record_state,
}  # fmt: skip
