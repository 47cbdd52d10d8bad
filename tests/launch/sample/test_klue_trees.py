"""Dependency sentences are right-headed, projective trees over words whose morphemes spell them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from launch.sample.klue.conjugate import (
    ADNOMINAL,
    ADNOMINAL_FUTURE,
    AND,
    NOMINAL,
    PAST,
    PAST_BUT,
    THEN,
    Ending,
    conjugate,
)
from launch.sample.klue.dp import write_dp
from launch.sample.klue.tree import Node, copula, noun, parse, rows, verb
from launch.sample.world import make_world

Sentence = list[list[str]]
OFFICIAL_RELATIONS = {
    "NP", "NP_AJT", "VP", "NP_SBJ", "VP_MOD", "NP_OBJ", "AP", "NP_CNJ", "NP_MOD", "VNP", "DP", "VP_AJT", "VNP_MOD",
    "NP_CMP", "VP_CMP", "VP_SBJ", "VP_OBJ",
}  # fmt: skip
TAGS = {
    "NNG", "NNP", "NNB", "VV", "VA", "XSV", "XSA", "XSN", "MAG", "MMD", "MMN", "MMA", "JKS", "JKO", "JKG", "JKB", "JKC",
    "JX", "EP", "EF", "EC", "ETM", "ETN", "SF", "SN", "VCP",
}  # fmt: skip


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> list[Sentence]:
    out = tmp_path_factory.mktemp("dp")
    write_dp(make_world(1), 1, out, {"train": 400, "dev": 100})
    return read(out / "klue-dp-v1.1_train.tsv")


def read(path: Path) -> list[Sentence]:
    blocks = path.read_text("utf-8").rstrip("\n").split("\n\n")
    return [[line.split("\t") for line in block.split("\n") if not line.startswith("##")] for block in blocks]


def test_last_word_is_the_one_root_and_heads_stand_to_the_right(sentences: list[Sentence]) -> None:
    for sentence in sentences:
        heads = [int(row[4]) for row in sentence]
        assert [int(row[0]) for row in sentence] == list(range(1, len(sentence) + 1))
        assert heads[-1] == 0 and heads.count(0) == 1
        assert all(head > place for place, head in enumerate(heads[:-1], 1))


def test_trees_are_projective(sentences: list[Sentence]) -> None:
    for sentence in sentences:
        arcs = [(place, int(row[4])) for place, row in enumerate(sentence, 1) if row[4] != "0"]
        assert not any(a < c < b < d for a, b in arcs for c, d in arcs)


def test_relations_and_tags_are_those_of_the_benchmark(sentences: list[Sentence]) -> None:
    relations = Counter(row[5] for sentence in sentences for row in sentence)
    assert set(relations) <= OFFICIAL_RELATIONS and len(relations) >= 13, relations
    assert {tag for sentence in sentences for row in sentence for tag in row[3].split("+")} <= TAGS


def test_every_morpheme_has_a_tag_and_unchanged_ones_spell_the_word(sentences: list[Sentence]) -> None:
    for row in (row for sentence in sentences for row in sentence):
        morphemes, tags = row[2].split(" "), row[3].split("+")
        assert len(morphemes) == len(tags)
        if tags[-1].startswith("J"):
            assert "".join(morphemes) == row[1]
        assert row[1].startswith(morphemes[0][0]) or tags[0] in ("VA", "VV"), row


@pytest.mark.parametrize(
    ("stem", "ending", "written", "morphemes"),
    [
        ("맡", PAST, "맡았다.", ("았", "다", ".")),
        ("열", PAST, "열었다.", ("었", "다", ".")),
        ("발표하", PAST, "발표했다.", ("였", "다", ".")),
        ("시작되", PAST, "시작되었다.", ("었", "다", ".")),
        ("선보이", PAST, "선보였다.", ("었", "다", ".")),
        ("배우", PAST_BUT, "배웠지만", ("었", "지만")),
        ("태어나", PAST, "태어났다.", ("았", "다", ".")),
        ("내놓", THEN, "내놓아", ("아",)),
        ("위하", THEN, "위해", ("여",)),
        ("열", ADNOMINAL, "연", ("ㄴ",)),
        ("찾", ADNOMINAL, "찾은", ("은",)),
        ("그리", ADNOMINAL, "그린", ("ㄴ",)),
        ("만들", ADNOMINAL_FUTURE, "만들", ("ㄹ",)),
        ("찾", ADNOMINAL_FUTURE, "찾을", ("을",)),
        ("넓", AND, "넓고", ("고",)),
        ("돕", NOMINAL, "돕기", ("기",)),
    ],
)
def test_endings_join_stems_as_they_are_written(
    stem: str, ending: Ending, written: str, morphemes: tuple[str, ...]
) -> None:
    assert conjugate(stem, ending) == (written, morphemes)


def test_a_small_tree_becomes_rows() -> None:
    tree = verb("열/VV", PAST).under(
        noun("미술관/NNG", "은"), noun("전시회/NNG", "을").under(Node(parse("새/MMA"), "DP"))
    )
    assert [tuple(row) for row in rows(tree)] == [
        (1, "미술관은", "미술관 은", "NNG+JX", 4, "NP_SBJ"),
        (2, "새", "새", "MMA", 3, "DP"),
        (3, "전시회를", "전시회 를", "NNG+JKO", 4, "NP_OBJ"),
        (4, "열었다.", "열 었 다 .", "VV+EP+EF+SF", 0, "VP"),
    ]
    assert copula("화가/NNG", was=True).word.form == "화가였다."
