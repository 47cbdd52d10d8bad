"""KLUE-NER: entities of six types, one tag a character (paper 3.4).

A token is labelled with the tag of its first character, found by character offsets; a predicted token label is spread
over the token's characters (its first keeps B-, the rest go on with I-). So an unknown token or one that the tokenizer
drops never shifts the tags of others. Spaces have no tag. A sentence longer than the encoder becomes several features.
What a token cannot express is lost: an entity that begins or ends inside one (1.7 entity F1 with KLUE's vocabulary).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from corpus.documents.whole_files import write_whole
from finetune.data.files import Block, read_blocks, read_text
from finetune.task import IGNORED, Example, Feature, Files, Hyperparameters, Module, Prediction, Task, Tokenizer
from finetune.tasks.ner import published
from finetune.tasks.ner.align import align_by_offsets, encode_sentences, make_features, read_tags
from finetune.tasks.ner.metrics import NER_TAGS, score, tables
from finetune.tasks.padding import pad_inputs, pad_rows

OUTSIDE = "O"
_TAGS = {*NER_TAGS, ""}  # no tag: a test file


def read(path: Path) -> list[Example]:
    """Examples with ``text``, spaces included; gold is one tag for each character that is not a space.

    The lines of a test file hold a character without a tag; gold is None there.

    Raises:
        BadInput: a line that is not a character and a tag, tags for a part of a sentence or file, or a sentence of
            spaces only.
    """
    examples = [_read_sentence(path, block) for block in read_blocks(path)]
    unlabelled = [example.guid for example in examples if example.gold is None]
    if 0 < len(unlabelled) < len(examples):
        raise BadInput(
            f"{path}, {unlabelled[0]}: no character has a tag, as in {len(unlabelled)} of {len(examples)} sentences; "
            "expected tags in all, or in none of a test file"
        )
    return examples


def _guid(block: Block) -> str:
    return block.header.split("\t")[0].strip()


def _read_sentence(path: Path, block: Block) -> Example:
    guid = _guid(block)
    characters, tags = [], []
    for number, line in block.lines:
        character, tab, tag = line.rpartition("\t")
        if not tab:
            character, tag = tag, ""
        if len(character) != 1 or tag not in _TAGS:
            raise BadInput(
                f"{path}, line {number}, {guid}: expected one character, a tab and one of "
                f"{', '.join(NER_TAGS)}; found {line!r}"
            )
        characters.append(character)
        if not character.isspace():
            tags.append(tag)
    if not tags:
        raise BadInput(f"{path}, line {block.lines[0][0]}, {guid}: a sentence of spaces only; take it out")
    if any(tags) and not all(tags):
        raise BadInput(
            f"{path}, {guid}: {tags.count('')} of {len(tags)} characters have no tag; expected a tag after each, or "
            "after none in a test file"
        )
    return Example(guid=guid, gold=tags if tags[0] else None, inputs={"text": "".join(characters)})


def featurize(examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool) -> list[Feature]:
    """``[CLS] sentence [SEP]`` with ``tags``, an id for each token, and what ``read_tags`` needs for the way back."""
    sentences = encode_sentences(examples, tokenizer)
    alignment = align_by_offsets(sentences)
    return make_features(sentences, alignment, tokenizer, max_tokens, special_tag=IGNORED, windows=True)


def collate(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Padded inputs and ``labels`` (B, L), ``IGNORED`` on padding and, in protocol malmoi, on special tokens."""
    return {**pad_inputs(features, pad_id), "labels": pad_rows([f["tags"] for f in features], IGNORED)}


def build(name: str, tokenizer: Tokenizer) -> Module:
    """Encoder and a head over tokens."""
    from finetune.heads.labels import load_token_labeller

    return load_token_labeller(name, NER_TAGS, tokenizer)


def decode(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[Prediction]:
    """Token labels (special tokens included) to one tag for each character that is not a space."""
    lengths = [_count_letters(example) for example in examples]
    return [Prediction(tags) for tags in read_tags(lengths, features, raws)]


def _count_letters(example: Example) -> int:
    return len("".join(example.inputs["text"].split()))


def predict_nothing(training: Sequence[Example], examples: Sequence[Example]) -> list[Prediction]:
    """Baseline: no entity anywhere, which is what most characters are."""
    return [Prediction([OUTSIDE] * _count_letters(example)) for example in examples]


def record(example: Example, features: Sequence[Feature], max_tokens: int) -> dict[str, Any]:
    """Inputs, the tag of each token (null: not in the loss) and of each character (null: a file without labels).

    A sentence that needs several features has them under ``windows`` instead.
    """
    inputs = [
        {"input_ids": feature["input_ids"], "token_type_ids": [0] * len(feature["input_ids"])} for feature in features
    ]
    tags = [[None if id_ == IGNORED else NER_TAGS[id_] for id_ in feature["tags"]] for feature in features]
    if len(features) == 1:
        return {**inputs[0], "labels": {"tags": tags[0], "char_tags": example.gold}}
    windows = [{**part, "tags": own} for part, own in zip(inputs, tags, strict=True)]
    return {"windows": windows, "labels": {"char_tags": example.gold}}


def fault_of_tags(tags: frozenset[str], example: Example, prediction: Prediction) -> str | None:
    """A list of ``tags``, one a character that is not a space."""
    value = prediction.value
    expected = sum(not character.isspace() for character in example.inputs["text"])
    if not isinstance(value, list) or len(value) != expected:
        found = f"{len(value)}" if isinstance(value, list) else repr(value)[:60]
        return f"expected {expected} tags, one a character that is not a space; found {found}"
    odd = next((tag for tag in value if not isinstance(tag, str) or tag not in tags), None)
    return None if odd is None else f"no tag {odd!r}; tags here are {', '.join(sorted(tags))}"


def write(source: Path, values: Mapping[str, Any], target: Path) -> None:
    """The lines of the official file ``source`` with the tags of ``values``; spaces have O, other lines stay."""
    lines = read_text(source).split("\n")
    for block in read_blocks(source):
        tags = iter(values[_guid(block)])
        for number, line in block.lines:
            lines[number - 1] = f"{line[0]}\t{OUTSIDE if line[0].isspace() else next(tags)}"
    write_whole(target, "\n".join(lines))


KLUE_NER = Task(
    name="klue-ner",
    predicts="entities of 6 types, a tag for each character that is no space",
    files=Files(train="klue-ner-v1.1/klue-ner-v1.1_train.tsv", dev="klue-ner-v1.1/klue-ner-v1.1_dev.tsv"),
    read=read,
    featurize=featurize,
    collate=collate,
    model=build,
    decode=decode,
    score=score,
    trivial=predict_nothing,
    as_published={"featurize": published.featurize, "decode": partial(published.decode_with_ends, decode)},
    record=record,
    tables=tables,
    write=write,
    fault=partial(fault_of_tags, frozenset(NER_TAGS)),
    select_by="character_macro_f1",
    defaults=Hyperparameters(lr=5e-5, epochs=3, batch_size=32, warmup_share=0.0, max_tokens=510),
    large=Hyperparameters(lr=1e-5, epochs=3, batch_size=8, warmup_share=0.0, max_tokens=510),
    paper_dev={
        "klue/bert-base": {"entity_macro_f1": 84.42, "character_macro_f1": 91.19},
        "klue/roberta-small": {"entity_macro_f1": 84.47, "character_macro_f1": 91.00},
        "klue/roberta-base": {"entity_macro_f1": 85.18, "character_macro_f1": 91.81},
        "klue/roberta-large": {"entity_macro_f1": 85.15, "character_macro_f1": 91.55},
    },
)
