"""Every task learns a few examples by heart: the trained targets are what decoding needs.

The bar is the score of perfect outputs for the same features (gold, features, decode): 100, but where a tokenizer or a
window loses something.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from finetune.config import Hyperparameters
from finetune.data.files import find_file
from finetune.encoder.loading import load_tokenizer
from finetune.examples import Example, Feature, to_rows
from finetune.registry import find_task
from finetune.task import Task
from finetune.train.batched_prediction import predict
from finetune.train.trainer import seed_everything, train
from launch.sample.unpack import read_archive
from tests.finetune.conftest import build_tiny_encoder, certain
from tests.finetune.tasks.dp.test_task import raws_of as perfect_trees
from tests.finetune.tasks.mrc.perfect_spans import raws_of as perfect_spans


class Setting(NamedTuple):
    epochs: int
    lr: float = 3e-3
    max_tokens: int = 200
    batch_size: int = 8
    initializer_range: float = 0.1


SETTINGS = {
    "ynat": Setting(15), "klue-sts": Setting(50), "klue-nli": Setting(20), "klue-ner": Setting(40),
    "klue-re": Setting(30), "klue-dp": Setting(40), "klue-mrc": Setting(25),
    "wos": Setting(50, batch_size=4, initializer_range=0.02),
}  # fmt: skip
EXAMPLES = 16


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    for name, content in read_archive("klue.tar.zst").items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def texts_of(example: Example) -> str:
    return str({key: value for key, value in example.inputs.items() if key != "ontology"}) + str(example.gold)


def is_near_the_border(example: Example) -> bool:
    """A similarity of 3 and just below are two classes of the F1 of KLUE-STS."""
    return isinstance(example.gold, float) and abs(example.gold - 3) < 0.2


def perfect_raws(task: Task, features: Sequence[Feature], model: Any) -> list[Any]:
    """The outputs of a model that knows every target."""
    if task.name == "klue-sts":
        return [feature["label"] for feature in features]
    if task.name == "klue-ner":
        return [certain([max(tag, 0) for tag in feature["tags"]]) for feature in features]
    if task.name == "klue-dp":
        return list(perfect_trees(features))
    if task.name == "klue-mrc":
        return list(perfect_spans(features))
    if task.name == "wos":
        return [
            {"gates": f["gates"], "values": {model.names[s]: model.spell(ids[:-1]) for s, ids in f["targets"].items()}}
            for f in features
        ]
    return [np.eye(30)[feature["label"]] for feature in features]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_task_learns_its_examples_up_to_the_ceiling_of_its_round_trip(
    name: str, sample: Path, tmp_path: Path
) -> None:
    task, setting = find_task(name), SETTINGS[name]
    examples = [e for e in task.read(find_file(sample, task.files.train)) if not is_near_the_border(e)][:EXAMPLES]
    sizes: dict[str, Any] = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "initializer_range": setting.initializer_range,
    }
    folder, _ = build_tiny_encoder(tmp_path, map(texts_of, examples), **sizes)
    tokenizer = load_tokenizer(folder, task.special_tokens)
    features = task.featurize(examples, tokenizer, setting.max_tokens, True)
    seed = seed_everything(1, name)
    model = task.model(folder, tokenizer)
    settings = Hyperparameters(lr=setting.lr, epochs=setting.epochs, batch_size=setting.batch_size)
    train(task, model, features, settings, seed, 0, uses_cpu=True)
    ceiling, learnt = (
        task.score(to_rows(examples, task.decode(examples, features, raws)))
        for raws in (perfect_raws(task, features, model), predict(task, model, features, 0))
    )
    for metric in task.metrics:
        assert ceiling[metric] > 90
        assert learnt[metric] >= ceiling[metric] - 0.5, metric
