"""Tests of the differences between models, as tables for the report and for ``malmoi compare``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from corpus.documents.errors import BadInput
from finetune.queue.jobs import PREDICTIONS_NAME
from finetune.score.compare import Tested, Trained, compare, pair_up
from finetune.score.significance import Estimate
from launch.recipe import OWN_MODEL
from launch.report.blocks import NOTES, Block, Table, Text
from launch.report.results import Group

HEADS = ("task, metric", "a", "b", "b - a", "95 %", "p", "Holm", "verdict")
MAX_ROWS = 40  # a longer table is folded
FILES_OF_SAMPLE = Path("sample") / "klue"  # in a run with the embedded data


def differences(groups: Sequence[Group]) -> list[Block]:
    """Compare the first model of each task with the others by their predictions; nothing if no task has two models
    whose predictions are there."""
    order = list(dict.fromkeys(group.task for group in groups))
    trained = [
        Trained(group.task, group.name, tuple((Path(result["folder"]), result) for result in group.results))
        for group in groups
        if all("folder" in r and (Path(r["folder"]) / PREDICTIONS_NAME).is_file() for r in group.results)
    ]
    trained.sort(key=lambda one: (order.index(one.task), one.first["model"] != OWN_MODEL))
    if len({one.task for one in trained}) == len(trained):
        return []
    above = [place.parent / FILES_OF_SAMPLE for place in trained[0].results[0][0].parents if place.name == "finetune"]
    data = next(filter(Path.is_dir, above), None)  # the run's own files know which questions share a passage
    try:
        tests = compare(pair_up(trained, None), data, shuffles=0)
    except BadInput as error:
        return [Text(f"Differences between models are not tested: {error}", "warning")]
    rows = []
    for test in tests:
        first, a, b, *others = row_of(test)
        rows.append([first, f"{test.names[0]}\n{a}", f"{test.names[1]}\n{b}", *others])
    table = Table(HEADS, rows, range(3, 7), (3,), "Differences between models", folded=len(rows) > MAX_ROWS)
    return [table, Text(NOTES["differences"], "note")]


def table_of(tests: Sequence[Tested], title: str) -> Table:
    """One row for each task and metric; the note says on how many seeds and examples."""
    seeds = dict.fromkeys(tuple(side.seeds for side in test.estimates) for test in tests)
    counts = dict.fromkeys(test.n for test in tests)
    of_seeds = " or ".join(f"{x}" if x == y else f"{x} and {y}" for x, y in seeds)
    kinds = "; ".join(dict.fromkeys(test.test for test in tests if test.test))
    examples = ", ".join(f"{count:,}" for count in counts)
    note = f"Seeds: {of_seeds}. Examples: {examples}. p: {kinds}. Holm: over the tasks."
    return Table(HEADS, [row_of(test) for test in tests], numbers=range(1, 7), title=title, note=note)


def row_of(test: Tested) -> list[str]:
    """The cells of ``HEADS``, two lines each."""
    difference, middle = test.difference, ["–", "–"]
    if difference is not None:
        low, high = difference.interval
        middle = [f"{difference.value:+.2f}", f"{low:+.2f}\n{high:+.2f}"]
    cells = [f"{test.task}\n{test.metric}", *map(mean_of, test.estimates), *middle]
    return [*cells, p_of(test.p), p_of(test.p_holm), test.verdict()]


def mean_of(estimate: Estimate, digits: int = 2) -> str:
    """``85.18`` and ``± 0.31``: mean and standard deviation over seeds."""
    if estimate.mean is None:
        return "–"
    return f"{estimate.mean:.{digits}f}" + (f"\n± {estimate.sd:.{digits}f}" if estimate.sd is not None else "")


def p_of(value: float | None) -> str:
    """Three digits; small values as a bound."""
    return "–" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"
