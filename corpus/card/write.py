"""Write the data card of a corpus: ``README.md``, which makes the folder a Hub data set, and ``card.html``.

All facts come from files in the output folder; missing facts are reported as missing. The card is safe to publish: in
sample text, everything that the detector finds is replaced by the name of its type, and settings are shown without
folders, keys and credentials.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from corpus.card.korean import translate_html
from corpus.card.page import excerpts, render
from corpus.documents.atomic_files import atomic_write, read_json
from corpus.documents.errors import BadInput
from corpus.documents.escaping import escape_controls
from corpus.pii.cover import cover_spans
from corpus.pii.detect import find_pii
from corpus.pii.types import ALL_TYPES, PII_TYPES

SHOWN_SOURCES, SAMPLES_PER_RULE, EXAMPLES_PER_TASK = 12, 3, 2
CARD_NAME, PAGE_NAME = "README.md", "card.html"
DATA_FILES = "documents/*.parquet"
IN_BENCHMARK = "in_benchmark"
UNITS = ("documents", "sentences", "characters")
FIRST_RULES = ("is_too_short", "has_too_many_han_or_kana")
LAST_RULES = (
    IN_BENCHMARK, "has_personal_data", "duplicate_document", "toxic", "is_boilerplate",
    "duplicate_sentence", "no_sentence_left",
)  # fmt: skip
"""Rules before and after the quality rules of raw web text, in the order of the stage."""

SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B", "10B<n<100B",
         "100B<n<1T", "n>1T")  # fmt: skip
TEXTS: dict[str, dict[str, str]] = yaml.safe_load(Path(__file__).with_name("texts.yaml").read_text("utf-8"))
UNSHOWN = re.compile(r"key|secret|token|passw|credential", re.I)
Row = dict[str, str]  # of a table of samples


def write_card(out: Path, settings: Mapping[str, Any], language: str = "en") -> None:
    """Write ``out/README.md`` and ``out/card.html``; the same folder and settings give the same bytes.

    Args:
        language: language of card.html, "en" or "ko"; README.md is always English.

    Raises:
        BadInput: statistics.json is missing or damaged.
    """
    facts = _gather_facts(out, settings)
    atomic_write(out / CARD_NAME, render("card.md.j2", facts))
    page = render("page.html.j2", facts)
    atomic_write(out / PAGE_NAME, translate_html(page) if language == "ko" else page)


def _gather_facts(out: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    statistics = read_json(path, "run the corpus stage again") if (path := out / "statistics.json").is_file() else None
    if statistics is None or "total" not in statistics or "sources" not in statistics:
        raise BadInput(f"{out / 'statistics.json'}: missing, or the corpus stage is not finished; run `malmoi corpus`")
    total, sources = statistics["total"], statistics["sources"]
    dropped, changed = (_samples(out / name / "samples.parquet") for name in ("dropped", "changed"))
    mode, pii, card = settings.get("pii", {}).get("mode", "replace"), settings.get("pii"), settings.get("card", {})
    pretty_name = f"Korean text, {total['sentences']:,} sentences"
    duplicates = {
        kind: {rule: n for rule, n in sorted(total[f"dropped_{kind}"].items()) if "duplicate" in rule}
        for kind in ("documents", "sentences")
    }
    return {
        "metadata": _metadata(total["documents"], pretty_name, card.get("licence")),
        "pretty_name": pretty_name,
        "licence": card.get("licence"),
        "total": total,
        "source_count": len(sources),
        "sources": [
            {"name": name, "dropped": sum(counts["dropped_sentences"].values()), **counts}
            for name, counts in _largest(sources, SHOWN_SOURCES)
        ],
        "dropped_sentences": _rules(total["dropped_sentences"], dropped, _dropped_sample),
        "dropped_documents": _rules(total["dropped_documents"], defaultdict(list), _dropped_sample),
        "steps": _before_and_after(total),
        "duplicates": duplicates,
        "looked_for_duplicates": any(settings.get("deduplicate", {}).get(kind, True) for kind in duplicates),
        "unaccounted": total["sentences_split"] - total["sentences"] - sum(total["dropped_sentences"].values()),
        "noise": _rules(total["changed"], changed, lambda row: excerpts(hide(row["before"]), hide(row["after"]))),
        "unreadable": dict(sorted(statistics.get("records", {}).get("rejected", {}).items())),
        "is_protected": mode in TEXTS["treatments"],
        "treatment": TEXTS["treatments"].get(mode, ""),
        "drawn": TEXTS["drawn"][_drawn_from(pii)] if mode == "replace" and pii else "",
        "pii": _personal_data(total["pii"], changed),
        "values": sum(total["pii"].values()),
        "decontamination": _decontamination(out, total),
        "settings": yaml.safe_dump(publishable(settings), allow_unicode=True, sort_keys=True),
        "is_screened": bool(settings.get("toxicity", {}).get("enabled")),
    }


def _metadata(documents: int, pretty_name: str, licence: str | None) -> str:
    """The YAML header of README.md; it names the data files, or samples would be loaded as documents."""
    fields = {
        "pretty_name": escape_controls(pretty_name),
        "language": ["ko"],
        "license": licence,
        "size_categories": [SIZES[min(max(0, len(str(documents)) - 3), len(SIZES) - 1)]],
        "task_categories": ["fill-mask", "text-generation"],
        "tags": ["korean", "pretraining", "malmoi"],
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": DATA_FILES}]}],
    }
    return yaml.safe_dump({k: v for k, v in fields.items() if v}, allow_unicode=True, sort_keys=False)


def _drawn_from(pii: Mapping[str, Any]) -> str:
    if pii.get("key_file") or pii.get("key_variable"):
        return "key"
    return "seed" if pii.get("repeatable") else "secret"


def publishable(value: Any, under: str = "") -> Any:
    """Settings without local folders, credentials, and values whose names say key or secret."""
    if isinstance(value, Mapping):
        return {str(key): publishable(setting, str(key)) for key, setting in value.items()}
    if isinstance(value, str | Path):
        return "(not shown)" if UNSHOWN.search(under) else _public(str(value))
    if isinstance(value, Iterable):
        return [publishable(setting, under) for setting in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def hide(text: str) -> str:
    """``text`` with ``[TYPE]`` in place of everything that the detector finds."""
    return cover_spans(text, find_pii(text), "tag")


def _hide_in_name(text: str) -> str:
    """The same for sources and ids; web addresses may stay."""
    for value in [text[span.start : span.end] for span in find_pii(text) if span.type != "URL"]:
        text = text.replace(value, "…")
    return text


def _public(text: str) -> str:
    if "://" in text:
        scheme, _, rest = text.partition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}://{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"
    is_of_machine = text.startswith(("/", "~", "..", "\\")) or text[1:3] in (":\\", ":/")
    return hide(re.split(r"[/\\]", text.rstrip("/\\"))[-1] if is_of_machine else text)


def _largest(sources: Mapping[str, Mapping[str, Any]], limit: int) -> list[tuple[str, Mapping[str, Any]]]:
    """The largest sources, and one row for the sum of the others."""
    ordered = sorted(sources.items(), key=lambda item: (-item[1]["bytes"], item[0]))
    limit = limit if len(ordered) > limit + 1 else len(ordered)
    rows = [(_hide_in_name(name), counts) for name, counts in ordered[:limit]]
    rest = [counts for _, counts in ordered[limit:]]
    return [*rows, (f"… {len(rest):,} smaller sources", _sum(rest))] if rest else rows


def _sum(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part[name] for part in parts if name in part]
        result[name] = _sum(values) if isinstance(values[0], Mapping) else sum(values)
    return result


def _rules(
    counts: Mapping[str, int], samples: Mapping[str, list[Row]], show: Callable[[Row], Any]
) -> list[dict[str, Any]]:
    """Rules by decreasing count, each with some samples."""
    return [
        {"rule": rule, "count": n, "samples": [show(row) for row in samples[rule][:SAMPLES_PER_RULE]]}
        for rule, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _before_and_after(total: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each rule that dropped something, with the numbers of documents, sentences and characters before and after it.

    A document counts under the rule that drops the whole of it. Characters are those of split sentences.
    """
    dropped = [total.get(f"dropped_{unit}", {}) for unit in UNITS]
    names = {rule for counts in dropped for rule in counts} - {*FIRST_RULES, *LAST_RULES}
    rules = sorted(names, key=lambda rule: (rule not in dropped[0], rule))  # those of documents are first
    steps, after = list[dict[str, Any]](), [total[unit] for unit in UNITS]
    for rule in reversed((*FIRST_RULES, *rules, *LAST_RULES)):
        before = [left + counts.get(rule, 0) for left, counts in zip(after, dropped, strict=True)]
        if before != after:
            steps.append({"rule": rule, "counts": list(zip(before, after, strict=True))})
        after = before
    return steps[::-1]


def _dropped_sample(row: Row) -> dict[str, str]:
    return {"text": hide(row["text"]), "source": _hide_in_name(row["source"])}


def _personal_data(counts: Mapping[str, int], changed: Mapping[str, list[Row]]) -> list[dict[str, Any]]:
    """The 16 types in the order of Table 29, then the extra types of the run."""
    names = [name for name in ALL_TYPES if name in PII_TYPES or name in counts]
    rows = {name: changed[f"pii.{name}"][:SAMPLES_PER_RULE] for name in names}
    shown = {name: [excerpts(hide(row["before"]), row["after"]) for row in rows[name]] for name in names}
    return [
        {"type": name, "name": TEXTS["types"][name], "count": counts.get(name, 0), "samples": shown[name]}
        for name in names
    ]


def _decontamination(out: Path, total: Mapping[str, Any]) -> dict[str, Any] | None:
    """Results per task; None without decontamination.json."""
    report = read_json(path, "run the corpus stage again") if (path := out / "decontamination.json").is_file() else None
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


def _samples(path: Path) -> dict[str, list[Row]]:
    """Sample rows by rule, with "in_benchmark:ynat" under in_benchmark; empty without a file."""
    rows_by_rule: dict[str, list[Row]] = defaultdict(list)
    for row in pq.read_table(path).to_pylist() if path.is_file() else []:
        rows_by_rule[row["rule"].partition(":")[0]].append(row)
    return rows_by_rule
