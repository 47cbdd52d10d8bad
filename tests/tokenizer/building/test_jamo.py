"""Hangul is never [UNK] in the hardened form, and nothing else changes: every syllable, every jamo, the known traps."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Encoding, Tokenizer

from tokenizer.building.export import ROLES, build_tokenizer, read_vocabulary
from tokenizer.building.jamo import (
    ALWAYS_KNOWN,
    COMPATIBILITY,
    CONJOINING,
    ISOLATED,
    SYLLABLES,
    hardened_normalizer,
    unwritable,
)

KNOWN = "가나는한국은학교에다갔연구자이의"
WORDS = ("한국", "학교", "##에서", "연구자", "##이다", "##ㅋㅋ", "ㅋㅋㅋ", "abc")


def both(characters: Iterable[str]) -> list[str]:
    return [piece for char in characters for piece in (char, f"##{char}")]


VOCABULARY = [*ROLES.values(), *both(tuple(dict.fromkeys((*ALWAYS_KNOWN, *KNOWN)))), *WORDS]
PLAIN = build_tokenizer(VOCABULARY)
HARDENED = build_tokenizer(VOCABULARY, hardened=True)


def pieces(text: str, tokenizer: Tokenizer = HARDENED) -> list[str]:
    return tokenizer.encode(text, add_special_tokens=False).tokens


def joined(encoding: Encoding) -> str:
    return unicodedata.normalize("NFC", "".join(token.removeprefix("##") for token in encoding.tokens))


def test_every_jamo_becomes_the_letter_of_its_name() -> None:
    assert (len(CONJOINING), len(COMPATIBILITY), len(ALWAYS_KNOWN)) == (67, 51, 67 + 51 + 94)
    assert set(CONJOINING) == set("".join(unicodedata.normalize("NFD", char) for char in SYLLABLES))
    assert set(ISOLATED) == {*CONJOINING, "ᄚ", "ᄡ"}  # old leads, but what NFKC makes of ㅀ and ㅄ
    assert set(ISOLATED.values()) == set(COMPATIBILITY)
    for jamo, letter in ISOLATED.items():
        assert unicodedata.name(jamo).split()[-1] == unicodedata.name(letter).split()[-1]


@pytest.mark.parametrize("pattern", ["{}", "{}나", "한{}", "한{}국"], ids=["alone", "first", "last", "inside"])
def test_every_syllable_encodes_with_its_own_offsets(pattern: str) -> None:
    words = [pattern.format(char) for char in SYLLABLES]
    for word, encoding in zip(words, HARDENED.encode_batch(words, add_special_tokens=False), strict=True):
        assert "[UNK]" not in encoding.tokens, word
        assert joined(encoding) == word
        covered = {position for start, end in encoding.offsets for position in range(start, end)}
        assert covered == set(range(len(word)))
        # pieces of one syllable share its span, pieces of two lie side by side
        assert all(left == right or left[1] == right[0] for left, right in pairwise(encoding.offsets)), word


def test_a_rare_syllable_keeps_its_place() -> None:
    encoding = HARDENED.encode("한국의 뷁은", add_special_tokens=False)

    assert encoding.tokens == ["한국", "##의", "ᄇ", "##ᅰ", "##ᆰ", "##은"]
    assert encoding.offsets == [(0, 2), (2, 3), (4, 5), (4, 5), (4, 5), (5, 6)]


def test_text_in_nfd_gets_the_pieces_of_nfc() -> None:
    words = ["한국의 뷁은", "학교에서 ㅋㅋ", *("한" + char for char in SYLLABLES)]
    for text in words:
        assert pieces(unicodedata.normalize("NFD", text)) == pieces(text), text
    offsets = HARDENED.encode(unicodedata.normalize("NFD", "한국 나"), add_special_tokens=False).offsets
    assert offsets == [(0, 4), (7, 8)]  # 국 is 3 to 6, 나 7 to 9: only a syllable's first jamo is covered


@pytest.mark.parametrize("pattern", ["{}", "{}나", "한{}"], ids=["alone", "first", "last"])
def test_jamo_outside_syllables_become_letters(pattern: str) -> None:
    for jamo in CONJOINING:
        text = pattern.format(jamo)
        if unicodedata.is_normalized("NFC", text):  # 나 after a lead stays; a tail after 하 would join it
            assert pieces(text) == pieces(pattern.format(ISOLATED[jamo])), text
            assert "[UNK]" not in pieces(text)
    for letter in COMPATIBILITY:
        assert "".join(pieces(pattern.format(letter))).replace("##", "") == pattern.format(letter)


@pytest.mark.parametrize(
    ("text", "expected", "offsets"),
    [
        ("ᄏᄏᄏ", ["ㅋㅋㅋ"], [(0, 3)]),  # leads in a row are one cluster
        ("가ᄏᄏ", ["가", "##ㅋㅋ"], [(0, 1), (1, 3)]),
        ("ᄏ가", ["ㅋ", "##가"], [(0, 1), (1, 2)]),  # a lead and a syllable, too
        ("간\u11ab", ["ᄀ", "##ᅡ", "##ᆫ", "##ㄴ"], [(0, 1), (0, 1), (0, 1), (1, 2)]),
        ("뷁\u0301", ["ᄇ", "##ᅰ", "##ᆰ"], [(0, 1), (1, 2), (1, 2)]),  # the mark is lost, its place is not
        ("가\u0301", ["[UNK]"], [(0, 2)]),  # a known syllable is not rewritten, so its mark stays
        ("뷁\ufe0f나", ["[UNK]"], [(0, 3)]),
        ("뷁\u200d나", ["ᄇ", "##ᅰ", "##ᆰ", "##나"], [(0, 1), (0, 1), (0, 1), (2, 3)]),  # BERT drops the joiner
        ("뷁\x00뷁", ["ᄇ", "##ᅰ", "##ᆰ", "##ᄇ", "##ᅰ", "##ᆰ"], [(0, 1)] * 3 + [(2, 3)] * 3),
        ("뷁\u3000뷁", ["ᄇ", "##ᅰ", "##ᆰ", "ᄇ", "##ᅰ", "##ᆰ"], [(0, 1)] * 3 + [(2, 3)] * 3),
        ("[MASK]뷁", ["[MASK]", "ᄇ", "##ᅰ", "##ᆰ"], [(0, 6)] + [(6, 7)] * 3),
    ],
)
def test_traps(text: str, expected: list[str], offsets: list[tuple[int, int]]) -> None:
    encoding = HARDENED.encode(text, add_special_tokens=False)

    assert (encoding.tokens, encoding.offsets) == (expected, offsets)


HANGUL = st.sampled_from([*SYLLABLES, *COMPATIBILITY, *CONJOINING, *KNOWN * 100, *" \n.!?" * 300])


@given(st.text(HANGUL, max_size=90))
@example("뷁" * 100)  # 300 jamo, three times the length at which BERT gives up
@example("가" * 101)
def test_hangul_is_never_unknown(text: str) -> None:
    assert "[UNK]" not in pieces(text)


@given(st.text(st.sampled_from(KNOWN * 4 + "ㅋㅎabcAZ019 .,!?()漢"), max_size=90))
def test_words_of_known_characters_encode_as_in_the_plain_form(text: str) -> None:
    assert HARDENED.encode(text).ids == PLAIN.encode(text).ids
    assert HARDENED.encode(text).offsets == PLAIN.encode(text).offsets


def slow_pieces(word: str) -> list[str]:
    """WordPiece by its definition: the longest entry, again and again; one failure spoils the word."""
    found: list[str] = []
    rest = word
    while rest:
        entries = [entry for entry in VOCABULARY if rest.startswith(entry.removeprefix("##"))]
        fitting = [entry for entry in entries if entry.startswith("##") == bool(found) and entry != "##"]
        if not fitting:
            return ["[UNK]"]
        found.append(max(fitting, key=len))
        rest = rest[len(found[-1].removeprefix("##")) :]
    return found


@given(st.text(st.sampled_from("한국학교에서연구자이다ㅋㅎ뷁갉abcdQЖ"), min_size=1, max_size=12))
def test_a_slow_matcher_finds_the_same_pieces(word: str) -> None:
    rewritten = "".join(char if char in VOCABULARY else unicodedata.normalize("NFD", char) for char in word)

    assert pieces(word, PLAIN) == slow_pieces(word)
    assert pieces(word) == slow_pieces(rewritten)


def test_a_syllable_needs_both_its_pieces() -> None:
    """With 값 only as the start of a word, 한값 would be [UNK]."""
    vocabulary = [*VOCABULARY, "값", "##힣"]
    tokenizer = build_tokenizer(vocabulary, hardened=True)

    assert [pieces(text, tokenizer) for text in ("값", "한값", "힣")] == [
        ["ᄀ", "##ᅡ", "##ᆹ"], ["한", "##ᄀ", "##ᅡ", "##ᆹ"], ["ᄒ", "##ᅵ", "##ᇂ"],
    ]  # fmt: skip
    assert pieces("값", build_tokenizer([*vocabulary, "##값"], hardened=True)) == ["값"]


def test_without_jamo_pieces_only_letters_are_rewritten() -> None:
    vocabulary = [*ROLES.values(), *both("가나ㅋ"), "ㅎ"]
    normalize = hardened_normalizer(vocabulary).normalize_str

    assert normalize("가뷁ᄏᄏ나 \u11bf \u119e") == "가뷁ㅋㅋ나 ㅋ \u119e"  # the last is old Hangul
    assert normalize("ᄒ ᄂ") == "ㅎ ᄂ"  # ㄴ has no piece, so nothing is gained
    assert hardened_normalizer([*vocabulary, "ᄒ", "##ᄒ"]).normalize_str("ᄒ") == "ᄒ"  # ㅎ would know less
    assert len(unwritable(vocabulary)) == 67 + 51 + 11_172 - len(["가", "나", "ㅋ", "ᄏ", "ᆿ"])


def test_nothing_is_unwritable_with_the_characters_always_known() -> None:
    assert unwritable(both(ALWAYS_KNOWN)) == []
    assert unwritable([piece for piece in both(ALWAYS_KNOWN) if piece != "##ᆾ"])[:2] == ["갗", "갳"]


def test_the_order_of_the_vocabulary_changes_no_rule() -> None:
    first = build_tokenizer(VOCABULARY, hardened=True).normalizer.__getstate__()

    assert hardened_normalizer(set(VOCABULARY)).__getstate__() == first
    assert hardened_normalizer(VOCABULARY[::-1]).__getstate__() == first


def test_saved_rules_are_the_same_rules(tmp_path: Path) -> None:
    HARDENED.save(str(tmp_path / "tokenizer.json"))
    again = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))

    text = "한국의 뷁은 ᄏᄏ " + "".join(SYLLABLES[::7])
    assert again.encode(text).ids == HARDENED.encode(text).ids
    assert again.to_str() == HARDENED.to_str()


def test_klue_vocabulary_loses_most_unknown_tokens_of_ner(shared: Callable[[str], Path]) -> None:
    """NFKC wrote ㅋㅋ as ᄏᄏ in KLUE-NER; letters bring its dev set from 669 [UNK] to 279 with KLUE's own pieces."""
    vocabulary = read_vocabulary(shared("data/klue/vocab/klue-bert-base-vocab.txt"))
    file = shared("data/klue/official/klue-ner-v1.1/klue-ner-v1.1_dev.tsv.zst")
    text = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(io.BytesIO(file.read_bytes())), "utf-8").read()
    blocks = [[line.split("\t")[0] for line in block.splitlines() if line[:2] != "##"] for block in text.split("\n\n")]
    sentences = ["".join(block) for block in blocks if block]
    plain, hardened = build_tokenizer(vocabulary), build_tokenizer(vocabulary, hardened=True)
    before, after = plain.encode_batch(sentences), hardened.encode_batch(sentences)

    assert len(sentences) == 5_000
    assert sum(encoding.tokens.count("[UNK]") for encoding in before) == 669
    assert sum(encoding.tokens.count("[UNK]") for encoding in after) == 279
    for old, new in zip(before, after, strict=True):
        if "[UNK]" not in old.tokens:
            assert (old.ids, old.offsets) == (new.ids, new.offsets)
