"""Export of a vocabulary as a Hugging Face folder that all readers encode in the same way.

Many readers rebuild BERT's normalizer, pre-tokenizer and model from the settings, so both forms use only these: plain,
like KLUE's, and with jamo_fallback, where ``strip_accents`` decomposes syllables and pieces are in jamo. Separated
characters are ordinary added tokens, which all readers look up first.
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
from tokenizer.words import LONGEST_WORD, bert_normalizer, is_separated

ENCODER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json")
CARD_NAME = "README.md"
ROLES = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}


def build_vocabulary(pieces: Sequence[str], config: TokenizerConfig) -> list[str]:
    """Entries by id: special tokens, learned pieces, unused slots (the layout of KLUE's vocabulary)."""
    specials = SPECIAL_TOKENS[config.special_tokens]
    return [*specials, *pieces, *(f"[unused{number}]" for number in range(config.unused))]


def build_tokenizer(vocabulary: Sequence[str], *, jamo_fallback: bool = False) -> Tokenizer:
    """The encoder: BERT's rules, nothing lowercased, pairs as [CLS] A [SEP] B [SEP].

    With jamo_fallback, text is decomposed, and separated characters are split off first.
    """
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD))
    tokenizer.normalizer = bert_normalizer(decomposes=jamo_fallback)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.decoder = WordPieceDecoder(prefix="##")
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    tokenizer.add_special_tokens(sorted(ROLES.values(), key=ids.__getitem__))
    if jamo_fallback:
        separated = [piece for piece in vocabulary if len(piece) == 1 and is_separated(piece)]
        tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in separated])
    return tokenizer


def read_vocabulary(path: Path) -> list[str]:
    """Entries of a vocab.txt by id; a byte order mark, CR LF and blank lines at the end are ignored."""
    try:
        text = path.read_bytes().decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start} is not UTF-8; expected a vocab.txt, one piece per line") from None
    vocabulary = [line.removesuffix("\r") for line in text.split("\n")]
    while vocabulary and not vocabulary[-1]:
        vocabulary.pop()
    missing = sorted(set(ROLES.values()) - set(vocabulary))
    if missing:
        raise BadInput(f"{path}: no entry {', '.join(missing)}; expected a BERT vocab.txt, one piece per line")
    lines: dict[str, int] = {}
    for number, piece in enumerate(vocabulary, 1):
        if not piece:
            raise BadInput(f"{path}: line {number} is empty; every line of a vocab.txt must have a piece")
        if (first := lines.setdefault(piece, number)) != number:
            raise BadInput(f"{path}: duplicate entry {piece!r} in lines {first} and {number}; remove one")
    return vocabulary


def export(vocabulary: Sequence[str], config: TokenizerConfig, card: str, out: Path) -> None:
    """Write the encoder's files and README.md into ``out``; two of the files serve older readers."""
    if config.jamo_fallback and (missing := missing_pieces(vocabulary)):
        raise BadInput(
            f"{out}: no piece for {len(missing):,} letters, the first is {missing[0]!r}; tokenizer.jamo_fallback "
            "needs all jamo: train the vocabulary with it, or export without it"
        )
    tokenizer = build_tokenizer(vocabulary, jamo_fallback=config.jamo_fallback)
    tokens = {f"{role}_token": token for role, token in ROLES.items()}
    # RoBERTa has one segment: its embedding has no row for the type 1 of a second text
    segments = ["token_type_ids"] if config.special_tokens == "bert" else []
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": False, "strip_accents": config.jamo_fallback, "tokenize_chinese_chars": True,
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
    """Added tokens by id, in the format of tokenizer_config.json."""
    fields = ("content", "lstrip", "normalized", "rstrip", "single_word", "special")
    added = sorted(tokenizer.get_added_tokens_decoder().items())
    return {str(id_): {field: getattr(token, field) for field in fields} for id_, token in added}


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write indented JSON with readable Hangul, atomically."""
    atomic_write(path, json.dumps(values, ensure_ascii=False, indent=2) + "\n")
