"""Text fields of KLUE files and of any text file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from corpus.decontamination.benchmarks import find_benchmarks, read_benchmark, read_benchmarks
from corpus.documents.errors import BadInput

NER = """## 토큰, 레이블 구분자 : \\t
## klue-ner-v1_dev_00000-nsmc→<<레이:PS>> 좋다
<→O
레→B-PS
이→I-PS
>→O
 →O
좋→O
다→O

## klue-ner-v1_dev_00001-nsmc→싫다
싫→O
다→O
""".replace("→", "\t")
DP = """## 칼럼명 : INDEX→WORD_FORM
## klue-dp-v1_dev_00000_wikitree→토끼가 뛴다.
1→토끼가→토끼 가→NNG+JKS→2→NP_SBJ
2→뛴다.→뛰 ㄴ다 .→VV+EF+SF→0→VP
""".replace("→", "\t")
QUESTIONS = [{"guid": "m0", "question": "누가 왔나?"}, {"guid": "m1", "question": "언제 왔나?"}]
MRC = {"data": [{"title": "손님", "paragraphs": [{"context": "봄이 왔다. 손님도 왔다.", "qas": QUESTIONS}]}]}
FILES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "ynat-v1.1_dev.json": (json.dumps([{"guid": "y0", "title": "봄비 소식"}]), [("y0#title", "봄비 소식")]),
    "ynat-v1.1_train_unlabelled.tsv": ("guid\ttitle\ny0\t봄비 소식\n", [("y0#sentence", "봄비 소식")]),
    "klue-sts-v1.1_dev.json": (
        json.dumps([{"guid": "s0", "sentence1": "비다.", "sentence2": None}]),
        [("s0#sentence1", "비다.")],
    ),
    "klue-nli-v1.1_train.json": (
        json.dumps([{"guid": "n0", "premise": "비다.", "hypothesis": "눈이다."}]),
        [("n0#premise", "비다."), ("n0#hypothesis", "눈이다.")],
    ),
    "klue-re-v1.1_dev.json": (json.dumps([{"guid": "r0", "sentence": "비다."}]), [("r0#sentence", "비다.")]),
    "klue-ner-v1.1_dev.tsv": (
        NER,
        [("klue-ner-v1_dev_00000-nsmc#sentence", "<레이> 좋다"), ("klue-ner-v1_dev_00001-nsmc#sentence", "싫다")],
    ),
    "klue-ner-v1.1_train_raw_sentences.tsv": ("t0\t비가 온다.\n", [("t0#sentence", "비가 온다.")]),
    "klue-dp-v1.1_dev.tsv": (DP, [("klue-dp-v1_dev_00000_wikitree#sentence", "토끼가 뛴다.")]),
    "klue-mrc-v1.1_dev.json": (
        json.dumps(MRC),
        [
            ("m0#context", "봄이 왔다. 손님도 왔다."),
            ("m0#question", "누가 왔나?"),
            ("m1#context", "봄이 왔다. 손님도 왔다."),
            ("m1#question", "언제 왔나?"),
        ],
    ),
    "wos-v1.1_dev.json": (
        json.dumps([{"guid": "w0", "dialogue": [{"role": "user", "text": "예약해 주세요."}, {"text": "네."}]}]),
        [("w0#turn0", "예약해 주세요."), ("w0#turn1", "네.")],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_every_klue_file_gives_its_texts(tmp_path: Path, name: str) -> None:
    content, expected = FILES[name]
    (tmp_path / name).write_text(content, "utf-8")
    texts = read_benchmark(tmp_path / name)
    assert [(text.key, text.text) for text in texts] == expected
    assert {text.task for text in texts} == {name.split("-v1.1")[0]}


def test_long_sentences_are_items_short_ones_are_joined_and_headlines_stay_whole(tmp_path: Path) -> None:
    long = "저녁에는 강가에 바람이 많이 불었다."
    (tmp_path / "quiz.txt").write_text(f"예. 그래요. {long} 네.", "utf-8")
    assert [text.text for text in read_benchmark(tmp_path / "quiz.txt")] == ["예. 그래요.", long, "네."]
    path = tmp_path / "ynat-v1.1_dev.json"
    path.write_text(json.dumps([{"guid": "y0", "title": f"논란. {long}"}]), "utf-8")
    assert [text.text for text in read_benchmark(path)] == [f"논란. {long}"]


def test_folders_give_klue_files_and_other_texts_are_named_one_by_one(tmp_path: Path) -> None:
    for name in ("ynat-v1.1/ynat-v1.1_dev.json", "wos-v1.1/ontology.json", "vocab.txt", "quiz.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('[{"guid": "y", "title": "봄"}]', "utf-8")
    found = find_benchmarks([str(tmp_path), str(tmp_path / "quiz.txt")])
    assert sorted(path.name for path in found) == ["quiz.txt", "ynat-v1.1_dev.json"]
    assert {text.task for text in read_benchmarks(found)} == {"ynat", "quiz.txt"}


@pytest.mark.parametrize("content", ["{", '[{"guid": "y0"}]', "[]", '{"a": 1}', "[1]"])
def test_a_file_laid_out_otherwise_is_bad_input(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ynat-v1.1_dev.json"
    path.write_text(content, "utf-8")
    with pytest.raises(BadInput, match=r"ynat-v1\.1_dev\.json"):
        read_benchmark(path)


def test_official_files_are_read_in_full(shared: Callable[[str], Path]) -> None:
    paths = find_benchmarks([str(shared("data/klue/official"))])
    items = Counter(task for task, _ in {(text.task, text.key) for text in read_benchmarks(paths)})
    assert items == {"klue-sts": 2 * 519, "klue-nli": 2 * 27_998, "klue-ner": 5_000, "klue-dp": 2_000, "klue-re": 7_765}


def test_other_parts_of_klue_are_read_in_full(shared: Callable[[str], Path]) -> None:
    """Parts published elsewhere: titles, raw sentences, passages with their questions, dialogues."""
    paths = find_benchmarks([str(shared("data/klue/derived"))])
    keys = {(text.task, *text.key.rsplit("#", 1)) for text in read_benchmarks(paths)}
    items = Counter((task, field.rstrip("0123456789")) for task, _, field in keys)
    assert items == {
        ("ynat", "title"): 9_107 + 34_149,
        ("ynat", "sentence"): 9_131,
        ("klue-ner", "sentence"): 21_008,
        ("klue-re", "sentence"): 3_247,
        ("klue-mrc", "context"): 1_218,
        ("klue-mrc", "question"): 1_218,
        ("wos", "turn"): 8_664,
    }
