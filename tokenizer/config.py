"""Settings of the tokenizer stage; the defaults are the vocabulary of KLUE (paper section 4.1, Appendix C).

The paper says 32,000 pieces over mecab-ko morphemes; alphabet, unused slots and layout are read off the released
vocabulary: 2,000 characters that start a word, then their ``##`` forms, then merges, then 500 unused slots.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field, model_validator

from corpus.documents.section import Section

SPECIAL_TOKENS = {
    "bert": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),  # klue/bert-base
    "roberta": ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"),  # klue/roberta-*
}
SMALLEST_LEARNT = 4  # characters may take half of them, and one takes two: bare and with ##


class TokenizerConfig(Section):
    """A WordPiece vocabulary: how it is built and how it is exported."""

    builder: Literal["klue", "bpe", "malmoi"] = Field(
        "klue",
        description="klue: merges inside morphemes, each learnt as the start of a word (section 4.1); "
        "bpe: merges inside words, no analyser (Table 35, first row); "
        "malmoi: inside morphemes that know whether they start a word, less the pieces that cross them in use.",
    )
    analyser: Literal["mecab", "kiwi"] = Field(
        "mecab",
        description="Who cuts words into morphemes: mecab-ko (4.1), or Kiwi, which agrees better with people and takes "
        "ten times the time (malmoi[kiwi]).",
    )
    vocab_size: int = Field(32_000, gt=0, le=1 << 31, description="Entries, special and unused ones included (4.1).")
    alphabet: int = Field(
        2_000,
        gt=0,
        description="Most frequent characters kept as pieces, of a hardened vocabulary those beyond ASCII, Hangul and "
        "emoji; a word with any other is [UNK] (KLUE's vocabulary).",
    )
    hardened: bool = Field(
        False,
        description="Pieces in jamo, of which every syllable can be made, and symbols that stand apart, so that no "
        "Hangul is [UNK]; the same ids in every reader of BERT vocabularies. Tokens and decoded text are in NFD.",
    )
    min_frequency: int = Field(2, ge=1, description="Pairs seen less often are not merged (trainer of KLUE's authors).")
    most_types: int = Field(
        2_000_000,
        gt=0,
        description="Eojeol types analysed and learnt from at most, the most frequent ones; 90 % of 200 MB at 800,000.",
    )
    overgeneration: float = Field(2.0, ge=1.0, le=4.0, description="Pieces learnt for each one kept (builder malmoi).")
    max_crossing_share: float = Field(
        0.5, ge=0.0, le=1.0, description="A piece is dropped when more of its uses cross a morpheme boundary (malmoi)."
    )
    pruning_rounds: int = Field(4, ge=1, le=10, description="Times that pieces are dropped and uses counted (malmoi).")
    unused: int = Field(500, ge=0, description="Spare entries [unused0] … at the end (KLUE's vocabulary).")
    special_tokens: Literal["bert", "roberta"] = Field(
        "roberta", description="Order of the first five ids: as klue/bert-base or as klue/roberta-base has them."
    )
    extend: Annotated[int, Field(ge=0)] | str = Field(
        0,
        description="Pieces of this text added to the tokenizer of pretrain.init_from, or a folder that `malmoi "
        "tokenizer extend` made of that tokenizer; nothing else is learnt.",
    )
    max_length: int = Field(512, ge=8, description="model_max_length of the exported tokenizer (section 4.1).")

    @property
    def learnt(self) -> int:
        """Entries that are neither special nor unused."""
        return self.vocab_size - len(SPECIAL_TOKENS[self.special_tokens]) - self.unused

    @model_validator(mode="after")
    def _vocabulary_has_room(self) -> TokenizerConfig:
        fixed = self.vocab_size - self.learnt
        needed = 1 + always_known_entries() if self.hardened else SMALLEST_LEARNT
        if self.learnt < needed:
            what = "ASCII, emoji, all jamo and one piece" if self.hardened else "one character and one piece"
            most_unused = self.unused + self.learnt - needed
            other_way = f", or lower unused to {most_unused}" if most_unused >= 0 else ""
            raise ValueError(
                f"vocab_size {self.vocab_size} is too small: {fixed} entries are special or unused, and {what} to "
                f"learn need {needed}; raise vocab_size to {fixed + needed} or more{other_way}"
            )
        return self


@cache
def always_known_entries() -> int:
    """Entries of the characters that every hardened vocabulary has, seen in the text or not."""
    from tokenizer.building.alphabet import ALWAYS_PIECES  # here: it loads the library, most recipes do without

    return len(ALWAYS_PIECES)
