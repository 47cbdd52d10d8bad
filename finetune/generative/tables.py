"""Result tables of the llm commands as plain rows; ``launch`` prints them.

KLUE results are not here: they are ``scores.json`` records, which the report renders next to those of encoders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

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
