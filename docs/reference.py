"""The two reference pages of the site, made from the code: every setting of a recipe, every command and option.

``docs/hooks.py`` adds both to the site when it is built. Nothing of them is committed, so they cannot be out of date.
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from launch.cli import app
from launch.cluster.site import Site
from launch.recipe import Recipe

SCALARS = {str: "text", int: "integer", float: "number", bool: "true or false"}
ABOUT_SETTINGS = """# Settings

A recipe sets these keys, nested as YAML. On the command line, write `KEY=VALUE`, for example `pretrain.steps=500`.
Defaults are the values of the KLUE paper, where it states them. An unknown key is an error that names the nearest key.
The last table has the keys of [`site.yaml`](../clusters.md#run-a-recipe), which describes a cluster.
"""
ABOUT_COMMANDS = """# Commands

`malmoi COMMAND --help` prints the same. Commands exit with 0 on success and 2 on bad input.
"""


@dataclass(frozen=True)
class Setting:
    """One key of a recipe."""

    key: str
    type: str
    default: str
    description: str


def find_settings(section: type[BaseModel] = Recipe, prefix: str = "") -> Iterator[Setting]:
    """Every setting below ``section``, in the order of the code. NAME and N are keys that the user chooses."""
    for name, field in section.model_fields.items():
        key = f"{prefix}{name}"
        nested = dict(_nested_sections(field.annotation))
        if list(nested) != [""]:
            yield Setting(key, _type_name(field.annotation), _default(field), field.description or "")
        for path, model in nested.items():
            yield from find_settings(model, f"{key}{path}.")


def _nested_sections(annotation: Any, path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield path, annotation
    elif origin is dict:
        yield from _nested_sections(arguments[1], f"{path}.NAME")
    elif origin in (list, tuple):
        yield from _nested_sections(arguments[0], f"{path}.N")
    elif origin in (typing.Annotated, typing.Union, types.UnionType):
        for argument in arguments[: 1 if origin is typing.Annotated else None]:
            yield from _nested_sections(argument, path)


def _type_name(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type_name(arguments[0])
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type_name(part) for part in arguments if part is not type(None)))
    if origin in (list, tuple, frozenset, set):
        return f"list of {_type_name(arguments[0])}"
    if origin is dict:
        return f"map of {_type_name(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    return SCALARS.get(annotation, getattr(annotation, "__name__", str(annotation)).lower())


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if field.default_factory is not None:
        return "computed"
    if isinstance(value, BaseModel):
        changed = value.model_dump(mode="json", exclude_defaults=True)
        return f"`{changed}`" if changed else "–"
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or value in ((), [], {}, ""):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def render_settings() -> str:
    """The page of all settings, one table for each section of the recipe."""
    tables: dict[str, list[Setting]] = {}
    for setting in find_settings():
        top = setting.key.split(".")[0] if "." in setting.key else "recipe"
        tables.setdefault(top, []).append(setting)
    tables["site.yaml"] = list(find_settings(Site))
    lines = [ABOUT_SETTINGS]
    for top, settings in tables.items():
        lines += [f"## {top}", "", "| key | type | default | description |", "|---|---|---|---|"]
        lines += [f"| `{s.key}` | {_cell(s.type)} | {_cell(s.default)} | {_cell(s.description)} |" for s in settings]
        lines.append("")
    return "\n".join(lines)


def render_commands() -> str:
    """The page of all commands: purpose, usage, arguments and options, example."""
    lines = [ABOUT_COMMANDS]
    for path, command in find_commands():
        purpose, *rest = (command.help or "").split("\n\n")
        lines += [f"## {' '.join(path)}", "", _prose(purpose), ""]
        for paragraph in rest:
            label, _, example = paragraph.partition(":")
            is_example = label.strip() in ("Example", "Examples", "Try it")
            lines += (
                ["```", *[line.strip() for line in example.strip().splitlines()], "```", ""]
                if is_example
                else [
                    _prose(paragraph),
                    "",
                ]
            )
        if rows := [_parameter_row(p) for p in command.params if p.name != "help" and not getattr(p, "hidden", False)]:
            lines += ["| argument or option | default | description |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def find_commands(command: Any = None, path: tuple[str, ...] = ("malmoi",)) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every visible command with the words that call it, groups before their commands."""
    command = command or typer.main.get_command(app)
    subcommands = getattr(command, "commands", {})
    if len(path) > 1:
        # a group with arguments of its own, such as `malmoi tokenizer RECIPE`, keeps them in a hidden command
        yield path, next((hidden for hidden in subcommands.values() if hidden.hidden), command)
    for name in command.list_commands(None) if subcommands else ():
        if not subcommands[name].hidden:
            yield from find_commands(subcommands[name], (*path, name))


def _parameter_row(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    word = parameter.metavar or parameter.name.strip("_").upper()
    is_flag = getattr(parameter, "is_flag", False)
    names = ", ".join(parameter.opts) + ("" if is_flag else f" {word}") if is_option else word
    default = parameter.default
    shown = (
        "required"
        if parameter.required
        else "–"
        if default in (None, False, "", (), []) or callable(default)
        else f"`{default}`"
    )
    return f"| `{_cell(names)}` | {_cell(shown)} | {_cell(getattr(parameter, 'help', None) or '')} |"


def _prose(text: str) -> str:
    return _cell(" ".join(text.split()))


def _cell(text: str) -> str:
    """Text that Markdown and HTML take as it is."""
    plain = text.replace("\n", " ").replace("\\[", "[")  # rich's way to write a bracket
    return plain.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
