"""Any Hugging Face encoder folder (BERT, RoBERTa, ELECTRA and kin), its tokenizer, and its limits.

Weights are read from safetensors only and as float32; no code from a model folder is run. Segment ids are passed on
only where the encoder has segments: a RoBERTa with BERT-style inputs has one segment type and would fail on the second.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    BertTokenizer,
    PreTrainedConfig,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from finetune.config import BadInput

# These count positions from the padding id plus one, so they hold fewer tokens than positions.
_POSITIONS_AFTER_PADDING = {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert"}


def load_config(name: str) -> PreTrainedConfig:
    """Configuration of an encoder folder or Hub name.

    Raises:
        BadInput: there is none.
    """
    if Path(name).exists() and not (Path(name) / "config.json").is_file():
        raise BadInput(f"{name}: no config.json here; give the Hugging Face folder of an encoder")
    try:
        return AutoConfig.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise BadInput(f"{name}: not an encoder that transformers can load ({_first_line(error)})") from None


def load_tokenizer(name: str, special_tokens: Sequence[str] = ()) -> PreTrainedTokenizerBase:
    """The fast tokenizer of an encoder; ``special_tokens`` are added where it lacks them.

    Raises:
        BadInput: there is none, or it gives no character offsets.
    """
    tokenizer = _read_vocabulary(Path(name)) if name.endswith(".txt") else _read_tokenizer(name)
    if not tokenizer.is_fast:
        raise BadInput(f"{name}: its tokenizer gives no character offsets; save a fast one (tokenizer.json) beside it")
    if special_tokens:
        tokenizer.add_tokens(list(special_tokens), special_tokens=True)
    return tokenizer


def _read_tokenizer(name: str) -> PreTrainedTokenizerBase:
    try:
        return AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise BadInput(f"{name}: no tokenizer that transformers can load ({_first_line(error)})") from None


def _read_vocabulary(path: Path) -> PreTrainedTokenizerBase:
    """Cased WordPiece over the entries of a ``vocab.txt``, as klue/bert-base has it."""
    if not path.is_file():
        raise BadInput(f"{path}: no such file; give a vocab.txt or the folder of a tokenizer")
    return BertTokenizer(vocab=str(path), do_lower_case=False, strip_accents=False)


def load_encoder(name: str) -> Encoder:
    """The encoder alone, without a task's head."""
    return Encoder(load_pretrained(AutoModel, name))


def load_pretrained(kind: Any, name: str, **settings: Any) -> Any:
    """``kind.from_pretrained`` (an Auto class) with the rules above; heads it lacks start at random, without a warning.

    Raises:
        BadInput: no encoder there, or no safetensors weights.
    """
    load_config(name)
    try:
        with _quiet():
            return kind.from_pretrained(name, dtype=torch.float32, use_safetensors=True, **settings)
    except (OSError, ValueError) as error:
        raise BadInput(f"{name}: its weights cannot be loaded ({_first_line(error)})") from None


def has_segments(config: PreTrainedConfig) -> bool:
    """Whether the encoder takes segment ids 0 and 1."""
    return int(getattr(config, "type_vocab_size", 0) or 0) > 1


def most_tokens(config: PreTrainedConfig) -> int | None:
    """Longest input of the encoder in tokens; None where it sets no limit."""
    positions = getattr(config, "max_position_embeddings", None)
    if not positions:
        return None
    if config.model_type in _POSITIONS_AFTER_PADDING:
        return int(positions) - int(config.pad_token_id) - 1
    return int(positions)


def digest(name: str) -> str:
    """Digest of the encoder's files, so that a result knows its encoder; a Hub name stands for itself."""
    folder = Path(name)
    if not folder.is_dir():
        return name
    state = hashlib.blake2b(digest_size=16)
    for path in sorted(p for p in folder.iterdir() if p.suffix in {".json", ".safetensors", ".txt"}):
        with path.open("rb") as file:
            state.update(f"{path.name}:{hashlib.file_digest(file, 'sha256').hexdigest()};".encode())
    return state.hexdigest()


class Encoder(nn.Module):
    """An encoder that ignores ``token_type_ids`` where it has no segments; the output has ``last_hidden_state``."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.config: Any = encoder.config

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Any:
        """Token ids, mask and segments, each (B, L), to the encoder's own output."""
        segments = {"token_type_ids": token_type_ids} if has_segments(self.config) else {}
        return self.encoder(input_ids=input_ids, attention_mask=attention_mask, **segments)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence about heads that start at random and pretraining heads that are left behind: both are the point."""
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    progress = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if progress:
            transformers_logging.enable_progress_bar()


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:200]
