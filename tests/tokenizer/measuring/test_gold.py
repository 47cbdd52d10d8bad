"""Gold files, KLUE-DP and CoNLL-U: what is used, skipped and refused; the figures of the released vocabulary."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from corpus.documents.errors import BadInput
from tokenizer.measuring.boundaries import (
    BoundaryScores,
    CutEojeol,
    Cutter,
    count_boundaries,
    locate_pieces,
    score_boundaries,
)
from tokenizer.measuring.encoder import load_tokenizer, make_encoder
from tokenizer.measuring.gold import Gold, cut_at_pluses, read_gold
from tokenizer.measuring.samples import resample
from tokenizer.words import bert_words, split_words

KAIST = "data/gold/ud-korean-kaist-dev.conllu.zst"
DEV = "data/klue/official/klue-dp-v1.1/klue-dp-v1.1_dev.tsv.zst"
SMALL = """\
## 칼럼명 : INDEX\tWORD_FORM\tLEMMA\tPOS\tHEAD\tDEPREL
## dp_0\t가을비가 그쳤다.
1\t가을비가\t가을 비 가\tNNG+NNG+JKS\t2\tNP_SBJ
2\t그쳤다.\t그치 었 다 .\tVV+EP+EF+SF\t0\tVP

## dp_1\t"책을 책을 또
1\t"책을\t" 책 을\tSS+NNG+JKO\t3\tNP_OBJ
2\t책을\t책 을\tNNG+JKO\t3\tNP_OBJ
3\t책을\t책 을\tNNG+JKO\t4\tNP_OBJ
4\t또\t또\tMAG\t0\tAP
"""
SMALL_WORDS = [
    CutEojeol("가을비가", (2, 3), ()),
    CutEojeol("그쳤다.", None, (3,)),
    CutEojeol('"책을', (1, 2), (1,)),
    CutEojeol("책을", (1,), ()),
    CutEojeol("또", (), ()),
]
TREE = """\
# sent_id = 1
# text = 눈물을 3+4 + 했다.
1\t눈물을\t눈물+을\tNOUN\tncn+jco\t_\t2\tobj\t_\t_
2-3\t고향의집에\t_\t_\t_\t_\t_\t_\t_\t_
2\t고향의\t고향+의\tNOUN\tncn+jcm\t_\t3\tnmod\t_\t_
3\t집에\t집+에\tNOUN\tncn+jca\t_\t0\troot\t_\t_
3.1\t없는\t없+는\tADJ\tpaa+etm\t_\t_\t_\t_\t_
4\t3+4\t3+++4\tNUM\tnnc+sy+nnc\t_\t3\tdep\t_\t_
5\t+\t+\tSYM\tsy\t_\t3\tdep\t_\t_
6\t했다\t하+었+다\tVERB\tpvg+ep+ef\t_\t3\tdep\t_\tSpaceAfter=No
7\t.\t.\tPUNCT\tsf\t_\t3\tpunct\t_\t_

# sent_id = 2
1\t눈물을\t눈물+을\tNOUN\tncn+jco\t_\t0\troot\t_\t_
"""
TREE_WORDS = [
    CutEojeol("눈물을", (2,), ()),
    CutEojeol("고향의집에", (2, 3, 4), ()),
    CutEojeol("3+4", (1, 2), (1, 2)),
    CutEojeol("+", (), ()),
    CutEojeol("했다", None, ()),
    CutEojeol(".", (), ()),
]


def write(folder: Path, content: str | bytes, name: str = "dp.tsv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def counted(gold: Gold) -> list[list[int]]:
    """Counts of each word in each sentence."""
    rows = [[0] * len(gold.words) for _ in range(gold.sample.blocks)]
    for eojeol, block, times in zip(*gold.sample[:3], strict=True):
        rows[block][eojeol] = int(times)
    return rows


def test_morphemes_that_join_to_the_eojeol_are_its_boundaries(tmp_path: Path) -> None:
    gold = read_gold(write(tmp_path, SMALL))

    assert (gold.convention, gold.words) == ("KLUE-DP", SMALL_WORDS)  # 그쳤다. is a contraction
    assert counted(gold) == [[1, 1, 0, 0, 0], [0, 0, 1, 2, 1]]


def test_words_of_a_tree_bank_are_cut_at_the_pluses_of_their_lemmas(tmp_path: Path) -> None:
    gold = read_gold(write(tmp_path, TREE))

    assert (gold.convention, gold.words) == ("CoNLL-U", TREE_WORDS)
    assert counted(gold) == [[1, 1, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("content", [SMALL, TREE])
def test_packing_line_ends_and_byte_order_mark_change_nothing(tmp_path: Path, content: str) -> None:
    raw = content.encode()
    frames = b"".join(map(zstandard.ZstdCompressor().compress, (raw[:100], raw[100:])))
    words, rows = read_gold(write(tmp_path, content)).words, counted(read_gold(write(tmp_path, content)))

    for changed, name in (
        (frames, "dp.tsv.zst"),
        (content.replace("\n", "\r\n"), "crlf.tsv"),
        ("\ufeff" + content, "bom.tsv"),
        (content.removesuffix("\n"), "end.tsv"),
        (unicodedata.normalize("NFD", content), "nfd.tsv"),
    ):
        found = read_gold(write(tmp_path, changed, name))
        assert (found.words, counted(found)) == (words, rows)


@pytest.mark.parametrize(
    ("word", "lemma", "cuts"),
    [
        ("C++", "C++", ()),
        ("+를", "++를", (1,)),
        ("A+", "A++", (1,)),
        ("C++를", "C+++를", None),  # the separator could be any of three
        ("눈물", "눈물+", None),
        ("눈물을", "눈물++을", None),
        ("_", "_", ()),
        ("눈물", "_", None),
        ("눈물", "", None),
    ],
)
def test_a_plus_of_the_word_is_no_separator(word: str, lemma: str, cuts: tuple[int, ...] | None) -> None:
    assert cut_at_pluses(word, lemma) == cuts


@given(st.text("가+", min_size=1, max_size=6), st.text("가+", max_size=9))
def test_pluses_are_separators_where_only_one_choice_of_them_leaves_the_word(word: str, lemma: str) -> None:
    pluses = [place for place, character in enumerate(lemma) if character == "+"]
    ways = set()
    for separators in (chosen for size in range(len(pluses) + 1) for chosen in combinations(pluses, size)):
        parts = [lemma[a + 1 : b] for a, b in pairwise((-1, *separators, len(lemma)))]
        if "".join(parts) == word and all(parts):
            ways.add(tuple(sum(map(len, parts[:number])) for number in range(1, len(parts))))

    assert cut_at_pluses(word, lemma) == (ways.pop() if len(ways) == 1 else None)


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ('{"text": "눈"}\n', "a.jsonl", r"line 1: not a word of a gold file; expected KLUE-DP .* or CoNLL-U"),
        (TREE + SMALL, "both.tsv", "line 17: not a word of a CoNLL-U file"),
        (TREE.replace("3.1\t", "x.1\t"), "tree.conllu", "line 7: not a word of a CoNLL-U file"),
        ("## h\nx\t눈\t눈\tNNG\t0\tNP\n", "dp.tsv", "line 2: not a word"),
        ("", "dp.tsv", "none of its 0 words"),
        ("1\t했다\t하 었 다\tVV+EP+EF\t0\tVP\n", "dp.tsv", "none of its 1 words equals its joined morphemes"),
        (b"\xff\xfe1", "dp.tsv", "byte 0 is not UTF-8"),
        (b"plain", "dp.tsv.zst", r"not a readable zstd file"),
        (zstandard.ZstdCompressor().compress(SMALL.encode())[:-5], "dp.tsv.zst", "ends in the middle"),
        (zstandard.ZstdCompressor().compress(bytes(1 << 29)), "dp.tsv.zst", "268,435,456 bytes"),
    ],
)
def test_other_files_are_refused_in_one_sentence(tmp_path: Path, content: str | bytes, name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read_gold(write(tmp_path, content, name))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"dp\.tsv: no such file"):
        read_gold(tmp_path / "dp.tsv")


def score(gold: Gold, cutter: Cutter) -> BoundaryScores:
    sums = gold.sample.sums(count_boundaries(cutter, gold.words))
    return score_boundaries(sums.sum(axis=0), resample(sums))


def test_klue_vocabulary_against_people(shared: Callable[[str], Path]) -> None:
    """Figures of an independent measurement: F1 0.863, all kept 0.892, crossing 0.035, 18.0 % of 22,496 skipped."""
    gold = read_gold(shared(DEV))
    tokenizer = load_tokenizer(shared("data/klue/vocab/klue-bert-base-vocab.txt"))

    found = score(gold, make_encoder(tokenizer, [row.text for row in gold.words]).spans)

    assert (found.eojeols, found.skipped, gold.sample.blocks) == (18_441, 4_055, 2_000)
    assert (round(found.f1 or 0, 3), round(found.keeps_all or 0, 3)) == (0.863, 0.892)
    assert round(found.crossing or 0, 3) == 0.035
    low, high = found.intervals["f1"]
    assert 0.855 < low < 0.863 < high < 0.871


def test_kaist_is_read_as_an_obvious_reader_would(shared: Callable[[str], Path]) -> None:
    gold = read_gold(shared(KAIST))
    text = zstandard.decompress(shared(KAIST).read_bytes()).decode()
    rows = [line.split("\t") for line in text.split("\n") if line[:1].isdigit()]
    joined = [row for row in rows if row[2].replace("+", "") == row[1]]

    found = score(gold, lambda words: [[(0, len(word))] for word in words])

    assert (gold.convention, gold.sample.blocks) == ("CoNLL-U", text.count("# sent_id"))
    assert (found.eojeols, found.skipped) == (len(joined), len(rows) - len(joined)) == (20_691, 4_587)
    assert found.boundaries == sum(row[2].count("+") for row in joined)  # no word holds a plus
    assert "+" not in "".join(row[1] for row in rows)


def test_mecab_alone_against_people(shared: Callable[[str], Path]) -> None:
    """The analyser without context reaches 0.928 in an independent measurement."""

    def cut(eojeol: str) -> list[tuple[int, int]]:
        morphemes = [part for word in split_words(bert_words(eojeol), "", "") for part in word]
        return list(pairwise((0, *locate_pieces(eojeol, morphemes), len(eojeol))))

    found = score(read_gold(shared(DEV)), lambda eojeols: [cut(eojeol) for eojeol in eojeols])

    assert round(found.f1 or 0, 3) == 0.928
