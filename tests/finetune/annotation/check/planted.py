"""Damage of 14 kinds, planted into copies of five tasks, each as it happens to real files.

The table was written before the checks and not changed after them. Each kind names the checks that may report it. A
copy is a folder with files in their official format (topics as CSV with zero-padded numbers), written from records.
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

from finetune.data.files import read_blocks, read_json

Record = dict[str, Any]
Splits = dict[str, list[Record]]  # train and dev of one task
NAMES = {"ynat": "topics", **{task: f"klue-{task}-v1.1" for task in ("nli", "ner", "mrc", "dp")}}  # folders
NLI_LABELS = ("entailment", "contradiction", "neutral")
DATES = ("03월 04일", "4-Mar", "Mar-04", "2021-03-04 00:00:00")  # what "3-4" becomes
CELLS = ("#NAME?", "########", "#VALUE!", "#REF!", "#N/A", "#DIV/0!")
MARKUP = ("<br/>", "&lt;br&gt;", "</ref>", "&quot;", "&amp;nbsp;", "<p>", "&#39;", "<b>")
BROKEN = ("\ufffd", "\ufffd\ufffd", "占쏙옙", "ì•ˆë…•", "\x08")


def read_copy(folder: Path, task: str) -> list[Record]:
    """The records of an official file, or of a plain copy of it."""
    path = folder
    if task == "ner":
        return [_read_tagged(block.header, block.lines) for block in read_blocks(path)]
    if task == "dp":
        blocks = [(block.header.partition("\t"), block.lines) for block in read_blocks(path)]
        return [
            {"guid": guid, "sentence": text, "rows": [line.split("\t") for _, line in lines]}
            for (guid, _, text), lines in blocks
        ]
    if task == "mrc":
        return [
            {**question, "context": paragraph["context"]}
            for article in read_json(path)["data"]
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ]
    records: list[Record] = read_json(path)
    return records


def _read_tagged(header: str, lines: Iterable[tuple[int, str]]) -> Record:
    guid, _, text = header.partition("\t")
    rows = [line.rpartition("\t") for _, line in lines]
    return {"guid": guid, "sentence": text, "rows": [[character, tag] for character, _, tag in rows]}


def write_copy(folder: Path, task: str, splits: Splits) -> None:
    """Write all splits in the format of the task."""
    home = folder / NAMES[task]
    home.mkdir(parents=True, exist_ok=True)
    for split, records in splits.items():
        if task == "ynat":
            with (home / f"{split}.csv").open("w", encoding="utf-8", newline="") as file:
                rows = csv.DictWriter(file, ["id", "title", "label"], extrasaction="ignore")
                rows.writeheader()
                rows.writerows({**record, "id": record["guid"]} for record in records)
        elif task in ("ner", "dp"):
            text = "\n".join(
                "\n".join([f"## {r['guid']}\t{r['sentence']}", *("\t".join(row) for row in r["rows"]), ""])
                for r in records
            )
            (home / f"{NAMES[task]}_{split}.tsv").write_text(text + "\n", "utf-8")
        else:
            content: Any = records if task == "nli" else {"version": "1.1", "data": [_as_article(r) for r in records]}
            (home / f"{NAMES[task]}_{split}.json").write_text(json.dumps(content, ensure_ascii=False), "utf-8")


def _as_article(record: Record) -> Record:
    question = {key: value for key, value in record.items() if key != "context"}
    return {"title": "", "paragraphs": [{"context": record["context"], "qas": [question]}]}


class Place(NamedTuple):
    """Where damage is planted: a split, its other split, an item, a source of chance, and a guid for a copy."""

    records: list[Record]
    others: list[Record]
    item: Record
    chance: random.Random
    new_guid: str

    def add(self, **changes: Any) -> str:
        """Add a copy of the item to the split; returns its guid."""
        copy = {**deepcopy(self.item), **changes, "guid": self.new_guid}
        self.records.insert(self.chance.randrange(len(self.records) + 1), copy)
        return self.new_guid


Plant = Callable[[Place], str | None]  # the guid of the damaged item; None where this item cannot have such damage


def copy_exactly(place: Place) -> str:
    return place.add()


def copy_from_other_split(place: Place) -> str:
    return place._replace(item=place.chance.choice(place.others)).add()


def copy_with_other_label(place: Place) -> str | None:
    item, choose = place.item, place.chance.choice
    if "label" in item:
        return place.add(label=choose(sorted({r["label"] for r in place.records} - {item["label"]})))
    if "gold_label" in item:
        return place.add(gold_label=choose([label for label in NLI_LABELS if label != item["gold_label"]]))
    words = list(re.finditer(r"\w{2,}", item["context"]))
    if not item["answers"] or len(words) < 9:
        return None
    word = choose(words[:4] if item["answers"][0]["answer_start"] > words[4].start() else words[-4:])
    return place.add(answers=[{"text": word[0], "answer_start": word.start()}])


def nearly(text: str, chance: random.Random) -> str | None:
    """The text as an editor would copy it: another space, another stop, a syllable more or less, a doubled letter."""
    middle = chance.randrange(len(text) // 3, 2 * len(text) // 3) if len(text) >= 15 else 0
    if not middle or text[middle].isdigit() or text[middle - 1].isdigit():
        return None
    changed = chance.choice((
        text.rstrip(".?!") if text[-1] in ".?!" else text + ".",
        text.replace(" ", "", 1), text.replace(" ", "  ", 1),
        text[:middle] + text[middle + 1 :], text[:middle] + text[middle] + text[middle:],
        text.replace("은 ", "는 ", 1), text + "!", text.replace(",", "", 1),
    ))  # fmt: skip
    return changed if changed != text else None


def copy_nearly(place: Place) -> str | None:
    field = next(name for name in ("title", "hypothesis", "question") if name in place.item)
    changed = nearly(place.item[field], place.chance)
    return changed and place.add(**{field: changed})


def shift_answer(place: Place) -> str | None:
    item = place.item
    if not item["answers"]:
        return None
    answer = item["answers"][0]
    answer["answer_start"] += place.chance.choice((-3, -2, -1, 1, 2, 3, 11))
    text, start = answer["text"], answer["answer_start"]
    return item["guid"] if start >= 0 and not item["context"].startswith(text, start) else None


def continue_nothing(place: Place) -> str | None:
    rows = place.item["rows"]
    begins = [n for n, (_, tag) in enumerate(rows) if tag.startswith("B-") and n + 1 < len(rows)]
    if not begins:
        return None
    first = place.chance.choice(begins)
    kind = rows[first][1][2:]
    if rows[first + 1][1] == f"I-{kind}" and place.chance.random() < 0.5:
        rows[first][1] = "O"
    else:
        rows[first][1] = f"I-{kind}"
        if first and rows[first - 1][1][2:] == kind:
            return None
    return str(place.item["guid"])


def break_bracket(place: Place) -> str | None:
    """``<레이:PS>`` without its end, without its start, without its type, or nested."""
    found = list(re.finditer(r"<([^<>:]+):([A-Z]{2})>", place.item["sentence"]))
    if not found:
        return None
    one = place.chance.choice(found)
    text, kind = one[1], one[2]
    broken = place.chance.choice(
        (f"<{text}:{kind}", f"{text}:{kind}>", f"<{text}>", f"<<{text}:{kind}>:OG>", f"<{text}:;{kind}>")
    )
    place.item["sentence"] = place.item["sentence"][: one.start()] + broken + place.item["sentence"][one.end() :]
    return str(place.item["guid"])


def replace_cell(values: Iterable[str]) -> Plant:
    """Replace a cell that a spreadsheet keeps alone: a word of a tree, an answer, a title, a hypothesis."""
    choices = tuple(values)

    def plant(place: Place) -> str | None:
        item, value = place.item, place.chance.choice(choices)
        if "rows" in item:
            place.chance.choice(item["rows"])[1] = value
        elif "answers" in item:
            if not item["answers"]:
                return None
            item["answers"][0]["text"] = value
        else:
            item["title" if "title" in item else "hypothesis"] = value
        return str(item["guid"])

    return plant


def scientific(place: Place) -> str | None:
    digits = place.chance.randrange(10**5, 10**6)
    return replace_cell([f"{digits / 10**5:.5f}E+{place.chance.randrange(10, 16)}"])(place)


def lose_zeros(place: Place) -> str | None:
    """A cell such as 007, in the item and in its text, and then 7 in the item alone."""
    item, number = place.item, str(place.chance.randrange(1, 1000))
    zeros = "0" * place.chance.randrange(1, 3)
    if "label" in item and item["guid"].startswith("0"):
        short = item["guid"].lstrip("0")
        if not short or any(r["guid"] == short for r in place.records):
            return None
        item["guid"] = short
        return short
    if "rows" in item:
        at = place.chance.randrange(len(item["rows"]))
        words = item["sentence"].split()
        if len(words) != len(item["rows"]):
            return None
        words[at] = zeros + number
        item["sentence"] = " ".join(words)
        item["rows"][at][1] = number
        return str(item["guid"])
    if not item.get("answers") or not re.fullmatch(r"\d{2,}", item["answers"][0]["text"]):
        return None
    text, start = item["answers"][0]["text"], item["answers"][0]["answer_start"]
    item["context"] = item["context"][:start] + "0" + text[1:] + item["context"][start + len(text) :]
    item["answers"] = [{"text": text[1:].lstrip("0") or "0", "answer_start": start}]
    return str(item["guid"])


def break_text(place: Place) -> str | None:
    """A tag, an entity or broken letters in the text, at a space, everywhere the text is written."""
    item, junk = place.item, place.chance.choice(MARKUP + BROKEN)
    if "rows" in item and len(item["rows"][0]) == 6:
        row = place.chance.choice(item["rows"])
        words = item["sentence"].split()
        if len(words) != len(item["rows"]):
            return None
        row[1] += junk
        words[int(row[0]) - 1] += junk
        item["sentence"] = " ".join(words)
    elif "rows" in item:
        item["sentence"] += junk
        item["rows"] += [[character, "O"] for character in junk]
    else:
        field = next(name for name in ("title", "hypothesis", "question") if name in item)
        at = item[field].find(" ") + 1
        item[field] = item[field][:at] + junk + item[field][at:]
    return str(item["guid"])


def break_tree(place: Place) -> str | None:
    rows = place.item["rows"]
    if len(rows) < 4:
        return None
    kind, at = place.chance.randrange(5), place.chance.randrange(len(rows) - 2)
    if kind == 0:
        rows[at][4] = rows[at][0]
    elif kind == 1:
        rows[at][4] = str(len(rows) + place.chance.randrange(1, 9))
    elif kind == 2:
        rows[at][4] = "0"
    elif kind == 3:
        rows[at][4], rows[at + 1][4] = rows[at + 1][0], rows[at][0]
    else:
        root = next(row for row in rows if row[4] == "0")
        root[4] = rows[0][0] if root is not rows[0] else rows[1][0]
    return str(place.item["guid"])


def empty_field(place: Place) -> str | None:
    item, blank = place.item, place.chance.choice(("", " "))
    if "rows" in item:
        item["rows"][0][1] = "" if len(item["rows"][0]) == 2 else blank
    elif "question" in item:
        item["question"] = blank
    else:
        names = [name for name in ("title", "label", "premise", "hypothesis", "gold_label") if name in item]
        item[place.chance.choice(names)] = blank
    return str(item["guid"])


class Damage(NamedTuple):
    """A kind of damage: the checks that may report it, and how it comes into each task."""

    kind: str
    checks: frozenset[str]
    plant: Mapping[str, Plant]


def _damage(kind: str, checks: str, tasks: str, plant: Plant) -> Damage:
    return Damage(kind, frozenset(checks.split()), dict.fromkeys(tasks.split(), plant))


DAMAGE = (
    _damage("exact copy", "duplicate", "ynat nli ner mrc dp", copy_exactly),
    _damage("near copy", "near-duplicate", "ynat nli mrc", copy_nearly),
    _damage("conflicting label", "conflict", "ynat nli mrc", copy_with_other_label),
    _damage("copy in another split", "overlap", "ynat nli ner mrc dp", copy_from_other_split),
    _damage("offset", "offset", "mrc", shift_answer),
    _damage("I- after O", "tags", "ner", continue_nothing),
    _damage("broken bracket", "brackets", "ner", break_bracket),
    _damage("date", "spreadsheet", "mrc dp", replace_cell(DATES)),
    _damage("error cell", "spreadsheet", "ynat nli mrc dp", replace_cell(CELLS)),
    _damage("scientific number", "spreadsheet", "mrc dp", scientific),
    _damage("lost zeros", "spreadsheet", "ynat mrc dp", lose_zeros),
    _damage("broken text", "markup", "ynat nli ner mrc dp", break_text),
    _damage("tree", "tree", "dp", break_tree),
    _damage("empty field", "empty", "ynat nli ner mrc dp", empty_field),
)


def plant_all(copies: dict[str, Splits], count: int, seed: int) -> list[tuple[str, Damage, str]]:
    """Plant ``count`` of each kind, in turn over its tasks, each in another item of dev; returns task, kind, guid."""
    chance, planted = random.Random(seed), list[tuple[str, Damage, str]]()
    untouched = {task: chance.sample(splits["dev"], len(splits["dev"])) for task, splits in copies.items()}
    for damage in DAMAGE:
        tasks = list(damage.plant)
        for number in range(count):
            order = [*tasks[number % len(tasks) :], *tasks[: number % len(tasks)]]  # the next one where none fits
            planted.append(
                next(one for task in order if (one := _plant(damage, task, copies[task], untouched[task], chance)))
            )
    return planted


def _plant(
    damage: Damage, task: str, splits: Splits, untouched: list[Record], chance: random.Random
) -> tuple[str, Damage, str] | None:
    """Plant it into the first untouched item that can have it; None if there is none."""
    new = f"{chance.randrange(10**9)}"
    new = f"9{len(splits['dev']):04}" if task == "ynat" else f"{task}-copy-{new}"
    for place, item in enumerate(untouched):
        before = deepcopy(item)
        guid = damage.plant[task](Place(splits["dev"], splits["train"], item, chance, new))
        if guid is not None:
            del untouched[place]
            return task, damage, guid
        item.clear()
        item.update(before)
    return None
