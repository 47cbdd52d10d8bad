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

from corpus.documents.errors import BadInput
from finetune.data.files import CUSTOM_HINT, Block, format_blocks, read_blocks, rewrite_blocks
from finetune.examples import IGNORED, ErrorView, Example, Feature, Prediction, Row, Tokenizer
from finetune.task import Ensembling, Files, HubLayout, Inference, Inspection, Task, published_facts
from finetune.tasks.labels import build_labeller, parse_texts
from finetune.tasks.ner import alignment, published
from finetune.tasks.ner.alignment import count_letters, make_features, merge, to_records
from finetune.tasks.ner.metrics import NER_TAGS, score, tables

OUTSIDE = "O"


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
    """``[CLS] sentence [SEP]`` with ``tags``, one id per token, and what ``decode`` needs for the way back."""
    sentences = alignment.encode_sentences(examples, tokenizer, names)
    alignments = [alignment.align_by_offsets(sentence) for sentence in sentences]
    return make_features(sentences, alignments, tokenizer, max_tokens, special_tag=IGNORED, windows=True)


def decode(
    examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any], names: Sequence[str] = NER_TAGS
) -> list[Prediction]:
    """Scores of the labels of each token (special ones included) to one tag for each character except spaces; O for a
    character that reads from no token. ``names``: B- and I- of each type, then O."""
    outside = len(names) - 1
    tags = [[names[outside]] * count_letters(example) for example in examples]
    for feature, raw_LK in zip(features, raws, strict=True):
        labels = raw_LK.argmax(axis=-1).tolist()
        continued = [id_ if id_ == outside else id_ // 2 * 2 + 1 for id_ in labels]  # inside a token: I- or O
        for letter, position, begins in feature["reads"]:
            tags[feature["example"]][letter] = names[(labels if begins else continued)[position]]
    return [Prediction(own) for own in tags]


def validate_tags(example: Example, prediction: Prediction, names: Sequence[str] = NER_TAGS) -> str | None:
    """A list of tags, one per character except spaces."""
    value, expected = prediction.value, count_letters(example)
    if not isinstance(value, list) or len(value) != expected:
        actual = f"{len(value)}" if isinstance(value, list) else repr(value)[:60]
        return f"expected {expected} tags, one a character that is not a space; found {actual}"
    odd = [tag for tag in value if tag not in names]
    return f"no tag {odd[0]!r:.60}; tags here are {', '.join(sorted(names))}" if odd else None


def write(source: Path, values: Mapping[str, Any], target: Path) -> None:
    """Write the lines of the official file ``source`` with the tags of ``values``; spaces have O."""

    def rewrite(block: Block) -> Iterator[str]:
        tags = iter(values[block.guid])
        return (f"{line[0]}\t{OUTSIDE if line[0].isspace() else next(tags)}" for _, line in block.lines)

    rewrite_blocks(source, target, rewrite)


def show(example: Example, row: Row) -> ErrorView:
    """The sentence, and the entities that only one side has."""
    text = example.inputs["text"]
    gold, predicted = (find_entities(text, tags) for tags in (row.gold, row.prediction))
    missed = [f"{text[begin:end]} {kind}" for kind, begin, end in gold if (kind, begin, end) not in predicted]
    invented = [f"{text[begin:end]} {kind}" for kind, begin, end in predicted if (kind, begin, end) not in gold]
    return {"sentence": text}, missed, invented


def find_entities(text: str, tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Type, start and end (exclusive) of each entity, ``tags`` being those of non-spaces; a stray ``I-`` (no entity by
    the metric) has its type in brackets."""
    positions = [number for number, character in enumerate(text) if not character.isspace()]
    entities: list[tuple[str, int, int]] = []
    previous = OUTSIDE
    for position, tag in zip(positions, tags, strict=False):  # klue-baseline may predict fewer tags than characters
        prefix, _, kind = tag.partition("-")
        if prefix == "I" and previous.endswith(f"-{kind}"):
            entities[-1] = (*entities[-1][:2], position + 1)
        elif prefix != OUTSIDE:
            entities.append((kind if prefix == "B" else f"({kind})", position, position + 1))
        previous = tag
    return entities


def to_result(example: Example, prediction: Prediction) -> dict[str, Any]:
    """``text`` and ``entities``, each with ``text``, ``type``, ``start`` and ``end`` (exclusive); a stray ``I-`` is no
    entity, as in the scores."""
    text = example.inputs["text"]
    entities = [
        {"text": text[begin:end], "type": kind, "start": begin, "end": end}
        for kind, begin, end in find_entities(text, prediction.value)
        if not kind.startswith("(")
    ]
    return {"text": text, "entities": entities}


def format_lines(result: Mapping[str, Any]) -> list[str]:
    """The sentence, and below it type, span and text of each entity."""
    entities = [f"  {e['type']}\t{e['start']}:{e['end']}\t{e['text']}" for e in result["entities"]]
    return [result["text"], *(entities or ["  no entity"])]


PUBLISHED = published_facts("klue-ner")
PRINTED = "character_macro_f1_with_specials"  # what the published code prints as character F1
QUIRKS = {
    "featurize": published.featurize,
    "decode": partial(published.decode_with_ends, decode),
    "ensembling": Ensembling(merge, alignment.to_records_with_ends),
    "select_by": PRINTED,
    "published": PUBLISHED._replace(
        dev_scores={
            model: {PRINTED if name == "character_macro_f1" else name: value for name, value in scores.items()}
            for model, scores in PUBLISHED.dev_scores.items()
        }
    ),
}


def tag_fields(names: Sequence[str]) -> dict[str, Any]:
    """The fields of a task with these tags: B- and I- of each type, O last."""
    return {
        "featurize": partial(featurize, names=names),
        "model": partial(build_labeller, "tags", names),
        "decode": partial(decode, names=names),
        "inspection": Inspection(
            tables=partial(tables, names=names), validate=partial(validate_tags, names=names), show=show
        ),
        "ensembling": Ensembling(partial(merge, names=names), partial(to_records, names=names)),
    }


KLUE_NER = Task(
    **tag_fields(NER_TAGS),
    name="klue-ner",
    predicts="entities of 6 types, one tag per character except spaces",
    files=Files("klue-ner-v1.1", "tsv"),
    read=read,
    write=write,
    collate=alignment.collate,
    score=score,
    select_by="character_macro_f1",
    published=PUBLISHED._replace(quirks=QUIRKS),
    hub=HubLayout(
        ("sentence", "tokens", "ner_tags"),
        lambda rows, split: format_blocks(rows, f"klue-ner-v1_{split}", {"tokens": "CHAR", "ner_tags": "NE_TAG"}),
    ),
    inference=Inference(partial(parse_texts, ("text",)), to_result, format_lines, is_block=True),
)
