"""Recipes: one YAML file for a whole run, holding only what differs from the paper.

Defaults live in the stages' config modules and are the paper's values. Overrides such as ``pretrain.steps=500`` go
through the same validation as the file. Unknown keys are errors, with the nearest known key suggested. Paths in a file
are relative to that file, those in overrides to the current folder.
"""

from __future__ import annotations

import difflib
import glob
import os
import re
import types
import typing
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator

from corpus.config import CorpusConfig
from corpus.documents.section import Section
from corpus.reading.hub import PREFIX as HUB_PREFIX
from finetune.config import FRESH, FinetuneConfig
from launch.config import LaunchConfig, SampleConfig
from launch.errors import LaunchError
from launch.plain_yaml import NotPlain, parse_yaml, read_yaml
from pretrain.config import PLACES, PackConfig, PretrainConfig
from tokenizer.config import SPECIAL_TOKENS, TokenizerConfig

SAMPLE = "malmoi:sample"  # stands for the embedded sample wherever a recipe names text or benchmark files
OWN_MODEL = "model"  # the encoder that the run itself pretrains, as results name it
SEARCH_FOLDER = "finetune-search"  # of a run: the studies of `malmoi search`
UNSAFE_IN_NAMES = re.compile(r"[^\w.-]+")
# keys that hold paths; False: a repository on the Hub, too, unless there is such a file
PATH_KEYS = {
    "corpus.inputs": True, "corpus.sources.*.inputs": True, "corpus.benchmarks": False, "corpus.pii.key_file": True,
    "corpus.pii.names.model": True,
    "tokenizer.extend": True, "pretrain.init_from": False, "pretrain.continue_from": True,
    "finetune.data": False, "finetune.models": False, "finetune.ensembles.*.models": False,
    **{f"finetune.{key}.*.{split}": True for key in ("custom", "own") for split in ("train", "dev", "test")},
}  # fmt: skip
SHOWN_PROBLEMS = 20
# how an override shows that it is more than text
MARKS = {str: ("'", '"'), list: ("[",), dict: ("{",), type(None): ("null", "Null", "NULL", "~")}
SHOWN_CHARACTERS = 80  # of a value that is refused
Checked = TypeVar("Checked", bound=BaseModel)


class Recipe(Section):
    """A whole run. ``workers`` and ``launch`` are properties of the machine and change no result."""

    name: str = Field(pattern=r"^[^\W_][\w.-]*$", description="Names the run folder. Default: the file's name.")
    about: str = Field("", description="What the recipe is for, in one line for people.")
    cost: str = Field("", description="What a run takes, in one line for people.")
    needs: list[Literal["text", "klue", "gpu"]] = Field([], description="What a run cannot do without.")
    workers: int = Field(default_factory=lambda: os.cpu_count() or 1, gt=0, description="Processes.")
    launch: LaunchConfig = LaunchConfig()
    sample: SampleConfig = SampleConfig()
    corpus: CorpusConfig = CorpusConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    pack: PackConfig = PackConfig()
    pretrain: PretrainConfig = PretrainConfig()
    finetune: FinetuneConfig = FinetuneConfig()

    @model_validator(mode="after")
    def _sections_fit_together(self) -> Recipe:
        if self.pretrain.init_from is not None:
            own = self.tokenizer
            plain = TokenizerConfig(
                special_tokens=own.special_tokens, extend=own.extend
            )  # the first as the architecture
            if keys := [f"tokenizer.{key}" for key, value in own if value != getattr(plain, key)]:
                raise ValueError(
                    f"pretrain.init_from brings its own tokenizer, so {', '.join(keys)} would do nothing; leave out "
                    "what the recipe says of the tokenizer"
                )
        elif self.tokenizer.extend:
            raise ValueError(
                f"tokenizer.extend is {self.tokenizer.extend}, but there is no pretrain.init_from whose vocabulary it "
                "could extend; name one, or leave it out"
            )
        elif (
            self.pretrain.model.architecture in SPECIAL_TOKENS  # others take any
            and self.tokenizer.special_tokens != self.pretrain.model.architecture
        ):
            raise ValueError(
                f"tokenizer.special_tokens is {self.tokenizer.special_tokens} but pretrain.model.architecture is "
                f"{self.pretrain.model.architecture}; they must agree"
            )
        if self.pretrain.rows.masking.unit == "morpheme" and not self.pack.morphemes:
            raise ValueError("pretrain.rows.masking.unit is morpheme, but pack.morphemes is false; set it to true")
        return self

    @property
    def uses_sample(self) -> bool:
        """Whether any input is the embedded sample."""
        return SAMPLE in (*self.corpus.inputs, *(self.corpus.benchmarks or ()), self.finetune.data)


def shipped_recipes() -> dict[str, Path]:
    """Names and files of the recipes in the package."""
    folder = Path(str(resources.files("launch.recipes")))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def load_recipe(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """A shipped recipe by name or a YAML file by path, overrides applied.

    Raises:
        LaunchError: no such recipe, broken YAML, or problems in values; every problem is listed with its key.
    """
    path = locate_recipe(name)
    values = _read(path)
    for override in overrides:
        _apply(values, override)
    return validated(Recipe, values, path, "recipe")


def validated(model: type[Checked], values: object, path: Path, kind: str) -> Checked:
    """The ``values`` of a file as settings; ``LaunchError`` lists every problem with its key.

    ``kind`` names in one word what the file is.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = [f"  {line}" for line in _problems(error, model)]
        count = f"{len(problems)} problem" + ("s" if len(problems) > 1 else "")
        more = [f"  … and {len(problems) - SHOWN_PROBLEMS} more"] if len(problems) > SHOWN_PROBLEMS else []
        raise LaunchError(
            "\n".join([f"{path.name}: {count} in this {kind}", *problems[:SHOWN_PROBLEMS], *more])
        ) from None


def locate_recipe(name: str) -> Path:
    """The file of a shipped recipe, or the file itself; ``LaunchError`` where there is none."""
    path, recipes = Path(name), shipped_recipes()
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            close = _did_you_mean(name, [str(other) for other in path.parent.glob("*.y*ml")])
            raise LaunchError(f"{name}: no such recipe file{close}")
        return path
    if name not in recipes:
        known = f"; shipped are {', '.join(recipes)}; or give a .yaml file"
        raise LaunchError(f"no recipe named {name}{_did_you_mean(name, recipes) or known}")
    return recipes[name]


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _read(path: Path) -> dict[str, Any]:
    """The values of a recipe file, with its name and its paths settled."""
    try:
        values = read_yaml(path)
    except NotPlain as error:
        raise LaunchError(f"{path}: not readable as YAML: {error}") from None
    if values is None:
        raise LaunchError(f"{path}: this recipe is empty; a recipe says at least what to read: corpus: {{inputs: […]}}")
    if not isinstance(values, dict):
        raise LaunchError(f"{path}: a recipe is a mapping of sections, this file holds a {type(values).__name__}")
    values.setdefault("name", UNSAFE_IN_NAMES.sub("-", unicodedata.normalize("NFC", path.stem)).strip("-._"))
    if path not in shipped_recipes().values():
        for key, is_path in PATH_KEYS.items():
            values = _place_paths(values, key.split("."), partial(_beside, path.parent, is_path))
    return values


def _place_paths(value: Any, keys: Sequence[str], place: Callable[[str], str]) -> Any:
    """The value with ``place`` done to the text, or the list of texts, at ``keys``; "*" stands for any key."""
    if not keys:
        if isinstance(value, list):
            return [_place_paths(item, (), place) for item in value]
        return place(value) if isinstance(value, str) else value
    if isinstance(value, dict):
        first, *rest = keys
        return {k: _place_paths(v, rest, place) if first in ("*", k) else v for k, v in value.items()}
    return value


def _beside(folder: Path, is_path: bool, name: str) -> str:
    """``name`` as the recipe file in ``folder`` means it; what may be a repository's name has to exist there."""
    prefix = FRESH if name.startswith(FRESH) else ""
    plain = name.removeprefix(prefix)
    if plain == SAMPLE or plain.startswith((HUB_PREFIX, "/", "~")) or "://" in plain:
        return name
    if not is_path and not (folder / plain).exists():
        return name
    literal = Path(glob.escape(str(folder))) if glob.has_magic(plain) else folder
    return f"{prefix}{literal / plain}"


def _apply(values: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise LaunchError(f"{override}: an override looks like section.key=value, for example pretrain.steps=500")
    try:
        override.encode()
    except UnicodeEncodeError:  # arguments that are not UTF-8 reach Python as lone surrogates
        raise LaunchError(f"{override!a}: not UTF-8; rename what it names, or write the override in UTF-8") from None
    key = _current_key(key)
    *sections, last = key.split(".")
    place = values
    for section in sections:
        place = place.setdefault(section, {})
        if not isinstance(place, dict):
            raise LaunchError(f"{override}: {section} is a value, not a section")
    place[last] = read_value(text, kind_of(key))


def _current_key(key: str) -> str:
    """The key with each part that a section has renamed replaced."""
    kind: Any = Recipe
    parts = []
    for part in key.split("."):
        sections = [option for option in _options(kind) if isinstance(option, type) and issubclass(option, Section)]
        current = sections[0].current_key(part) if sections else part
        kind = next(_kinds_inside(kind, current), None)
        parts.append(current)
    return ".".join(parts)


def read_value(text: str, kind: Any) -> Any:
    """What the text of an override stands for: YAML where that gives the key's annotation ``kind``, else the text.

    So ``*.jsonl``, ``@x``, ``{a``, ``no`` and ``notes #1.txt`` stay file names, and a list may be parted by commas.

    >>> read_value("7", int), read_value("7", str), read_value("*.txt,a #1.txt", list[str])
    (7, '7', ['*.txt', 'a #1.txt'])
    """
    try:
        value = parse_yaml(text) if text else ""
    except NotPlain:
        value = text
    if not text.lstrip().startswith(MARKS.get(type(value), "")):
        value = text  # YAML would cut a comment off, read "- a" as a list and "&a" as nothing
    if kind is None or _fits(value, kind):
        return value
    if _fits(text, kind):
        return text
    lists = [option for option in _options(kind) if typing.get_origin(option) in (list, tuple)]
    if not lists or value is None or isinstance(value, list):
        return value
    if isinstance(value, str) and value != text:  # it was quoted
        return [value]
    return [read_value(part.strip(), typing.get_args(lists[0])[0]) for part in text.split(",")] if text else []


def kind_of(key: str) -> Any:
    """The annotation of a key such as ``corpus.sources.NAME.inputs``; None where the recipe has no such key."""
    kind: Any = Recipe
    for part in key.split("."):
        kind = next(_kinds_inside(kind, part), None)
    return kind


def _kinds_inside(kind: Any, part: str) -> Iterator[Any]:
    for option in _options(kind):
        if isinstance(option, type) and issubclass(option, BaseModel):
            field = option.model_fields.get(getattr(option, "renamed", {}).get(part, part))
            yield field.annotation if field else None
        elif typing.get_origin(option) is dict:
            yield typing.get_args(option)[1]


def _options(kind: Any) -> tuple[Any, ...]:
    """The members of a union, or the kind alone."""
    return typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)


def _fits(value: Any, kind: Any) -> bool:
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True


def _fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        yield prefix + name, field
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _fields(field.annotation, f"{prefix}{name}.")


def _problems(error: ValidationError, model: type[BaseModel]) -> Iterator[str]:
    known = [key for key, _ in _fields(model)]
    for problem in error.errors():
        key = ".".join(map(str, problem["loc"]))
        is_unknown = problem["type"] == "extra_forbidden"
        is_moved = model is Recipe and key.startswith("pretrain.")
        moved = PLACES.get(key.removeprefix("pretrain.")) if is_moved else None
        if moved and (is_unknown or problem["type"] == "model_type"):
            yield f"{key}: moved to pretrain.{moved}"
        elif is_unknown:
            siblings = [k for k in known if k.rpartition(".")[0] == key.rpartition(".")[0]]
            names = ", ".join(k.rpartition(".")[2] for k in siblings)
            close = _did_you_mean(key, siblings) or _did_you_mean(key, known)
            yield f"{key}: unknown key{close or f'; keys here are: {names}'}"
        else:
            text = "" if isinstance(problem["input"], dict | BaseModel) else repr(problem["input"])
            text = text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
            got = f" (got {text})" if text else ""
            yield f"{key + ': ' if key else ''}{problem['msg'].removeprefix('Value error, ')}{got}"
