"""Runs of several phases: equal to a chain of runs, resumable at the border, with the positions of their phase."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.numpy import load_file
from torch import Tensor
from transformers import AutoModelForMaskedLM, AutoTokenizer

from corpus.documents.shards import Document
from pretrain.checkpoint.find_checkpoint import read_checkpoint, updates_of
from pretrain.config import PackConfig
from pretrain.pack.run import PackInputs
from pretrain.pack.run import run as pack
from tests.pretrain.conftest import invented_documents, write_corpus, write_tokenizer
from tests.pretrain.runs import assert_same_training, rewind_to, train

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
        rewind_to(tmp_path / str(step), step)
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
    rewind_to(tmp_path / "twice", 6)
    train(config, long_documents, tmp_path / "twice")
    assert_same_training(tmp_path / "once", tmp_path / "twice")


FACTS = tuple("가나다라마바사아")
SAND = ("모", "##래")  # one word of two pieces


@pytest.fixture(scope="module")
def documents_with_a_fact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of sand and one of eight facts: 64 tokens with the fact four times, 4,096 tokens with it twice."""
    root, draw = tmp_path_factory.mktemp("facts"), random.Random(1)

    def document(source: str, number: int, tokens: int, copies: int) -> Document:
        words = ["모래"] * ((tokens - 2 - copies) // 2)  # [CLS] and [SEP] are added
        for quarter in sorted(draw.sample(range(4), copies), reverse=True):
            words.insert((quarter * len(words) + draw.randrange(len(words))) // 4, FACTS[number % len(FACTS)])
        return Document(f"{source}{number}", source, (" ".join(words),))

    documents = [document("short", n, 64, 4) for n in range(200)] + [document("long", n, 4096, 2) for n in range(40)]
    write_corpus(root / "corpus", documents, shards=2)
    write_tokenizer(root / "tokenizer", [], extra=(*FACTS, *SAND))
    (root / "tokens").mkdir()
    pack(PackConfig(), PackInputs(root / "corpus", root / "tokenizer"), root / "tokens")
    return root


def facts_read(model: Any, ids: dict[str, int], distance: int, is_first_masked: bool, has_copy: bool = True) -> int:
    """In how many of eight texts, one for each fact, a masked fact is predicted from its copy ``distance`` away."""
    facts_B, row_B = torch.tensor([ids[fact] for fact in FACTS]), torch.arange(len(FACTS))
    texts_BL = torch.tensor([ids[piece] for piece in SAND]).repeat(len(FACTS), 2048)
    texts_BL[:, 0], texts_BL[:, -1] = ids["[CLS]"], ids["[SEP]"]
    first_B = 1 + 2 * 67 * row_B  # another place in each text
    masked_B, copy_B = (first_B, first_B + distance) if is_first_masked else (first_B + distance, first_B)
    if has_copy:
        texts_BL[row_B, copy_B] = facts_B
    texts_BL[row_B, masked_B] = ids["[MASK]"]
    with torch.no_grad():
        states_BLH: Tensor = model.model(texts_BL).last_hidden_state
        return int((model.decoder(model.head(states_BLH[row_B, masked_B])).argmax(-1) == facts_B).sum())


@pytest.mark.slow
def test_a_phase_of_long_rows_teaches_to_read_a_fact_3000_tokens_away(
    documents_with_a_fact: Path, tiny, tmp_path: Path
) -> None:
    """One piece of each row is masked: always a fact, as a word of sand is too long. transformers runs the models."""
    short: dict[str, Any] = {"until": 200 / 212, "sequence_length": 64, "rope_theta": 10_000, "sources": {"long": 0.0}}
    short |= {"global_batch": 32, "masked_share": 0.01, "lr": 3e-3, "warmup_steps": 10}
    long = {"sources": {"short": 0.0}, "global_batch": 2, "masked_share": 1e-4, "lr": 2e-3, "warmup_steps": 4}
    sizes = {"hidden": 64, "intermediate": 64, "heads": 1, "positions": 4096, "sequence_length": 4096}
    rest = {"steps": 212, "clip": 1.0, "micro_batch": 32, "measure_rows": 2, "checkpoint_every": 200}
    train(tiny(**MODERN | sizes | rest, phases=[short, long]), documents_with_a_fact, tmp_path)

    ids = AutoTokenizer.from_pretrained(tmp_path / "model").get_vocab()
    before = AutoModelForMaskedLM.from_pretrained(saved(tmp_path, 200) / "model")
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "model")
    local = AutoModelForMaskedLM.from_pretrained(tmp_path / "model", layer_types=["sliding_attention"] * 2)
    assert facts_read(before, ids, 3000, True) <= 3
    assert facts_read(model, ids, 3000, True) >= 7 and facts_read(model, ids, 3100, False) >= 7
    assert facts_read(model, ids, 3000, True, has_copy=False) <= 3  # chance is 1 of 8
    assert facts_read(local, ids, 3, True) >= 7 and facts_read(local, ids, 3000, True) <= 3
