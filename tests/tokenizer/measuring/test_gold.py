"""KLUE-DP files as gold: what is used, what is skipped, what is refused; the released vocabulary's figures."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard

from corpus.documents.errors import BadInput
from tokenizer.measuring.boundaries import CutEojeol, locate_pieces, read_gold, score_boundaries
from tokenizer.measuring.encoder import load_tokenizer, make_encoder
from tokenizer.words import bert_words, split_words

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
SMALL_GOLD = [
    CutEojeol("가을비가", 1, (2, 3), ()),
    CutEojeol('"책을', 1, (1, 2), (1,)),
    CutEojeol("책을", 2, (1,), ()),
    CutEojeol("또", 1, (), ()),
]


def write(folder: Path, content: str | bytes, name: str = "dp.tsv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_morphemes_that_join_to_the_eojeol_are_its_boundaries(tmp_path: Path) -> None:
    assert read_gold(write(tmp_path, SMALL)) == (SMALL_GOLD, 1)  # 그쳤다. is a contraction


def test_packing_line_ends_and_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    raw = SMALL.encode()
    frames = b"".join(map(zstandard.ZstdCompressor().compress, (raw[:100], raw[100:])))

    for content, name in (
        (frames, "dp.tsv.zst"),
        (SMALL.replace("\n", "\r\n"), "crlf.tsv"),
        ("\ufeff" + SMALL, "bom.tsv"),
        (SMALL.removesuffix("\n"), "end.tsv"),
    ):
        assert read_gold(write(tmp_path, content, name)) == (SMALL_GOLD, 1)


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ('{"text": "눈"}\n', "a.jsonl", r"line 1: not a word of a KLUE-DP file; expected six columns INDEX"),
        ("## h\nx\t눈\t눈\tNNG\t0\tNP\n", "dp.tsv", "line 2: not a word"),
        ("", "dp.tsv", "none of its 0 words"),
        ("1\t했다\t하 었 다\tVV+EP+EF\t0\tVP\n", "dp.tsv", "none of its 1 words is the sum of its morphemes"),
        (b"\xff\xfe1", "dp.tsv", "byte 0 is not UTF-8"),
        (b"plain", "dp.tsv.zst", r"not a readable zstd file"),
        (zstandard.ZstdCompressor().compress(SMALL.encode())[:-5], "dp.tsv.zst", "ends in the middle"),
        (zstandard.ZstdCompressor().compress(bytes(1 << 29)), "dp.tsv.zst", "more than 268,435,456 bytes"),
    ],
)
def test_other_files_are_refused_in_one_sentence(tmp_path: Path, content: str | bytes, name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read_gold(write(tmp_path, content, name))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"dp\.tsv: no such file"):
        read_gold(tmp_path / "dp.tsv")


def test_klue_vocabulary_against_people(shared: Callable[[str], Path]) -> None:
    """Figures of an independent measurement: F1 0.863, all kept 0.892, crossing 0.035, 18.0 % of 22,496 skipped."""
    gold, skipped = read_gold(shared(DEV))
    tokenizer = load_tokenizer(shared("data/klue/vocab/klue-bert-base-vocab.txt"))

    found = score_boundaries(make_encoder(tokenizer, [row.text for row in gold]).spans, gold, skipped)

    assert (found.eojeols, found.skipped) == (18_441, 4_055)
    assert (round(found.f1 or 0, 3), round(found.keeps_all or 0, 3)) == (0.863, 0.892)
    assert round(found.crossing or 0, 3) == 0.035


def test_mecab_alone_against_people(shared: Callable[[str], Path]) -> None:
    """The analyser without context reaches 0.928 in an independent measurement."""
    gold, _ = read_gold(shared(DEV))

    def cut(eojeol: str) -> list[tuple[int, int]]:
        morphemes = [part for word in split_words(bert_words(eojeol), "", "") for part in word]
        return list(pairwise((0, *locate_pieces(eojeol, morphemes), len(eojeol))))

    assert round(score_boundaries(lambda eojeols: [cut(e) for e in eojeols], gold).f1 or 0, 3) == 0.928
