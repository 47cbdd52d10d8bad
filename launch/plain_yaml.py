"""YAML as far as a recipe needs it, so that any bytes under that name end in a value or in one sentence.

PyYAML's safe loader runs no code, but it expands aliases (nine lines can become a billion values), keeps the last of
two equal keys without a word, reads ``2024-01-01`` as a date, and follows nesting until Python's stack ends. A recipe
needs none of these, so aliases, equal keys and deep nesting are refused and dates are text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from yaml.composer import ComposerError

MAX_BYTES = 1 << 20  # of a recipe; the longest lists of file names have some 100 KB
MAX_DEPTH = 20
DATE_TAG = "tag:yaml.org,2002:timestamp"


class NotPlain(ValueError):
    """The text is not YAML, or not plain; the message is one line."""


class _PlainLoader(yaml.SafeLoader):
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            self._refuse("an alias (*name) stands here; write the value out")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self._refuse(f"values are nested more than {MAX_DEPTH} deep")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise ComposerError(None, None, f"the key {key.value} stands here twice", key.start_mark)
                seen.add(key.value)
        return node

    def _refuse(self, problem: str) -> None:
        raise ComposerError(None, None, problem, self.peek_event().start_mark)


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag != DATE_TAG]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_yaml(text: str) -> Any:
    """The value of a YAML document; ``NotPlain`` for broken YAML, an alias, equal keys, depth, an endless number."""
    try:
        return yaml.load(text, _PlainLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise NotPlain(f"{where}{_one_line(error.problem or error)}") from None
    except (yaml.YAMLError, ValueError) as error:  # characters that YAML has not; more digits than int() reads
        raise NotPlain(_one_line(error).partition(";")[0]) from None


def read_yaml(path: Path) -> Any:
    """The value of a YAML file; ``NotPlain`` as above, and for what is not UTF-8 or larger than ``MAX_BYTES``."""
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise NotPlain(f"more than {MAX_BYTES:,} bytes, no recipe is that long")
    try:
        return parse_yaml(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise NotPlain(f"byte {error.start} is not UTF-8; convert the file to UTF-8") from None


def _one_line(message: object) -> str:
    return " ".join(str(message).split())
