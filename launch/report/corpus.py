"""What the corpus stage did to the text, in sums: sizes, drops, personal data, benchmarks. Samples are in its card."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpus.card.write import PII_NAMES
from launch.report.blocks import Bar, Bars, Block, Section, Table, Text
from launch.report.gather import count, read_json, share

SHOWN_SOURCES = 12


def corpus_sections(run: Path) -> list[Section]:
    """Three sections: sizes and drops, personal data, decontamination."""
    folder = run / "corpus"
    statistics = read_json(folder / "statistics.json")
    return [_sizes(statistics), _personal_data(statistics), _decontamination(folder)]


def _sizes(statistics: dict[str, Any]) -> Section:
    columns = ("documents", "sentences", "words", "characters", "bytes")
    largest = sorted(statistics["sources"].items(), key=lambda item: (-item[1]["characters"], item[0]))
    rows = [_size(name, found, columns) for name, found in largest[:SHOWN_SOURCES]]
    if len(largest) > SHOWN_SOURCES:
        rows.append([f"… and {count(len(largest) - SHOWN_SOURCES)} smaller sources", *("" for _ in columns), ""])
    rows.append(_size("all", statistics["total"], columns))
    blocks: list[Block] = [
        Table(["source", *columns, "sentences dropped"], rows, numbers=range(1, 7)),
        *_drops(statistics["total"]),
    ]
    unreadable = statistics["records"]["rejected"]
    if unreadable:
        reasons = ", ".join(f"{reason.replace('_', ' ')} {count(n)}" for reason, n in unreadable.items())
        blocks.append(Text(f"Records that could not be read, kept in corpus/quarantine with file and line: {reasons}."))
    return Section("Corpus", blocks)


def _size(name: str, found: dict[str, Any], columns: Sequence[str]) -> list[str]:
    return [name, *(count(found[column]) for column in columns), count(sum(found["dropped_sentences"].values()))]


def _drops(total: dict[str, Any]) -> list[Block]:
    """Drops by rule as tables, those that nothing fell under left out."""
    sentences = [
        [rule.replace("_", " "), count(n), share(n, total["sentences_split"])]
        for rule, n in total["dropped_sentences"].items()
    ]
    documents = [[rule.replace("_", " "), count(n)] for rule, n in total["dropped_documents"].items()]
    changed = [[rule.replace("_", " "), count(n)] for rule, n in total["changed"].items()]
    tables = [
        Table(["rule", "sentences", "share"], sentences, numbers=(1, 2), title="Dropped sentences"),
        Table(["rule", "documents"], documents, numbers=(1,), title="Dropped documents"),
        Table(["rule", "times"], changed, numbers=(1,), title="Cut out of sentences that stayed", folded=True),
    ]
    return [table for table in tables if table.rows]


def _personal_data(statistics: dict[str, Any]) -> Section:
    total = statistics["total"]
    touched = share(total["sentences_with_pii"], total["sentences"])
    most = max(1, *total["pii"].values())
    return Section(
        "Personal data",
        [
            Text(
                f"{count(sum(total['pii'].values()))} values replaced in {count(total['sentences_with_pii'])} "
                f"sentences ({touched}; the paper: 1.2 %). Types as in Table 29."
            ),
            Bars([Bar(PII_NAMES[name], name, n / most, count(n)) for name, n in total["pii"].items()]),
        ],
    )  # fmt: skip


def _decontamination(folder: Path) -> Section:
    found = read_json(folder / "decontamination.json")
    rows = [
        [task, count(row["items"]), count(len(row["found"])), count(row["dropped_sentences"])]
        for task, row in found["tasks"].items()
    ]
    if not rows:
        return Section("Decontamination", [Text("No benchmark files were given; nothing was kept out.")])
    settings = found["settings"]
    examples = [
        [task, example["item"], example["sentence"]]
        for task, row in found["tasks"].items()
        for example in row["examples"][:1]
    ]
    blocks: list[Block] = [
        Text(
            f"A corpus sentence goes when it covers {settings['threshold']:.0%} or more of a benchmark sentence's BM25 "
            f"weight (character {settings['ngram']}-grams)."
        ),
        Table(["task", "benchmark items", "found in the corpus", "sentences dropped"], rows, numbers=(1, 2, 3)),
    ]
    if examples:
        blocks.append(Table(["task", "benchmark item", "sentence dropped"], examples, title="One example each"))
    return Section("Decontamination", blocks)
