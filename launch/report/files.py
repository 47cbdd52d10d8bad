"""Files beside the page: every figure as CSV, and the main table as LaTeX for a paper (needs booktabs)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from launch.report.blocks import Table
from launch.report.gather import Result, settings_of, trivial_of
from launch.report.tables import chosen_on

COLUMNS = (
    "task", "model", "settings", "seed", "protocol", "split", "n", "n_train", "metric", "score", "lower_95",
    "upper_95", "trivial", "chosen_by", "members", "seconds", "device",
)  # fmt: skip
SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "–": "--",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip


def results_csv(scores: Sequence[Result]) -> str:
    """A line for each metric of each result, numbers in full."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for found in scores:
        about = [found["task"], found["model"], settings_of(found), found["seed"], found["protocol"], found["split"]]
        more = [chosen_on(found).replace("–", ""), len(found.get("members") or []) or ""]
        for metric, score in found["scores"].items():
            low, high = found["intervals"].get(metric) or (None, None)
            figures = [found["n"], found["n_train"], metric, score, low, high, trivial_of(found, metric)]
            writer.writerow([*about, *figures, *more, found.get("seconds"), found.get("device")])
    return out.getvalue()


def latex_table(table: Table) -> str:
    """The table with booktabs; a task is named once, intervals are left to the page, as a paper has no room."""
    columns = "".join("r" if place in table.numbers else "l" for place in range(len(table.heads)))
    before, lines = "", []
    for row in table.rows:
        task, *cells = (latex(cell.partition("\n")[0]) for cell in row)
        lines += [r"\midrule"] if before and task != before else []
        lines.append(" & ".join(["" if task == before else task, *cells]) + r" \\")
        before = task
    return "\n".join([
        r"% needs \usepackage{booktabs}; wider than the page: \resizebox{\linewidth}{!}{…}",
        r"\begin{table}", r"\centering", rf"\caption{{{latex(table.title)}.}}",
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule", " & ".join(map(latex, table.heads)) + r" \\", r"\midrule",
        *lines, r"\bottomrule", r"\end{tabular}", r"\end{table}",
    ]) + "\n"  # fmt: skip


def latex(text: str) -> str:
    """Any text as LaTeX prints it, in one line."""
    return "".join(SPECIAL.get(character, character) for character in " ".join(text.split()))
