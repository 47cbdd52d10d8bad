"""Tests of the differences between models, as tables: for `malmoi compare` and for the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from corpus.documents.errors import BadInput
from finetune.score.compare import Tested, compare, pair_up
from finetune.score.results import PREDICTIONS_NAME, Trained
from finetune.score.significance import Estimate
from launch.console import Table
from launch.recipe import OWN_MODEL
from launch.report.blocks import Block, Text
from launch.report.compare import Group
from launch.report.gather import Result

HEADS = ("task, metric", "a", "b", "b - a", "95 %", "p", "Holm", "verdict")
MOST_ROWS = 40  # of differences; more are folded
NOTE_ON_DIFFERENCES = (
    "b - a with its 95 % interval over seeds and examples together. Holm corrects p for the number of tests. Of one "
    "seed each only these two trainings are compared. How to read it: docs/experiments.md, Comparing two models."
)
FILES_OF_SAMPLE = Path("sample") / "klue"  # in a run with the embedded data


def table_of(tested: Sequence[Tested], title: str) -> Table:
    """One row a task and metric; the note says on how many seeds and examples."""
    seeds = dict.fromkeys(tuple(side.seeds for side in found.estimates) for found in tested)
    counts = dict.fromkeys(found.n for found in tested)
    said = " or ".join(f"{x}" if x == y else f"{x} and {y}" for x, y in seeds)
    tests = "; ".join(dict.fromkeys(found.test for found in tested if found.test))
    note = f"Seeds: {said}. Examples: {', '.join(f'{count:,}' for count in counts)}. p: {tests}. Holm: over the tasks."
    return Table(HEADS, [row_of(found) for found in tested], numbers=range(1, 7), title=title, note=note)


def row_of(found: Tested) -> list[str]:
    """The cells of ``HEADS``, two lines each."""
    difference, middle = found.difference, ["–", "–"]
    if difference is not None:
        low, high = difference.interval
        middle = [f"{difference.value:+.2f}", f"{low:+.2f}\n{high:+.2f}"]
    cells = [f"{found.task}\n{found.metric}", *map(mean_of, found.estimates), *middle]
    return [*cells, p_of(found.p), p_of(found.p_holm), found.verdict()]


def mean_of(found: Estimate, digits: int = 2) -> str:
    """``85.18`` and ``± 0.31``: mean and standard deviation over seeds."""
    if found.mean is None:
        return "–"
    return f"{found.mean:.{digits}f}" + (f"\n± {found.sd:.{digits}f}" if found.sd is not None else "")


def p_of(value: float | None) -> str:
    """Three digits; small ones as a bound."""
    return "–" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def differences(groups: Sequence[Group]) -> list[Block]:
    """Which differences of the first model of each task to the others are real, from the predictions; nothing where no
    task has two models whose predictions are there."""
    order = list(dict.fromkeys(group.task for group in groups))
    trained = [_trained(group) for group in groups if all(_has_predictions(result) for result in group.results)]
    trained.sort(key=lambda one: (order.index(one.task), one.first["model"] != OWN_MODEL))
    if len({one.task for one in trained}) == len(trained):
        return []
    above = [place.parent / FILES_OF_SAMPLE for place in trained[0].results[0][0].parents if place.name == "finetune"]
    data = next(filter(Path.is_dir, above), None)  # the run's own files know the passages of KLUE-MRC
    try:
        tested = compare(pair_up(trained, None), data, shuffles=0)
    except BadInput as error:
        return [Text(f"Differences between models are not tested: {error}", "warning")]
    rows = []
    for found in tested:
        cells = row_of(found)
        rows.append(
            [cells[0], *(f"{name}\n{cell}" for name, cell in zip(found.names, cells[1:3], strict=True)), *cells[3:]]
        )
    table = Table(HEADS, rows, range(3, 7), (3,), "Which differences are real", folded=len(rows) > MOST_ROWS)
    return [table, Text(NOTE_ON_DIFFERENCES, "note")]


def _trained(group: Group) -> Trained:
    results = sorted(group.results, key=lambda result: int(result["seed"]))
    return Trained(group.task, group.name, tuple((Path(result["folder"]), result) for result in results))


def _has_predictions(found: Result) -> bool:
    return "folder" in found and (Path(found["folder"]) / PREDICTIONS_NAME).is_file()
