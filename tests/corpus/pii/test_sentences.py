"""Personal data in the sentences of a document: labels reach over sentence ends, values do not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corpus.pii.detect import Span, find_pii, find_pii_in_sentences


def values(sentences: list[str]) -> list[tuple[str, str]]:
    found = find_pii_in_sentences(sentences)
    return [(s[span.start : span.end], span.type) for s, spans in zip(sentences, found, strict=True) for span in spans]


def test_label_in_the_sentence_before_announces_a_value() -> None:
    assert values(["건강보험증 번호를 불러 주세요.", "23456789012예요."]) == [("23456789012", "HEALTH")]
    assert find_pii("23456789012예요.") == []


def test_value_does_not_reach_into_the_next_sentence() -> None:
    assert values(["연락처는 02-123", "4567 다음은 010-0123-4567"]) == [("010-0123-4567", "TEL")]


def test_sentences_without_personal_data_give_nothing() -> None:
    assert find_pii_in_sentences(["오늘은 맑다.", "내일은 비가 온다."]) == [[], []]
    assert find_pii_in_sentences([]) == []


@given(st.lists(st.sampled_from(["문의 010-0123-4567", "a@example.com으로", "표 12장.", "주소는", ""]), max_size=6))
def test_spans_stay_inside_their_sentence(sentences: list[str]) -> None:
    for sentence, spans in zip(sentences, find_pii_in_sentences(sentences), strict=True):
        assert all(isinstance(span, Span) and 0 <= span.start < span.end <= len(sentence) for span in spans)
