"""Parameter counts of new models, computed without building them and without torch."""

from __future__ import annotations

from pretrain.config import ModelConfig

# ModernBERT as published (arXiv 2412.13663): every third layer is global, the others see 128 tokens, half per side
GLOBAL_EVERY, LOCAL_WINDOW = 3, 128
SHORT_ROW = 128  # tokens up to which plain matrix products are faster on CPUs than torch's blockwise attention
MAX_CAUSAL_SCORES = 1 << 27  # scores in memory at once if every token predicts: half a gigabyte in float32


def count_parameters(model: ModelConfig, vocab_size: int) -> int:
    """Parameters of the network and its heads; the head shares its matrix with the embeddings."""
    hidden, inner = model.hidden, model.intermediate
    pieces = vocab_size * hidden
    head = hidden**2 + 3 * hidden + vocab_size  # dense, LayerNorm, and a bias for each piece
    if model.architecture == "modernbert":  # one bias, for the pieces; norms have no shift, and layer 0 has one norm
        layers = model.layers * (4 * hidden**2 + 3 * hidden * inner + 2 * hidden) - hidden
        return pieces + layers + 2 * hidden + head - 2 * hidden
    layers = model.layers * (4 * hidden**2 + 2 * hidden * inner + 9 * hidden + inner)
    if model.architecture == "gpt":
        return pieces + model.positions * hidden + layers + 2 * hidden
    more = 4 if model.architecture == "roberta" else 3  # RoBERTa: two positions and one type; BERT: two types
    embeddings = pieces + (model.positions + more + 1) * hidden  # and a LayerNorm
    pairs = hidden**2 + 3 * hidden + 2 if model.nsp else 0  # pooler and the scores of two classes
    return embeddings + layers + head + pairs
