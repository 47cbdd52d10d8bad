"""Recorded results of reading, converting, decoding and scoring the eight KLUE tasks and custom tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from finetune.data.split import hold_out, sample
from finetune.encoder.loading import load_tokenizer
from finetune.examples import Example, Prediction, Row
from finetune.inference.predict import make_result
from finetune.registry import TASKS
from finetune.score.baselines import baselines
from finetune.score.bootstrap import bootstrap, randomize, resample
from finetune.score.scores import find_errors, remarks
from finetune.score.significance import differ, estimate, holm
from finetune.task import Task
from finetune.train.batched_prediction import predict, to_tensors
from launch.recipe import SAMPLE
from launch.sample.unpack import find_klue
from tests.finetune.conftest import build_tiny_encoder
from tests.same_results.recording import check_close, check_recorded, numbers_in

PROTOCOLS = ("malmoi", "klue-baseline")
CASES = [(name, protocol) for name in TASKS for protocol in PROTOCOLS]
COUNT = 60
TEXTS = [bytes((row, cell)).decode("euc-kr") for row in range(0xB0, 0xC9, 2) for cell in range(0xA1, 0xFF, 2)]


@pytest.fixture(scope="module")
def klue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return find_klue(SAMPLE, tmp_path_factory.mktemp("klue"))


def task_of(name: str, protocol: str) -> Task:
    return TASKS[name].with_protocol(protocol)  # type: ignore[arg-type]


def read(task: Task, klue: Path, split: str = "dev") -> list[Example]:
    return task.read(klue / task.files.of(split))[: COUNT if split == "dev" else 3 * COUNT]


def drawn(raw: Any, rng: np.random.Generator) -> Any:
    """Random values in the shape of a raw output."""
    match raw:
        case np.ndarray() if raw.dtype.kind in "iu":
            return rng.integers(0, max(1, int(raw.max(initial=0))) + 1, raw.shape).astype(raw.dtype)
        case np.ndarray():
            return (3 * rng.standard_normal(raw.shape)).astype(raw.dtype)
        case Mapping():
            return {key: drawn(value, rng) for key, value in raw.items()}
        case list() | tuple():
            return type(raw)(drawn(value, rng) for value in raw)
        case float():
            return float(rng.standard_normal())
    return raw


def guessed(task: Task, examples: Sequence[Example], seed: int) -> list[Row]:
    """Rows of which some predictions are those of other examples, and some are spoiled."""
    rng, rows = Random(seed), []
    for example in examples:
        other = rng.choice(examples).gold
        value = rng.choice((example.gold, example.gold, other, _mixed(example.gold, other, rng)))
        if task.inspection.validate(example, Prediction(value)) is not None:
            value = _mixed(example.gold, example.gold, rng)
        scores = None
        if task.name == "klue-re":
            weights = np.random.default_rng(rng.randrange(1000)).random(30)
            scores = (weights / weights.sum()).tolist()
        gold_answers = isinstance(example.gold, dict) and "answers" in example.gold
        rows.append(Row(example.guid, example.gold, _answer(value, rng) if gold_answers else value, scores))
    return rows


def _answer(value: Any, rng: Random) -> str:
    answers = value["answers"] if isinstance(value, dict) else [value]
    text = str(rng.choice(answers or [""]))
    return rng.choice((text, text, text[1:], f"{text}의", "", text[: len(text) // 2]))


def _mixed(gold: Any, other: Any, rng: Random) -> Any:
    match gold:
        case float() | int():
            return min(5.0, max(0.0, gold + rng.choice((-0.5, 0.1, 1.5))))
        case {"heads": heads, "types": types}:
            swapped = [rng.choice((head, 0, 1)) if rng.random() < 0.3 else head for head in heads]
            return {"heads": swapped, "types": [rng.choice(types) if rng.random() < 0.3 else one for one in types]}
        case list():
            if gold and (gold[0] == "O" or gold[0][:2] in ("B-", "I-")):
                return [rng.choice(gold) if rng.random() < 0.2 else tag for tag in gold]
            return [one for one in (*gold, *other) if rng.random() < 0.6]
    return gold


def simple(examples: Sequence[Example]) -> list[Any]:
    return [(example.guid, example.gold, dict(example.inputs)) for example in examples]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    home = tmp_path_factory.mktemp("encoder")
    folder, _ = build_tiny_encoder(
        home, [*TEXTS, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?'\"()-"]
    )
    return folder, load_tokenizer(folder, TASKS["klue-re"].special_tokens)


@pytest.mark.parametrize(("name", "protocol"), CASES)
def test_features_and_predictions(
    name: str, protocol: str, klue: Path, encoder: tuple[str, Any], tmp_path: Path
) -> None:
    task, (folder, tokenizer) = task_of(name, protocol), encoder
    task = task.fit(read(task, klue, "train"))
    examples = read(task, klue)[: 15 if name == "wos" else COUNT]  # restoring random values takes long
    results: dict[str, Any] = {"examples": simple(examples), "learned": task.learned}
    for most in (48, 128):
        for is_training in (False, True):
            features = task.featurize(examples, tokenizer, most, is_training)
            results[f"features {most} {is_training}"] = features
            results[f"batch {most} {is_training}"] = task.collate(features[:8], 0)
    features = task.featurize(examples, tokenizer, 128, False)
    torch.manual_seed(1)
    model = task.model(folder, tokenizer)
    rng = np.random.default_rng(1)
    raws = [drawn(raw, rng) for raw in predict(task, model, features, 0)]
    predictions = task.decode(examples, features, raws)
    results["predictions"] = predictions
    if task.tune:
        results["tuned"] = task.tune(model, examples, features, raws)
    results["results"] = [make_result(task.inference, *pair) for pair in zip(examples, predictions, strict=True)]
    results["lines"] = [task.inference.format_lines(one) for one in results["results"][:10]]
    if task.ensembling:
        members = []
        for _ in range(3):
            raws = [drawn(raw, rng) for raw in raws]
            records = task.ensembling.to_records
            found = task.decode(examples, features, raws)
            plain: list[Any] = [{"prediction": one.value, "scores": one.scores} for one in found]
            members.append(records(examples, features, raws) if records else plain)
        results["merged"] = task.ensembling.merge(members)
    check_recorded(f"features_{name}_{protocol}", results, tmp_path)


@pytest.mark.parametrize("name", TASKS)
def test_losses(name: str, klue: Path, encoder: tuple[str, Any]) -> None:
    task, (folder, tokenizer) = TASKS[name], encoder
    task = task.fit(read(task, klue, "train"))
    features = task.featurize(read(task, klue, "train")[:16], tokenizer, 64, True)[:16]
    torch.manual_seed(1)
    model = task.model(folder, tokenizer).train(False)
    batch = to_tensors(task.collate(features, 0))
    loss = model(**batch)["loss"]
    loss.backward()
    norms = {key: float(weight.grad.norm()) for key, weight in model.named_parameters() if weight.grad is not None}
    top = {key: value for key, value in norms.items() if "encoder.encoder" not in key}
    outputs = [float(np.abs(array).sum()) for array in _arrays(model.predict(**batch))]
    check_close(f"losses_{name}", numbers_in({"loss": loss.item(), "norms": top, "outputs": outputs}))


def _arrays(value: Any) -> list[Any]:
    match value:
        case np.ndarray():
            return [value] if value.dtype.kind == "f" else []
        case Mapping():
            return [array for inner in value.values() for array in _arrays(inner)]
        case list() | tuple():
            return [array for inner in value for array in _arrays(inner)]
    return []


@pytest.mark.parametrize("name", TASKS)
def test_scores_and_tests(name: str, klue: Path, tmp_path: Path) -> None:
    task = TASKS[name]
    examples, training = read(task, klue), read(task, klue, "train")
    systems = [{seed: guessed(task, examples, 10 * seed + offset) for seed in (1, 2, 3)} for offset in (0, 5)]
    rows, groups_of = systems[0][1], [task.group(example) for example in examples]
    results: dict[str, Any] = {
        "score": task.score(rows), "published score": task_of(name, "klue-baseline").score(rows),
        "intervals": bootstrap(task, rows, groups_of, 30, 1), "tables": task.inspection.tables(rows),
        "errors": find_errors(task, examples, rows), "remarks": remarks(task, rows),
        "baselines": baselines(task, training, examples),
        "held out": list(map(simple, hold_out(training, 0.2, 1, task.group))),
        "sample": [example.guid for example in sample(examples, 7, 3)],
        "shown": [task.inspection.show(*pair) for pair in zip(examples, rows, strict=True)],
        "differ": [task.inspection.differs(row) for row in rows],
        "problems": [task.inspection.validate(e, Prediction(v)) for e in examples[:5] for v in (3, "x", ["O"], {})],
    }  # fmt: skip
    samples = [resample(task, seeds, groups_of, 30) for seeds in systems]
    for metric in samples[0]:
        one, other = (of_system[metric] for of_system in samples)
        difference = differ(one, other)
        results[f"{metric} estimate"] = estimate(one, metric), estimate(other, metric)
        results[f"{metric} difference"] = difference
        if difference:
            needed = difference.seeds_needed(), difference.seeds_to_show(), difference.examples_needed()
            results[f"{metric} needed"] = needed
    if name not in ("klue-mrc", "wos"):
        pairs = [(systems[0][seed], systems[1][seed]) for seed in (1, 2)]
        results["randomized"] = randomize(task, pairs, groups_of, 50)
    results["holm"] = holm({"a": 0.01, "b": 0.04, "c": 0.03})
    values = {example.guid: row.prediction for example, row in zip(examples, rows, strict=True)}
    everything = task.read(klue / task.files.dev)
    golds = {e.guid: e.gold["answers"][0] if name == "klue-mrc" and e.gold["answers"] else e.gold for e in everything}
    golds = {guid: "" if isinstance(gold, dict) and "answers" in gold else gold for guid, gold in golds.items()}
    task.write(klue / task.files.dev, golds | values, tmp_path / "written")
    results["written"] = (tmp_path / "written").read_text("utf-8")
    check_recorded(f"scores_{name}", results, tmp_path)
