"""The tokenizer stage of continued pretraining: adopt the tokenizer of ``pretrain.init_from`` instead of training one.

A model only understands the ids that it was trained with, so the stage copies the checkpoint's tokenizer. transformers
saves it again, so that it loads without the model, and the copy is checked to be equal. Text is packed eojeol by
eojeol; a tokenizer that splits an eojeol differently inside a sentence is refused. Cost: tokenizers without a fast
backend cannot be used.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from corpus.documents.atomic_files import write_json
from corpus.documents.errors import first_line
from corpus.documents.model_files import quiet_transformers
from launch.errors import LaunchError
from launch.manifest import fingerprint
from pretrain.pack.encode import EojeolEncoder
from pretrain.pack.store import TOKENIZER_NAME, VOCABULARY_NAME, piece_ids, read_pieces
from tokenizer.extend import extend_as, extend_vocabulary, summarize

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from pretrain.config import PretrainConfig

log = logging.getLogger(__name__)

ROLES = ("pad", "unk", "cls", "sep", "mask")
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model")
PROBE = "말모이는 1911년에 시작한 우리말 사전이다. GPU 3개로 (조금 더) 배웠다!"


def adopt_tokenizer(settings: PretrainConfig, out: Path) -> dict[str, Any]:
    """Write the tokenizer of ``settings.init_from`` into ``out``; returns its counts.

    Raises:
        BadInput: there is no such checkpoint.
        LaunchError: its tokenizer cannot be used: missing, no fast backend, no special token, or pieces that depend on
            more than their eojeol.
    """
    from pretrain.model.existing_model import check_ids, init_from_folder

    name = str(settings.init_from)
    folder = init_from_folder(name)
    if not any((folder / file).is_file() for file in VOCABULARIES):  # transformers would create an empty one
        raise LaunchError(f"{name}: no tokenizer in this folder; add its tokenizer.json or vocab.txt")
    with quiet_transformers():
        loaded = _load(name, folder)
        pieces = list(loaded.convert_ids_to_tokens(list(range(len(loaded)))))
        _check_pieces(name, folder, pieces)
        if missing := ", ".join(role for role in ROLES if getattr(loaded, f"{role}_token_id") is None):
            raise LaunchError(f"{name}: its tokenizer has no {missing} token; a masked language model needs it")
        check_ids(settings, len(loaded), loaded.pad_token_id)
        loaded.save_pretrained(out)
        saved = json.loads((out / "tokenizer_config.json").read_text("utf-8"))
        loading_options = ("is_local", "local_files_only")
        write_json(out / "tokenizer_config.json", {k: v for k, v in saved.items() if k not in loading_options})
        if (folder / VOCABULARY_NAME).is_file() and read_pieces(folder) == pieces:  # for older readers
            shutil.copyfile(folder / VOCABULARY_NAME, out / VOCABULARY_NAME)
        again = _load(name, out)
    if again.backend_tokenizer.to_str() != loaded.backend_tokenizer.to_str():
        raise LaunchError(f"{name}: its tokenizer loads differently without the model; save it with save_pretrained")
    _check_eojeols(name, loaded, out)
    log.info("tokenizer of %s: %d pieces; none is trained", name, len(loaded))
    return {"vocab_size": len(loaded), "adopted_from": name}


def extend_adopted(
    settings: PretrainConfig, corpus: Path, out: Path, size: int | str, **resources: Any
) -> dict[str, Any]:
    """Write the same tokenizer with pieces of the corpus added after its last id (``tokenizer.extend``) into ``out``.

    Args:
        size: number of pieces, or a folder that was extended earlier.
        resources: ``workers`` and ``map_units``.
    """
    adopted = out / "adopted"
    counts = adopt_tokenizer(settings, adopted)
    if isinstance(size, str):
        extension = extend_as(Path(size), adopted, out)
    else:
        extension = extend_vocabulary(adopted, corpus, out, size, **resources)
    shutil.rmtree(adopted)
    return counts | summarize(extension)


def checkpoint_files(settings: PretrainConfig, part: Literal["model", "tokenizer"]) -> dict[str, Callable[[], str]]:
    """Fingerprint functions of the checkpoint's weights or tokenizer files, and of config.json, which names the class.

    ``BadInput`` if there is no such checkpoint, or the recipe contradicts it.
    """
    if settings.init_from is None:
        return {}
    from pretrain.model.existing_model import CONFIG_NAME, TOKENIZER_NAMES, check_init_from, init_from_folder

    check_init_from(settings)
    folder = init_from_folder(settings.init_from)
    patterns = TOKENIZER_NAMES if part == "tokenizer" else ("model*.safetensors", "model.safetensors.index.json")
    paths = {path for pattern in (CONFIG_NAME, *patterns) for path in folder.glob(pattern)}
    return {f"{settings.init_from}/{path.name}": partial(fingerprint, path) for path in sorted(paths)}


def _load(name: str, folder: Path) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    try:
        loaded = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # the libraries raise many types for broken and missing files
        raise LaunchError(f"{name}: no tokenizer that transformers can load ({first_line(error)})") from error
    if not loaded.is_fast:
        raise LaunchError(f"{name}: its tokenizer has no fast backend; save a tokenizer.json in this folder")
    return loaded


def _check_pieces(name: str, folder: Path, pieces: list[str]) -> None:
    """Without a tokenizer_class, transformers chooses by model type and may ignore the files."""
    if any((folder / file).is_file() for file in (VOCABULARY_NAME, TOKENIZER_NAME)):
        listed = read_pieces(folder)
        if listed != pieces[: len(listed)]:
            raise LaunchError(
                f"{name}: the tokenizer's files list {len(listed):,} pieces, but transformers loads {len(pieces):,} "
                "different ones; set the right tokenizer_class in its tokenizer_config.json"
            )


def _check_eojeols(name: str, loaded: PreTrainedTokenizerBase, out: Path) -> None:
    """Check that packing by eojeol gives the same pieces; byte-level BPE needs a leading space for the first word."""
    packed = piece_ids(EojeolEncoder(out).encode([PROBE]).marked).tolist()
    sentences = [loaded.encode(text, add_special_tokens=False) for text in (PROBE, f" {PROBE}")]
    if packed not in sentences:
        raise LaunchError(
            f"{name}: its tokenizer splits an eojeol differently inside a sentence than alone, and packing encodes it "
            "alone; choose a checkpoint with WordPiece or SentencePiece"
        )
