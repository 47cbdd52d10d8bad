"""What counts as equal, and from which length on."""

from __future__ import annotations

from corpus.duplicates.exact import MAY_REPEAT, fingerprint_folded


def test_sentences_are_equal_but_for_case_blanks_and_punctuation() -> None:
    [one, two], sentences = fingerprint_folded([["비가 왔다, Seoul."], ["비가왔다 SEOUL!"]], min_chars=1)
    assert one == two and sentences[0] == sentences[1] != MAY_REPEAT


def test_a_sentence_of_the_least_length_is_compared_and_one_character_less_may_repeat() -> None:
    _, sentences = fingerprint_folded([["열 글자인 문장이다.", "아홉 글자 문장임."]], min_chars=11)
    assert [found == MAY_REPEAT for found in sentences] == [False, True]
