"""The dry run of finetune makes every check of the real run: it finds the same problem, in the same words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.run import FinetuneInputs, prepare
from launch.conduct import conduct
from tests.finetune.conftest import build_tiny_encoder

ROWS = "text,label\n" + "".join(f"{text} {n},{label}\n" for n in range(3) for text, label in (("비", "1"), ("눈", "2")))
OTHER = ROWS.replace(" ", " 새 ")
SPAN = json.dumps({"text": "가람이 왔다", "spans": [[0, 3, "PS"]]}) + "\n"
LABEL, TAGS = {"kind": "label"}, {"kind": "tagging", "text": "text", "spans": "spans"}
# name: the task, its files, and words of the problem
CASES: dict[str, tuple[dict[str, Any], dict[str, str | bytes], str]] = {
    "misspelt column": (LABEL, {"train.csv": ROWS.replace("text", "txet"), "dev.csv": OTHER}, "no column 'text'"),
    "misspelt label": (LABEL, {"train.csv": ROWS, "dev.csv": OTHER.replace("label", "lable")}, "no column 'label'"),
    "another encoding": (
        LABEL,
        {"train.csv": ROWS.encode() + "café,1\n".encode("latin-1"), "dev.csv": OTHER},
        "not UTF-8",
    ),
    "dev is train": (LABEL, {"train.csv": ROWS, "dev.csv": ROWS}, "has all examples"),
    "unseen label": (LABEL, {"train.csv": ROWS, "dev.csv": OTHER + "해,3\n"}, "no label '3' in training"),
    "no label": (LABEL, {"train.csv": ROWS, "dev.csv": "text\n비\n"}, "no column 'label'"),
    "one class": (LABEL, {"train.csv": "text,label\n비,1\n눈,1\n", "dev.csv": OTHER}, "1 different labels"),
    "no train file": (LABEL, {"dev.csv": ROWS}, "finetune.custom.mine.train is missing"),
    "empty file": (LABEL, {"train.csv": "", "dev.csv": ROWS}, "no rows in it"),
    "bad spans": (TAGS, {"train.jsonl": SPAN, "dev.jsonl": SPAN.replace("3", "99")}, "line 1: span"),
    "missing file": (LABEL | {"train": "no.csv"}, {"dev.csv": ROWS}, "no.csv: no such file"),
    "swa too short": (LABEL, {"train.csv": ROWS, "dev.csv": OTHER}, "average=swa starts after epoch"),
}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build_tiny_encoder(tmp_path_factory.mktemp("encoder"), [ROWS, OTHER])[0]


@pytest.mark.parametrize("name", CASES)
def test_dry_run_stage_and_real_run_refuse_alike(
    name: str, encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, files, says = CASES[name]
    for file, content in files.items():
        (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    own = own | {Path(file).stem: str(tmp_path / file) for file in files}
    hyperparameters = {"average": "swa", "epochs": 1} if "swa" in name else {"epochs": 1}
    settings = {"models": [encoder], "custom": {"mine": own}, "overrides": {"mine": hyperparameters}, "device": "cpu"}
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(json.dumps({"finetune": settings}), "utf-8")
    with pytest.raises(SystemExit) as ended:
        conduct("finetune", str(recipe), [], tmp_path / "runs", dry_run=True)
    shown = capsys.readouterr().out
    with pytest.raises(ValueError) as real:
        conduct("finetune", str(recipe), [], tmp_path / "runs", dry_run=False)
    assert ended.value.code == 2 and says in str(real.value)
    assert "1 problem would stop this run" in shown and str(real.value) in shown
    assert not (tmp_path / "runs").exists()
    if name != "missing file":  # found with the inputs of the stage
        with pytest.raises(BadInput) as stage:
            prepare(FinetuneConfig.model_validate(settings), FinetuneInputs(tmp_path, {encoder: encoder}))
        assert str(stage.value) == str(real.value)
