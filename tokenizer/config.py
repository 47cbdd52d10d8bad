"""Settings of the tokenizer stage; the defaults are the vocabulary of KLUE (paper section 4.1, Appendix C).

The paper says 32,000 pieces over mecab-ko morphemes; alphabet, unused slots and layout are read off the released
vocabulary: 2,000 characters that start a word, then their ``##`` forms, then merges, then 500 unused slots.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, model_validator

SPECIAL_TOKENS = {
    "bert": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),  # klue/bert-base
    "roberta": ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"),  # klue/roberta-*
}


class TokenizerConfig(BaseModel, frozen=True, extra="forbid"):
    """A WordPiece vocabulary: how it is built and how it is exported."""

    builder: Literal["klue", "bpe", "malmoi"] = Field(
        "klue",
        description="klue: merges inside morphemes, each learnt as the start of a word (section 4.1); "
        "bpe: merges inside words, no analyser (Table 35, first row); "
        "malmoi: inside morphemes that know whether they start a word.",
    )
    vocab_size: int = Field(32_000, gt=0, le=1 << 31, description="Entries, special and unused ones included (4.1).")
    alphabet: int = Field(
        2_000,
        gt=0,
        description="Most frequent characters kept as pieces; a word with any other is [UNK] (KLUE's vocabulary).",
    )
    min_frequency: int = Field(2, ge=1, description="Pairs seen less often are not merged (trainer of KLUE's authors).")
    unused: int = Field(500, ge=0, description="Spare entries [unused0] … at the end (KLUE's vocabulary).")
    special_tokens: Literal["bert", "roberta"] = Field(
        "roberta", description="Order of the first five ids: as klue/bert-base or as klue/roberta-base has them."
    )
    max_length: int = Field(512, ge=8, description="model_max_length of the exported tokenizer (section 4.1).")

    @model_validator(mode="after")
    def _vocabulary_has_room(self) -> TokenizerConfig:
        fixed = len(SPECIAL_TOKENS[self.special_tokens]) + self.unused
        if self.vocab_size <= fixed:
            raise ValueError(f"vocab_size {self.vocab_size} must exceed the {fixed} special and unused entries")
        return self
