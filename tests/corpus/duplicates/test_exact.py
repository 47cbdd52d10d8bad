"""What counts as equal, and from which length on."""

from __future__ import annotations

from corpus.duplicates.exact import MAY_REPEAT, fingerprint_documents


def test_sentences_are_equal_except_for_case_blanks_and_punctuation() -> None:
    texts = "서울에는 아침부터 비가 왔다, Seoul.", "서울에는 아침부터 비가왔다 SEOUL!"
    [one, two], sentences = fingerprint_documents([[text] for text in texts])
    assert one == two and sentences[0] == sentences[1] != MAY_REPEAT


def test_a_sentence_of_the_least_length_is_compared_and_one_character_less_may_repeat() -> None:
    _, sentences = fingerprint_documents([["이 문장은 스무 글자로 된 문장이다.", "이 문장은 열아홉 글자의 문장이다."]])
    assert [found == MAY_REPEAT for found in sentences] == [False, True]
