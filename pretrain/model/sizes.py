"""How many parameters a fresh model has, without building it and without torch.

The tests hold it to the stock classes of transformers, number by number.
"""

from __future__ import annotations

from pretrain.config import ModelConfig


def count_parameters(model: ModelConfig, vocab_size: int) -> int:
    """Parameters of the network and its heads; the head's matrix is that of the piece embeddings.

    RoBERTa's two positions before the first token are there because [PAD] is piece 1, as in the released models.
    """
    hidden, inner = model.hidden, model.intermediate
    pieces = vocab_size * hidden
    head = hidden**2 + 3 * hidden + vocab_size  # dense, LayerNorm, and a bias for each piece
    if model.architecture == "modernbert":  # no biases but that of the pieces; norms scale only, layer 0 has one
        layers = model.layers * (4 * hidden**2 + 3 * hidden * inner + 2 * hidden) - hidden
        return pieces + layers + 2 * hidden + head - 2 * hidden
    layers = model.layers * (4 * hidden**2 + 2 * hidden * inner + 9 * hidden + inner)
    if model.architecture == "gpt":
        return pieces + model.positions * hidden + layers + 2 * hidden
    more = 4 if model.architecture == "roberta" else 3  # RoBERTa: two positions and a type more, BERT: two types
    embeddings = pieces + (model.positions + more + 1) * hidden  # and a LayerNorm
    pairs = hidden**2 + 3 * hidden + 2 if model.nsp else 0  # pooler and the scores of two classes
    return embeddings + layers + head + pairs
