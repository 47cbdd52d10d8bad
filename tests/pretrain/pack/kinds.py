"""Tokenizers of all kinds, small enough to be made in a test."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE, Unigram, WordPiece
from tokenizers.normalizers import NFC, NFKC, BertNormalizer
from tokenizers.pre_tokenizers import ByteLevel, Metaspace, WhitespaceSplit
from tokenizers.trainers import BpeTrainer, UnigramTrainer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tests.pretrain.conftest import SPECIAL_PIECES, WORDS

LETTERS = "윤슬가람바다도서관에시장했었뷁ㅋㅠabcZé0漢字.,!?()[]#·…“”「」〈、。％Ａ№"
# found unchanged: those written as codes are decomposed, or what others become; WordPiece does not know ♣
SYMBOLS = "①♥😀か·\u304c\u00c5\u03a9\uf95c"
UNKNOWN_SYMBOL = "♣"
JAMO = [
    chr(code) for first, end in ((0x1100, 0x1200), (0xA960, 0xA97D), (0xD7B0, 0xD7FC)) for code in range(first, end)
]


def build(normalizer: normalizers.Normalizer | None) -> Tokenizer:
    """A WordPiece of BERT's kind that lacks some characters; others only begin or only continue a word."""
    return word_piece(known_pieces(), normalizer)


def known_pieces() -> list[str]:
    known = [c for c in dict.fromkeys(LETTERS + "\ufffd\ue000") if c not in "뷁Z№"]
    return [*SPECIAL_PIECES, *WORDS, *known, *(f"##{c}" for c in known if c not in "漢자."), "[unused0]", "##]", "ab"]


def word_piece(pieces: Iterable[str], normalizer: normalizers.Normalizer | None) -> Tokenizer:
    ids = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(list(SPECIAL_PIECES))
    return tokenizer


def plain() -> Tokenizer:
    return build(BertNormalizer(strip_accents=False, lowercase=False))


def portable() -> Tokenizer:
    return decomposed(known_pieces())


def decomposed(pieces: list[str]) -> Tokenizer:
    """The same pieces written in jamo, each jamo too; symbols are separate words."""
    apart = [unicodedata.normalize("NFD", piece) for piece in pieces]
    apart += [*JAMO, *(f"##{jamo}" for jamo in JAMO), *SYMBOLS]
    tokenizer = word_piece(apart, BertNormalizer(strip_accents=True, lowercase=False))
    tokenizer.add_tokens([AddedToken(symbol, special=False, normalized=False) for symbol in SYMBOLS + UNKNOWN_SYMBOL])
    return tokenizer


def composing() -> Tokenizer:
    """Characters join before WordPiece sees them."""
    return build(normalizers.Sequence([NFC(), BertNormalizer(strip_accents=False, lowercase=False)]))


def lowercasing() -> Tokenizer:
    return build(BertNormalizer())  # takes syllables apart, of which it has no pieces


def cutting_short() -> Tokenizer:
    """Settings of a tokenizer.json that would cut and fill the pieces of an eojeol."""
    tokenizer = plain()
    tokenizer.enable_truncation(1)
    tokenizer.enable_padding(length=7)
    return tokenizer


def with_found_words() -> Tokenizer:
    """Added words are looked for inside eojeols, before anything else."""
    tokenizer = plain()
    tokenizer.add_tokens([AddedToken("서관", normalized=True), AddedToken("바", normalized=False, lstrip=True)])
    return tokenizer


def with_found_symbols() -> Tokenizer:
    """One is found everywhere, the other only where no letter is next to it."""
    tokenizer = plain()
    tokenizer.add_tokens([AddedToken("람", normalized=False), AddedToken("슬", normalized=False, single_word=True)])
    return tokenizer


def rewriting() -> Tokenizer:
    """A normaliser that looks at two characters at once."""
    return build(normalizers.Sequence([normalizers.Replace("가람", "도 서"), plain().normalizer]))


def cutting_inside() -> Tokenizer:
    """A pre-tokeniser that looks at two characters at once."""
    tokenizer = plain()
    cut = pre_tokenizers.Split("슬가", "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, pre_tokenizers.BertPreTokenizer()])
    return tokenizer


def with_a_mark_for_blanks() -> Tokenizer:
    tokenizer = plain()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    return tokenizer


def without_normalizer() -> Tokenizer:
    return build(None)


KINDS = (
    plain, portable, composing, lowercasing, cutting_short, with_found_words, with_found_symbols, rewriting,
    cutting_inside, with_a_mark_for_blanks, without_normalizer,
)  # fmt: skip


def save(tokenizer: Tokenizer, folder: Path) -> Path:
    roles = {f"{role}_token": f"[{role.upper()}]" for role in ("pad", "unk", "cls", "sep", "mask")}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles).save_pretrained(folder)
    return folder


def load(folder: Path) -> Tokenizer:
    backend = AutoTokenizer.from_pretrained(folder).backend_tokenizer
    backend.encode_special_tokens = True
    backend.no_truncation()
    backend.no_padding()
    return backend


ANGLE_PIECES = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
LESSONS = [f"윤슬은 {n}번째 날 도서관에서 (노래했다). Don't go, 가람!" for n in range(9)]


def byte_level(add_prefix_space: bool) -> Tokenizer:
    """The kind of RoBERTa and GPT-2."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    alphabet = ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=320, initial_alphabet=alphabet, special_tokens=ANGLE_PIECES, show_progress=False)
    tokenizer.train_from_iterator(LESSONS, trainer)
    return tokenizer


def sentencepiece(pre_tokenizer: pre_tokenizers.PreTokenizer) -> Tokenizer:
    """The kind of XLM-RoBERTa and ALBERT."""
    tokenizer = Tokenizer(Unigram())
    tokenizer.normalizer, tokenizer.pre_tokenizer = NFKC(), pre_tokenizer
    trainer = UnigramTrainer(vocab_size=90, unk_token="<unk>", special_tokens=ANGLE_PIECES, show_progress=False)
    tokenizer.train_from_iterator(LESSONS, trainer)
    return tokenizer


def save_angled(tokenizer: Tokenizer, folder: Path) -> Path:
    roles = dict(zip(("cls", "pad", "sep", "unk", "mask"), ANGLE_PIECES, strict=True))
    names = {f"{role}_token": piece for role, piece in roles.items()}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    return folder


FOREIGN = {
    "byte-level BPE": lambda: byte_level(False),
    "byte-level BPE with a blank in front": lambda: byte_level(True),
    "SentencePiece": lambda: sentencepiece(Metaspace(prepend_scheme="always")),
    "SentencePiece, first word marked": lambda: sentencepiece(Metaspace(prepend_scheme="first")),
    "SentencePiece, first word unmarked": lambda: sentencepiece(Metaspace(prepend_scheme="never")),
    "SentencePiece after cutting": lambda: sentencepiece(
        pre_tokenizers.Sequence([WhitespaceSplit(), Metaspace(prepend_scheme="always")])
    ),
}
