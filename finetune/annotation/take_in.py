"""``take-in``: annotations from files into ``votes.jsonl``; worker ids are hashed, every value is checked.

Taking in a file again changes nothing: a vote replaces the earlier one of the same worker for the same item. The
released KLUE-NLI and KLUE-STS files bring their items too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.errors import BadInput
from finetune.annotation.config import Benchmark
from finetune.annotation.folder import ETHICS, GOLD, ITEMS, VOTES, Gold, Item, Vote, hash_worker, read_items, read_votes
from finetune.data.custom_files import Record, nfc, read_lines, read_table, text_in
from finetune.data.files import read_json, write_json_lines

REPORTS = (*ETHICS, "translation", "undecided")
ROLES = ("worker", "author", "adjudicator")
NLI_COLUMNS = {"author": "author", "label2": "worker", "label3": "worker", "label4": "worker", "label5": "worker"}


class Import(NamedTuple):
    """What one record of a file holds: a vote with the worker's own name, and items or gold that come with it."""

    where: str
    votes: Sequence[Vote] = ()
    item: Item | None = None
    gold: Any = None


Reader = Callable[[Path, Benchmark, Mapping[str, Item]], Iterable[Import]]


def take_in(benchmark: Benchmark, folder: Path, files: Sequence[Path], read: Reader) -> dict[str, Any]:
    """Add the annotations of ``files`` to the folder; returns counts. ``BadInput`` for a value that cannot be."""
    items = {item.id: item for item in read_items(folder)} if (folder / ITEMS).is_file() else {}
    votes = read_votes(folder) if (folder / VOTES).is_file() else {}
    hashes = cache(partial(hash_worker, folder))
    gold, new = dict[str, Gold](), list[Vote]()
    for path in files:
        for record in imports_of(path, benchmark, items, read):
            if record.item is not None:
                items[record.item.id] = record.item
            if record.gold is not None and record.item is not None:
                gold[record.item.id] = Gold(record.item.id, record.gold, len(record.votes))
            for vote in record.votes:
                # in NFC, since file names of some systems, which may be workers, are decomposed
                vote = Vote(vote.item, hashes(nfc(vote.worker)), nfc(vote.value), vote.role, vote.reports)
                check_vote(benchmark, items, vote, record.where)
                new.append(vote)
    if not new:
        raise BadInput(f"{files[0]}: no annotations in it; export the finished items with their annotations")
    merged, replaced = merge_votes(votes, new)
    write_json_lines(folder / ITEMS, items.values())
    if gold:
        write_json_lines(folder / GOLD, gold.values())
    write_json_lines(folder / VOTES, merged)
    return {
        "votes": len(new),
        "replaced": replaced,
        "all votes": len(merged),
        "items": len(items),
        "items without votes": len(items.keys() - {vote.item for vote in merged}),
        "workers": len({vote.worker for vote in merged if vote.worker}),
        "reports": dict(sorted(Counter(report for vote in merged for report in vote.reports).items())),
    }


def imports_of(path: Path, benchmark: Benchmark, items: Mapping[str, Item], read: Reader) -> Iterator[Import]:
    """The records of a file; ``BadInput`` for whatever its reader does not expect."""
    number = 0
    try:
        for record in read(path, benchmark, items):
            yield record
            number += 1
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        where = f"after annotation {number:,}, " if number else ""
        raise BadInput(f"{path}: {where}not laid out as the format of --from ({error!r}); check both") from None


def merge_votes(before: Mapping[str, Sequence[Vote]], new: Sequence[Vote]) -> tuple[list[Vote], int]:
    """All votes in the order of items and workers, and how many new votes replace an earlier one.

    New votes of unknown workers replace all earlier ones of unknown workers for the same item.
    """
    unnamed = {vote.item for vote in new if not vote.worker and vote.role == "worker"}
    merged = dict[tuple[str, str, str, int], Vote]()
    for vote in (vote for votes in before.values() for vote in votes):
        if vote.worker or vote.role != "worker" or vote.item not in unnamed:
            merged[_key(vote, len(merged))] = vote
    replaced = 0
    for vote in new:
        key = _key(vote, len(merged))
        replaced += key in merged
        merged[key] = vote
    return list(merged.values()), replaced


def _key(vote: Vote, number: int) -> tuple[str, str, str, int]:
    return vote.item, vote.worker, vote.role, 0 if vote.worker or vote.role != "worker" else number + 1


def item_of(items: Mapping[str, Item], name: str, where: str) -> Item:
    """An item by its id; ``BadInput`` if there is none."""
    if name not in items:
        raise BadInput(f"{where}: no item {name!r} in {ITEMS}; take in the file in the folder that handed it out")
    return items[name]


def check_vote(benchmark: Benchmark, items: Mapping[str, Item], vote: Vote, where: str) -> None:
    """``BadInput`` unless the vote's item, role, reports and value can be."""
    item = item_of(items, vote.item, where)
    if vote.role not in ROLES:
        raise BadInput(f"{where}: role {vote.role!r}; expected {', '.join(ROLES)}")
    if unknown := [report for report in vote.reports if report not in REPORTS]:
        raise BadInput(f"{where}: report {unknown[0]!r}; expected {', '.join(REPORTS)}")
    if vote.value is None and not vote.reports:
        raise BadInput(f"{where}: no value; leave the vote out, or give a report such as undecided")
    if vote.value is not None and (problem := value_problem(benchmark, item, vote.value)):
        raise BadInput(f"{where}: {problem}")


def value_problem(benchmark: Benchmark, item: Item, value: Any) -> str | None:
    """What is wrong with a value; None if nothing is."""
    kind, length = benchmark.form.vote, len(item.text)
    if {*item.texts} != {*benchmark.form.texts}:
        return f"item {item.id!r} has {', '.join(item.texts)}; expected {', '.join(benchmark.form.texts)}"
    if kind == "label":
        return None if value in benchmark.labels else f"label {value!r}; expected {', '.join(benchmark.labels)}"
    if kind == "score":
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 5
        return None if is_number else f"score {value!r}; expected a number from 0 to 5"
    if kind == "state":
        return None if isinstance(value, dict) else f"state {value!r:.60}; expected slots with their values"
    if not isinstance(value, list):
        return f"{value!r:.60}; expected a list"
    if kind == "words":
        return None if all(isinstance(word, str) for word in value) else "expected one text for each word"
    for span in value:
        is_pair = isinstance(span, list) and len(span) >= 2 and all(type(offset) is int for offset in span[:2])
        if not (is_pair and 0 <= span[0] < span[1] <= length):
            return f"span {span!r:.60}; expected offsets 0 <= start < end <= {length} in the text"
        if kind == "answer" and len(span) != 2:
            return f"span {span!r:.60}; expected start and end"
        if kind == "spans" and (len(span) != 3 or span[2] not in benchmark.labels):
            return f"span {span!r:.60}; expected start, end and one of {', '.join(benchmark.labels)}"
    return None


def read_vote_table(path: Path, benchmark: Benchmark, items: Mapping[str, Item]) -> Iterator[Import]:
    """CSV, TSV or JSON lines with the columns item, worker, value and optionally role and reports."""
    for record in read_table(path, ["item", "worker", "value"], "rename them"):
        row, value = record.values, record.values["value"]
        reports = row.get("reports") or ()
        reports = tuple(reports.replace(",", " ").split()) if isinstance(reports, str) else tuple(reports)
        if isinstance(value, str) and benchmark.form.vote != "label":
            value = _parse(value, record)
        elif isinstance(value, int):
            value = json.dumps(value) if benchmark.form.vote == "label" else value  # 1 and true, as labels are texts
        value = None if value == "" else value
        vote = Vote(text_in(row["item"]), text_in(row["worker"]), value, row.get("role") or "worker", reports)
        yield Import(record.where, [vote])


def _parse(value: str, record: Record) -> Any:
    try:
        return json.loads(value) if value.strip() else None
    except ValueError:
        raise BadInput(f"{record.where}: value {value!r:.60}; expected a number or a JSON list") from None


def read_klue(path: Path, benchmark: Benchmark, items: Mapping[str, Item]) -> Iterator[Import]:
    """Items, votes and released gold of an official KLUE-NLI or KLUE-STS file."""
    read = {"nli": _read_klue_nli, "sts": _read_klue_sts}.get(benchmark.task)
    records = read_json(path)
    if read is None or not isinstance(records, list):
        raise BadInput(f"{path}: expected KLUE-NLI (task: nli) or KLUE-STS (task: sts); other files hold no votes")
    yield from (read(f"{path}, record {number}", record) for number, record in enumerate(records, start=1))


def _read_klue_nli(where: str, record: Mapping[str, Any]) -> Import:
    texts = {name: record[name] for name in ("premise", "hypothesis")}
    source = record.get("source") or record["genre"]
    item = Item(record["guid"], source.lower(), texts, (), {"group": record["premise"]})
    votes = [Vote(item.id, "", record[column], role) for column, role in NLI_COLUMNS.items() if record.get(column)]
    return Import(where, votes, item, record["gold_label"])


def _read_klue_sts(where: str, record: Mapping[str, Any]) -> Import:
    texts = {name: record[name] for name in ("sentence1", "sentence2")}
    source, _, pair = record["source"].partition("-")
    item = Item(record["guid"], source, texts, (), {"pair": pair})
    annotations = record["annotations"]
    pairs = zip(annotations["annotators"], annotations["annotations"], strict=True)
    votes = [Vote(item.id, worker, score) for worker, score in pairs]
    return Import(where, votes, item, record["labels"]["label"])


def read_conllu(path: Path, benchmark: Benchmark, items: Mapping[str, Item]) -> Iterator[Import]:
    """One worker's trees (CoNLL-U; the file's name is the worker): one "head:relation" for each word."""
    name, words, tags, number = "", list[str](), list[str](), 0
    for line_number, line in enumerate([*read_lines(path), ""], start=1):
        cells = line.split("\t")
        if line.startswith("# sent_id"):
            name = line.partition("=")[2].strip()
        elif len(cells) >= 8 and cells[0].isdigit():
            words.append(cells[1])
            tags.append(f"{cells[6]}:{cells[7]}")
        elif not line.strip() and words:
            number += 1
            item = Item(name or f"s{number}", "", {"text": " ".join(words)})
            yield Import(f"{path}, line {line_number}", [Vote(item.id, path.stem, tags)], item)
            name, words, tags = "", [], []
        elif line.strip() and not line.startswith("#") and not cells[0][:1].isdigit():
            raise BadInput(f"{path}, line {line_number}: expected ten columns separated by tabs (CoNLL-U)")


def read_dialogues(path: Path, benchmark: Benchmark, items: Mapping[str, Item]) -> Iterator[Import]:
    """One worker's dialogues in the layout of WoS (the file's name is the worker): slots and values of a user turn."""
    for dialogue in read_json(path):
        said = list[str]()
        for number, turn in enumerate(dialogue["dialogue"]):
            said.append(f"{turn['role']}: {turn['text']}")
            if "state" not in turn:
                continue
            parts = (slot_value.split("-", 2) for slot_value in turn["state"])  # domain, slot, value
            item = Item(f"{dialogue['guid']}-{number}", "", {"text": "\n".join(said)}, (), {"group": dialogue["guid"]})
            state = {f"{domain}-{slot}": value for domain, slot, value in parts}
            yield Import(f"{path}, {item.id}", [Vote(item.id, path.stem, state)], item)


READERS: dict[str, Reader] = {"votes": read_vote_table, "klue": read_klue, "conllu": read_conllu, "wos": read_dialogues}
