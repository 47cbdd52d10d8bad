"""Items of tagged sentences and of trees: KLUE-NER, KLUE-DP, CoNLL files, spans.

The tags of KLUE-NER were made from sentences with brackets, ``<레이:PS>``. Where the text has ``<`` itself, the tags
are wrong (KLUE#39), so both are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from finetune.annotation.check.cells import damage_of_cell
from finetune.annotation.check.items import Item, Problem
from finetune.data.custom_files import read_words
from finetune.data.files import Block
from finetune.tasks.dp.metrics import DP_LABELS
from finetune.tasks.ner.metrics import NER_TAGS
from finetune.tasks.ner.task import find_entities

BRACKETS = re.compile(r"<([^<>]*):([A-Z]{2,6})>")
REMAINS = re.compile(r"[:;](?:PS|LC|OG|DT|TI|QT)\b|:[A-Z]{2}>")
Entity = tuple[str, int, int]  # type, start, end


def read_tagged(block: Block, split: str) -> Item:
    """A sentence of KLUE-NER, one character and its tag a line."""
    guid, _, marked = block.header.partition("\t")
    rows = [line.rpartition("\t") if "\t" in line else (line, "", "") for _, line in block.lines]
    text, tags = "".join(character for character, _, _ in rows), [tag for _, _, tag in rows]
    problems: list[Problem] = [("empty", "a line without character") for character, _, _ in rows if not character]
    problems += [("tags", f"line with {character!r}") for character, _, _ in rows if len(character) > 1]
    gold = tuple(tags) if any(tags) else None
    entities = [(kind.strip("()"), begin, end) for kind, begin, end in find_entities("." * len(tags), tags)]
    problems += check_tags(tags, NER_TAGS) if gold else ()
    if gold and not problems:
        problems += check_edges(text, [span[1:] for span in entities])
    if marked:
        problems += _compare_brackets(marked, text, entities if gold else None)
    return Item(guid.strip(), split, {"text": text}, gold, problems)


def _compare_brackets(marked: str, text: str, entities: Sequence[Entity] | None) -> Iterator[Problem]:
    plain, bracketed, done = "", list[Entity](), 0
    for match in BRACKETS.finditer(marked):
        plain += marked[done : match.start()]
        bracketed.append((match[2], len(plain), len(plain) + len(match[1])))
        plain += match[1]
        done = match.end()
    plain += marked[done:]
    if remains := REMAINS.search(plain):
        yield "brackets", f"{plain[max(0, remains.start() - 20) : remains.end() + 5]} remains of entity brackets"
    if plain != text.rstrip() and plain != text:
        shorter = min(len(plain), len(text))
        start = max(0, next((n for n in range(shorter) if plain[n] != text[n]), shorter) - 8)
        shown = f"{plain[start : start + 20]!r}, the characters are {text[start : start + 20]!r}"
        yield "brackets", f"the sentence is {shown}"
    elif entities is not None and entities != bracketed:
        names = [", ".join(f"{text[a:b]}:{kind}" for kind, a, b in one if (kind, a, b) not in other) or "nothing"
                 for one, other in ((bracketed, entities), (entities, bracketed))]  # fmt: skip
        yield "brackets", f"{names[0]} by the brackets, {names[1]} by the tags"


def check_tags(tags: Sequence[str], known: Sequence[str] = ()) -> Iterator[Problem]:
    """Missing and unknown tags, and those that continue nothing."""
    for before, tag in pairwise(["O", *tags]):
        if not tag:
            yield "empty", "a character or word has no tag"
        elif tag != "O" and ((known and tag not in known) or not re.fullmatch(r"[BIESUL]-\S+", tag)):
            yield "tags", f"no tag {tag!r:.40}"
        elif tag[0] in "IEL" and before[2:] != tag[2:]:
            yield "tags", f"{tag} after {before or 'no tag'}"


def check_edges(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[Problem]:
    """Entities that begin or end with a space (KLUE#21)."""
    names = [text[begin:end] for begin, end in spans]
    yield from (("tags", f"entity {name!r} begins or ends with a space") for name in names if name != name.strip())


def read_conll(path: Path, split: str) -> list[Item]:
    """Sentences of a CoNLL file. In a file where most entities begin with I- (IOB1), that is no error."""
    sentences, items = read_words(path), list[Item]()
    if not any(any(s.tags) for s in sentences):
        raise BadInput(f"{path}: no tags in it; expected a word and its tag on each line")
    firsts = [tag[0] for s in sentences for before, tag in pairwise(["O", *s.tags]) if tag[2:] and before == "O"]
    for s in sentences:
        problems = list(check_tags(s.tags)) if any(s.tags) else []
        if 2 * firsts.count("I") > len(firsts):
            problems = [problem for problem in problems if " after " not in problem[1]]
        gold = tuple(s.tags) if any(s.tags) else None
        items.append(Item(s.name or str(s.line), split, {"tokens": " ".join(s.words)}, gold, problems))
    return items


def check_spans(text: str, spans: Any) -> tuple[Any, list[Problem]]:
    """Gold and problems of ``[start, end, label]`` lists or objects in a text."""
    problems, gold = list[Problem](), list[tuple[int, int, str]]()
    for span in spans if isinstance(spans, list) else []:
        parts = [span.get(key) for key in ("start", "end", "label")] if isinstance(span, Mapping) else span
        begin, end, label = parts[:3] if isinstance(parts, list) and len(parts) > 2 else [None] * 3
        if not (isinstance(begin, int) and isinstance(end, int) and 0 <= begin < end <= len(text)):
            problems.append(("offset", f"span {span!r:.60} is empty or outside the text of {len(text)} characters"))
        elif isinstance(span, Mapping) and span.get("text") not in (None, text[begin:end]):
            problems.append(("offset", f"{span['text']!r:.60} is named, but {text[begin:end]!r:.60} is there"))
        elif any(begin < other_end and other_begin < end for other_begin, other_end, _ in gold):
            problems.append(("tags", f"entity {text[begin:end]!r} overlaps another"))
        else:
            gold.append((begin, end, str(label)))
    return tuple(gold), [*problems, *check_edges(text, [span[:2] for span in gold])]


def read_tree(block: Block, split: str) -> Item:
    """A sentence of KLUE-DP."""
    guid, _, sentence = block.header.partition("\t")
    rows = [[*line.split("\t"), *[""] * 6][:6] for _, line in block.lines]
    forms, written = [row[1] for row in rows], sentence.split()
    problems: list[Problem] = [("empty", "a word is empty") for form in forms if not form.strip()]
    cells = list(zip(forms, written, strict=True)) if len(forms) == len(written) else []
    if sentence and not cells:
        problems.append(("word", f"{len(forms)} words, but {len(written)} in the sentence"))
    differing = [(a, b) for a, b in cells if a != b and a.strip() and not damage_of_cell(a, b)]
    problems += [("word", f"{form!r}, but {word!r} in the sentence") for form, word in differing]
    heads, relations = [row[4] for row in rows], [row[5] for row in rows]
    gold = (tuple(heads), tuple(relations)) if any(head not in ("", "_", "-") for head in heads) else None
    problems += _check_heads(heads, relations, [row[0] for row in rows]) if gold else ()
    return Item(guid.strip(), split, {"sentence": sentence or " ".join(forms)}, gold, problems, cells)


def _check_heads(heads: Sequence[str], relations: Sequence[str], numbers: Sequence[str]) -> Iterator[Problem]:
    size = len(heads)
    if list(numbers) != [str(n) for n in range(1, size + 1)]:
        yield "tree", "words are not numbered 1, 2, 3 …"
    yield from (("tree", f"no relation {name!r}") for name in relations if name not in DP_LABELS)
    if bad := [head for head in heads if not (head.isascii() and head.isdecimal() and int(head) <= size)]:
        yield "tree", f"head {bad[0]!r} is not 0 to {size}"
        return
    links = [int(head) for head in heads]
    if (roots := links.count(0)) != 1:
        yield "tree", f"{roots} roots"
    reaches = {0}  # words from which the root is reached, or which are reported
    for word in range(1, size + 1):
        path = list[int]()
        while word not in reaches and word not in path:
            path.append(word)
            word = links[word - 1]
        if word in path:
            yield "tree", f"a cycle at word {word}"
        reaches |= set(path)
