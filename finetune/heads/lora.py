"""Changes of a model before training: low-rank adapters (LoRA).

peft adds an adapter to each linear layer of the encoder, whose weights are frozen; the head, the pooler and the
embeddings of added tokens are trained. After training the adapters are merged into the weights, before any prediction,
so scores are those of the saved model, which needs no peft.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from finetune.config import FinetuneConfig, Lora
from finetune.encoder.loading import find_encoder
from finetune.examples import Tokenizer
from finetune.task import Task

HEAD_PART = "pooler"  # of an encoder, but often drawn at random, as a head is


def shape_model(
    model: nn.Module, task: Task, config: FinetuneConfig, tokenizer: Tokenizer
) -> tuple[nn.Module, Callable[[], Any], dict[str, int]]:
    """The model of ``task`` with the adapters that ``config`` asks for, what to do after training, and the number of
    "trained" and of "all" parameters."""
    if config.lora is None:
        return model, lambda: None, _count(model)
    vocabulary = tokenizer.get_vocab()
    size = _count(model)["all"]
    adapted = add_lora(model, config.lora, [vocabulary[token] for token in task.special_tokens])
    return model, adapted.merge_and_unload, {"trained": _count(model)["trained"], "all": size}


def add_lora(model: nn.Module, lora: Lora, added_ids: Sequence[int]) -> Any:
    """Add adapters to the encoder of ``model``; returns peft's model, whose ``merge_and_unload`` merges them.

    Args:
        added_ids: tokens that the task has added, whose embeddings are trained.
    """
    from peft import LoraConfig, get_peft_model

    encoder = find_encoder(model)
    names = {module: name for name, module in encoder.named_modules()}
    has_pooler = any(HEAD_PART in name for name in names.values())
    settings = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        target_modules="all-linear",
        exclude_modules=rf".*{HEAD_PART}.*" if has_pooler else None,
        trainable_token_indices={names[encoder.get_input_embeddings()]: list(added_ids)} if added_ids else None,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that GPT-2 stores its matrices transposed, which peft then allows for
        adapted = get_peft_model(encoder, settings)
    for module, name in names.items():
        if HEAD_PART in name:
            module.requires_grad_(True)
    return adapted


def _count(model: nn.Module) -> dict[str, int]:
    sizes = [(parameter.numel(), parameter.requires_grad) for parameter in model.parameters()]
    return {"trained": sum(size for size, is_trained in sizes if is_trained), "all": sum(size for size, _ in sizes)}
