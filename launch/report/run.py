"""The report: one Markdown page and one self-contained HTML page, rendered from the same blocks; CSV, LaTeX."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from markupsafe import Markup

from corpus.card.korean import translate_html, translate_markdown
from corpus.card.page import stylesheet
from corpus.documents.escaping import code_block, escape_controls, escape_markdown
from corpus.documents.templates import load_templates
from launch.manifest import read_manifest
from launch.numbers import count, duration
from launch.report.blocks import Section, Table, Text
from launch.report.compare import group_results, verdict_on_scores
from launch.report.files import latex_table, results_csv
from launch.report.gather import read_scores, without_stale
from launch.report.scores import result_sections
from launch.report.search import search_sections
from launch.report.stages import corpus_sections, pretraining_section, vocabulary_sections
from launch.report.tables import by_models, own_groups

if TYPE_CHECKING:
    from launch.recipe import Recipe

DESCRIPTIONS: dict[str, Callable[[Path], list[Section]]] = {  # a run that only scores models has none of these stages
    "corpus": corpus_sections,
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


def run(recipe: Recipe, folder: Path, out: Path) -> dict[str, Any]:
    """Write ``report.md`` and ``report.html`` into ``out`` from the stages below ``folder``, and where there are any
    results ``results.csv`` and ``report.tex``; returns counts."""
    scores, stale = without_stale(read_scores(folder), folder)
    manifests = {name: read_manifest(folder / name) for name in SUMMARIES}
    sections = [*result_sections(scores, stale), *search_sections(folder)]
    own = own_groups(group_results(scores))
    for name, describe in DESCRIPTIONS.items():
        if manifests[name]:
            sections += describe(folder)
    sections.append(_provenance(recipe, manifests["finetune"] or {"versions": {}, "hardware": "unknown"}))
    page = {
        "title": recipe.name,
        "about": recipe.about,
        "verdict": verdict_on_scores([found for group in own for found in group.results]),
        "stages": [_stage(name, manifest, len(scores)) for name, manifest in manifests.items() if manifest],
        "sections": sections,
        "links": [
            *([("Corpus card", "../corpus/card.html")] if (folder / "corpus" / "card.html").is_file() else []),
            *([("results.csv", "results.csv"), ("report.tex", "report.tex")] if scores else []),
        ],
    }
    if scores:
        (out / "results.csv").write_text(results_csv(scores), "utf-8")
        (out / "report.tex").write_text(latex_table(by_models(own)), "utf-8")
    language = recipe.launch.resolve_language()
    for name, translate in (("md", translate_markdown), ("html", translate_html)):
        text = render(f"page.{name}.j2", page)
        (out / f"report.{name}").write_text(translate(text) if language == "ko" else text, "utf-8")
    return {"results": len(scores), "sections": len(sections), "language": language}


def render(template: str, page: dict[str, Any]) -> str:
    """A page from its template; text is escaped, in HTML by the environment, in Markdown by the filters."""
    is_html = template.endswith("html.j2")
    environment = load_templates("launch.report", autoescape=is_html, finalize=_shown if is_html else None)
    environment.filters |= {"plain": escape_markdown, "cell": _cell, "fenced": code_block}
    return environment.get_template(template).render(**page, css=stylesheet())


def _shown(value: Any) -> Any:
    """Cells and code keep their line ends."""
    return escape_controls(value, keep="\n") if isinstance(value, str) and not isinstance(value, Markup) else value


def _cell(text: Any) -> str:
    return "<br>".join(map(escape_markdown, str(text).split("\n")))


def _stage(name: str, manifest: dict[str, Any], results: int) -> dict[str, str]:
    """``results``: of all commands, where a manifest knows those of the last."""
    cost = f"{duration(manifest['seconds'])}, {count(manifest['peak_memory_mib'])} MiB"
    return {"name": name, "summary": SUMMARIES[name]({**manifest["counts"], "results": results}), "cost": cost}


def _provenance(recipe: Recipe, manifest: dict[str, Any]) -> Section:
    said = f"Hardware: {manifest['hardware']}. Every stage's folder holds a manifest with inputs and counts."
    versions = [list(item) for item in manifest["versions"].items()]
    settings = yaml.safe_dump(json.loads(recipe.model_dump_json()), allow_unicode=True, sort_keys=False)
    table = Table(["package", "version"], versions, title="Versions", folded=True)
    return Section("How this was made", [Text(said), table, Text(settings, "code")], is_folded=True)
