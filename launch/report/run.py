"""The report: one Markdown page and one self-contained HTML page, rendered from the same blocks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from corpus.card.korean import translate_html, translate_markdown
from corpus.card.page import stylesheet
from corpus.documents.escaping import fenced, markdown, visible
from launch.manifest import read_manifest
from launch.report.blocks import Code, Section, Table, Text
from launch.report.corpus import corpus_sections
from launch.report.gather import count, duration, read_scores
from launch.report.scores import scores_section, verdict_on_scores
from launch.report.training import pretraining_section, vocabulary_section

if TYPE_CHECKING:
    from launch.recipe import Recipe

DESCRIPTIONS: dict[str, Callable[[Path], list[Section]]] = {  # a run that only scores models has none of these stages
    "corpus": corpus_sections,
    # an adopted tokenizer has no statistics of its training
    "tokenizer": lambda run: [vocabulary_section(run)] if (run / "tokenizer" / "statistics.json").is_file() else [],
    "pretrain": lambda folder: [pretraining_section(folder)],
}
STAGE_NAMES = ("sample", "corpus", "tokenizer", "tokens", "pretrain", "model", "finetune")


def run(recipe: Recipe, folder: Path, out: Path) -> dict[str, Any]:
    """Write ``report.md`` and ``report.html`` into ``out`` from the stages below ``folder``; returns counts."""
    scores = read_scores(folder)
    sections = [scores_section(scores)]
    for name, describe in DESCRIPTIONS.items():
        if read_manifest(folder / name):
            sections += describe(folder)
    sections.append(_provenance(recipe, folder))
    page = {
        "title": recipe.name,
        "about": recipe.about,
        "verdict": verdict_on_scores(scores),
        "stages": [found for stage in STAGE_NAMES if (found := _stage(folder, stage))],
        "sections": sections,
        "links": [("Corpus card", "../corpus/card.html")] if (folder / "corpus" / "card.html").is_file() else [],
    }
    is_korean = recipe.launch.spoken() == "ko"
    for name, translate in (("md", translate_markdown), ("html", translate_html)):
        text = render(f"page.{name}.j2", page)
        (out / f"report.{name}").write_text(translate(text) if is_korean else text, "utf-8")
    return {"results": len(scores), "sections": len(sections), "language": recipe.launch.spoken()}


def render(template: str, page: dict[str, Any]) -> str:
    """A page from its template; text is escaped, in HTML by the environment, in Markdown by the filters."""
    environment = Environment(
        loader=PackageLoader("launch.report", "."),
        autoescape=template.endswith("html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_shown if template.endswith("html.j2") else None,
    )
    environment.filters |= {"plain": markdown, "cell": _cell, "fenced": fenced}
    return environment.get_template(template).render(**page, css=stylesheet())


def _shown(value: Any) -> Any:
    """Cells and code keep their line ends."""
    return visible(value, keep="\n") if isinstance(value, str) and not isinstance(value, Markup) else value


def _cell(text: Any) -> str:
    return "<br>".join(map(markdown, str(text).split("\n")))


SUMMARIES = {
    "sample": lambda c: f"{count(sum(c['documents'].values()))} documents",
    "corpus": lambda c: f"{count(c['documents'])} documents, {count(c['sentences'])} sentences",
    "tokenizer": lambda c: f"{count(c['vocab_size'])} entries",
    "tokens": lambda c: f"{count(c['tokens'])} tokens",
    "pretrain": lambda c: f"{count(c['steps'])} steps",
    "model": lambda c: f"{count(c['parameters'])} parameters",
    "finetune": lambda c: f"{count(c['results'])} results",
}


def _stage(folder: Path, name: str) -> dict[str, str] | None:
    manifest = read_manifest(folder / name)
    if manifest is None:
        return None
    cost = f"{duration(manifest['seconds'])}, {count(manifest['peak_memory_mib'])} MiB"
    return {"name": name, "summary": SUMMARIES[name](manifest["counts"]), "cost": cost}


def _provenance(recipe: Recipe, folder: Path) -> Section:
    manifest = read_manifest(folder / "finetune") or {"versions": {}, "hardware": "unknown"}
    versions = [[name, version] for name, version in manifest["versions"].items()]
    settings = yaml.safe_dump(json.loads(recipe.model_dump_json()), allow_unicode=True, sort_keys=False)
    return Section(
        "How this was made",
        [
            Text(f"Hardware: {manifest['hardware']}. Every stage's folder holds a manifest with inputs and counts."),
            Table(["package", "version"], versions, title="Versions", folded=True),
            Code(settings),
        ],
        is_folded=True,
    )
