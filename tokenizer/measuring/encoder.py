"""Any tokenizer as an encoder of the words of a running text.

Padding, truncation and special tokens in the text ("[MASK]") are switched off, and words are encoded after a space if
the tokenizer keeps the space in the first piece of a word.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from tokenizers import AddedToken, Encoding, Tokenizer
from tokenizers.models import Unigram
from tokenizers.normalizers import BertNormalizer

from corpus.documents.atomic_files import read_json
from corpus.documents.errors import BadInput
from corpus.documents.model_files import refuse_links
from tokenizer.building.alphabet import missing_pieces
from tokenizer.building.export import build_tokenizer, read_vocabulary

FILE_NAMES = ("tokenizer.json", "vocab.txt")
TRIED_PAIRS = 50  # neighboring words with which the effect of a space is tested

Span = tuple[int, int]


class Encoder(NamedTuple):
    """A tokenizer for the eojeols of a text.

    ``before``: a space if the tokenizer encodes a word after a space differently (GPT-2's 한 and Ġ한), else empty.
    ``unknown``: the id of [UNK], None if there is none (byte-level vocabularies).
    """

    tokenizer: Tokenizer
    before: str
    unknown: int | None

    def ids(self, eojeols: Sequence[str]) -> list[list[int]]:
        """The pieces of each eojeol."""
        return [encoding.ids for encoding in self._encode(self.tokenizer.encode_batch_fast, eojeols)]

    def spans(self, eojeols: Sequence[str]) -> list[list[Span]]:
        """(begin, end) of each piece in characters of its eojeol; (0, 0) for a piece of the space only."""
        return [self._shift(encoding.offsets) for encoding in self._encode(self.tokenizer.encode_batch, eojeols)]

    def unknown_spans(self, eojeols: Sequence[str]) -> list[list[Span]]:
        """The spans of the pieces that are [UNK]."""
        encodings = self._encode(self.tokenizer.encode_batch, eojeols)
        return [
            [span for span, id_ in zip(self._shift(encoding.offsets), encoding.ids, strict=True) if id_ == self.unknown]
            for encoding in encodings
        ]

    def _encode(self, encode: Callable[..., list[Encoding]], eojeols: Sequence[str]) -> list[Encoding]:
        try:
            return encode([self.before + eojeol for eojeol in eojeols], add_special_tokens=False)
        except Exception as error:  # the library raises Exception, and TypeError for half a surrogate pair
            raise BadInput(f"the tokenizer cannot encode this text ({error}); check its model, and the text") from error

    def _shift(self, offsets: list[Span]) -> list[Span]:
        return [(max(begin - 1, 0), max(end - 1, 0)) for begin, end in offsets] if self.before else offsets


def make_encoder(tokenizer: Tokenizer, sample: Sequence[str]) -> Encoder:
    """Prepare ``tokenizer`` (it is changed), and test with neighbors in ``sample`` whether words need a space."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True
    bare, spaced = (Encoder(tokenizer, before, _unknown_id(tokenizer)) for before in ("", " "))
    pairs = list(islice(pairwise(sample), TRIED_PAIRS))
    firsts = bare.ids([first for first, _ in pairs])
    both = bare.ids([f"{first} {second}" for first, second in pairs])

    def explained(encoder: Encoder) -> int:
        seconds = encoder.ids([second for _, second in pairs])
        return sum(whole == a + b for whole, a, b in zip(both, firsts, seconds, strict=True))

    return spaced if explained(spaced) > explained(bare) else bare


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    model = tokenizer.model
    if isinstance(model, Unigram):  # this model has an id and does not expose it
        id_: int | None = json.loads(tokenizer.to_str())["model"]["unk_id"]
        return id_
    return tokenizer.token_to_id(model.unk_token) if model.unk_token else None


def load_tokenizer(path: Path) -> Tokenizer:
    """The encoder of a Hugging Face folder (tokenizer.json, else vocab.txt) or of one such file.

    A tokenizer_config.json next to a vocab.txt decides about case, accents and added tokens. Without it, case is kept,
    and accents are kept except with jamo_fallback.
    """
    file = path
    if path.is_dir():
        refuse_links(path)
        file = next((path / name for name in FILE_NAMES if (path / name).is_file()), path)
    if not file.is_file():
        raise BadInput(f"{path}: no tokenizer here; expected a folder with tokenizer.json or vocab.txt, or a vocab.txt")
    if file.suffix in (".model", ".tiktoken"):
        raise BadInput(f"{file}: only tokenizer.json and vocab.txt are read; use transformers' save_pretrained first")
    if file.suffix != ".json":
        return _from_vocabulary(file)
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises Exception for files that it cannot read
        raise BadInput(f"{file}: not a tokenizer of the tokenizers library ({error}); save it again") from error


def _from_vocabulary(file: Path) -> Tokenizer:
    vocabulary = read_vocabulary(file)
    tokenizer = build_tokenizer(vocabulary, jamo_fallback=not missing_pieces(vocabulary))
    config = file.with_name("tokenizer_config.json")
    settings = read_json(config, "fix it or move the vocab.txt to another folder") if config.is_file() else {}
    if not isinstance(settings, dict):
        return tokenizer
    try:
        added = [token for token in settings.get("added_tokens_decoder", {}).values() if not token.get("special")]
        tokenizer.add_tokens([AddedToken(row["content"], normalized=row.get("normalized", True)) for row in added])
        lowercase, strip_accents = settings.get("do_lower_case") is True, settings.get("strip_accents")
        if lowercase or strip_accents:
            is_han_apart = settings.get("tokenize_chinese_chars") is not False
            tokenizer.normalizer = BertNormalizer(True, is_han_apart, strip_accents, lowercase)
    except (AttributeError, KeyError, TypeError) as error:
        raise BadInput(f"{config}: not the settings of a BERT tokenizer ({error}); save the tokenizer again") from error
    return tokenizer
