"""What an encoder must bring: weights, a tokenizer with its tokens, a kind that reads in both directions."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    T5Config,
    XLNetConfig,
)

from corpus.documents.errors import BadInput
from finetune.encoder.loading import (
    check_encoder,
    check_offsets,
    load_encoder,
    load_pretrained,
    load_tokenizer,
    offset_sentences,
)
from finetune.queue.jobs import digest


def test_markers_are_added_once_and_the_embeddings_grow(tiny_encoder) -> None:
    folder = tiny_encoder(["서울에"])[0]
    entries = len(load_tokenizer(folder))
    tokenizer = load_tokenizer(folder, ("<subj>", "</subj>"))
    assert len(tokenizer) == entries + 2
    assert tokenizer.tokenize("서<subj>울</subj>") == ["서", "<subj>", "울", "</subj>"]
    plain, grown = load_encoder(folder).encoder, load_encoder(folder, tokenizer).encoder
    weights = [model.get_input_embeddings().weight for model in (plain, grown)]  # type: ignore[operator]
    assert [len(weight) for weight in weights] == [entries, entries + 2]
    assert torch.equal(weights[0], weights[1][:entries])


def refuse(folder: str | Path, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        check_encoder(str(folder))


@pytest.mark.parametrize("config", [XLNetConfig(), T5Config()])
def test_models_that_are_no_encoders_are_refused(config: PreTrainedConfig, tmp_path: Path) -> None:
    config.save_pretrained(tmp_path)
    refuse(tmp_path, f"a model of type '{config.model_type}' is not an encoder")


def test_code_in_a_model_folder_is_not_run(tiny_encoder) -> None:
    folder = Path(tiny_encoder(["서울에"])[0])
    (folder / "own.py").write_text("raise SystemExit('ran')", "utf-8")
    own = {"model_type": "own", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}}
    (folder / "config.json").write_text(json.dumps(own), "utf-8")
    refuse(folder, "not an encoder that transformers can load")


@pytest.mark.parametrize("side", ["left", "right"])
def test_texts_are_padded_and_cut_on_the_right_for_any_setting_of_the_folder(side: str, tiny_encoder) -> None:
    folder = Path(tiny_encoder(["서울에"])[0])
    settings = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    sides = {"padding_side": side, "truncation_side": side}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | sides), "utf-8")
    tokenizer = load_tokenizer(str(folder))
    long, short = tokenizer(["서울에 서울에", "서"], padding=True, truncation=True, max_length=5)["attention_mask"]
    assert (long, short) == ([1] * 5, [1, 1, 1, 0, 0])
    assert tokenizer("서울에", truncation=True, max_length=3)["input_ids"][1] == tokenizer("서")["input_ids"][1]


@pytest.mark.parametrize("role", ["pad_token", "cls_token", "sep_token"])
def test_a_tokenizer_without_a_needed_token_is_refused(role: str, tiny_encoder) -> None:
    folder = Path(tiny_encoder(["서울에"])[0])
    settings = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    del settings[role]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    refuse(folder, f"its tokenizer has no {role}")


def test_a_slow_tokenizer_is_refused(tiny_encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_encoder(["서울에"])[0]
    monkeypatch.setattr(PreTrainedTokenizerFast, "is_fast", False)
    refuse(folder, "no character offsets")


def test_weights_must_be_safetensors_and_there(tiny_encoder) -> None:
    folder = Path(tiny_encoder(["서울에"])[0])
    weights = folder / "model.safetensors"
    torch.save(load_file(weights), folder / "pytorch_model.bin")
    weights.unlink()
    refuse(folder, "only pytorch_model.bin, a pickle")
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(BadInput, match=r"its weights cannot be loaded: model\.safetensors is missing"):
        load_encoder(str(folder))


def test_an_encoder_with_random_weights_is_refused_but_a_fresh_head_is_not(tiny_encoder) -> None:
    folder = Path(tiny_encoder(["서울에"])[0])
    model = load_pretrained(AutoModelForSequenceClassification, str(folder), num_labels=5)
    assert model.classifier.weight.shape == (5, 32)
    weights = load_file(folder / "model.safetensors")
    pooled = {name: weight for name, weight in weights.items() if not name.startswith("pooler")}
    save_file(pooled, folder / "model.safetensors", {"format": "pt"})
    load_encoder(str(folder))
    first = "encoder.layer.0.output.dense.weight"
    save_file({n: w for n, w in pooled.items() if n != first}, folder / "model.safetensors", {"format": "pt"})
    for kind in (AutoModel, AutoModelForSequenceClassification):
        with pytest.raises(BadInput, match=rf"1 weights of the encoder are missing .*{first}"):
            load_pretrained(kind, str(folder))


def test_positions_that_skip_a_token_of_the_text_are_refused(tiny_encoder) -> None:
    folder = Path(tiny_encoder(["가"], "roberta")[0])
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "pad_token_id": 1}), "utf-8")
    refuse(folder, "pad_token_id is 1 in config.json, but the tokenizer pads with 0")


def test_a_folder_without_an_encoder_is_named(tmp_path: Path) -> None:
    refuse(tmp_path, r"config.json is missing")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', "utf-8")
    with pytest.raises(BadInput, match="its weights cannot be loaded"):
        load_encoder(str(tmp_path))


def test_the_digest_changes_with_the_weights(tiny_encoder) -> None:
    folder = tiny_encoder(["서울에"])[0]
    before = digest(folder)
    weights = Path(folder) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert digest(folder) != before


def test_a_fresh_encoder_has_the_architecture_and_random_weights(tiny_encoder) -> None:
    name, tokenizer = tiny_encoder(["가나"])
    torch.manual_seed(5)
    fresh, again = load_encoder(f"fresh:{name}", tokenizer), load_encoder(f"fresh:{name}", tokenizer)
    trained = load_encoder(name, tokenizer)
    shapes = [{key: x.shape for key, x in encoder.state_dict().items()} for encoder in (fresh, trained)]
    assert shapes[0] == shapes[1]
    words = [encoder.encoder.get_input_embeddings().weight for encoder in (fresh, again, trained)]
    assert not torch.equal(words[0], words[1])
    assert not torch.equal(words[0], words[2])
    assert digest(f"fresh:{name}") != digest(name)


@pytest.mark.parametrize("trims", [True, False])
@pytest.mark.parametrize("prefix", [True, False])
@pytest.mark.parametrize("split", ["none", "punctuation", "digits"])
def test_a_tokenizer_whose_offsets_lose_letters_is_refused(split: str, prefix: bool, trims: bool, tiny_encoder) -> None:
    """A byte-level BPE puts a space before every part, and takes it off the offsets of all but the first wrongly."""
    folder = Path(tiny_encoder(["서울에"], vocab_size=500)[0])
    parts = {
        "none": [],
        "punctuation": [pre_tokenizers.Punctuation()],
        "digits": [pre_tokenizers.Digits(individual_digits=True)],
    }
    backend = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    backend.pre_tokenizer = pre_tokenizers.Sequence([*parts[split], byte_level])  # type: ignore[list-item]
    backend.decoder = decoders.ByteLevel()
    specials = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    trainer = trainers.BpeTrainer(
        vocab_size=450,
        special_tokens=specials,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(offset_sentences() * 3, trainer)
    backend.post_processor = processors.ByteLevel(trim_offsets=trims)
    roles = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    PreTrainedTokenizerFast(tokenizer_object=backend, **roles).save_pretrained(folder)
    if prefix and trims and split != "none":
        refuse(folder, r"wrong character offsets of its tokenizer in \d+ of 200 sentences; .* comes back as")
    else:
        check_encoder(str(folder))


def test_shifted_offsets_are_refused(tiny_encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = load_tokenizer(tiny_encoder(offset_sentences())[0])
    check_offsets("fine", tokenizer)

    class Shifted:
        def __init__(self, encoding: Any) -> None:
            self.ids = encoding.ids
            self.offsets = [(max(0, begin - 1), max(0, end - 1)) for begin, end in encoding.offsets]

    class Backend:
        decode = tokenizer.backend_tokenizer.decode

        def encode_batch(self, texts: list[str], **options: Any) -> list[Shifted]:
            return list(map(Shifted, tokenizer.backend_tokenizer.encode_batch(texts, **options)))

    with pytest.raises(BadInput, match="odd: wrong character offsets"):
        check_offsets("odd", SimpleNamespace(backend_tokenizer=Backend()))  # type: ignore[arg-type]


def test_sentences_for_offsets_are_many_and_mixed() -> None:
    sentences = offset_sentences()
    assert len(set(sentences)) == 200
    assert all(any(mark in text for text in sentences) for mark in ("😀", "(", "…", "KLUE", "가람이", "12000"))
