"""MT-Bench on the console: scores by turn and category, pairs, and how far the judges can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from launch.console import Table

Summary = Mapping[str, Any]


def tables_of(scores: Summary) -> list[Table]:
    """Those that a run has something for, from its ``scores.json``."""
    judges = list(scores["judges"])
    tables = [_singles(scores, judges)]
    if any("pairs" in scores["judges"][judge] for judge in judges):
        tables.append(_pairs(scores, judges))
    if "agreement" in scores:
        tables.append(_agreement(scores, judges))
    return tables


def _singles(scores: Summary, judges: Sequence[str]) -> Table:
    found = [scores["judges"][judge]["single"] for judge in judges]
    turns, categories = dict(found[0]["turns"]), dict(found[0]["categories"])
    rows = [["score, 1 to 10", *(with_interval(one) for one in found)]]
    rows += [[f"turn {turn}", *(with_interval(one["turns"][turn]) for one in found)] for turn in turns]
    rows += [[f"  {name}", *(number(one["categories"][name]) for one in found)] for name in categories]
    rows.append(["verdicts that failed", *(f"{one['failed']} of {one['n']}" for one in found)])
    if any(one["failed"] for one in found):
        rows.append(["score were each of them 1", *(number(one["worst"]) for one in found)])
    rows.append(["length bias, Spearman", *(number(one["length_spearman"], sign=True) for one in found)])
    return Table(
        ("", *judges), rows, numbers=range(1, len(judges) + 1), title=f"{scores['model']}: scores", note=_note(scores)
    )


def _note(scores: Summary) -> str:
    parts = [f"{scores['n']} questions; 95 % intervals over questions."]
    if scores["unanswered"]:
        parts.append(f"{scores['unanswered']} turns have no answer and are among the failed.")
    if missing := scores["without_reference"]:
        named = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        parts.append(f"Judged without a reference answer, which their category needs: {named}.")
    if scores["model"] in scores["judges"]:
        parts.append("The model judges itself here.")
    return " ".join(parts)


def _pairs(scores: Summary, judges: Sequence[str]) -> Table:
    found = [scores["judges"][judge]["pairs"] for judge in judges]
    rows = [
        ["share won", *(with_interval(one["win_rate"], shown=share) for one in found)],
        ["won, tied, lost", *(f"{one['wins']}, {one['ties']}, {one['losses']}" for one in found)],
        ["pairs that failed", *(f"{one['failed']} of {one['n']}" for one in found)],
        ["order decides", *(share(one["order_decides"]) for one in found)],
        ["the first shown wins", *(share(one["first_wins"]) for one in found)],
    ]
    note = "Each pair in both orders; where the order decides it is a tie, and a tie is half won."
    title = f"{scores['model']} against {scores.get('against', 'another model')}"
    return Table(("", *judges), rows, numbers=range(1, len(judges) + 1), title=title, note=note)


def _agreement(scores: Summary, judges: Sequence[str]) -> Table:
    single, pairs = scores["agreement"]["single"], scores["agreement"].get("pairs", {})
    rows = [
        ["judged by both", str(single["n"]), str(pairs.get("n", "–"))],
        ["the same", share(single["exact"]), share(pairs.get("exact"))],
        ["within 1", share(single["within_1"]), "–"],
        ["Spearman", number(single["spearman"], sign=True), "–"],
        ["Cohen's kappa", number(single["kappa"], sign=True), number(pairs.get("kappa"), sign=True)],
        ["second less first", number(single.get("mean_difference"), sign=True), "–"],
    ]
    note = f"{judges[0]} and {judges[1]}. Kappa of scores with quadratic weights."
    return Table(("", "scores", "pairs"), rows, numbers=(1, 2), title="Agreement of the judges", note=note)


def with_interval(found: Summary, shown: Callable[[float | None], str] | None = None) -> str:
    """``7.25`` and ``6.50 to 8.00`` on the next line."""
    shown = shown or number
    low_high = found["interval"]
    return shown(found["score"]) + (f"\n{shown(low_high[0])} to {shown(low_high[1])}" if low_high else "")


def number(value: float | None, sign: bool = False) -> str:
    """Two digits; a dash for none."""
    return "–" if value is None else f"{value:+.2f}" if sign else f"{value:.2f}"


def share(value: float | None) -> str:
    """Per cent."""
    return "–" if value is None else f"{100 * value:.0f} %"
