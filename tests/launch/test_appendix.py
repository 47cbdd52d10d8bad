"""The report of many results: means over seeds, settings, hyperparameters, cost, curves, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from finetune.registry import TASKS
from launch.recipe import Recipe
from launch.report.blocks import Section, Table, Text
from launch.report.results import Results, selection_of
from launch.report.run import latex, latex_table, render, result_sections, results_csv, run
from launch.report.scores import main_table as table_of_models
from tests.launch.fake_results import fake_result, fake_results, write_results

HEADS = 1  # line of the CSV
ODD = "v2 & <b>#1 100% $x$ ~^\\{}|`'\" – 어 ±"  # all that LaTeX reads as something else


def tables_in(sections: list[Section]) -> list[Table]:
    return [block for section in sections for block in section.blocks if isinstance(block, Table)]


def table_of(results: list[dict[str, Any]], title: str) -> Table:
    return next(table for table in tables_in(result_sections(Results(results))) if table.title.startswith(title))


def main_table(*results: dict[str, Any]) -> str:
    return latex_table(table_of_models(Results(results)))


def test_a_cell_is_mean_deviation_and_interval_over_the_seeds() -> None:
    results = list(fake_results(["ynat"], ["model"], [""], [1, 2, 3]))
    values = [found["scores"]["macro_f1"] for found in results]
    cell = table_of(results, "Tasks by models").rows[0][2]
    assert cell.split("\n")[0] == f"{fmean(values):.2f} ± {stdev(values):.2f}"
    assert " to " in cell.split("\n")[1]


def test_selection_on_the_scored_examples_is_shown_in_the_row() -> None:
    chosen = {"by": "macro_f1", "score": 1.0, "step": 9, "evaluations": 16}
    one, other = fake_result("ynat", "a", "", 1), fake_result("ynat", "b", "", 1, selected=chosen)
    row = table_of([one, other], "Tasks by models").rows[0]
    assert row[-1] == "b: best macro_f1 of 16 evaluations on the scored examples"
    assert "selected by" not in table_of([one, one | {"seed": 2}], "Tasks by models").heads
    searched = one | {"searched_on": "dev"}
    assert selection_of(searched) == "hyperparameters tuned on the scored examples"
    warnings = [
        b for b in result_sections(Results([searched]))[0].blocks if isinstance(b, Text) and b.kind == "warning"
    ]
    assert "Such scores are too high" in warnings[0].text


def test_other_settings_are_shown_with_their_difference_from_the_recipe() -> None:
    results = [fake_result("ynat", "model", name, seed) for name in ("", "swa") for seed in (1, 2)]
    for found, score in zip(results, (70.0, 72.0, 73.0, 74.0), strict=True):
        found["scores"]["macro_f1"] = score
    table = table_of(results, "Settings, mean ± standard deviation over 2 seeds")
    assert table.heads == ["task", "metric", "recipe settings", "swa"]
    assert table.rows == [["ynat", "macro_f1", "71.00 ± 1.41", "73.50 ± 0.71\n+2.50"]]


def test_only_differences_are_green_or_red() -> None:
    table = Table(
        ("task", "score"), [["sts", "4.0\n-5.0 to 12.0"], ["nli", "61.0\n-0.50"], ["re", "50.0\n+0.00"]], (1,)
    )
    page = {"title": "", "about": "", "verdict": [], "stages": [], "links": []}
    html = render("page.html.j2", page | {"sections": [Section("Scores", [table])]})
    assert "<small>-5.0 to 12.0</small>" in html and "<small>+0.00</small>" in html
    assert '<small class="down">-0.50</small>' in html


def test_a_model_with_only_named_settings_is_in_the_main_table() -> None:
    results = [fake_result("ynat", "model", "", 1), fake_result("ynat", "large", "lr-1e-05", 1)]
    assert list(table_of(results, "Tasks by models").heads[2:4]) == ["model", "large, lr-1e-05"]
    assert not any(table.title.startswith("Settings") for table in tables_in(result_sections(Results(results))))


def test_an_ensemble_is_labelled_and_has_no_hyperparameters_or_cost() -> None:
    members = [{"model": "model", "seed": seed} for seed in range(4)]
    ensemble = fake_result("ynat", "both", "", 1, members=members)
    for key in ("hyperparameters", "seconds", "losses", "device"):
        del ensemble[key]
    results = [fake_result("ynat", "model", "", 1), ensemble]
    assert "both (ensemble of 4)" in table_of(results, "Tasks by models").heads
    assert len(table_of(results, "Hyperparameters").rows) == 1
    assert [row[:3] for row in table_of(results, "Cost").rows] == [["ynat", "model", "1"]]


def test_trainings_with_the_same_hyperparameters_are_one_row() -> None:
    results = list(fake_results(["ynat"], seeds=[1]))
    table = table_of(results, "Hyperparameters")
    assert table.heads == [
        "task",
        "trainings",
        "learning rate",
        "epochs",
        "batch size",
        "warmup",
        "weight decay",
        "max tokens",
        "average",
    ]
    names = {row[1]: (row[2], row[-1]) for row in table.rows}
    (small,) = (name for name in names if name.startswith("model, model, layer-decay"))
    assert small.endswith(" and 5 more") and names[small] == ("5e-5", "–")
    assert names["klue/roberta-large, swa"] == ("2e-5", "swa")
    assert len(table_of(results[:1], "Hyperparameters").rows) == 1
    other = results[0] | {"settings": "lora", "recipe": {"lora": {"rank": 8}, "data": {"dev": "0"}, "pos_tags": False}}
    table = table_of([results[0], other], "Hyperparameters")
    assert table.heads[-2:] == ["lora", "pos tags"] and table.rows[1][-2:] == ['{"rank": 8}', "False"]


def test_cost_is_summed_by_task_model_and_device() -> None:
    results = [fake_result(task, "model", "", seed, seconds=1800.0) for task in ("ynat", "wos") for seed in (1, 2)]
    results.append(fake_result("wos", "tiny", "", 1, seconds=36.0, device="cpu", peak_mib=1500))
    gpu, cpu = (table for table in tables_in(result_sections(Results(results))) if table.title.startswith("Cost"))
    assert gpu.title == "Cost: 2.00 GPU hours, 4 trainings including scoring"
    assert gpu.rows[0] == ["ynat", "model", "2", "60 min", "30 min", "9,000 MiB"]
    assert cpu.title.startswith("Cost: 0.0100 CPU hours")
    assert cpu.rows == [["wos", "tiny", "1", "36 s", "36 s", "1,500 MiB"]]


def test_tables_by_class_are_means_over_the_seeds() -> None:
    def result(model: str, seed: int, right: int, f1: float | None) -> dict[str, Any]:
        rows = [{"class": "사회", "gold": 10, "right": right, "f1": f1}, {"class": "경제", "gold": 0, "f1": None}]
        return fake_result("ynat", model, "", seed, tables={"classes": rows})

    alone = [result("a", 1, 7, 70.0), result("a", 2, 8, 80.0)]
    table = table_of(alone, "ynat: classes")
    assert table.title == "ynat: classes, mean of 2 seeds"
    assert table.rows == [["사회", "10", "7.5", "75.00 ± 7.07"], ["경제", "0", "–", "–"]]
    table = table_of([*alone, result("b", 1, 9, 90.0)], "ynat: classes")
    assert table.heads == ["class", "gold", "a", "b"]
    assert table.rows[0] == ["사회", "10", "75.00 ± 7.07", "90.00"]


def test_the_csv_has_every_score_in_full() -> None:
    results = list(fake_results(["ynat", "klue-dp"], ["model"], ["", "swa"], [1, 2]))
    rows = list(csv.DictReader(io.StringIO(results_csv(results))))
    assert len(rows) == sum(len(found["scores"]) for found in results)
    assert float(rows[0]["score"]) == results[0]["scores"]["macro_f1"]
    assert (rows[0]["settings"], rows[0]["chosen_by"]) == ("", "")
    scored = [(found, metric) for found in results for metric in found["scores"]]
    intervals = [found["intervals"].get(metric) or ("", "") for found, metric in scored]
    assert [(row["lower_95"], row["upper_95"]) for row in rows] == [tuple(map(str, pair)) for pair in intervals]


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_no_text_of_the_csv_is_a_formula(name: str) -> None:
    results = [found | {"model": name} for found in fake_results(["klue-sts"], ["model"], [""], [1])]
    results[0]["scores"]["pearsonr"] = -3.5
    rows = list(csv.DictReader(io.StringIO(results_csv(results))))
    assert {row["model"] for row in rows} == {f"'{name}"}
    assert "-3.5" in {row["score"] for row in rows}  # numbers stay numbers


def test_latex_escapes_special_characters() -> None:
    assert latex("macro_f1 100 % \\ ^ ±\nx") == r"macro\_f1 100 \% \textbackslash{} \textasciicircum{} $\pm$ x"
    assert latex("a---b – [*]") == r"a-{}-{}-b \textendash{} {[}{*}]"
    text = main_table(*fake_results(seeds=[1, 2]))
    assert text.count(r"\\" + "\n") == 15 and r"\shortstack[r]{klue/roberta-base \\ Table 36} \\" in text
    assert text.count("{") == text.count("}")


def test_every_row_of_the_latex_table_has_all_columns() -> None:
    text = main_table(*(fake_result("ynat", name, "x=1,y", 1) for name in (ODD, "b&c", "한국어_모델")))
    (columns,) = re.findall(r"\\begin\{tabular\}\{([lr]+)\}", text)
    rows = [line for line in text.splitlines() if line.endswith(r" \\")]
    assert len(rows) == 2 and columns == "llrrrrrr"
    assert [len(re.findall(r"(?<!\\)&", row)) for row in rows] == [len(columns) - 1] * 2
    assert not re.search(r"(?<!\\)[#_]", text) and text.count(r"b\&c") == 1


def test_the_latex_table_has_the_first_line_of_each_cell() -> None:
    table = table_of_models(Results(list(fake_results(["ynat"], ["model"], [""], [1, 2]))))
    (line,) = [line for line in latex_table(table).splitlines() if latex(table.rows[0][0]) in line and "&" in line][-1:]
    assert line == " & ".join(latex(cell.split("\n")[0]) for cell in table.rows[0]) + r" \\"


def test_the_latex_table_can_be_typeset(tmp_path: Path) -> None:
    """Within the page, with a glyph for every character: odd names, Korean, more models than fit side by side."""
    if not shutil.which("xelatex") or subprocess.run(["kpsewhich", "kotex.sty"], capture_output=True).returncode:
        pytest.skip("needs XeLaTeX with kotex (Debian: texlive-xetex, texlive-lang-korean)")
    names = (ODD, "model", "team/한국어-roberta_large", "klue/roberta-base", "[a]*--b", "여섯 번째 모델")
    table = main_table(*(fake_result(task, name, "", seed) for task in TASKS for name in names for seed in (1, 2)))
    (needed,) = re.findall(r"^% (\\usepackage\{\S+\}), and (\\usepackage\{kotex\})", table)
    (tmp_path / "report.tex").write_text(table, "utf-8")
    lines = [r"\documentclass{article}", *needed, r"\begin{document}", r"\input{report}", r"\end{document}"]
    (tmp_path / "paper.tex").write_text("\n".join(lines), "utf-8")
    command = ["xelatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=240, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "paper.log").read_text("utf-8", "replace")
    assert [
        line for line in log.splitlines() if re.match("Overfull|Underfull|Missing character|LaTeX Warning", line)
    ] == []


def test_a_page_of_many_results_stays_short() -> None:
    """1,280 results: means on the page, every score in results.csv."""
    results = list(fake_results())
    page = {
        "title": "t",
        "about": "",
        "verdict": [],
        "stages": [],
        "sections": result_sections(Results(results)),
        "links": [],
    }
    html = render("page.html.j2", page)
    assert len(html) < 250_000 and html.count("<table") < 40 and html.count("<svg") <= 40
    assert "all 1,280 results are in results.csv" in html
    assert len(results_csv(results).splitlines()) == HEADS + 160 * 14


def test_csv_and_latex_are_written_with_the_pages(tmp_path: Path) -> None:
    write_results(tmp_path / "toy", fake_results(["ynat"], ["model"], ["", "swa"], [1]))
    out = tmp_path / "out"
    out.mkdir()
    assert run(Recipe(name="toy"), tmp_path / "toy", out)["results"] == 2
    assert {path.name for path in out.iterdir()} == {"report.html", "report.md", "report.tex", "results.csv"}
    assert '<a href="results.csv">' in (out / "report.html").read_text("utf-8")


def test_one_result_is_a_short_page() -> None:
    sections = result_sections(Results([fake_result("klue-sts", "model", "", 1)]))
    assert [section.title for section in sections] == [
        "Scores",
        "By class, type and length",
        "Trainings",
    ]
    assert not any("Tasks by models" in table.title for table in tables_in(sections))
