"""What makes words [UNK], and every [UNK] that hides Hangul, in plain vocabularies and in those written in jamo."""

from __future__ import annotations

import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer
from tokenizers.normalizers import BertNormalizer

from corpus.documents.errors import BadInput
from tests.tokenizer.measuring.measured import measure_counts
from tokenizer.building.export import build_tokenizer
from tokenizer.measuring.unknown import kind_of_character

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "나", "##는", "책", "##을", ".", "읽", "##는다", "M", "##A"]


def test_unknown_words_are_counted_by_the_first_character_to_blame() -> None:
    text = "나뷁ㅋ ㅋ뷁 나\u110f 漢字 나M 나7 나📚 나Ж " + "나" + "는" * 100 + " 뷁 나는"

    statistics = measure_counts(build_tokenizer(VOCABULARY), Counter([*text.split(), "뷁"]).items())

    assert statistics.unknown_words == {
        "Hangul syllable": 3,
        "conjoining jamo": 1,
        "compatibility jamo": 1,
        "Han": 2,  # each a word of its own
        "Latin": 1,  # M is there, ##M is not
        "other letter": 1,
        "digit": 1,
        "symbol or emoji": 1,
        "too long a word": 1,
    }
    assert sum(statistics.unknown_words.values()) == statistics.unknown_tokens


@pytest.mark.parametrize(
    ("characters", "kind"),
    [
        ("가힣", "Hangul syllable"),
        ("\u1100\u1175\u11c2", "conjoining jamo"),
        ("ㄱㅣ", "compatibility jamo"),
        ("\u11ff\u119e\ua960\ud7b0ㆍ\uffa1", "old or half-width Hangul"),
        ("漢\uf900\U00020000", "Han"),
        ("aÉＡ", "Latin"),
        ("Жあ々", "other letter"),
        ("7７½Ⅲ", "digit"),
        ("!€😀\ufe0f\ue000", "symbol or emoji"),
        ("\u200b\x00\ufeff", "invisible"),
    ],
)
def test_kinds_of_characters(characters: str, kind: str) -> None:
    assert {kind_of_character(character) for character in characters} == {kind}


def portable(*pieces: str, apart: str = "") -> Tokenizer:
    """Pieces in NFD, all jamo among them, and symbols as separate words; rules that every BERT reader has."""
    jamo = list(map(chr, range(0x1100, 0x1200)))
    wanted = [unicodedata.normalize("NFD", piece) for piece in pieces]
    entries = dict.fromkeys([*VOCABULARY[:5], *jamo, *(f"##{letter}" for letter in jamo), *wanted, *apart])
    tokenizer = build_tokenizer(list(entries))
    tokenizer.model.max_input_chars_per_word = 100
    tokenizer.normalizer = BertNormalizer(strip_accents=True, lowercase=False)
    tokenizer.add_tokens([AddedToken(symbol, special=False, normalized=False) for symbol in apart])
    return tokenizer


def test_every_unknown_piece_in_place_of_hangul_is_counted() -> None:
    counts = [
        ("나는😀", 5),
        ("나는🫠", 3),
        ("😀🫠", 2),
        ("가" * 51, 7),
        ("뷁é", 11),
        ("안녕ㅋ", 13),
        ("ﾡ", 17),
        ("①까", 1),
    ]

    found = measure_counts(portable("나는", "e", "##e", apart="😀"), counts)

    assert found.unknown_hangul == 3 + 7 + 13 + 17 + 1  # 나는🫠, 102 jamo, 안녕ㅋ, half-width, ①까
    assert found.unknown_tokens == found.unknown_hangul + 2  # 🫠 after a symbol that is a separate word
    assert found.unknown_hangul_ratio == pytest.approx(found.unknown_hangul / found.tokens)
    assert found.unknown_words == {
        "compatibility jamo": 13,
        "old or half-width Hangul": 17,
        "digit": 1,
        "symbol or emoji": 5,
        "too long a word": 7,
    }


@given(st.text("나는가뷁ᄒᆞᆫㅋ漢éZ7.😀🫠①\u0301\u200bﾡ", min_size=1, max_size=12))
def test_unknown_pieces_over_hangul_are_those_a_plain_search_finds(text: str) -> None:
    tokenizer = portable("나는", "Z", "##e", "7", apart="😀")
    try:
        found = measure_counts(tokenizer, [(text, 1)])
    except BadInput:
        return  # nothing but control characters and accents
    encoding = tokenizer.encode(text, add_special_tokens=False)
    covered = [text[a:b] for token, (a, b) in zip(encoding.tokens, encoding.offsets, strict=True) if token == "[UNK]"]

    names = [" ".join(unicodedata.name(character, "") for character in part) for part in covered]
    assert found.unknown_hangul == sum("HANGUL" in name for name in names)
    assert sum(found.unknown_words.values()) == found.unknown_tokens == len(covered)


def test_what_stripping_leaves_of_a_character_is_not_to_blame() -> None:
    found = measure_counts(portable("e", "##e", "나"), [("éé나é🫠", 1), ("나Ж", 1)])

    assert found.unknown_words == {"other letter": 1, "symbol or emoji": 1}
