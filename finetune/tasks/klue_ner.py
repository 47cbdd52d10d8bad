"""KLUE-NER: entities of six types, one tag a character (paper 3.4).

A token is labelled with the tag of its first character, found by character offsets; a predicted token label is spread
over the token's characters (its first keeps B-, the rest go on with I-). So an unknown token or one that the tokenizer
drops never shifts the tags of others. Spaces have no tag. A sentence longer than the encoder becomes several features.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from finetune.config import BadInput
from finetune.files import Block, read_blocks
from finetune.metrics.ner import NER_TAGS, score
from finetune.padding import IGNORED, pad_inputs, pad_rows
from finetune.task import Example, Feature, Files, Hyperparameters, Prediction, Task

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerBase

OUTSIDE = "O"
_TAG_IDS = {tag: id_ for id_, tag in enumerate(NER_TAGS)}


def read_ner(path: Path) -> list[Example]:
    """Examples with ``characters``, spaces included; gold is one tag for each character that is not a space."""
    return [_read_sentence(path, block) for block in read_blocks(path)]


def _read_sentence(path: Path, block: Block) -> Example:
    guid = block.header.split("\t")[0].strip()
    characters, tags = [], []
    for number, line in block.lines:
        character, _, tag = line.rpartition("\t")
        if len(character) != 1 or tag not in _TAG_IDS:
            raise BadInput(
                f"{path}, line {number}, {guid}: expected one character, a tab and one of "
                f"{', '.join(NER_TAGS)}; found {line!r}"
            )
        characters.append(character)
        if not character.isspace():
            tags.append(tag)
    return Example(guid=guid, gold=tags, inputs={"text": "".join(characters)})


def featurize_ner(
    examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, max_tokens: int, is_training: bool
) -> list[Feature]:
    """``[CLS] sentence [SEP]`` with ``tags``, an id for each token, and ``spans``, its characters in the sentence."""
    encoded = tokenizer(
        [example.inputs["text"] for example in examples], add_special_tokens=False, return_offsets_mapping=True
    )
    room = max_tokens - 2
    features = []
    for index, (ids, spans) in enumerate(zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)):
        text = examples[index].inputs["text"]
        tags = _tags_of_tokens(text, examples[index].gold, spans)
        for start in range(0, len(ids), room):
            part = slice(start, start + room)
            features.append(
                {
                    "example": index,
                    "input_ids": [tokenizer.cls_token_id, *ids[part], tokenizer.sep_token_id],
                    "tags": [IGNORED, *tags[part], IGNORED],
                    "spans": spans[part],
                }
            )
    return features


def _tags_of_tokens(text: str, gold: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[int]:
    remaining = iter(gold)
    tag_of = [None if character.isspace() else next(remaining) for character in text]
    tags = []
    for start, end in spans:
        first = next((tag for tag in tag_of[start:end] if tag), None)
        tags.append(IGNORED if first is None else _TAG_IDS[first])
    return tags


def collate_ner(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Padded inputs and ``labels`` (B, L), ``IGNORED`` on special tokens and padding."""
    return {**pad_inputs(features, pad_id), "labels": pad_rows([f["tags"] for f in features], IGNORED)}


def load_ner_model(name: str, tokenizer: PreTrainedTokenizerBase) -> nn.Module:
    """Encoder and a head over tokens."""
    from finetune.heads.labels import load_token_labeller

    return load_token_labeller(name, NER_TAGS)


def decode_ner(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[Prediction]:
    """Token labels (special tokens included) to one tag for each character that is not a space."""
    texts = [example.inputs["text"] for example in examples]
    tags: list[list[str | None]] = [[None] * len(text) for text in texts]
    for feature, raw in zip(features, raws, strict=True):
        row = tags[feature["example"]]
        for (start, end), id_ in zip(feature["spans"], raw[1:-1], strict=True):
            for position in range(start, end):
                row[position] = NER_TAGS[id_] if position == start else go_on(NER_TAGS[id_])
    return [Prediction(_fill(text, row)) for text, row in zip(texts, tags, strict=True)]


def go_on(tag: str) -> str:
    """The tag with which an entity continues: I-PS after B-PS or I-PS, O after O."""
    return tag if tag == OUTSIDE else "I-" + tag[2:]


def _fill(text: str, row: Sequence[str | None]) -> list[str]:
    """Tags without spaces; a character that the tokenizer dropped inside a word goes on with the tag before it."""
    tags, last = [], OUTSIDE
    for character, tag in zip(text, row, strict=True):
        if character.isspace():
            last = OUTSIDE
        else:
            last = tag or go_on(last)
            tags.append(last)
    return tags


def predict_nothing(training: Sequence[Example], examples: Sequence[Example]) -> list[Prediction]:
    """Baseline: no entity anywhere, which is what most characters are."""
    return [Prediction([OUTSIDE] * len(example.gold)) for example in examples]


KLUE_NER = Task(
    name="klue-ner",
    files=Files(train="klue-ner-v1.1/klue-ner-v1.1_train.tsv", dev="klue-ner-v1.1/klue-ner-v1.1_dev.tsv"),
    read=read_ner,
    featurize=featurize_ner,
    collate=collate_ner,
    model=load_ner_model,
    decode=decode_ner,
    score=score,
    trivial=predict_nothing,
    select_by="character_macro_f1",
    defaults=Hyperparameters(lr=5e-5, epochs=3, batch_size=32, warmup_share=0.0, max_tokens=510),
    paper_dev={
        "klue/bert-base": {"entity_macro_f1": 84.42, "character_macro_f1": 91.19},
        "klue/roberta-small": {"entity_macro_f1": 84.47, "character_macro_f1": 91.00},
        "klue/roberta-base": {"entity_macro_f1": 85.18, "character_macro_f1": 91.81},
        "klue/roberta-large": {"entity_macro_f1": 85.15, "character_macro_f1": 91.55},
    },
)
