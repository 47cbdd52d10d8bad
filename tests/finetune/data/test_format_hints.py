"""A reader names the format that it was given, and says where such data belong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpus.documents.errors import BadInput
from finetune.data.format_hints import name_text
from finetune.registry import TASKS

KORSTS = "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2\nmain\tMSR\t2012\t1\t5.0\t비가 온다.\t비 온다.\n"
KORNLI = "sentence1\tsentence2\tgold_label\n비가 온다.\t맑다.\tcontradiction\n"
NSMC = "id\tdocument\tlabel\n9976970\t아 더빙.. 진짜\t0\n"
UD = "# sent_id = 1\n1\t비가\t비\tNOUN\tNNG+JKS\t_\t2\tnsubj\t_\t_\n2\t온다\t오\tVERB\tVV\t_\t0\troot\t_\t_\n\n"
SQUAD = json.dumps({"data": [{"paragraphs": [{"context": "비가 온다.", "qas": [
    {"id": "1", "question": "무엇이?", "answers": [{"text": "비", "answer_start": 0}]}]}]}]})  # fmt: skip
YNAT = json.dumps([{"guid": "y0", "title": "금리 인하", "label": "경제"}])
LINES = '{"guid": "1", "text": "비"}\n{"guid": "2", "text": "눈"}\n'
REVERSED = "## n0\t서울\nB-LC\t서\nI-LC\t울\nO\t로\n\n"
WORDS = "## n0\t서울\n서울\tB-LC\n로\tO\n\n"


@pytest.mark.parametrize(
    ("task", "content", "says"),
    [
        ("klue-sts", KORSTS, "this looks like KorSTS (tab-separated: genre"),
        ("klue-nli", KORNLI, "this looks like KorNLI (tab-separated"),
        ("ynat", NSMC, "this looks like NSMC (tab-separated"),
        ("klue-dp", UD, "this looks like CoNLL-U (Universal Dependencies, ten columns)"),
        ("klue-ner", UD, "this looks like CoNLL-U"),
        ("klue-mrc", SQUAD, "this looks like SQuAD or KorQuAD"),
        ("klue-mrc", YNAT, "this looks like a file of YNAT"),
        ("klue-nli", YNAT, "this looks like a file of YNAT"),
        ("klue-sts", SQUAD, "this looks like SQuAD or KorQuAD"),
        ("klue-re", YNAT, "'label' is '경제'; labels here are no_relation"),
        ("wos", YNAT, "this looks like a file of YNAT"),
        ("ynat", LINES, "this looks like JSON lines"),
        ("ynat", "text,label\n비,1\n눈,0\n", "this looks like a CSV table (text, label)"),
        ("klue-nli", "<!DOCTYPE html>\n<html></html>", "this looks like a web page"),
        ("klue-nli", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a pointer of Git LFS"),
        ("klue-ner", REVERSED, "this looks like tags before characters"),
        ("klue-ner", WORDS, "this looks like tags of words (CoNLL)"),
        ("klue-ner", "서울\tB-LC\n로\tO\n\n", "this looks like tags of words (CoNLL)"),
        ("klue-dp", "1\t비가\t비\tNOUN\tNNG+JKS\t_\t2\tnsubj\t_\t_\n", "this looks like CoNLL-U"),
    ],
)
def test_a_file_of_another_format_is_named(task: str, content: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / Path(TASKS[task].files.dev).name
    path.write_text(content, "utf-8")
    with pytest.raises(BadInput) as error:
        TASKS[task].read(path)
    assert str(error.value).startswith(str(path))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"PAR1\x15\x04\x15\xe4", "this is a Parquet file; give finetune.data the folder"),
        (b"PK\x03\x04\x14\x00\xff", "this is a zip archive or an Excel file"),
        ("[{}]".encode("utf-16"), "this is UTF-16"),
        ("비가 온다".encode("cp949"), "it may be CP949"),
        (b"\xff\x00\x81", "convert the file to UTF-8"),
    ],
)
def test_bytes_that_are_no_text_are_named(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "ynat-v1.1_dev.json"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=says):
        TASKS["ynat"].read(path)


@pytest.mark.parametrize("text", ["", "{", "[[[", "비", '{"a": ' * 5000, "\t\n\t", ",", "\ufeff", "[" * 100_000])
def test_nothing_is_named_without_a_reason(text: str) -> None:
    assert name_text(text) is None
