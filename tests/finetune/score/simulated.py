"""Predictions of models whose true quality is known: examples of random difficulty, crossed with seeds of random luck.

chance that seed s of a model is right on example n grows with
quality + luck of s + easiness of n + what the model likes about n + what s does on n
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from finetune.examples import Row

LABELS = ("정치", "경제", "사회", "생활문화", "세계", "IT과학", "스포츠")
SPANS = ((0, "PS", 3), (5, "LC", 2), (9, "OG", 4))  # where each sentence of 14 characters has an entity
Seeds = dict[int, list[Row]]


class Benchmark:
    """One benchmark file; ``model`` is trained with some seeds and predicts it."""

    def __init__(self, rng: np.random.Generator, examples: int) -> None:
        self.rng, self.examples = rng, examples
        self.easiness_N = rng.normal(size=examples)
        self.gold_N = rng.integers(len(LABELS), size=examples)
        self.similarity_N = rng.uniform(0, 5, size=examples)

    def latent(self, seeds: int, quality: float, luck: float) -> NDArray[np.float64]:
        """(S, N); above 0 a seed is right."""
        likes_N = 0.5 * self.rng.normal(size=self.examples)
        luck_S1, noise_SN = self.rng.normal(size=(seeds, 1)), self.rng.normal(size=(seeds, self.examples))
        return quality + luck * luck_S1 + self.easiness_N + likes_N + noise_SN

    def labels(self, seeds: int, quality: float = 0.8, luck: float = 0.1, first: int = 1) -> Seeds:
        """YNAT."""
        found: Seeds = {}
        for seed, latent_N in enumerate(self.latent(seeds, quality, luck), start=first):
            wrong_N = (self.gold_N + self.rng.integers(1, len(LABELS), size=self.examples)) % len(LABELS)
            pairs = zip(self.gold_N, np.where(latent_N > 0, self.gold_N, wrong_N), strict=True)
            found[seed] = [Row(str(n), LABELS[g], LABELS[p]) for n, (g, p) in enumerate(pairs)]
        return found

    def entities(self, seeds: int, quality: float = 0.8, luck: float = 0.1, first: int = 1) -> Seeds:
        """KLUE-NER; a sentence that is hard for one entity is hard for all."""
        found: Seeds = {}
        for seed, latent_N in enumerate(self.latent(seeds, quality, luck), start=first):
            right_NE = latent_N[:, None] + self.rng.normal(size=(self.examples, len(SPANS))) > 0
            found[seed] = [Row(str(n), tags(True, True, True), tags(*right)) for n, right in enumerate(right_NE)]
        return found

    def similarities(self, seeds: int, quality: float = 0.8, luck: float = 0.1, first: int = 1) -> Seeds:
        """KLUE-STS: gold and an error, whose size grows with the difficulty."""
        found: Seeds = {}
        for seed, latent_N in enumerate(self.latent(seeds, quality, luck), start=first):
            predicted = self.similarity_N + np.exp(-latent_N / 3) * self.rng.normal(size=self.examples)
            pairs = zip(self.similarity_N.tolist(), predicted.tolist(), strict=True)
            found[seed] = [Row(str(n), *pair) for n, pair in enumerate(pairs)]
        return found


def tags(*found: bool) -> list[str]:
    """The tags of a sentence with those of its entities that were found."""
    sentence = ["O"] * 14
    for is_found, (start, kind, length) in zip(found, SPANS, strict=True):
        if is_found:
            sentence[start : start + length] = [f"B-{kind}", *[f"I-{kind}"] * (length - 1)]
    return sentence


MAKERS: dict[str, Callable[..., Seeds]] = {
    "ynat": Benchmark.labels, "klue-ner": Benchmark.entities, "klue-sts": Benchmark.similarities,
}  # fmt: skip
