"""Tasks of a user's own: each kind gives what the KLUE task of its kind gives, and wrong files get one sentence."""

from __future__ import annotations

import csv
import gzip
import json
import logging
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from pydantic import ValidationError
from scipy.stats import spearmanr

from corpus.documents.errors import BadInput
from finetune import job
from finetune.config import FinetuneConfig
from finetune.custom_config import CustomTask
from finetune.examples import Row
from finetune.registry import TASKS, task_of
from finetune.run import FinetuneInputs, checks, run
from finetune.tasks.custom.task import custom_task, define, score_numbers
from finetune.tasks.nli.task import NLI_LABELS
from finetune.tasks.ynat.task import YNAT_LABELS

TITLES = {"경제": "한빛은행 금리 인하", "스포츠": "푸른들팀 3연승", "정치": "시의회 예산안 처리"}
NER = "## ner_{0}\t<서울:LC>로 <김하나:PS>\n서\tB-LC\n울\tI-LC\n로\tO\n \tO\n김\tB-PS\n하\tI-PS\n나\tI-PS\n\n"
ROWS: dict[str, list[dict[str, Any]]] = {
    "ynat": [{"title": f"{title} {n}", "label": label} for n in range(4) for label, title in TITLES.items()],
    "klue-nli": [
        {"premise": f"비가 {n}번 온다.", "hypothesis": "비 온다.", "gold_label": NLI_LABELS[n % 3]} for n in range(9)
    ],
    "klue-sts": [
        {"sentence1": f"비가 {n}번 온다.", "sentence2": "비 온다.", "labels": {"real-label": n / 2}} for n in range(9)
    ],
}  # fmt: skip


def put_klue(folder: Path, task: str) -> dict[str, Path]:
    """Both official files of a task, and copies as own files by split."""
    own = {}
    for split in ("train", "dev"):
        path = folder / "klue" / TASKS[task].files.of(split)
        path.parent.mkdir(parents=True, exist_ok=True)
        own[split] = folder / f"{task}-{split}.csv"
        if task == "klue-ner":
            path.write_text("".join(NER.format(f"{split}{n}") for n in range(9)), "utf-8")
            own[split] = path
        elif task == "klue-mrc":
            own[split] = put_questions(folder, path, split)
        else:
            rows = [{"guid": f"{split}{n}", **row} for n, row in enumerate(ROWS[task])]
            path.write_text(json.dumps(rows), "utf-8")
            flat = [row | ({"labels": row["labels"]["real-label"]} if "labels" in row else {}) for row in rows]
            put_csv(own[split], flat)
    return own


def put_questions(folder: Path, official: Path, split: str) -> Path:
    context = "한빛은행은 서울에 있다. 금리는 3월에 내렸다."
    asked = [("어디에 있나?", "서울", 6), ("언제 내렸나?", "3월", 18), ("누가 샀나?", "", None)] * 3
    questions = [
        {
            "guid": f"{split}{n}", "question": question, "is_impossible": not answer,
            "answers": [{"text": answer, "answer_start": start}] if answer else [],
        }
        for n, (question, answer, start) in enumerate(asked)
    ]  # fmt: skip
    official.write_text(json.dumps({"data": [{"paragraphs": [{"context": context, "qas": questions}]}]}), "utf-8")
    own = folder / f"mrc-{split}.jsonl"
    rows = [(q["guid"], q["question"], *next(((a["text"], a["answer_start"]) for a in q["answers"]), ("", None)))
            for q in questions]  # fmt: skip
    names = ("guid", "question", "answer", "start")
    own.write_text("".join(json.dumps(dict(zip(names, row, strict=True)) | {"context": context}) + "\n"
                           for row in rows), "utf-8")  # fmt: skip
    return own


def put_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


COPIES: dict[str, dict[str, Any]] = {
    "ynat": {"kind": "label", "text": "title", "label": "label", "labels": YNAT_LABELS},
    "klue-nli": {"kind": "pair", "text": ("premise", "hypothesis"), "label": "gold_label", "labels": NLI_LABELS},
    "klue-sts": {"kind": "similarity", "text": ("sentence1", "sentence2"), "label": "labels"},
    "klue-ner": {"kind": "tagging", "labels": ("PS", "LC", "OG", "DT", "TI", "QT")},
    "klue-mrc": {"kind": "span", "start": "start"},
}


@pytest.mark.parametrize("task", COPIES)
def test_a_copy_of_a_klue_task_as_own_files_trains_to_the_same_bits(
    task: str, tmp_path: Path, tiny_encoder: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, _ = tiny_encoder(("".join(map(str, ROWS.values())), NER))
    files = put_klue(tmp_path, task)
    guid = {} if task == "klue-ner" else {"guid": "guid"}
    own = CustomTask(**COPIES[task], **guid, **{split: str(path) for split, path in files.items()})
    seed = job.seed_everything  # draws by the name of the task, too
    monkeypatch.setattr(job, "seed_everything", lambda number, name: seed(number, "same"))
    names = (task, "mine")
    hyperparameters = {"epochs": 2, "lr": 1e-3, "batch_size": 4, "max_tokens": 32}
    config = FinetuneConfig(
        custom={"mine": own}, tasks=names, seeds=(1,),
        overrides=dict.fromkeys(names, hyperparameters),
        device="cpu", precision="fp32",
    )  # fmt: skip
    monkeypatch.setattr("finetune.data.split._refuse_shared", lambda *rest: None)
    monkeypatch.setattr("finetune.data.split._warn_of_shared", lambda *rest: None)  # train and dev hold the same texts
    run(config, FinetuneInputs(tmp_path / "klue", {"model": encoder}), tmp_path / "out")
    folders = [tmp_path / "out" / name / "model" / "seed-1" for name in names]
    klue, mine = (json.loads((folder / "scores.json").read_text("utf-8")) for folder in folders)
    theirs, ours = (
        [json.loads(line)["prediction"] for line in (folder / "predictions.jsonl").read_text("utf-8").splitlines()]
        for folder in folders
    )
    shared = klue["scores"].keys() & mine["scores"].keys()
    assert shared
    assert klue["losses"] == mine["losses"]
    assert theirs == ours
    assert (folders[1] / "predictions.jsonl").stat().st_mode & 0o777 == 0o600  # may quote texts of the user
    assert {name: klue["scores"][name] for name in shared} == {name: mine["scores"][name] for name in shared}
    assert mine["own"]["kind"] == own.kind
    again = custom_task(json.loads(json.dumps(mine["own"])))  # as a kept model carries it
    assert again.custom == mine["own"]
    assert [example.gold for example in again.read(files["dev"])] == [e.gold for e in TASKS[task].read(
        tmp_path / "klue" / TASKS[task].files.dev)] or task == "klue-mrc"  # fmt: skip


def put(path: Path, text: str) -> Path:
    content = text.encode()
    packed = {".gz": gzip.compress, ".zst": zstandard.compress}.get(path.suffix, lambda data: data)
    path.write_bytes(packed(content))
    return path


def make(kind: str, path: Path, **columns: Any) -> Any:
    """The task of a file that trains and is scored."""
    return custom_task(define("mine", CustomTask(kind=kind, train=str(path), dev=str(path), **columns)))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", 'text,label\n"금리, 내렸다",좋음\n비가 온다,1\n'),
        ("a.csv.gz", "\ufefftext,label\r\n\"금리, 내렸다\",좋음\r\n비가 온다,1\r\n"),
        ("a.tsv.zst", "text\tlabel\n금리, 내렸다\t좋음\n비가 온다\t1\n"),
        ("a.jsonl", '{"text": "금리, 내렸다", "label": "좋음"}\n\n{"text": "비가 온다", "label": 1}\n'),
        ("a.json", '{"data": [{"text": "금리, 내렸다", "label": "좋음"}, {"text": "비가 온다", "label": 1}]}'),
    ],
)  # fmt: skip
def test_a_table_in_any_layout_holds_the_same_examples(name: str, text: str, tmp_path: Path) -> None:
    task = make("label", put(tmp_path / name, text))
    examples = task.read(tmp_path / name)
    assert task.custom["labels"] == ["1", "좋음"]
    assert [(example.inputs, example.gold) for example in examples] == [
        ({"text": "금리, 내렸다"}, "좋음"), ({"text": "비가 온다"}, "1"),
    ]  # fmt: skip
    with pytest.raises(BadInput, match="only files of KLUE tasks have an official format"):
        task.write(tmp_path / name, {example.guid: "1" for example in examples}, tmp_path / "predicted.csv")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.csv", "comment,label\n비가 온다,1\n", "line 2: no column 'text'; there are comment, label"),
        ("a.csv", "text,label\n비가, 온다,1\n", "line 2: 3 cells, but the first line names 2 columns"),
        ("a.csv", 'text,label\n"비가" 온다,1\n', "not readable as CSV"),
        ("a.csv", "text,text\n비,1\n", "line 1: two columns of one name"),
        ("a.csv", "text,label\n", "no rows in it"),
        ("a.csv", "", "no rows in it"),
        ("a.csv", "text,label\n ,1\n", "line 2: column 'text' should hold a text"),
        ("a.csv", "text,label\n비,\n", "line 2: column 'label' should hold a text"),
        ("a.csv", "text,label\n비,1\n눈,1\n", "1 different labels, '1' in column 'label'; expected 2 to 1,000"),
        ("a.jsonl", '{"text": "비", "label": "1"}\n{"text": "눈"}\n', "line 2: no 'label', which other rows have"),
        ("a.jsonl", '{"text": "비", "label": "1"\n', "line 1: broken JSON"),
        ("a.jsonl", '["비"]\n', "line 1: expected a JSON object, found"),
        ("a.jsonl", '{"text": 3, "label": "1"}\n', "line 1: column 'text' should hold a text, found 3"),
        ("a.xlsx", "text,label\n", "expected a file named .csv, .tsv"),
        ("a.json", '{"text": ["비"]}', "expected a JSON list of objects"),
    ],
)
def test_a_wrong_table_is_answered_with_file_and_line(name: str, text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        make("label", put(tmp_path / name, text))
    assert str(error.value).startswith(str(tmp_path / name))
    assert says in str(error.value)


def test_a_label_that_training_lacks_is_named_with_its_line(tmp_path: Path) -> None:
    task = make("label", put(tmp_path / "train.csv", "text,label\n비,좋음\n눈,나쁨\n"))
    with pytest.raises(BadInput, match=r"dev.csv, line 3: no label '좋움' in training; there are 나쁨, 좋음"):
        task.read(put(tmp_path / "dev.csv", "text,label\n비,좋음\n눈,좋움\n"))


ENTITIES = {
    "a.conll": "-DOCSTART- -X- O\n\n# id = 1 of 2\n김하나 NNP B-PS\n서울에 NNP I-LC\n산다 VV O\n",
    "b.tsv": "tokens\ttags\n김하나 서울에 산다\tS-PS B-LC O\n",
    "c.jsonl": '{"tokens": ["김하나", "서울에", "산다"], "tags": ["B-PS", "U-LC", "O"]}\n',
    "d.jsonl": '{"text": "김하나 서울에 산다", "spans": [[0, 3, "PS"], {"start": 4, "end": 7, "label": "LC"}]}\n',
}


@pytest.mark.parametrize("name", ENTITIES)
def test_entities_are_read_from_words_and_from_spans(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = put(tmp_path / name, ENTITIES[name])
    columns = {"text": "text", "spans": "spans"} if name == "d.jsonl" else {}
    with caplog.at_level(logging.WARNING):
        task = make("tagging", path, **columns)
    (example,) = task.read(path)
    assert example.inputs == {"text": "김하나 서울에 산다"}
    assert example.gold == ["B-PS", "I-PS", "I-PS", "B-LC", "I-LC", "I-LC", "O", "O"]
    assert task.custom["labels"] == ["LC", "PS"]
    assert any("1 entities begin with I-" in line for line in caplog.messages) == (name == "a.conll")
    assert task.score([Row("", example.gold, example.gold)]) == {"entity_macro_f1": 100, "entity_micro_f1": 100}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([*"비가 온다", "❤️", "👨‍👩‍👧"], "비가 온다❤️👨‍👩‍👧"),
        ([*"비가 온다", *"눈이 온다", "ᄒᆞᆫ"], "비가 온다눈이 온다ᄒᆞᆫ"),
        ([unicodedata.normalize("NFD", letter) for letter in "비가 온다"], "비가 온다"),
        (["나", "는", "비가", "좋다", "."], "나 는 비가 좋다 ."),
    ],
)
def test_one_odd_character_does_not_make_letters_words(words: list[str], text: str, tmp_path: Path) -> None:
    row = {"tokens": words, "tags": ["B-PS", *["O"] * (len(words) - 1)]}
    (example,) = make("tagging", path := put(tmp_path / "a.jsonl", json.dumps(row) + "\n")).read(path)
    assert example.inputs == {"text": text}
    assert len(example.gold) == len("".join(text.split()))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.conll", "김하나 PS\n", "line 1: tag 'PS'; expected O, B-TYPE or I-TYPE"),
        ("a.jsonl", '{"tokens": ["김", "이"], "tags": ["O"]}\n', "line 1: 2 words but 1 tags"),
        ("a.jsonl", '{"tokens": "", "tags": ""}\n', "line 1: column 'tokens' should hold words"),
        ("a.conll", "\n\n", "no word in it"),
    ],
)
def test_wrong_tags_are_answered_with_file_and_line(name: str, text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=says):
        make("tagging", put(tmp_path / name, text))


@pytest.mark.parametrize("spans", ['[[0, 99, "PS"]]', '[[1, 1, "PS"]]', '[[0, 2, "PS"], [1, 3, "LC"]]', '"x"', "[[0]]"])
def test_a_span_outside_its_text_or_over_another_is_refused(spans: str, tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", f'{{"text": "김하나 왔다", "spans": {spans}}}\n')
    with pytest.raises(BadInput, match="line 1: "):
        make("tagging", path, text="text", spans="spans")


def test_offsets_into_text_in_nfd_are_moved(tmp_path: Path) -> None:
    text = unicodedata.normalize("NFD", "김하나 왔다")
    end = len(unicodedata.normalize("NFD", "김하나"))
    row = {
        "text": text,
        "spans": [[0, end, "PS"]],
        "context": text,
        "question": "누가?",
        "answer": text[:end],
        "start": 0,
    }
    path = put(tmp_path / "a.jsonl", json.dumps(row) + "\n")
    (example,) = make("tagging", path, text="text", spans="spans").read(path)
    assert example.gold == ["B-PS", "I-PS", "I-PS", "O", "O"]
    (example,) = make("span", path).read(path)
    assert example.gold["answers"] == ["김하나"]


def test_answers_are_found_where_they_are_clear(tmp_path: Path) -> None:
    squad = {"data": [{"paragraphs": [{"context": "비가 온다.", "qas": [
        {"id": "q1", "question": "무엇이?", "answers": [{"text": "비", "answer_start": 0}]}]}]}]}  # fmt: skip
    (example,) = make("span", path := put(tmp_path / "korquad.json", json.dumps(squad)), guid="id").read(path)
    assert (example.guid, example.gold["answers"], example.inputs["start"]) == ("q1", ["비"], 0)
    path = put(tmp_path / "a.csv", "question,context,answer\n무엇이?,비가 온다.,비\n누가?,비가 온다.,\n")
    clear, none = make("span", path).read(path)
    assert (clear.inputs["start"], none.gold["answers"]) == (0, [])
    unclear = put(tmp_path / "b.csv", "question,context,answer\n무엇이?,비가 오고 비가 간다.,비\n")
    with pytest.raises(BadInput, match=r"b.csv, line 2: answer '비' occurs 2 times in its passage"):
        make("span", unclear).read(unclear)


def test_correlations_are_those_of_scipy() -> None:
    rng = np.random.default_rng(3)
    gold, found = np.round(rng.normal(size=40), 1), np.round(rng.normal(size=40), 1)  # with ties
    scores = score_numbers([Row("", *pair) for pair in zip(gold.tolist(), found.tolist(), strict=True)])
    assert scores["spearmanr"] == pytest.approx(100 * spearmanr(gold, found).statistic)
    assert scores["pearsonr"] == pytest.approx(100 * np.corrcoef(gold, found)[0, 1])


@pytest.mark.parametrize(
    ("name", "own", "says"),
    [
        ("NER", {"kind": "label", "dev": "a.csv"}, "NER: KLUE has a task klue-ner; choose another name"),
        ("tc", {"kind": "label", "dev": "a.csv"}, "KLUE has a task ynat"),
        ("a.b", {"kind": "label", "dev": "a.csv"}, "use letters, digits, _ and -"),
        ("mine", {"kind": "pair", "dev": "a.csv"}, "kind pair needs two columns under text"),
        ("mine", {"kind": "label", "text": ["a", "b"], "dev": "a.csv"}, "kind label needs one column under text"),
        ("mine", {"kind": "pair", "text": ["a", "a"], "dev": "a.csv"}, "a column is named twice in a, a"),
        ("mine", {"kind": "label", "labels": ["True", "true"], "dev": "a.csv"}, "True and true are one label"),
        ("mine", {"kind": "pair", "text": ["a", "b"], "labels": [False, "a"], "dev": "a.csv"}, "a label is a text"),
        ("mine", {"kind": "span", "text": "a", "dev": "a.csv"}, "kind span has question, context"),
        ("mine", {"kind": "label", "labels": ["a", "a"], "dev": "a.csv"}, "a label is listed twice"),
        ("mine", {"kind": "label", "labels": [1, "1"], "dev": "a.csv"}, "a label is listed twice"),
        ("mine", {"kind": "label", "labels": [True, False], "dev": "a.csv"}, "a label is a text; put yes, no"),
        ("mine", {"kind": "label", "labels": ["a", 0.5], "dev": "a.csv"}, "a label is a text; put yes, no"),
        ("mine", {"kind": "class", "dev": "a.csv"}, "Input should be 'label', 'pair'"),
        ("mine", {"kind": "label"}, "dev"),
    ],
)
def test_a_wrong_definition_is_refused(name: str, own: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as error:
        FinetuneConfig(custom={name: own})
    assert says in str(error.value)


def test_custom_tasks_run_with_those_of_klue(tmp_path: Path) -> None:
    own = {"mine": {"kind": "label", "train": str(tmp_path / "a.csv"), "dev": str(tmp_path / "b.csv")}}
    assert FinetuneConfig(custom=own).tasks == ("mine",)
    config = FinetuneConfig(custom=own, tasks=("ner", "mine"), overrides={"mine": {"epochs": 1}})
    assert config.tasks == ("klue-ner", "mine")
    with pytest.raises(BadInput, match=r"missing klue-ner-v1.1/klue-ner-v1.1_train.tsv, \S+_dev.tsv \(plain"):
        checks(config, tmp_path, {})["KLUE files"]()
    put(tmp_path / "a.csv", "text,label\n비,1\n눈,2\n")
    assert task_of("mine", config).files.of("dev") == str(tmp_path / "b.csv")
    with pytest.raises(ValidationError, match="no such task"):
        FinetuneConfig(custom=own, tasks=("mien",))


@pytest.mark.parametrize(
    "definition", [7, {}, {"name": "x", "kind": "label"}, {"name": "x", "kind": "label", "labels": 3}]
)
def test_a_damaged_definition_of_a_kept_model_is_explained(definition: Any) -> None:
    with pytest.raises(BadInput, match=r"malmoi.json: own"):
        custom_task(definition, "malmoi.json")
