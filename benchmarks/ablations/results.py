"""Tables of an ablation, made of all cells that are complete, as text, Markdown, JSON and CSV.

```
cells/*/measured.json, cells/*/finetune/ ─┬─▶ Table 33: pseudonymized text beside plain, task by task
                                          ├─▶ Table 34: every vocabulary beside the first
                                          ├─▶ exposure of planted data, bits per character of held-out text
vocabularies/*/tokenizer ─────────────────┴─▶ Table 35: how the vocabularies fit held-out text
```
Means over seeds, intervals and paired tests are those of ``malmoi compare``, over seeds and examples together; an
example is a KLUE example, a planted value or a document. Holm corrects over each table.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from benchmarks.ablations.cells import PLAIN, PSEUDONYMIZED, READ, TEXTS, UNREAD, VOCABULARIES
from benchmarks.ablations.compared import Compared, Measured, compare_all, measured
from benchmarks.ablations.exposure import chance
from benchmarks.ablations.plant import TIMES
from benchmarks.paired import TaskKey, as_one, pairs_of, tested_tables
from corpus.documents.atomic_files import atomic_write
from corpus.documents.shards import read_documents, shard_paths
from finetune.data.files import find_file
from finetune.registry import find_task
from finetune.score.compare import Pair, Tested, compare
from finetune.score.results import Trained
from launch.console import PlainConsole, Table, markdown_table, number_table, print_table
from launch.manifest import write_json
from launch.numbers import count
from launch.report.differences import mean_of, p_of
from launch.report.results import read_json
from launch.tools.tokenizer_tables import compare_tokenizers, comparison_tables

Cells = Mapping[tuple[str, str], Mapping[int, dict[str, Any]]]  # vocabulary and text, to seed, to measured.json
Key = tuple[str, str]
SETTINGS_NAME, MEASURED_NAME, COUNT_NAME = "ablations.json", "measured.json", "planted.json"
RESULTS_NAME, TABLES_NAME, CSV_NAME, FIT_NAME = "results.json", "results.md", "results.csv", "table-35.json"
TESTED = ("a", "b", "b - a", "95 %", "p", "Holm")
LEFT = "Left: found again, with any separators or none."
NOTE = "a, b: mean ± standard deviation over seeds. 95 %: of the difference, over seeds and {}. Holm: over the table."


def show_results(out: Path, klue: str | None) -> dict[str, Any]:
    """Print the tables of all complete cells of ``out`` and write them beside the cells; returns results.json."""
    cells = _gather(out)
    if not cells:
        return {}
    planted = {text: read_json(path) for text in TEXTS if (path := out / "corpora" / text / COUNT_NAME).is_file()}
    scored = _scored(out, cells)
    table_33, table_34 = (
        compare(pairs, Path(klue) if klue else None, shuffles=0) if pairs else []
        for pairs in (_text_pairs(scored), _vocabulary_pairs(scored))
    )
    exposures, bits = compare_all(_exposure_pairs(cells)), compare_all(_bits_pairs(cells))
    others = read_json(out / SETTINGS_NAME)["measures"]["others"]
    tables = [
        _cells_table(cells), _planted_table(planted), _exposure_table(exposures, cells, others), _bits_table(bits),
        _scores_table(scored), *tested_tables("Table 33", table_33), *tested_tables("Table 34", table_34),
        *_fit_tables(out, cells, klue),
    ]  # fmt: skip
    tables = [table for table in tables if table.rows]
    console = PlainConsole()
    for table in tables:
        print_table(table, console)
    atomic_write(out / TABLES_NAME, "\n\n".join(f"{markdown_table(t)}\n\n{t.note}".strip() for t in tables) + "\n")
    rows = [*_rows_of("exposure", exposures), *_rows_of("bits", bits)]
    rows += [{"table": name, **_flat(t)} for name, tests in (("33", table_33), ("34", table_34)) for t in tests]
    _write_csv(out / CSV_NAME, rows)
    results = {
        "cells": [found for by_seed in cells.values() for found in by_seed.values()],
        "planted": planted,
        "table_33": [found.as_json() for found in table_33],
        "table_34": [found.as_json() for found in table_34],
        "exposure": [{"name": found.name, **found.as_json()} for found in exposures],
        "bits": [{"name": found.name, **found.as_json()} for found in bits],
    }
    write_json(out / RESULTS_NAME, results)
    return results


def _gather(out: Path) -> Cells:
    """Complete cells in the order of ``VOCABULARIES``, others after them."""
    found: dict[Key, dict[int, dict[str, Any]]] = {}
    for path in sorted((out / "cells").glob(f"*/{MEASURED_NAME}")):
        cell = read_json(path)
        found.setdefault((cell["vocabulary"], cell["text"]), {})[cell["seed"]] = cell
    return {key: dict(sorted(found[key].items())) for key in sorted(found, key=_place)}


def _place(key: Key) -> tuple[int, str, str]:
    names = list(VOCABULARIES)
    return (names.index(key[0]) if key[0] in names else len(names), *key)


def _beside_the_first(keys: Sequence[Key]) -> list[tuple[Key, Key]]:
    """Of each text the first vocabulary with every other one."""
    by_text = {text: [key for key in keys if key[1] == text] for text in TEXTS}
    return [(own[0], other) for own in by_text.values() for other in own[1:]]


# --- what is compared


def _scored(out: Path, cells: Cells) -> dict[Key, dict[TaskKey, Trained]]:
    """Results of all seeds as one model, by task."""
    return {
        key: as_one(", ".join(key), {seed: out / "cells" / f"{key[0]}-{key[1]}-seed-{seed}" for seed in by_seed})
        for key, by_seed in cells.items()
    }


def _text_pairs(scored: Mapping[Key, Mapping[TaskKey, Trained]]) -> list[Pair]:
    names = [name for name, text in scored if text == PLAIN and (name, PSEUDONYMIZED) in scored]
    return [pair for name in names for pair in pairs_of(scored[name, PLAIN], scored[name, PSEUDONYMIZED])]


def _vocabulary_pairs(scored: Mapping[Key, Mapping[TaskKey, Trained]]) -> list[Pair]:
    return [pair for a, b in _beside_the_first(list(scored)) for pair in pairs_of(scored[a], scored[b])]


def _exposure_pairs(cells: Cells) -> dict[tuple[str, int], tuple[Measured, Measured]]:
    """By vocabulary and times planted: models of plain and of pseudonymized text."""
    found = {}
    for name, text in cells:
        if text == PLAIN and (name, PSEUDONYMIZED) in cells:
            for times in TIMES:
                sides = [_exposures(cells[name, own], times) for own in TEXTS]
                found[name, times] = (sides[0], sides[1])
    return found


def _exposures(by_seed: Mapping[int, dict[str, Any]], times: int) -> Measured:
    return measured({
        seed: {str(n): (one["exposure"], 1.0) for n, one in enumerate(cell["exposure"]) if one["times"] == times}
        for seed, cell in by_seed.items()
    })  # fmt: skip


def _bits_pairs(cells: Cells) -> dict[tuple[str, str, str, str], tuple[Measured, Measured]]:
    """By held-out text, text, and two vocabularies: bits per character."""
    found = {}
    for held_out in (READ, UNREAD):
        for first, other in _beside_the_first(list(cells)):
            a, b = (_bits(cells[key], held_out) for key in (first, other))
            if a and b:
                found[held_out, first[1], first[0], other[0]] = (a, b)
    return found


def _bits(by_seed: Mapping[int, dict[str, Any]], held_out: str) -> Measured | None:
    if any(held_out not in cell["bits"] for cell in by_seed.values()):
        return None
    return measured({seed: cell["bits"][held_out] for seed, cell in by_seed.items()})


# --- tables


def _cells_table(cells: Cells) -> Table:
    figures_of_cells = ("seeds", "entries", "M\nparameters", "steps", "M\ntokens", "M\ncharacters")
    heads = ("vocabulary, text", *figures_of_cells, *(f"bits,\n{held_out}" for held_out in (READ, UNREAD)))
    rows = []
    for key, by_seed in cells.items():
        facts = next(iter(by_seed.values()))["trained"]
        sizes = (f"{facts['parameters'] / 1e6:.2f}", count(facts["steps"]))
        seen = (f"{facts['tokens'] / 1e6:.2f}", f"{facts['characters'] / 1e6:.2f}")
        both = (_bits(by_seed, held_out) for held_out in (READ, UNREAD))
        bits = [f"{bits.sample.scores_S.mean():.3f}" if bits else "–" for bits in both]
        rows.append([", ".join(key), ", ".join(map(str, by_seed)), count(facts["entries"]), *sizes, *seen, *bits])
    note = (
        "Equal operations. Tokens and characters (no blanks) read in training. Bits per character of hidden eojeols of "
        f"held-out text; {READ}: of sources that are trained on, {UNREAD}: of others."
    )
    return number_table("Cells", heads, rows, note)


def _planted_table(planted: Mapping[str, Mapping[str, int]]) -> Table:
    heads = ("text", "values planted", "copies", "values left", "copies left")
    keys = ("values", "copies", "values_left", "copies_left")
    rows = [[text, *(count(found[key]) for key in keys)] for text, found in planted.items()]
    return number_table("Planted personal data in the corpus", heads, rows, LEFT)


def _exposure_table(found: Sequence[Compared[tuple[str, int]]], cells: Cells, others: int) -> Table:
    rows = []
    for one in found:
        name, times = one.name
        drawn = [_drawn_out(cells[name, text], times) for text in TEXTS]
        rows.append([f"{name}, {times} {'time' if times == 1 else 'times'}", *_cells_of(one), *drawn])
    heads = ("vocabulary, planted", *TESTED, "drawn\nout, a", "drawn\nout, b")
    note = (
        f"Bits of exposure, a: plain text, b: pseudonymized. {NOTE.format('planted values')} A value never seen has "
        f"{chance(others):.2f} on average. Drawn out: among the ten likeliest where the whole value is hidden, of all "
        "values and seeds."
    )
    return number_table("Exposure of planted personal data", heads, rows, note)


def _drawn_out(by_seed: Mapping[int, dict[str, Any]], times: int) -> str:
    found = [one["extracted"] for cell in by_seed.values() for one in cell["exposure"] if one["times"] == times]
    return f"{sum(found)} of {len(found)}"


def _bits_table(found: Sequence[Compared[tuple[str, str, str, str]]]) -> Table:
    rows = []
    for one in found:
        held_out, text, first, other = one.name
        rows.append([f"{held_out}, {text}: {other} - {first}", *_cells_of(one, digits=3)])
    note = f"Hidden eojeols; lower is better. {NOTE.format('documents')}"
    return number_table("Bits per character of held-out text", ("held-out text, text: b - a", *TESTED), rows, note)


def _cells_of(one: Compared[Any], digits: int = 2) -> list[str]:
    a, b = (mean_of(side, digits) for side in one.estimates)
    if one.difference is None:
        return [a, b, "–", "–", "–", "–"]
    low, high = (f"{end:+.{digits}f}" for end in one.difference.interval)
    return [a, b, f"{one.difference.value:+.{digits}f}", f"{low}\n{high}", p_of(one.p), p_of(one.p_holm)]


def _scores_table(scored: Mapping[Key, Mapping[TaskKey, Trained]]) -> Table:
    """All metrics of the paper; rows are cells, columns tasks."""
    tasks = dict.fromkeys(task for by_task in scored.values() for task in by_task)
    columns = [(key, metric) for key in tasks for metric in find_task(key[0]).metrics]
    rows = []
    for key, by_task in scored.items():
        cells = []
        for task, metric in columns:
            values = [result["scores"][metric] for _, result in by_task[task].results] if task in by_task else []
            cells.append(_mean_and_sd([value for value in values if value is not None]))
        rows.append([", ".join(key), *cells])
    heads = ("vocabulary, text", *(f"{', '.join(filter(None, key))}\n{metric}" for key, metric in columns))
    return number_table("Scores on dev", heads, rows if columns else [], "Mean ± standard deviation over seeds.")


def _mean_and_sd(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return f"{mean(values):.2f}" + (f"\n± {stdev(values):.2f}" if len(values) > 1 else "")


def _fit_tables(out: Path, cells: Cells, klue: str | None) -> list[Table]:
    """Table 35 on held-out text, and the boundaries of morphemes, those of KLUE-DP by people among them."""
    texts = {held_out: out / "corpora" / held_out / "corpus" / "documents" for held_out in (READ, UNREAD)}
    lines = {
        name: ["\n".join(document.sentences) for shard in shard_paths(folder) for document in read_documents(shard)]
        for name, folder in texts.items()
        if folder.is_dir()
    }
    folders = [out / "vocabularies" / f"{name}-{text}" / "tokenizer" for name, text in cells]
    gold = find_file(Path(klue), find_task("klue-dp").files.dev) if klue else None
    return comparison_tables(compare_tokenizers(folders, lines, [gold] if gold else [], [out / FIT_NAME]))


# --- files


def _rows_of(table: str, found: Sequence[Compared[Any]]) -> list[dict[str, Any]]:
    rows = []
    for one in found:
        name = one.name if isinstance(one.name, tuple) else (one.name,)
        rows.append({"table": table, "what": ", ".join(map(str, name)), **_flat(one)})
    return rows


def _flat(one: Compared[Any] | Tested) -> dict[str, Any]:
    """A test as one line; ``what`` of a KLUE task is its name and metric."""
    found = one.as_json()
    low, high = found["interval"] or (None, None)
    who = {"what": f"{one.task} {one.metric}: {' - '.join(reversed(one.names))}"} if isinstance(one, Tested) else {}
    sides = {f"{side}_{key}": found[side][key] for side in "ab" for key in ("mean", "sd", "seeds")}
    tested = {"difference": found["difference"], "low": low, "high": high, "p": found["p"], "p_holm": found["p_holm"]}
    return {**who, **sides, **tested}


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["table"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    atomic_write(path, text.getvalue())
