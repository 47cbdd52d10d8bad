"""Trained weights and their tokenizer as a Hugging Face model folder, at every kept checkpoint and at the end.

The folder is what anybody's ``AutoModel.from_pretrained`` and ``AutoTokenizer.from_pretrained`` take: config.json,
model.safetensors, the tokenizer's files and a model card. A tokenizer is told not to give token types where the model
knows one type only (a pair's second type crashes the released KLUE-RoBERTa).
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from corpus.documents.atomic_files import read_json_object
from corpus.documents.errors import BadInput
from corpus.documents.model_files import CONFIG_NAME, WEIGHTS_NAME, quiet_transformers
from pretrain.checkpoint.card import CARD_NAME, model_card
from pretrain.checkpoint.found import MODEL_NAME
from pretrain.checkpoint.slices import write_tensors
from pretrain.config import ModelConfig, PretrainConfig
from pretrain.model.families import FAMILIES, longest_input, readable_by_older
from pretrain.model.init_from import TOKENIZER_NAMES
from pretrain.pack.store import VOCABULARY_NAME, vocabulary_digest

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

RESULT_NAME = "result.json"
TOKENIZER_CONFIG_NAME = "tokenizer_config.json"


class ExportInputs(NamedTuple):
    """``pretrain``: what ``pretrain.run`` left; ``tokenizer``: the folder it was trained with."""

    pretrain: Path
    tokenizer: Path


def run(config: PretrainConfig, inputs: ExportInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Copy the finished model into ``out`` and prove that it loads; returns parameters and sizes.

    BadInput: training has not finished, or the tokenizer is not the one it was done with.
    """
    result = _read_result(inputs)
    for path in sorted((inputs.pretrain / MODEL_NAME).iterdir()):
        shutil.copyfile(path, out / path.name)
    _check_loads(out, config.model)
    return {"parameters": result["parameters"], "weights_bytes": (out / WEIGHTS_NAME).stat().st_size}


def save_model(
    folder: Path,
    network: PreTrainedModel,
    weights: Mapping[str, Tensor],
    tokenizer: Path,
    config: PretrainConfig,
    facts: Mapping[str, Any],
) -> None:
    """Write a model folder that transformers loads into ``folder``, which is empty.

    Args:
        network: gives class and configuration; its own weights are not looked at.
        weights: by the names of ``network``; written as float32, tied ones once.
        tokenizer: the folder the token store was packed with.
        facts: for the card; see ``model_card``.
    """
    described = copy.deepcopy(network.config)
    described.architectures = [type(network).__name__]
    described.dtype = "float32"
    readable_by_older(described)
    described.save_pretrained(folder)
    write_tensors(folder / WEIGHTS_NAME, weights, _names_without_ties(network, weights))
    for name in TOKENIZER_NAMES:
        if (tokenizer / name).is_file():
            shutil.copyfile(tokenizer / name, folder / name)
    settings = _set_tokenizer(folder, described, generates=config.model.objective != "masked")
    facts = {**facts, "in_jamo": settings.get("strip_accents") is True}
    (folder / CARD_NAME).write_text(model_card(described, config, facts), "utf-8")


def _names_without_ties(network: PreTrainedModel, weights: Mapping[str, Tensor]) -> set[str]:
    tied: dict[str, str] = network.all_tied_weights_keys  # each name to the one that is kept for both
    kept = weights.keys() - tied.keys()
    wanted = {name for name, _ in network.named_parameters()} - tied.keys()
    if kept != wanted:
        raise RuntimeError(f"weights missing or unknown: {sorted(kept ^ wanted)[:5]}")
    return kept


def _read_result(inputs: ExportInputs) -> dict[str, Any]:
    path = inputs.pretrain / RESULT_NAME
    if not path.is_file() or not (inputs.pretrain / MODEL_NAME).is_dir():
        raise BadInput(f"{path}: not there, so training has not finished; run `malmoi pretrain` first")
    again = "delete the folder of the pretrain stage and run it again"
    result = read_json_object(path, again)
    if type(result.get("parameters")) is not int or not isinstance(result.get("vocabulary_sha256"), str):
        raise BadInput(f"{path}: not what `malmoi pretrain` writes; {again}")
    if vocabulary_digest(inputs.tokenizer) != result["vocabulary_sha256"]:
        raise BadInput(
            f"{inputs.tokenizer}: another vocabulary than {inputs.pretrain} was trained with; give the tokenizer that "
            "the token store was packed with"
        )
    return result


def _set_tokenizer(folder: Path, described: Any, *, generates: bool) -> dict[str, Any]:
    path = folder / TOKENIZER_CONFIG_NAME
    only_vocabulary = (folder / VOCABULARY_NAME).is_file() and not (folder / "tokenizer.json").is_file()
    unnamed = {"tokenizer_class": "BertTokenizer" if only_vocabulary else "PreTrainedTokenizerFast"}
    settings: dict[str, Any] = read_json_object(path, "save the tokenizer again") if path.is_file() else unnamed
    settings["model_max_length"] = longest_input(described)
    if getattr(described, "type_vocab_size", 1) < 2:
        settings["model_input_names"] = ["input_ids", "attention_mask"]
    if generates:  # what a text begins with, and what ends it
        settings["bos_token"], settings["eos_token"] = (
            settings.get(f"{n}_token", f"[{n.upper()}]") for n in ("cls", "sep")
        )
    path.write_text(json.dumps(settings, ensure_ascii=False, indent=2) + "\n", "utf-8")
    return settings


def _check_loads(folder: Path, model: ModelConfig) -> None:
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

    is_causal = model.objective == "causal" or FAMILIES[model.architecture].is_causal
    kind: Any = AutoModelForCausalLM if is_causal else AutoModelForMaskedLM
    with quiet_transformers():
        network, report = kind.from_pretrained(folder, local_files_only=True, output_loading_info=True)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if report["missing_keys"]:
        raise RuntimeError(f"{folder}: weights missing from the exported model: {sorted(report['missing_keys'])}")
    if network.config.pad_token_id != tokenizer.pad_token_id:
        raise BadInput(
            f"{folder / CONFIG_NAME}: the model's pad id is {network.config.pad_token_id}, the tokenizer's "
            f"{tokenizer.pad_token_id}; train with the tokenizer as it is now"
        )
