"""The mean of the weights of the last checkpoints, a cheap ensemble (Izmailov et al. 2018, arXiv 1803.05407).

Sums are in float64, so the mean of equal weights is those weights. The price is one pass over the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedModel

from pretrain.config import PretrainConfig
from pretrain.engine import Engine
from pretrain.export import WEIGHTS_NAME
from pretrain.model import PretrainingModule
from pretrain.plain import PlainEngine
from pretrain.world import World


def mean_weights(folders: Sequence[Path]) -> dict[str, Tensor]:
    """The mean over Hugging Face folders of one architecture, float32 by name."""
    sums = {name: weight.double() for name, weight in load_file(folders[0] / WEIGHTS_NAME).items()}
    for folder in folders[1:]:
        for name, weight in load_file(folder / WEIGHTS_NAME).items():
            sums[name] += weight
    return {name: (total / len(folders)).float() for name, total in sums.items()}


def engine_with(weights: dict[str, Tensor], network: PreTrainedModel, config: PretrainConfig, world: World) -> Engine:
    """An engine of this process alone that measures these weights in the precision of the training.

    Args:
        network: a fresh one; DeepSpeed may have cut the trained one into parts.
    """
    network.load_state_dict(weights, strict=False)  # tied weights are stored under one of their names
    module = PretrainingModule(network)
    precision = "fp32" if config.precision == "fp32" else "bf16"
    return PlainEngine(config.model_copy(update={"precision": precision}), module, world.device)
