"""Users' files in other layouts and encodings: read as meant, or refused with file and line; what changes is said."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.custom_config import CustomTask
from finetune.data.custom_files import Words, find_columns, read_table, read_words
from finetune.data.files import read_text, version_of
from finetune.data.split import load_data
from finetune.registry import TASKS, task_of
from finetune.tasks.custom.task import custom_task, define

TABLE = "text,label\n금리를 내렸다,경제\n비가 온다고 한다,날씨\n"
ROWS = [{"text": "금리를 내렸다", "label": "경제"}, {"text": "비가 온다고 한다", "label": "날씨"}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", TABLE.encode()),
        ("a.csv", TABLE.encode("utf-8-sig")),
        ("a.csv", TABLE.encode("cp949")),
        ("a.csv", TABLE.encode("utf-16")),
        ("a b (1).CSV", TABLE.replace("\n", "\r\n").encode("cp949")),
        ("a.csv", TABLE.replace("\n", "\r").encode()),
        ("a.CSV.GZ", gzip.compress(TABLE.encode("cp949"), mtime=0)),
        ("a.csv", TABLE.replace(",", ";").encode()),
        ("a.csv", TABLE.replace(",", "\t").encode()),
        ("a.csv", (TABLE.replace("\n", "\n\n,\n,,,\n") + "\n").encode()),  # empty rows, as spreadsheets write them
        ("a.csv", normalize("NFD", TABLE.replace("text", "text")).encode()),
        ("a.tsv", TABLE.replace(",", "\t").replace("\n", "\r\n").encode("utf-16")),
    ],
)
def test_a_table_is_read_in_the_encodings_and_layouts_of_office_programs(
    name: str, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert [
        {key: normalize("NFC", value) for key, value in row.values.items()} for row in read_table(path, ["text"])
    ] == ROWS


def test_an_encoding_other_than_utf8_is_reported_and_an_unknown_one_refused(tmp_path: Path, caplog: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(TABLE.encode("cp949"))
    with caplog.at_level(logging.WARNING):
        assert read_text(path) == TABLE
    assert caplog.messages == [f"{path}: read as CP949"]
    path.write_bytes("naïve, café\n".encode("latin-1"))
    with pytest.raises(BadInput, match="not UTF-8"):
        read_text(path)


WORDS = (["가람이", "서울에", "산다"], ["B-PS", "B-LC", "O"])
PAIRS = list(zip(*WORDS, strict=True))
NUMBERED = [(str(number), *pair) for number, pair in enumerate(PAIRS, 1)]


def lines(*rows: tuple[str, ...], between: str = "\t") -> str:
    return "".join(between.join(row) + "\n" for row in rows)


LAYOUTS = {
    "two columns": lines(*PAIRS),
    "spaces": lines(*PAIRS, between=" "),
    "CoNLL 2003": "-DOCSTART- -X- -X- O\n\n" + lines(*((w, "NN", "B-NP", t) for w, t in PAIRS), between=" "),
    "numbered": lines(*NUMBERED),
    "numbered from 0": lines(*((str(int(n) - 1), w, t) for n, w, t in NUMBERED)),
    "UNER": "# sent_id = 1\n# text = 가람이 산다\n" + lines(*((*row, "-", "an") for row in NUMBERED)),
    "CoNLL-U": "# text = 가람이 산다\n1-2\t가람이서울에" + "\t_" * 8 + "\n"
    + lines(*((n, w, "_", "NOUN", "NNP", "_", "0", "dep", "_", t) for n, w, t in NUMBERED)),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_words_and_tags_are_found_in_every_layout(layout: str, end: str, tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_bytes((LAYOUTS[layout] + "\n" + LAYOUTS[layout]).replace("\n", end).encode())
    assert [(words.words, words.tags) for words in read_words(path)] == [WORDS, WORDS]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# SY O\n해시 NNG B-PS\n## SY O\n##해시 NNG O\n", ["#", "해시", "##", "##해시"]),
        ("#\tO\n##\tB-PS\n##해시\tO\n# 가\tO\n", ["#", "##", "##해시", "# 가"]),
        ("## name-1\t# 해시 ##\n# 설명: 둘\n#\n##\n##해시\n해시\n", ["#", "##", "##해시", "해시"]),
        ("# 설명\n1 # O\n2 ##해시 B-PS\n", ["#", "##해시"]),
        ("3 O\n1 B-PS\n", ["3", "1"]),
    ],
)
def test_words_that_begin_with_a_hash_are_no_comments(text: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text(text, "utf-8")
    (sentence,) = read_words(path)
    assert sentence.words == words
    assert isinstance(sentence, Words) and sentence.name == ("name-1" if "name-1" in text else "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1\t가람이\tNOUN\t_\n2\t산다\tVERB\t_\n", "none of the 2 columns after the word has tags such as B-PS and O"),
        ("가람이 B-PS\n가 람이 B-PS\n산다 O\n", "line 2: 3 columns, but most lines have 2"),
        ("## name\n", "no word in it"),
    ],
)
def test_other_layouts_of_words_are_refused(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text(text, "utf-8")
    with pytest.raises(BadInput, match=says):
        read_words(path)


def answers(tmp_path: Path, rows: str) -> list[tuple[str, int]]:
    path = tmp_path / "faq.csv"
    path.write_text("question,context,answer,start\n" + rows, "utf-8")
    own = CustomTask.model_validate({"kind": "span", "train": str(path), "dev": str(path)})
    examples = custom_task(define("faq", own)).read(path)
    return [(example.gold["answers"][0], example.inputs["start"]) for example in examples]


@pytest.mark.parametrize(
    ("answer", "start"), [("서울", 5), ("서울", 4), ("서울", 3), ("서울  ", 4), ("집", 9), ("집", 12)]
)
def test_an_answer_next_to_its_offset_is_moved_and_counted(
    answer: str, start: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    passage = "가람이 서울 집에 산다. 집은 크다."  # 서울 at 4, 집 at 7 and 14
    with caplog.at_level(logging.WARNING):
        if answer == "집":
            with pytest.raises(BadInput, match="line 2: answer '집' occurs 2 times in its passage; correct"):
                answers(tmp_path, f"어디?,{passage},{answer},{start}\n")
        else:
            assert answers(tmp_path, f"어디?,{passage},{answer},{start}\n") == [("서울", 4)]
    assert any("1 of 1 answers are not at their start" in line for line in caplog.messages) == (start in (3, 5))


def test_an_answer_one_character_off_is_moved_although_it_occurs_twice(tmp_path: Path) -> None:
    assert answers(tmp_path, "어디?,서울 집에 산다. 집은 크다.,집,11\n") == [("집", 10)]


def test_an_answer_that_is_not_in_its_passage_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"faq.csv, line 3: answer '부산' occurs 0 times in its passage; expected words"):
        answers(tmp_path, "어디?,서울에 산다.,서울,0\n어디?,서울에 산다.,부산,0\n")


def custom(tmp_path: Path, train: str, dev: str, **own: Any) -> FinetuneConfig:
    for name, text in (("train.csv", train), ("dev.csv", dev)):
        (tmp_path / name).write_text(text, "utf-8")
    files = {"train": str(tmp_path / "train.csv"), "dev": str(tmp_path / "dev.csv")}
    return FinetuneConfig.model_validate({"custom": {"mine": {"kind": "label", **files, **own}}})


def test_a_label_column_that_is_in_no_file_is_named_with_those_that_are(tmp_path: Path) -> None:
    config = custom(tmp_path, "text,lable\n비,1\n눈,2\n", "text,lable\n비,1\n눈,2\n")
    with pytest.raises(BadInput, match=r"train.csv: no column 'label'; there are text, lable; name the right ones"):
        task_of("mine", config)
    config = custom(tmp_path, "text,label\n비,1\n눈,2\n", "text,lable\n비,1\n눈,2\n")
    with pytest.raises(BadInput, match=r"dev.csv: no column 'label'; there are text, lable"):
        load_data(task_of("mine", config), tmp_path, config)


def test_names_and_labels_in_nfd_are_those_in_nfc(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dev = normalize("NFD", "제목,분류\n비 온다,날씨\n금리,경제\n")
    own = {"text": "제목", "label": normalize("NFD", "분류"), "labels": [normalize("NFD", "경제"), "날씨"]}
    config = custom(tmp_path, "제목,분류\n눈 온다,날씨\n환율,경제\n", dev, **own)
    with caplog.at_level(logging.WARNING):
        data = load_data(task_of("mine", config), tmp_path, config)
    assert [example.gold for example in data.scored] == ["날씨", "경제"]
    assert any("2 labels are not in NFC" in line for line in caplog.messages)
    official = tmp_path / "ynat-v1.1_dev.json"
    official.write_text('[{"guid": "a", "title": "금리", "label": "' + normalize("NFD", "경제") + '"}]', "utf-8")
    assert TASKS["ynat"].read(official)[0].gold == "경제"


def test_texts_that_repeat_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = custom(tmp_path, "text,label\n비,1\n비,2\n비,1\n눈,2\n", "text,label\n해,1\n해,2\n")
    with caplog.at_level(logging.WARNING):
        load_data(task_of("mine", config), tmp_path, config)
    assert [line.partition(": ")[2] for line in caplog.messages] == [
        "1 of 2 texts repeat earlier ones, 1 with another label",
        "2 of 4 texts repeat earlier ones, 1 with another label",
    ]


def test_one_file_as_train_is_answered_with_split_dev() -> None:
    with pytest.raises(ValueError, match=r"name it as dev, without train, and set finetune.split_dev"):
        FinetuneConfig.model_validate({"custom": {"mine": {"kind": "label", "train": "a.csv"}}})


def test_an_official_file_under_another_name_is_known(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("finetune.data.files._NAME_OF", {"digest": "ynat-v1.1_dev.json"})
    with caplog.at_level(logging.WARNING):
        assert version_of(tmp_path / "dev.json", "digest") == "official v1.1"
        assert version_of(tmp_path / "ynat-v1.1_dev.json.gz", "digest") == "official v1.1"
    assert caplog.messages == [f"{tmp_path / 'dev.json'}: this is the official ynat-v1.1_dev.json under another name"]
    with pytest.raises(BadInput, match="put the right file there"):
        version_of(tmp_path / "ynat-v1.1_train.json", "digest")


def test_the_column_with_the_fewest_values_is_guessed_to_be_the_label(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [f"본문 글 {n}번입니다,{'가나다라'[n % 4]},{'예아'[n % 2]}\n" for n in range(24)]
    path.write_text("".join(["글,갈래,판정\n", *rows]), "utf-8")
    columns = find_columns(read_table(path, ()), path, is_guess=True)
    assert (columns.text, columns.label) == ("글", "판정")
