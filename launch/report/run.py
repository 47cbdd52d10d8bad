"""Write the report of a run: ``report.md``, ``report.html``, ``results.csv`` and ``report.tex``.

The results are read once (``launch.report.results``). Each section is a function from them, or from the files of its
stage, to blocks; both pages render the same blocks. Pages are written in English and translated as a whole.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from markupsafe import Markup

from corpus.card.korean import translate_html, translate_markdown
from corpus.card.page import stylesheet
from corpus.documents.escaping import code_block, escape_controls, escape_markdown
from corpus.documents.templates import load_templates
from launch.manifest import read_manifest
from launch.numbers import count, duration
from launch.recipe import Recipe
from launch.report.blocks import NOTES, Section, Table, Text
from launch.report.classes import class_tables, error_tables
from launch.report.results import BELOW, Result, Results, baselines_of, read_results, selection_of, settings_of
from launch.report.scores import compare_with_encoders, main_table, scores_section, settings_tables, verdict
from launch.report.stages import corpus_section, pretraining_section, vocabulary_sections
from launch.report.trainings import costs, hyperparameters, search_sections

STAGE_SECTIONS: dict[str, Callable[[Path], list[Section]]] = {  # a run that only fine-tunes has none of these
    "corpus": lambda run: [corpus_section(run)],
    "tokenizer": vocabulary_sections,
    "pretrain": lambda run: [pretraining_section(run)],
}
SUMMARIES: dict[str, Callable[[dict[str, Any]], str]] = {  # of the counts in a manifest
    "sample": lambda c: f"{count(sum(c['documents'].values()))} documents",
    "corpus": lambda c: f"{count(c['documents'])} documents, {count(c['sentences'])} sentences",
    "tokenizer": lambda c: f"{count(c['vocab_size'])} entries",
    "tokens": lambda c: f"{count(c['tokens'])} tokens",
    "pretrain": lambda c: f"{count(c['steps'])} steps",
    "model": lambda c: f"{count(c['parameters'])} parameters",
    "finetune": lambda c: f"{count(c['results'])} results",
}
CSV_COLUMNS = (
    "task", "model", "settings", "seed", "protocol", "split", "n", "n_train", "metric", "score", "lower_95",
    "upper_95", "constant", "counting", "chosen_by", "members", "seconds", "device",
)  # fmt: skip
FORMULAS = tuple("=+-@\t\r")  # how a spreadsheet's formula starts; text cells that start so get an apostrophe
LATEX_CHARACTERS = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$",
    BELOW: r"$\dagger$",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "–": r"\textendash{}",
    "`": r"\textasciigrave{}", "'": r"\textquotesingle{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"{{{sign}}}" for sign in "[*"},  # at the start of a line they would be options of the \\ before
}  # fmt: skip


def run(recipe: Recipe, folder: Path, out: Path) -> dict[str, Any]:
    """Write the report of the run in ``folder`` to ``out``, results.csv and report.tex only if there are results."""
    results = read_results(folder)
    manifests = {name: manifest for name in SUMMARIES if (manifest := read_manifest(folder / name))}
    sections = [*result_sections(results), *search_sections(folder)]
    sections += [section for name, of in STAGE_SECTIONS.items() if name in manifests for section in of(folder)]
    sections.append(_provenance(recipe, manifests.get("finetune", {"versions": {}, "hardware": "unknown"})))
    card = folder / "corpus" / "card.html"
    page = {
        "title": recipe.name,
        "about": recipe.about,
        "verdict": verdict(results.main),
        "stages": [_stage(name, manifest, len(results.scores)) for name, manifest in manifests.items()],
        "sections": sections,
        "links": [
            *([("Corpus card", "../corpus/card.html")] if card.is_file() else []),
            *([("results.csv", "results.csv"), ("report.tex", "report.tex")] if results.scores else []),
        ],
    }
    if results.scores:
        (out / "results.csv").write_text(results_csv(results.scores), "utf-8")
        (out / "report.tex").write_text(latex_table(main_table(results)), "utf-8")
    language = recipe.launch.resolve_language()
    for name, translate in (("md", translate_markdown), ("html", translate_html)):
        text = render(f"page.{name}.j2", page)
        (out / f"report.{name}").write_text(translate(text) if language == "ko" else text, "utf-8")
    return {"results": len(results.scores), "sections": len(sections), "language": language}


def result_sections(results: Results) -> list[Section]:
    """Scores, generative models, settings, figures by class, wrong predictions, trainings."""
    has_settings = len(results.main) < len(results.groups)
    note = [Text(NOTES["settings"], "note")] if has_settings else []
    classes, errors = class_tables(results.main), error_tables(results.main)
    sections = [
        scores_section(results),
        Section("Generative models", compare_with_encoders(results.scores)),
        Section("Settings", settings_tables(results)),
        Section("By class, type and length", [*note, *classes] if classes else []),
        Section("Wrong predictions", [*note, *errors] if errors else []),
        Section("Trainings", [*hyperparameters(results.scores), *costs(results.scores)]),
    ]
    return [section for section in sections if section.blocks]


def _stage(name: str, manifest: dict[str, Any], results: int) -> dict[str, str]:
    """``results``: of all commands; a manifest counts those of the last command."""
    cost = f"{duration(manifest['seconds'])}, {count(manifest['peak_memory_mib'])} MiB"
    return {"name": name, "summary": SUMMARIES[name]({**manifest["counts"], "results": results}), "cost": cost}


def _provenance(recipe: Recipe, manifest: dict[str, Any]) -> Section:
    hardware = f"Hardware: {manifest['hardware']}. The manifest.json of each stage lists its inputs and counts."
    versions = [list(item) for item in manifest["versions"].items()]
    settings = yaml.safe_dump(recipe.model_dump(mode="json"), allow_unicode=True, sort_keys=False)
    table = Table(["package", "version"], versions, title="Versions", folded=True)
    return Section("How this was made", [Text(hardware), table, Text(settings, "code")], is_folded=True)


def render(template: str, page: dict[str, Any]) -> str:
    """A page from its template; text is escaped, in HTML by the environment, in Markdown by the filters."""
    is_html = template.endswith("html.j2")
    environment = load_templates("launch.report", autoescape=is_html, finalize=_without_controls if is_html else None)
    environment.filters |= {"plain": escape_markdown, "fenced": code_block}
    environment.filters["cell"] = lambda text: "<br>".join(map(escape_markdown, str(text).split("\n")))
    return environment.get_template(template).render(**page, css=stylesheet())


def _without_controls(value: Any) -> Any:
    """Text without control characters; cells and code keep their line ends."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return escape_controls(value, keep="\n") if is_text else value


def results_csv(scores: Sequence[Result]) -> str:
    """A line for each metric of each result, numbers in full."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for result in scores:
        names = [result["task"], result["model"], settings_of(result), result["seed"], result["protocol"]]
        more = [selection_of(result).replace("–", ""), len(result.get("members") or []) or ""]
        for metric, score in result["scores"].items():
            low, high = result["intervals"].get(metric) or (None, None)
            counts = [result["split"], result["n"], result["n_train"]]
            scored = [metric, score, low, high, *baselines_of(result, metric)]
            row = [*names, *counts, *scored, *more, result.get("seconds"), result.get("device")]
            writer.writerow(f"'{cell}" if isinstance(cell, str) and cell[:1] in FORMULAS else cell for cell in row)
    return out.getvalue()


def latex_table(table: Table) -> str:
    """The table with booktabs, without intervals, which do not fit a paper; a task is named only in its first row."""
    environment = load_templates(
        "launch.report", variable_start_string="<<", variable_end_string=">>", block_start_string="<%",
        block_end_string="%>", comment_start_string="<#", comment_end_string="#>",
    )  # fmt: skip
    environment.filters |= {"latex": latex, "head": _latex_head}
    columns = "".join("r" if place in table.numbers else "l" for place in range(len(table.heads)))
    rows = [[cell.partition("\n")[0] for cell in row] for row in table.rows]
    return environment.get_template("table.tex.j2").render(table=table, columns=columns, rows=rows)


def _latex_head(text: str) -> str:
    """A model name and its settings on separate lines, so that the column is as narrow as its numbers."""
    parts = [latex(part) for part in text.replace(" (", ", (").split(", ")]
    lines = r" \\ ".join(parts)
    return lines if len(parts) == 1 else rf"\shortstack[r]{{{lines}}}"


def latex(text: str) -> str:
    """Any text as LaTeX prints it, in one line."""
    escaped = "".join(LATEX_CHARACTERS.get(character, character) for character in " ".join(text.split()))
    return re.sub("-(?=-)", "-{}", escaped)  # LaTeX would print two hyphens as a dash
