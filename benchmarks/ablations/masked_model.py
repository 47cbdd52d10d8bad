"""Probabilities of pieces at masked places of a row, from a masked language model.

Shapes: N rows with one masked place of interest each, L positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from corpus.documents.model_files import quiet_transformers
from pretrain.model.families import family_of, longest_input
from pretrain.model.last_layer import pick

ROWS_AT_ONCE = 256

# maps rows of ids and a place in each row to log-probabilities (nats) of all pieces there, (N, V)
ScorePieces = Callable[[Sequence[Sequence[int]], Sequence[int]], Tensor]


class Question(NamedTuple):
    """The probability of ``piece`` at ``place`` of ``row``."""

    row: Sequence[int]
    place: int
    piece: int


class MaskedModel:
    """A model folder with a masked language model; a ``ScorePieces``."""

    def __init__(self, folder: Path, device: torch.device) -> None:
        from transformers import AutoModelForMaskedLM, AutoTokenizer

        with quiet_transformers():
            self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            network: Any = AutoModelForMaskedLM.from_pretrained(folder, local_files_only=True)
        self._network = network.to(device).eval()
        self._head = family_of(self._network.config).head(self._network)
        self._device = device

    @torch.no_grad()
    def __call__(self, rows: Sequence[Sequence[int]], places: Sequence[int]) -> Tensor:
        ids_NL = torch.full((len(rows), max(map(len, rows))), self.tokenizer.pad_token_id)
        is_text_NL = torch.zeros_like(ids_NL)
        for number, row in enumerate(rows):
            ids_NL[number, : len(row)] = torch.tensor(row)
            is_text_NL[number, : len(row)] = 1
        inputs = {"input_ids": ids_NL.to(self._device), "attention_mask": is_text_NL.to(self._device)}
        states = self._network.base_model(**inputs).last_hidden_state
        picked = pick(states, torch.tensor(places, device=self._device)[:, None])[:, 0]
        log_p_NV: Tensor = self._head(picked).float().log_softmax(-1).cpu()
        return log_p_NV

    @property
    def mask_id(self) -> int:
        return int(self.tokenizer.mask_token_id)

    @property
    def max_length(self) -> int:
        """Most pieces of an input."""
        return longest_input(self._network.config)


def score_questions(score: ScorePieces, questions: Sequence[Question]) -> list[float]:
    """The log-probability (nats) of each question; rows of similar length form a batch."""
    answers = [0.0] * len(questions)
    order = sorted(range(len(questions)), key=lambda number: len(questions[number].row))
    for begin in range(0, len(order), ROWS_AT_ONCE):
        part = order[begin : begin + ROWS_AT_ONCE]
        asked = [questions[number] for number in part]
        scores_NV = score([one.row for one in asked], [one.place for one in asked])
        pieces_N1 = torch.tensor([one.piece for one in asked])[:, None]
        for number, nats in zip(part, scores_NV.gather(1, pieces_N1)[:, 0].tolist(), strict=True):
            answers[number] = nats
    return answers


def mask_row(ids: Sequence[int], places: Sequence[int], mask_id: int) -> list[int]:
    """The row with [MASK] at these places."""
    row = list(ids)
    for place in places:
        row[place] = mask_id
    return row
