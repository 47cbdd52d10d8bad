"""Result tables of the llm commands as plain rows, which ``launch`` prints, and Horangi's total.

KLUE results are not here: they are ``scores.json`` records, which the report renders next to those of encoders.

Horangi's total is the mean of understanding (over data sets, the first metric of llm-kr-eval / 100) and conversation
(MT-Bench, the score of the first judge / 10). The leaderboard has ten data sets; files of others are shown but do not
count, unless there are only others. Subjects of KMMLU count as one data set. Its MT-Bench has no penalty for other
languages. Files and questions are different samples, so their errors add up as independent ones; without the error of
a part, the total has none. A negative correlation lowers the total, and is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.atomic_files import read_json_object
from corpus.documents.errors import BadInput
from finetune.metrics import interval_text
from finetune.score.significance import Z_95

Summary = Mapping[str, Any]
KR_EVAL_NOTE = (
    "Published: the value of the published code, bugs included. "
    "Form: share of answers in the exact form that the file demands (the published control score). "
    "Read: share of answers that could be parsed. Cut: answers that ended at the limit of tokens."
)
PAIR_NOTE = "Each pair is judged in both orders. If the order decides, the pair is a tie. A tie counts as half a win."


class ResultTable(NamedTuple):
    """A table of text cells; columns from ``first_number`` hold numbers and are right-aligned."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str
    note: str = ""
    first_number: int = 1


def kr_eval_table(results: Sequence[Summary]) -> ResultTable:
    """One row per llm-kr-eval file and metric, from the content of ``scores.json``."""
    heads = ("file", "metric", "score", "95 %", "published", "form", "read", "cut", "n")
    rows, notes = [], [KR_EVAL_NOTE]
    for result in results:
        shares = [percent(result["control"]), percent(result["read"]), f"{result['cut_answers']:,}", f"{result['n']:,}"]
        for metric, measured in result["metrics"].items():
            interval = measured["interval"]
            reach = f"{interval[0]:.2f}\nto {interval[1]:.2f}" if interval else "–"
            published = number(result["as_published"].get(metric))
            rows.append([result["task"], metric, number(measured["value"]), reach, published, *shares])
        if result.get("named"):
            notes.append(
                f"{result['task']}: {result['named']:,} entities, {result['right_of_named']:.1f} % of them right."
            )
    notes += dict.fromkeys(f"BLEU: {result['bleu']}" for result in results if "bleu" in result)
    title = f"{results[0]['model']}, {results[0]['shots']} examples shown"
    return ResultTable(heads, rows, title, "\n".join(notes), first_number=2)


def mt_bench_tables(scores: Summary) -> list[ResultTable]:
    """Scores, and, where the run has them, pairs and the agreement of two judges."""
    judges, model = list(scores["judges"]), scores["model"]
    singles = [scores["judges"][judge]["single"] for judge in judges]
    pairs = [own["pairs"] for own in scores["judges"].values() if "pairs" in own]
    tables = [ResultTable(("", *judges), _score_rows(singles), f"{model}: scores", _score_note(scores))]
    if pairs:
        against = f"{model} against {scores.get('against', 'another model')}"
        rows = [
            ["share won", *(with_interval(one["win_rate"], share) for one in pairs)],
            ["won, tied, lost", *(f"{one['wins']}, {one['ties']}, {one['losses']}" for one in pairs)],
            ["pairs that failed", *(f"{one['failed']} of {one['n']}" for one in pairs)],
            ["order decides", *(share(one["order_decides"]) for one in pairs)],
            ["first answer wins", *(share(one["first_wins"]) for one in pairs)],
        ]
        tables.append(ResultTable(("", *judges), rows, against, PAIR_NOTE))
    if "agreement" in scores:
        note = f"{judges[0]} and {judges[1]}. Kappa of scores uses quadratic weights."
        single, paired = scores["agreement"]["single"], scores["agreement"].get("pairs", {})
        rows = [
            ["judged by both", str(single["n"]), str(paired.get("n", "–"))],
            ["equal", share(single["exact"]), share(paired.get("exact"))],
            ["within 1", share(single["within_1"]), "–"],
            ["Spearman", number(single["spearman"], sign=True), "–"],
            ["Cohen's kappa", number(single["kappa"], sign=True), number(paired.get("kappa"), sign=True)],
            ["second minus first", number(single.get("mean_difference"), sign=True), "–"],
        ]
        tables.append(ResultTable(("", "scores", "pairs"), rows, "Agreement of the judges", note))
    return tables


def _score_rows(singles: Sequence[Summary]) -> list[list[str]]:
    rows = [["score, 1 to 10", *(with_interval(one) for one in singles)]]
    rows += [[f"turn {turn}", *(with_interval(one["turns"][turn]) for one in singles)] for turn in singles[0]["turns"]]
    rows += [[f"  {name}", *(number(one["categories"][name]) for one in singles)] for name in singles[0]["categories"]]
    if any(one["penalized"] for one in singles):
        rows.append(["answers not in Korean", *(str(one["penalized"]) for one in singles)])
        rows.append(["score without their penalty", *(with_interval(one["without_penalty"]) for one in singles)])
    rows.append(["verdicts that failed", *(f"{one['failed']} of {one['n']}" for one in singles)])
    if any(one["failed"] for one in singles):
        rows.append(["score if each failure were 1", *(number(one["worst"]) for one in singles)])
    return [*rows, ["length bias, Spearman", *(number(one["length_spearman"], sign=True) for one in singles)]]


def _score_note(scores: Summary) -> str:
    parts = [f"{scores['n']} questions; 95 % intervals over questions."]
    if scores["unanswered"]:
        parts.append(f"{scores['unanswered']} turns have no answer and count as failed.")
    if missing := scores["without_reference"]:
        named = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        parts.append(f"Judged without the reference answer that their category needs: {named}.")
    if scores["model"] in scores["judges"]:
        parts.append("The model judges itself.")
    return " ".join(parts)


def with_interval(measured: Summary, render: Callable[[float | None], str] = lambda value: number(value)) -> str:
    """``7.25`` and ``6.50 to 8.00`` on the next line."""
    interval = measured["interval"]
    return render(measured["score"]) + (f"\n{render(interval[0])} to {render(interval[1])}" if interval else "")


def number(value: float | None, sign: bool = False) -> str:
    """Two decimals; a dash for None."""
    return "–" if value is None else f"{value:+.2f}" if sign else f"{value:.2f}"


def percent(value: float | None) -> str:
    """A value from 0 to 100 as a whole percentage; a dash for None."""
    return "–" if value is None else f"{value:.0f} %"


def share(value: float | None) -> str:
    """A share from 0 to 1 as a whole percentage; a dash for None."""
    return percent(None if value is None else 100 * value)


AGAIN = "run the command that wrote it again"
DATA_SETS = (
    "kornli", "kobest_hs", "kobest_copa", "kobest_wic", "kmmlu", "korsts", "kobest_sn", "klue_ner", "klue_re",
    "korea_cg",
)  # fmt: skip


class Half(NamedTuple):
    """A value from 0 to 1, its standard error (None if unknown), and what it was computed from."""

    value: float
    error: float | None
    source: str


class Total(NamedTuple):
    model: str
    understanding: Half
    conversation: Half
    total: Half
    notes: tuple[str, ...] = ()


def total_of(understanding: Path, conversation: Path) -> Total:
    """The total from two result folders; ``BadInput`` if they are of different models or lack results."""
    files = [read_json_object(path, AGAIN) for path in sorted(understanding.glob("*/scores.json"))]
    files = [scores for scores in files if "metrics" in scores]
    if not files:
        raise BadInput(f"{understanding}: no results of llm-kr-eval files; `malmoi llm run` writes them")
    bench = read_json_object(conversation / "scores.json", AGAIN)
    if bench.get("task") != "mt-bench":
        raise BadInput(f"{conversation}: no result of MT-Bench; `malmoi llm mt-bench` writes one")
    return compute_total(files, bench)


def compute_total(files: Sequence[Mapping[str, Any]], bench: Mapping[str, Any]) -> Total:
    """The total of results, as in ``scores.json``; ``BadInput`` for a missing score, or results of several models."""
    models = sorted({str(scores["model"]) for scores in (*files, bench)})
    if len(models) > 1:
        raise BadInput(f"results of {' and '.join(models)}; expected one model")
    by_set: dict[str, list[Half]] = {}
    for scores in files:
        task, (metric, one) = scores["task"], next(iter(scores["metrics"].items()))
        own = by_set.setdefault("kmmlu" if task.startswith("kmmlu_") else task, [])
        own.append(_scaled(one["value"], one["error"], 100, f"{task} {metric}"))
    counted = {name: own for name, own in by_set.items() if name in DATA_SETS} or by_set
    parts = list(map(_mean, counted.values()))
    judge, summary = next(iter(bench["judges"].items()))
    single = summary["single"].get("without_penalty", summary["single"])
    first = _mean(parts)
    second = _scaled(single["score"], single["error"], 10, f"judged by {judge}")
    total = _mean([first, second])._replace(source="mean of both")
    missing = [name for name in DATA_SETS if name not in by_set]
    others = [name for name in by_set if name not in counted]
    notes = [f"{len(DATA_SETS) - len(missing)} of Horangi's {len(DATA_SETS)} data sets."]
    notes += [f"Missing: {', '.join(missing)}."] if missing else []
    notes += [f"Not counted, as Horangi does not have them: {', '.join(others)}."] if others else []
    if negative := [part for part in parts if part.value < 0]:
        without = total.value - sum(part.value for part in negative) / len(parts) / 2
        named = ", ".join(f"{part.source} {part.value:.3f}" for part in negative)
        notes.append(f"Negative: {named}. With 0 in its place the total would be {without:.3f}.")
    return Total(models[0], first, second, total, tuple(notes))


def _scaled(value: float | None, error: float | None, maximum: float, source: str) -> Half:
    if value is None:
        raise BadInput(f"{source}: no score, as answers were constant or no verdict was parsed; so there is no total")
    return Half(value / maximum, None if error is None else error / maximum, source)


def _mean(parts: Sequence[Half]) -> Half:
    errors = [part.error for part in parts if part.error is not None]
    error = math.hypot(*errors) / len(parts) if len(errors) == len(parts) else None
    return Half(sum(part.value for part in parts) / len(parts), error, ", ".join(part.source for part in parts))


def total_table(total: Total) -> ResultTable:
    """Three rows; values from 0 to 1."""
    rows = []
    for name, half in zip(("understanding", "conversation", "total"), total[1:4], strict=True):
        ends = None if half.error is None else [half.value + sign * Z_95 * half.error for sign in (-1, 1)]
        rows.append([name, f"{half.value:.3f}", interval_text(ends, 3), half.source])
    title, note = f"{total.model}: Horangi's total", " ".join(total.notes)
    return ResultTable(("", "0 to 1", "95 %", "computed from"), rows, title, note)
