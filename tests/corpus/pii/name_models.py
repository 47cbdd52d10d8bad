"""Tiny models that tag names, saved as folders: one whose weights are set by hand, one with random weights.

The first tags ``가온``, ``하람``, ``##하람`` and ``구름`` as B-PS in any context, and ``##솔``,
``##솔을``, ``##리는`` and ``새`` as I-PS.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import BertConfig, BertForTokenClassification, PreTrainedTokenizerFast

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
BEGINS, GOES_ON = ("가온", "하람", "구름", "##하람"), ("##솔", "##솔을", "##리는", "새")
WORDS = ("어제", "오늘", "비가", "왔다", "만났다", "학교에", "갔다", "문의", "메일", "전화", "성명", "님", "씨")
PIECES = ("##은", "##는", "##이", "##가", "##을", "##를", "##에게", "##님", "##새", "##싹", ".", ",", "·", "@", "-")
LABELS = ("B-PS", "I-PS", "O")
SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


def save_tokenizer(folder: Path, characters: str = "") -> int:
    """A WordPiece tokenizer of the words above and of single characters; returns how many tokens it knows."""
    letters = list(dict.fromkeys(characters + "abcdefghijklmnopqrstuvwxyz0123456789"))
    tokens = [*SPECIALS, *BEGINS, *GOES_ON, *WORDS, *PIECES, *letters, *(f"##{c}" for c in letters)]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=200))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    roles = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **roles).save_pretrained(folder)
    return len(vocabulary)


def save_model(folder: Path, labels: Sequence[str] = LABELS) -> Path:
    """The model by hand: its layers add nothing to the embeddings, whose first numbers say which tag is right."""
    model = BertForTokenClassification(_config(save_tokenizer(folder), labels, max_position_embeddings=64))
    with torch.no_grad():
        for name, weights in model.named_parameters():
            weights.fill_(1.0 if "LayerNorm.weight" in name else 0.0)
        kinds = model.bert.embeddings.word_embeddings.weight
        kinds[:, 2] = 1.0
        first = len(SPECIALS)
        kinds[first : first + len(BEGINS)] = torch.eye(8)[0]
        kinds[first + len(BEGINS) : first + len(BEGINS) + len(GOES_ON)] = torch.eye(8)[1]
        model.classifier.weight[: len(labels), : len(labels)] = 4 * torch.eye(len(labels))
    model.save_pretrained(folder)
    return folder


def save_random_model(folder: Path, seed: int = 1) -> Path:
    """Weights at random, so far apart that most tokens tell their neighbours."""
    torch.manual_seed(seed)
    settings = {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "initializer_range": 0.4}
    config = _config(save_tokenizer(folder), LABELS, max_position_embeddings=64, **settings)
    BertForTokenClassification(config).save_pretrained(folder)
    return folder


def _config(vocab_size: int, labels: Sequence[str], **settings: object) -> BertConfig:
    return BertConfig(vocab_size=vocab_size, pad_token_id=0, id2label=dict(enumerate(labels)), **SIZES | settings)
