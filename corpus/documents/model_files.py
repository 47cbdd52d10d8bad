"""Check untrusted model folders: regular files of that folder only, weights as safetensors only.

Checks run before any library opens the folder, because transformers would follow an index of weights to a pickle, and
links to any file. Only names and headers are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import safe_open

from corpus.documents.atomic_files import read_json_object
from corpus.documents.errors import BadInput, first_line

if TYPE_CHECKING:
    from transformers import PretrainedConfig

CONFIG_NAME = "config.json"
WEIGHTS_NAME = "model.safetensors"
INDEX_NAME = "model.safetensors.index.json"
OPTIMIZER = "optimizer"  # begins the names of the optimizer files of a checkpoint
SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
         "max_position_embeddings")  # fmt: skip
LARGEST = 1 << 31
NO_WEIGHTS = f"{WEIGHTS_NAME} is missing; name the folder of a Hugging Face model"
ONLY_PICKLES = (
    "it has only pytorch_model.bin, a pickle, which is never loaded; convert it with "
    "AutoModelForMaskedLM.from_pretrained(OLD).save_pretrained(NEW) and use the new folder"
)


def part_name(stem: str, number: int, count: int) -> str:
    """Name of the file of the ``number``-th of ``count`` processes, in the style of Hugging Face.

    >>> part_name("optimizer", 1, 2)
    'optimizer-00001-of-00002.safetensors'
    """
    return f"{stem}-{number:05}-of-{count:05}.safetensors"


def check_model_files(folder: Path, name: str) -> None:
    """Refuse missing or truncated weights, weights outside the folder, and pickles; ``name`` is for messages."""
    refuse_links(folder, name)
    shards = check_weight_index(folder / INDEX_NAME, name) if (folder / INDEX_NAME).is_file() else []
    if missing := [shard for shard in shards if not (folder / shard).is_file()]:
        raise BadInput(f"{name}: {INDEX_NAME} names {missing[0][:80]!r}, which is missing; copy the whole folder")
    if (folder / WEIGHTS_NAME).is_file():
        shards.append(WEIGHTS_NAME)
    if not shards:
        why = NO_WEIGHTS if not any(folder.glob("pytorch_model*.bin")) else ONLY_PICKLES
        raise BadInput(f"{name}: its weights cannot be loaded: {why}")
    for shard in shards:
        try:
            with safe_open(folder / shard, "numpy") as file:
                file.keys()
        except Exception as error:  # SafetensorError, OSError, and RecursionError from deep headers
            raise BadInput(
                f"{name}: its weights cannot be loaded: {shard} is no complete safetensors file ({str(error)[:100]}); "
                "copy it again"
            ) from None


def check_sizes(folder: Path, name: str) -> None:
    """Refuse a config.json that is missing or not a JSON object, or whose sizes are not positive integers."""
    if not (folder / CONFIG_NAME).is_file():
        raise BadInput(f"{name}: {CONFIG_NAME} is missing; name the folder of a Hugging Face model")
    config = read_json_object(folder / CONFIG_NAME, "save the model again")
    for key in SIZES:
        value = config.get(key, 1)
        if type(value) is not int or not 0 < value < LARGEST:
            raise BadInput(
                f"{name}: {key} is {str(value)[:40]!r} in {CONFIG_NAME}, expected a positive integer; save the model "
                "again"
            )


def refuse_links(folder: Path, name: str = "") -> None:
    """Refuse links out of the folder, which could publish any file of this machine; those of the Hub cache may stay."""
    home = home_of_links(folder)
    for path in sorted(folder.iterdir()):
        if path.is_symlink() and not path.resolve().is_relative_to(home):
            raise BadInput(f"{name or folder}: {path.name} is a link out of the folder; replace it with the file")


def home_of_links(folder: Path) -> Path:
    """The folder that links of ``folder`` may lead to: itself, or its model or data set in the Hub cache."""
    home = folder.resolve()
    return home.parent.parent if home.parent.name == "snapshots" else home


def check_weight_index(path: Path, name: str) -> list[str]:
    """The weight files named by an index; refuses names that are not safetensors files of the same folder."""
    places = read_json_object(path, "save the model again").get("weight_map")
    if not isinstance(places, dict) or not places or not all(isinstance(file, str) for file in places.values()):
        raise BadInput(f"{name}: {INDEX_NAME} has no valid weight_map; save the model again")
    files = sorted(set(places.values()))
    for file in files:
        if Path(file).name != file or not file.endswith(".safetensors"):
            raise BadInput(
                f"{name}: {INDEX_NAME} names {file[:80]!r}, expected only .safetensors files of this folder; pickles "
                "are never loaded, so save the model again as safetensors"
            )
    return files


def load_classifier(kind: Any, model: str | Path, name: str, what: str) -> tuple[Any, Any]:
    """The model of class ``kind`` in a folder or on the Hub, and its tokenizer; ``name`` and ``what`` are for messages.

    Raises:
        BadInput: it cannot be loaded, or some of its weights are missing.
    """
    from transformers import AutoTokenizer

    try:
        with quiet_transformers():
            loaded, report = kind.from_pretrained(
                model, use_safetensors=True, trust_remote_code=False, output_loading_info=True
            )
            tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
    except Exception as error:  # the libraries raise any error for unreadable files
        raise BadInput(
            f"{name}: no {what} could be loaded ({first_line(error)}); expected a trained classifier with "
            "config.json, model.safetensors and a tokenizer"
        ) from error
    if missing := sorted(report["missing_keys"]):
        raise BadInput(
            f"{name}: the weights {', '.join(missing[:3])} are missing, so results would be random; name a "
            "trained classifier"
        )
    return loaded, tokenizer


def max_model_tokens(config: PretrainedConfig, limit: int) -> int:
    """Maximum sequence length of a model; ``limit`` is that of its tokenizer."""
    limit = min(limit, getattr(config, "max_position_embeddings", limit))
    if "roberta" in config.model_type:  # positions start after the padding index
        limit = min(limit, config.max_position_embeddings - config.pad_token_id - 1)
    return limit


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Hide the progress bars and warnings of transformers while a model loads; malmoi reports what matters itself."""
    from transformers.utils import logging

    verbosity, shows_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shows_bars:
            logging.enable_progress_bar()
