"""Defaults and limits of all settings and options, as recorded: most are figures of the KLUE paper, all change results.

After a change on purpose: ``python -m tests.test_settings`` records them again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from finetune.annotation.config import TASK_FORMS, Benchmark
from launch.cli import app
from launch.cluster.site import Site
from launch.recipe import Recipe

RECORD = Path(__file__).parent / "fixtures" / "settings.txt"
RULES = (
    "default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems",
    "maxItems", "minProperties", "pattern", "enum", "const",
)  # fmt: skip


def rules_of(schema: dict[str, Any]) -> dict[str, Any]:
    """The default and the limits of one setting, those of its items included."""
    if "$ref" in schema:  # a section, whose settings have lines of their own
        return {}
    rules = {rule: schema[rule] for rule in RULES if rule in schema}
    parts = [*schema.get("anyOf", ()), *schema.get("prefixItems", ()), schema.get("items"), schema.get("propertyNames")]
    parts += [value] if isinstance(value := schema.get("additionalProperties"), dict) else []
    inner = [found for part in parts if isinstance(part, dict) and (found := rules_of(part))]
    return rules | ({"of": inner} if inner else {})


def recorded_lines() -> Iterator[str]:
    for model in (Recipe, Site, Benchmark):
        schema = model.model_json_schema()
        for section, part in ((model.__name__, schema), *sorted(schema.get("$defs", {}).items())):
            for name, setting in part.get("properties", {}).items():
                yield f"{section}.{name} {json.dumps(rules_of(setting), ensure_ascii=False)}"
    yield from (f"benchmark task {name} {json.dumps(form)}" for name, form in TASK_FORMS.items())
    yield from _options(typer.main.get_command(app), "malmoi")


def _options(command: Any, path: str) -> Iterator[str]:
    """Names, defaults and limits of the options of a command and of those below it; not what the machine decides."""
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from _options(inner, f"{path} {name}")
    for option in command.params:
        default = None if option.name == "workers" else option.default
        rules = [default, option.required, option.min, option.max]
        yield f"{path} {option.name} {json.dumps(rules, ensure_ascii=False, default=str)}"


def test_defaults_and_limits_are_those_recorded() -> None:
    assert [*recorded_lines()] == RECORD.read_text("utf-8").splitlines()


if __name__ == "__main__":
    RECORD.write_text("".join(f"{line}\n" for line in recorded_lines()), "utf-8")
