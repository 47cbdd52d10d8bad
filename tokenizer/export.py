"""A vocabulary to a Hugging Face folder that every loader reads alike.

Plain BERT pipeline and class BertTokenizer: transformers rebuilds that class from the vocabulary, so anything beyond
BERT's own rules would be lost in silence. tokenizer.json serves the ``tokenizers`` library and
PreTrainedTokenizerFast; vocab.txt and special_tokens_map.json serve older readers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.decoders import WordPiece as WordPieceDecoder
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from corpus.documents import BadInput
from tokenizer.config import SPECIAL_TOKENS, TokenizerConfig
from tokenizer.words import LONGEST_WORD, bert_normalizer

ROLES = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}


def build_vocabulary(pieces: Sequence[str], config: TokenizerConfig) -> list[str]:
    """Entries by id: special tokens, learnt pieces, unused slots (the layout of KLUE's vocabulary)."""
    specials = SPECIAL_TOKENS[config.special_tokens]
    return [*specials, *pieces, *(f"[unused{number}]" for number in range(config.unused))]


def build_tokenizer(vocabulary: Sequence[str]) -> Tokenizer:
    """The encoder: BERT's rules, nothing lowercased, pairs as [CLS] A [SEP] B [SEP]."""
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD))
    tokenizer.normalizer = bert_normalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.decoder = WordPieceDecoder(prefix="##")
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    tokenizer.add_special_tokens(sorted(ROLES.values(), key=ids.__getitem__))
    return tokenizer


def read_vocabulary(path: Path) -> list[str]:
    """Entries of a vocab.txt by id.

    Raises:
        BadInput: not UTF-8, an entry twice, or a special token missing.
    """
    try:
        vocabulary = path.read_text("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start} is not UTF-8; expected a vocab.txt, one piece a line") from None
    vocabulary = [line.removesuffix("\r") for line in vocabulary]
    missing = sorted(set(ROLES.values()) - set(vocabulary))
    if missing:
        raise BadInput(f"{path}: no entry {', '.join(missing)}; expected a BERT vocab.txt, one piece a line")
    if len(set(vocabulary)) < len(vocabulary):
        twice = next(piece for number, piece in enumerate(vocabulary) if piece in vocabulary[:number])
        raise BadInput(f"{path}: {twice!r} stands there twice; every entry of a vocab.txt is an id of its own")
    return vocabulary


def export(vocabulary: Sequence[str], config: TokenizerConfig, card: str, out: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json, vocab.txt, special_tokens_map.json and README.md into ``out``."""
    tokens = {f"{role}_token": token for role, token in ROLES.items()}
    # RoBERTa has one segment: its embedding has no row for the 1 that BERT gives to a second text
    segments = ["token_type_ids"] if config.special_tokens == "bert" else []
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": False,
        "strip_accents": False,
        "tokenize_chinese_chars": True,
        "model_max_length": config.max_length,
        "model_input_names": ["input_ids", *segments, "attention_mask"],
        **tokens,
    }
    write(out / "vocab.txt", "".join(f"{piece}\n" for piece in vocabulary))
    write(out / "tokenizer.json", build_tokenizer(vocabulary).to_str(pretty=True) + "\n")
    write_json(out / "tokenizer_config.json", settings)
    write_json(out / "special_tokens_map.json", tokens)
    write(out / "README.md", card)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Indented JSON with Hangul as it is, whole or not at all."""
    write(path, json.dumps(values, ensure_ascii=False, indent=2) + "\n")


def write(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    temporary = path.with_name(path.name + ".partial")
    temporary.write_text(text, "utf-8", newline="\n")
    temporary.replace(path)
