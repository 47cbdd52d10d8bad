"""``card``: the data set card, a recipe that trains on the benchmark as a custom task, and what a push sends.

The card has what KLUE's sections 2 and 6 ask for: sources and licences, how items were drawn and labelled, agreement,
excluded workers, drops by reason, splits, and the ethical considerations.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from corpus.documents.escaping import escape_markdown
from corpus.documents.templates import load_templates
from finetune.annotation.config import Benchmark
from finetune.annotation.folder import DROPPED, EXCLUDED, SPLITS, read_object
from finetune.annotation.split import DATA
from finetune.data.custom_files import read_json_lines

CARD, RECIPE = "README.md", "recipe.yaml"
PUBLISHED = (CARD, "benchmark.yaml", f"{DATA}/*.jsonl")
CATEGORIES = {
    "label": "text-classification", "pair": "text-classification", "similarity": "sentence-similarity",
    "tagging": "token-classification", "span": "question-answering",
}  # fmt: skip
STEPS = ("draw", "take-in", "agree", "settle", "split")


def write_card(benchmark: Benchmark, folder: Path) -> dict[str, Any]:
    """Write ``README.md`` and, for tasks that ``finetune`` trains, ``recipe.yaml``; returns the rows by split."""
    paths = {name: folder / DATA / f"{name}.jsonl" for name in SPLITS}
    if not paths["dev"].is_file():
        raise BadInput(f"{folder / DATA}: no dev.jsonl; run `malmoi benchmark split` first")
    rows = {name: sum(1 for _ in read_json_lines(path)) for name, path in paths.items() if path.is_file()}
    counts = {step: read_object(folder / "counts" / f"{step}.json") for step in STEPS}
    dropped = read_json_lines(folder / DROPPED) if (folder / DROPPED).is_file() else ()
    values = {
        "benchmark": benchmark,
        "category": CATEGORIES.get(benchmark.form.kind or "", "other"),
        "files": {name: f"{DATA}/{name}.jsonl" for name, count in rows.items() if count},
        "sources": [
            [escape_markdown(cell) for cell in (name, s.licence or "not stated", s.url, s.style)]
            for name, s in benchmark.sources.items()
        ],
        "steps": {step: list(_lines(step_counts)) for step, step_counts in counts.items() if step_counts},
        "dropped": sorted(Counter(r.values["reason"] for r in dropped).items()),
        "excluded": sorted(Counter(r.split()[0] for r in read_object(folder / EXCLUDED).values()).items()),
        "reports": counts["take-in"].get("reports", {}),
    }
    template = load_templates("finetune.annotation", autoescape=False).get_template("card.md.j2")
    atomic_write(folder / CARD, template.render(values))
    if benchmark.form.kind is not None:
        atomic_write(folder / RECIPE, recipe_of(benchmark, [name for name, count in rows.items() if count]))
    return {"rows": rows, "files": [CARD, *([RECIPE] if benchmark.form.kind else [])]}


def recipe_of(benchmark: Benchmark, splits: list[str]) -> str:
    """A recipe with the benchmark as a custom task."""
    task: dict[str, Any] = {"kind": benchmark.form.kind, "guid": "guid"}
    if benchmark.form.kind in ("pair", "similarity"):
        task["text"] = list(benchmark.form.texts)
    elif benchmark.form.kind in ("label", "tagging"):
        task["text"] = "marked" if benchmark.task == "re" else benchmark.form.texts[0]
    task |= {"spans": "spans"} if benchmark.form.kind == "tagging" else {}
    task |= {"start": "start"} if benchmark.form.kind == "span" else {}
    task |= {"labels": list(benchmark.labels)} if benchmark.form.kind in ("label", "pair") else {}
    task |= {name: f"{DATA}/{name}.jsonl" for name in splits}
    finetune = {"custom": {benchmark.name: task}, "seeds": [1, 2, 3]}
    recipe = {"about": f"the benchmark {benchmark.name}", "finetune": finetune}
    return yaml.safe_dump(recipe, allow_unicode=True, sort_keys=False)


def published_files(folder: Path) -> list[str]:
    """What a push sends: the card, the settings and the data, but no votes; ``BadInput`` without a card."""
    if not (folder / CARD).is_file():
        raise BadInput(f"{folder}: no {CARD}; run `malmoi benchmark card` first")
    return [path.relative_to(folder).as_posix() for name in PUBLISHED for path in sorted(folder.glob(name))]


def _lines(counts: dict[str, Any], prefix: str = "") -> Any:
    """Names and values of counts; of lists only the length."""
    for name, value in counts.items():
        if isinstance(value, dict):
            yield from _lines(value, f"{prefix}{name}: ")
        elif value is not None:
            plain = str(len(value) if isinstance(value, list) else value)
            shown = f"{value:,.3f}" if isinstance(value, float) else plain
            yield escape_markdown(f"{prefix}{name}"), escape_markdown(shown)
