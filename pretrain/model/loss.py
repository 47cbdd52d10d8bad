"""A module around an unchanged Hugging Face model that computes the sums of losses and hits for the training loop.

The vocabulary head and most of the last layer run on the chosen positions only (77 of 512): same gradients, fewer
operations. Rows of several segments need a network prepared by ``isolate_documents``.

Shapes: B sequences, L positions, M most predictions in a sequence, S segments of a sequence, P = M, or M + S with
sentence pairs, H hidden; N predictions, V vocabulary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from pretrain.batching.masking import IGNORED
from pretrain.model.families import family_of, first_position
from pretrain.model.isolation import find_borders, is_isolated, make_no_masks
from pretrain.model.last_layer import narrow_last_layer
from pretrain.model.rotary import turn_in_fewer_passes
from pretrain.model.sizes import MAX_CAUSAL_SCORES


class Sums(NamedTuple):
    """Sums over a batch, float32 scalars: masked words, and the other objective.

    The other objective is sentence pairs, or the next token in causal rows, which have no masked words. Else it is 0.
    """

    mlm_loss: Tensor
    mlm_hits: Tensor
    other_loss: Tensor
    other_hits: Tensor


def mean_loss(sums: Any, predictions: float, others: float) -> Any:
    """The training loss: the mean over masked words plus the mean over the other objective.

    ``sums``: ``Sums`` of tensors or of numbers; ``predictions``, ``others``: their numbers over the full step.
    """
    return sums.mlm_loss / max(predictions, 1) + sums.other_loss / max(others, 1)


class PretrainingModule(nn.Module):
    """A Hugging Face model with its own heads, evaluated at the chosen positions only."""

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__()
        self.network: Any = network  # the names of its parts differ by family
        self.is_isolated = is_isolated(network.config)
        self.family = family_of(network.config)
        self.is_narrow = not self.family.is_causal
        if self.is_narrow:
            narrow_last_layer(network)
        elif not self.is_isolated:
            make_no_masks(network)
        turn_in_fewer_passes(network)
        self.first_position = first_position(network.config)

    def forward(
        self,
        ids_BL: Tensor,
        positions_BM: Tensor | None,
        targets_BM: Tensor,
        types_BL: Tensor | None = None,
        lengths_BS: Tensor | None = None,
        is_random_BS: Tensor | None = None,
        borders_N: Tensor | None = None,
        longest: int | None = None,
    ) -> Sums:
        """Loss sums and hits; the arguments are the fields of ``Batch``."""
        if positions_BM is None:
            hidden_BLH = self._encode(ids_BL, None, types_BL, lengths_BS, borders_N, longest)
            loss, hits = self._loss_of_all(hidden_BLH.flatten(0, 1), targets_BM.flatten())
            return Sums(torch.zeros_like(loss), torch.zeros_like(loss), loss, hits)
        places_BP = positions_BM
        if is_random_BS is not None:
            assert lengths_BS is not None  # pairs differ in length
            # an unused segment picks the first padding, or the last token; its target is ignored
            firsts_BS = (lengths_BS.cumsum(1) - lengths_BS).clamp(max=ids_BL.shape[1] - 1)
            places_BP = torch.cat([positions_BM, firsts_BS], dim=1)
        hidden_BPH = self._encode(ids_BL, places_BP, types_BL, lengths_BS, borders_N, longest)
        predictions = positions_BM.shape[1]
        head = self.family.head(self.network)
        mlm_loss, mlm_hits = loss_and_hits(head(hidden_BPH[:, :predictions]).flatten(0, 1), targets_BM.flatten())
        if is_random_BS is None:
            return Sums(mlm_loss, mlm_hits, torch.zeros_like(mlm_loss), torch.zeros_like(mlm_loss))
        pooled_H = self.network.base_model.pooler(hidden_BPH[:, predictions:].flatten(0, 1)[:, None])
        nsp_scores_2 = self.network.cls.seq_relationship(pooled_H)
        return Sums(mlm_loss, mlm_hits, *loss_and_hits(nsp_scores_2, is_random_BS.flatten()))

    def _encode(
        self, ids_BL: Tensor, places_BP: Tensor | None, types_BL: Tensor | None, lengths_BS: Tensor | None, *sizes: Any
    ) -> Tensor:
        """Hidden states at the places, with attention in both directions; None: all states, with causal attention."""
        length = ids_BL.shape[1]
        extra: dict[str, Any] = {} if types_BL is None else {"token_type_ids": types_BL}
        if lengths_BS is not None and self.is_isolated:
            borders = find_borders(lengths_BS, length, *sizes)
            extra |= {"borders": borders, "position_ids": borders.places_BL + self.first_position}
        elif lengths_BS is not None:
            assert lengths_BS.shape[1] == 1  # several segments would attend to each other
            is_text_BL = torch.arange(length, device=ids_BL.device) < lengths_BS
            # transformers uses a mask of four dimensions as it is; for two, it would wait for the device
            extra["attention_mask"] = is_text_BL if self.family.has_windows else is_text_BL[:, None, None]
        if self.is_narrow:
            extra["places_BP"] = places_BP
        if places_BP is None:
            extra |= {"is_causal": True, "use_cache": False}
            if "borders" in extra:  # a mask of four dimensions prevents transformers from making one; it is not read
                extra["attention_mask"] = ids_BL[:, None, None]
        if self.family.is_causal:  # GPT-2 searches ids for padding, which waits for the device
            extra["inputs_embeds"] = self.network.get_input_embeddings()(ids_BL)
        else:
            extra["input_ids"] = ids_BL
        states: Tensor = self.network.base_model(**extra).last_hidden_state
        return states

    def _loss_of_all(self, hidden_NH: Tensor, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        """Loss sum and hits of the next tokens, in parts if there are too many scores."""

        def of_part(part_NH: Tensor, targets_N: Tensor) -> tuple[Tensor, Tensor]:
            return loss_and_hits(self.family.head(self.network)(part_NH), targets_N)

        max_targets = max(1, MAX_CAUSAL_SCORES // self.network.config.vocab_size)
        if len(targets_N) <= max_targets:
            return of_part(hidden_NH, targets_N)
        parts = zip(hidden_NH.split(max_targets), targets_N.split(max_targets), strict=True)
        sums = [checkpoint(of_part, *part, use_reentrant=False, preserve_rng_state=False) for part in parts]
        losses, hits = zip(*sums, strict=True)
        return torch.stack(losses).sum(), torch.stack(hits).sum()


def loss_and_hits(scores_NV: Tensor, targets_N: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of the losses (nats) and number of hits, float32 scalars; targets of ``IGNORED`` are left out."""
    loss, hits = _SummedLoss.apply(scores_NV, targets_N)
    return loss, hits


class _SummedLoss(torch.autograd.Function):
    """Loss and hits from one search for the largest score; the saved shares become the gradient in place.

    Scores are the largest tensors of a step. This takes 0.6 times the time of ``cross_entropy`` and ``argmax``.
    """

    @staticmethod
    def forward(ctx: Any, scores_NV: Tensor, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        tops_N1, best_N1 = scores_NV.max(-1, keepdim=True)
        counts_N1 = (targets_N != IGNORED)[:, None]
        targets_N1 = targets_N.clamp(min=0)[:, None]
        tops_N1 = tops_N1.float()
        exact_NV = scores_NV.float()
        is_copy = exact_NV is not scores_NV  # of bf16 scores, so it can be overwritten
        shares_NV = (exact_NV.sub_(tops_N1) if is_copy else exact_NV - tops_N1).exp_()
        totals_N1 = shares_NV.sum(-1, keepdim=True)
        losses_N1 = totals_N1.log() + tops_N1 - scores_NV.gather(1, targets_N1)
        ctx.save_for_backward(shares_NV, totals_N1, targets_N1, counts_N1)
        ctx.dtype = scores_NV.dtype
        hits = ((best_N1 == targets_N1) & counts_N1).sum().float()
        ctx.mark_non_differentiable(hits)
        return (losses_N1 * counts_N1).sum(), hits

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        shares_NV, totals_N1, targets_N1, counts_N1 = ctx.saved_tensors
        scale_N1 = gradients[0] * counts_N1
        shares_NV.mul_(scale_N1 / totals_N1).scatter_add_(1, targets_N1, -scale_N1)
        return shares_NV.to(ctx.dtype), None
