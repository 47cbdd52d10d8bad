"""ONNX and INT8 of encoders and label tasks: outputs as of torch, scores in the card; other models are refused."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

from corpus.documents.errors import BadInput
from finetune.inference import onnx_export as export
from finetune.run import FinetuneInputs, run
from finetune.saved_models.load import load_model
from tests.finetune.saved_models.conftest import configure

LABEL_TASKS = ("ynat", "klue-sts", "klue-nli", "klue-ner", "klue-re")
pytestmark = pytest.mark.usefixtures("one_export")
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
    again = load_model(tmp_path / "onnx")  # as `malmoi predict` and `malmoi serve` load it
    found = again.model.predict(**again.tokenizer(texts, padding=True, return_tensors="pt"))
    assert np.stack(found) == pytest.approx(np.stack(expected), abs=1e-4)
    (tmp_path / "onnx" / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(BadInput, match="changed since it was saved"):
        load_model(tmp_path / "onnx")


@needs_onnx
@pytest.mark.parametrize("int8", ["dynamic", "weights"])
def test_int8_is_smaller_and_its_card_has_the_scores(
    int8: export.Int8, trained: Path, sample_inputs: FinetuneInputs, tmp_path: Path
) -> None:
    folder = trained / "ynat" / "model" / "seed-1"
    (dev,) = sample_inputs.data.rglob("ynat*dev*")
    export.export_onnx(str(folder), tmp_path / "onnx", int8, dev)
    card = (tmp_path / "onnx" / "README.md").read_text("utf-8")
    forms = [line.split(" | ") for line in card.splitlines() if line.startswith(("| torch", "| ONNX"))]
    assert [form[0] for form in forms] == ["| torch", "| ONNX", f"| ONNX INT8, {int8}"]
    assert all(form[2] == forms[0][2] for form in forms[:2])
    assert float(forms[2][1]) < float(forms[1][1])
    texts = ["서울에 비", "한빛은행 금리 인하 서울 경제 뉴스", "가"]
    kept = load_model(folder, "cpu")
    expected = kept.model.predict(**kept.tokenizer(texts, padding=True, return_tensors="pt"))
    shutil.copytree(folder / "model", tmp_path / "model")
    assert probabilities(tmp_path / "onnx", texts) == pytest.approx(np.stack(expected), abs=0.02)


@needs_onnx
def test_a_pretrained_encoder_gives_the_states_of_torch(sample_inputs: FinetuneInputs, tmp_path: Path) -> None:
    import onnxruntime
    from transformers import AutoModel, AutoTokenizer

    name = str(sample_inputs.models["model"])
    assert export.export_onnx(name, tmp_path / "onnx") < 1e-4
    session = onnxruntime.InferenceSession(str(tmp_path / "onnx" / "model.onnx"))
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "onnx")
    batch = tokenizer(["서울에 비", "가"], padding=True, return_tensors="pt", return_token_type_ids=True)
    (states,) = session.run(["last_hidden_state"], {i.name: batch[i.name].numpy() for i in session.get_inputs()})
    expected = AutoModel.from_pretrained(name)(**batch).last_hidden_state.detach().numpy()
    assert states == pytest.approx(expected, abs=1e-4)
    with pytest.raises(BadInput, match="a pretrained encoder has no scores"):
        export.export_onnx(name, tmp_path / "other", dev=tmp_path)


@needs_onnx
@pytest.mark.matrix
@pytest.mark.parametrize("task", LABEL_TASKS)
def test_every_label_task_goes_to_onnx(task: str, sample_inputs: FinetuneInputs, tmp_path: Path) -> None:
    run(configure(task), sample_inputs, tmp_path)
    assert export.export_onnx(str(tmp_path / task / "model" / "seed-1"), tmp_path / "onnx") < 1e-4


def test_models_that_cannot_be_exported_are_reported(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PACKAGES", ("json", "no_such_package"))
    with pytest.raises(BadInput, match=r"ONNX needs no_such_package; run: pip install 'malmoi\[onnx\]'"):
        export.export_onnx(str(trained / "ynat" / "model" / "seed-1"), tmp_path / "onnx")
    monkeypatch.setattr(export, "PACKAGES", ())
    with pytest.raises(BadInput, match="a model for klue-dp, which has no stock class"):
        export.export_onnx(str(trained / "klue-dp" / "model" / "seed-1"), tmp_path / "onnx")
    with pytest.raises(BadInput, match="exists already; name a new folder"):
        export.export_onnx(str(trained / "ynat" / "model" / "seed-1"), tmp_path)
