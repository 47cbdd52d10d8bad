"""Models kept by trainings: what is in the folder, that they predict as in the training, and which of them stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from finetune.config import FinetuneConfig, ProtocolName
from finetune.data.split import load_data
from finetune.job import to_rows
from finetune.kept.load import Kept, load_kept
from finetune.registry import TASKS, task_of
from finetune.run import FinetuneInputs, run
from finetune.score.scores import read_rows
from finetune.train.predict import predict
from finetune.use.predict import predict_official
from launch.sample.unpack import read_archive
from tests.finetune.conftest import build_tiny_encoder

LONGEST = {"klue-mrc": 128, "wos": 96}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded sample: all eight tasks about one invented world."""
    home = tmp_path_factory.mktemp("sample")
    for name, content in read_archive("klue.tar.zst").items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(content)
    return home / "klue"


@pytest.fixture(scope="module")
def inputs(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> FinetuneInputs:
    text = "".join(path.read_text("utf-8") for path in sample.rglob("*dev*"))
    folder, _ = build_tiny_encoder(tmp_path_factory.mktemp("encoder"), [text])
    return FinetuneInputs(sample, {"model": folder})


def configure(*tasks: str, **settings: Any) -> FinetuneConfig:
    overrides = {task: {"epochs": 1, "max_tokens": LONGEST.get(task, 64)} for task in tasks}
    defaults = {"seeds": (1,), "bootstrap_samples": 0, "max_train_examples": 8, "max_dev_examples": 12}
    return FinetuneConfig(**{**defaults, "tasks": tasks, "overrides": overrides, **settings})


def predict_again(kept: Kept, config: FinetuneConfig, data: Path) -> list[Any]:
    """What a kept model says of the examples that its training was scored on, as lines of predictions.jsonl."""
    examples = load_data(task_of(kept.task.name, config), data, config).scored
    features = kept.task.featurize(examples, kept.tokenizer, kept.settings["max_tokens"], False)
    raws = predict(kept.task, kept.model, features, int(kept.tokenizer.pad_token_id), kept.settings["precision"])
    return to_rows(examples, kept.task.decode(examples, features, raws))


@pytest.fixture
def one_thread() -> Any:
    """As trainings on a processor have it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("protocol", ["malmoi", pytest.param("klue-baseline", marks=pytest.mark.matrix)])
def test_kept_models_of_all_tasks_predict_what_their_training_predicted(
    protocol: ProtocolName, inputs: FinetuneInputs, tmp_path: Path, one_thread: None
) -> None:
    config = configure(*TASKS, protocol=protocol, pos_tags=protocol == "malmoi")
    run(config, inputs, tmp_path)
    for task in TASKS:
        folder = tmp_path / task / "model" / "seed-1"
        kept = load_kept(folder / "model", "cpu")
        assert predict_again(kept, config, inputs.data) == read_rows(folder / "predictions.jsonl"), task
        predicted = {result["guid"]: result for result in predict_official(kept, inputs.data / kept.task.files.dev)}
        for row in read_rows(folder / "predictions.jsonl"):  # among all examples of the file, so in other batches
            wanted = pytest.approx(row.prediction, abs=1e-5) if task == "klue-sts" else row.prediction
            assert predicted[row.guid]["prediction"] == wanted, task
        assert kept.settings["scores"] == json.loads((folder / "scores.json").read_text("utf-8"))["scores"]
