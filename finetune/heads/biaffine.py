"""Dependency parsers on an encoder: word vectors, BiLSTM, biaffine arcs, bilinear types (KLUE paper 5.1, KLUE-DP).

``PlainReader`` and ``PublishedReader`` turn sub-words into words in context; ``BiaffineParser`` scores arcs and types.
Padding is masked in training and evaluation; the published code masks in training only.
Legend: ``B`` sentences, ``L`` sub-words, ``P`` positions (root, then the words), ``W`` = P - 1 words, ``K`` types,
``C`` likeliest heads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from finetune.encoder.loading import Encoder
from finetune.examples import IGNORED

IMPOSSIBLE = -1e4  # score of an arc that cannot be; finite, so that a padded word's softmax is not nan
LIKELIEST = 3  # heads per word with scores of all relations
DROPOUT = 0.33
WORDS, ARC, TYPE, POS = 768, 512, 256, 256  # published sizes, at any width of the encoder


def scale_size(published: int, hidden: int) -> int:
    """The published size for an encoder of width 768 or more, in proportion for narrower ones, as a multiple of 8."""
    return max(8, round(published * min(1.0, hidden / 768) / 8) * 8)


def drop_channels(x_BPH: Tensor, share: float, training: bool) -> Tensor:
    """Drop whole channels of a sentence, as published."""
    return functional.dropout1d(x_BPH.transpose(1, 2), share, training).transpose(1, 2)


def possible_heads(lengths_B: Tensor, positions: int, right_only: bool) -> Tensor:
    """Whether word w + 1 may depend on position p, (B, W, P): any position of the sentence, or with ``right_only`` the
    root and the words to the right (true of every arc of KLUE-DP dev)."""
    head_P = torch.arange(positions, device=lengths_B.device)
    inside_BWP = (head_P <= lengths_B[:, None])[:, None, :].expand(-1, positions - 1, -1)
    if not right_only:
        return inside_BWP
    return inside_BWP & ((head_P > head_P[1:, None]) | (head_P == 0))


def gather_words(encoder: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """First and last sub-word of every position, side by side, (B, P, 2H)."""
    pieces_BLH = encoder(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state
    row_B1 = torch.arange(len(pieces_BLH), device=pieces_BLH.device)[:, None]
    return torch.cat([pieces_BLH[row_B1, batch["first"]], pieces_BLH[row_B1, batch["last"]]], dim=-1)


def run_lstm(
    lstm: nn.LSTM, x_BPX: Tensor, lengths_B: Tensor, start: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """States, zero after a row's length, and the last cells, (directions, B, size)."""
    packed = pack_padded_sequence(x_BPX, lengths_B.cpu(), batch_first=True, enforce_sorted=False)
    states, (_, cells) = lstm(packed, start)
    return pad_packed_sequence(states, batch_first=True, total_length=x_BPX.shape[1])[0], cells


class PlainReader(nn.Module):
    """Words in context by one BiLSTM as wide as the encoder; the part-of-speech tag of a word is optional."""

    def __init__(self, encoder: Encoder, pos_tags: int | None) -> None:
        super().__init__()
        hidden = int(encoder.config.hidden_size)
        pos = scale_size(POS, hidden) if pos_tags else 0
        self.encoder = encoder
        self.pos = nn.Embedding(pos_tags, pos) if pos_tags else None
        self.words = nn.LSTM(2 * hidden + pos, hidden, batch_first=True, bidirectional=True)
        self.dependent_width = self.head_width = 2 * hidden
        self.arc_width, self.type_width = scale_size(ARC, hidden), scale_size(TYPE, hidden)

    def forward(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Words as dependents, (B, W, 2H), and root and words as heads, (B, P, 2H)."""
        x_BPX = gather_words(self.encoder, batch)
        if self.pos is not None:
            x_BPX = torch.cat([x_BPX, self.pos(batch["pos"])], dim=-1)
        x_BPX = drop_channels(x_BPX, DROPOUT, self.training)
        states_BPH, _ = run_lstm(self.words, x_BPX, batch["lengths"] + 1)
        states_BPH = drop_channels(states_BPH, DROPOUT, self.training)
        return states_BPH[:, 1:], states_BPH


class PublishedReader(nn.Module):
    """The published network: a BiLSTM reads the heads, an LSTM that starts from its last cells reads the dependents
    (Dozat and Manning parse without one). Sizes do not follow the encoder's.

    Quirk: dropout of the tags zeroes all channels of a position's tag, elsewhere a channel of all positions.
    """

    def __init__(self, encoder: Encoder, pos_tags: int | None) -> None:
        super().__init__()
        self.encoder = encoder
        self.pos = nn.Embedding(pos_tags, POS) if pos_tags else None
        width = 2 * int(encoder.config.hidden_size) + (POS if pos_tags else 0)
        self.words = nn.LSTM(width, WORDS, batch_first=True, bidirectional=True)
        self.source, self.start = nn.Linear(2 * WORDS, WORDS), nn.Linear(2 * WORDS, WORDS)
        self.decoder = nn.LSTM(WORDS, WORDS, batch_first=True)
        self.dependent_width, self.head_width = WORDS, 2 * WORDS
        self.arc_width, self.type_width = ARC, TYPE

    def forward(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Words as dependents, (B, W, 768), and root and words as heads, (B, P, 1536)."""
        x_BPX = gather_words(self.encoder, batch)
        if self.pos is not None:
            tags_BPX = functional.dropout1d(self.pos(batch["pos"]), DROPOUT, self.training)
            x_BPX = torch.cat([x_BPX, tags_BPX], dim=-1)
        heads_BPH, cells_2BH = run_lstm(self.words, x_BPX, batch["lengths"] + 1)
        heads_BPH = drop_channels(heads_BPH, DROPOUT, self.training)
        cell_1BH = self.start(cells_2BH.transpose(0, 1).flatten(1))[None]
        source_BWH = functional.elu(self.source(heads_BPH[:, 1:]))
        words_BWH, _ = run_lstm(self.decoder, source_BWH, batch["lengths"], (cell_1BH.tanh(), cell_1BH))
        return drop_channels(words_BWH, DROPOUT, self.training), heads_BPH


class Biaffine(nn.Module):
    """K bilinear forms of a dependent and a head, with their linear terms and biases, started as published.

    One tensor (K, X + 1, Y + 1) holds a form: both sides end in a constant 1, so (x 1) W (y 1) = x U y + x u + w y + b.
    """

    def __init__(self, width: int, forms: int) -> None:
        super().__init__()
        weight_KXY = torch.zeros(forms, width + 1, width + 1)
        for rows, columns in ((slice(-1), slice(-1)), (slice(-1), -1), (-1, slice(-1))):
            block = weight_KXY[:, rows, columns]
            weight_KXY[:, rows, columns] = nn.init.xavier_uniform_(torch.empty(block.shape))
        self.weight = nn.Parameter(weight_KXY)

    def score_all(self, dependent_BWX: Tensor, head_BPX: Tensor, form: int = 0) -> Tensor:
        """One form of every dependent with every head, (B, W, P)."""
        left_BWY = _with_one(dependent_BWX) @ self.weight[form]
        return left_BWY @ _with_one(head_BPX).transpose(1, 2)

    def score_pairs(self, dependent_BWX: Tensor, head_BWX: Tensor) -> Tensor:
        """Every form of each dependent with its own head, (B, W, K)."""
        return torch.einsum("bwx,kxy,bwy->bwk", _with_one(dependent_BWX), self.weight, _with_one(head_BWX))

    def find_best(self, dependent_BWX: Tensor, head_BPX: Tensor, heads_BWC: Tensor) -> tuple[Tensor, Tensor]:
        """The highest form of every dependent with every head, (B, W, P) uint8, the first of equals, and all forms with
        the heads ``heads_BWC``, (B, W, C, K); form after form, for all at once would take (B, W, K, P) numbers."""
        best_BWP = self.score_all(dependent_BWX, head_BPX)
        types_BWP = torch.zeros_like(best_BWP, dtype=torch.uint8)
        forms = [best_BWP.gather(2, heads_BWC)]
        for form in range(1, len(self.weight)):
            scores_BWP = self.score_all(dependent_BWX, head_BPX, form)
            types_BWP[scores_BWP > best_BWP] = form
            best_BWP = torch.maximum(best_BWP, scores_BWP)
            forms.append(scores_BWP.gather(2, heads_BWC))
        return types_BWP, torch.stack(forms, dim=-1)


def _with_one(x: Tensor) -> Tensor:
    return torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)


class BiaffineParser(nn.Module):
    """Scores every possible arc and every type on it; ``predict`` leaves the search for a tree to the caller.

    Args:
        pos_tags: number of part-of-speech tags among the inputs; None: no tags.
        is_published: words are read by ``PublishedReader``.
        right_only: a head is the root or to the right of its word; else anything in the sentence, as published.
        dropout: share of channels zeroed in the arc and type spaces; published: none.
    """

    def __init__(
        self, encoder: Encoder, pos_tags: int | None, types: int, *, is_published: bool = False,
        right_only: bool = True, dropout: float = DROPOUT,
    ) -> None:  # fmt: skip
        super().__init__()
        reader = PublishedReader(encoder, pos_tags) if is_published else PlainReader(encoder, pos_tags)
        self.reader, self.right_only, self.dropout = reader, right_only, dropout
        self.head = {
            "is_published": is_published, "pos_tags": pos_tags, "types": types, "right_only": right_only,
            "dropout": dropout,
        }  # fmt: skip
        arc, type_ = reader.arc_width, reader.type_width
        self.arc_word, self.arc_head = nn.Linear(reader.dependent_width, arc), nn.Linear(reader.head_width, arc)
        self.type_word, self.type_head = nn.Linear(reader.dependent_width, type_), nn.Linear(reader.head_width, type_)
        self.arcs, self.types = Biaffine(arc, 1), Biaffine(type_, types)

    @property
    def encoder(self) -> Encoder:
        return self.reader.encoder

    def project(self, layer: nn.Linear, x: Tensor) -> Tensor:
        return drop_channels(functional.elu(layer(x)), self.dropout, self.training)

    def score_arcs(self, words_BWX: Tensor, heads_BPX: Tensor, lengths_B: Tensor) -> Tensor:
        """Log-probability of each position as the head of each word, (B, W, P)."""
        scores_BWP = self.arcs.score_all(self.project(self.arc_word, words_BWX), self.project(self.arc_head, heads_BPX))
        allowed_BWP = possible_heads(lengths_B, heads_BPX.shape[1], self.right_only)
        return scores_BWP.float().masked_fill(~allowed_BWP, IMPOSSIBLE).log_softmax(dim=-1)

    def forward(self, **batch: Tensor) -> dict[str, Tensor]:
        """Loss: arc and type cross-entropy a word, types on the gold heads.

        Batch: ``input_ids``, ``attention_mask`` (B, L); ``first``, ``last`` (sub-words of a position), ``pos`` (B, P);
        ``lengths`` (B) in words, at least 1; ``heads``, ``types`` (B, W), ``IGNORED`` where there is none.
        """
        words_BWX, heads_BPX = self.reader(batch)
        arcs_BWP = self.score_arcs(words_BWX, heads_BPX, batch["lengths"])
        arc_loss = functional.nll_loss(arcs_BWP.flatten(0, 1), batch["heads"].flatten(), ignore_index=IGNORED)
        head_BPT = self.project(self.type_head, heads_BPX)
        gold_BWT = head_BPT.gather(1, batch["heads"].clamp(min=0)[..., None].expand(-1, -1, head_BPT.shape[-1]))
        types_BWK = self.types.score_pairs(self.project(self.type_word, words_BWX), gold_BWT)
        type_loss = functional.cross_entropy(types_BWK.flatten(0, 1), batch["types"].flatten(), ignore_index=IGNORED)
        return {"loss": arc_loss + type_loss}

    @torch.no_grad()
    def predict(self, **batch: Tensor) -> list[dict[str, Any]]:
        """For each sentence of n words ``arcs``, (n, n + 1) float32 log-probabilities, and ``types``, (n, n + 1)
        uint8: the best type of each arc; for the likeliest heads of each word, ``heads`` (n, C) int64, the scores of
        all types, ``relations`` (n, C, K) float32."""
        words_BWX, heads_BPX = self.reader(batch)
        arcs_BWP = self.score_arcs(words_BWX, heads_BPX, batch["lengths"])
        heads_BWC = arcs_BWP.topk(min(LIKELIEST, arcs_BWP.shape[2]), dim=-1).indices
        sides = self.project(self.type_word, words_BWX), self.project(self.type_head, heads_BPX)
        types_BWP, relations_BWCK = self.types.find_best(*sides, heads_BWC)
        raws = (arcs_BWP, types_BWP, heads_BWC, relations_BWCK.float())
        return [
            {
                "arcs": arcs[:n, : n + 1].copy(), "types": types[:n, : n + 1].copy(),
                "heads": heads[:n].copy(), "relations": relations[:n].copy(),
            }
            for arcs, types, heads, relations, n in zip(
                *(raw.cpu().numpy() for raw in raws), batch["lengths"].tolist(), strict=True
            )
        ]  # fmt: skip
