"""KLUE tasks as llm-kr-eval files: gold answers score 100, and no training file has a dev example."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpus.documents.errors import BadInput
from finetune.data.files import find_file
from finetune.generative.exports import export_kr_eval
from finetune.generative.kr_eval.metrics import measure
from finetune.generative.kr_eval.run import clean, detect_form, parse_gold, read_task_file
from finetune.generative.prompts import PROMPTS
from finetune.registry import TASKS
from finetune.task_names import klue_facts
from launch.sample.unpack import unpack


@pytest.fixture(scope="module")
def klue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sample")
    unpack(out)
    return out / "klue"


def gold_scores(path: Path) -> dict[str, float]:
    """Each metric of a file whose samples are answered with their gold."""
    task = read_task_file(path)
    form = detect_form(task)
    cleaned = [clean(gold) for gold in task.golds]
    answers = [form.parse(answer, "") for answer in cleaned]
    assert None not in answers, f"{task.name}: a gold that is not parsed"
    assert form.is_exact is None or all(map(form.is_exact, cleaned))
    texts = [answer or "" for answer in answers]
    golds = [parse_gold(form, gold) for gold in task.golds]
    return {metric: measure(metric, golds, texts, samples=0)["value"] for metric in task.metrics}


@pytest.mark.parametrize("task", PROMPTS)
def test_exported_files_answered_with_their_golds_score_100(task: str, klue: Path, tmp_path: Path) -> None:
    counts = export_kr_eval(task, klue, tmp_path)
    test = tmp_path / "evaluation" / "test" / f"{PROMPTS[task].file_name}.json"
    dev = tmp_path / "evaluation" / "dev" / test.name
    tuning = tmp_path / "tuning" / "train" / test.name
    assert gold_scores(test) == pytest.approx(dict.fromkeys(klue_facts(task)["kr_eval_metrics"], 100))
    found = read_task_file(test)
    assert (len(found.samples), len(found.few_shots)) == (counts["samples"], counts["few-shot"])
    assert counts["few-shot"] == 4 and found.instruction == PROMPTS[task].instruction
    records = json.loads(tuning.read_text("utf-8"))
    assert len(records) == counts["tuning"] > 0
    asked = {sample.input for sample in found.samples}
    shown = {shot.input for shot in found.few_shots} | {sample.input for sample in read_task_file(dev).samples}
    assert not asked & shown and not asked & {record["input"] for record in records}


def test_a_dev_example_among_those_for_training_is_left_out_and_counted(klue: Path, tmp_path: Path) -> None:
    folder = tmp_path / "klue" / "klue-nli-v1.1"
    folder.mkdir(parents=True)
    records = {
        split: json.loads((find_file(klue, TASKS["klue-nli"].files.of(split)) or klue).read_text("utf-8"))
        for split in ("train", "dev")
    }
    records["train"].append({**records["dev"][0], "guid": "klue-nli-v1_train_99999"})
    for split, found in records.items():
        (folder / f"klue-nli-v1.1_{split}.json").write_text(json.dumps(found, ensure_ascii=False), "utf-8")
    counts = export_kr_eval("klue-nli", tmp_path / "klue", tmp_path / "out", samples=3)
    assert counts["left out"] == 1 and counts["samples"] == 3
    assert counts["few-shot"] + counts["tuning"] + 10 == len(records["train"]) - 1


def test_the_same_seed_writes_the_same_files(klue: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        export_kr_eval("ynat", klue, tmp_path / name, seed=seed)
    a, b, c = ((tmp_path / name / "evaluation" / "test" / "klue_ynat.json").read_bytes() for name in "abc")
    assert a == b != c


def test_a_folder_without_the_train_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"klue-nli-v1\.1/klue-nli-v1\.1_dev\.json \(or \.zst\) is missing"):
        export_kr_eval("klue-nli", tmp_path, tmp_path / "out")
