"""Against overfitting on few examples: R-Drop, adversarial embeddings (FGM), top layers that start again, dropout.

All but dropout cost time: R-Drop and FGM a second forward and backward pass each. Legend: ``B`` texts, ``L``
positions, ``E`` width of the embeddings, ``K`` labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional

from corpus.documents.errors import BadInput
from finetune.encoder import draw_again, find_encoder
from finetune.examples import IGNORED
from finetune.task import Hyperparameters
from finetune.train.rates import find_layers


def prepare(model: nn.Module, settings: Hyperparameters, task: str) -> None:
    """Change a loaded model, in place, before its training; ``BadInput`` for R-Drop where nothing is dropped."""
    drops = [part for part in model.modules() if isinstance(part, nn.Dropout)]
    if settings.dropout is not None:
        for part in drops:
            part.p = settings.dropout
    if settings.r_drop and not any(part.p for part in drops):
        raise BadInput(
            f"finetune.overrides.{task}: r_drop compares two passes under dropout, and this encoder has none, so both "
            "are the same; give it some with dropout=0.1"
        )
    if settings.reset_layers:
        reset_top_layers(model, settings.reset_layers)


def reset_top_layers(model: nn.Module, count: int) -> None:
    """Draw the ``count`` highest layers and the pooler again, as the architecture does (Zhang et al. 2021, section 5):
    what they know of pretraining's own task can stand in the way of another."""
    encoder = find_encoder(model)
    pooler = getattr(encoder, "pooler", None)
    for part in [*find_layers(encoder)[-count:], *([pooler] if pooler is not None else [])]:
        draw_again(part, encoder)


def r_drop_loss(model: nn.Module, batch: dict[str, Tensor], alpha: float) -> Tensor:
    """``-log P1 - log P2 + alpha / 2 (KL(P1|P2) + KL(P2|P1))`` of two passes under dropout, the mean over texts or
    labelled tokens (Liang et al. 2021, equations 2 to 4). Both passes are one over the batch twice."""
    found = model(**{name: torch.cat([values, values]) for name, values in batch.items()})
    one, two = (half.float().log_softmax(dim=-1) for half in found["logits"].chunk(2))  # (B, K) or (B, L, K)
    both = functional.kl_div(two, one, reduction="none", log_target=True)
    both = both + functional.kl_div(one, two, reduction="none", log_target=True)
    is_learnt = batch["labels"] != IGNORED
    loss: Tensor = 2 * found["loss"] + alpha * both.sum(dim=-1)[is_learnt].mean() / 2
    return loss


def adversarial_step(step: Callable[[], Tensor], model: nn.Module, length: float) -> Tensor:
    """Add the gradient of the adversarial loss to the gradient of the loss (Miyato et al. 2017, equations 1 to 5);
    returns the loss.

    The word embeddings of each text, as one vector, move by ``length`` in the direction of the loss's own gradient. Not
    as there: embeddings are not normalized, so what length is much depends on theirs.

    Args:
        step: forward and backward of one batch, done twice.
    """
    seen: list[Tensor] = []

    def watch(output_BLE: Tensor) -> Tensor:
        if not output_BLE.requires_grad:  # embeddings that are frozen
            output_BLE.requires_grad_()
        output_BLE.retain_grad()
        seen.append(output_BLE)
        return output_BLE

    with _changed_embeddings(model, watch):
        loss = step()
    moves = iter([_move(output_BLE, length) for output_BLE in seen])
    with _changed_embeddings(model, lambda output_BLE: output_BLE + next(moves)):
        step()
    return loss


def _move(output_BLE: Tensor, length: float) -> Tensor:
    gradient_BLE = output_BLE.grad if output_BLE.grad is not None else torch.zeros_like(output_BLE)
    norm_B11 = gradient_BLE.flatten(1).norm(dim=1)[:, None, None]
    return length * gradient_BLE / norm_B11.clamp(min=torch.finfo(norm_B11.dtype).tiny)


@contextmanager
def _changed_embeddings(model: nn.Module, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    words = find_encoder(model).get_input_embeddings()
    handle = words.register_forward_hook(lambda module, inputs, output: change(output))
    try:
        yield
    finally:
        handle.remove()
