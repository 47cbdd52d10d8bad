"""Initialization from a checkpoint: its weights and sizes, new heads if it has none, and contradictions refused."""

from __future__ import annotations

import json
import logging
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertModel,
    PreTrainedModel,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaModel,
)

from corpus.documents.errors import BadInput
from pretrain.config import OptimizerConfig, PretrainConfig
from pretrain.model.existing_model import check_init_from, init_from_folder
from pretrain.model.families import longest_input, sizes_of
from pretrain.model.networks import build_network
from pretrain.pack.store import read_pieces
from tests.pretrain.settings import in_sections

IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
SIZES = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 40,
         "pad_token_id": 1, "vocab_size": 64}  # fmt: skip
ROBERTA = RobertaConfig(**SIZES, max_position_embeddings=66, type_vocab_size=1, hidden_dropout_prob=0.3)
BERT = BertConfig(**SIZES, max_position_embeddings=64, attention_probs_dropout_prob=0.3)
KINDS = {
    "roberta": (RobertaForMaskedLM, ROBERTA),
    "bare roberta": (RobertaModel, ROBERTA),
    "bert": (BertForMaskedLM, BERT),
    "bert with nsp": (BertForPreTraining, BERT),
    "bare bert": (BertModel, BERT),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, PreTrainedModel]]:
    """Folder and model of a kind of checkpoint with random weights; read only."""
    root, made = tmp_path_factory.mktemp("checkpoints"), {}

    def save(kind: str) -> tuple[Path, PreTrainedModel]:
        if kind not in made:
            network, config = KINDS[kind]
            made[kind] = network(config)
            made[kind].save_pretrained(root / kind)
        return root / kind, made[kind]

    return save


def settings(folder: Path | str, **changes: Any) -> PretrainConfig:
    fields = {"init_from": str(folder), "sequence_length": 32, "precision": "fp32", "zero_stage": 0}
    return PretrainConfig.model_validate(in_sections(fields | changes))


@pytest.mark.parametrize(
    ("kind", "changes", "fresh"),
    [
        ("roberta", {}, set()),
        ("bare roberta", {}, {"lm_head"}),
        ("bert", {"architecture": "bert"}, set()),
        ("bert with nsp", {"architecture": "bert", "nsp": True}, set()),
        ("bert with nsp", {"architecture": "bert"}, set()),
        ("bare bert", {"architecture": "bert", "nsp": True}, {"cls.predictions", "cls.seq_relationship"}),
        ("bert", {"architecture": "bert", "nsp": True}, {"bert.pooler", "cls.seq_relationship"}),
    ],
)
def test_every_weight_of_the_checkpoint_arrives_and_only_heads_are_fresh(
    saved, caplog: pytest.LogCaptureFixture, kind: str, changes: dict, fresh: set[str]
) -> None:
    folder, original = saved(kind)
    with caplog.at_level(logging.INFO):
        network = build_network(settings(folder, **changes), 64, IDS)
    prefix = "" if hasattr(original, "lm_head") or hasattr(original, "cls") else f"{network.base_model_prefix}."
    before = {prefix + name: weight for name, weight in original.named_parameters()}
    after = dict(network.named_parameters())
    assert all(torch.equal(after[name], before[name]) for name in after.keys() & before.keys())
    missing = {name for name in after if name not in before}
    assert {part for part in fresh if any(name.startswith(part) for name in missing)} == fresh
    assert all(name.startswith(tuple(fresh)) for name in missing)
    assert bool(fresh) == ("newly initialized" in caplog.text) and all(part in caplog.text for part in fresh)
    assert bool(before.keys() - after.keys()) == ("left out" in caplog.text)


def test_sizes_are_the_checkpoints_and_dropout_the_recipes(saved) -> None:
    folder, _ = saved("roberta")
    network = build_network(settings(folder, dropout=0.05, layers=3), 64, IDS)
    found = network.config
    assert (found.num_hidden_layers, found.hidden_size, found.vocab_size, longest_input(found)) == (3, 24, 64, 64)
    counted = PretrainConfig(optimizer=OptimizerConfig(lr=1e-3)).replaced("model", **sizes_of(found))
    own = counted.model
    assert (own.layers, own.hidden, own.heads, own.intermediate, own.positions) == (3, 24, 2, 40, 64)
    assert counted.optimizer.lr == 1e-3
    assert (found.hidden_dropout_prob, found.attention_probs_dropout_prob) == (0.05, 0.05)
    assert {module.p for module in network.modules() if isinstance(module, torch.nn.Dropout)} == {0.05}
    assert {weight.dtype for weight in network.parameters()} == {torch.float32}


def test_fresh_heads_depend_on_the_seed_only(saved) -> None:
    folder, _ = saved("bare roberta")
    first = build_network(settings(folder), 64, IDS).state_dict()
    torch.manual_seed(99)
    again = build_network(settings(folder), 64, IDS).state_dict()
    other = build_network(settings(folder, seed=2), 64, IDS).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["lm_head.dense.weight"], other["lm_head.dense.weight"])
    assert torch.equal(first["roberta.embeddings.word_embeddings.weight"],
                       other["roberta.embeddings.word_embeddings.weight"])  # fmt: skip


def test_half_precision_checkpoints_are_trained_in_float32(tmp_path: Path) -> None:
    RobertaForMaskedLM(ROBERTA).half().save_pretrained(tmp_path)
    network = build_network(settings(tmp_path), 64, IDS)
    assert {weight.dtype for weight in network.parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("bert", {}, "a model of type bert, but pretrain.model.architecture is roberta"),
        ("roberta", {"layers": 6}, "pretrain.model.layers is 6, but .* has 3"),
        ("roberta", {"sequence_length": 65}, "sequence_length is 65, but .* at most 64"),
        ("bert", {"architecture": "bert", "sequence_length": 65}, "sequence_length is 65, but .* at most 64"),
    ],
)
def test_a_recipe_that_contradicts_the_checkpoint_is_refused_without_its_weights(
    saved, tmp_path: Path, kind: str, changes: dict, words: str
) -> None:
    folder, _ = saved(kind)
    shutil.copy(folder / "config.json", tmp_path)  # no weights there: they are not needed to say so
    with pytest.raises(BadInput, match=words):
        check_init_from(settings(tmp_path, **changes))


def test_a_store_of_another_vocabulary_is_refused(saved, tmp_path: Path) -> None:
    folder, _ = saved("roberta")
    with pytest.raises(BadInput, match="has 64 embeddings, but the vocabulary has 65"):
        build_network(settings(folder), 65, IDS)
    with pytest.raises(BadInput, match="has the padding id 1, but the vocabulary has 0"):
        build_network(settings(folder), 64, {**IDS, "pad": 0})
    own, packed = tmp_path / "own", tmp_path / "packed"
    shutil.copytree(folder, own)
    packed.mkdir()
    (own / "vocab.txt").write_text("[CLS]\n[PAD]\n가\n##나\n", "utf-8")
    (packed / "vocab.txt").write_text("[CLS]\n[PAD]\n가\n##다\n", "utf-8")
    with pytest.raises(BadInput, match="id 3 is '##다', but '##나'"):
        check_init_from(settings(own), packed)
    (packed / "vocab.txt").write_text("[CLS]\n[PAD]\n가\n##나\n[ADDED]\n", "utf-8")
    check_init_from(settings(own), packed)


def test_words_need_a_vocabulary_that_marks_them(saved, tmp_path: Path) -> None:
    folder, _ = saved("roberta")
    (tmp_path / "vocab.txt").write_text("<s>\n▁가\n나\n", "utf-8")
    with pytest.raises(BadInput, match=r"masking\.unit=eojeol"):
        check_init_from(settings(folder), tmp_path)
    check_init_from(settings(folder, masking={"unit": "eojeol"}), tmp_path)


def test_pickles_broken_files_and_half_checkpoints_are_refused(saved, tmp_path: Path) -> None:
    folder, original = saved("roberta")
    pickled, broken, half = tmp_path / "pickled", tmp_path / "broken", tmp_path / "half"
    for target in (pickled, broken, half):
        shutil.copytree(folder, target)
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(BadInput, match="a pickle, which is never loaded; convert it with AutoModelForMaskedLM"):
        build_network(settings(pickled), 64, IDS)
    (broken / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-100])
    with pytest.raises(BadInput, match="its weights cannot be loaded"):
        build_network(settings(broken), 64, IDS)
    weights = {name: w for name, w in original.state_dict().items() if "layer.2" not in name}
    original.save_pretrained(half, state_dict=weights)
    with pytest.raises(BadInput, match=r"weights are missing, the first is roberta\.encoder\.layer\.2"):
        build_network(settings(half), 64, IDS)
    (broken / "config.json").write_text("{", "utf-8")
    with pytest.raises(BadInput, match=r"config\.json: not readable as JSON"):
        check_init_from(settings(broken))
    (broken / "config.json").write_text(json.dumps({"model_type": "electra", "auto_map": {"AutoConfig": "x.Y"}}))
    with pytest.raises(BadInput, match="a model of type electra"):
        check_init_from(settings(broken))


def test_a_hub_id_is_found_in_the_cache_without_the_network(saved, tmp_path: Path, monkeypatch) -> None:
    folder, original = saved("roberta")
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--someone--roberta-tiny"
    shutil.copytree(folder, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    network = build_network(settings("someone/roberta-tiny"), 64, IDS)
    assert torch.equal(network.lm_head.bias, original.lm_head.bias)
    with pytest.raises(BadInput, match=r"someone/absent: no such folder, not in the cache"):
        init_from_folder("someone/absent")


@pytest.mark.parametrize("name", ["./absent", "/absent", "a/b/c", "~/absent"])
def test_what_looks_like_a_path_is_never_asked_of_the_hub(name: str, monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *a, **k: pytest.fail("asked the Hub"))
    with pytest.raises(BadInput, match="no such folder; give the folder or Hub id"):
        init_from_folder(name)


def test_a_name_no_repository_can_have_is_refused() -> None:
    with pytest.raises(BadInput, match="neither a folder nor a Hub id"):
        init_from_folder("klue roberta")


def test_pieces_come_from_tokenizer_json_where_there_is_no_vocab_txt(tmp_path: Path) -> None:
    unigram = {"model": {"type": "Unigram", "vocab": [["<s>", 0.0], ["▁가", -1.0], ["나", -2.0]]}}
    added = [{"id": 2, "content": "<mask>"}, {"id": 0, "content": "<s>"}]
    bpe = {"model": {"type": "BPE", "vocab": {"Ġa": 1, "<s>": 0}}, "added_tokens": added}
    (tmp_path / "tokenizer.json").write_text(json.dumps(unigram), "utf-8")
    assert read_pieces(tmp_path) == ["<s>", "▁가", "나"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(bpe), "utf-8")
    assert read_pieces(tmp_path) == ["<s>", "Ġa", "<mask>"]
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0, "b": 2}}}), "utf-8")
    with pytest.raises(BadInput, match="no piece has the id 1"):
        read_pieces(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(BadInput, match="no vocabulary here"):
        read_pieces(tmp_path)


def test_the_digest_is_the_same_with_and_without_vocab_txt(made: Path, tmp_path: Path) -> None:
    from pretrain.pack.store import vocabulary_digest

    shutil.copy(made / "tokenizer" / "tokenizer.json", tmp_path)
    assert vocabulary_digest(tmp_path) == vocabulary_digest(made / "tokenizer")
    meta = json.loads((made / "tokens" / "meta.json").read_text("utf-8"))
    assert vocabulary_digest(tmp_path) == meta["tokenizer_sha256"]


def test_sinusoids_make_the_first_positions_and_nothing_else(tiny) -> None:
    special_ids = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
    plain = build_network(tiny(), 60, special_ids).state_dict()
    waves = build_network(tiny(position_init="sinusoidal"), 60, special_ids).state_dict()
    name = "roberta.embeddings.position_embeddings.weight"
    assert all(torch.equal(plain[other], waves[other]) for other in plain if other != name)
    for place, column, value in (
        (0, 0, 0.0),
        (0, 1, 1.0),
        (7, 0, math.sin(7)),
        (7, 5, math.cos(7 / 10_000 ** (4 / 16))),
    ):
        assert waves[name][place, column].item() == pytest.approx(0.05 * value, abs=1e-6)
