"""Dependency parser on an encoder: word vectors, BiLSTM, biaffine arcs, bilinear types (KLUE paper 5.1, KLUE-DP).

As published, but for two things. The published decoder LSTM over the words is left out (Dozat and Manning parse
without one), and positions that cannot be a head are masked in evaluation as well as in training, so that a sentence's
scores do not depend on its batch mates.
Legend: ``B`` sentences, ``L`` sub-words, ``P`` positions (root, then the words), ``W`` = P - 1 words, ``K`` types.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from finetune.encoder import Encoder
from finetune.padding import IGNORED

IMPOSSIBLE = -1e4  # score of an arc that cannot be; finite, so that a padded word's softmax is not nan
DROPOUT = 0.33
BASE_HIDDEN, BASE_ARC, BASE_TYPE, BASE_POS = 768, 512, 256, 256  # published sizes, for a 768-wide encoder


def scale_size(base: int, hidden: int) -> int:
    """The published size for a base encoder, in proportion for others, as a multiple of 8."""
    return max(8, round(base * min(1.0, hidden / BASE_HIDDEN) / 8) * 8)


def drop_channels(x_BPH: Tensor, training: bool) -> Tensor:
    """Zero whole channels of a sentence, as published."""
    return functional.dropout1d(x_BPH.transpose(1, 2), DROPOUT, training).transpose(1, 2)


def with_one(x: Tensor) -> Tensor:
    """Append a constant, which gives a bilinear form its linear terms and its bias."""
    return torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)


def possible_heads(lengths_B: Tensor, positions: int) -> Tensor:
    """Which arcs may be: heads to the right of their word, or the root (true of every arc of KLUE-DP dev).

    Returns:
        (B, W, P) bool: word w + 1 may depend on position p.
    """
    word_W = torch.arange(1, positions, device=lengths_B.device)[:, None]
    head_P = torch.arange(positions, device=lengths_B.device)[None, :]
    inside_B1P = (head_P <= lengths_B[:, None])[:, None, :]
    return ((head_P > word_W) | (head_P == 0)) & inside_B1P


class BiaffineParser(nn.Module):
    """Scores every possible arc and every type on it; ``predict`` leaves the search for a tree to the caller."""

    def __init__(self, encoder: Encoder, types: int, pos_tags: int) -> None:
        super().__init__()
        hidden = int(encoder.config.hidden_size)
        arc, type_, pos = (scale_size(size, hidden) for size in (BASE_ARC, BASE_TYPE, BASE_POS))
        self.encoder = encoder
        self.pos = nn.Embedding(pos_tags, pos)
        self.words = nn.LSTM(2 * hidden + pos, hidden, batch_first=True, bidirectional=True)
        self.arc_word, self.arc_head = nn.Linear(2 * hidden, arc), nn.Linear(2 * hidden, arc)
        self.type_word, self.type_head = nn.Linear(2 * hidden, type_), nn.Linear(2 * hidden, type_)
        self.arc_weight = nn.Parameter(torch.empty(arc + 1, arc + 1))
        self.type_weight = nn.Parameter(torch.empty(types, type_ + 1, type_ + 1))
        nn.init.xavier_uniform_(self.arc_weight)
        nn.init.xavier_uniform_(self.type_weight)

    def read_words(self, batch: dict[str, Tensor]) -> Tensor:
        """Root and words in context, (B, P, 2H); positions behind a sentence's last word are zero."""
        pieces_BLH = self.encoder(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]
        ).last_hidden_state
        row_B1 = torch.arange(len(pieces_BLH), device=pieces_BLH.device)[:, None]
        ends = [pieces_BLH[row_B1, batch["first"]], pieces_BLH[row_B1, batch["last"]], self.pos(batch["pos"])]
        x_BPX = drop_channels(torch.cat(ends, dim=-1), self.training)
        packed = pack_padded_sequence(x_BPX, (batch["lengths"] + 1).cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.words(packed)[0], batch_first=True, total_length=x_BPX.shape[1])
        return drop_channels(states, self.training)

    def project(self, layer: nn.Linear, x: Tensor) -> Tensor:
        return with_one(drop_channels(functional.elu(layer(x)), self.training))

    def score_arcs(self, words_BPH: Tensor, lengths_B: Tensor) -> Tensor:
        """Log-probability of each position as the head of each word, (B, W, P)."""
        word_BWA = self.project(self.arc_word, words_BPH[:, 1:])
        head_BPA = self.project(self.arc_head, words_BPH)
        scores_BWP = torch.einsum("bwa,ac,bpc->bwp", word_BWA, self.arc_weight, head_BPA)
        allowed_BWP = possible_heads(lengths_B, words_BPH.shape[1])
        return scores_BWP.masked_fill(~allowed_BWP, IMPOSSIBLE).log_softmax(dim=-1)

    def forward(self, **batch: Tensor) -> dict[str, Tensor]:
        """Loss: arc and type cross-entropy a word, types on the gold heads.

        Batch: ``input_ids``, ``attention_mask`` (B, L); ``first``, ``last`` (sub-words of a position), ``pos`` (B, P);
        ``lengths`` (B) in words; ``heads``, ``types`` (B, W), ``IGNORED`` where there is none.
        """
        words_BPH = self.read_words(batch)
        arcs_BWP = self.score_arcs(words_BPH, batch["lengths"])
        arc_loss = functional.nll_loss(arcs_BWP.flatten(0, 1), batch["heads"].flatten(), ignore_index=IGNORED)
        word_BWT = self.project(self.type_word, words_BPH[:, 1:])
        head_BPT = self.project(self.type_head, words_BPH)
        gold_BWT = head_BPT.gather(1, batch["heads"].clamp(min=0)[..., None].expand(-1, -1, head_BPT.shape[-1]))
        types_BWK = torch.einsum("bwt,ktu,bwu->bwk", word_BWT, self.type_weight, gold_BWT)
        type_loss = functional.cross_entropy(types_BWK.flatten(0, 1), batch["types"].flatten())
        return {"loss": arc_loss + type_loss}

    @torch.no_grad()
    def predict(self, **batch: Tensor) -> list[dict[str, Any]]:
        """For each sentence of n words ``arcs``, (n, n + 1) float32 log-probabilities, and ``types``, (n, n + 1)
        uint8: the best type of each arc."""
        words_BPH = self.read_words(batch)
        arcs_BWP = self.score_arcs(words_BPH, batch["lengths"]).float().cpu().numpy()
        word_BWT = self.project(self.type_word, words_BPH[:, 1:])
        head_BPT = self.project(self.type_head, words_BPH)
        types_BWPK = torch.einsum("bwt,ktu,bpu->bwpk", word_BWT, self.type_weight, head_BPT)
        types_BWP = types_BWPK.argmax(dim=-1).cpu().numpy().astype(np.uint8)
        return [
            {"arcs": arcs[:n, : n + 1], "types": types[:n, : n + 1]}
            for arcs, types, n in zip(arcs_BWP, types_BWP, batch["lengths"].tolist(), strict=True)
        ]
