"""A vocabulary to a Hugging Face folder that every reader encodes alike.

Readers of BERT vocabularies know one normaliser, one pre-tokeniser and one model, and many rebuild them from the
settings (BertTokenizer, ports that read vocab.txt alone); anything beyond would be lost there in silence. So both forms
keep to them: plain, as KLUE's own, and hardened, with ``strip_accents``, which takes syllables apart, over pieces in
jamo. Characters that stand apart are ordinary added tokens, which all readers look for before anything else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import WordPiece as WordPieceDecoder
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from tokenizer.building.alphabet import missing_pieces
from tokenizer.config import SPECIAL_TOKENS, TokenizerConfig
from tokenizer.words import LONGEST_WORD, bert_normalizer, stands_apart

ENCODER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json")
CARD_NAME = "README.md"
ROLES = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}


def build_vocabulary(pieces: Sequence[str], config: TokenizerConfig) -> list[str]:
    """Entries by id: special tokens, learnt pieces, unused slots (the layout of KLUE's vocabulary)."""
    specials = SPECIAL_TOKENS[config.special_tokens]
    return [*specials, *pieces, *(f"[unused{number}]" for number in range(config.unused))]


def build_tokenizer(vocabulary: Sequence[str], *, hardened: bool = False) -> Tokenizer:
    """The encoder: BERT's rules, nothing lowercased, pairs as [CLS] A [SEP] B [SEP].

    Hardened: text is decomposed, and what stands apart is cut out of it first.
    """
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD))
    tokenizer.normalizer = bert_normalizer(decomposes=hardened)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.decoder = WordPieceDecoder(prefix="##")
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    tokenizer.add_special_tokens(sorted(ROLES.values(), key=ids.__getitem__))
    if hardened:
        tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in _pieces_apart(vocabulary)])
    return tokenizer


def _pieces_apart(vocabulary: Sequence[str]) -> list[str]:
    return [piece for piece in vocabulary if len(piece) == 1 and stands_apart(piece)]


def read_vocabulary(path: Path) -> list[str]:
    """Entries of a vocab.txt by id; a byte order mark, CR LF and blank lines at the end are not part of any entry.

    Raises:
        BadInput: not UTF-8, an empty line between entries, an entry twice, or a special token missing.
    """
    try:
        text = path.read_bytes().decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start} is not UTF-8; expected a vocab.txt, one piece a line") from None
    vocabulary = [line.removesuffix("\r") for line in text.split("\n")]
    while vocabulary and not vocabulary[-1]:
        vocabulary.pop()
    missing = sorted(set(ROLES.values()) - set(vocabulary))
    if missing:
        raise BadInput(f"{path}: no entry {', '.join(missing)}; expected a BERT vocab.txt, one piece a line")
    lines: dict[str, int] = {}
    for number, piece in enumerate(vocabulary, 1):
        if not piece:
            raise BadInput(f"{path}: line {number} is empty; every line of a vocab.txt is an id and holds its piece")
        if (first := lines.setdefault(piece, number)) != number:
            raise BadInput(
                f"{path}: {piece!r} stands there twice, in lines {first} and {number}; every entry is an id of its own"
            )
    return vocabulary


def export(vocabulary: Sequence[str], config: TokenizerConfig, card: str, out: Path) -> None:
    """Write the encoder's files and README.md into ``out``; vocab.txt and special_tokens_map.json serve older readers.

    Raises:
        BadInput: the export is to be hardened and the vocabulary lacks pieces for it.
    """
    if config.hardened and (missing := missing_pieces(vocabulary)):
        raise BadInput(
            f"{out}: no piece for {len(missing):,} letters, the first is {missing[0]!r}; a hardened vocabulary needs "
            "all jamo: train it with tokenizer.hardened=true or export it without"
        )
    tokenizer = build_tokenizer(vocabulary, hardened=config.hardened)
    tokens = {f"{role}_token": token for role, token in ROLES.items()}
    # RoBERTa has one segment: its embedding has no row for the 1 that BERT gives to a second text
    segments = ["token_type_ids"] if config.special_tokens == "bert" else []
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": False, "strip_accents": config.hardened, "tokenize_chinese_chars": True,
        "model_max_length": config.max_length,
        "model_input_names": ["input_ids", *segments, "attention_mask"],
        **tokens,
        "added_tokens_decoder": _added_tokens(tokenizer),
    }  # fmt: skip
    atomic_write(out / "vocab.txt", "".join(f"{piece}\n" for piece in vocabulary))
    atomic_write(out / "tokenizer.json", tokenizer.to_str(pretty=True) + "\n")
    write_json(out / "tokenizer_config.json", settings)
    write_json(out / "special_tokens_map.json", tokens)
    atomic_write(out / CARD_NAME, card)


def _added_tokens(tokenizer: Tokenizer) -> dict[str, dict[str, Any]]:
    """As readers that rebuild a tokenizer expect them, by id."""
    fields = ("content", "lstrip", "normalized", "rstrip", "single_word", "special")
    added = sorted(tokenizer.get_added_tokens_decoder().items())
    return {str(id_): {field: getattr(token, field) for field in fields} for id_, token in added}


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Indented JSON with Hangul as it is, whole or not at all."""
    atomic_write(path, json.dumps(values, ensure_ascii=False, indent=2) + "\n")
