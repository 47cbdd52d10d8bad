"""A vocabulary to a Hugging Face folder that every loader reads alike.

Plain: BERT's rules and class BertTokenizer, which transformers rebuilds from the vocabulary, so that anything beyond
those rules would be lost in silence. Hardened (tokenizer.building.jamo): class PreTrainedTokenizerFast, which keeps
tokenizer.json as it is; the plain form with the same ids then lies in ``plain/`` for whoever needs BertTokenizer.
vocab.txt and special_tokens_map.json serve older readers.
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

from corpus.documents.errors import BadInput
from corpus.documents.whole_files import write_whole
from tokenizer.building.jamo import hardened_normalizer, unwritable
from tokenizer.config import SPECIAL_TOKENS, TokenizerConfig
from tokenizer.words import LONGEST_WORD, bert_normalizer

LONGEST_HARDENED_WORD = 3 * LONGEST_WORD  # a rewritten syllable has up to three jamo; the search is quadratic
ENCODER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json")
CARD_NAME = "README.md"
PLAIN_FOLDER = "plain"
ROLES = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}


def build_vocabulary(pieces: Sequence[str], config: TokenizerConfig) -> list[str]:
    """Entries by id: special tokens, learnt pieces, unused slots (the layout of KLUE's vocabulary)."""
    specials = SPECIAL_TOKENS[config.special_tokens]
    return [*specials, *pieces, *(f"[unused{number}]" for number in range(config.unused))]


def build_tokenizer(vocabulary: Sequence[str], *, hardened: bool = False) -> Tokenizer:
    """The encoder: BERT's rules, nothing lowercased, pairs as [CLS] A [SEP] B [SEP].

    Hardened: Hangul is rewritten before BERT's rules as far as the vocabulary has pieces for it; a word may have 300
    characters then (its 100 syllables as jamo) instead of 100.
    """
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    longest = LONGEST_HARDENED_WORD if hardened else LONGEST_WORD
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=longest))
    tokenizer.normalizer = hardened_normalizer(vocabulary) if hardened else bert_normalizer()
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
    """Write the encoder's files and README.md into ``out``; hardened ones there and plain ones in ``out/plain``.

    Raises:
        BadInput: the export is to be hardened and the vocabulary lacks pieces for it.
    """
    if config.hardened and (lost := unwritable(vocabulary)):
        raise BadInput(
            f"{out}: {len(lost):,} Hangul characters can become [UNK], the first is {lost[0]!r}; a hardened vocabulary "
            "needs all jamo with and without ##: train it with tokenizer.hardened=true or export it without"
        )
    _write_encoder(vocabulary, config, out, hardened=config.hardened)
    if config.hardened:
        (out / PLAIN_FOLDER).mkdir(exist_ok=True)
        _write_encoder(vocabulary, config, out / PLAIN_FOLDER, hardened=False)
    write_whole(out / CARD_NAME, card)


def _write_encoder(vocabulary: Sequence[str], config: TokenizerConfig, out: Path, *, hardened: bool) -> None:
    tokens = {f"{role}_token": token for role, token in ROLES.items()}
    # RoBERTa has one segment: its embedding has no row for the 1 that BERT gives to a second text
    segments = ["token_type_ids"] if config.special_tokens == "bert" else []
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast" if hardened else "BertTokenizer",
        # read by BertTokenizer alone, also where it is asked for a hardened folder: its own defaults take Hangul apart
        "do_lower_case": False, "strip_accents": False, "tokenize_chinese_chars": True,
        "model_max_length": config.max_length,
        "model_input_names": ["input_ids", *segments, "attention_mask"],
        **tokens,
    }  # fmt: skip
    write_whole(out / "vocab.txt", "".join(f"{piece}\n" for piece in vocabulary))
    write_whole(out / "tokenizer.json", build_tokenizer(vocabulary, hardened=hardened).to_str(pretty=True) + "\n")
    write_json(out / "tokenizer_config.json", settings)
    write_json(out / "special_tokens_map.json", tokens)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Indented JSON with Hangul as it is, whole or not at all."""
    write_whole(path, json.dumps(values, ensure_ascii=False, indent=2) + "\n")
