"""Tasks of a user's own: each kind gives what the KLUE task of its kind gives, and wrong files get one sentence."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from finetune import job
from finetune.config import FinetuneConfig, OwnTask
from finetune.registry import TASKS
from finetune.run import FinetuneInputs, run
from finetune.tasks.labels import NLI_LABELS, YNAT_LABELS
from finetune.tasks.own import definition_of, own_task

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
    own = OwnTask(**COPIES[task], **guid, **{split: str(path) for split, path in files.items()})
    seed = job.seed_everything  # draws by the name of the task, too
    monkeypatch.setattr(job, "seed_everything", lambda number, name: seed(number, "same"))
    names = (task, "mine")
    hyperparameters = {"epochs": 2, "lr": 1e-3, "batch_size": 4, "max_tokens": 32}
    config = FinetuneConfig(
        own={"mine": own}, tasks=names, seeds=(1,), bootstrap_samples=2,
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
    assert {name: klue["scores"][name] for name in shared} == {name: mine["scores"][name] for name in shared}
    assert mine["own"]["kind"] == own.kind
    again = own_task(json.loads(json.dumps(mine["own"])))  # as a kept model carries it
    assert definition_of(again) == mine["own"]
    assert [example.gold for example in again.read(files["dev"])] == [e.gold for e in TASKS[task].read(
        tmp_path / "klue" / TASKS[task].files.dev)] or task == "klue-mrc"  # fmt: skip
