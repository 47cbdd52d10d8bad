"""KLUE-DP files and new text: words (eojeol) with part-of-speech tags, heads and relation types.

A spreadsheet damaged some words of the official files: "#NAME?" for a word with signs, "0.90%" for "0.9%". They are
restored from the sentence in the header line; ``as_it_stands`` keeps them, as published.

New text has no gold tags, which the published scores use. mecab-ko's tags differ from KLUE's in names (NNBC, SSO, MM …)
and in annotation: on KLUE-DP dev 94.9 % of the last tags are equal (docs/predict.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from corpus.documents.mecab import MAX_ANALYZED_CHARS, tag_morphemes
from finetune.data.custom_files import nfc
from finetune.data.files import CUSTOM_HINT, Block, format_blocks, read_blocks, rewrite_blocks
from finetune.examples import Example, Prediction
from finetune.task import RawInput
from finetune.task_names import klue_facts
from finetune.tasks.dp.metrics import DP_LABELS
from finetune.tasks.labels import parse_texts

POS_TAGS = tuple(klue_facts("klue-dp")["pos_tags"])  # the root and a tag that is not among them have ids of their own
POS_IDS = {tag: number for number, tag in enumerate(POS_TAGS)}
ROOT_POS, UNKNOWN_POS = len(POS_TAGS), len(POS_TAGS) + 1
COLUMNS = ("INDEX", "WORD_FORM", "LEMMA", "POS", "HEAD", "DEPREL")
UNLABELLED = {"", "-", "_"}


def read_sentences(path: Path, *, as_it_stands: bool = False) -> list[Example]:
    """Sentences of an official file; ``inputs``: ``words`` and their last ``pos`` tags; gold None without labels."""
    examples = []
    for block in read_blocks(path):
        rows = [
            parse_word(line, f"{path}, line {number}, {block.guid}", index, len(block.lines))
            for index, (number, line) in enumerate(block.lines, start=1)
        ]
        forms, pos, heads, types = (list(column) for column in zip(*rows, strict=True))
        if None in heads and any(head is not None for head in heads):
            raise BadInput(
                f"{path}, line {block.lines[0][0]}, {block.guid}: some rows of this sentence have HEAD and DEPREL, "
                "others do not; label all or none"
            )
        words = forms if as_it_stands else repair_forms(forms, block.header.partition("\t")[2].split())
        gold = None if None in heads else {"heads": heads, "types": types}
        examples.append(Example(block.guid, gold, {"words": words, "pos": pos}))
    without = [example.guid for example in examples if example.gold is None]
    if 0 < len(without) < len(examples):
        raise BadInput(f"{path}, {without[0]}: no HEAD and DEPREL here, but in other sentences; label all or none")
    return examples


def parse_word(line: str, place: str, index: int, words: int) -> tuple[str, str, int | None, str | None]:
    """Form, last tag, head and relation type of a row, the last two None in a file without labels; ``index`` is the
    number that it must have, ``words`` the number of rows."""
    columns = line.split("\t")
    if len(columns) == len(COLUMNS) - 2:  # a test file without the last two
        columns += ["", ""]
    if len(columns) != len(COLUMNS):
        raise BadInput(f"{place}: expected columns {', '.join(COLUMNS)}; found {len(columns)}; {CUSTOM_HINT}")
    number, form, _, pos, head, relation = columns
    if number != str(index):
        raise BadInput(f"{place}: expected INDEX {index}, found {number!r}; words count from 1 without gaps")
    if not form.strip():
        raise BadInput(f"{place}: WORD_FORM is empty")
    tag = pos.rsplit("+", 1)[-1]
    if head in UNLABELLED and relation in UNLABELLED:
        return form, tag, None, None
    if not (head.isascii() and head.isdecimal()) or int(head) > words or int(head) == index:
        raise BadInput(f"{place}: HEAD must be 0 (root) or another word 1..{words}; found {head!r}")
    if relation not in DP_LABELS:
        raise BadInput(f"{place}: unknown relation {relation!r} in DEPREL; expected one of {', '.join(DP_LABELS)}")
    return form, tag, int(head), relation


def repair_forms(forms: list[str], written: list[str]) -> list[str]:
    """The words, with damaged ones restored from the sentence if it has as many words."""
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
    odd = [name for name in types if name not in DP_LABELS]
    return f"no relation {odd[0]!r:.60}; relations here are {', '.join(sorted(DP_LABELS))}" if odd else None


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


LONGEST_RUN = 400  # characters analysed together
MECAB_TAGS = klue_facts("klue-dp")["mecab_tags"]  # mecab's names to KLUE's
BY_WORD = {(tag, word): name for tag, name, words in klue_facts("klue-dp")["tags_by_word"] for word in words.split()}


def parse_input(with_pos: bool, raw: RawInput, where: str) -> dict[str, Any] | None:
    """``words`` and their last ``pos`` tags, from a sentence, or a record with ``words`` and optionally ``pos``."""
    if isinstance(raw, Mapping) and "words" in raw:
        words, pos = raw["words"], raw.get("pos")
        if not (_are_texts(words) and all(len(word.split()) == 1 for word in words)):
            raise BadInput(f"{where}: 'words' should be a list of words without spaces")
        if pos is not None and not (_are_texts(pos) and len(pos) == len(words)):
            raise BadInput(f"{where}: 'pos' should be a list of tags, one for each of {len(words)} words")
        words = [nfc(word) for word in words]
    else:
        texts = parse_texts(("sentence",), raw, where)
        words, pos = texts["sentence"].split() if texts else [], None
    if not words:
        return None
    tags = [tag.rsplit("+", 1)[-1] for tag in pos] if pos else last_tags(words) if with_pos else [""] * len(words)
    return {"words": words, "pos": tags}


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def last_tags(words: Sequence[str]) -> list[str]:
    """The tag of each word's last morpheme, as mecab sees it in its sentence; "" if it cannot be aligned.

    >>> last_tags(["윤슬이", "두", "번", "웃었다."])
    ['JKS', 'MMN', 'NNB', 'SF']
    """
    words = [word[-MAX_ANALYZED_CHARS:] for word in words]
    tags: list[str] = []
    while len(tags) < len(words):
        run, size = list[str](), 0
        for word in words[len(tags) :]:
            size += len(word) + 1
            if run and size > LONGEST_RUN:
                break
            run.append(word)
        tags += _tags_of_run(run)
    return tags


def _tags_of_run(words: Sequence[str]) -> list[str]:
    morphemes = iter(tag_morphemes(" ".join(words).replace("\0", "?")))
    tags, left = [], 0
    for word in words:
        left += len(word)
        surface, tag = "", ""
        while left > 0:
            surface, tag = next(morphemes, ("", ""))
            if not surface:
                break
            left -= len(surface.replace(" ", ""))
        last = tag.rsplit("+", 1)[-1]
        named = BY_WORD.get((last, surface)) or MECAB_TAGS.get(last, last)
        tags.append(named if left == 0 and named in POS_IDS else "")
    return tags


def format_lines(result: Mapping[str, Any]) -> list[str]:
    """The sentence as a comment, and one line per word: number, word, head (0: the root), relation."""
    words, tree = result["words"], result["prediction"]
    rows = zip(range(1, len(words) + 1), words, tree["heads"], tree["types"], strict=True)
    return [f"# {' '.join(words)}", *("\t".join(map(str, row)) for row in rows)]
