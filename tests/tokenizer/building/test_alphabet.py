"""With jamo_fallback Hangul is never [UNK] in any context: syllables, jamo, known traps."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Encoding, Tokenizer

from tokenizer.building.alphabet import (
    ALWAYS_KNOWN,
    ALWAYS_PIECES,
    COMMON,
    EMOJI,
    KS_X_1001,
    choose_alphabet,
    missing_pieces,
    single_pieces,
)
from tokenizer.building.export import ROLES, build_tokenizer
from tokenizer.words import MODERN_JAMO, OLD_JAMO, TYPED_JAMO, decompose

SYLLABLES = tuple(map(chr, range(0xAC00, 0xD7A4)))
WORDS = ("한국", "학교", "##에서", "연구자", "##이다", "##ㅋㅋ", "ㅋㅋㅋ", "abc")
VOCABULARY = [*ROLES.values(), *ALWAYS_PIECES, "漢", *map(decompose, WORDS)]
HARDENED = build_tokenizer(VOCABULARY, jamo_fallback=True)


def encode(text: str) -> Encoding:
    return HARDENED.encode(text, add_special_tokens=False)


def pieces(text: str, tokenizer: Tokenizer = HARDENED) -> list[str]:
    tokens = tokenizer.encode(text, add_special_tokens=False).tokens
    return [unicodedata.normalize("NFC", token) for token in tokens]


def joined(encoding: Encoding) -> str:
    return unicodedata.normalize("NFC", "".join(token.removeprefix("##") for token in encoding.tokens))


def is_hangul(character: str) -> bool:
    return "HANGUL" in unicodedata.name(character, "") and unicodedata.category(character) == "Lo"


def test_the_standard_has_2350_syllables() -> None:
    assert len(KS_X_1001) == len(set(KS_X_1001)) == 2_350
    assert (min(KS_X_1001), max(KS_X_1001)) == ("가", "힝") and list(KS_X_1001) == sorted(KS_X_1001)


def test_every_letter_of_hangul_is_a_piece() -> None:
    letters = {*filter(is_hangul, map(chr, range(0x110000)))} - {*SYLLABLES}

    assert {*MODERN_JAMO, *TYPED_JAMO, *OLD_JAMO} == letters
    assert set("".join(unicodedata.normalize("NFD", char) for char in SYLLABLES)) == set(MODERN_JAMO)
    assert {piece for letter in (*MODERN_JAMO, *TYPED_JAMO) for piece in (letter, f"##{letter}")} <= {*ALWAYS_PIECES}


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
    encoding = encode("한국의 뷁은")

    assert encoding.tokens[0] == unicodedata.normalize("NFD", "한국")
    assert encoding.tokens[3:] == ["ᄇ", "##ᅰ", "##ᆰ", "##ᄋ", "##ᅳ", "##ᆫ"]
    assert encoding.offsets == [(0, 2), (2, 3), (2, 3), (4, 5), (4, 5), (4, 5), (5, 6), (5, 6), (5, 6)]


def test_text_in_nfd_gets_the_pieces_of_nfc() -> None:
    for text in ["한국의 뷁은", "학교에서 ㅋㅋ", "café 한국", *("한" + char for char in SYLLABLES[::7])]:
        assert encode(unicodedata.normalize("NFD", text)).ids == encode(text).ids, text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("안녕😀", [*["ᄋ", "##ᅡ", "##ᆫ", "##ᄂ", "##ᅧ", "##ᆼ"], "😀"]),  # the emoji alone would be lost, not the greeting
        ("한국😀학교", ["한국", "😀", "학교"]),
        ("한국♥\ufe0f학교에서", ["한국", "♥", "학교", "##에서"]),
        ("한국☔학교", ["[UNK]"]),  # no piece, so nothing cuts it out
        ("1\ufe0f\u20e3한국", ["1", "\u20e3", "한국"]),
        ("ᄒᆞᆫ글", ["ᄒ", "ᆞ", "ᆫ", "##ᄀ", "##ᅳ", "##ᆯ"]),
        ("ﾡ한국", ["ﾡ", "한국"]),
        ("ㅋㅋㅋㅋㅋ", ["ㅋㅋㅋ", "##ㅋㅋ"]),
        ("ᄏᄏ", ["ᄏ", "##ᄏ"]),  # what NFKC makes of ㅋㅋ
        ("간\u11ab", ["ᄀ", "##ᅡ", "##ᆫ", "##ᆫ"]),
        ("Áábc", ["A", "##a", "##b", "##c"]),
        ("漢한국", ["漢", "한국"]),
        ("한국\u200d학교", ["한국", "##ᄒ", "##ᅡ", "##ᆨ", "##ᄀ", "##ᅭ"]),
        ("한국\u3000학교\x00", ["한국", "학교"]),
        ("[MASK]한국", ["[MASK]", "한국"]),
    ],
)
def test_traps(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


HANGUL = st.sampled_from(
    [*SYLLABLES, *MODERN_JAMO, *TYPED_JAMO, *OLD_JAMO, *EMOJI, *"한국은학교에서" * 100, *" \n.!?" * 400]
)


@given(st.lists(st.text(HANGUL, max_size=25), max_size=5))
@example(["뷁" * 33])
def test_hangul_is_never_unknown(words: list[str]) -> None:
    assert "[UNK]" not in pieces(" ".join(words))


def slow_pieces(word: str) -> list[str]:
    """WordPiece by its definition: the longest entry, again and again; one failure spoils the word."""
    found: list[str] = []
    rest = unicodedata.normalize("NFD", word)
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
    assert encode(word).tokens == slow_pieces(word)


def test_alphabet_keeps_the_most_frequent_and_ties_by_code_point() -> None:
    counts = {"라": 2, "나": 2, "다": 2, "마": 1, "가": 7}

    assert choose_alphabet(counts, 3, 100, jamo_fallback=False) == ["가", "나", "다"]


def test_alphabet_takes_at_most_half_of_a_small_vocabulary(caplog: pytest.LogCaptureFixture) -> None:
    assert choose_alphabet(dict.fromkeys("가나다라마바사", 3), 2_000, 12, jamo_fallback=False) == ["가", "나", "다"]
    assert "12 entries have room for 3 of the 7 most frequent characters" in caplog.text
    caplog.clear()
    choose_alphabet(dict.fromkeys("漢字語α", 3), 3, 100, jamo_fallback=True)  # what is always a piece does not count
    assert "100 entries have room for 0 of the 3 most frequent characters" in caplog.text


def test_characters_that_never_continue_a_word_take_one_entry() -> None:
    assert choose_alphabet(dict.fromkeys(".,!?漢字語", 3), 2_000, 12, jamo_fallback=False) == sorted(".,!?漢字語")[:6]
    assert single_pieces("漢a가", jamo_fallback=False) == ["a", "漢", "가", "##a", "##가"]


def test_the_jamo_fallback_alphabet_chooses_what_is_not_hangul() -> None:
    """Syllables are jamo there, and those are always known; accents are not encoded."""
    counts = {"한": 900, "é": 9, "漢": 5, "→": 4, "が": 4, "α": 3}
    chosen = choose_alphabet(counts, 3, 3_000, jamo_fallback=True)

    assert sorted({*chosen} - {*ALWAYS_KNOWN}) == ["→", "が", "漢"]
    assert {*single_pieces(chosen, jamo_fallback=True)} == {*ALWAYS_PIECES, "→", "が", "漢"}


@pytest.mark.parametrize("jamo_fallback", [False, True], ids=["plain", "jamo_fallback"])
def test_common_symbols_have_pieces_where_they_take_little_room(jamo_fallback: bool) -> None:
    small, large = (
        choose_alphabet({}, 1, size, jamo_fallback=jamo_fallback, complete=True) for size in (2_000, 32_000)
    )

    assert not set("㎢→①") & {*small} and {*COMMON} <= {*large}
    pieces = [*ROLES.values(), *single_pieces({*large, *"헣조카나가abcde"}, jamo_fallback=jamo_fallback)]
    tokenizer = build_tokenizer(pieces, jamo_fallback=jamo_fallback)
    for text in ("ab헣㉿cde", "⇨조카", "가₩나", "가→나", "①가", "가①", "ab㎢", "㎡㎏가", "℃"):
        assert "[UNK]" not in tokenizer.encode(text, add_special_tokens=False).tokens, text


def test_a_complete_plain_alphabet_has_the_frequent_syllables_first() -> None:
    counts = {chr(0x4E00 + n): 9_000 for n in range(5_000)} | dict.fromkeys(KS_X_1001, 2) | {"뷁": 3}
    by_frequency, complete = (
        choose_alphabet(counts, 500, 32_000, jamo_fallback=False, complete=c) for c in (False, True)
    )

    assert len(by_frequency) == 500 and not {*by_frequency} & {*SYLLABLES}
    assert len({*complete} & {*SYLLABLES}) == 2_285 and "뷁" in complete
    assert len({*complete} - {*SYLLABLES, *COMMON}) == 500
    assert {*KS_X_1001} <= {*choose_alphabet({"뷁": 1}, 1, 64_000, jamo_fallback=False, complete=True)}


@given(st.integers(0, 9_000), st.integers(0, 300), st.booleans())
def test_no_alphabet_takes_more_than_half_of_the_learned_entries(size: int, most: int, jamo_fallback: bool) -> None:
    counts = {character: 1_000 - n for n, character in enumerate(map(chr, range(0x4E00, 0x4E00 + 280)))}
    counts |= {character: n for n, character in enumerate("가각간갈", 700)}
    chosen = choose_alphabet(counts, most, size, jamo_fallback=jamo_fallback)
    room, taken = int(size / 2), len(single_pieces(chosen, jamo_fallback=jamo_fallback))
    new = sorted(set(chosen) & counts.keys(), key=counts.__getitem__, reverse=True)
    expected = [
        c for c in sorted(counts, key=counts.__getitem__, reverse=True) if not (jamo_fallback and c in "가각간갈")
    ]
    assert new == expected[: len(new)] and len(new) <= most
    assert taken <= room or not new
    if len(new) < min(most, len(expected)):
        following = single_pieces([expected[len(new)]], jamo_fallback=jamo_fallback)
        assert taken + len(following) > room


def test_characters_that_encoding_drops_are_no_pieces() -> None:
    assert choose_alphabet({"\x00": 9, "\u200b": 9, "\ufeff": 9, "가": 1}, 10, 100, jamo_fallback=False) == ["가"]


def test_a_missing_jamo_is_named() -> None:
    assert missing_pieces(VOCABULARY) == []
    assert missing_pieces([piece for piece in VOCABULARY if piece != "##ᆾ"]) == ["##ᆾ"]


def test_every_comment_keeps_its_hangul(shared: Callable[[str], Path]) -> None:
    with shared("data/corpora/news_comments.jsonl.zst").open("rb") as packed:
        lines = zstandard.ZstdDecompressor().stream_reader(packed).read(1 << 21).decode(errors="ignore").splitlines()
    texts = [json.loads(line)["text"] for line in lines[:-1]]
    letters = sum(map(is_hangul, "".join(texts)))
    lost = 0
    for text, encoding in zip(texts, HARDENED.encode_batch(texts, add_special_tokens=False), strict=True):
        spans = [span for token, span in zip(encoding.tokens, encoding.offsets, strict=True) if token == "[UNK]"]
        lost += sum(is_hangul(character) for start, end in spans for character in text[start:end])

    assert letters > 100_000
    assert lost < letters / 200  # symbols without a piece, and words of more than a hundred jamo
