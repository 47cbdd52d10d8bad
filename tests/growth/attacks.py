"""Texts that make a careless pattern or loop slow: repeats of what nearly matches, of any length.

An attack on a pattern is taken from its parse tree: a random walk through it yields the strings it matches so far
(its prefixes) and, at each repeat, a prefix and the body that may follow any number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

parser: Any = re._parser  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Attack:
    """``front``, then ``unit`` again and again, a number put in for each ``{}``,
    then a character nothing expects."""

    unit: str
    front: str = ""

    def text(self, chars: int) -> str:
        """About ``chars`` characters of it."""
        if "{}" not in self.unit:
            return self.front + self.unit * (chars // len(self.unit)) + "\0"
        count = chars // (len(self.unit) + 6)
        return self.front + "".join(self.unit.replace("{}", f"{n:08}") for n in range(count)) + "\0"

    def __str__(self) -> str:
        return f"{self.front!r} + {self.unit!r} * n"


UNITS = (
    "1-", "1", "1 ", "1.", "1,", "1:", "a", "a ", "a.", "a-", "a_", "a1", "a@", "@", "@a", ".",
    "..", "-", "_", " ",
    "  ", "\n", " \n", "\t", "\n\n", "(", ")", "()", "[", "[[", "]", "{", "{{{", "}", "{\"", "|",
    "||", "|a", "<",
    "<a ", "<doc ", "</", "<!--", "<ref>", "\"", "'", "\\", "&", "&amp;", "=", "a=", "a=\"",
    "a=\"b\" ", "#", "#a",
    "*", "~~", "__", "''", "!", "?!", "가", "가 ", "가나다 ", "가.", "다. ", "다.\n", "ㅋ", "ㅋㅋ ", "전화 ",
    "전화: 010-",
    "010-1234-", "010-1234-5678 ", "900101-1234567,", "서울 강남구 ", "서울시 윤슬로 1", "윤슬동 1", "신한 110-", "http://",
    "http://a.b/", "www.a.", "a@b.c", "a@b.co ", "12가", "12가3456 ", "M1", "::", "a:b:", "ab-cd-", "0 ",
    "{\"a\":1},", "{\"a\": \"", "[br]", "~", "··", "「", "“", "”", "(가", "(가) ", "漢", "漢字(",
    "\u200b", "\ufeff가",
    "é", "\u0301", "[math(", "%EA", "1월 1일 ", "1억 ", "기자 ", "(서울=", "▶ ", "※ ", "입력 ", "日",
    "e.g. ", "Mr. ", "-\n",
    ",\n", "\r\n",
)  # fmt: skip
NUMBERED = (
    "010-{} ",
    "전화 {}\n",
    "a{}@example.com ",
    "@a{} ",
    "900101-1{}\n",
    "<a{}>",
    "{}가. ",
    "http://a{}.com ",
    "| {} |\n",
)
BRACES = '{"a":"},{'  # objects of an array that end inside a string
GENERIC = (*(Attack(unit) for unit in UNITS), *(Attack(unit) for unit in NUMBERED), Attack(BRACES))


def attacks_on(pattern: re.Pattern[Any], rng: Random, walks: int) -> list[Attack]:
    """Attacks taken from the parse tree of ``pattern``, each once, in the order they were met."""
    tree = parse(pattern)
    found: dict[Attack, None] = {}
    for _ in range(walks):
        walk = Walk(tree, rng)
        for prefix in walk.prefixes:
            found[Attack(prefix)] = None
        for prefix, body in walk.repeats:
            found |= {Attack(body): None, Attack(body, prefix): None, Attack(prefix + body * 8): None}
    return [attack for attack in found if attack.unit and "{}" not in attack.unit]


def parse(pattern: re.Pattern[Any]) -> Any:
    """The parse tree of a pattern."""
    is_bytes = isinstance(pattern.pattern, bytes)
    source = pattern.pattern.decode("latin-1") if is_bytes else pattern.pattern
    return parser.parse(source, pattern.flags & ~re.DEBUG & ~(re.UNICODE if is_bytes else 0))


class Walk:
    """One random way through a parse tree; ``prefixes`` are the texts that match so far, the last one to the end."""

    def __init__(self, tree: Any, rng: Random) -> None:
        self._rng = rng
        self._so_far = ""
        self._groups: dict[int, str] = {}
        self.prefixes: list[str] = []
        self.repeats: list[tuple[str, str]] = []
        self._read_all(tree)

    def _read_all(self, tree: Iterable[tuple[Any, Any]]) -> None:
        for kind, argument in tree:
            self._read(str(kind), argument)

    def _read(self, kind: str, argument: Any) -> None:
        if kind in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            self._so_far += _character(kind, argument, self._rng)
            self.prefixes.append(self._so_far)
        elif kind == "BRANCH":
            self._read_all(self._rng.choice(argument[1]))
        elif kind == "SUBPATTERN":
            start = len(self._so_far)
            self._read_all(argument[3])
            self._groups[argument[0]] = self._so_far[start:]
        elif kind == "ATOMIC_GROUP":
            self._read_all(argument)
        elif kind == "GROUPREF":
            self._so_far += self._groups.get(argument, "")
        elif kind == "GROUPREF_EXISTS":
            self._read_all(argument[1])
        elif kind.endswith("_REPEAT"):
            self._repeat(*argument)

    def _repeat(self, low: int, high: Any, body: Any) -> None:
        start = len(self._so_far)
        count = max(int(low), self._rng.randrange(3) if int(high) > int(low) else 0)
        if int(high) > 8:  # short ones do no harm
            self._read_all(body)
            self.repeats.append((self._so_far[:start], self._so_far[start:]))
            count -= 1
        for _ in range(min(count, 8)):
            self._read_all(body)


_CATEGORIES = {"DIGIT": "1", "SPACE": " ", "WORD": "a"}
_NOT_CATEGORIES = {"DIGIT": "a", "SPACE": "1", "WORD": "-"}
_CANDIDATES = "a1 가-.|<\"'\n(@=A:ㅋ漢"


def _character(kind: str, argument: Any, rng: Random) -> str:
    if kind == "LITERAL":
        return chr(argument)
    if kind == "ANY":
        return rng.choice("a1 가")
    if kind == "NOT_LITERAL":
        return next(c for c in _CANDIDATES if ord(c) != argument)
    if str(argument[0][0]) == "NEGATE":
        return next((c for c in rng.sample(_CANDIDATES, len(_CANDIDATES)) if not _is_in(c, argument[1:])), "\x01")
    return _of_set(rng.choice(argument))


def _of_set(item: tuple[Any, Any]) -> str:
    kind, argument = str(item[0]), item[1]
    if kind == "LITERAL":
        return chr(argument)
    if kind == "RANGE":
        return chr(argument[0])
    name = str(argument).removeprefix("CATEGORY_").removeprefix("UNI_")
    return _NOT_CATEGORIES[name.removeprefix("NOT_")] if name.startswith("NOT_") else _CATEGORIES[name]


def _is_in(character: str, items: Iterable[tuple[Any, Any]]) -> bool:
    return any(_holds(character, str(kind), argument) for kind, argument in items)


def _holds(character: str, kind: str, argument: Any) -> bool:
    if kind == "LITERAL":
        return ord(character) == argument
    if kind == "RANGE":
        return bool(argument[0] <= ord(character) <= argument[1])
    name = str(argument).removeprefix("CATEGORY_").removeprefix("UNI_")
    is_of = {"DIGIT": str.isdigit, "SPACE": str.isspace, "WORD": lambda c: c.isalnum() or c == "_"}[
        name.removeprefix("NOT_")
    ]
    return is_of(character) != name.startswith("NOT_")


def pick(attacks: Iterable[Attack], rng: Random, count: int | None) -> Iterator[Attack]:
    """``count`` of them at random, all if None."""
    chosen = list(attacks)
    yield from chosen if count is None or count >= len(chosen) else rng.sample(chosen, count)
