"""Where training may start other than from nothing: a model of Hugging Face, from a folder or the Hub.

The checkpoint keeps its own sizes and only dropout comes from the recipe. Whatever contradicts it is refused from its
config.json alone, which costs milliseconds, before anything is trained. A head it lacks begins afresh. Weights are read
from safetensors only, because other formats can run code; the price is that old checkpoints must be converted once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import PreTrainedConfig

from corpus.documents.errors import BadInput, first_line
from corpus.documents.model_files import (
    CONFIG_NAME,
    INDEX_NAME,
    WEIGHTS_NAME,
    check_model_files,
    check_sizes,
    quiet_transformers,
    refuse_links,
)
from pretrain.config import ModelConfig, PretrainConfig
from pretrain.model.extended import NewRows, add_rows
from pretrain.model.families import FAMILIES, family_of, longest_input, set_rope_theta, sizes_of
from pretrain.pack.store import TOKENIZER_NAME, VOCABULARY_NAME, read_pieces

if TYPE_CHECKING:
    from transformers import PreTrainedModel

log = logging.getLogger(__name__)

TOKENIZER_NAMES = (
    "tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model",
)  # fmt: skip
FETCHED = (CONFIG_NAME, WEIGHTS_NAME, INDEX_NAME, "model-*.safetensors", *TOKENIZER_NAMES)


def init_from_folder(name: str) -> Path:
    """The local folder of ``pretrain.init_from``; a Hub id is downloaded, or found in the cache."""
    try:
        path = Path(name).expanduser()
    except RuntimeError:  # no user of that name
        path = Path(name)
    if path.is_dir():
        return path
    if path.exists() or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise _bad(name, "no such folder; give the folder or Hub id of a Hugging Face model")
    return _download(name)


def check_init_from(config: PretrainConfig, tokenizer: Path | None = None) -> None:
    """Refuse (BadInput) a checkpoint that contradicts the recipe; cheap, and silent where ``init_from`` is not set.

    Args:
        tokenizer: the folder the token store was packed with; its pieces must be the checkpoint's.
    """
    if config.init_from is None:
        return
    folder = init_from_folder(config.init_from)
    _check_config(config, _read_config(config, folder))
    check_model_files(folder, f"pretrain.init_from {config.init_from}")
    if tokenizer is not None:
        _check_pieces(config, folder, tokenizer)


def check_ids(config: PretrainConfig, vocab_size: int, pad_id: int | None) -> None:
    """Refuse a vocabulary that the checkpoint ``config.init_from`` has no embeddings for, or that pads otherwise.

    More embeddings than pieces are right: many checkpoints round up.
    """
    name = str(config.init_from)
    start = _read_config(config, init_from_folder(name))
    advice = "use the tokenizer that the checkpoint was trained with"
    if start.vocab_size < vocab_size:
        raise _bad(name, f"knows {start.vocab_size:,} pieces, but the vocabulary has {vocab_size:,}; {advice}")
    if start.pad_token_id != pad_id:
        raise _bad(name, f"has the padding id {start.pad_token_id}, but the vocabulary {pad_id}; {advice}")


def load_init_from(
    config: PretrainConfig, name: str, vocab_size: int, special_ids: dict[str, int], new_rows: NewRows
) -> PreTrainedModel:
    """The checkpoint ``name`` with the heads of the objective, in float32; arguments as for ``build_network``."""
    import torch

    check_init_from(config)
    check_ids(config, vocab_size - len(new_rows), special_ids["pad"])
    folder = init_from_folder(name)
    start = _read_config(config, folder)
    family = family_of(start)
    for kind in family.dropouts:
        setattr(start, kind, config.model.dropout)
    start.is_decoder = False  # an encoder that was trained causally may go on masked (arXiv 2507.00994), and so on
    for key, value in family.settings_of_objective(config.model).items():
        setattr(start, key, value)
    settings = {"dtype": torch.float32, "use_safetensors": True, "local_files_only": True, "output_loading_info": True}
    try:
        with quiet_transformers():
            network, found = family.class_for(config.model).from_pretrained(folder, config=start, **settings)
    except Exception as error:  # OSError, ValueError, RuntimeError or SafetensorError, by what is wrong with the file
        raise _bad(name, f"its weights cannot be loaded ({first_line(error)}); give a whole checkpoint") from error
    _tell_heads(name, network, found)
    if new_rows:
        with quiet_transformers():
            add_rows(network, new_rows)
        log.info("%d pieces are new to it; each begins as the mean of its old pieces", len(new_rows))
    return network


def with_sizes_of(network: PreTrainedConfig, config: PretrainConfig) -> PretrainConfig:
    """The settings with the sizes that the model really has, for whoever counts operations or memory by them."""
    return config.replaced("model", **sizes_of(network))


def _tell_heads(name: str, network: PreTrainedModel, found: dict[str, Any]) -> None:
    """Log what a checkpoint gave and what it did not; only heads may be missing."""
    heads = ("cls.", "lm_head.", "head.", "decoder.", f"{network.base_model_prefix}.pooler.")
    lost = sorted(key for key in found["missing_keys"] if not key.startswith(heads))
    if lost:
        raise _bad(name, f"{len(lost)} weights are missing, first {lost[0]}; give a whole checkpoint")
    start = network.config
    log.info(
        "going on from %s: %d layers x %d, %d heads, %d pieces, at most %d tokens; its sizes stand, not the recipe's",
        *(name, start.num_hidden_layers, start.hidden_size, start.num_attention_heads, start.vocab_size),
        longest_input(start),
    )
    if found["missing_keys"]:
        log.info("it has no %s: begun afresh", _parts(found["missing_keys"]))
    unused = [key for key in found["unexpected_keys"] if not key.endswith("position_ids")]
    if unused:
        log.info("it has %s, which this objective does not train: left out", _parts(unused))


def _parts(keys: Iterable[str]) -> str:
    """Weights by the part of the model they belong to: "cls.predictions", "bert.pooler", "lm_head"."""
    return ", ".join(sorted({".".join(key.split(".")[: 1 if key.startswith("lm_head") else 2]) for key in keys}))


def _read_config(config: PretrainConfig, folder: Path) -> PreTrainedConfig:
    name = str(config.init_from)
    refuse_links(folder, f"pretrain.init_from {name}")
    check_sizes(folder, f"pretrain.init_from {name}")
    try:
        kind = json.loads((folder / CONFIG_NAME).read_text("utf-8")).get("model_type")
        family = FAMILIES[config.model.architecture].config
        found = family.from_json_file(folder / CONFIG_NAME) if kind == family.model_type else None
    except Exception as error:  # broken JSON, or values that the configuration class refuses in its own ways
        raise _bad(name, f"{CONFIG_NAME} cannot be read ({first_line(error)}); save the model again") from error
    if found is None:
        what = f"a model of type {kind}, but pretrain.model.architecture is {config.model.architecture}"
        raise _bad(name, f"{what}; {', '.join(FAMILIES)} can be gone on from")
    if family_of(found).has_windows:  # rotary positions have no weights: the recipe may stretch them
        if config.model.positions != ModelConfig.model_fields["positions"].default:
            found.max_position_embeddings = max(found.max_position_embeddings, config.model.positions)
        if config.model.rope_theta is not None:
            set_rope_theta(found, config.model.rope_theta)
    return found


def _check_config(config: PretrainConfig, start: PreTrainedConfig) -> None:
    name, own = config.init_from, sizes_of(start)
    for key, value in own.items():
        asked = getattr(config.model, key)
        # the paper's values stand in every recipe that says nothing
        if asked not in (value, ModelConfig.model_fields[key].default):
            raise BadInput(
                f"pretrain.model.{key} is {asked}, but {name} has {value}; leave it out with pretrain.init_from"
            )
    if config.rows.sequence_length > own["positions"]:
        raise BadInput(
            f"pretrain.rows.sequence_length is {config.rows.sequence_length}, but {name} takes at most "
            f"{own['positions']} tokens; choose a smaller one"
        )
    if config.model.nsp and getattr(start, "type_vocab_size", 1) < 2:
        raise BadInput(f"pretrain.model.nsp needs two token types, {name} has one; set pretrain.model.nsp=false")
    if getattr(start, "add_cross_attention", False):
        raise BadInput(f"{name} attends to an encoder beside it; give a model that stands alone")


def _check_pieces(config: PretrainConfig, folder: Path, tokenizer: Path) -> None:
    packed = read_pieces(tokenizer)
    if any((folder / name).is_file() for name in (VOCABULARY_NAME, TOKENIZER_NAME)):
        own = read_pieces(folder)
        # a vocab.txt does not list what was added to the tokenizer later; that comes after it
        differing = next((n for n, (a, b) in enumerate(zip(own, packed, strict=False)) if a != b), None)
        if differing is not None:
            raise BadInput(
                f"{tokenizer}: id {differing} is {packed[differing]!r}, but {own[differing]!r} in {config.init_from}; "
                "pack with the checkpoint's own tokenizer"
            )
    if config.rows.masking.unit == "word" and not any(piece.startswith("##") for piece in packed):
        raise BadInput(
            f"{tokenizer}: no piece begins with ##, so words are not known by their pieces; set "
            "pretrain.rows.masking.unit=eojeol"
        )


@lru_cache
def _download(name: str) -> Path:
    from huggingface_hub import errors, snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(FETCHED)))
    except errors.HFValidationError:
        why = "neither a folder nor a Hub id (NAME/REPOSITORY)"
    except errors.GatedRepoError:
        why = "the Hub asks for its terms to be accepted first; do so on its page, then run `hf auth login`"
    except errors.RepositoryNotFoundError:
        why = "no such folder, and no such model on the Hub (or a private one: run `hf auth login`)"
    except (errors.LocalEntryNotFoundError, errors.HfHubHTTPError, errors.HTTPError, ConnectionError) as error:
        why = f"no such folder, not in the cache, and the Hub cannot be reached ({type(error).__name__})"
    raise _bad(name, f"{why}; or download it elsewhere and give its folder")


def _bad(name: str, what: str) -> BadInput:
    return BadInput(f"pretrain.init_from {name}: {what}")
