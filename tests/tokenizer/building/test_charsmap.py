"""Our table of replacements means to its two readers, tokenizers and sentencepiece, what it means to us."""

from __future__ import annotations

import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Precompiled
from tokenizers.pre_tokenizers import Split

from tokenizer.building.jamo import precompile

DECOMPOSED = {char: unicodedata.normalize("NFD", char) for char in map(chr, range(0xAC00, 0xD7A4))}
# no character that a cluster of fewer than six bytes could take in: those are replaced whole
CHARACTERS = st.characters(min_codepoint=1, categories=("Lo", "Lu", "Ll", "Nd", "Po", "So"), max_codepoint=0x1FAFF)


def test_every_syllable_is_taken_apart() -> None:
    normalizer = Precompiled(precompile(DECOMPOSED))

    assert {char: normalizer.normalize_str(char) for char in DECOMPOSED} == DECOMPOSED
    assert normalizer.normalize_str("".join(DECOMPOSED)) == "".join(DECOMPOSED.values())
    assert normalizer.normalize_str("abc ㄱ 漢 😀\x00\n") == "abc ㄱ 漢 😀\x00\n"


def test_sentencepiece_reads_the_same_table() -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    table = precompile(DECOMPOSED)
    size = bytes([len(table) & 127 | 128, len(table) >> 7 & 127 | 128, len(table) >> 14])
    # NormalizerSpec: field 2 the table; 3, 4 and 5 (dummy prefix, white space) off
    reader = sentencepiece.SentencePieceNormalizer(normalizer_spec=b"\x12" + size + table + b"\x18\0\x20\0\x28\0")

    assert dict(reader.Decompile()) == DECOMPOSED
    assert reader.Normalize("뷁 한국 abc") == unicodedata.normalize("NFD", "뷁 한국 abc")


@given(st.dictionaries(CHARACTERS, st.text(CHARACTERS, min_size=1, max_size=4), max_size=60), st.text(CHARACTERS))
def test_any_table_of_characters_replaces_what_translate_would(table: dict[str, str], rest: str) -> None:
    text = "".join(table) + rest

    assert Precompiled(precompile(table)).normalize_str(text) == text.translate(str.maketrans(table))


def test_offsets_lead_back_to_the_replaced_character() -> None:
    tokenizer = Tokenizer(WordLevel({"?": 0}, unk_token="?"))
    tokenizer.normalizer = Precompiled(precompile({"뷁": "abc", "힣": "xy"}))
    tokenizer.pre_tokenizer = Split("b", "isolated")

    assert tokenizer.encode("가뷁나힣").offsets == [(0, 2), (1, 2), (1, 4)]


def test_the_order_of_the_table_does_not_change_its_bytes() -> None:
    rows = list(DECOMPOSED.items())
    random.Random(1).shuffle(rows)

    assert precompile(dict(rows)) == precompile(DECOMPOSED)


def test_a_short_cluster_is_replaced_whole_and_a_long_one_by_character() -> None:
    normalizer = Precompiled(precompile({"뷁": "x"}))

    assert normalizer.normalize_str("뷁\u0301") == "x"  # five bytes; the limit that jamo.py tells of
    assert normalizer.normalize_str("뷁\u200d") == "x\u200d"  # six
    assert normalizer.normalize_str("a뷁\u0301\u0301") == "ax\u0301\u0301"


def test_a_key_of_several_characters_is_found_where_it_is_a_cluster() -> None:
    assert Precompiled(precompile({"e\u0301": "E"})).normalize_str("e\u0301 e a\u0301") == "E e a\u0301"


def test_an_empty_table_changes_nothing() -> None:
    assert Precompiled(precompile({})).normalize_str("가나 abc") == "가나 abc"


@pytest.mark.parametrize("table", [{"": "x"}, {"a\0": "x"}, {"a": "\0"}])
def test_what_the_format_cannot_hold_is_refused(table: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="NUL"):
        precompile(table)
