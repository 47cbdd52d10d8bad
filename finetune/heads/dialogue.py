"""Dialogue state generator after TRADE: a gate for every slot, a copying decoder for values (KLUE paper 5.1, WoS).

TRADE was made for the small states of a GRU; states of an encoder have a norm of √H, its embeddings one near 1. Without
scaling, attention ignores the slot at width 384, so inputs are normalized, and queries are projected and divided by √H.
Legend: ``B`` turns, ``L`` positions, ``S`` slots, ``K`` slots to spell, ``T`` steps, ``Q`` = K * T, ``R`` rows picked
from (B, Q) or (B, K), ``H`` hidden, ``V`` vocabulary, ``E`` width of the embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from finetune.encoder.loading import Encoder
from finetune.examples import IGNORED

SCORES_AT_ONCE = 1 << 24  # floats: 64 MiB; 524 rows of KLUE's vocabulary
TINY = 1e-12  # keeps the logarithm of "never copied" finite


class Design(NamedTuple):
    """The differences between the generators of the two protocols."""

    starts_pooled: bool = False  # the decoder starts from the pooler's output, not from the state of [CLS]
    gate_sees_state: bool = True  # the gate reads the first state of the decoder and its context
    is_scaled: bool = True  # inputs are normalized; queries are projected and divided by the root of the width
    teacher_forcing: float = 1.0  # share of training batches that are fed the right words, not their own
    max_steps: int = 64  # tokens of a generated value; generation stops as soon as all values have ended


class Turns(NamedTuple):
    ids_BL: Tensor
    mask_BL: Tensor
    states_BLH: Tensor
    start_BH: Tensor  # where the decoder starts


class StateGenerator(nn.Module):
    """Gates of all slots and, where ``spell_gate`` opens, a value generated token by token until one of ``ends``.

    Embeddings are those of the encoder; if their width differs from its states, one matrix maps them to the states and,
    transposed, back to the vocabulary. A slot is the sum of its pieces' embeddings. ``spell``: token ids to text.
    """

    slot_ids: Tensor
    slot_starts: Tensor
    end_ids: Tensor

    def __init__(
        self, encoder: Encoder, slots: Mapping[str, Sequence[int]], gates: int, spell_gate: int, ends: Sequence[int],
        design: Design | Mapping[str, Any], spell: Callable[[Sequence[int]], Any] = list,
    ) -> None:  # fmt: skip
        super().__init__()
        design = design if isinstance(design, Design) else Design(**design)
        self.head: dict[str, Any] = {
            "slots": {name: list(ids) for name, ids in slots.items()}, "gates": gates, "spell_gate": spell_gate,
            "ends": list(ends), "design": design._asdict(),
        }  # fmt: skip
        self.encoder, self.design, self.names = encoder, design, list(slots)
        self.spell_gate, self.ends, self.spell = spell_gate, set(ends), spell
        hidden, width = int(encoder.config.hidden_size), self.embeddings.shape[1]
        for name, values in self.piece_ids().items():
            self.register_buffer(name, values, persistent=False)
        self.dropout = float(getattr(encoder.config, "hidden_dropout_prob", 0.0))
        self.widen = None if width == hidden else nn.Linear(width, hidden, bias=False)
        has_pooler = getattr(encoder.encoder, "pooler", None) is not None
        self.pool = nn.Linear(hidden, hidden) if design.starts_pooled and not has_pooler else None
        self.norm = nn.LayerNorm(hidden) if design.is_scaled else None
        self.query = nn.Linear(hidden, hidden) if design.is_scaled else None
        self.decoder = nn.GRU(hidden, hidden, batch_first=True)
        self.gate = nn.Linear((1 + design.gate_sees_state) * hidden, gates)
        self.generate = nn.Linear(3 * hidden, 1)

    def piece_ids(self) -> dict[str, Tensor]:
        """The buffers, which are made from ``head`` and not saved."""
        slots = list(self.head["slots"].values())
        starts = torch.tensor([0, *map(len, slots)]).cumsum(0)[:-1]
        ids = torch.tensor([token for pieces in slots for token in pieces])
        return {"slot_ids": ids, "slot_starts": starts, "end_ids": torch.tensor(self.head["ends"])}

    @property
    def embeddings(self) -> Tensor:
        """(V, E)."""
        model: Any = self.encoder.encoder
        return model.get_input_embeddings().weight

    def embed(self, ids: Tensor) -> Tensor:
        """Ids of any shape to (..., H)."""
        return self._as_inputs(functional.embedding(ids, self.embeddings))

    def embed_slots(self) -> Tensor:
        """(S, H)."""
        return self._as_inputs(functional.embedding_bag(self.slot_ids, self.embeddings, self.slot_starts, mode="sum"))

    def _as_inputs(self, rows: Tensor) -> Tensor:
        """Embeddings (..., E) as inputs of the decoder (..., H)."""
        rows = rows if self.widen is None else self.widen(rows)
        return rows if self.norm is None else self.norm(rows)

    def score_words(self, hidden_RH: Tensor) -> Tensor:
        """(R, V), float32."""
        rows_RE = hidden_RH if self.widen is None else hidden_RH @ self.widen.weight
        return (rows_RE @ self.embeddings.T).float()

    def encode(self, batch: Mapping[str, Tensor]) -> Turns:
        """Encoder states and the decoder's start."""
        ids_BL, mask_BL = batch["input_ids"], batch["attention_mask"]
        output = self.encoder(input_ids=ids_BL, attention_mask=mask_BL)
        states_BLH = output.last_hidden_state
        start_BH = states_BLH[:, 0]
        if self.pool is not None:
            start_BH = self.pool(start_BH).tanh()
        elif self.design.starts_pooled:
            start_BH = output.pooler_output
        return Turns(ids_BL, mask_BL, states_BLH, start_BH)

    def run_decoder(self, inputs_BKTH: Tensor, before_BKH: Tensor) -> Tensor:
        """States after each step, (B, K, T, H)."""
        states, _ = self.decoder(inputs_BKTH.flatten(0, 1), before_BKH.flatten(0, 1)[None].contiguous())
        return states.view(inputs_BKTH.shape)

    def attend(self, queries_BQH: Tensor, turns: Turns) -> tuple[Tensor, Tensor]:
        """Attention (B, Q, L), which is also the copy distribution, and context (B, Q, H)."""
        if self.query is not None:
            queries_BQH = self.query(queries_BQH) * queries_BQH.shape[-1] ** -0.5
        scores_BQL = queries_BQH @ turns.states_BLH.transpose(1, 2)
        attention_BQL = scores_BQL.masked_fill(turns.mask_BL[:, None, :] == 0, float("-inf")).softmax(dim=-1)
        return attention_BQL, attention_BQL @ turns.states_BLH

    def score_gates(self, turns: Turns, slots_SH: Tensor) -> Tensor:
        """(B, S, gates)."""
        inputs_BSH = slots_SH.expand(len(turns.ids_BL), -1, -1)
        before_BSH = turns.start_BH[:, None].expand_as(inputs_BSH)
        dropped_BSH = functional.dropout(inputs_BSH, self.dropout, self.training)
        hidden_BSH = self.run_decoder(dropped_BSH[:, :, None], before_BSH)[:, :, 0]
        context_BSH = self.attend(hidden_BSH, turns)[1]
        return self.gate(torch.cat([hidden_BSH, context_BSH], dim=-1) if self.design.gate_sees_state else context_BSH)

    def forward(self, **batch: Tensor) -> dict[str, Tensor]:
        """Loss: gate cross-entropy over all slots and -log p of the values' tokens.

        Batch: ``input_ids``, ``attention_mask`` (B, L); ``gates`` (B, S); ``slots`` (B, K), the slots to spell, and
        ``targets`` (B, K, T), their tokens, ``IGNORED`` after the end and in unused rows.
        """
        turns, slots_SH = self.encode(batch), self.embed_slots()
        gates = self.score_gates(turns, slots_SH)
        loss = functional.cross_entropy(gates.flatten(0, 1).float(), batch["gates"].flatten())
        if bool((batch["targets"] != IGNORED).any()):
            is_taught = not self.training or float(torch.rand(())) < self.design.teacher_forcing
            loss = loss + self.spelling_loss(turns, slots_SH[batch["slots"]], batch["targets"], is_taught)
        return {"loss": loss}

    def spelling_loss(self, turns: Turns, slots_BKH: Tensor, targets_BKT: Tensor, is_taught: bool) -> Tensor:
        """Mean -log p of the real targets, each step fed the right previous word, or else the likeliest one."""
        drop_BKTH = functional.dropout(slots_BKH.new_ones(*targets_BKT.shape, slots_BKH.shape[-1]), self.dropout,
                                       self.training)  # fmt: skip
        given_BKT = targets_BKT[:, :, :-1].clamp(min=0)
        if not is_taught:
            open_BKT = targets_BKT[:, :, 1:] != IGNORED  # what follows a value's end teaches nothing
            given_BKT = self.write(turns, slots_BKH, open_BKT, drop_BKTH).clamp(min=0)
        inputs_BKTH = torch.cat([slots_BKH[:, :, None], self.embed(given_BKT)], dim=2) * drop_BKTH
        before_BKH = turns.start_BH[:, None].expand_as(slots_BKH)
        hidden_BQH = self.run_decoder(inputs_BKTH, before_BKH).flatten(1, 2)
        attention_BQL, context_BQH = self.attend(hidden_BQH, turns)
        targets_BQ = targets_BKT.flatten(1)
        copies_BQL = turns.ids_BL[:, None, :] == targets_BQ[..., None]
        real_BQ = targets_BQ != IGNORED
        copy_R = (attention_BQL * copies_BQL).sum(dim=-1)[real_BQ].float()
        hidden_RH = hidden_BQH[real_BQ]
        switch_R = self.switch(hidden_RH, context_BQH[real_BQ], inputs_BKTH.flatten(1, 2)[real_BQ])
        log_p_R = torch.logaddexp(
            functional.logsigmoid(switch_R) + self.log_p_words(hidden_RH, targets_BQ[real_BQ]),
            functional.logsigmoid(-switch_R) + copy_R.clamp(min=TINY).log(),
        )
        return -log_p_R.mean()

    def switch(self, *rows_RH: Tensor) -> Tensor:
        """Logit of generating rather than copying, float32."""
        return self.generate(torch.cat(rows_RH, dim=-1))[:, 0].float()

    def log_p_words(self, hidden_RH: Tensor, words_R: Tensor) -> Tensor:
        """log p of each row's word among the vocabulary, (R,)."""

        def some(hidden_RH: Tensor, words_R: Tensor) -> Tensor:
            return -functional.cross_entropy(self.score_words(hidden_RH), words_R, reduction="none")

        if len(words_R) <= (rows := self.rows_at_once()):
            return some(hidden_RH, words_R)
        parts = zip(hidden_RH.split(rows), words_R.split(rows), strict=True)
        return torch.cat([checkpoint(some, *part, use_reentrant=False, preserve_rng_state=False) for part in parts])

    def rows_at_once(self) -> int:
        """Number of rows whose vocabulary scores are computed at a time."""
        return max(1, SCORES_AT_ONCE // len(self.embeddings))

    @torch.no_grad()
    def predict(self, **batch: Tensor) -> list[dict[str, Any]]:
        """For each turn ``gates``, the best one of each slot, ``gate_scores`` (S, gates) float32, and ``values``, slot
        name to text."""
        turns, slots_SH = self.encode(batch), self.embed_slots()
        scores_BSG = self.score_gates(turns, slots_SH)
        gates_BS = scores_BSG.argmax(dim=-1)
        wanted_BS = gates_BS == self.spell_gate
        width = int(wanted_BS.sum(dim=1).max())
        slots_BK = wanted_BS.int().argsort(dim=1, descending=True, stable=True)[:, :width]  # slots to spell first
        open_BKT = wanted_BS.gather(1, slots_BK)[:, :, None].expand(-1, -1, self.design.max_steps)
        tokens_BKT = self.write(turns, slots_SH[slots_BK], open_BKT)
        silent = {*self.ends, IGNORED}
        return [
            {
                "gates": gates,
                "gate_scores": scores_SG,
                "values": {
                    self.names[slot]: self.spell([token for token in tokens if token not in silent])
                    for slot, tokens in zip(slots, values, strict=True)
                    if gates[slot] == self.spell_gate
                },
            }
            for gates, scores_SG, slots, values in zip(
                gates_BS.tolist(), scores_BSG.float().cpu().numpy(), slots_BK.tolist(), tokens_BKT.tolist(), strict=True
            )
        ]

    @torch.no_grad()
    def write(self, turns: Turns, slots_BKH: Tensor, open_BKT: Tensor, drop_BKTH: Tensor | None = None) -> Tensor:
        """The likeliest tokens, one after the other, (B, K, T), ``IGNORED`` where nothing is written. ``open_BKT``:
        which to write, of each value the first ones; ``drop_BKTH``: the training's dropout of the inputs, with which a
        value continues after an end."""
        hidden_BKH, inputs_BKH = turns.start_BH[:, None].expand_as(slots_BKH), slots_BKH
        tokens_BKT = torch.full_like(open_BKT, IGNORED, dtype=torch.int64)
        ended_BK = torch.zeros(open_BKT.shape[:2], dtype=torch.bool, device=open_BKT.device)
        for step in range(open_BKT.shape[2]):
            open_BK = open_BKT[:, :, step] & ~ended_BK
            if not bool(open_BK.any()):
                break
            if drop_BKTH is not None:
                inputs_BKH = inputs_BKH * drop_BKTH[:, :, step]
            hidden_BKH = self.run_decoder(inputs_BKH[:, :, None], hidden_BKH)[:, :, 0]
            attention_BKL, context_BKH = self.attend(hidden_BKH, turns)
            share_R = self.switch(hidden_BKH[open_BK], context_BKH[open_BK], inputs_BKH[open_BK]).sigmoid()
            ids_RL = turns.ids_BL[open_BK.nonzero()[:, 0]]
            next_R = self.likeliest(hidden_BKH[open_BK], share_R, attention_BKL[open_BK], ids_RL)
            tokens_BKT[:, :, step][open_BK] = next_R
            inputs_BKH = self.embed(tokens_BKT[:, :, step].clamp(min=0))
            if drop_BKTH is None:
                ended_BK = ended_BK | torch.isin(tokens_BKT[:, :, step], self.end_ids)
        return tokens_BKT

    def likeliest(self, hidden_RH: Tensor, share_R: Tensor, attention_RL: Tensor, ids_RL: Tensor) -> Tensor:
        """The best token of each row, generated (probability ``share_R``) or copied, (R,)."""
        copies_RL = (1 - share_R[:, None]) * attention_RL.float()
        best = []
        for some in torch.arange(len(hidden_RH), device=hidden_RH.device).split(self.rows_at_once()):
            p_RV = self.score_words(hidden_RH[some]).softmax(dim=-1).mul_(share_R[some, None])
            best.append(p_RV.scatter_add_(1, ids_RL[some], copies_RL[some]).argmax(dim=-1))
        return torch.cat(best)
