"""How well a vocabulary fits a text: the columns of paper Table 35, for any tokenizer folder or bare vocab.txt.

A word is an eojeol, cut at white space; the paper's figures fit no other unit (per BERT word they would be a fifth
lower). Every distinct eojeol is encoded once and weighed by its count, which gives the same sums as encoding the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from corpus.documents import BadInput
from tokenizer.export import build_tokenizer, read_vocabulary

EOJEOLS_PER_BATCH = 10_000
LISTED_UNKNOWN = 50
LONGEST_LISTED = 50  # characters of a listed eojeol; the rest is cut off


@dataclass(frozen=True, slots=True)
class TokenizerStatistics:
    """Sums and ratios over one text.

    Fields:
        vocab_size: entries, special and unused ones included.
        eojeols: words between white space, those of control characters alone left out.
        characters: without white space.
        tokens: pieces, no [CLS] or [SEP] among them.
        unknown_tokens: pieces that are [UNK]; one stands for a whole BERT word.
        fertility: tokens per eojeol, 1 at best.
        continued_words: share of eojeols in two or more pieces, 0..1.
        unknown_ratio: unknown_tokens per token, 0..1.
        tokens_per_character: the length of encoded text.
        unknown_eojeols: the most frequent eojeols with an [UNK] in them, and their counts.
    """

    vocab_size: int
    eojeols: int
    characters: int
    tokens: int
    unknown_tokens: int
    fertility: float
    continued_words: float
    unknown_ratio: float
    tokens_per_character: float
    unknown_eojeols: tuple[tuple[str, int], ...]

    def as_json(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


def measure(path: Path, texts: Iterable[str]) -> TokenizerStatistics:
    """Statistics of a tokenizer folder or vocab.txt over texts.

    Raises:
        BadInput: no tokenizer there, or no words in the texts.
    """
    tokenizer = load_tokenizer(path)
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text.split())
    return measure_counts(tokenizer, sorted(counts.items()))


def measure_counts(tokenizer: Tokenizer, counts: Iterable[tuple[str, int]]) -> TokenizerStatistics:
    """The same over eojeols with their counts.

    Raises:
        BadInput: there is no eojeol.
    """
    unknown = tokenizer.token_to_id(getattr(tokenizer.model, "unk_token", None) or "[UNK]")
    tokenizer.encode_special_tokens = True  # "[MASK]" in a text is three words, not the special token
    eojeols = characters = tokens = unknown_tokens = continued = 0
    unknown_eojeols: Counter[str] = Counter()
    rows = iter(counts)
    while batch := list(islice(rows, EOJEOLS_PER_BATCH)):
        encodings = tokenizer.encode_batch_fast([eojeol for eojeol, _ in batch], add_special_tokens=False)
        for (eojeol, count), encoding in zip(batch, encodings, strict=True):
            ids = encoding.ids
            if not ids:
                continue
            eojeols += count
            characters += count * len(eojeol)
            tokens += count * len(ids)
            continued += count * (len(ids) > 1)
            if unknown in ids:
                unknown_tokens += count * ids.count(unknown)
                unknown_eojeols[eojeol] += count
    if not eojeols:
        raise BadInput("there is no word in the text to measure; give text files that are not empty")
    ranked = sorted(unknown_eojeols.items(), key=lambda row: (-row[1], row[0]))
    return TokenizerStatistics(
        vocab_size=tokenizer.get_vocab_size(),
        eojeols=eojeols,
        characters=characters,
        tokens=tokens,
        unknown_tokens=unknown_tokens,
        fertility=tokens / eojeols,
        continued_words=continued / eojeols,
        unknown_ratio=unknown_tokens / tokens,
        tokens_per_character=tokens / characters,
        unknown_eojeols=tuple((eojeol[:LONGEST_LISTED], count) for eojeol, count in ranked[:LISTED_UNKNOWN]),
    )


def load_tokenizer(path: Path) -> Tokenizer:
    """The encoder of a Hugging Face folder (tokenizer.json, else vocab.txt) or of a vocab.txt alone.

    Raises:
        BadInput: neither is there, or the file is not what its name says.
    """
    file = path
    if path.is_dir():
        file = next((path / name for name in ("tokenizer.json", "vocab.txt") if (path / name).is_file()), path)
    if not file.is_file():
        raise BadInput(f"{path}: no tokenizer here; expected a folder with tokenizer.json or vocab.txt, or a vocab.txt")
    if file.suffix != ".json":
        return build_tokenizer(read_vocabulary(file))
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises bare Exception for whatever it cannot read
        raise BadInput(f"{file}: not a tokenizer of the tokenizers library ({error}); save it again") from error
