"""The demo's scores as README and its Korean twin show them, and the settings and processor that they come from.

``python -m tests.recorded_demo`` records the finished demo (``runs/smoke``) and writes its table into both pages.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from launch.recipe import Recipe, load_recipe
from launch.report.results import trivial_of
from pretrain.config import MACHINE_KEYS, by_path

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", ROOT / "README.ko.md")
RECORD = ROOT / "tests" / "fixtures" / "demo_scores.json"
RUN = ROOT / "runs" / "smoke"
TASKS = ("ynat", "klue-sts", "klue-nli", "klue-ner", "klue-re", "klue-dp", "klue-mrc", "wos")
TABLE = re.compile(r"(?<=```\n)task\b.*?(?=```)", re.DOTALL)


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """All settings that results depend on, without nesting."""
    left_out: Any = dict.fromkeys(("about", "workers", "launch"), True) | {"pretrain": MACHINE_KEYS}
    return by_path(recipe.model_dump(mode="json", exclude=left_out))


def changed_settings(recorded: dict[str, Any]) -> dict[str, Any]:
    """Settings of the recipe ``smoke`` that are not those of the record; one newer than it counts as its default."""
    before = settings_of(Recipe(name="smoke")) | recorded
    return {key: value for key, value in settings_of(load_recipe("smoke")).items() if before.get(key) != value}


def scores_of_run() -> list[dict[str, object]]:
    """One row a metric of Table 36: task, metric, score, what a constant prediction gets (None: it says nothing), n."""
    rows: list[dict[str, object]] = []
    for task in TASKS:
        for path in sorted((RUN / "finetune" / task / "model").glob("seed-*/scores.json")):
            found = json.loads(path.read_text("utf-8"))
            for metric in found["paper_dev"]["klue/roberta-base"]:
                value = found["scores"][metric]
                baseline = trivial_of(found, metric)
                numbers = {"score": round(value or 0.0, 2), "trivial": None if baseline is None else round(baseline, 2)}
                rows.append({"task": task, "metric": metric, **numbers, "n": found["n"]})
    return rows


def table(rows: list[dict[str, object]]) -> str:
    """The rows as lines of text."""
    lines = [f"{'task':<9} {'metric':<18} {'score':>6} {'trivial':>8} {'n':>4}"]
    for row in rows:
        trivial = "–" if row["trivial"] is None else f"{row['trivial']:.2f}"
        lines.append(f"{row['task']:<9} {row['metric']:<18} {row['score']:>6.2f} {trivial:>8} {row['n']:>4}")
    return "\n".join(lines) + "\n"


def processor() -> str:
    """The name of the processor, from Linux."""
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
    return found[1] if found else "unknown"


def record() -> None:
    """Write the finished demo's scores to the fixture and into both pages."""
    rows = scores_of_run()
    kept = {"settings": settings_of(load_recipe("smoke")), "processor": processor(), "scores": rows}
    RECORD.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    for page in PAGES:
        page.write_text(TABLE.sub(lambda _: table(rows), page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    record()
