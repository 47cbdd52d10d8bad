"""Items of tagged sentences and of trees: KLUE-NER, KLUE-DP, CoNLL files, tables of tokens or spans.

The tags of KLUE-NER were made from sentences with brackets, ``<레이:PS>``. Where the text has ``<`` itself, the tags
are wrong (KLUE#39), so both are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from finetune.annotation.check.cells import damage_of_cell
from finetune.annotation.check.items import Item, Problem
from finetune.data.custom_files import Record, read_words
from finetune.data.files import Block
from finetune.tasks.dp.metrics import DP_LABELS
from finetune.tasks.ner.metrics import NER_TAGS

BRACKETS = re.compile(r"<([^<>]*):([A-Z]{2,6})>")
REMAINS = re.compile(r"[:;](?:PS|LC|OG|DT|TI|QT)\b|:[A-Z]{2}>")
Entity = tuple[str, int, int]  # type, start, end
IOB1_SHARE = 0.5  # of entities that begin with I-, from which the file follows IOB1


def read_tagged(block: Block, split: str) -> Item:
    """A sentence of KLUE-NER, one character and its tag a line."""
    guid, _, marked = block.header.partition("\t")
    rows = [line.rpartition("\t") if "\t" in line else (line, "", "") for _, line in block.lines]
    text, tags = "".join(character or " " for character, _, _ in rows), [tag for _, _, tag in rows]
    problems: list[Problem] = [("empty", "a line without character") for character, _, _ in rows if not character]
    problems += [("tags", f"line with {character!r}") for character, _, _ in rows if len(character) > 1]
    if any(tags):
        problems += check_tags(text, tags, NER_TAGS)
    if marked:
        problems += _compare_brackets(marked, text, list(entities_of(tags)) if any(tags) else None)
    return Item(guid.strip(), split, {"text": text}, tuple(tags) if any(tags) else None, problems=problems)


def _compare_brackets(marked: str, text: str, entities: Sequence[Entity] | None) -> Iterator[Problem]:
    plain, found, done = "", list[Entity](), 0
    for match in BRACKETS.finditer(marked):
        plain += marked[done : match.start()]
        found.append((match[2], len(plain), len(plain) + len(match[1])))
        plain += match[1]
        done = match.end()
    plain += marked[done:]
    if match := REMAINS.search(plain):
        yield "brackets", f"{plain[max(0, match.start() - 20) : match.end() + 5]} remains of entity brackets"
    if plain != text:
        yield "brackets", f"the sentence is {_differing(plain, text)}, the characters are {_differing(text, plain)}"
    elif entities is not None and entities != found:
        names = [", ".join(f"{text[a:b]}:{kind}" for kind, a, b in one if (kind, a, b) not in other) or "nothing"
                 for one, other in ((found, entities), (entities, found))]  # fmt: skip
        yield "brackets", f"{names[0]} by the brackets, {names[1]} by the tags"


def _differing(text: str, other: str) -> str:
    start = next((n for n, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(map(len, (text, other))))
    return repr(text[max(0, start - 8) : start + 12])


def entities_of(tags: Sequence[str]) -> Iterator[Entity]:
    """Entities of one tag per character or word; a stray I- begins one."""
    begin, before = 0, "O"
    for place, tag in enumerate([*tags, "O"]):
        if before[2:] and not (tag.startswith("I-") and tag[2:] == before[2:]):
            yield before[2:], begin, place
        if tag[2:] and not (tag.startswith("I-") and tag[2:] == before[2:]):
            begin = place
        before = tag


def check_tags(text: str, tags: Sequence[str], known: Sequence[str] = ()) -> Iterator[Problem]:
    """Tags of characters (``text`` as long as ``tags``) or of words (``text`` of another length)."""
    for before, tag in pairwise(["O", *tags]):
        if not tag:
            yield "empty", "a character or word has no tag"
        elif tag != "O" and (known and tag not in known or not re.fullmatch(r"[BIESUL]-\S+", tag)):
            yield "tags", f"no tag {tag!r:.40}"
        elif tag[:1] in ("I", "E", "L") and before[2:] != tag[2:]:
            yield "tags", f"{tag} after {before or 'no tag'}"
    for kind, begin, end in entities_of(tags) if len(text) == len(tags) else ():
        if (name := text[begin:end]) != name.strip():
            yield "tags", f"entity {name!r} ({kind}) begins or ends with a space"


def read_conll(path: Path, split: str) -> list[Item]:
    """Sentences of a CoNLL file; in IOB1 files, I- after O is no error."""
    sentences = read_words(path)
    begins = [tag[0] for s in sentences for before, tag in pairwise(["O", *s.tags]) if tag[2:] and before[2:] != tag[2:]]
    is_iob1 = begins.count("I") > IOB1_SHARE * len(begins)
    return [
        Item(
            s.name or f"{path.name}:{s.line}", split, {"text": " ".join(s.words)}, tuple(s.tags) if any(s.tags) else None,
            problems=[p for p in (check_tags("", s.tags) if any(s.tags) else ()) if not (is_iob1 and " after " in p[1])],
        )
        for s in sentences
    ]  # fmt: skip


def check_token_row(record: Record, tokens: str, tags: str) -> tuple[str, Any, list[Problem]]:
    """Text, tags and problems of a row with tokens and tags, lists or separated by spaces."""
    words, found = (_as_list(record.values.get(name)) for name in (tokens, tags))
    if tags not in record.values:
        return " ".join(words), None, []
    problems: list[Problem] = list(check_tags("", found))
    if len(words) != len(found):
        problems.append(("tags", f"{len(words)} tokens, but {len(found)} tags"))
    return " ".join(words), tuple(found), problems


def _as_list(value: Any) -> list[str]:
    return value.split() if isinstance(value, str) else [str(part) for part in value or ()]


def check_spans(text: str, spans: Any) -> tuple[Any, list[Problem]]:
    """Gold and problems of ``[start, end, label]`` lists or objects in a text."""
    problems, gold, covered = list[Problem](), list[Any](), 0
    for span in spans if isinstance(spans, list) else []:
        parts = [span.get(key) for key in ("start", "end", "label", "text")] if isinstance(span, Mapping) else [*span, None]
        begin, end, label, name = (parts + [None] * 4)[:4]
        if not (isinstance(begin, int) and isinstance(end, int) and 0 <= begin < end <= len(text)):
            problems.append(("offset", f"span {span!r:.60} is empty or outside the text of {len(text)} characters"))
            continue
        if isinstance(name, str) and text[begin:end] != name:
            problems.append(("offset", f"{name!r} is named, but {text[begin:end]!r} is there"))
        if text[begin:end] != text[begin:end].strip():
            problems.append(("tags", f"entity {text[begin:end]!r} begins or ends with a space"))
        if begin < covered:
            problems.append(("tags", f"entity {text[begin:end]!r} overlaps another"))
        covered = max(covered, end)
        gold.append((begin, end, str(label)))
    return tuple(gold), problems


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
    has_tree = any(head not in ("", "_", "-") for head in heads)
    problems += _check_heads(heads, relations, [row[0] for row in rows]) if has_tree else ()
    gold = (tuple(heads), tuple(relations)) if has_tree else None
    return Item(guid.strip(), split, {"sentence": sentence or " ".join(forms)}, gold, problems=problems, cells=cells)


def _check_heads(heads: Sequence[str], relations: Sequence[str], numbers: Sequence[str]) -> Iterator[Problem]:
    size = len(heads)
    if list(numbers) != [str(n) for n in range(1, size + 1)]:
        yield "tree", "words are not numbered 1, 2, 3 …"
    for name in relations:
        if name not in DP_LABELS:
            yield "tree", f"no relation {name!r}"
    if bad := [head for head in heads if not (head.isascii() and head.isdecimal() and int(head) <= size)]:
        yield "tree", f"head {bad[0]!r} is not 0 to {size}"
        return
    links = [int(head) for head in heads]
    if (roots := links.count(0)) != 1:
        yield "tree", f"{roots} roots"
    reaches = {0}
    for word in range(1, size + 1):
        path = list[int]()
        while word not in reaches and word not in path:
            path.append(word)
            word = links[word - 1]
        if word in path:
            yield "tree", f"word {word} depends on itself" if links[word - 1] == word else f"a cycle at word {word}"
        reaches |= set(path)
