"""Recorded results of packing, batches, masks and short trainings."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pretrain.batching.batches import TrainingBatches
from pretrain.batching.held_out_split import split_rows
from pretrain.batching.masking import describe_pieces
from pretrain.config import PackConfig, PretrainConfig
from pretrain.metrics.baselines import count_baselines
from pretrain.metrics.meter import TIMING_KEYS
from pretrain.model import sizes
from pretrain.pack.run import PackInputs
from pretrain.pack.run import run as pack
from pretrain.pack.store import open_store, read_pieces
from pretrain.run import PretrainInputs, run
from tests.pretrain.conftest import SPECIAL_PIECES, write_tokenizer
from tests.pretrain.settings import in_sections
from tests.same_results.recording import check_close, check_recorded, numbers_in
from tests.same_results.test_tokenizer import sample_documents, write_corpus

TINY: dict[str, Any] = {
    "layers": 1, "hidden": 16, "heads": 2, "intermediate": 32, "positions": 72, "sequence_length": 64, "steps": 4,
    "global_batch": 8, "micro_batch": 4, "lr": 5e-3, "warmup_share": 0.25, "precision": "fp32", "zero_stage": 0,
    "held_out_share": 0.1, "checkpoint_every": 2, "log_every": 2, "measure_every": 2, "measure_rows": 16,
    "engine": "plain",
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "roberta": {},
    "static": {"architecture": "bert", "masking": {"mode": "static", "share": 0.3}, "schedule": "wsd", "clip": 0.5},
    "pairs": {"architecture": "bert", "nsp": True},
    "static pairs": {"architecture": "bert", "nsp": True, "masking": {"mode": "static"}},
    "eojeol": {"masking": {"unit": "eojeol"}, "position_init": "sinusoidal", "output_bias": "frequency"},
    "documents": {"architecture": "modernbert", "packing": "documents", "embedding_init": "cooccurrence"},
    "counts": {"architecture": "modernbert", "layers": 3, "attention_init": "from_counts", "packing": "documents",
               "embedding_init": "cooccurrence", "output_bias": "frequency"},
    "static documents": {"packing": "documents", "masking": {"mode": "static"}, "sources": 0.5},
    "causal": {"architecture": "gpt"},
    "mixture": {"sources": {"news": 2.0, "reviews": 0.5, "other": 1.0}},
    "phases": {
        "phases": [
            {"until": 0.5, "sequence_length": 32, "global_batch": 16, "masked_share": 0.3},
            {"until": 1.0, "lr": 1e-3, "warmup_steps": 1, "schedule": "wsd", "sources": 0.5},
        ]
    },
}  # fmt: skip
TRAINED = ("roberta", "static", "pairs", "counts", "causal", "phases")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    documents = sample_documents()
    write_corpus(root / "corpus", documents)
    write_tokenizer(root / "tokenizer", documents)
    (root / "tokens").mkdir()
    pack(PackConfig(), PackInputs(root / "corpus", root / "tokenizer"), root / "tokens")
    return root


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "LOCAL_WINDOW", 8)


def configure(kind: str) -> PretrainConfig:
    return PretrainConfig.model_validate(in_sections(TINY | KINDS[kind]))


def arrays_of(value: Any) -> Any:
    """Tensors and arrays as lists, to any depth."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if is_dataclass(value):
        return {field.name: arrays_of(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: arrays_of(inner) for name, inner in zip(value._fields, value, strict=True)}
    return value


def test_the_token_store(made: Path, tmp_path: Path) -> None:
    meta = json.loads((made / "tokens" / "meta.json").read_text("utf-8"))
    files = {
        path.name: path.read_bytes().hex() for path in sorted((made / "tokens").iterdir()) if path.suffix != ".json"
    }
    check_recorded("token_store", {**files, "meta": meta}, tmp_path)


def test_batches_and_masks(made: Path, tmp_path: Path) -> None:
    store, vocabulary = open_store(made / "tokens", made / "tokenizer"), read_pieces(made / "tokenizer")
    names = ("cls", "pad", "sep", "unk", "mask")
    pieces = describe_pieces(
        vocabulary, {name: vocabulary.index(p) for name, p in zip(names, SPECIAL_PIECES, strict=True)}
    )
    results: dict[str, Any] = {}
    for kind in KINDS:
        config = configure(kind)
        split = split_rows(store, config)
        for rank in range(2):
            batches = TrainingBatches(split, pieces, config, rank, 2, 4, first_epoch=rank)
            for step in (1, 2, 4, 60):
                results[f"{kind} {rank} {step}"] = [
                    [arrays_of(batch) for batch in batches.of_step(step)], batches.names_of_step(step, rank),
                    batches.progress(step),
                ]  # fmt: skip
        held_out = split.held_out
        rows = held_out.gather(np.zeros(4, np.int64), np.arange(4))
        results[f"{kind} held out"] = held_out.count(0), arrays_of(rows)
        if kind in ("roberta", "documents"):
            results[f"{kind} baselines"] = arrays_of(count_baselines(split.training, pieces))
    check_recorded("batches", results, tmp_path)


def test_short_trainings(made: Path, tmp_path: Path) -> None:
    numbers: dict[str, float] = {}
    for kind in TRAINED:
        out = tmp_path / kind
        out.mkdir()
        result = run(configure(kind), PretrainInputs(made / "tokens", made / "tokenizer"), out)
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
        plain = [{key: value for key, value in line.items() if key not in TIMING_KEYS} for line in lines]
        numbers |= numbers_in({"result": result, "lines": plain}, kind)
    check_close("trainings", numbers)
