"""New pieces for an old vocabulary, held to a slow encoder that knows nothing of arrays."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenizer.building.new_pieces import NewPiece, Vocabulary, choose_pieces

UNKNOWN = "[UNK]"
CHARACTERS = "가나다라"
CLOSED = [UNKNOWN, *CHARACTERS, *(f"##{character}" for character in CHARACTERS)]
MORPHEMES = st.lists(st.text(CHARACTERS, min_size=1, max_size=4), min_size=1, max_size=3)
TEXTS = st.dictionaries(MORPHEMES.map(" ".join), st.integers(1, 30), min_size=1, max_size=12)
LONGER = st.sets(st.tuples(st.sampled_from(["", "##"]), st.text(CHARACTERS, min_size=2, max_size=3)), max_size=6)


def greedy(entries: Sequence[str], word: str) -> list[str]:
    """WordPiece as BERT's paper describes it."""
    found: list[str] = []
    while rest := word[sum(len(piece.removeprefix("##")) for piece in found) :]:
        fitting = (("##" if found else "") + rest[:length] for length in range(len(rest), 0, -1))
        piece = next((piece for piece in fitting if piece in entries), None)
        if piece is None:
            return [UNKNOWN]
        found.append(piece)
    return found


def choose(entries: Sequence[str], words: dict[str, int], size: int = 5) -> list[NewPiece]:
    return choose_pieces(Vocabulary(entries, UNKNOWN), words, size)


@settings(max_examples=40)
@given(TEXTS, LONGER, st.integers(1, 6))
def test_savings_uses_and_old_pieces_are_those_of_a_slow_encoder(
    words: dict[str, int], longer: set[tuple[str, str]], size: int
) -> None:
    old = [*CLOSED, *sorted(prefix + text for prefix, text in longer)]
    chosen = choose(old, words, size)
    new = [*old, *(piece.piece for piece in chosen)]
    plain = [(word.replace(" ", ""), count) for word, count in words.items()]
    assert len(chosen) <= size and len(set(new)) == len(new)
    before, after = (sum(len(greedy(entries, word)) * count for word, count in plain) for entries in (old, new))
    assert sum(piece.saved for piece in chosen) == before - after
    for piece in chosen:
        text = piece.piece.removeprefix("##")
        begin = 1 if piece.piece.startswith("##") else 0  # after a character that no piece holds
        cut = greedy([*old, "한"], "한" * begin + text)[begin:]
        assert [old[id_] for id_ in piece.of] == cut
        assert piece.uses == sum(greedy(new, word).count(piece.piece) * count for word, count in plain)


@settings(max_examples=40)
@given(TEXTS, st.text(CHARACTERS, min_size=1, max_size=9))
def test_words_that_take_no_new_piece_are_encoded_as_before(words: dict[str, int], word: str) -> None:
    pieces = [piece.piece for piece in choose(CLOSED, words)]
    after = greedy([*CLOSED, *pieces], word)
    assert set(after) & set(pieces) or after == greedy(CLOSED, word)


def test_pieces_stay_inside_morphemes_and_the_most_saving_come_first() -> None:
    words = {"가나다 라": 10, "나 라": 90, "가다": 30}
    assert [(piece.piece, piece.uses, piece.saved) for piece in choose(CLOSED, words)] == [
        ("가다", 30, 30),
        ("가나다", 10, 20),
    ]
    assert [piece.piece for piece in choose(CLOSED, words, 1)] == ["가다"]


def test_a_piece_that_mostly_crosses_morphemes_is_left_out() -> None:
    words = {"가나": 9, "가 나": 10, "다 가나": 9}
    assert [piece.piece for piece in choose(CLOSED, words)] == ["##가나"]


def test_a_piece_that_makes_known_words_unknown_is_left_out() -> None:
    old = [UNKNOWN, "가", "##나", "##나다"]
    assert [piece.piece for piece in choose(old, {"가나": 50})] == ["가나"]
    assert not choose(old, {"가나": 50, "가나다": 1})


def test_rare_and_unknown_words_teach_nothing() -> None:
    assert not choose(CLOSED, {"가나": 4, "가나하": 90, "다": 90})


@pytest.mark.parametrize("size", [1, 3])
def test_equal_counts_are_decided_alike_in_any_order(size: int) -> None:
    words = {"가나": 7, "나가": 7, "다라": 7, "라다": 7, "가 나다": 7}
    backwards = dict(reversed(words.items()))
    assert choose(CLOSED, words, size) == choose(CLOSED, backwards, size)
