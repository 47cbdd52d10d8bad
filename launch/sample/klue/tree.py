"""Dependency trees whose heads are known because we build them: words with morphemes, written out as CoNLL-like rows.

A node's children all stand before it, so every tree is right-headed and projective with one root, as the gold trees of
KLUE-DP are. Labels and tags are those of the benchmark (KLUE 3.6; Sejong part-of-speech tags).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from launch.sample.josa import attach
from launch.sample.klue.conjugate import Ending, conjugate, has_final

# particle: its tag, and the relation that a noun phrase with it has to its head
PARTICLES = {
    "이": ("JKS", "NP_SBJ"),
    "은": ("JX", "NP_SBJ"),
    "도": ("JX", "NP_SBJ"),
    "을": ("JKO", "NP_OBJ"),
    "의": ("JKG", "NP_MOD"),
    "에": ("JKB", "NP_AJT"),
    "에서": ("JKB", "NP_AJT"),
    "에게": ("JKB", "NP_AJT"),
    "으로": ("JKB", "NP_AJT"),
    "와": ("JC", "NP_CNJ"),
    "이:JKC": ("JKC", "NP_CMP"),  # of 되다 (become)
    "부터": ("JX", "NP_AJT"),
    "까지": ("JX", "NP_AJT"),
}


class Word(NamedTuple):
    """One eojeol: its written form, its morphemes in dictionary form, and their tags."""

    form: str
    morphemes: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A word, its relation to its head, and the subtrees that depend on it, in order, all before it."""

    word: Word
    label: str
    children: tuple[Node, ...] = field(default=())

    def under(self, *children: Node) -> Node:
        """The same node with ``children`` put before those it has."""
        return replace(self, children=(*children, *self.children))


class Row(NamedTuple):
    """One line of a KLUE-DP file; ``place`` counts from 1, ``head`` is 0 for the root."""

    place: int
    form: str
    lemma: str
    pos: str
    head: int
    label: str


def parse(spec: str) -> Word:
    """``"관람객/NNG+들/XSN"`` to a word; ``"큰=크/VA+ㄴ/ETM"`` where the written form is not the sum of its parts."""
    written, _, parts = spec.rpartition("=")
    pairs = [part.rsplit("/", 1) for part in parts.split("+")]
    morphemes = tuple(morpheme for morpheme, _ in pairs)
    return Word(written or "".join(morphemes), morphemes, tuple(tag for _, tag in pairs))


def noun(spec: str, particle: str = "", label: str = "") -> Node:
    """A noun with its particle in the right form; without one it modifies the next noun (NP)."""
    word = parse(spec)
    if not particle:
        return Node(word, label or "NP")
    tag, relation = PARTICLES[particle]
    form = attach(word.form, particle.split(":")[0])
    written = form.removeprefix(word.form)
    return Node(Word(form, (*word.morphemes, written), (*word.tags, tag)), label or relation)


def verb(spec: str, ending: Ending, label: str = "VP") -> Node:
    """A verb or adjective with an ending."""
    word = parse(spec)
    form, morphemes = conjugate(word.form, ending)
    return Node(Word(form, (*word.morphemes, *morphemes), (*word.tags, *ending.tags)), label)


def copula(spec: str, was: bool) -> Node:
    """A noun with 이다 as the last word: ``"시인이다."``."""
    word = parse(spec)
    ending = ("었", "다", ".") if was else ("다", ".")
    tags = ("EP", "EF", "SF") if was else ("EF", "SF")
    past = "이었다." if has_final(word.form[-1]) else "였다."
    form = word.form + (past if was else "이다.")
    return Node(Word(form, (*word.morphemes, "이", *ending), (*word.tags, "VCP", *tags)), "VNP")


ADVERBIAL = {"MAG": "AP", "EC": "VP_AJT", "JX": "NP_AJT", "JKB": "NP_AJT", "NNG": "NP_AJT", "NNB": "NP_AJT"}


def adverbial(spec: str) -> Node:
    """A word that qualifies a verb; its relation follows from its last tag."""
    word = parse(spec)
    return Node(word, ADVERBIAL[word.tags[-1]])


def attribute(spec: str) -> Node:
    """A word that qualifies a noun: a determiner (DP), an adjective form (VP_MOD) or another noun (NP)."""
    word = parse(spec)
    last = word.tags[-1]
    return Node(word, "VP_MOD" if last == "ETM" else "DP" if last.startswith("MM") else "NP")


def rows(root: Node) -> list[Row]:
    """The tree in reading order."""
    nodes: list[Node] = []
    heads: list[int] = []

    def place(node: Node) -> int:
        children = [place(child) for child in node.children]
        nodes.append(node)
        heads.append(0)
        for child in children:
            heads[child] = len(nodes)
        return len(nodes) - 1

    place(root)
    return [
        Row(i, node.word.form, " ".join(node.word.morphemes), "+".join(node.word.tags), head, node.label)
        for i, (node, head) in enumerate(zip(nodes, heads, strict=True), 1)
    ]
