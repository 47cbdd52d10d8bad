"""Candidates from document shards: form, contacts, lengths, shares, pairs; the same for any division into shards."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, write_shard
from finetune.annotation import draw as drawing
from finetune.annotation.config import Benchmark
from finetune.annotation.draw import UNFINISHED, Models, draw, passages, problem_of, relation_pairs
from finetune.annotation.folder import ITEMS, Item, read_items
from finetune.config import FinetuneConfig
from finetune.run import FinetuneInputs, run
from launch.sample.unpack import read_archive
from tests.finetune.annotation.folders import make_folder
from tests.finetune.conftest import build_tiny_encoder

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


class Answers:
    """Models that answer by a rule, and count what they are asked; they stop at question number ``last``."""

    def __init__(self, last: int = 1 << 30) -> None:
        self.last, self.asked = last, list[str]()

    def note(self, texts: Sequence[str]) -> None:
        for text in texts:
            if len(self.asked) == self.last:
                raise KeyboardInterrupt
            self.asked.append(text)

    def find_toxic(self, model: str, thresholds: Mapping[str, float], texts: Sequence[str]) -> list[bool]:
        self.note(texts)
        return [thresholds["hate"] < 1 and "친절해서" in text for text in texts]

    def ask(self, model: str, questions: Sequence[str]) -> list[str]:
        self.note(questions)
        return [question.rpartition("\n")[2].removeprefix("en ") for question in questions]

    @property
    def models(self) -> Models:
        return Models(self.find_toxic, self.ask)


def drawn(
    folder: Path, models: Models | None = None, **settings: object
) -> tuple[Benchmark, dict[str, Any], list[Item]]:
    benchmark = make_folder(folder, **settings)
    counts = draw(benchmark, folder, models or Answers(0).models)
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


def test_a_few_sts_pairs_are_matched_among_all_sentences(tmp_path: Path) -> None:
    rng = Random(1)
    texts = ["".join(rng.choices("가나다라마바사아자차카타파하", k=30)) + " 좋았다." for _ in range(300)]
    found = [Document(f"d{n}", "airbnb", (text, text.replace("좋았다", "좋습니다"))) for n, text in enumerate(texts)]
    _, counts, items = drawn(
        tmp_path, task="sts", sources={"airbnb": {"documents": source_of(tmp_path, found)}}, draw={"count": 5}
    )
    assert counts["items"] == 5
    assert min(item.about["rouge"] for item in items) > 0.8  # among ten random sentences hardly any two are alike


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


def test_passages_of_a_document_are_numbered_from_one() -> None:
    document = Document("d", "wiki", ("가" * 6, "나" * 6, "다" * 6, "라" * 3))
    assert list(passages(document, 3, 14)) == [(1, f"{'가' * 6} {'나' * 6}"), (2, f"{'다' * 6} {'라' * 3}")]
    assert [number for number, _ in passages(document, 2, 8)] == [1, 2, 3, 4]


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


def test_thresholds_of_toxicity_are_those_of_the_source(tmp_path: Path) -> None:
    path = source_of(tmp_path, [*documents(60, "news"), *documents(60, "reviews")])
    sources = {
        "news": {"documents": path, "source": "news"},
        "reviews": {"documents": path, "source": "reviews", "toxicity": {"hate": 0.9}},
    }
    settings = {"task": "nli", "sources": sources, "draw": {"count": 80, "classifier": "some/model"}}
    answers = Answers()
    _, counts, items = drawn(tmp_path, answers.models, **settings)
    assert counts["sources"] == {"news": 40, "reviews": 40} and counts["skipped"]["toxic"]
    assert {item.source for item in items if "친절해서" in item.text} == {"news"}
    assert len(answers.asked) <= 3 * 40  # only of the source with a threshold
    with pytest.raises(BadInput, match=r"draw.classifier: missing"):
        make_folder(tmp_path, task="nli", sources=sources)


def test_a_stopped_draw_continues_at_the_unit_at_which_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "BATCH", 10)
    path = str(source_of(tmp_path, documents(60)))
    sources = {name: {"documents": f"{tmp_path}/{path}", "toxicity": {"hate": 0.9}} for name in ("one", "two")}
    settings: dict[str, Any] = {"task": "nli", "sources": sources, "draw": {"count": 80, "classifier": "some/model"}}
    whole = Answers()
    drawn(tmp_path / "whole", whole.models, **settings)
    stopped = tmp_path / "stopped"
    first, second = Answers(len(whole.asked) - 15), Answers()
    with pytest.raises(KeyboardInterrupt):
        drawn(stopped, first.models, **settings)
    assert not (stopped / ITEMS).exists() and (stopped / UNFINISHED).is_dir()
    _, counts, _ = drawn(stopped, second.models, **settings)
    assert (stopped / ITEMS).read_bytes() == (tmp_path / "whole" / ITEMS).read_bytes()
    assert first.asked[: len(first.asked) // 10 * 10] + second.asked == whole.asked
    assert not (stopped / UNFINISHED).exists() and counts["items"] == 80


def test_units_of_other_settings_are_not_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "BATCH", 10)
    sources = {"s": {"documents": source_of(tmp_path, documents(60)), "toxicity": {"hate": 0.9}}}
    settings: dict[str, Any] = {"task": "nli", "sources": sources}
    with pytest.raises(KeyboardInterrupt):
        drawn(tmp_path, Answers(25).models, **settings, draw={"count": 40, "classifier": "some/model"})
    second = Answers()
    drawn(tmp_path, second.models, **settings, draw={"count": 40, "classifier": "other/model"})
    assert len(second.asked) >= 40


def test_half_of_the_sts_pairs_are_round_trips(tmp_path: Path) -> None:
    sources = {"reviews": {"documents": source_of(tmp_path, documents(60))}}
    answers = Answers()

    def ask(model: str, questions: Sequence[str]) -> list[str]:
        given = answers.ask(model, questions)
        if questions[0].startswith(drawing.TO_ENGLISH):
            return ["", *(f"en {text}" for text in given[1:])]
        return ["", given[1], *(f"정말 {text}" for text in given[2:])]

    models = Models(answers.find_toxic, ask)
    _, counts, items = drawn(tmp_path, models, task="sts", sources=sources, draw={"count": 40, "translator": "a/b"})
    pairs = [item for item in items if item.about["pair"] == "round-trip"]
    assert counts["skipped"] | {"round trip: no answer": 2, "round trip: the same sentence": 1} == counts["skipped"]
    assert len(pairs) == 17 and len(items) == 37
    assert all(item.texts["sentence2"] == f"정말 {item.texts['sentence1']}" for item in pairs)
    assert all(item.about["english"].startswith("en ") and 0.5 < item.about["rouge"] < 1 for item in pairs)
    texts = [text for item in items for text in item.texts.values()]
    assert len(set(texts)) == len(texts)


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved KLUE-NER model, trained on the embedded sample for four seconds; finds about half of the entities."""
    home = tmp_path_factory.mktemp("tagger")
    for name, content in read_archive("klue.tar.zst").items():
        if "klue-ner" in name:
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_bytes(content)
    encoder, _ = build_tiny_encoder(home / "encoder", [path.read_text("utf-8") for path in home.rglob("*.tsv")])
    settings = {"epochs": 4, "max_tokens": 64, "lr": 3e-3, "batch_size": 16}
    few = {"max_train_examples": 400, "max_dev_examples": 60}
    config = FinetuneConfig(tasks=("klue-ner",), seeds=(1,), overrides={"klue-ner": settings}, **few)
    run(config, FinetuneInputs(home / "klue", {"model": encoder}), home / "out")
    return next((home / "out").rglob("malmoi.json")).parent


def sentences_of_the_sample(tagger: Path) -> list[Document]:
    lines = (tagger.parents[4] / "klue/klue-ner-v1.1/klue-ner-v1.1_dev.tsv").read_text("utf-8").splitlines()
    found = [re.sub(r"<([^<>]*):[A-Z]{2}>", r"\1", line.split("\t")[1]) for line in lines if line.count("<") > 2]
    return [Document(f"d{n}", "sample", (text, f"오늘은 {n}째로 참 좋았다")) for n, text in enumerate(found)]


@pytest.mark.parametrize(("task", "count"), [("ner", 15), ("re", 5)])
def test_a_kept_model_tags_the_sentences(tmp_path: Path, tagger: Path, task: str, count: int) -> None:
    known = sentences_of_the_sample(tagger)
    sources = {"sample": {"documents": source_of(tmp_path, known)}}
    settings: dict[str, Any] = {"task": task, "labels": ["PS", "LC", "OG", "DT", "TI", "QT"], "sources": sources}
    _, counts, items = drawn(tmp_path, **settings, draw={"count": count, "tagger": str(tagger)})
    assert len(items) == count and (task == "ner" or counts["skipped"]["too few entities"])
    marked = {(item.id, start, end) for item in items for start, end, _ in item.spans}
    assert all(0 <= start < end for _, start, end in marked) and len(marked) >= count
    assert all(len(item.spans) == 2 for item in items) or task == "ner"
    rows = [json.loads(line) for line in (tmp_path / ITEMS).read_text("utf-8").splitlines()]
    assert rows[0]["spans"] == [list(span) for span in asdict(items[0])["spans"]]


def test_pairs_of_relations_need_a_tagger(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"draw.tagger: missing"):
        make_folder(tmp_path, task="re", labels=["no_relation"], sources={"s": {"documents": "d"}})
