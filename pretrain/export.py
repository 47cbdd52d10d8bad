"""Join the trained weights and the tokenizer into one Hugging Face model folder, and prove that it loads.

The folder is what anybody's ``AutoModel.from_pretrained`` and ``AutoTokenizer.from_pretrained`` take: config.json,
model.safetensors, the tokenizer's files and a model card. A RoBERTa tokenizer is told not to give token types, because
the model knows one type only (a pair's second type crashes the released KLUE-RoBERTa).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from transformers import AutoModelForMaskedLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from pretrain.config import BadInput, PretrainConfig
from pretrain.run import MODEL_NAME, RESULT_NAME
from pretrain.store import VOCABULARY_NAME, vocabulary_digest

TOKENIZER_CONFIG_NAME = "tokenizer_config.json"
TOKENIZER_NAMES = (VOCABULARY_NAME, "tokenizer.json", TOKENIZER_CONFIG_NAME, "special_tokens_map.json")
MODEL_NAMES = ("config.json", "model.safetensors")
CARD_NAME = "README.md"


class ExportInputs(NamedTuple):
    """``pretrain``: what ``pretrain.run`` left; ``tokenizer``: the folder it was trained with."""

    pretrain: Path
    tokenizer: Path


def run(config: PretrainConfig, inputs: ExportInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Write the model folder; returns parameters and sizes.

    Args:
        workers: not used: there is one file to write.

    Raises:
        BadInput: training has not finished, or the tokenizer is not the one it was done with.
    """
    result = _read_result(inputs)
    for name in MODEL_NAMES:
        shutil.copyfile(inputs.pretrain / MODEL_NAME / name, out / name)
    for name in TOKENIZER_NAMES:
        if (inputs.tokenizer / name).is_file():
            shutil.copyfile(inputs.tokenizer / name, out / name)
    _set_tokenizer_limits(out / TOKENIZER_CONFIG_NAME, config)
    (out / CARD_NAME).write_text(model_card(config, result), "utf-8")
    _check_loads(out)
    return {"parameters": result["parameters"], "weights_bytes": (out / "model.safetensors").stat().st_size}


def model_card(config: PretrainConfig, result: dict[str, Any]) -> str:
    """What a reader of the folder must know: data, recipe, held-out scores, how to load it."""
    objectives = "masked language modelling with whole-word masking"
    if config.nsp:
        objectives += " and next sentence prediction"
    scores = "\n".join(f"| {name.replace('_', ' ')} | {value:,.4g} |" for name, value in result["held_out"].items())
    return CARD.format(
        architecture={"bert": "BERT", "roberta": "RoBERTa"}[config.architecture],
        objectives=objectives,
        masks=config.masking.mode,
        scores=scores,
        **{name: getattr(config, name) for name in ("layers", "hidden", "heads", "positions", "sequence_length")},
        **{name: getattr(config, name) for name in ("steps", "global_batch", "lr", "precision", "seed")},
        **{name: result[name] for name in ("parameters", "tokens", "epochs", "held_out_rows", "vocabulary_sha256")},
    )


CARD = """---
language: ko
library_name: transformers
pipeline_tag: fill-mask
---
# {architecture}, {parameters:,} parameters

A Korean {architecture} pretrained with malmoi: {objectives} ({masks}).

| setting | value |
|---|---|
| layers x hidden x heads | {layers} x {hidden} x {heads} |
| longest input, tokens | {positions} |
| training sequences, tokens | {sequence_length} |
| steps x sequences | {steps:,} x {global_batch:,} |
| tokens seen | {tokens:,} ({epochs} epochs) |
| peak learning rate | {lr} |
| precision, seed | {precision}, {seed} |
| vocabulary (sha256 of vocab.txt) | `{vocabulary_sha256:.16}` |

Held-out text ({held_out_rows:,} sequences of the same corpus, never trained on):

| measure | value |
|---|---|
{scores}

```python
from transformers import AutoModelForMaskedLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")
model = AutoModelForMaskedLM.from_pretrained("path/to/this/folder")
```
"""


def _read_result(inputs: ExportInputs) -> dict[str, Any]:
    path = inputs.pretrain / RESULT_NAME
    if not path.is_file():
        raise BadInput(f"{path}: not there, so training has not finished; run `malmoi pretrain` first")
    result: dict[str, Any] = json.loads(path.read_text("utf-8"))
    if vocabulary_digest(inputs.tokenizer) != result["vocabulary_sha256"]:
        raise BadInput(
            f"{inputs.tokenizer}: another vocabulary than {inputs.pretrain} was trained with; give the tokenizer that "
            "the token store was packed with"
        )
    return result


def _set_tokenizer_limits(path: Path, config: PretrainConfig) -> None:
    settings = json.loads(path.read_text("utf-8")) if path.is_file() else {"tokenizer_class": "BertTokenizer"}
    settings["model_max_length"] = config.positions
    if config.architecture == "roberta":
        settings["model_input_names"] = ["input_ids", "attention_mask"]
    path.write_text(json.dumps(settings, ensure_ascii=False, indent=2) + "\n", "utf-8")


def _check_loads(folder: Path) -> None:
    with _quiet_transformers():
        model, report = AutoModelForMaskedLM.from_pretrained(folder, local_files_only=True, output_loading_info=True)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if report["missing_keys"]:
        raise RuntimeError(f"{folder}: weights missing from the exported model: {sorted(report['missing_keys'])}")
    if model.config.pad_token_id != tokenizer.pad_token_id:
        raise BadInput(
            f"{folder}: the model's pad id is {model.config.pad_token_id}, the tokenizer's {tokenizer.pad_token_id}; "
            "train with the tokenizer as it is now"
        )


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """No progress bar, and no warning that the sentence-pair head is left out, which is right here."""
    verbosity, shows_bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if shows_bars:
            transformers_logging.enable_progress_bar()
