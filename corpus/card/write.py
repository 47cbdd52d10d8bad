"""The data card of a cleaned corpus: ``README.md``, which makes its folder a Hub data set, and ``card.html``.

Facts are only read from what the stage left in its folder; what is not there is said to be missing, never guessed.
Safe to publish: wherever sample text is shown, whatever the detector still finds in it gives way to its type's name
(the price: replacements are shown for their own samples only), and settings lose folders, keys and credentials.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from corpus.card.korean import translate_html
from corpus.card.page import Bar, Part, mark_change, mark_replaced, render, to_bars
from corpus.documents.errors import BadInput
from corpus.documents.escaping import visible
from corpus.documents.whole_files import read_json, write_whole
from corpus.pii.detect import find_pii
from corpus.pii.types import ALL_TYPES, PII_TYPES

SHOWN_SOURCES = 12
SHOWN_PLOTS = 8
SAMPLES_PER_RULE = 3
EXAMPLES_PER_TASK = 2
IN_BENCHMARK = "in_benchmark"
HISTOGRAMS = ("chars_per_sentence", "sentences_per_document")

PII_NAMES = {
    "TEL": "telephone number", "RRN": "resident registration number", "FRN": "foreigner registration number",
    "EMAIL": "e-mail address", "IP": "IP address", "MAC": "MAC address", "MENTION": "@mention", "ADDRESS": "address",
    "ACCOUNT": "bank account number", "PASSPORT": "passport number", "DRIVER": "driver's licence number",
    "BRN": "business registration number", "HEALTH": "health insurance number", "CARD": "credit card number",
    "PLATE": "vehicle registration plate", "URL": "web address", "PERSON": "name of a person",
    "ORG_NUMBER": "company registration number", "HANDLE": "account of a messenger or network",
    "CUSTOMS": "personal customs code", "COURIER": "parcel number", "MEMBERSHIP": "membership number",
}  # fmt: skip
PARTS_OF_SIZE = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"),
                 (10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"), (10**9, "100M<n<1B"), (10**10, "1B<n<10B"),
                 (10**11, "10B<n<100B"), (10**12, "100B<n<1T"))  # fmt: skip
TREATMENTS = {
    "replace": "replaced by invented ones",
    "mask": "masked",
    "tag": "replaced by the name of their type",
    "drop": "taken out with their sentences",
}
CARD_NAME, PAGE_NAME = "README.md", "card.html"
DATA_FILES = "documents/*.parquet"
DRAWN = {
    "secret": "Replacements were drawn with a random secret that was thrown away when the corpus was done: nobody can "
    "recompute them.",
    "key": "Replacements were drawn with a secret key: a value has the same one in the whole corpus, and whoever holds "
    "the key can recompute it.",
    "seed": "Replacements are reversible: they were drawn from the seed of the recipe, so anyone with the recipe can "
    "test guesses of what was replaced.",
}
UNSHOWN = re.compile(r"key|secret|token|passw|credential", re.I)
NAMES_OF_SECRETS_ONLY = frozenset(("text_key", "id_key"))


def write_card(out: Path, settings: Mapping[str, Any], language: str = "en") -> None:
    """Write ``out/README.md`` and ``out/card.html``; the same folder and settings give the same bytes.

    Args:
        out: folder of a finished corpus stage: statistics.json, and where the stage left them decontamination.json,
            dropped/samples.parquet (rule, source, document, note, text) and changed/samples.parquet (rule, source,
            document, before, after).
        settings: of the stage, as plain values.
        language: of the page, "en" or "ko"; README.md is English, for the Hub.

    Raises:
        BadInput: statistics.json is missing or damaged.
    """
    facts = gather_facts(out, settings)
    write_whole(out / CARD_NAME, render("card.md.j2", facts))
    page = render("page.html.j2", facts)
    write_whole(out / PAGE_NAME, translate_html(page) if language == "ko" else page)


def gather_facts(out: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What both pages show, ready for the templates."""
    statistics = _read_json(out / "statistics.json")
    if statistics is None or "total" not in statistics or "sources" not in statistics:
        raise BadInput(f"{out / 'statistics.json'}: missing, or not of a finished corpus stage; run `malmoi corpus`")
    total = statistics["total"]
    dropped = _samples(out / "dropped" / "samples.parquet")
    changed = _samples(out / "changed" / "samples.parquet")
    lost = sum(total["dropped_sentences"].values())
    mode = settings.get("pii", {}).get("mode", "replace")
    card = settings.get("card", {})
    pretty_name = card.get("pretty_name") or f"Korean text, {total['sentences']:,} sentences"
    return {
        "metadata": _metadata(total["documents"], pretty_name, card.get("licence")),
        "pretty_name": pretty_name,
        "licence": card.get("licence"),
        "total": total,
        "source_count": len(statistics["sources"]),
        "sources": _sources(statistics["sources"]),
        "dropped_sentences": _rules(total["dropped_sentences"], dropped),
        "dropped_documents": _rules(total["dropped_documents"], {}),
        "duplicates": _duplicates(total),
        "looked_for_duplicates": any(settings.get("deduplicate", {}).get(k, True) for k in ("documents", "sentences")),
        "unaccounted": total["sentences_split"] - total["sentences"] - lost,
        "noise": [rule | {"samples": _changes(changed.get(rule["rule"], []))} for rule in _rules(total["changed"], {})],
        "unreadable": dict(sorted(statistics.get("records", {}).get("rejected", {}).items())),
        "is_protected": mode in TREATMENTS,
        "treatment": TREATMENTS.get(mode, ""),
        "drawn": DRAWN[_drawn_from(settings["pii"])] if mode == "replace" and "pii" in settings else "",
        "pii": _personal_data(total, changed),
        "values": sum(total["pii"].values()),
        "decontamination": _decontamination(out, total),
        "plots": _plots(statistics["sources"], total),
        "settings": yaml.safe_dump(publishable(settings), allow_unicode=True, sort_keys=True),
        "is_screened": bool(settings.get("toxicity", {}).get("enabled")),
    }


def _metadata(documents: int, pretty_name: str, licence: str | None) -> str:
    """What the Hub and ``load_dataset`` read: without the data files, samples would be taken for documents."""
    files = [{"split": "train", "path": DATA_FILES}]
    fields = {
        "pretty_name": visible(pretty_name),
        "language": ["ko"],
        "license": licence,
        "size_categories": [next((name for limit, name in PARTS_OF_SIZE if documents < limit), "n>1T")],
        "task_categories": ["fill-mask", "text-generation"],
        "tags": ["korean", "pretraining", "malmoi"],
        "configs": [{"config_name": "default", "data_files": files}],
    }
    return yaml.safe_dump({k: v for k, v in fields.items() if v}, allow_unicode=True, sort_keys=False)


def _drawn_from(pii: Mapping[str, Any]) -> str:
    """What replacements follow from."""
    if pii.get("key_file") or pii.get("key_variable"):
        return "key"
    return "seed" if pii.get("repeatable") else "secret"


def publishable(value: Any, under: str = "") -> Any:
    """Settings without folders of the machine, credentials and whatever a name calls a key or a secret."""
    if isinstance(value, Mapping):
        return {str(key): publishable(found, str(key)) for key, found in value.items()}
    if isinstance(value, str | Path):
        return "(not shown)" if UNSHOWN.search(under) and under not in NAMES_OF_SECRETS_ONLY else _public(str(value))
    if isinstance(value, Iterable):
        return [publishable(found, under) for found in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def hide(text: str) -> str:
    """``text`` with ``[TYPE]`` in place of what the detector finds."""
    pieces, position = [], 0
    for span in find_pii(text):
        pieces += [text[position : span.start], f"[{span.type}]"]
        position = span.end
    return "".join(pieces) + text[position:]


def _hide_in_name(text: str) -> str:
    """Sources and ids are often addresses of pages, which may stay."""
    found = [text[span.start : span.end] for span in find_pii(text) if span.type != "URL"]
    for value in found:
        text = text.replace(value, "…")
    return text


def _public(text: str) -> str:
    if "://" in text:
        scheme, _, rest = text.partition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}://{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"
    is_of_machine = text.startswith(("/", "~", "..", "\\")) or text[1:3] in (":\\", ":/")
    return hide(re.split(r"[/\\]", text.rstrip("/\\"))[-1] if is_of_machine else text)


def _sources(sources: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The largest sources, and the sum of all others as a last row."""
    rows = []
    for name, found in _largest(sources, SHOWN_SOURCES):
        rows.append({"name": name, "dropped": sum(found["dropped_sentences"].values()), **found})
    return rows


def _largest(sources: Mapping[str, Mapping[str, Any]], limit: int) -> list[tuple[str, Mapping[str, Any]]]:
    ordered = sorted(sources.items(), key=lambda item: (-item[1]["bytes"], item[0]))
    limit = limit if len(ordered) > limit + 1 else len(ordered)
    rows = [(_hide_in_name(name), found) for name, found in ordered[:limit]]
    if rest := ordered[limit:]:
        rows.append((f"… {len(rest):,} smaller sources", _sum([found for _, found in rest])))
    return rows


def _sum(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Nested counts added up."""
    names = dict.fromkeys(name for part in parts for name in part)
    result: dict[str, Any] = {}
    for name in names:
        values = [part[name] for part in parts if name in part]
        result[name] = _sum(values) if isinstance(values[0], Mapping) else sum(values)
    return result


def _rules(counts: Mapping[str, int], samples: Mapping[str, list[dict[str, str]]]) -> list[dict[str, Any]]:
    """Rules by falling count, each with some of the text it dropped."""
    by_rule: dict[str, list[dict[str, str]]] = defaultdict(list)
    for name, rows in samples.items():  # "in_benchmark:ynat" is a part of in_benchmark
        by_rule[name.partition(":")[0]] += rows
    return [
        {
            "rule": rule,
            "count": n,
            "samples": [
                {"text": hide(row["text"]), "source": _hide_in_name(row["source"])}
                for row in by_rule[rule][:SAMPLES_PER_RULE]
            ],
        }
        for rule, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _duplicates(total: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Counts of all rules about duplicates: documents, sentences of those documents, single sentences."""
    kinds = {"documents": total["dropped_documents"], "sentences": total["dropped_sentences"]}
    return {
        kind: {rule: n for rule, n in sorted(counts.items()) if "duplicate" in rule} for kind, counts in kinds.items()
    }


def _personal_data(total: Mapping[str, Any], changed: Mapping[str, list[dict[str, str]]]) -> list[dict[str, Any]]:
    """The 16 types in the order of Table 29, then those outside it that were asked for."""
    rows = []
    for kind in (name for name in ALL_TYPES if name in PII_TYPES or name in total["pii"]):
        samples = [
            mark_replaced(hide(row["before"]), row["after"])
            for row in changed.get(f"pii.{kind}", [])[:SAMPLES_PER_RULE]
        ]
        rows.append({"type": kind, "name": PII_NAMES[kind], "count": total["pii"].get(kind, 0), "samples": samples})
    return rows


def _changes(rows: Sequence[Mapping[str, str]]) -> list[tuple[list[Part], list[Part]]]:
    return [mark_change(hide(row["before"]), hide(row["after"])) for row in rows[:SAMPLES_PER_RULE]]


def _decontamination(out: Path, total: Mapping[str, Any]) -> dict[str, Any] | None:
    """Per task what was found; None where the stage left no report."""
    report = _read_json(out / "decontamination.json")
    if report is None:
        return None
    tasks = [
        {
            "task": task,
            "items": row["items"],
            "found": len(row["found"]),
            "dropped": row["dropped_sentences"],
            "examples": [
                {"item": hide(example["item"]), "sentence": hide(example["sentence"]),
                 "document": _hide_in_name(example["document"])}
                for example in row["examples"][:EXAMPLES_PER_TASK]
            ],
        }
        for task, row in sorted(report["tasks"].items())
    ]  # fmt: skip
    return {
        "settings": report["settings"],
        "benchmarks": [_public(name) for name in report["benchmarks"]],
        "tasks": tasks,
        "dropped": total["dropped_sentences"].get(IN_BENCHMARK, 0),
    }


def _plots(sources: Mapping[str, Mapping[str, Any]], total: Mapping[str, Any]) -> dict[str, Any] | None:
    """Histograms of all text and of the largest sources; None where the statistics have none."""
    if not all(name in total for name in HISTOGRAMS):
        return None
    named = [("all sources", total), *(_largest(sources, SHOWN_PLOTS) if len(sources) > 1 else ())]
    plots = []
    for source, found in named:
        bars: dict[str, list[Bar]] = {name: to_bars(found.get(name, {})) for name in HISTOGRAMS}
        if any(bars.values()):
            plots.append({"source": source, **bars})
    ranges = {}
    for name in HISTOGRAMS:
        lows = [bar.low for plot in plots for bar in plot[name]]
        ranges[name] = (min(lows, default=1), max(lows, default=1))
    return {"plots": plots, "ranges": ranges}


def _samples(path: Path) -> dict[str, list[dict[str, str]]]:
    """Rows by rule in file order; empty where the stage left none."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    if path.is_file():
        for row in pq.read_table(path).to_pylist():
            found[row["rule"]].append(row)
    return found


def _read_json(path: Path) -> Any:
    return read_json(path, "run the corpus stage again") if path.is_file() else None
