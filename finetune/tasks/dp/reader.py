"""KLUE-DP files: one word (eojeol) per line, with lemma, part-of-speech tags, head and relation type.

A spreadsheet damaged some words of the official files: "#NAME?" for a word with signs, "0.90%" for "0.9%". They are
restored from the sentence in the header line; ``as_it_stands`` keeps them, as published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.errors import BadInput
from finetune.data.files import CUSTOM_HINT, Block, format_blocks, read_blocks, rewrite_blocks
from finetune.examples import Example, Prediction
from finetune.tasks.dp.metrics import DP_LABELS

# Sejong tags, in the order of the rows of published weights; the root and a tag that is not among them have their own
# ids.
POS_TAGS = (
    "NNG", "NNP", "NNB", "NP", "NR", "VV", "VA", "VX", "VCP", "VCN", "MMA", "MMD", "MMN", "MAG", "MAJ", "JC", "IC",
    "JKS", "JKC", "JKG", "JKO", "JKB", "JKV", "JKQ", "JX", "EP", "EF", "EC", "ETN", "ETM", "XPN", "XSN", "XSV", "XSA",
    "XR", "SF", "SP", "SS", "SE", "SO", "SL", "SH", "SW", "SN", "NA",
)  # fmt: skip
POS_IDS = {tag: number for number, tag in enumerate(POS_TAGS)}
ROOT_POS, UNKNOWN_POS = len(POS_TAGS), len(POS_TAGS) + 1
COLUMNS = ("INDEX", "WORD_FORM", "LEMMA", "POS", "HEAD", "DEPREL")
UNLABELLED = {"", "-", "_"}


class Word(NamedTuple):
    """One row: form, last tag, and head and relation type, None in a file without labels."""

    form: str
    pos: str
    head: int | None
    relation: str | None


def read_sentences(path: Path, *, as_it_stands: bool = False) -> list[Example]:
    """Sentences of an official file; ``inputs``: ``words`` and their last ``pos`` tags; gold None without labels."""
    examples = []
    for block in read_blocks(path):
        words = [
            parse_word(line, f"{path}, line {number}, {block.guid}", index, len(block.lines))
            for index, (number, line) in enumerate(block.lines, start=1)
        ]
        written = block.header.partition("\t")[2].split()
        forms = [word.form for word in words] if as_it_stands else repair_forms(words, written)
        inputs = {"words": forms, "pos": [word.pos for word in words]}
        gold = _gold(words, f"{path}, line {block.lines[0][0]}, {block.guid}")
        examples.append(Example(block.guid, gold, inputs))
    without = [example.guid for example in examples if example.gold is None]
    if 0 < len(without) < len(examples):
        raise BadInput(f"{path}, {without[0]}: no HEAD and DEPREL here, but in other sentences; label all or none")
    return examples


def parse_word(line: str, place: str, index: int, words: int) -> Word:
    """One row; ``index`` is the number that it must have, ``words`` the number of rows."""
    columns = line.split("\t")
    if len(columns) == len(COLUMNS) - 2:  # a test file without the last two
        columns += ["", ""]
    if len(columns) != len(COLUMNS):
        raise BadInput(
            f"{place}: expected {len(COLUMNS)} columns {', '.join(COLUMNS)}; found {len(columns)}; {CUSTOM_HINT}"
        )
    number, form, _, pos, head, relation = columns
    if number != str(index):
        raise BadInput(f"{place}: expected INDEX {index}, found {number!r}; words count from 1 without gaps")
    if not form.strip():
        raise BadInput(f"{place}: WORD_FORM is empty")
    tag = pos.rsplit("+", 1)[-1]
    if head in UNLABELLED and relation in UNLABELLED:
        return Word(form, tag, None, None)
    if not (head.isascii() and head.isdecimal()) or int(head) > words or int(head) == index:
        raise BadInput(f"{place}: HEAD must be 0 (root) or another word 1..{words}; found {head!r}")
    if relation not in DP_LABELS:
        raise BadInput(f"{place}: unknown relation {relation!r} in DEPREL; expected one of {', '.join(DP_LABELS)}")
    return Word(form, tag, int(head), relation)


def _gold(words: list[Word], place: str) -> dict[str, Any] | None:
    if all(word.head is None for word in words):
        return None
    if any(word.head is None for word in words):
        raise BadInput(f"{place}: some rows of this sentence have HEAD and DEPREL, others do not; label all or none")
    return {"heads": [word.head for word in words], "types": [word.relation for word in words]}


def repair_forms(words: list[Word], written: list[str]) -> list[str]:
    """The words, with damaged ones restored from the sentence if it has as many words."""
    forms = [word.form for word in words]
    if len(written) != len(forms):
        return forms
    return [w if form == "#NAME?" or form.endswith("0%") else form for form, w in zip(forms, written, strict=True)]


def validate_tree(example: Example, prediction: Prediction) -> str | None:
    """``heads`` (0 the root) and ``types`` (of ``DP_LABELS``), one entry per word."""
    value = prediction.value
    words = len(example.inputs["words"])
    heads, types = (value.get("heads"), value.get("types")) if isinstance(value, dict) else (None, None)
    if not isinstance(heads, list) or not isinstance(types, list) or not len(heads) == len(types) == words:
        return f"expected 'heads' and 'types', lists of {words}, one entry a word; found {value!r:.60}"
    for head in heads:
        if type(head) is not int or not 0 <= head <= words:
            return f"no head {head!r}; heads are 0 (root) and the words 1 to {words}"
    odd = next((name for name in types if name not in DP_LABELS), None)
    return None if odd is None else f"no relation {odd!r}; relations here are {', '.join(sorted(DP_LABELS))}"


def write_trees(path: Path, values: Mapping[str, Any], target: Path) -> None:
    """Write the official file, uncompressed, with predicted HEAD and DEPREL."""

    def rewrite(block: Block) -> Iterator[str]:
        tree = values[block.guid]
        for (_, line), head, name in zip(block.lines, tree["heads"], tree["types"], strict=True):
            yield "\t".join([*line.split("\t")[:4], str(head), name])

    rewrite_blocks(path, target, rewrite)


def convert(rows: Sequence[dict[str, Any]], split: str) -> str:
    """The Hub's rows as an official file."""
    return format_blocks(rows, f"klue-dp-v1_{split}", {name.lower(): name for name in COLUMNS})
