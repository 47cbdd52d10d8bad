"""Candidates from document shards: form, contacts, lengths, shares, pairs; the same for any division into shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, write_shard
from finetune.annotation.config import Benchmark
from finetune.annotation.draw import draw, problem_of, relation_pairs
from finetune.annotation.folder import ITEMS, Item, read_items
from tests.finetune.annotation.folders import make_folder

WORDS = ("방은", "조용하고", "깨끗했습니다", "주인이", "친절해서", "좋았다", "역에서", "가까운", "숙소였다", "다음에도")


def documents(count: int, source: str = "airbnb") -> list[Document]:
    return [
        Document(
            f"{source}-{n}",
            source,
            tuple(f"{WORDS[(n + k) % 10]} {WORDS[(n * 3 + k) % 10]} {n}번 {k}째 좋았다." for k in range(5)),
        )
        for n in range(count)
    ]


def source_of(folder: Path, found: list[Document], shards: int = 1) -> str:
    for number in range(shards):
        write_shard(folder / "documents" / f"shard-{number:05}.parquet", found[number::shards])
    return "documents"


def drawn(folder: Path, **settings: object) -> tuple[Benchmark, dict[str, object], list[Item]]:
    benchmark = make_folder(folder, **settings)
    counts = draw(benchmark, folder)
    return benchmark, counts, read_items(folder)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("이 방은 조용하고 깨끗해서 좋았습니다.", None),
        ("짧다.", "too short"),
        ("문의는 kim@example.com 으로 보내 주시면 답장한다.", "e-mail, URL or @user"),
        ("자세한 내용은 https://example.com 을 보면 된다.", "e-mail, URL or @user"),
        ("@친구1 이 글을 보면 꼭 연락해 주기를 바란다.", "e-mail, URL or @user"),
        ("오늘은 정말 좋은 하루였다고 생각한다. #행복", "noise"),
        ("이 사람의 이름은 ( )이고 나이는 스무 살이다.", "noise"),
        ("大韓民國臨時政府樹立紀念 행사가 오늘 열렸다고 한다.", "noise"),
        ("This sentence has no Hangul in it at all.", "noise"),
        ("1. 준비물은 물과 밀가루와 소금과 설탕이다.", "list or formula"),
        ("넓이 = 가로와 세로를 곱한 값으로 구할 수 있다.", "list or formula"),
        ("서울에서 가장 오래된 다섯 개의 도서관 목록", "no predicate"),
    ],
)
def test_form_of_a_premise(text: str, reason: str | None) -> None:
    assert problem_of(text, 20, 90, is_premise=True) == reason


def test_items_do_not_depend_on_the_shards(tmp_path: Path) -> None:
    found = documents(60)
    results = []
    for shards in (1, 3):
        folder = tmp_path / str(shards)
        sources = {"reviews": {"documents": source_of(folder, found, shards)}}
        _, counts, items = drawn(folder, task="nli", sources=sources, draw={"count": 40})
        assert counts["items"] == 40
        results.append((folder / ITEMS).read_bytes())
        assert all(item.texts["hypothesis"] == "" and 20 <= len(item.text) <= 90 for item in items)
    assert results[0] == results[1]


def test_each_source_gives_an_equal_share(tmp_path: Path) -> None:
    path = source_of(tmp_path, [*documents(80, "politics"), *documents(30, "sports")])
    sources = {name: {"documents": path, "source": name} for name in ("politics", "sports")}
    _, counts, items = drawn(tmp_path, task="tc", labels=["a"], sources=sources, draw={"count": 40})
    assert counts["sources"] == {"politics": 20, "sports": 20}
    assert {item.source for item in items if "sports-" in item.id} == {"sports"}


def test_items_keep_the_date_of_their_document(tmp_path: Path) -> None:
    sources = {"reviews": {"documents": source_of(tmp_path, documents(10))}}
    (tmp_path / "dates.csv").write_text("id,date\nairbnb-3,2020-05-01\n", "utf-8")
    _, _, items = drawn(tmp_path, task="tc", labels=["a"], sources=sources, draw={"metadata": "dates.csv"})
    assert {item.id: item.about for item in items if item.about} == {"reviews-airbnb-3": {"date": "2020-05-01"}}


def test_sts_pairs_use_each_sentence_once(tmp_path: Path) -> None:
    sources = {"reviews": {"documents": source_of(tmp_path, documents(40))}}
    _, _, items = drawn(tmp_path, task="sts", sources=sources, draw={"count": 50})
    texts = [text for item in items for text in item.texts.values()]
    assert len(items) == 50 and len(set(texts)) == 100
    assert all(item.about["pair"] == "greedy" for item in items)


def test_sts_pairs_by_intent_and_topic(tmp_path: Path) -> None:
    rows = [
        f"문장 {topic}{intent}{n},{topic}{intent},{topic}" for topic in "가나" for intent in "123" for n in range(3)
    ]
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "queries.csv").write_text("\n".join(["text,intent,topic", *rows]), "utf-8")
    _, _, items = drawn(tmp_path, task="sts", draw={"groups": "queries.csv"})
    for item in items:
        first, second = (text.removeprefix("문장 ") for text in item.texts.values())
        assert first[0] == second[0]
        assert (first[1] == second[1]) == (item.about["pair"] == "same")
    assert {item.about["pair"] for item in items} == {"same", "other"}


def test_passages_are_whole_sentences_of_the_right_length(tmp_path: Path) -> None:
    long = [
        Document(f"d{n}", "wiki", tuple(f"{WORDS[k % 10]} {k}번째 문장을 {n}번 문서에 적었다." for k in range(120)))
        for n in range(5)
    ]
    sources = {"wiki": {"documents": source_of(tmp_path, long)}}
    _, _, items = drawn(tmp_path, task="mrc", sources=sources, draw={"count": 8})
    assert len(items) == 8
    assert all(512 < len(item.text) < 2048 and item.text.endswith(".") for item in items)
    assert all(item.texts["question"] == "" for item in items)


def test_relation_pairs_come_from_the_triples_or_at_random(tmp_path: Path) -> None:
    (tmp_path / "triples.tsv").write_text("subject\trelation\tobject\n이순신\torigin\t조선\n", "utf-8")
    benchmark = make_folder(tmp_path, task="re", labels=["no_relation"], draw={"triples": "triples.tsv"})
    known = Item("a", "", {"text": "이순신은 조선의 장군"}, ((0, 3, "PS"), (5, 7, "LC")))
    other = Item("b", "", {"text": "김구는 상하이로 갔다"}, ((0, 2, "PS"), (4, 7, "LC")))
    pairs = relation_pairs(benchmark, [known] * 5 + [other], tmp_path)
    assert [pair.about["pair"] for pair in pairs] == ["triples"] * 3 + ["uniform"] * 3  # an upper bound of three
    assert pairs[0].spans == ((0, 3, "subject:PS"), (5, 7, "object:LC"))


def test_nothing_drawn_is_an_error_with_the_reasons(tmp_path: Path) -> None:
    path = source_of(tmp_path, [Document("d", "s", ("짧다.",))])
    with pytest.raises(BadInput, match="too short"):
        drawn(tmp_path, task="nli", sources={"s": {"documents": path}})
