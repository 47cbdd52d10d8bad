"""Merges are held to a trainer that recounts every pair, and to the library's by size and overlap."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.trainers import WordPieceTrainer

from tokenizer.building.alphabet import choose_alphabet, single_pieces
from tokenizer.building.merges import join, learn_pieces, merges, split_unit

TEXT = st.text("가나다라", min_size=1, max_size=6)
UNITS = st.dictionaries(st.one_of(TEXT, TEXT.map("##{}".format)), st.integers(1, 5), max_size=10)


def learn(units: dict[str, int], size: int, alphabet: int, min_frequency: int) -> list[str]:
    """Pieces over the alphabet of the units themselves."""
    counts: Counter[str] = Counter()
    for unit, count in units.items():
        for character in unit.removeprefix("##"):
            counts[character] += count
    singles = single_pieces(choose_alphabet(counts, alphabet, size, jamo_fallback=False), jamo_fallback=False)
    return learn_pieces(units, size, singles=singles, min_frequency=min_frequency)


def slow_merges(units: dict[str, int], min_frequency: int) -> list[tuple[str, str]]:
    """Count all pairs again for every merge."""
    words = [(split_unit(unit), count) for unit, count in units.items()]
    done = []
    while True:
        counts: Counter[tuple[str, str]] = Counter()
        for word, count in words:
            for pair in pairwise(word):
                counts[pair] += count
        best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if best is None or counts[best] < min_frequency:
            return done
        done.append(best)
        for word, _ in words:
            position = 0
            while position < len(word) - 1:
                if (word[position], word[position + 1]) == best:
                    word[position : position + 2] = [join(*best)]
                position += 1


@given(UNITS, st.integers(1, 6))
def test_merges_equal_those_of_a_trainer_that_recounts_everything(units: dict[str, int], min_frequency: int) -> None:
    assert list(merges(units, min_frequency)) == slow_merges(units, min_frequency)


@given(UNITS, st.randoms(use_true_random=False))
def test_order_of_the_units_does_not_matter(units: dict[str, int], random) -> None:
    shuffled = list(units.items())
    random.shuffle(shuffled)

    assert list(merges(dict(shuffled), 1)) == list(merges(units, 1))


def test_repeated_characters_merge_from_the_left() -> None:
    assert list(merges({"ㅋㅋㅋㅋㅋ": 3}, 2)) == slow_merges({"ㅋㅋㅋㅋㅋ": 3}, 2)
    assert next(merges({"ㅋㅋㅋㅋㅋ": 3}, 2)) == ("##ㅋ", "##ㅋ")


def test_units_that_continue_a_word_give_pieces_that_do() -> None:
    pieces = learn({"##에서": 9, "서울": 4}, 100, 10, 2)

    assert pieces == ["서", "에", "울", "##서", "##에", "##울", "##에서", "서울"]


def test_learned_part_is_characters_then_continuations_then_merges() -> None:
    pieces = learn({"나무": 5, "나무꾼": 2, ".": 9, "漢": 1}, 100, 10, 2)

    assert pieces == [".", "漢", "꾼", "나", "무", "##꾼", "##나", "##무", "나무", "나무꾼"]


@pytest.mark.parametrize(("size", "learned"), [(4, 4), (5, 5), (20, 5)])
def test_size_is_reached_where_the_text_allows_and_never_exceeded(size: int, learned: int) -> None:
    units = {"나나나나": 5, "##나나": 3}  # 나, ##나, then ##나나, ##나나나, 나나나나

    assert len(learn(units, size, 10, 1)) == learned


def test_units_with_a_character_outside_the_alphabet_teach_nothing() -> None:
    pieces = learn({"가나": 5, "다라가나": 4}, 100, 2, 2)

    assert pieces == ["가", "나", "##가", "##나", "가나"]


def test_size_and_pieces_are_near_those_of_the_library_trainer() -> None:
    syllables = "가나다라마바사아자차카타파하거너더러머버"
    units = {a + b + c: 2 + (5 * i + 3 * j + k) % 17 for i, a in enumerate(syllables)
             for j, b in enumerate(syllables) for k, c in enumerate(syllables[:6])}  # fmt: skip
    library = Tokenizer(WordPiece(unk_token="[UNK]"))
    library.pre_tokenizer = WhitespaceSplit()
    trainer = WordPieceTrainer(vocab_size=600, min_frequency=2, special_tokens=[], show_progress=False)
    library.train_from_iterator(([unit] * count for unit, count in units.items()), trainer)

    theirs = set(library.get_vocab())
    ours = set(learn(units, len(theirs), 2_000, 2))

    assert len(ours) == len(theirs) == 600
    assert len(ours & theirs) / len(theirs) > 0.98
