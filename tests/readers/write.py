"""Exported tokenizers, sentences, and the ids that the library ``tokenizers`` gives: what every reader is held to.

    python -m tests.readers.write OUT

writes OUT/sentences.json, and the folders jamo_fallback-bert, jamo_fallback-roberta, plain-bert and plain-roberta with
ids.json in each.
"""

from __future__ import annotations

import json
import random
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from tests.readers.sentences import make_sentences
from tokenizer.building.alphabet import ALWAYS_PIECES
from tokenizer.building.export import build_vocabulary, export
from tokenizer.config import SPECIAL_TOKENS, TokenizerConfig

WORDS = 400  # of the sentences, in the vocabulary: whole, and cut in two


def write_folder(out: Path, sentences: Sequence[str], *, jamo_fallback: bool, order: str) -> Path:
    """A tokenizer whose vocabulary knows some words of the sentences."""
    config = TokenizerConfig(vocab_size=4_000, unused=2, jamo_fallback=jamo_fallback, special_tokens=order)
    out.mkdir(parents=True)
    export(build_vocabulary(_pieces(sentences, jamo_fallback), config), config, "# card\n", out)
    return out


def _pieces(sentences: Sequence[str], jamo_fallback: bool) -> list[str]:
    rng = random.Random(5)
    words = sorted({word for sentence in sentences for word in sentence.split() if word.isprintable()})
    pieces = list(ALWAYS_PIECES)
    for word in rng.sample(words, min(WORDS, len(words))):
        text = unicodedata.normalize("NFD" if jamo_fallback else "NFC", word)
        cut = rng.randint(1, len(text))
        pieces += [text, text[:cut], f"##{text[cut:]}", *(f"{sign}{c}" for c in text for sign in ("", "##"))]
    return [
        piece
        for piece in dict.fromkeys(pieces)
        if piece not in (*SPECIAL_TOKENS["bert"], "##", "[unused0]", "[unused1]")
    ]


def read_alone(folder: Path, sentences: Sequence[str]) -> list[list[int]]:
    """As the library reads ``tokenizer.json``."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return [tokenizer.encode(sentence).ids for sentence in sentences]


def main(out: Path, count: int = 2_000) -> None:
    sentences = make_sentences(count)
    for form in ("jamo_fallback", "plain"):
        for order in SPECIAL_TOKENS:
            folder = write_folder(
                out / f"{form}-{order}", sentences, jamo_fallback=form == "jamo_fallback", order=order
            )
            (folder / "ids.json").write_text(json.dumps(read_alone(folder, sentences)), "utf-8")
    (out / "sentences.json").write_text(json.dumps(sentences), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
