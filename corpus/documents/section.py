"""Base class of every recipe section: strict keys, renamed keys for one release, removed keys with a reason.

``problem_text`` says in plain English what pydantic found, for recipes and every other file that it checks.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from pydantic import BaseModel, model_validator
from pydantic_core import ErrorDetails

log = logging.getLogger(__name__)
PLAIN = {  # pydantic's error types whose messages use words of Python
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be a section of keys and values"),
    **dict.fromkeys(("too_short", "string_too_short"), "must not be empty"),
    **dict.fromkeys(("string_type", "string_unicode"), "must be text"),
    "missing": "missing",
    "extra_forbidden": "unknown key; check its spelling",
}


def problem_text(problem: ErrorDetails) -> str:
    """One of ``ValidationError.errors()`` in plain English, without the value.

    >>> problem_text({"type": "less_than", "loc": (), "msg": "Input should be less than 1", "input": 15})
    'must be less than 1'
    """
    text = PLAIN.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
    return re.sub("^(Input|String) should ", "must ", text)


class Section(BaseModel, frozen=True, extra="forbid"):
    """A frozen section of a recipe; unknown keys are errors. Old keys work for one release and log one line."""

    renamed: ClassVar[Mapping[str, str]] = {}  # old key to new key of this section
    renamed_values: ClassVar[Mapping[str, Mapping[str, str]]] = {}  # new key to a map from old value to new value
    removed: ClassVar[Mapping[str, str]] = {}  # key to what to do instead, or why it was removed

    @model_validator(mode="before")
    @classmethod
    def _translate_old_keys(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        translated: dict[str, Any] = {}
        for key, value in values.items():
            if key in cls.removed:
                raise ValueError(f"{key} was removed: {cls.removed[key]}")
            current = cls.current_key(key)
            if current in translated or (current != key and current in values):
                raise ValueError(f"{key} is the old name of {current}; keep only {current}")
            old_values = cls.renamed_values.get(current, {})
            if isinstance(value, str) and value in old_values:
                new = old_values[value]
                warn_once(f"{current}: {value} was renamed to {new}; the old value works until the next release")
                value = new
            translated[current] = value
        return translated

    @classmethod
    def current_key(cls, key: str) -> str:
        """The current name of ``key``; logs one line if ``key`` is an old name."""
        if key in cls.renamed:
            warn_once(f"{key}: renamed to {cls.renamed[key]}; the old name works until the next release")
        return cls.renamed.get(key, key)


@cache
def warn_once(message: str) -> None:
    """Log a warning the first time that this process sees the message."""
    log.warning(message)
