"""Trained weights and their tokenizer as a Hugging Face model folder, in every checkpoint and at the end.

If the model has one token type, the tokenizer gives no token types (a second type crashes the released KLUE-RoBERTa).
The last norm of a ModernBERT initialized from counts is about a tenth of the usual size, which heads of tasks learn
badly from. So a power of two is moved from it into the matrix of the vocabulary head (``export_scales``), and back when
training resumes; all scores stay the same, bit for bit.
"""

from __future__ import annotations

import copy
import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from corpus.documents.atomic_files import read_json_object
from corpus.documents.errors import BadInput
from corpus.documents.model_files import CONFIG_NAME, WEIGHTS_NAME, quiet_transformers
from pretrain.checkpoint.card import CARD_NAME, model_card
from pretrain.checkpoint.find_checkpoint import MODEL_NAME
from pretrain.checkpoint.slices import StoredTensors, write_tensors
from pretrain.config import ModelConfig, PretrainConfig
from pretrain.model.existing_model import TOKENIZER_NAMES
from pretrain.model.families import FAMILIES, longest_input, readable_by_older
from pretrain.pack.store import VOCABULARY_NAME, vocabulary_digest

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

RESULT_NAME = "result.json"
TOKENIZER_CONFIG_NAME = "tokenizer_config.json"
LAST_NORM, HEAD_MATRIX = "final_norm.weight", "head.dense.weight"  # ends of names of ModernBERT's weights


class ExportInputs(NamedTuple):
    """``pretrain``: output folder of ``pretrain.run``; ``tokenizer``: the folder it was trained with."""

    pretrain: Path
    tokenizer: Path


def run(config: PretrainConfig, inputs: ExportInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Copy the finished model into ``out`` and check that it loads; returns parameters and sizes."""
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
    """Write a model folder for transformers into the empty ``folder``: ``weights`` as float32, tied ones once.

    ``network`` gives class and configuration; ``facts``: values for the card (``model_card``).
    """
    described = copy.deepcopy(network.config)
    described.architectures = [type(network).__name__]
    described.dtype = "float32"
    readable_by_older(described)
    described.save_pretrained(folder)
    tied: dict[str, str] = network.all_tied_weights_keys  # name to the name that is saved for both
    names, expected = weights.keys() - tied.keys(), {name for name, _ in network.named_parameters()} - tied.keys()
    if names != expected:
        raise RuntimeError(f"weights missing or unknown: {sorted(names ^ expected)[:5]}")
    write_tensors(folder / WEIGHTS_NAME, weights, names)
    for name in TOKENIZER_NAMES:
        if (tokenizer / name).is_file():
            shutil.copyfile(tokenizer / name, folder / name)
    settings = _set_tokenizer(folder, described, generates=config.model.objective != "masked")
    facts = {**facts, "in_jamo": settings.get("strip_accents") is True}
    (folder / CARD_NAME).write_text(model_card(described, config, facts), "utf-8")


def export_scales(weights: Mapping[str, Tensor]) -> dict[str, float]:
    """Factors for two weights of ModernBERT that give the last hidden states the usual size; empty if they have it."""
    norm, head = (next((name for name in weights if name.endswith(end)), None) for end in (LAST_NORM, HEAD_MATRIX))
    if norm is None or head is None or not (mean := float(weights[norm].detach().abs().mean())) > 0:
        return {}
    size = 2.0 ** round(math.log2(mean))
    return {} if size == 1 else {norm: 1 / size, head: size}


def scaled(weights: Mapping[str, Tensor], scales: Mapping[str, float]) -> Mapping[str, Tensor]:
    """The weights, with those named in ``scales`` multiplied; stored weights stay on the disk."""
    if isinstance(weights, StoredTensors):
        return weights.scaled(scales)
    return {**weights, **{name: weights[name] * scale for name, scale in scales.items()}}


def with_export_scales(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The weights of a finished model."""
    return scaled(weights, export_scales(weights))


def _read_result(inputs: ExportInputs) -> dict[str, Any]:
    path = inputs.pretrain / RESULT_NAME
    if not path.is_file() or not (inputs.pretrain / MODEL_NAME).is_dir():
        raise BadInput(f"{path}: file not found, so training has not finished; run `malmoi pretrain` first")
    again = "delete the folder of the pretrain stage and run it again"
    result = read_json_object(path, again)
    if type(result.get("parameters")) is not int or not isinstance(result.get("vocabulary_sha256"), str):
        raise BadInput(f"{path}: not written by `malmoi pretrain`; {again}")
    if vocabulary_digest(inputs.tokenizer) != result["vocabulary_sha256"]:
        raise BadInput(
            f"{inputs.tokenizer}: {inputs.pretrain} was trained with another vocabulary; give the tokenizer of the "
            "token store"
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
    if generates:  # begin and end of a generated text
        settings["bos_token"], settings["eos_token"] = (
            settings.get(f"{n}_token", f"[{n.upper()}]") for n in ("cls", "sep")
        )
        _leave_prompts_open(folder)
        settings["tokenizer_class"] = "PreTrainedTokenizerFast"  # BertTokenizer would append [SEP] again
    path.write_text(json.dumps(settings, ensure_ascii=False, indent=2) + "\n", "utf-8")
    return settings


def _leave_prompts_open(folder: Path) -> None:
    """Let the tokenizer put [CLS] before a text and nothing after it: [SEP] would end the text to be continued.

    The decoder drops "##" from the first piece too, because pipelines decode a continuation alone.
    """
    from tokenizers.decoders import Replace, Sequence
    from tokenizers.processors import TemplateProcessing
    from transformers import AutoTokenizer

    with quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    begin, backend = tokenizer.cls_token, tokenizer.backend_tokenizer
    backend.post_processor = TemplateProcessing(
        single=f"{begin} $A", pair=f"{begin} $A $B", special_tokens=[(begin, tokenizer.cls_token_id)]
    )
    backend.decoder = Sequence([backend.decoder, Replace("##", "")])
    backend.save(str(folder / "tokenizer.json"))


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
