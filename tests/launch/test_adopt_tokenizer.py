"""Continued pretraining takes the checkpoint's own tokenizer, and notices when the checkpoint changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerFast, RobertaConfig, RobertaForMaskedLM

from corpus.documents.errors import BadInput
from launch import manifest
from launch.adopt_tokenizer import PROBE, adopt_tokenizer, checkpoint_files
from launch.conduct import run_stage
from launch.errors import LaunchError
from launch.pipeline import STAGES, head_of
from launch.recipe import Recipe, load_recipe
from launch.report.stages import vocabulary_sections
from pretrain.config import PretrainConfig, RowsConfig
from pretrain.pack.encode import EojeolEncoder
from pretrain.pack.store import piece_ids, read_pieces, vocabulary_digest
from tests.pretrain.conftest import invented_documents, write_corpus, write_tokenizer

SPECIAL = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}
STAGE = {stage.name: stage for stage in STAGES}
TEXTS = [PROBE, *(sentence for document in invented_documents(9) for sentence in document.sentences)]


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """A tiny RoBERTa with a WordPiece tokenizer."""
    folder = write_tokenizer(tmp_path / "start", invented_documents(9))
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = RobertaConfig(**sizes, vocab_size=400, max_position_embeddings=50, pad_token_id=1, type_vocab_size=1)
    RobertaForMaskedLM(config).save_pretrained(folder)
    return folder


def settings(folder: Path) -> PretrainConfig:
    return PretrainConfig(init_from=str(folder), rows=RowsConfig(sequence_length=32))


def recipe_of(folder: Path, *overrides: str) -> Recipe:
    return load_recipe("continued", [f"pretrain.init_from={folder}", "pretrain.rows.sequence_length=32", *overrides])


def train_tokenizer(folder: Path, model: Any, trainer: Any, pre_tokenizer: Any, decoder: Any = None) -> None:
    """Replace the tokenizer of a folder by another kind that learnt from ``TEXTS``."""
    backend = Tokenizer(model)
    if pre_tokenizer is not None:
        backend.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        backend.decoder = decoder
    backend.train_from_iterator(TEXTS, trainer(vocab_size=360, special_tokens=list(SPECIAL.values())))
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (folder / name).unlink(missing_ok=True)
    roles = {f"{role}_token": token for role, token in SPECIAL.items()}
    PreTrainedTokenizerFast(tokenizer_object=backend, **roles).save_pretrained(folder)


def unigram_trainer(vocab_size: int, special_tokens: list[str]) -> Any:
    return trainers.UnigramTrainer(vocab_size=vocab_size, special_tokens=special_tokens, unk_token="<unk>",
                                   show_progress=False)  # fmt: skip


def bpe_trainer(vocab_size: int, special_tokens: list[str]) -> Any:
    return trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=special_tokens, show_progress=False)


def test_the_checkpoints_tokenizer_is_adopted_with_its_digest(start: Path, tmp_path: Path) -> None:
    out = tmp_path / "tokenizer"
    counts = adopt_tokenizer(settings(start), out)
    assert counts == {"vocab_size": len(read_pieces(start)), "adopted_from": str(start)}
    assert (out / "vocab.txt").read_bytes() == (start / "vocab.txt").read_bytes()
    theirs, ours = AutoTokenizer.from_pretrained(start), AutoTokenizer.from_pretrained(out)
    assert [ours(text).input_ids for text in TEXTS] == [theirs(text).input_ids for text in TEXTS]
    before, after = (json.loads((folder / "tokenizer_config.json").read_text("utf-8")) for folder in (start, out))
    assert after == before
    assert EojeolEncoder(out).special_ids == {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}


def test_pieces_added_after_vocab_txt_are_kept(start: Path, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(start)
    tokenizer.add_tokens(["계약서"])
    vocabulary = (start / "vocab.txt").read_bytes()
    tokenizer.save_pretrained(start)
    (start / "vocab.txt").write_bytes(vocabulary)
    adopt_tokenizer(settings(start), tmp_path / "tokenizer")
    pieces = read_pieces(tmp_path / "tokenizer")
    assert pieces[-1] == "계약서" and len(pieces) == EojeolEncoder(tmp_path / "tokenizer").vocab_size


def unigram(folder: Path) -> None:
    train_tokenizer(folder, models.Unigram(), unigram_trainer, pre_tokenizers.Metaspace(), decoders.Metaspace())


def byte_level(folder: Path) -> None:
    pieces = pre_tokenizers.ByteLevel(add_prefix_space=False)
    train_tokenizer(folder, models.BPE(), bpe_trainer, pieces, decoders.ByteLevel())


@pytest.mark.parametrize(("kind", "before"), [(unigram, ""), (byte_level, " ")])
def test_other_tokenizers_are_packed_as_the_checkpoint_reads_them(
    start: Path, tmp_path: Path, kind: Callable[[Path], None], before: str
) -> None:
    kind(start)
    adopt_tokenizer(settings(start), tmp_path / "tokenizer")
    encoder, own = EojeolEncoder(tmp_path / "tokenizer"), AutoTokenizer.from_pretrained(start)
    assert read_pieces(tmp_path / "tokenizer") == own.convert_ids_to_tokens(list(range(len(own))))
    assert vocabulary_digest(tmp_path / "tokenizer") == vocabulary_digest(start)
    for text in TEXTS:
        assert piece_ids(encoder.encode([text]).marked).tolist() == own.encode(before + text, add_special_tokens=False)


def test_tokenizers_that_packing_cannot_follow_are_refused(start: Path, tmp_path: Path) -> None:
    train_tokenizer(start, models.BPE(unk_token="<unk>"), bpe_trainer, None)  # pieces reach over blanks
    with pytest.raises(LaunchError, match="splits an eojeol differently inside a sentence than alone"):
        adopt_tokenizer(settings(start), tmp_path / "tokenizer")


def test_folders_without_a_complete_tokenizer_are_refused(start: Path, tmp_path: Path) -> None:
    config = json.loads((start / "tokenizer_config.json").read_text("utf-8"))
    kept = {key: value for key, value in config.items() if key != "mask_token"}
    kept["tokenizer_class"] = "PreTrainedTokenizerFast"
    (start / "tokenizer_config.json").write_text(json.dumps(kept), "utf-8")
    with pytest.raises(LaunchError, match="has no mask token"):
        adopt_tokenizer(settings(start), tmp_path / "tokenizer")
    for path in start.glob("*token*"):
        path.unlink()
    with pytest.raises(LaunchError, match="pieces, but transformers loads"):  # RoBERTa's class reads no vocab.txt
        adopt_tokenizer(settings(start), tmp_path / "tokenizer")
    (start / "vocab.txt").unlink()
    with pytest.raises(LaunchError, match="no tokenizer in this folder"):
        adopt_tokenizer(settings(start), tmp_path / "tokenizer")
    with pytest.raises(BadInput, match="no such folder"):
        adopt_tokenizer(settings(tmp_path / "absent"), tmp_path / "tokenizer")


def test_a_tokenizer_with_more_pieces_than_the_model_is_refused_before_packing(start: Path, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(start)
    tokenizer.add_tokens(["계약서"])
    tokenizer.save_pretrained(start)
    config = json.loads((start / "config.json").read_text("utf-8"))
    (start / "config.json").write_text(json.dumps(config | {"vocab_size": len(tokenizer) - 1}), "utf-8")
    with pytest.raises(BadInput, match=r"has [\d,]+ embeddings, but the vocabulary has"):
        adopt_tokenizer(settings(start), tmp_path / "tokenizer")


def test_the_stage_runs_without_a_corpus_and_once(start: Path, tmp_path: Path) -> None:
    recipe, run = recipe_of(start), tmp_path / "run"
    assert run_stage(STAGE["tokenizer"], recipe, run)
    found = manifest.read_manifest(run / "tokenizer")
    assert found is not None and found["counts"]["vocab_size"] == len(read_pieces(start))
    assert f"{start}/vocab.txt" in found["inputs"] and "corpus" not in found["inputs"]
    assert not run_stage(STAGE["tokenizer"], recipe, run)


def test_a_vocabulary_extended_on_the_way_is_trained_and_exported(start: Path, tmp_path: Path) -> None:
    tiny = ["steps=2", "global_batch=2", "engine.precision=fp32", "engine.name=plain", "engine.micro_batch=2",
            "watch.measure_every=2", "saved.checkpoint_every=2", "rows.held_out_share=0.2"]  # fmt: skip
    recipe, run = recipe_of(start, "tokenizer.extend=6", *(f"pretrain.{setting}" for setting in tiny)), tmp_path / "run"
    write_corpus(run / "corpus", invented_documents(40), shards=2)
    manifest.finish(run / "corpus", manifest.Head("corpus", {}, {}), {}, 0.0, 0)
    for stage in ("tokenizer", "tokens", "pretrain", "model"):
        assert run_stage(STAGE[stage], recipe, run)
    old = read_pieces(start)
    found = manifest.read_manifest(run / "tokenizer")
    assert found is not None and found["settings"] == {"init_from": str(start), "extend": 6}
    assert found["counts"]["added"] == 6 and found["counts"]["fertility"] < found["counts"]["fertility_before"]
    assert read_pieces(run / "model")[: len(old)] == old and len(read_pieces(run / "model")) == len(old) + 6
    model, tokenizer = (kind.from_pretrained(run / "model") for kind in (AutoModelForMaskedLM, AutoTokenizer))
    assert model.config.vocab_size == 400 and len(tokenizer) == len(old) + 6  # the checkpoint has rows to spare
    assert not (run / "tokenizer" / "adopted").exists() and not (run / "tokenizer" / "work").exists()
    assert not run_stage(STAGE["tokenizer"], recipe, run)
    with pytest.raises(LaunchError, match="extend"):
        run_stage(STAGE["tokenizer"], recipe_of(start, "tokenizer.extend=7"), run)
    [section] = vocabulary_sections(run)
    assert "words are now encoded differently" in section.blocks[1].text
    given = recipe_of(start, f"tokenizer.extend={run / 'tokenizer'}")
    assert run_stage(STAGE["tokenizer"], given, tmp_path / "other")  # without a corpus
    same, other = (folder / "tokenizer" / "extension.json" for folder in (run, tmp_path / "other"))
    assert same.read_bytes() == other.read_bytes()


def test_extending_needs_a_vocabulary_to_extend(start: Path, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"tokenizer\.extend is 5, but there is no pretrain\.init_from"):
        load_recipe("smoke", ["tokenizer.extend=5"])
    wrong = recipe_of(start, f"tokenizer.extend={start}")
    with pytest.raises(LaunchError, match=r"no extension\.json there; set a number, or an extended folder"):
        STAGE["tokenizer"].user_inputs(wrong)
    assert "corpus" not in STAGE["tokenizer"].depends_on(recipe_of(start))
    assert STAGE["tokenizer"].depends_on(recipe_of(start, "tokenizer.extend=5")) == ("corpus",)


def test_another_checkpoint_is_noticed_by_the_stages_that_read_it(start: Path, tmp_path: Path) -> None:
    recipe, run = recipe_of(start), tmp_path / "run"
    run_stage(STAGE["tokenizer"], recipe, run)
    head, files = head_of(STAGE["tokenizer"], recipe, run), checkpoint_files(recipe.pretrain, "model")
    weights = {name: identify() for name, identify in files.items()}
    assert set(weights) == {f"{start}/config.json", f"{start}/model.safetensors"}
    content = (start / "model.safetensors").read_bytes()
    (start / "model.safetensors").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert {name for name, identify in files.items() if identify() != weights[name]} == {f"{start}/model.safetensors"}
    assert head_of(STAGE["tokenizer"], recipe, run) == head
    with (start / "tokenizer_config.json").open("a") as file:
        file.write("\n")
    with pytest.raises(LaunchError, match="made with another recipe or other inputs"):
        run_stage(STAGE["tokenizer"], recipe, run)
    other = shutil.copytree(start, tmp_path / "other")
    with pytest.raises(LaunchError, match="init_from"):
        run_stage(STAGE["tokenizer"], recipe_of(other), run)


def test_contradictions_are_reported_before_the_first_stage(start: Path) -> None:
    with pytest.raises(BadInput, match=r"sequence_length is 64, but .* takes at most 48"):
        STAGE["tokenizer"].user_inputs(recipe_of(start, "pretrain.rows.sequence_length=64"))
    with pytest.raises(BadInput, match=r"pretrain\.model\.hidden is 16, but .* has 8"):
        STAGE["pretrain"].user_inputs(recipe_of(start, "pretrain.model.hidden=16", "pretrain.model.heads=2"))


def test_recipes_without_a_checkpoint_keep_their_heads() -> None:
    recipe = load_recipe("klue-roberta-base")
    assert STAGE["tokenizer"].settings(recipe) == recipe.tokenizer.model_dump(mode="json")
    assert STAGE["tokenizer"].depends_on(recipe) == ("corpus",)
    assert checkpoint_files(recipe.pretrain, "tokenizer") == checkpoint_files(recipe.pretrain, "model") == {}
    assert STAGE["tokenizer"].user_inputs(recipe) == STAGE["pretrain"].user_inputs(recipe) == {}


def test_tokenizer_settings_without_effect_are_refused(start: Path) -> None:
    with pytest.raises(LaunchError, match=r"so tokenizer\.builder, tokenizer\.vocab_size would have no effect"):
        recipe_of(start, "tokenizer.vocab_size=8000", "tokenizer.builder=malmoi")
    assert recipe_of(start, "pretrain.model.architecture=bert").tokenizer.special_tokens == "roberta"
    assert recipe_of(start, "pretrain.model.architecture=bert", "tokenizer.special_tokens=bert")
