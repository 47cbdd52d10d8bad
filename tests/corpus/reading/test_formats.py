"""Source formats: each adapter reads the layout its corpus is distributed in, skips by name, refuses other shapes."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from corpus.reading.formats import ADAPTERS, Skip, clean_extract, unescape

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
    "text": "\n지미 카터\n\n지미 카터(, 1924년 ~ )는 정치인이다.\n\n생애.\n어린 시절.\n조지아에서 났다.\n\n각주.\n",
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
        ("wikipedia", EXTRACT, "5", "지미 카터\n지미 카터(1924년 ~ )는 정치인이다.\n생애\n어린 시절\n조지아에서 났다."),
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
    with pytest.raises(Skip) as skipped:
        ADAPTERS[name].text_of(record)
    assert skipped.value.reason == reason


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


@pytest.mark.parametrize(
    ("extracted", "text"),
    [
        # brackets emptied by templates
        ("유럽(, , , )은 대륙이다.", "유럽은 대륙이다."),
        ("서버(, 1924년 ~ )는", "서버(1924년 ~ )는"),
        ("지구과학(地球科學, )은", "지구과학(地球科學)은"),
        ("백남준(白南準, , 1932년)은 키노 ()이며", "백남준(白南準, 1932년)은 키노이며"),
        ("백작( , , , 1828년)과 조합(; “형제”)", "백작(1828년)과 조합(“형제”)"),
        ("알리야(, 본명: , 1979년)와 (풀네임: , 기호: )는", "알리야(1979년)와는"),
        ("보잉 777()은 크다.", "보잉 777은 크다."),
        ("main() 함수, f(a, b) (1,) (본명: 홍길동)", "main() 함수, f(a, b) (1,) (본명: 홍길동)"),
        # what the extractor escaped, and tags of the wiki
        ("A&amp;P의 &lt;이방인&gt; &amp;lt;", "A&P의 <이방인> &lt;"),
        ("첫 줄&lt;br /&gt;둘째 줄&lt;br / style=\"clear:both;\"&gt;", "첫 줄\n둘째 줄"),
        ("시다.&lt;poem style=\"a\"&gt;나뭇잎&lt;/poem&gt;&lt;ref name=a&gt;책, 3쪽.&lt;/ref&gt;", "시다.나뭇잎"),
        ("소나타다.\n&lt;score lang=\"x\"&gt;\\key c\n&lt;c e&gt;4\n&lt;/score&gt;\n끝이다.", "소나타다.\n끝이다."),
        # links, switches, tables, placeholders
        ("[[와카야마]]와 [[KIA 타이거즈|KIA]]전\n[[분류:1984년]]\n[[파일:a|섬네일|[[카페]] 앞]]", "와카야마와 KIA전"),
        ("__목차__\n글이다.", "글이다."),
        ("!colspan=2|합계||202||199\n70||7||colspan=\"2\"|-||95", "합계 202 199\n70 7 - 95"),
        ("!!! 주의하라 a||b", "!!! 주의하라 a||b"),
        ("식은 formula_1이다.\nformula_2\ncodice_3.\n끝이다.", "식은 formula_1이다.\n끝이다."),
        # section heads end in the extractor's full stop, sentences in their own
        ("개요.\n뒤를 이을 사람들.\n글이다.", "개요\n뒤를 이을 사람들\n글이다."),
        ("2013년 졸업함.\n죽었다.\n예를 보자.\n3.", "2013년 졸업함.\n죽었다.\n예를 보자.\n3."),
        ("끝이다.\n각주.\n같이 보기.\n외부 링크.\n&lt;br&gt;", "끝이다."),
        ("출처.\n어디에도 없다.", "출처\n어디에도 없다."),
    ],
)  # fmt: skip
def test_left_overs_of_markup_go(extracted: str, text: str) -> None:
    assert clean_extract(extracted) == text


@given(st.lists(st.sampled_from([*"(),;:[]|!<>&_ \n.가1", "()", "(, ", ", )", "[[", "]]", "||", "<br>", "나다."])))
def test_cleaning_only_takes_away_and_keeps_the_order(parts: list[str]) -> None:
    left = iter(unescape("".join(parts)))
    assert all(char in left for char in clean_extract("".join(parts)) if not char.isspace())


# blanks between the pieces, _ is one inside
PIECES = """( (_ (,_ ,_ () (,_) (가:_, (가_가: a() ()가 [[ [[파일:a[[ [[a| ||_ ! !_a= !colspan= !a=" <ref> <ref_a"""
PIECES += """ <score> <score></score <!--"""
MORE = ("__가", "가.\n", "formula_1\n", "\n", " ")


@pytest.mark.parametrize("piece", [*(piece.replace("_", " ") for piece in PIECES.split()), *MORE])
def test_time_grows_with_length_only(piece: str) -> None:
    seconds = []
    for size in (50_000, 400_000):
        text = piece * (size // len(piece))
        start = time.process_time()
        clean_extract(text)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 24 * seconds[0] + 0.1  # eight times the text; quadratic would be 64


def read_texts(path: Path, limit: int) -> Iterator[str]:
    with path.open("rb") as file:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8")
        for line, _ in zip(lines, range(limit), strict=False):
            yield json.loads(line)["text"]


def test_real_pages_lose_little_but_emptied_brackets(shared: Callable[[str], Path]) -> None:
    before = after = emptied = 0
    for text in read_texts(shared("data/corpora/kowiki.jsonl.zst"), 2_000):
        cleaned = clean_extract(text)
        left = iter(unescape(text))
        assert all(char in left for char in cleaned if not char.isspace())
        before, after = before + len(text), after + len(cleaned)
        emptied += cleaned.count("(, ") + cleaned.count(", )")
    assert 0.985 < after / before < 1.0  # measured .994
    assert emptied == 0  # 892 before
