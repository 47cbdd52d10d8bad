"""Settings of the tokenizer stage; the defaults are the vocabulary of KLUE (paper section 4.1, Appendix C).

Alphabet, unused slots and layout are those of the released vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from corpus.documents.section import Section

SPECIAL_TOKENS = {
    "bert": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),  # klue/bert-base
    "roberta": ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"),  # klue/roberta-*
}
MIN_LEARNED = 4  # characters may take half of them, and each takes two: with and without ##


class TokenizerConfig(Section):
    """How a WordPiece vocabulary is built and exported."""

    renamed: ClassVar[Mapping[str, str]] = {"hardened": "jamo_fallback", "most_types": "max_types"}
    removed: ClassVar[Mapping[str, str]] = {
        "max_crossing_share": "builder malmoi drops pieces with more than half of their uses across morphemes",
        "pruning_rounds": "builder malmoi drops pieces in 4 rounds",
    }

    builder: Literal["klue", "bpe", "malmoi"] = Field(
        "klue",
        description="klue: merges inside morphemes, each learned as the start of a word (section 4.1). "
        "bpe: merges inside words, without an analyser (Table 35, first row). "
        "malmoi: merges inside morphemes with ## for those that continue a word; pieces that often cross morphemes "
        "are dropped.",
    )
    analyser: Literal["mecab", "kiwi"] = Field(
        "mecab",
        description="Morphological analyser: mecab-ko (4.1), or Kiwi, which agrees better with annotators and takes "
        "ten times as long (needs malmoi[kiwi]).",
    )
    vocab_size: int = Field(
        32_000, gt=0, le=1 << 31, description="Number of entries, including special and unused ones (4.1)."
    )
    alphabet: int = Field(
        2_000,
        gt=0,
        description="Number of most frequent characters that are pieces; a word with any other character is [UNK] "
        "(KLUE's vocabulary). Not counted: common symbols and the most frequent syllables (up to a seventh of the "
        "entries) with builder malmoi; ASCII, Hangul, emoji and common symbols with jamo_fallback.",
    )
    jamo_fallback: bool = Field(
        False,
        description="Write pieces in jamo, from which every syllable can be composed, and separate symbols from words, "
        "so that no Hangul is [UNK]. Works in every reader of BERT vocabularies. Tokens and decoded text are in NFD.",
    )
    min_frequency: int = Field(2, ge=1, description="Smallest count of a merged pair (trainer of KLUE's authors).")
    max_types: int = Field(
        2_000_000,
        gt=0,
        description="Largest number of eojeol types for training, most frequent first; 800,000 cover 90 % of 200 MB.",
    )
    overgeneration: float = Field(
        2.0, ge=1.0, le=4.0, description="Pieces learned for each piece that is kept (builder malmoi)."
    )
    unused: int = Field(500, ge=0, description="Number of unused entries [unused0] … at the end (KLUE's vocabulary).")
    special_tokens: Literal["bert", "roberta"] = Field(
        "roberta", description="Order of the first five ids: that of klue/bert-base or of klue/roberta-base."
    )
    extend: Annotated[int, Field(ge=0)] | str = Field(
        0,
        description="Number of pieces of this text to add to the tokenizer of pretrain.init_from, or a folder of "
        "`malmoi tokenizer extend` with such pieces. No other vocabulary is learned.",
    )
    max_length: int = Field(512, ge=8, description="model_max_length of the exported tokenizer (section 4.1).")

    @property
    def learned(self) -> int:
        """Number of entries that are neither special nor unused."""
        return self.vocab_size - len(SPECIAL_TOKENS[self.special_tokens]) - self.unused

    @model_validator(mode="after")
    def _vocabulary_has_room(self) -> TokenizerConfig:
        fixed = self.vocab_size - self.learned
        needed = MIN_LEARNED
        if self.jamo_fallback:
            from tokenizer.building.alphabet import ALWAYS_PIECES  # here, because it loads the tokenizers library

            needed = 1 + len(ALWAYS_PIECES)
        if self.learned < needed:
            what = "ASCII, emoji, all jamo and one piece" if self.jamo_fallback else "one character and one piece"
            max_unused = self.unused + self.learned - needed
            alternative = f", or lower unused to {max_unused}" if max_unused >= 0 else ""
            raise ValueError(
                f"vocab_size {self.vocab_size} is too small: {fixed} entries are special or unused, and {what} to "
                f"learn need {needed}; raise vocab_size to {fixed + needed} or more{alternative}"
            )
        return self
