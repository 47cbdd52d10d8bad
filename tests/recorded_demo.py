"""The demo's scores as README and its Korean twin show them, and the settings and processor that they come from.

``python -m tests.recorded_demo RUN…`` records the finished demos with several seeds and writes their table into both
pages: ``for s in 1 2 3 4 5; do malmoi run smoke pretrain.seed=$s finetune.seeds=$s --runs runs/$s; done``.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from launch.recipe import Recipe, load_recipe
from launch.report.results import BELOW, baselines_of
from pretrain.config import MACHINE_KEYS, by_path

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", ROOT / "README.ko.md")
RECORD = ROOT / "tests" / "fixtures" / "demo_scores.json"
RUN = ROOT / "runs" / "smoke"
TASKS = ("ynat", "klue-sts", "klue-nli", "klue-ner", "klue-re", "klue-dp", "klue-mrc", "wos")
TABLE = re.compile(r"(?<=```\n)task\b.*?(?=```)", re.DOTALL)


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """All settings that results depend on, without nesting."""
    left_out: Any = dict.fromkeys(("about", "workers", "launch", "embed"), True) | {"pretrain": MACHINE_KEYS}
    return by_path(recipe.model_dump(mode="json", exclude=left_out))


def changed_settings(recorded: dict[str, Any]) -> dict[str, Any]:
    """Settings of the recipe ``smoke`` that are not those of the record; one newer than it counts as its default."""
    before = settings_of(Recipe(name="smoke")) | recorded
    return {key: value for key, value in settings_of(load_recipe("smoke")).items() if before.get(key) != value}


def scores_of_runs(runs: Sequence[Path] = (RUN,)) -> list[dict[str, Any]]:
    """One row a metric of Table 36: task, metric, mean, lowest and highest score of the runs, and both baselines (None:
    undefined)."""
    rows: list[dict[str, Any]] = []
    for task in TASKS:
        paths = sorted(path for run in runs for path in (run / "finetune" / task / "model").glob("seed-*/scores.json"))
        results = [json.loads(path.read_text("utf-8")) for path in paths]
        for metric in results[0]["paper_dev"]["klue/roberta-base"] if results else ():
            values = [result["scores"][metric] or 0.0 for result in results]
            constant, counting = (
                None if value is None else round(value, 2) for value in baselines_of(results[0], metric)
            )
            rows.append({
                "task": task, "metric": metric, "mean": round(fmean(values), 2), "low": round(min(values), 2),
                "high": round(max(values), 2), "constant": constant, "counting": counting, "n": results[0]["n"],
                "seeds": len(results),
            })  # fmt: skip
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as lines of text, scores as whole numbers, which is what repeats on other processors."""
    mean = f"mean of {rows[0]['seeds']}"
    lines = [f"{'task':<9} {'metric':<18} {mean:>9}  {'range':<9} {'constant':>8} {'counting':>8} {'n':>4}"]
    for row in rows:
        constant, counting = ("–" if row[key] is None else f"{row[key]:.1f}" for key in ("constant", "counting"))
        mean = f"{row['mean']:.0f} {BELOW if row['mean'] < (row['counting'] or 0.0) else ' '}"
        span = f"{math.floor(row['low'])} to {math.ceil(row['high'])}"
        lines.append(
            f"{row['task']:<9} {row['metric']:<18} {mean:>6}  {span:<9} {constant:>8} {counting:>8} {row['n']:>4}"
        )
    return "\n".join(lines) + "\n"


def processor() -> str:
    """The name of the processor, from Linux."""
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
    return found[1] if found else "unknown"


def record(runs: Sequence[Path]) -> None:
    """Write the scores of finished demos to the fixture and into both pages."""
    rows = scores_of_runs(runs)
    kept = {"settings": settings_of(load_recipe("smoke")), "processor": processor(), "runs": len(runs), "scores": rows}
    RECORD.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for page in PAGES:
        page.write_text(TABLE.sub(lambda _: table(rows), page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    record([Path(name) for name in sys.argv[1:]] or [RUN])
