"""Recipes: one YAML file for a whole run, holding only what differs from the paper.

Defaults live in the stages' config modules and are the paper's values. Overrides such as ``pretrain.steps=500`` go
through the same validation as the file. Unknown keys are errors, with the nearest known key suggested.
"""

from __future__ import annotations

import difflib
import os
import typing
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator

from corpus.config import CorpusConfig
from finetune.config import FinetuneConfig
from launch.config import LaunchConfig
from launch.errors import LaunchError
from launch.sample.config import SampleConfig
from pretrain.config import PackConfig, PretrainConfig
from tokenizer.config import TokenizerConfig

SAMPLE = "malmoi:sample"  # stands for the embedded sample wherever a recipe names text or benchmark files


class Recipe(BaseModel, frozen=True, extra="forbid"):
    """A whole run. ``workers`` and ``launch`` are properties of the machine and change no result."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="Names the run folder.")
    about: str = Field("", description="One line for people.")
    workers: int = Field(default_factory=lambda: os.cpu_count() or 1, gt=0, description="Processes.")
    launch: LaunchConfig = LaunchConfig()
    sample: SampleConfig = SampleConfig()
    corpus: CorpusConfig = CorpusConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    pack: PackConfig = PackConfig()
    pretrain: PretrainConfig = PretrainConfig()
    finetune: FinetuneConfig = FinetuneConfig()

    @model_validator(mode="after")
    def _special_tokens_fit_the_architecture(self) -> Recipe:
        if self.pretrain.init_from is not None:
            self._refuse_tokenizer_in_vain()
        elif self.tokenizer.special_tokens != self.pretrain.architecture:
            raise ValueError(
                f"tokenizer.special_tokens is {self.tokenizer.special_tokens} but pretrain.architecture is "
                f"{self.pretrain.architecture}; they must agree"
            )
        return self

    @model_validator(mode="after")
    def _morphemes_are_stored(self) -> Recipe:
        if self.pretrain.masking.unit == "morpheme" and not self.pack.morphemes:
            raise ValueError("pretrain.masking.unit is morpheme, but pack.morphemes is false; set it to true")
        return self

    def _refuse_tokenizer_in_vain(self) -> None:
        plain = TokenizerConfig(special_tokens=self.tokenizer.special_tokens)  # those come with the architecture
        keys = [f"tokenizer.{key}" for key, value in self.tokenizer if value != getattr(plain, key)]
        if keys:
            raise ValueError(
                f"pretrain.init_from brings its own tokenizer, so {', '.join(keys)} would do nothing; leave out what "
                "the recipe says of the tokenizer"
            )

    @property
    def uses_sample(self) -> bool:
        """Whether any input is the embedded sample."""
        return SAMPLE in (*self.corpus.inputs, *(self.corpus.benchmarks or ()), self.finetune.data)


def shipped_recipes() -> dict[str, Path]:
    """Names and files of the recipes in the package."""
    folder = Path(str(resources.files("launch.recipes")))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def load_recipe(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """Load a shipped recipe by name or a YAML file by path, apply overrides, validate.

    Raises:
        LaunchError: no such recipe, broken YAML, or problems in values; every problem is listed with its key.
    """
    path = _locate(name)
    try:
        values = yaml.safe_load(path.read_text("utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise LaunchError(f"{path}: not readable as YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise LaunchError(f"{path}: a recipe is a mapping of sections, this file holds a {type(values).__name__}")
    values.setdefault("name", path.stem)
    for override in overrides:
        _apply(values, override)
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        problems = [f"  {line}" for line in _problems(error)]
        count = f"{len(problems)} problem" + ("s" if len(problems) > 1 else "")
        raise LaunchError("\n".join([f"{path.name}: {count} in this recipe", *problems])) from None


def _locate(name: str) -> Path:
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise LaunchError(f"{name}: no such recipe file")
        return path
    recipes = shipped_recipes()
    if name not in recipes:
        close = difflib.get_close_matches(name, recipes, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise LaunchError(f"no recipe named {name}{hint} Shipped: {', '.join(recipes)}; or give a .yaml file")
    return recipes[name]


def _apply(values: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise LaunchError(f"{override}: an override looks like section.key=value, for example pretrain.steps=500")
    try:
        value = yaml.safe_load(text) if text else ""
    except yaml.YAMLError:
        value = text
    *sections, last = key.split(".")
    place = values
    for section in sections:
        inner = place.setdefault(section, {})
        if not isinstance(inner, dict):
            raise LaunchError(f"{override}: {section} is a value, not a section")
        place = inner
    place[last] = _as_list(text) if _is_list(key) and not isinstance(value, list | None) else value


def _as_list(text: str) -> list[Any]:
    return [yaml.safe_load(part) for part in text.split(",")]


def _is_list(key: str) -> bool:
    field = dict(_fields(Recipe)).get(key)
    options = (field.annotation, *typing.get_args(field.annotation)) if field else ()
    return any(option in (list, tuple) or typing.get_origin(option) in (list, tuple) for option in options)


def _fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        yield prefix + name, field
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _fields(field.annotation, f"{prefix}{name}.")


def _problems(error: ValidationError) -> Iterator[str]:
    known = [key for key, _ in _fields(Recipe)]
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] != "extra_forbidden":
            got = "" if isinstance(problem["input"], dict | BaseModel) else f" (got {problem['input']!r})"
            yield f"{key + ': ' if key else ''}{problem['msg'].removeprefix('Value error, ')}{got}"
            continue
        parent = key.rpartition(".")[0]
        siblings = [k for k in known if k.rpartition(".")[0] == parent]
        close = difflib.get_close_matches(key, siblings, n=1) or difflib.get_close_matches(key, known, n=1)
        hint = (
            f"did you mean {close[0]}?"
            if close
            else "keys here are: " + ", ".join(k.rpartition(".")[2] for k in siblings)
        )
        yield f"{key}: unknown key; {hint}"
