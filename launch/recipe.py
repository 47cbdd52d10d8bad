"""Recipes: one YAML file for a run, with only what differs from the paper.

Defaults are in the config modules of the stages and are the paper's values. Overrides such as ``pretrain.steps=500``
pass the same validation as the file. Unknown keys are errors that suggest the nearest known key. Paths in a file are
relative to that file, paths in overrides to the current folder.
"""

from __future__ import annotations

import difflib
import glob
import os
import re
import types
import typing
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator

from corpus.config import CorpusConfig
from corpus.documents.section import Section, problem_text
from corpus.reading.hub import PREFIX as HUB_PREFIX
from finetune.config import FRESH, FinetuneConfig
from finetune.embed.config import EmbedConfig
from launch.config import LaunchConfig
from launch.errors import LaunchError
from launch.plain_yaml import NotPlain, parse_yaml
from pretrain.config import PackConfig, PretrainConfig
from tokenizer.config import SPECIAL_TOKENS, TokenizerConfig

SAMPLE = "malmoi:sample"  # the embedded sample, wherever a recipe names text or benchmark files
OWN_MODEL = "model"  # the encoder that the run itself pretrains, as results name it
SEARCH_FOLDER = "finetune-search"  # of a run: the studies of `malmoi search`
# kinds of values in pydantic's errors
NO_KEY = re.compile(r"\[key\]|int|float|bool|str|(dict|literal|constrained)\b.*")
UNSAFE_IN_NAMES = re.compile(r"[^\w.-]+")
# keys that hold paths; False: may also be a Hub repository, if there is no such file
PATH_KEYS = {
    "corpus.inputs": True, "corpus.sources.*.inputs": True, "corpus.benchmarks": False, "corpus.pii.key_file": True,
    "corpus.pii.names.model": True,
    "tokenizer.extend": True, "pretrain.init_from": False, "pretrain.continue_from": True,
    "finetune.data": False, "finetune.models": False, "finetune.ensembles.*.models": False,
    "embed.model": False, "embed.negatives_by": True, "embed.reranker": False,
    "embed.train": True, "embed.evaluate": True,
    **{f"finetune.{key}.*.{split}": True for key in ("custom", "own") for split in ("train", "dev", "test")},
}  # fmt: skip
MAX_PROBLEMS = 20  # listed in an error message
MAX_BYTES = 1 << 20  # of a recipe; the longest lists of files have about 100 KB
# how the text of an override must start to be YAML and not plain text
YAML_STARTS = {str: ("'", '"'), list: ("[",), dict: ("{",), type(None): ("null", "Null", "NULL", "~")}
MAX_VALUE_CHARS = 80  # of an invalid value in an error message
Checked = TypeVar("Checked", bound=BaseModel)


class Recipe(Section):
    """A run. ``workers`` and ``launch`` describe the machine and change no result."""

    removed: ClassVar[Mapping[str, str]] = {"sample": "the sample is always complete; corpus.inputs names other text"}

    name: str = Field(pattern=r"^[^\W_][\w.-]*$", description="Name of the run folder. Default: the file's name.")
    about: str = Field("", description="Purpose of the recipe, in one line.")
    cost: str = Field("", description="Cost of a run, in one line.")
    needs: list[Literal["text", "klue", "gpu"]] = Field([], description="Requirements of a run.")
    workers: int = Field(
        default_factory=lambda: os.cpu_count() or 1, gt=0, description="Processes. Default: all cores."
    )
    launch: LaunchConfig = LaunchConfig()
    corpus: CorpusConfig = CorpusConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    pack: PackConfig = PackConfig()
    pretrain: PretrainConfig = PretrainConfig()
    finetune: FinetuneConfig = FinetuneConfig()
    embed: EmbedConfig = EmbedConfig()

    @model_validator(mode="after")
    def _sections_fit_together(self) -> Recipe:
        if self.pretrain.init_from is not None:
            own = self.tokenizer  # special_tokens may be those of the architecture
            plain = TokenizerConfig(special_tokens=own.special_tokens, extend=own.extend)
            if keys := [f"tokenizer.{key}" for key, value in own if value != getattr(plain, key)]:
                raise ValueError(
                    f"pretrain.init_from has its own tokenizer, so {', '.join(keys)} would have no effect; remove the "
                    "tokenizer settings"
                )
        elif self.tokenizer.extend:
            raise ValueError(
                f"tokenizer.extend is {self.tokenizer.extend}, but there is no pretrain.init_from whose vocabulary it "
                "could extend; set pretrain.init_from, or remove tokenizer.extend"
            )
        elif (
            self.pretrain.model.architecture in SPECIAL_TOKENS  # others take any
            and self.tokenizer.special_tokens != self.pretrain.model.architecture
        ):
            raise ValueError(
                f"tokenizer.special_tokens is {self.tokenizer.special_tokens} but pretrain.model.architecture is "
                f"{self.pretrain.model.architecture}; they must agree"
            )
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

    ``LaunchError`` for a missing recipe, broken YAML, or problems in values; every problem is listed with its key.
    """
    path = locate_recipe(name)
    values = read_mapping(path, "recipe")
    if not values:
        raise LaunchError(f"{path}: this recipe is empty; a recipe needs at least corpus: {{inputs: […]}}")
    values.setdefault("name", UNSAFE_IN_NAMES.sub("-", unicodedata.normalize("NFC", path.stem)).strip("-._"))
    if path not in shipped_recipes().values():
        for key, is_path in PATH_KEYS.items():
            values = _map_values(values, key.split("."), partial(_resolve_path, path.parent, is_path))
    for override in overrides:
        _apply(values, override)
    return validated(Recipe, values, path, "recipe")


def validated(model: type[Checked], values: object, path: Path, kind: str) -> Checked:
    """The ``values`` of a file as settings; ``LaunchError`` lists every problem with its key.

    ``kind``: "recipe" or "site".
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = [f"  {line}" for line in _problems(error, model)]
        count = f"{len(problems)} problem" + ("s" if len(problems) > 1 else "")
        more = [f"  … and {len(problems) - MAX_PROBLEMS} more"] if len(problems) > MAX_PROBLEMS else []
        lines = [f"{path.name}: {count} in this {kind}", *problems[:MAX_PROBLEMS], *more]
        raise LaunchError("\n".join(lines)) from None


def read_mapping(path: Path, kind: str) -> dict[str, Any]:
    """The values of a YAML file, unchecked; ``kind``: "recipe" or "site"."""
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    try:
        if len(content) > MAX_BYTES:
            raise NotPlain(f"larger than {MAX_BYTES:,} bytes, the limit for recipes")
        values = parse_yaml(content)
    except NotPlain as error:
        raise LaunchError(f"{path}: not readable as YAML: {error}") from None
    if not isinstance(values, dict | None):
        raise LaunchError(f"{path}: a {kind} is a mapping of sections, this file holds a {type(values).__name__}")
    return values or {}


def locate_recipe(name: str) -> Path:
    """The file of a shipped recipe, or the file itself; ``LaunchError`` if it does not exist."""
    path, recipes = Path(name), shipped_recipes()
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            close = _did_you_mean(name, [str(other) for other in path.parent.glob("*.y*ml")])
            raise LaunchError(f"{name}: no such recipe file{close}")
        return path
    if name not in recipes:
        known = f"; shipped recipes: {', '.join(recipes)}; or name a .yaml file"
        raise LaunchError(f"no recipe named {name}{_did_you_mean(name, recipes) or known}")
    return recipes[name]


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _map_values(value: Any, keys: Sequence[str], change: Callable[[str], str]) -> Any:
    """The value with ``change`` applied to the text, or the list of texts, at ``keys``; "*" matches any key."""
    if not keys:
        if isinstance(value, list):
            return [_map_values(item, (), change) for item in value]
        return change(value) if isinstance(value, str) else value
    if isinstance(value, dict):
        first, *rest = keys
        return {k: _map_values(v, rest, change) if first in ("*", k) else v for k, v in value.items()}
    return value


def _resolve_path(folder: Path, is_path: bool, name: str) -> str:
    """The path ``name`` of a recipe file in ``folder``; a name that may be a Hub repository must exist there."""
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
        raise LaunchError(f"{override}: an override has the form section.key=value, for example pretrain.steps=500")
    try:
        override.encode()
    except UnicodeEncodeError:  # arguments that are not UTF-8 arrive as lone surrogates
        raise LaunchError(f"{override!a}: not UTF-8; rename the file, or write the override in UTF-8") from None
    parts, kind = resolve_key(key)
    *sections, last = parts
    target = values
    for section in sections:
        target = target.setdefault(section, {})
        if not isinstance(target, dict):
            raise LaunchError(f"{override}: {section} is a value, not a section")
    target[last] = read_value(text, kind)


def resolve_key(key: str, model: type[BaseModel] = Recipe) -> tuple[list[str], Any]:
    """The parts of a key such as ``corpus.sources.NAME.inputs`` by their current names, and its annotation; None if the
    model has no such key."""
    kind: Any = model
    parts = []
    for part in key.split(".") if key else ():
        sections = [option for option in _options(kind) if isinstance(option, type) and issubclass(option, Section)]
        current = sections[0].current_key(part) if sections else part
        kind = next(_kinds_inside(kind, current), None)
        parts.append(current)
    return parts, kind


def read_value(text: str, kind: Any) -> Any:
    """The value of an override's text: YAML if that gives a value of the key's annotation ``kind``, else the text.

    So ``*.jsonl``, ``@x``, ``{a``, ``no`` and ``notes #1.txt`` stay file names. A list may be separated by commas.

    >>> read_value("7", int), read_value("7", str), read_value("*.txt,a #1.txt", list[str])
    (7, '7', ['*.txt', 'a #1.txt'])
    """
    try:
        value = parse_yaml(text) if text else ""
    except NotPlain:
        value = text
    if not text.lstrip().startswith(YAML_STARTS.get(type(value), "")):
        value = text  # YAML would drop a comment, read "- a" as a list and "&a" as nothing
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
    for problem in error.errors():
        place = [str(part) for part in problem["loc"] if not NO_KEY.fullmatch(str(part))]
        key = ".".join(place)
        if problem["type"] == "extra_forbidden":
            yield f"{key}: unknown key; {_known_keys(place, model)}"
        elif problem["type"] != "too_short" or not problem["input"]:  # the list is empty, not only its valid part
            text = "" if isinstance(problem["input"], dict | BaseModel) else repr(problem["input"])
            text = text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"
            message = problem_text(problem)
            is_named = problem["type"] == "value_error" and str(problem["input"]) in message
            got = f" (got {text})" if text and not is_named else ""
            yield f"{key + ': ' if key else ''}{message}{got}"


def _known_keys(place: Sequence[str], model: type[BaseModel]) -> str:
    """The key that was probably meant at ``place``, or the keys of that section."""
    *sections, name = place
    section = ".".join(sections)
    _, kind = resolve_key(section, model)
    names = [field for option in _options(kind) for field in getattr(option, "model_fields", ())]
    if inside := [k for k, _ in _fields(model) if k.startswith(f"{section}.") and k.endswith(f".{name}")]:
        return f"did you mean {inside[0]}?"
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {'.'.join((*sections, near[0]))}?" if near else f"keys here are: {', '.join(names)}"
