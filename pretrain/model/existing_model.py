"""Training that starts from a Hugging Face model (``pretrain.init_from``), a folder or a repository of the Hub.

The checkpoint keeps its sizes; only dropout comes from the recipe. Contradictions are refused from its config.json
alone, which takes milliseconds, before training. A head that is missing is newly initialized. Weights are read from
safetensors only, because other formats can run code; older checkpoints must be converted once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import PreTrainedConfig

from corpus.documents.atomic_files import read_json_object
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
from pretrain.model.families import FAMILIES, family_of, longest_input, sizes_of
from pretrain.pack.store import TOKENIZER_NAME, VOCABULARY_NAME, read_pieces

if TYPE_CHECKING:
    from transformers import PreTrainedModel

log = logging.getLogger(__name__)

TOKENIZER_NAMES = (
    "tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model",
)  # fmt: skip
FETCHED = (CONFIG_NAME, WEIGHTS_NAME, INDEX_NAME, "model-*.safetensors", *TOKENIZER_NAMES)

EXTENSION_NAME = "extension.json"  # of `malmoi tokenizer extend`: new pieces and the old pieces of each
NewRows = Mapping[int, Sequence[int]]  # id of a new piece → ids of its old pieces


def init_from_folder(name: str) -> Path:
    """The local folder of ``pretrain.init_from``; a Hub id is downloaded, or found in the cache."""
    try:
        path = Path(name).expanduser()
    except RuntimeError:  # there is no such user
        path = Path(name)
    if path.is_dir():
        return path
    if path.exists() or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise _bad(name, "no such folder; give the folder or Hub id of a Hugging Face model")
    return _download(name)


def check_init_from(config: PretrainConfig, tokenizer: Path | None = None) -> None:
    """Raise BadInput if the checkpoint contradicts the recipe, or the pieces of ``tokenizer`` are not its own."""
    if config.init_from is None:
        return
    folder = init_from_folder(config.init_from)
    _check_config(config, _read_config(config, folder))
    check_model_files(folder, f"pretrain.init_from {config.init_from}")
    if tokenizer is not None:
        _check_pieces(config, folder, tokenizer)


def check_ids(config: PretrainConfig, vocab_size: int, pad_id: int | None) -> None:
    """Refuse a vocabulary that is larger than the embeddings of ``config.init_from``, or has another padding id.

    More embeddings than pieces are fine: many checkpoints round up.
    """
    name = str(config.init_from)
    start = _read_config(config, init_from_folder(name))
    advice = "use the tokenizer that the checkpoint was trained with"
    if start.vocab_size < vocab_size:
        raise _bad(name, f"has {start.vocab_size:,} embeddings, but the vocabulary has {vocab_size:,} pieces; {advice}")
    if start.pad_token_id != pad_id:
        raise _bad(name, f"has the padding id {start.pad_token_id}, but the vocabulary has {pad_id}; {advice}")


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
    start.is_decoder = False  # a causal encoder may continue with the masked objective (arXiv 2507.00994)
    for key, value in family.settings_of_objective(config.model).items():
        setattr(start, key, value)
    settings = {"dtype": torch.float32, "use_safetensors": True, "local_files_only": True, "output_loading_info": True}
    try:
        with quiet_transformers():
            network, report = family.class_for(config.model).from_pretrained(folder, config=start, **settings)
    except Exception as error:  # OSError, ValueError, RuntimeError or SafetensorError
        raise _bad(name, f"its weights cannot be loaded ({first_line(error)}); give a complete checkpoint") from error
    _log_heads(name, network, report)
    if new_rows:
        with quiet_transformers():
            add_rows(network, new_rows)
        log.info("%d added pieces: each embedding is initialized with the mean of its old pieces", len(new_rows))
    return network


def read_new_rows(tokenizer: Path, vocab_size: int) -> dict[int, list[int]]:
    """New pieces from the folder's extension.json; empty if there is none."""
    path = tokenizer / EXTENSION_NAME
    if not path.is_file():
        return {}
    again = "extend the tokenizer again"
    content = read_json_object(path, again)
    try:
        rows = {int(piece["id"]): [int(id_) for id_ in piece["of"]] for piece in content["pieces"]}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{path}: not what `malmoi tokenizer extend` writes ({error!r}); {again}") from None
    first = vocab_size - len(rows)
    if sorted(rows) != list(range(first, vocab_size)):
        raise BadInput(f"{path}: the new ids are not the last {len(rows):,} of {vocab_size:,}; {again}")
    wrong = next((id_ for id_, of in rows.items() if not of or not all(0 <= old < first for old in of)), None)
    if wrong is not None:
        raise BadInput(f"{path}: id {wrong} does not consist of old pieces; {again}")
    return rows


def add_rows(network: PreTrainedModel, rows: NewRows) -> None:
    """Initialize embeddings and biases of new pieces with the mean of their old pieces (Gee et al. 2022).

    The matrix grows if it is too small; many checkpoints have more rows than pieces, which are used first.
    """
    import torch

    needed = max(rows) + 1
    if network.config.vocab_size < needed:
        network.resize_token_embeddings(needed, mean_resizing=False)
    inputs, outputs = network.get_input_embeddings(), network.get_output_embeddings()
    matrices: list[Any] = [inputs.weight, *([] if outputs is None else [outputs.weight, outputs.bias])]
    with torch.no_grad():
        for matrix in {id(matrix): matrix for matrix in matrices}.values():
            for id_, of in rows.items():
                matrix[id_] = matrix[list(of)].mean(dim=0)


def _log_heads(name: str, network: PreTrainedModel, report: dict[str, Any]) -> None:
    """Log which parts the checkpoint has; only heads may be missing."""
    heads = ("cls.", "lm_head.", "head.", "decoder.", f"{network.base_model_prefix}.pooler.")
    lost = sorted(key for key in report["missing_keys"] if not key.startswith(heads))
    if lost:
        raise _bad(name, f"{len(lost)} weights are missing, the first is {lost[0]}; give a complete checkpoint")
    start = network.config
    log.info(
        "initializing from %s: %d layers x %d, %d heads, %d pieces, up to %d tokens (not those of the recipe)",
        *(name, start.num_hidden_layers, start.hidden_size, start.num_attention_heads, start.vocab_size),
        longest_input(start),
    )
    if report["missing_keys"]:
        log.info("not in the checkpoint and newly initialized: %s", _parts(report["missing_keys"]))
    unused = [key for key in report["unexpected_keys"] if not key.endswith("position_ids")]
    if unused:
        log.info("not used by this objective and left out: %s", _parts(unused))


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
        model_config = family.from_json_file(folder / CONFIG_NAME) if kind == family.model_type else None
    except Exception as error:  # broken JSON, or values that the configuration class refuses in its own ways
        raise _bad(name, f"{CONFIG_NAME} cannot be read ({first_line(error)}); save the model again") from error
    if model_config is None:
        what = f"a model of type {kind}, but pretrain.model.architecture is {config.model.architecture}"
        raise _bad(name, f"{what}; supported are {', '.join(FAMILIES)}")
    # rotary positions have no weights, so the recipe may ask for more of them
    if family_of(model_config).has_windows and config.model.positions != ModelConfig.model_fields["positions"].default:
        model_config.max_position_embeddings = max(model_config.max_position_embeddings, config.model.positions)
    return model_config


def _check_config(config: PretrainConfig, start: PreTrainedConfig) -> None:
    name, own = config.init_from, sizes_of(start)
    for key, value in own.items():
        asked = getattr(config.model, key)
        # a recipe that does not mention a size has the default
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
        raise BadInput(f"{name} attends to an encoder; give a model without cross-attention")


def _check_pieces(config: PretrainConfig, folder: Path, tokenizer: Path) -> None:
    packed = read_pieces(tokenizer)
    if any((folder / name).is_file() for name in (VOCABULARY_NAME, TOKENIZER_NAME)):
        own = read_pieces(folder)
        # a vocab.txt does not list pieces that were added later; they come after its last id
        differing = next((n for n, (a, b) in enumerate(zip(own, packed, strict=False)) if a != b), None)
        if differing is not None:
            raise BadInput(
                f"{tokenizer}: id {differing} is {packed[differing]!r}, but {own[differing]!r} in {config.init_from}; "
                "pack with the checkpoint's own tokenizer"
            )
    if config.rows.masking.unit == "word" and not any(piece.startswith("##") for piece in packed):
        raise BadInput(
            f"{tokenizer}: no piece starts with ##, so pieces do not identify words; set "
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
    raise _bad(name, f"{why}; or download it on another machine and give its folder")


def _bad(name: str, what: str) -> BadInput:
    return BadInput(f"pretrain.init_from {name}: {what}")
