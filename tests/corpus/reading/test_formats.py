"""Source formats: each adapter reads the layout its corpus is distributed in, skips by name, refuses other shapes."""

from __future__ import annotations

from typing import Any

import pytest

from corpus.reading.formats import ADAPTERS, SkippedRecord

NEWSPAPER = {
    "id": "NWRW0000000001.1",
    "metadata": {"title": "예시일보 2019년 기사", "topic": "사회"},
    "paragraph": [
        {"id": "NWRW0000000001.1.1", "form": "새 다리 놓였다"},
        {"id": "…1.2", "form": "강에 다리가 놓였다."},
    ],
}
SPOKEN = {
    "id": "SBRW0000000002.1",
    "metadata": {"speaker": [{"id": "1"}]},
    "utterance": [
        {"id": "….1", "form": "안녕하세요", "original_form": "안녕하세여", "speaker_id": "1", "note": ""},
        {"id": "….2", "form": "", "original_form": "", "speaker_id": "2", "note": "웃음"},
        {"id": "….3", "form": "네 반갑습니다", "original_form": "네 반갑습니다", "speaker_id": "2", "note": ""},
    ],
}
PETITION = {
    "category": "행정", "begin": "2019-08-01", "end": "2019-08-31", "content": "나무를 심어 주세요.", "num_agree": 7,
    "petition_idx": "500001", "status": "청원종료", "title": "나무 심기",
}  # fmt: skip
NAMU_PAGE = {"namespace": "0", "title": "말모이", "text": "== 개요 ==\n[[사전|낱말 사전]]이다.", "contributors": ["a"]}
EXTRACT = {
    "id": "5",
    "url": "https://ko.wikipedia.org/wiki?curid=5",
    "title": "지미 카터",
    "text": "\n지미 카터\n\n지미 카터(, 1924년 ~ )는 정치인이다.\n\n생애.\n조지아에서 났다.\n",
}


@pytest.mark.parametrize(
    ("name", "record", "id_", "text"),
    [
        ("modu", NEWSPAPER, "NWRW0000000001.1", "새 다리 놓였다\n강에 다리가 놓였다."),
        ("modu", SPOKEN, "SBRW0000000002.1", "안녕하세요\n네 반갑습니다"),
        ("modu", {"id": "a", "sentence": [{"id": "a.1", "form": "문장이다."}]}, "a", "문장이다."),
        ("cc100", {"text": "첫 문단.\n둘째 문단."}, None, "첫 문단.\n둘째 문단."),
        ("namuwiki", NAMU_PAGE, "말모이", "말모이\n개요\n낱말 사전이다."),
        ("namuwiki", NAMU_PAGE | {"namespace": 0}, "말모이", "말모이\n개요\n낱말 사전이다."),
        ("news", {"id": 3, "title": "다리 개통", "text": "다리가 열렸다."}, 3, "다리 개통\n다리가 열렸다."),
        ("news", {"headline": "다리 개통", "article": "다리가 열렸다."}, None, "다리 개통\n다리가 열렸다."),
        ("news", {"title": "다리 개통", "body": "다리 개통\n다리가 열렸다."}, None, "다리 개통\n다리가 열렸다."),
        ("news", {"title": None, "content": "다리가 열렸다.", "contents": "다른 것"}, None, "다리가 열렸다."),
        ("news", {"title": "다리 개통", "text": None}, None, None),
        ("petitions", PETITION, "500001", "나무 심기\n나무를 심어 주세요."),
        ("petitions", PETITION | {"content": None}, "500001", None),
        ("wikipedia", EXTRACT, "5", "지미 카터\n지미 카터(, 1924년 ~ )는 정치인이다.\n\n생애.\n조지아에서 났다."),
        ("wikipedia", {"id": "6", "title": "A&B", "text": "A&amp;B\n모임이다."}, "6", "A&B\n모임이다."),
        ("wikipedia", {"id": "7", "title": "말", "text": "말은 동물이다."}, "7", "말\n말은 동물이다."),
    ],
)
def test_a_record_of_the_layout_becomes_its_text(name: str, record: dict[str, Any], id_: Any, text: str | None) -> None:
    assert ADAPTERS[name].id_of(record) == id_
    assert ADAPTERS[name].text_of(record) == text


@pytest.mark.parametrize(
    ("name", "record", "reason"),
    [
        ("namuwiki", NAMU_PAGE | {"namespace": "6"}, "other_namespace"),
        ("namuwiki", NAMU_PAGE | {"text": "#redirect 사전"}, "redirect"),
        ("namuwiki", NAMU_PAGE | {"text": "#REDIRECT 사전#s-1"}, "redirect"),
        ("namuwiki", NAMU_PAGE | {"text": "#넘겨주기 사전"}, "redirect"),
        ("namuwiki", NAMU_PAGE | {"text": "[[분류:사전]]\n[include(틀:비어 있음)]"}, "no_body"),
        ("wikipedia", EXTRACT | {"text": "지미 카터\n\n"}, "no_body"),
        ("wikipedia_json", EXTRACT | {"text": ""}, "no_body"),
    ],
)
def test_what_is_no_document_is_skipped_by_name(name: str, record: dict[str, Any], reason: str) -> None:
    with pytest.raises(SkippedRecord) as skipped:
        ADAPTERS[name].text_of(record)
    assert str(skipped.value) == reason


@pytest.mark.parametrize(
    ("name", "record", "error"),
    [
        ("modu", {"id": "a", "metadata": {}}, KeyError),
        ("modu", {"id": "a", "paragraph": [{"id": "a.1"}]}, KeyError),
        ("modu", {"id": "a", "paragraph": [{"form": None}]}, TypeError),
        ("modu", {"id": "a", "paragraph": 3}, TypeError),
        ("modu", {"id": "a", "paragraph": ["문장"]}, TypeError),
        ("cc100", {"text": 3}, TypeError),
        ("namuwiki", {"title": "말", "text": "말"}, KeyError),
        ("namuwiki", NAMU_PAGE | {"text": None}, TypeError),
        ("news", {"title": "제목", "main": "글"}, KeyError),
        ("news", {"text": ["글"]}, TypeError),
        ("news", {"title": 3, "text": "글"}, TypeError),
        ("petitions", {"title": "제목", "petition_idx": "1"}, KeyError),
        ("petitions", {"content": "글", "petition_idx": "1"}, KeyError),
        ("wikipedia", {"id": "1", "title": "말", "text": 3}, TypeError),
        ("wikipedia", {"id": "1", "text": "말"}, KeyError),
    ],
)
def test_another_shape_raises(name: str, record: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        ADAPTERS[name].text_of(record)


def test_both_outputs_of_wikiextractor_give_the_same_document() -> None:
    assert ADAPTERS["wikipedia_json"].text_of(EXTRACT) == ADAPTERS["wikipedia"].text_of(EXTRACT)
    assert ADAPTERS["wikipedia_json"].id_of(EXTRACT) == ADAPTERS["wikipedia"].id_of(EXTRACT)


def test_adapters_are_listed_under_their_names() -> None:
    assert all(name == adapter.name for name, adapter in ADAPTERS.items())
    assert {adapter.container for adapter in ADAPTERS.values()} == {"lines", "array", "text", "docs"}
    assert {name for name, adapter in ADAPTERS.items() if adapter.array_key} == {"modu"}
