"""Dialogue state generator after TRADE: a gate for every slot, a copying decoder for values (KLUE paper 5.1, WoS).

As published but for start, gate and cost: the decoder starts from [CLS] (paper), the gate reads the decoder's state
beside its context, values are taught and spelt only where the gate asks for one, a whole value in one GRU call. Encoder
states are never repeated for each slot, and vocabulary scores exist only for real target tokens.
Legend: ``B`` turns, ``L`` positions, ``S`` slots, ``K`` slots to spell, ``T`` steps, ``Q`` = K * T, ``R`` rows picked
from (B, Q) or (B, K), ``H`` hidden, ``V`` vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from finetune.config import BadInput
from finetune.encoder import Encoder
from finetune.padding import IGNORED

MAX_STEPS = 24  # tokens of a value, its end included; generation stops as soon as all values have ended
TINY = 1e-12  # keeps the logarithm of "never copied" finite


class StateGenerator(nn.Module):
    """Gates of all slots and, where ``spell_gate`` opens, a value written token by token.

    Args:
        slots: name of each slot and its pieces; their embeddings' sum is the slot.
        spell_gate: the gate, of ``gates``, behind which a value is generated.
        end_id: token that ends a value.
        spell: token ids to text, for ``predict``.
    """

    slot_ids: Tensor
    slot_starts: Tensor

    def __init__(
        self,
        encoder: Encoder,
        slots: Sequence[tuple[str, Sequence[int]]],
        gates: int,
        spell_gate: int,
        end_id: int,
        spell: Callable[[Sequence[int]], str],
    ) -> None:
        super().__init__()
        hidden = int(encoder.config.hidden_size)
        self.encoder = encoder
        if self.embeddings.shape[1] != hidden:
            raise BadInput(
                f"the dialogue decoder shares the encoder's embeddings, which are {self.embeddings.shape[1]} wide, "
                f"but its states are {hidden} wide; choose an encoder where both are equal"
            )
        self.names = [name for name, _ in slots]
        self.spell_gate, self.end_id, self.spell = spell_gate, end_id, spell
        pieces = [torch.tensor(ids) for _, ids in slots]
        self.register_buffer("slot_ids", torch.cat(pieces), persistent=False)
        starts = torch.tensor([0, *(len(ids) for ids in pieces)]).cumsum(0)[:-1]
        self.register_buffer("slot_starts", starts, persistent=False)
        self.decoder = nn.GRU(hidden, hidden, batch_first=True)
        self.gate = nn.Linear(2 * hidden, gates)
        self.generate = nn.Linear(3 * hidden, 1)

    @property
    def embeddings(self) -> Tensor:
        model: Any = self.encoder.encoder
        weight: Tensor = model.get_input_embeddings().weight
        return weight

    def embed_slots(self) -> Tensor:
        return functional.embedding_bag(self.slot_ids, self.embeddings, self.slot_starts, mode="sum")

    def encode(self, batch: dict[str, Tensor]) -> Tensor:
        ids, mask = batch["input_ids"], batch["attention_mask"]
        return self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state

    def run_decoder(self, inputs_BKTH: Tensor, before_BKH: Tensor) -> Tensor:
        """States after each step, (B, K, T, H)."""
        states, _ = self.decoder(inputs_BKTH.flatten(0, 1), before_BKH.flatten(0, 1)[None].contiguous())
        return states.view(inputs_BKTH.shape)

    def attend(self, queries_BQH: Tensor, states_BLH: Tensor, mask_BL: Tensor) -> tuple[Tensor, Tensor]:
        """Attention (B, Q, L), which is also the copy distribution, and context (B, Q, H)."""
        scores_BQL = queries_BQH @ states_BLH.transpose(1, 2)
        attention_BQL = scores_BQL.masked_fill(mask_BL[:, None, :] == 0, float("-inf")).softmax(dim=-1)
        return attention_BQL, attention_BQL @ states_BLH

    def score_gates(self, states_BLH: Tensor, slots_SH: Tensor, mask_BL: Tensor) -> Tensor:
        """(B, S, gates)."""
        inputs_BSH = slots_SH.expand(len(states_BLH), -1, -1)
        hidden_BSH = self.run_decoder(inputs_BSH[:, :, None], states_BLH[:, :1].expand_as(inputs_BSH))[:, :, 0]
        context_BSH = self.attend(hidden_BSH, states_BLH, mask_BL)[1]
        return self.gate(torch.cat([hidden_BSH, context_BSH], dim=-1))

    def forward(self, **batch: Tensor) -> dict[str, Tensor]:
        """Loss: gate cross-entropy over all slots and -log p of the values' tokens.

        Batch: ``input_ids``, ``attention_mask`` (B, L); ``gates`` (B, S); ``slots`` (B, K), the slots to spell, and
        ``targets`` (B, K, T), their tokens, ``IGNORED`` behind the end and in unused rows.
        """
        states_BLH, slots_SH = self.encode(batch), self.embed_slots()
        gates = self.score_gates(states_BLH, slots_SH, batch["attention_mask"])
        loss = functional.cross_entropy(gates.flatten(0, 1), batch["gates"].flatten())
        if bool((batch["targets"] != IGNORED).any()):
            loss = loss + self.spelling_loss(batch, states_BLH, slots_SH)
        return {"loss": loss}

    def spelling_loss(self, batch: dict[str, Tensor], states_BLH: Tensor, slots_SH: Tensor) -> Tensor:
        targets_BQ = batch["targets"].flatten(1)
        given_BKT = batch["targets"][:, :, :-1].clamp(min=0)
        slots_BK1H = slots_SH[batch["slots"]][:, :, None]
        inputs_BKTH = torch.cat([slots_BK1H, functional.embedding(given_BKT, self.embeddings)], dim=2)
        before_BKH = states_BLH[:, :1].expand(-1, inputs_BKTH.shape[1], -1)
        hidden_BQH = self.run_decoder(inputs_BKTH, before_BKH).flatten(1, 2)
        attention_BQL, context_BQH = self.attend(hidden_BQH, states_BLH, batch["attention_mask"])
        copies_BQL = batch["input_ids"][:, None, :] == targets_BQ[..., None]
        real_BQ = targets_BQ != IGNORED
        copy_R = (attention_BQL * copies_BQL).sum(dim=-1)[real_BQ]
        hidden_RH, targets_R = hidden_BQH[real_BQ], targets_BQ[real_BQ]
        switch_R = self.switch(hidden_RH, context_BQH[real_BQ], inputs_BKTH.flatten(1, 2)[real_BQ])
        words_R = -functional.cross_entropy(hidden_RH @ self.embeddings.T, targets_R, reduction="none")
        log_p_R = torch.logaddexp(
            functional.logsigmoid(switch_R) + words_R,
            functional.logsigmoid(-switch_R) + copy_R.clamp(min=TINY).log(),
        )
        return -log_p_R.mean()

    def switch(self, *rows_RH: Tensor) -> Tensor:
        """Logit of generating rather than copying."""
        return self.generate(torch.cat(rows_RH, dim=-1))[:, 0]

    @torch.no_grad()
    def predict(self, **batch: Tensor) -> list[dict[str, Any]]:
        """For each turn ``gates``, the best one of each slot, and ``values``, slot name to text."""
        states_BLH, slots_SH = self.encode(batch), self.embed_slots()
        gates_BS = self.score_gates(states_BLH, slots_SH, batch["attention_mask"]).argmax(dim=-1)
        wanted = [row.nonzero()[:, 0].tolist() for row in (gates_BS == self.spell_gate).cpu()]
        spelt = self.spell_greedily(wanted, batch, states_BLH, slots_SH)
        return [
            {
                "gates": gates,
                "values": {self.names[s]: self.spell(ids) for s, ids in zip(slots, values, strict=True)},
            }
            for gates, slots, values in zip(gates_BS.tolist(), wanted, spelt, strict=True)
        ]

    def spell_greedily(
        self, wanted: Sequence[Sequence[int]], batch: dict[str, Tensor], states_BLH: Tensor, slots_SH: Tensor
    ) -> list[list[list[int]]]:
        """Token ids, without the end, for each wanted slot of each turn."""
        width = max(map(len, wanted))
        slots = torch.tensor([[*row, *[0] * (width - len(row))] for row in wanted], device=states_BLH.device)
        open_BK = torch.tensor([[k < len(row) for k in range(width)] for row in wanted], device=slots.device)
        inputs_BKH, hidden_BKH = (
            slots_SH[slots.long()],
            states_BLH[:, :1].expand(-1, width, -1),
        )
        values: list[list[list[int]]] = [[[] for _ in row] for row in wanted]
        for _ in range(MAX_STEPS):
            if not bool(open_BK.any()):
                break
            hidden_BKH = self.run_decoder(inputs_BKH[:, :, None], hidden_BKH)[:, :, 0]
            attention_BKL, context_BKH = self.attend(hidden_BKH, states_BLH, batch["attention_mask"])
            turn_R, slot_R = open_BK.nonzero(as_tuple=True)
            hidden_RH = hidden_BKH[open_BK]
            share_R1 = self.switch(hidden_RH, context_BKH[open_BK], inputs_BKH[open_BK]).sigmoid()[:, None]
            p_RV = share_R1 * (hidden_RH @ self.embeddings.T).softmax(dim=-1)
            p_RV.scatter_add_(1, batch["input_ids"][turn_R], (1 - share_R1) * attention_BKL[open_BK])
            next_R = p_RV.argmax(dim=-1)
            for turn, slot, token in zip(turn_R.tolist(), slot_R.tolist(), next_R.tolist(), strict=True):
                if token != self.end_id:
                    values[turn][slot].append(token)
            inputs_BKH = inputs_BKH.clone()
            inputs_BKH[turn_R, slot_R] = functional.embedding(next_R, self.embeddings)
            open_BK = open_BK.clone()
            open_BK[turn_R, slot_R] = next_R != self.end_id
        return values
