"""A tiny random encoder with a vocabulary of single characters, and the real vocabulary, for tests of the tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece
from torch import Tensor
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, RobertaConfig, RobertaModel

from finetune.data.files import read_text
from finetune.tasks.ner.metrics import NER_TAGS

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def certain(tags: Any) -> NDArray[np.float32]:
    """Raw outputs of a model of KLUE-NER that is sure of these tag ids, (tokens, tags)."""
    return np.eye(len(NER_TAGS), dtype=np.float32)[np.array(tags)]


def build_wordpiece(pieces: Iterable[str]) -> PreTrainedTokenizerFast:
    """The tokenizer of klue/bert-base over other pieces."""
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    ends = [(name, vocabulary[name]) for name in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*ends)
    names = ("pad", "unk", "cls", "sep", "mask")
    roles = {f"{name}_token": token for name, token in zip(names, SPECIALS, strict=True)}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles)


def build_tiny_encoder(
    home: Path, texts: Iterable[str], kind: str = "bert", **changes: Any
) -> tuple[str, PreTrainedTokenizerFast]:
    """A model folder ("bert" or "roberta", 1 layer, 32 wide) below ``home``, and its tokenizer."""
    characters = sorted(set("".join(texts)) - set(" \n"))
    pieces = [*SPECIALS, *characters, *(f"##{character}" for character in characters)]
    sizes: dict[str, Any] = {
        "vocab_size": len(pieces),
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 300,
        "pad_token_id": 0,
        "initializer_range": 0.1,  # so narrow a model would hardly hear its input at the usual 0.02
        **changes,
    }
    torch.manual_seed(1)
    model = (
        BertModel(BertConfig(**sizes)) if kind == "bert" else RobertaModel(RobertaConfig(**sizes, type_vocab_size=1))
    )
    folder = home / kind
    tokenizer = build_wordpiece(pieces)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder), tokenizer


@pytest.fixture
def tiny_encoder(tmp_path: Path) -> Callable[..., tuple[str, PreTrainedTokenizerFast]]:
    """``build_tiny_encoder`` in the folder of the test."""
    return partial(build_tiny_encoder, tmp_path)


@pytest.fixture
def klue_tokenizer(shared: Callable[[str], Path]) -> PreTrainedTokenizerFast:
    """The tokenizer of klue/bert-base."""
    text = shared("data/klue/vocab/klue-bert-base-vocab.txt").read_text(encoding="utf-8")
    return build_wordpiece(text.split("\n")[:-1] if text.endswith("\n") else text.split("\n"))


@pytest.fixture
def published_features(shared: Callable[[str], Path]) -> Callable[[str], list[dict[str, Any]]]:
    """What the published conversion makes of real examples of a task."""
    lines = read_text(shared("oracle/features_public.jsonl.zst")).splitlines()

    def load(task: str) -> list[dict[str, Any]]:
        records = [json.loads(line) for line in lines]
        return [record for record in records if record.get("task") == task and "quirk" not in record]

    return load


@pytest.fixture(scope="module")
def one_export() -> Iterator[None]:
    """The same weights, whose graph takes seconds, are exported once."""
    from finetune.inference import onnx_export as export

    write, written = export.write_graph, dict[str, bytes]()

    def write_once(net: Any, inputs: Mapping[str, Tensor], path: Path) -> None:
        weights = b"".join(tensor.numpy().tobytes() for tensor in (*net.state_dict().values(), *inputs.values()))
        key = hashlib.sha256(weights).hexdigest()
        if key not in written:
            write(net, inputs, path)
            assert [file.name for file in path.parent.iterdir()] == [path.name]
            written[key] = path.read_bytes()
        path.write_bytes(written[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "write_graph", write_once)
        yield
