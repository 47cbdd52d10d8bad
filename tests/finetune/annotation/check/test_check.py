"""The checks of benchmarks: files of other projects, KLUE's known problems, label errors, leaks, the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, write_shard
from finetune.annotation.check.cells import check_ids, check_texts
from finetune.annotation.check.copies import check_sets, near_pairs
from finetune.annotation.check.items import Item
from finetune.annotation.check.records import read_record
from finetune.annotation.check.run import check, check_items, read_datasets
from launch.cli import app

SCORES = "id\tscore\tsentence1\tsentence2\n" + "".join(f"{n}\t{n / 9}\t가 {n}\t나 {n}\n" for n in range(20))
QAS = [{"id": "q", "question": "어디?", "answers": [{"text": "서울", "answer_start": 0}]}]
SQUAD = json.dumps({"data": [{"title": "a", "paragraphs": [{"context": "서울에 비가 온다.", "qas": QAS}]}]})
PAIRS = "sentence1\tsentence2\tgold_label\n비가 온다\t하늘이 맑다\tcontradiction\n눈이 내린다\t겨울이 왔다\tneutral\n"


def found(*paths: Path) -> dict[str, set[str]]:
    """The items with findings, by check, of one benchmark."""
    (benchmark,) = check(paths)["benchmarks"]
    checks: dict[str, set[str]] = {}
    for finding in benchmark["findings"]:
        checks.setdefault(finding["check"], set()).add(finding["guid"])
    return checks


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), "utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("xnli.dev.ko.tsv", PAIRS, "pair"),
        ("dev.tsv", "ID\tsentence\tquestion\t1\t2\tAnswer\n1\t비가 왔다.\t결과\t젖었다.\t말랐다.\t1\n", "choice"),
        ("sts-dev.tsv", SCORES, "similarity"),
        ("ratings_test.txt.tsv", "id\tdocument\tlabel\n1\t재미있다\t1\n2\t지루하다\t0\n", "label"),
        ("dev.conll", "서울 B-LC\n간다 O\n\n민수 B-PS\n", "tagging"),
        ("dev.jsonl", '{"text": "서울에 간다", "spans": [[0, 2, "LC"]]}\n', "tagging"),
        ("dev.json", SQUAD, "span"),
        ("own.csv", "문장,분류,메모\n오늘은 맑다,,가\n내일은 흐리다,,나\n", "label"),
    ],
)  # fmt: skip
def test_files_of_other_projects_are_recognized(tmp_path: Path, name: str, content: str, kind: str) -> None:
    (benchmark,) = check([write(tmp_path / "other" / name, content)])["benchmarks"]
    assert benchmark["kind"] == kind and "klue" not in benchmark["name"]


def test_questions_answers_and_offsets_of_tables(tmp_path: Path) -> None:
    rows = [
        {"question": f"{n}번 질문", "context": f"{n}번 글은 {n}쪽이다.", "answer": f"{n}쪽", "start": 6}
        for n in range(20)
    ]
    assert found(write(tmp_path / "dev.json", rows[:10])) == {"refused": {""}} or "offset" not in found(
        tmp_path / "dev.json"
    )
    rows[3]["start"] = 1
    assert "4" in found(write(tmp_path / "dev.json", rows))["offset"]


def test_votes_and_authors_of_inference(tmp_path: Path) -> None:
    votes = dict.fromkeys(("author", "label2", "label3", "label4", "label5"), "neutral")
    record = {
        "premise": "비가 오는 날에는 길이 미끄럽다고 한다.",
        "hypothesis": "길이 젖었다.",
        "gold_label": "neutral",
        **votes,
    }
    records = [
        {"guid": "a", **record},
        {"guid": "b", **record, "hypothesis": "눈이 온다.", "gold_label": "entailment"},
        {"guid": "c", **record, "hypothesis": "해가 뜬다.", "gold_label": "maybe"},
    ]
    checks = found(write(tmp_path / "klue-nli-v1.1_dev.json", records))
    assert checks["votes"] == {"b", "c"} == checks["author"] and checks["label"] == {"c"}


def test_entities_that_are_elsewhere(tmp_path: Path) -> None:
    def record(guid: str, start: int, word: str) -> dict[str, Any]:
        subject = {"word": word, "start_idx": start, "end_idx": start + 1, "type": "PER"}
        other = {"word": "서울", "start_idx": 4, "end_idx": 5, "type": "LOC"}
        return {
            "guid": guid,
            "sentence": f"민수는 서울에 산다 {guid}.",
            "subject_entity": subject,
            "object_entity": other,
            "label": "no_relation",
        }

    records = [record("a", 0, "민수"), record("b", 1, "민수"), record("c", 99, "민수"), record("d", 2, "는 ")]
    checks = found(write(tmp_path / "klue-re-v1.1_dev.json", records))
    assert checks["offset"] == {"b", "c"} and checks["tags"] == {"d"}


def test_dialogues_with_two_values_and_unknown_slots(tmp_path: Path) -> None:
    def dialogue(guid: str, *state: str) -> dict[str, Any]:
        return {"guid": guid, "dialogue": [{"role": "user", "text": f"{guid} 찾아 주세요", "state": list(state)}]}

    records = [
        dialogue("a", "식당-지역-서울 동쪽"),
        dialogue("b", "식당-지역-서울", "식당-지역-부산"),
        dialogue("c", "병원-지역-서울"),
    ]
    assert found(write(tmp_path / "wos-v1.1_dev.json", records))["state"] == {"b", "c"}


def test_a_changed_letter_with_another_label_is_no_copy(tmp_path: Path) -> None:
    rows = (
        "text,label",
        "호텔에는 넓은 수영장이 있다,네",
        "호텔에는 넓은 수영장이 없다,아니요",
        "호텔에는 넓은 수영장이 있었다,네",
    )
    assert found(write(tmp_path / "dev.csv", "\n".join(rows)))["near-duplicate"] == {"4"}


def distance(one: str, other: str) -> int:
    """Levenshtein's, by the whole table."""
    table = [[max(i, j) if not i * j else 0 for j in range(len(other) + 1)] for i in range(len(one) + 1)]
    for i, a in enumerate(one, 1):
        for j, b in enumerate(other, 1):
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (a != b))
    return table[-1][-1]


@given(st.lists(st.text("가나다라마바사", min_size=12, max_size=24), min_size=2, max_size=8, unique=True))
def test_no_near_pair_is_missed(texts: list[str]) -> None:
    near = {m for n, one in enumerate(texts) for m, other in enumerate(texts)
            if n < m and distance(one, other) <= int(0.1 * max(map(len, (one, other))))}  # fmt: skip
    assert {second for _, second in near_pairs([(text,) for text in texts])} == near


@pytest.mark.parametrize(
    ("tags", "problems"),
    [
        (["B-PS", "O"], set()),
        ("B-PS O", set()),
        ('["B-PS", "O"]', set()),
        (["B-PS"], {"tags", "refused"}),
        (["B-PS", "O", "O"], {"tags", "refused"}),
        (["O", "I-PS"], {"tags"}),
    ],
)
def test_words_and_tags_of_a_table_are_compared(tags: Any, problems: set[str], tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    write(path, json.dumps({"tokens": ["윤슬이", "갔다"], "tags": tags}) + "\n")
    (benchmark,) = check([path])["benchmarks"]
    assert {finding["check"] for finding in benchmark["findings"]} == problems
    assert (benchmark["splits"][0]["items"], benchmark["splits"][0]["labelled"]) == (1, 1)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"tags": ["O", "O"]}, "0 tokens, but 2 tags"),
        ({"tokens": 7, "tags": ["O", "O"]}, "0 tokens, but 2 tags"),
        ({"tokens": ["가"], "tags": 7}, "1 tokens, but 0 tags"),
    ],
)
def test_a_row_without_tokens_or_tags_is_reported(row: dict[str, Any], problem: str, tmp_path: Path) -> None:
    rows = [{"tokens": ["윤슬이", "갔다"], "tags": ["B-PS", "O"]}, row]
    path = write(tmp_path / "dev.jsonl", "".join(json.dumps(one) + "\n" for one in rows))
    (benchmark,) = check([path])["benchmarks"]
    assert problem in [finding["message"] for finding in benchmark["findings"]]


@pytest.mark.parametrize(("count", "is_searched"), [(100, True), (101, False)])
def test_more_than_100_labels_are_no_classes(tmp_path: Path, count: int, is_searched: bool) -> None:
    rows = [f"{chr(ord('가') + n % count) * 3} {n},{n % count}\n" for n in range(4 * count)]
    (benchmark,) = check([write(tmp_path / "dev.csv", "text,label\n" + "".join(rows))])["benchmarks"]
    assert ("suspected" in benchmark["facts"][-1]) is is_searched


@pytest.mark.parametrize(("count", "shown"), [(30, 30), (31, 0)])
def test_up_to_30_labels_are_counted(tmp_path: Path, count: int, shown: int) -> None:
    rows = [f"글 {n},가{n % count}\n" for n in range(2 * count)]
    (benchmark,) = check([write(tmp_path / "dev.csv", "text,label\n" + "".join(rows))])["benchmarks"]
    assert len(benchmark["splits"][0]["labels"]) == shown


def test_a_question_alone_is_tried_and_a_passage_is_not(tmp_path: Path) -> None:
    rows = [f"{'왜' if n % 2 else '언제'} {n},글 {n},{f'글 {n}' if n % 2 else ''}\n" for n in range(120)]
    (benchmark,) = check([write(tmp_path / "dev.csv", "question,context,answer\n" + "".join(rows))])["benchmarks"]
    assert [(row["text"], row["accuracy"]) for row in benchmark["one_side"]] == [("question", 100)]


@pytest.mark.parametrize("premises", [1, 2, 4, 120])
def test_items_of_few_premises_are_checked(tmp_path: Path, premises: int) -> None:
    rows = [f"전제 {n % premises},{'정말 그렇다' if n % 2 else '절대 아니다'} {n},{n % 2}\n" for n in range(120)]
    (benchmark,) = check([write(tmp_path / "train.csv", "premise,hypothesis,label\n" + "".join(rows))])["benchmarks"]
    accuracy = {row["text"]: row["accuracy"] for row in benchmark["one_side"]}
    assert accuracy["hypothesis"] == 100
    assert benchmark["facts"][-1].startswith("Label errors: 0 suspected")


def test_sentences_of_a_corpus_leak(tmp_path: Path) -> None:
    sentence = "도서관은 매주 월요일마다 문을 닫고 책을 정리한다."
    write_shard(tmp_path / "documents" / "shard-00000.parquet", [Document("d1", "news", ("다른 문장이다.", sentence))])
    own = write(
        tmp_path / "dev.csv", f"id,text,label\n1,{sentence},가\n2,박물관은 날마다 아침 일찍 문을 연다고 한다.,나\n"
    )
    printed = CliRunner().invoke(
        app, ["benchmark", "check", str(own), "--corpus", str(tmp_path / "documents"), "--json"]
    )
    findings = json.loads(printed.stdout)["benchmarks"][0]["findings"]
    assert [finding["guid"] for finding in findings if finding["check"] == "leak"] == ["1"]


def test_the_command_prints_tables_and_writes_a_page(tmp_path: Path) -> None:
    write(tmp_path / "own" / "train.csv", "id,text,label\n1,비가 <b>온다</b>,가\n2,비가 <b>온다</b>,나\n")
    write(tmp_path / "own" / "dev.csv", "id,text,label\n1,눈이 온다,가\n2,눈이 온다,가\n")
    write(tmp_path / "own" / "notes.json", "{}")
    printed = CliRunner().invoke(
        app, ["benchmark", "check", str(tmp_path / "own"), "--html", str(tmp_path / "page.html")]
    )
    assert printed.exit_code == 2, printed.output  # notes.json cannot be read
    page = (tmp_path / "page.html").read_text("utf-8")
    assert all(word in printed.stdout for word in ("conflict", "duplicate", "markup", "notes.json"))
    assert "&lt;b&gt;" in page and "<b>온다" not in page


def test_a_folder_of_malmoi_benchmark_is_one_benchmark(tmp_path: Path) -> None:
    row = {"guid": "1", "text": "이순신은 조선의 장군", "label": "직업", "votes": 3}
    for number, split in enumerate(("train", "dev")):
        rows = [
            {**row, "guid": f"{split}{n}", "marked": f"<subject:PER>이순신</subject>은 {number}{n}"} for n in range(3)
        ]
        write(tmp_path / "topics" / "data" / f"{split}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    write(tmp_path / "topics" / "items.jsonl", "{}")
    write(tmp_path / "topics" / "benchmark.yaml", "name: topics")
    result = check([tmp_path / "topics"])
    assert [(b["name"], len(b["splits"])) for b in result["benchmarks"]] == [("topics", 2)] and not result["skipped"]
    assert not {finding["check"] for finding in result["benchmarks"][0]["findings"]} & {"duplicate", "overlap"}


def test_files_of_one_split_are_numbered(tmp_path: Path) -> None:
    for name in ("mine-train", "train-mine", "mine-dev"):
        (tmp_path / f"{name}.csv").write_text(f"text,label\n{name} 문장,1\n", "utf-8")
    datasets, _ = read_datasets([tmp_path])
    assert sorted(file.split for dataset in datasets for file in dataset.files) == ["dev", "train", "train 2"]


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    for path in (
        tmp_path / "none.json",
        write(tmp_path / "dev.json", "[1"),
        write(tmp_path / "empty" / "a.md", "x").parent,
    ):
        with pytest.raises(BadInput):
            check([path])


def test_known_problems_of_klue_are_found(shared: Callable[[str], Path]) -> None:
    official = shared("data/klue/official")
    datasets = [read_datasets([official / f"klue-{task}-v1.1"])[0][0] for task in ("ner", "dp")]
    tagged, trees = (list(check_items(dataset)) for dataset in datasets)
    brackets = {finding.guid[16:21] for finding in tagged if finding.check == "brackets"}
    assert brackets == {"01115", "01174", "02824", "03610", "03639"}  # KLUE#39
    words = [finding.guid[15:20] for finding in trees if finding.check in ("spreadsheet", "word")]
    assert sorted(words) == ["00173", "00252", "00252", "00280", "00702", "00730", "00887"]  # KLUE#36


@pytest.mark.slow
def test_known_problems_of_inference_are_found(shared: Callable[[str], Path]) -> None:
    (dataset,), _ = read_datasets([shared("data/klue/official/klue-nli-v1.1")])
    found = list(check_items(dataset))
    assert [f.guid[-5:] for f in found if f.check == "duplicate"] == ["00778", "14311"]  # KLUE#42
    assert sum(f.check == "length" for f in found) == 12 and not any(f.check == "votes" for f in found)
    assert sum(f.check == "author" and f.split == "dev" for f in found) == 0
    assert sum(f.check == "author" for f in found) == 24_998 - 24_139
    facts, larger = check_sets(dataset)
    assert facts[1] == "dev: 1,000 sets of items with the same first text: 1,000 of 3"
    assert [finding.message.split(",")[0] for finding in larger] == ["6 items share it"] * 2


def test_long_texts_that_are_not_searched_for_near_duplicates_are_reported(tmp_path: Path) -> None:
    long = "가나다라마" * 100
    rows = [f"1,{long}가,a", f"2,{long}나,b", "3,짧은 글이다,a"]
    (tmp_path / "dev.csv").write_text("\n".join(["id,text,label", *rows]), "utf-8")
    (found,) = check([tmp_path / "dev.csv"])["benchmarks"]
    assert found["facts"][0] == "Near duplicates: 2 items have a text over 400 letters, which must be equal."


@pytest.mark.parametrize(("change", "problem"), [
    ({}, None),
    ({"annotations": [5, 5, 5, 5, 1]}, "the mean of the votes is 4.20"),
    ({"annotations": [3, None, 3, "x", 3, 3, 3]}, None),  # no votes
    ({"annotations": [0, 0, 5, 5, 5]}, "a standard deviation above 2"),
    ({"annotations": [3, 3, 3, 3]}, "fewer than 5 votes"),
    ({"label": 3.2}, "but real-label 3.00"),
    ({"binary-label": 0}, "binary-label 0"),
    ({"real-label": 5.1}, "not 0 to 5"),
])  # fmt: skip
def test_similarity_follows_from_the_votes(change: dict[str, Any], problem: str | None) -> None:
    labels = {"label": 3.0, "real-label": 3.0, "binary-label": 1} | change
    votes = labels.pop("annotations", [3, 3, 3, 3, 3])
    record = {
        "guid": "1",
        "sentence1": "가",
        "sentence2": "나",
        "labels": labels,
        "annotations": {"annotations": votes},
    }
    found = [text for _, text in read_record(record, "klue-sts", "dev").problems]
    assert any(problem in text for text in found) if problem else not found


def test_empty_texts_are_not_also_equal_texts() -> None:
    item = Item("1", "dev", {"a": "", "b": " ", "c": "가"})
    assert {finding.check for finding in check_texts([item])} == {"empty", "characters"}


@pytest.mark.parametrize(("count", "first", "lost"), [(40, 1, ["7"]), (40, 5000, []), (3, 1, [])])
def test_numbers_without_their_leading_zeros_are_found(count: int, first: int, lost: list[str]) -> None:
    guids = [*(f"{number:04}" for number in range(first, first + count)), "7"]
    items = [Item(guid, "train", {"text": "글"}) for guid in guids]
    assert [finding.guid for finding in check_ids(items) if finding.check == "spreadsheet"] == lost
