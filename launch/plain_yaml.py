"""YAML for recipes: any bytes give a value or a one-sentence error.

PyYAML's safe loader runs no code, but it expands aliases (nine lines can become a billion values), silently keeps the
last of two equal keys, reads ``2024-01-01`` as a date, and recurses until Python's stack overflows. Here aliases, equal
keys and deep nesting are errors, and dates are text.
"""

from __future__ import annotations

from typing import Any

import yaml
from yaml.composer import ComposerError

MAX_DEPTH = 20
DATE_TAG = "tag:yaml.org,2002:timestamp"


class NotPlain(ValueError):
    """The text is not YAML, or uses a refused feature; the message is one line."""


class _PlainLoader(yaml.SafeLoader):
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            self._refuse("aliases (*name) are not supported; write the value")
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
                    raise ComposerError(None, None, f"duplicate key {key.value}", key.start_mark)
                seen.add(key.value)
        return node

    def _refuse(self, problem: str) -> None:
        raise ComposerError(None, None, problem, self.peek_event().start_mark)


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag != DATE_TAG]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_yaml(text: str | bytes) -> Any:
    """The value of a YAML document; ``NotPlain`` for broken YAML, aliases, equal keys, deep nesting, huge numbers."""
    try:
        return yaml.load(text if isinstance(text, str) else text.decode("utf-8-sig"), _PlainLoader)
    except UnicodeDecodeError as error:
        raise NotPlain(f"byte {error.start} is not UTF-8; convert the file to UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise NotPlain(" ".join(f"{where}{error.problem or error}".split())) from None
    except (yaml.YAMLError, ValueError) as error:  # invalid characters; more digits than int() accepts
        raise NotPlain(" ".join(str(error).split()).partition(";")[0]) from None
