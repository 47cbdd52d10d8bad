"""ONNX of the label tasks: the same outputs as the stage's predictions; other tasks and folders are refused."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

from corpus.documents.errors import BadInput
from finetune.run import FinetuneInputs, run
from finetune.saved_models import export
from finetune.saved_models.load import load_model
from tests.finetune.saved_models.conftest import configure

LABEL_TASKS = ("ynat", "klue-sts", "klue-nli", "klue-ner", "klue-re")
needs_onnx = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in export.PACKAGES), reason="needs malmoi[onnx]"
)


def probabilities(folder: Path, texts: list[str]) -> np.ndarray:
    import onnxruntime

    kept = load_model(folder.parent / "model", "cpu")
    batch = kept.tokenizer(texts, padding=True, return_tensors="np", return_token_type_ids=True)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {wanted.name: batch[wanted.name].astype(np.int64) for wanted in session.get_inputs()})
    exponents = np.exp(logits - logits.max(-1, keepdims=True))
    return exponents / exponents.sum(-1, keepdims=True)


@needs_onnx
def test_onnx_gives_the_probabilities_of_the_kept_model(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(trained / "ynat" / "model" / "seed-1" / "model", folder)
    assert export.export_onnx(str(folder), tmp_path / "onnx") < 1e-4
    texts = ["서울에 비", "한빛은행 금리 인하 서울 경제 뉴스", "가"]
    kept = load_model(folder, "cpu")
    expected = kept.model.predict(**kept.tokenizer(texts, padding=True, return_tensors="pt"))
    assert probabilities(tmp_path / "onnx", texts) == pytest.approx(np.stack(expected), abs=1e-4)


@needs_onnx
@pytest.mark.matrix
@pytest.mark.parametrize("task", LABEL_TASKS)
def test_every_label_task_goes_to_onnx(task: str, sample_inputs: FinetuneInputs, tmp_path: Path) -> None:
    run(configure(task), sample_inputs, tmp_path)
    assert export.export_onnx(str(tmp_path / task / "model" / "seed-1"), tmp_path / "onnx") < 1e-4


def test_what_cannot_be_exported_is_told(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PACKAGES", ("json", "no_such_package"))
    with pytest.raises(BadInput, match=r"ONNX needs no_such_package; run: pip install 'malmoi\[onnx\]'"):
        export.export_onnx(str(trained / "ynat" / "model" / "seed-1"), tmp_path / "onnx")
    monkeypatch.setattr(export, "PACKAGES", ())
    with pytest.raises(BadInput, match="a model for klue-dp, which has no stock class"):
        export.export_onnx(str(trained / "klue-dp" / "model" / "seed-1"), tmp_path / "onnx")
    with pytest.raises(BadInput, match="exists already; name a new folder"):
        export.export_onnx(str(trained / "ynat" / "model" / "seed-1"), tmp_path)
