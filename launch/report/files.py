"""Files beside the page: every figure as CSV, and the main table as LaTeX for a paper."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from launch.report.blocks import Table
from launch.report.gather import Result, settings_of, trivial_of
from launch.report.tables import chosen_on

COLUMNS = (
    "task", "model", "settings", "seed", "protocol", "split", "n", "n_train", "metric", "score", "lower_95",
    "upper_95", "trivial", "chosen_by", "members", "seconds", "device",
)  # fmt: skip
SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "–": r"\textendash{}",
    "`": r"\textasciigrave{}", "'": r"\textquotesingle{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"{{{sign}}}" for sign in "[*"},  # at the beginning of a line it would belong to the \\ before
}  # fmt: skip
PREAMBLE = r"""% \usepackage{booktabs,graphicx}, and \usepackage{kotex} with XeLaTeX or LuaLaTeX where names are Korean
\begin{table}
\centering\small\setlength{\tabcolsep}{4pt}\setlength{\belowcaptionskip}{6pt}
"""
FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"  # no wider than the column or page


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
    heads = " & ".join(map(_head, table.heads)) + r" \\"
    return PREAMBLE + "\n".join([
        rf"\caption{{{latex(table.title)}.}}", FIT, rf"\begin{{tabular}}{{{columns}}}", r"\toprule", heads, r"\midrule",
        *lines, r"\bottomrule", r"\end{tabular}}", r"\end{table}",
    ]) + "\n"  # fmt: skip


def _head(text: str) -> str:
    """A name and its settings below each other, so that the column is as narrow as its figures."""
    parts = [latex(part) for part in text.replace(" (", ", (").split(", ")]
    lines = r" \\ ".join(parts)
    return lines if len(parts) == 1 else rf"\shortstack[r]{{{lines}}}"


def latex(text: str) -> str:
    """Any text as LaTeX prints it, in one line."""
    shown = "".join(SPECIAL.get(character, character) for character in " ".join(text.split()))
    return re.sub("-(?=-)", "-{}", shown)  # two hyphens would be a dash
