"""Tables of an ablation from all complete models, as text, Markdown and JSON.

```
models/*/measured.json, models/*/finetune/ ─┬─▶ Table 33: pseudonymized text compared with plain text, by task
                                            ├─▶ Table 34: every vocabulary compared with the first
                                            ├─▶ exposure of planted values, bits per character of held-out text
vocabularies/*/tokenizer ───────────────────┴─▶ Table 35: statistics of the vocabularies on held-out text
```
Intervals and paired tests are those of ``malmoi compare``, over seeds and examples. An example is a KLUE example, a
planted value or a document. Holm correction is per table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.ablations.canaries import TIMES
from benchmarks.ablations.comparison import Comparison, Summary, compare_summaries, summarize
from benchmarks.ablations.experiment import PLAIN, PSEUDONYMIZED, SEEN, TEXTS, UNSEEN, VOCABULARIES
from benchmarks.ablations.exposure import chance
from benchmarks.paired import TaskKey, as_one, pairs_of, tested_tables
from corpus.documents.atomic_files import atomic_write
from corpus.documents.shards import read_documents, shard_paths
from finetune.data.files import find_file
from finetune.registry import find_task
from finetune.score.compare import Pair, Trained, compare
from launch.console import PlainConsole, Table, markdown_table, number_table, print_table
from launch.manifest import write_json
from launch.numbers import count
from launch.report.differences import mean_of, p_of
from launch.report.results import read_json
from launch.tools.tokenizers import comparison_tables
from tokenizer.measuring.compare import compare as compare_tokenizers

Variants = Mapping[tuple[str, str], Mapping[int, dict[str, Any]]]  # vocabulary and text, to seed, to measured.json
Key = tuple[str, str]
SETTINGS_NAME, MEASURED_NAME, COUNT_NAME = "ablations.json", "measured.json", "planted.json"
RESULTS_NAME, TABLES_NAME, FIT_NAME = "results.json", "results.md", "table-35.json"
TESTED = ("a", "b", "b - a", "95 %", "p", "Holm")
NOTE = "a, b: mean ± standard deviation over seeds. 95 %: of the difference, over seeds and {}. Holm: per table."


def show_results(out: Path, klue: str | None) -> dict[str, Any]:
    """Print the tables of all complete models in ``out`` and write them there; returns the content of results.json."""
    variants = _gather(out)
    if not variants:
        return {}
    planted = {text: read_json(path) for text in TEXTS if (path := out / "corpora" / text / COUNT_NAME).is_file()}
    scored = _scored(out, variants)
    table_33, table_34 = (
        compare(pairs, Path(klue) if klue else None, shuffles=0) if pairs else []
        for pairs in (_text_pairs(scored), _vocabulary_pairs(scored))
    )
    exposures, bits = compare_summaries(_exposure_pairs(variants)), compare_summaries(_bits_pairs(variants))
    others = read_json(out / SETTINGS_NAME)["amounts"]["alternatives"]
    tables = [
        _model_table(variants), _planted_table(planted), _exposure_table(exposures, variants, others),
        _bits_table(bits), *tested_tables("Table 33", table_33),
        *tested_tables("Table 34", table_34), *_fit_tables(out, variants, klue),
    ]  # fmt: skip
    tables = [table for table in tables if table.rows]
    console = PlainConsole()
    for table in tables:
        print_table(table, console)
    atomic_write(out / TABLES_NAME, "\n\n".join(f"{markdown_table(t)}\n\n{t.note}".strip() for t in tables) + "\n")
    results = {
        "models": [variant for by_seed in variants.values() for variant in by_seed.values()],
        "planted": planted,
        "table_33": [comparison.as_json() for comparison in table_33],
        "table_34": [comparison.as_json() for comparison in table_34],
        "exposure": [{"name": comparison.name, **comparison.as_json()} for comparison in exposures],
        "bits": [{"name": comparison.name, **comparison.as_json()} for comparison in bits],
    }
    write_json(out / RESULTS_NAME, results)
    return results


def _gather(out: Path) -> Variants:
    """Complete variants in the order of ``VOCABULARIES``."""
    order = list(VOCABULARIES)
    by_key: dict[Key, dict[int, dict[str, Any]]] = {}
    for path in sorted((out / "models").glob(f"*/{MEASURED_NAME}")):
        variant = read_json(path)
        by_key.setdefault((variant["vocabulary"], variant["text"]), {})[variant["seed"]] = variant
    return {key: dict(sorted(by_key[key].items())) for key in sorted(by_key, key=lambda k: (order.index(k[0]), k[1]))}


def _pairs_with_first(keys: Sequence[Key]) -> list[tuple[Key, Key]]:
    """For each text, pairs of the first vocabulary and every other one."""
    by_text = {text: [key for key in keys if key[1] == text] for text in TEXTS}
    return [(own[0], other) for own in by_text.values() for other in own[1:]]


# --- what is compared


def _scored(out: Path, variants: Variants) -> dict[Key, dict[TaskKey, Trained]]:
    """Results of all seeds as one model, by task."""
    return {
        key: as_one(", ".join(key), {seed: out / "models" / f"{key[0]}-{key[1]}-seed-{seed}" for seed in by_seed})
        for key, by_seed in variants.items()
    }


def _text_pairs(scored: Mapping[Key, Mapping[TaskKey, Trained]]) -> list[Pair]:
    names = [name for name, text in scored if text == PLAIN and (name, PSEUDONYMIZED) in scored]
    return [pair for name in names for pair in pairs_of(scored[name, PLAIN], scored[name, PSEUDONYMIZED])]


def _vocabulary_pairs(scored: Mapping[Key, Mapping[TaskKey, Trained]]) -> list[Pair]:
    return [pair for a, b in _pairs_with_first(list(scored)) for pair in pairs_of(scored[a], scored[b])]


def _exposure_pairs(variants: Variants) -> dict[tuple[str, int], tuple[Summary, Summary]]:
    """By vocabulary and times planted: models of plain and of pseudonymized text."""
    pairs = {}
    for name, text in variants:
        if text == PLAIN and (name, PSEUDONYMIZED) in variants:
            for times in TIMES:
                sides = [_exposures(variants[name, own], times) for own in TEXTS]
                pairs[name, times] = (sides[0], sides[1])
    return pairs


def _exposures(by_seed: Mapping[int, dict[str, Any]], times: int) -> Summary:
    return summarize({
        seed: {str(n): (one["exposure"], 1.0) for n, one in enumerate(variant["exposure"]) if one["times"] == times}
        for seed, variant in by_seed.items()
    })  # fmt: skip


def _bits_pairs(variants: Variants) -> dict[tuple[str, str, str, str], tuple[Summary, Summary]]:
    """By held-out text, text, and two vocabularies: bits per character."""
    pairs = {}
    for held_out in (SEEN, UNSEEN):
        for first, other in _pairs_with_first(list(variants)):
            a, b = (_bits_summary(variants[key], held_out) for key in (first, other))
            if a and b:
                pairs[held_out, first[1], first[0], other[0]] = (a, b)
    return pairs


def _bits_summary(by_seed: Mapping[int, dict[str, Any]], held_out: str) -> Summary | None:
    if any(held_out not in variant["bits"] for variant in by_seed.values()):
        return None
    return summarize({seed: variant["bits"][held_out] for seed, variant in by_seed.items()})


# --- tables


def _model_table(variants: Variants) -> Table:
    figure_heads = ("seeds", "entries", "M\nparameters", "steps", "M\ntokens", "M\ncharacters")
    heads = ("vocabulary, text", *figure_heads, *(f"bits,\n{held_out}" for held_out in (SEEN, UNSEEN)))
    rows = []
    for key, by_seed in variants.items():
        facts = next(iter(by_seed.values()))["trained"]
        sizes = (f"{facts['parameters'] / 1e6:.2f}", count(facts["steps"]))
        seen = (f"{facts['tokens'] / 1e6:.2f}", f"{facts['characters'] / 1e6:.2f}")
        both = (_bits_summary(by_seed, held_out) for held_out in (SEEN, UNSEEN))
        bits = [f"{bits.sample.scores_S.mean():.3f}" if bits else "–" for bits in both]
        rows.append([", ".join(key), ", ".join(map(str, by_seed)), count(facts["entries"]), *sizes, *seen, *bits])
    note = (
        "Equal operations. Tokens and characters (without blanks) seen in training. Bits per character of masked "
        f"eojeols of held-out text; {SEEN}: training sources, {UNSEEN}: other sources."
    )
    return number_table("Variants", heads, rows, note)


def _planted_table(planted: Mapping[str, Mapping[str, int]]) -> Table:
    heads = ("text", "values planted", "copies", "values left", "copies left")
    keys = ("values", "copies", "values_left", "copies_left")
    rows = [[text, *(count(counts[key]) for key in keys)] for text, counts in planted.items()]
    return number_table("Planted personal data in the corpus", heads, rows, "Left: found in the corpus.")


def _exposure_table(comparisons: Sequence[Comparison[tuple[str, int]]], variants: Variants, others: int) -> Table:
    rows = []
    for one in comparisons:
        name, times = one.name
        drawn = [_count_extracted(variants[name, text], times) for text in TEXTS]
        rows.append([f"{name}, {times} {'time' if times == 1 else 'times'}", *_test_cells(one), *drawn])
    heads = ("vocabulary, planted", *TESTED, "extracted,\na", "extracted,\nb")
    note = (
        f"Bits of exposure, a: plain text, b: pseudonymized. {NOTE.format('planted values')} A value never seen has "
        f"{chance(others):.2f} on average. Extracted: among the ten most likely values of beam search."
    )
    return number_table("Exposure of planted personal data", heads, rows, note)


def _count_extracted(by_seed: Mapping[int, dict[str, Any]], times: int) -> str:
    hits = [one["extracted"] for variant in by_seed.values() for one in variant["exposure"] if one["times"] == times]
    return f"{sum(hits)} of {len(hits)}"


def _bits_table(comparisons: Sequence[Comparison[tuple[str, str, str, str]]]) -> Table:
    rows = []
    for one in comparisons:
        held_out, text, first, other = one.name
        rows.append([f"{held_out}, {text}: {other} - {first}", *_test_cells(one, digits=3)])
    note = f"Masked eojeols; lower is better. {NOTE.format('documents')}"
    return number_table("Bits per character of held-out text", ("held-out text, text: b - a", *TESTED), rows, note)


def _test_cells(one: Comparison[Any], digits: int = 2) -> list[str]:
    a, b = (mean_of(side, digits) for side in one.estimates)
    if one.difference is None:
        return [a, b, "–", "–", "–", "–"]
    low, high = (f"{end:+.{digits}f}" for end in one.difference.interval)
    return [a, b, f"{one.difference.value:+.{digits}f}", f"{low}\n{high}", p_of(one.p), p_of(one.p_holm)]


def _fit_tables(out: Path, variants: Variants, klue: str | None) -> list[Table]:
    """Table 35 on held-out text, with morpheme boundaries by mecab-ko and of KLUE-DP."""
    texts = {held_out: out / "corpora" / held_out / "corpus" / "documents" for held_out in (SEEN, UNSEEN)}
    lines = {
        name: ["\n".join(document.sentences) for shard in shard_paths(folder) for document in read_documents(shard)]
        for name, folder in texts.items()
        if folder.is_dir()
    }
    folders = [out / "vocabularies" / f"{name}-{text}" / "tokenizer" for name, text in variants]
    gold = find_file(Path(klue), find_task("klue-dp").files.dev) if klue else None
    compared = compare_tokenizers(folders, lines, [gold] if gold else [])
    write_json(out / FIT_NAME, [asdict(one) for one in compared])
    return comparison_tables(compared)
