"""KLUE-NER: entities of six types, one tag per character (paper 3.4).

A token has the tag of its first character, found by character offsets; a predicted token label is spread over the
token's characters (the first keeps B-, the rest get I-). So an unknown or dropped token never shifts other tags. Spaces
have no tag. A sentence longer than the encoder's limit becomes several features. An entity that begins or ends inside a
token cannot be represented (1.7 entity F1 with KLUE's vocabulary).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from finetune.data.files import CUSTOM_HINT, Block, format_blocks, read_blocks, rewrite_blocks
from finetune.examples import (
    IGNORED,
    ErrorView,
    Example,
    Feature,
    Module,
    Prediction,
    Row,
    Tokenizer,
    pad_inputs,
    pad_rows,
)
from finetune.hyperparameters import Hyperparameters
from finetune.task import Ensembling, Files, HubLayout, Inspection, Published, Task, table_36
from finetune.tasks.ner import published
from finetune.tasks.ner.alignment import align_by_offsets, count_letters, encode_sentences, make_features, read_tags
from finetune.tasks.ner.ensemble import merge, to_records, to_records_with_ends
from finetune.tasks.ner.inference import INFERENCE, OUTSIDE, find_entities
from finetune.tasks.ner.metrics import NER_TAGS, score, tables


def read(path: Path) -> list[Example]:
    """Examples with ``text``, spaces included; gold is one tag for each character except spaces. A test file has
    characters without tags; gold is None there."""
    examples = [_read_sentence(path, block) for block in read_blocks(path)]
    unlabelled = [example.guid for example in examples if example.gold is None]
    if 0 < len(unlabelled) < len(examples):
        raise BadInput(
            f"{path}, {unlabelled[0]}: no character has a tag, as in {len(unlabelled)} of {len(examples)} sentences; "
            "expected tags in all, or in none of a test file"
        )
    return examples


def _read_sentence(path: Path, block: Block) -> Example:
    characters, tags = [], []
    for number, line in block.lines:
        character, tab, tag = line.rpartition("\t")
        if not tab:
            character, tag = tag, ""  # a test file
        if len(character) != 1 or tag not in ("", *NER_TAGS):
            raise BadInput(
                f"{path}, line {number}, {block.guid}: expected one character, a tab and one of "
                f"{', '.join(NER_TAGS)}; found {line!r:.60}; {CUSTOM_HINT}"
            )
        characters.append(character)
        if not character.isspace():
            tags.append(tag)
    if not tags:
        raise BadInput(f"{path}, line {block.lines[0][0]}, {block.guid}: a sentence of spaces only; take it out")
    if any(tags) and not all(tags):
        raise BadInput(
            f"{path}, {block.guid}: {tags.count('')} of {len(tags)} characters have no tag; expected a tag after each, "
            "or after none in a test file"
        )
    return Example(block.guid, tags if tags[0] else None, {"text": "".join(characters)})


def featurize(
    examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool,
    names: Sequence[str] = NER_TAGS,
) -> list[Feature]:  # fmt: skip
    """``[CLS] sentence [SEP]`` with ``tags``, one id per token, and what ``read_tags`` needs for the way back."""
    sentences = encode_sentences(examples, tokenizer, names)
    alignments = [align_by_offsets(sentence) for sentence in sentences]
    return make_features(sentences, alignments, tokenizer, max_tokens, special_tag=IGNORED, windows=True)


def collate(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Padded inputs and ``labels`` (B, L), ``IGNORED`` on padding and, in protocol malmoi, on special tokens."""
    return {**pad_inputs(features, pad_id), "labels": pad_rows([f["tags"] for f in features], IGNORED)}


def build(name: str, tokenizer: Tokenizer, names: Sequence[str] = NER_TAGS) -> Module:
    """Encoder and a head over tokens."""
    from finetune.heads.labels import load_token_labeller

    return load_token_labeller(name, tokenizer, names)


def decode(
    examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any], names: Sequence[str] = NER_TAGS
) -> list[Prediction]:
    """Scores of the labels of each token (special ones included) to one tag for each character except spaces."""
    lengths = [count_letters(example) for example in examples]
    best = [raw_LK.argmax(axis=-1) for raw_LK in raws]
    return [Prediction(tags) for tags in read_tags(lengths, features, best, names)]


def predict_nothing(training: Sequence[Example], examples: Sequence[Example]) -> list[Prediction]:
    """Baseline: no entity anywhere."""
    return [Prediction([OUTSIDE] * count_letters(example)) for example in examples]


def record(
    example: Example, features: Sequence[Feature], max_tokens: int, names: Sequence[str] = NER_TAGS
) -> dict[str, Any]:
    """Inputs, the tag of each token (null: not in the loss) and of each character; a sentence with several features has
    them under ``windows``."""
    inputs = [
        {"input_ids": feature["input_ids"], "token_type_ids": [0] * len(feature["input_ids"])} for feature in features
    ]
    tags = [[None if id_ == IGNORED else names[id_] for id_ in feature["tags"]] for feature in features]
    if len(features) == 1:
        return {**inputs[0], "labels": {"tags": tags[0], "char_tags": example.gold}}
    windows = [{**part, "tags": own} for part, own in zip(inputs, tags, strict=True)]
    return {"windows": windows, "labels": {"char_tags": example.gold}}


def validate_tags(example: Example, prediction: Prediction, names: Sequence[str] = NER_TAGS) -> str | None:
    """A list of tags, one per character except spaces."""
    value, expected = prediction.value, count_letters(example)
    if not isinstance(value, list) or len(value) != expected:
        found = f"{len(value)}" if isinstance(value, list) else repr(value)[:60]
        return f"expected {expected} tags, one a character that is not a space; found {found}"
    odd = next((tag for tag in value if tag not in names), None)
    return None if odd is None else f"no tag {odd!r}; tags here are {', '.join(sorted(names))}"


def write(source: Path, values: Mapping[str, Any], target: Path) -> None:
    """Write the lines of the official file ``source`` with the tags of ``values``; spaces have O."""

    def rewrite(block: Block) -> Iterator[str]:
        tags = iter(values[block.guid])
        return (f"{line[0]}\t{OUTSIDE if line[0].isspace() else next(tags)}" for _, line in block.lines)

    rewrite_blocks(source, target, rewrite)


def convert(rows: Sequence[dict[str, Any]], split: str) -> str:
    """The Hub's rows as an official file."""
    return format_blocks(rows, f"klue-ner-v1_{split}", {"tokens": "CHAR", "ner_tags": "NE_TAG"})


def show(example: Example, row: Row) -> ErrorView:
    """The sentence, and the entities that only one side has."""
    text = example.inputs["text"]
    gold, predicted = (find_entities(text, tags) for tags in (row.gold, row.prediction))
    missed = [f"{text[begin:end]} {kind}" for kind, begin, end in gold if (kind, begin, end) not in predicted]
    invented = [f"{text[begin:end]} {kind}" for kind, begin, end in predicted if (kind, begin, end) not in gold]
    return {"sentence": text}, missed, invented


ENTITY_F1 = (84.42, 84.47, 85.18, 85.15)  # Table 36
CHARACTER_F1 = (91.19, 91.00, 91.81, 91.55)
PUBLISHED = Published(
    dev_examples=5_000,
    dev_scores=table_36(entity_macro_f1=ENTITY_F1, character_macro_f1=CHARACTER_F1),
    hyperparameters=Hyperparameters(lr=5e-5, epochs=3, batch_size=32, warmup_share=0.0, max_tokens=510),
    large=Hyperparameters(lr=1e-5, epochs=3, batch_size=8, warmup_share=0.0, max_tokens=510),
)
QUIRKS = {
    "featurize": published.featurize,
    "decode": partial(published.decode_with_ends, decode),
    "ensembling": Ensembling(merge, to_records_with_ends),
    "select_by": "character_macro_f1_with_specials",  # what the published code prints as character F1
    "published": PUBLISHED._replace(
        dev_scores=table_36(entity_macro_f1=ENTITY_F1, character_macro_f1_with_specials=CHARACTER_F1)
    ),
}

KLUE_NER = Task(
    name="klue-ner",
    predicts="entities of 6 types, one tag per character except spaces",
    files=Files("klue-ner-v1.1", "tsv"),
    read=read,
    write=write,
    featurize=featurize,
    collate=collate,
    model=build,
    decode=decode,
    score=score,
    select_by="character_macro_f1",
    published=PUBLISHED._replace(quirks=QUIRKS),
    inspection=Inspection(tables, predict_nothing, record, validate_tags, show),
    hub=HubLayout(("sentence", "tokens", "ner_tags"), convert),
    inference=INFERENCE,
    ensembling=Ensembling(merge, to_records),
)
