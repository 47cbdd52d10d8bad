"""Runs of several phases: equal to a chain of runs, resumable at the border, with the positions of their phase."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from corpus.documents.shards import Document
from pretrain.checkpoint.find_checkpoint import read_checkpoint, updates_of
from pretrain.config import PackConfig
from pretrain.pack.run import PackInputs
from pretrain.pack.run import run as pack
from tests.pretrain.conftest import invented_documents, write_corpus, write_tokenizer
from tests.pretrain.runs import assert_same_training, go_on_from, train

MODERN: dict[str, Any] = {
    "architecture": "modernbert", "layers": 2, "dropout": 0.0, "positions": 256, "sequence_length": 256,
    "packing": "documents", "keep_checkpoints": 9,
}  # fmt: skip
SHORT = {"sequence_length": 64, "rope_theta": 10_000, "lr": 5e-3, "warmup_steps": 2}
LONG = {"global_batch": 2, "lr": 2e-3, "schedule": "wsd", "sources": {"일기": 2.0}}


@pytest.fixture(scope="module")
def long_documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of about 25 and of about 250 tokens."""
    root, short = tmp_path_factory.mktemp("long"), invented_documents(100)
    joined = [sum((part.sentences for part in short[n::25]), ()) * 3 for n in range(25)]
    long = [Document(f"l{n}", ("수필", "일기")[n % 2], sentences) for n, sentences in enumerate(joined)]
    write_corpus(root / "corpus", [*short, *long], shards=2)
    write_tokenizer(root / "tokenizer", short)
    (root / "tokens").mkdir()
    pack(PackConfig(), PackInputs(root / "corpus", root / "tokenizer"), root / "tokens")
    return root


def theta_of(model: Path) -> float:
    return json.loads((model / "config.json").read_text("utf-8"))["rope_parameters"]["full_attention"]["rope_theta"]


def saved(out: Path, step: int) -> Path:
    return out / "checkpoints" / f"step-{step:09}"


def test_two_phases_equal_a_chain_of_two_runs(long_documents: Path, tiny, tmp_path: Path) -> None:
    """64 tokens, then 256 with other positions, batch, rate and sources; the second run has a hand-written origin."""
    whole = tmp_path / "whole"
    train(tiny(steps=12, **MODERN, phases=[SHORT | {"until": 0.5}, LONG]), long_documents, whole)

    first, second = tmp_path / "first", tmp_path / "second"
    settings = MODERN | {"sequence_length": 64, "lr": 5e-3, "warmup_steps": 2}
    train(tiny(steps=6, **settings, phases=[{"rope_theta": 10_000}]), long_documents, first)
    start = read_checkpoint(saved(first, 6))
    own = LONG | {"warmup_steps": 0, "continue_from": str(first)}
    origin = {
        "continue_from": str(first), "folder": str(start.folder), "step": 6, "steps": 6,
        "updates": updates_of(start.loop), "tokens": start.loop["progress"]["tokens"],
        "first_epoch": 0,  # a branch would begin with a new one
        "weights_sha256": start.loop["files"]["model/model.safetensors"][1],
    }  # fmt: skip
    second.mkdir()
    (second / "origin.json").write_text(json.dumps(origin), "utf-8")
    train(tiny(steps=6, **MODERN | own), long_documents, second)

    ours, chain = (load_file(out / "model" / "model.safetensors") for out in (whole, second))
    assert ours.keys() == chain.keys() and all((ours[name] == chain[name]).all() for name in ours)
    assert (theta_of(first / "model"), theta_of(second / "model"), theta_of(whole / "model")) == (1e4, 160_000, 160_000)


@pytest.mark.parametrize("engine", [{}, {"engine": "deepspeed", "zero_stage": 1}])
def test_a_run_killed_around_the_border_has_the_same_weights(
    long_documents: Path, tiny, tmp_path: Path, engine: dict
) -> None:
    config = tiny(steps=9, **MODERN, **engine, phases=[SHORT | {"until": 0.45}, LONG], checkpoint_every=1)
    once = tmp_path / "once"
    train(config, long_documents, once)
    assert [theta_of(saved(once, step) / "model") for step in (3, 4, 5)] == [1e4, 1e4, 160_000]  # until step 4
    for step in (3, 4, 5):
        shutil.copytree(once, tmp_path / str(step))
        go_on_from(tmp_path / str(step), step)
        train(config, long_documents, tmp_path / str(step))
        assert_same_training(once, tmp_path / str(step))
    card = (once / "model" / "README.md").read_text("utf-8")
    assert "| steps 5 to 9 | 2 rows of 256 tokens, 15.0% masked, sources 일기 x 2 |" in card
    result = json.loads((once / "result.json").read_text("utf-8"))
    epochs = result["source_epochs"]
    assert (
        result["sequences"] == 4 * 8 + 5 * 2 and f"일기 {epochs['일기']:g}" in card and epochs["일기"] > epochs["수필"]
    )


def test_engines_agree_on_phases_with_other_batches(long_documents: Path, tiny, tmp_path: Path) -> None:
    found = []
    for number, engine in enumerate(({}, {"engine": "ddp"}, {"engine": "deepspeed", "zero_stage": 2})):
        out = tmp_path / str(number)
        parts = [SHORT | {"until": 0.5}, {"global_batch": 6, "lr": 1e-3}]
        train(tiny(steps=6, **MODERN, **engine, phases=parts, micro_batch=2), long_documents, out)
        found.append(load_file(out / "model" / "model.safetensors"))
    for other in found[1:]:
        assert all(abs(found[0][name] - other[name]).max() < 1e-5 for name in other)


@pytest.mark.parametrize("sources", [{"일기": 3.0, "other": 0.5}, 0.5])
def test_a_mixture_is_trained_and_resumed_bit_for_bit(
    long_documents: Path, tiny, tmp_path: Path, caplog, sources: dict | float
) -> None:
    caplog.set_level("INFO")
    config = tiny(steps=9, sources=sources)
    train(config, long_documents, tmp_path / "once")
    assert "epochs of each source at the end: 수필 0." in caplog.text
    shutil.copytree(tmp_path / "once", tmp_path / "twice")
    go_on_from(tmp_path / "twice", 6)
    train(config, long_documents, tmp_path / "twice")
    assert_same_training(tmp_path / "once", tmp_path / "twice")
