"""Round trips through the files of four annotation tools: nothing is lost or moved."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from corpus.documents.atomic_files import read_bytes
from corpus.documents.errors import BadInput
from finetune.annotation.folder import Item, read_gold, read_items, read_votes
from finetune.annotation.forms import Answer, to_python_offsets
from finetune.annotation.settle import settle
from finetune.annotation.split import row_of
from finetune.annotation.take_in import take_in
from finetune.annotation.tools import TOOLS, hand_out, reader_of
from finetune.registry import TASKS
from finetune.tasks.ner.task import find_entities
from tests.finetune.annotation.exports import EXPORTS
from tests.finetune.annotation.folders import make_folder, topics

NER_LABELS = ["PS", "LC", "OG", "DT", "TI", "QT"]
Labelled = list[tuple[Item, Any]]  # items and the values of their votes
FEW = 200


@cache
def klue_ner(path: Path) -> Labelled:
    found = []
    for example in TASKS["klue-ner"].read(path):
        text = example.inputs["text"]
        spans = [[begin, end, kind.strip("()")] for kind, begin, end in find_entities(text, example.gold)]
        found.append((Item(example.guid, "klue", {"text": text}), spans))
    return found


@cache
def klue_mrc(path: Path) -> Labelled:
    found = []
    for article in json.loads(read_bytes(path, 1 << 28))["data"]:
        for paragraph in article["paragraphs"]:
            for qa in paragraph["qas"]:
                answers = [[a["answer_start"], a["answer_start"] + len(a["text"])] for a in qa["answers"]]
                texts = {"context": paragraph["context"], "question": qa["question"]}
                found.append((Item(qa["guid"], "klue", texts), sorted(answers if not qa["is_impossible"] else [])))
    return found


@cache
def klue_re(path: Path) -> Labelled:
    found = []
    for record in json.loads(read_bytes(path, 1 << 28)):
        spans = tuple(
            (
                record[f"{role}_entity"]["start_idx"],
                record[f"{role}_entity"]["end_idx"] + 1,
                f"{role}:{record[f'{role}_entity']['type']}",
            )
            for role in ("subject", "object")
        )
        found.append((Item(record["guid"], record["source"], {"text": record["sentence"]}, spans), record["label"]))
    return found


FILES = {
    "ner": ("data/klue/official/klue-ner-v1.1/klue-ner-v1.1_dev.tsv.zst", klue_ner),
    "mrc": ("data/klue/derived/klue-mrc-v1.1/klue-mrc-v1.1_dev.json.zst", klue_mrc),
    "re": ("data/klue/official/klue-re-v1.1/klue-re-v1.1_dev.json.zst", klue_re),
}


def answer_of(task: str, item: Item, value: Any) -> Answer:
    if task == "re":
        return Answer(item.id, "kim", value, [], {}, [])
    spans = [(s[0], s[1], s[2] if task == "ner" else "answer") for s in value]
    return Answer(item.id, "kim", None, spans, {}, [])


def round_trip(folder: Path, task: str, tool: str, labelled: Labelled) -> None:
    labels = sorted({value for _, value in labelled}) if task == "re" else NER_LABELS if task == "ner" else []
    benchmark = make_folder(folder, [item for item, _ in labelled], task=task, labels=labels, votes=1)
    assert hand_out(benchmark, folder, tool, len(labelled))["items"] == len(labelled)
    answers = {item.id: answer_of(task, item, value) for item, value in labelled}
    (folder / "export").mkdir()
    export = EXPORTS[tool](folder / "hand-out" / tool / "batch-001", answers, folder / "export")
    take_in(benchmark, folder, [export], reader_of(tool))
    votes = read_votes(folder)
    assert {item.id: [vote.value for vote in votes[item.id]] for item, _ in labelled} == {
        item.id: [value] for item, value in labelled
    }
    assert [item for item, _ in labelled] == read_items(folder)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("task", FILES)
def test_the_first_items_of_klue_survive(shared: Callable[[str], Path], tmp_path: Path, task: str, tool: str) -> None:
    name, read = FILES[task]
    round_trip(tmp_path, task, tool, read(shared(name))[:FEW])


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("task", FILES)
def test_all_items_of_klue_survive(shared: Callable[[str], Path], tmp_path: Path, task: str, tool: str) -> None:
    name, read = FILES[task]
    round_trip(tmp_path, task, tool, read(shared(name)))


@pytest.mark.parametrize("tool", ["label-studio", "argilla", "potato"])
def test_hypotheses_that_workers_write_become_items_to_validate(tmp_path: Path, tool: str) -> None:
    premises = [Item(f"p{n}", "s", {"premise": f"전제 {n}이다.", "hypothesis": ""}) for n in range(2)]
    benchmark = make_folder(tmp_path, premises, task="nli", settle={"min_votes": 1})
    hand_out(benchmark, tmp_path, tool, 10)
    boxes = {label: f"{label}인 문장" for label in benchmark.labels}
    answers = {item.id: Answer(item.id, "kim", None, [], boxes, []) for item in premises}
    (tmp_path / "export").mkdir()
    export = EXPORTS[tool](tmp_path / "hand-out" / tool / "batch-001", answers, tmp_path / "export")
    assert take_in(benchmark, tmp_path, [export], reader_of(tool))["votes"] == 6
    written = [item for item in read_items(tmp_path) if item.texts["hypothesis"]]
    assert len(written) == 6 and {item.about["group"] for item in written} == {"p0", "p1"}
    assert hand_out(benchmark, tmp_path, tool, 10)["items"] == 6
    assert settle(benchmark, tmp_path)["values"] == dict.fromkeys(sorted(benchmark.labels), 2)


@pytest.mark.parametrize("tool", TOOLS)
def test_reports_and_pre_tagged_entities(tmp_path: Path, tool: str) -> None:
    item = Item("n", "s", {"text": "😀서울에 산다"}, ((1, 3, "LC"),))
    benchmark = make_folder(tmp_path, [item], task="ner", labels=["LC"])
    hand_out(benchmark, tmp_path, tool, 10)
    project = tmp_path / "hand-out" / tool / "batch-001"
    assert "서울" in "".join(file.read_text("utf-8") for file in sorted(project.rglob("*.json*")))
    reports = [] if tool == "doccano" else ["pii"]
    (tmp_path / "export").mkdir()
    answers = {"n": Answer("n", "kim", None, item.spans, {}, reports)}
    take_in(benchmark, tmp_path, [EXPORTS[tool](project, answers, tmp_path / "export")], reader_of(tool))
    (vote,) = read_votes(tmp_path)["n"]
    assert (vote.value, [*vote.reports]) == ([[1, 3, "LC"]], reports)


def test_batches_overlap_by_the_number_of_votes_and_have_the_pilot_items(tmp_path: Path) -> None:
    pilot = Item("pilot", "s", {"text": "시험 문항"}, (), {"expected": "a"})
    benchmark = make_folder(tmp_path, [*topics(5), pilot], task="tc", labels=["a", "b"])
    assert hand_out(benchmark, tmp_path, "argilla", 2) == {"items": 5, "pilot items": 1, "batches": 3}
    for number, size in ((1, 3), (2, 3), (3, 2)):
        batch = tmp_path / "hand-out/argilla" / f"batch-{number:03}"
        records = json.loads((batch / "records.json").read_text("utf-8"))
        assert records[0]["id"] == "pilot" and len(records) == size
    settings = json.loads((batch / ".argilla/settings.json").read_text("utf-8"))
    assert settings["distribution"]["min_submitted"] == 3


def test_the_configuration_of_label_studio_is_xml_for_any_label(tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path, topics(1), task="tc", labels=['<a & "b">', "정치"])
    hand_out(benchmark, tmp_path, "label-studio", 10)
    view = ElementTree.parse(tmp_path / "hand-out/label-studio/batch-001/config.xml").getroot()
    assert [choice.get("value") for choice in view.findall("Choices[@name='choice']/Choice")] == ['<a & "b">', "정치"]


def test_spans_that_do_not_fit_the_text_are_refused() -> None:
    with pytest.raises(BadInput, match="not '서울'"):
        to_python_offsets("부산에 산다", (0, 2, "LC"), "서울", "export.json, n")


@pytest.mark.parametrize("tool", TOOLS)
def test_another_file_is_refused(tmp_path: Path, tool: str) -> None:
    benchmark = make_folder(tmp_path, topics(1), task="tc", labels=["a"])
    path = tmp_path / "kim.jsonl"
    path.write_text('{"some": "thing"}\n', "utf-8")
    with pytest.raises(BadInput, match="not laid out as the format"):
        take_in(benchmark, tmp_path, [path], reader_of(tool))


def test_rows_of_a_relation_have_marked_entities(tmp_path: Path) -> None:
    item = Item("r", "s", {"text": "이순신은 조선의 장군"}, ((0, 3, "subject:PER"), (5, 7, "object:LOC")))
    benchmark = make_folder(tmp_path, [item], task="re", labels=["per:origin"], votes=1)
    hand_out(benchmark, tmp_path, "doccano", 1)
    (tmp_path / "export").mkdir()
    answers = {"r": Answer("r", "kim", "per:origin", [], {}, [])}
    export = EXPORTS["doccano"](tmp_path / "hand-out/doccano/batch-001", answers, tmp_path / "export")
    take_in(benchmark, tmp_path, [export], reader_of("doccano"))
    settle(benchmark, tmp_path)
    row = row_of(benchmark, item, read_gold(tmp_path)["r"])
    assert row["marked"] == "<subject:PER>이순신</subject>은 <object:LOC>조선</object>의 장군"
    assert row["label"] == "per:origin"


def flat_argilla(rows: list[tuple[str, str | None, str]]) -> list[dict[str, Any]]:
    """A record as ``records.to_list(flatten=True)`` of argilla 2.8 writes it: worker, status and label of responses."""
    workers, statuses, labels = zip(*rows, strict=True)
    key = "choice.responses"
    return [
        {"id": "i0", "status": "pending", "text": "글", key: labels, f"{key}.users": workers, f"{key}.status": statuses}
    ]


def nested_argilla(rows: list[tuple[str, str | None, str]]) -> list[dict[str, Any]]:
    responses = [{"user_id": worker, "value": label} for worker, _, label in rows]
    return [{"id": "i0", "status": "pending", "fields": {"text": "글"}, "responses": {"choice": responses}}]


def label_studio_tasks(rows: list[tuple[str, str | None, str]]) -> list[dict[str, Any]]:
    """A skipped annotation is cancelled; drafts have a list of their own."""
    done, drafts = list[dict[str, Any]](), list[dict[str, Any]]()
    for worker, status, label in rows:
        result = [{"from_name": "choice", "to_name": "text", "type": "choices", "value": {"choices": [label]}}]
        one = {"completed_by": {"id": 1, "email": worker}, "result": result, "was_cancelled": status == "discarded"}
        (drafts if status in ("draft", None) else done).append(one)
    return [{"id": 1, "data": {"id": "i0", "text": "글"}, "annotations": done, "drafts": drafts, "predictions": []}]


RESPONSES = [("kim", "submitted", "a"), ("lee", "draft", "b"), ("park", "discarded", "b"), ("choi", None, "b")]


@pytest.mark.parametrize(("tool", "write", "votes", "warning"), [
    ("argilla", flat_argilla, ["a"], "drafts and discarded responses, which are no votes: 3"),
    ("argilla", nested_argilla, ["a", "b", "b", "b"], "no status here, so drafts count as votes"),
    ("label-studio", label_studio_tasks, ["a"], "annotations that workers skipped, which are no votes: 1"),
])  # fmt: skip
def test_only_submitted_answers_are_votes(
    tool: str, write: Callable[..., Any], votes: list[str], warning: str, tmp_path: Path, caplog: Any
) -> None:
    benchmark = make_folder(tmp_path / "folder", topics(1), task="tc", labels=["a", "b"])
    (tmp_path / "export.json").write_text(json.dumps(write(RESPONSES)), "utf-8")
    take_in(benchmark, tmp_path / "folder", [tmp_path / "export.json"], reader_of(tool))
    assert [vote.value for vote in read_votes(tmp_path / "folder")["i0"]] == votes
    assert warning in caplog.text


@pytest.mark.parametrize(("task", "name", "result", "words"), [
    ("sts", "i0", {"from_name": "choice", "value": {"choices": ["좋음"]}}, "not laid out as the format"),
    ("ner", "i9", {"from_name": "spans", "value": {"start": 0, "end": 1, "labels": ["a"]}}, "no item 'i9'"),
])  # fmt: skip
def test_answers_that_cannot_be_are_refused(
    tmp_path: Path, task: str, name: str, result: dict[str, Any], words: str
) -> None:
    texts = {"sentence1": "글", "sentence2": "말"} if task == "sts" else {"text": "글"}
    benchmark = make_folder(tmp_path, [Item("i0", "s", texts)], task=task, labels=["a"])
    tasks = [{"data": {"id": name}, "annotations": [{"completed_by": 1, "result": [result]}]}]
    (tmp_path / "export.json").write_text(json.dumps(tasks), "utf-8")
    with pytest.raises(BadInput, match=words):
        take_in(benchmark, tmp_path, [tmp_path / "export.json"], reader_of("label-studio"))
