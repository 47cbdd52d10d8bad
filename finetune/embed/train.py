"""Training of an embedding model: contrastive on pairs and triplets, then on graded pairs.

Losses are those of sentence-transformers: multiple negatives ranking (each text is compared with all others of its
batch, arXiv 1705.00652), cached (GradCache, arXiv 2101.06983) if a batch is encoded in parts, and CoSENT for grades;
of several widths at once (Matryoshka, arXiv 2205.13147) if ``dimensions`` names some.
All batches are drawn before the first step, so a killed training continues at a step with the same batches; on a CPU
the weights are equal bit for bit.
"""

from __future__ import annotations

import io
import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim.lr_scheduler import LambdaLR

from corpus.documents.accelerator import PrecisionName
from corpus.documents.atomic_files import atomic_write
from finetune.embed.config import EmbedConfig
from finetune.embed.data import Item
from finetune.embed.embedder import EmbeddingNet, tokenize
from finetune.examples import Tokenizer, pad_inputs
from finetune.train.batched_prediction import autocast, to_tensors
from finetune.train.trainer import NotFinite, order_by_length

log = logging.getLogger(__name__)

CHECKPOINT_NAME = "checkpoint.pt"
CHECKPOINT_STEPS = 100
WARMUP_SHARE = 0.1
WEIGHT_DECAY = 0.01
MAX_NORM = 1.0


class Batch(NamedTuple):
    """Rows of one step; ``stage`` 0: pairs or triplets, 1: graded pairs."""

    stage: int
    rows: tuple[int, ...]


def draw_batches(items: Sequence[Item], lengths: Sequence[int], config: EmbedConfig, seed: int) -> list[Batch]:
    """All batches in order: those of each epoch shuffled, texts of similar length and equal form together."""
    rng, batches = np.random.default_rng(seed), list[Batch]()
    plain, graded = ([item for item in items if (item.score is None) == is_plain] for is_plain in (True, False))
    number = {item: i for i, item in enumerate(items)}
    forms = [[item for item in plain if len(item.texts) == count] for count in (2, 3, 4)]
    size = config.batch_size
    for stage, groups, epochs in ((0, forms, config.epochs), (1, [graded], config.graded_epochs)):
        for _ in range(epochs):
            drawn = []
            for group in filter(None, groups):
                rows = np.array([number[item] for item in group])
                ordered = rows[order_by_length(np.array([lengths[i] for i in rows]), size, rng)].tolist()
                parts: Iterable[list[int]] = (ordered[i : i + size] for i in range(0, len(ordered), size))
                parts = parts if stage else _without_repeats(ordered, items, size)
                drawn += [Batch(stage, tuple(part)) for part in parts]
            drawn = [batch for batch in drawn if len(batch.rows) > 1]  # a single pair has no negatives
            batches += [drawn[i] for i in rng.permutation(len(drawn))]
    return batches


def _without_repeats(rows: Sequence[int], items: Sequence[Item], size: int) -> Iterator[list[int]]:
    """Batches of rows in order; a row with a text of the open batch waits for the next one, because every text of a
    batch is a wrong answer to the others: two questions about one passage."""
    left = deque(rows)
    while left:
        batch, texts, waiting = list[int](), set[str](), list[int]()
        while left and len(batch) < size:
            row = left.popleft()
            if texts.isdisjoint(items[row].texts):
                batch.append(row)
                texts.update(items[row].texts)
            else:
                waiting.append(row)
        yield batch
        left.extendleft(reversed(waiting))


class Losses:
    """The loss of each stage on a network."""

    def __init__(self, net: EmbeddingNet, config: EmbedConfig, parts: int) -> None:
        from sentence_transformers.sentence_transformer import losses

        model: Any = net
        micro = config.micro_batch or (config.batch_size if parts == 1 else max(1, config.batch_size // parts))
        ranking: nn.Module = losses.MultipleNegativesRankingLoss(model)
        if micro < config.batch_size:
            ranking = losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=micro)
        self.by_stage: list[nn.Module] = [ranking, losses.CoSENTLoss(model)]
        if config.dimensions:
            widths = [net.get_embedding_dimension(), *config.dimensions]
            self.by_stage = [losses.MatryoshkaLoss(model, loss, widths) for loss in self.by_stage]

    def __call__(self, batch: Batch, items: Sequence[Item], columns: list[dict[str, Tensor]]) -> Tensor:
        scores = None
        if batch.stage:
            scores = torch.tensor([items[i].score for i in batch.rows], device=columns[0]["input_ids"].device)
        loss: Tensor = self.by_stage[batch.stage](columns, scores)
        return loss


def train(
    net: EmbeddingNet, tokenizer: Tokenizer, items: Sequence[Item], config: EmbedConfig, seed: int, folder: Path, *,
    precision: PrecisionName = "fp32", parts: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """Train ``net`` in place, from the checkpoint in ``folder`` if there is one; returns steps and mean losses.

    The checkpoint stays; the caller deletes it when the model is saved. ``NotFinite``: the loss became infinite or nan.
    """
    texts = list(dict.fromkeys(text for item in items for text in item.texts))
    features = dict(zip(texts, tokenize(texts, tokenizer, config.max_tokens), strict=True))
    lengths = [max(len(features[text]["input_ids"]) for text in item.texts) for item in items]
    batches = draw_batches(items, lengths, config, seed)
    device, pad_id = next(net.parameters()).device, int(tokenizer.pad_token_id or 0)
    optimizer = torch.optim.AdamW(_groups(net), lr=config.lr, fused=device.type in ("cpu", "cuda"))
    schedule = LambdaLR(optimizer, _rate_of(batches))
    state = _State(folder / CHECKPOINT_NAME, net, optimizer, schedule)
    compute, begin = Losses(net, config, parts), state.restore()
    net.train()
    for step, batch in enumerate(batches[begin:], begin):
        columns = [
            to_tensors(pad_inputs([features[items[i].texts[side]] for i in batch.rows], pad_id), device)
            for side in range(len(items[batch.rows[0]].texts))
        ]
        with autocast(device, precision):
            loss = compute(batch, items, columns)
        loss.backward()
        clip_grad_norm_(net.parameters(), MAX_NORM)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        state.add(float(loss.detach()), step)
        if (step + 1) % CHECKPOINT_STEPS == 0:
            log.info("step %d/%d loss %.3f", step + 1, len(batches), state.losses[-1])
            state.save(step + 1)
    stages = np.array([batch.stage for batch in batches])
    means = [float(np.mean(np.array(state.losses)[stages == stage])) for stage in sorted(set(stages.tolist()))]
    return {"steps": len(batches), "losses": [round(mean, 5) for mean in means]}


def _groups(net: nn.Module) -> list[dict[str, Any]]:
    """Matrices decay, biases and norms do not."""
    weights = [weight for weight in net.parameters() if weight.requires_grad]
    matrices, vectors = [w for w in weights if w.ndim > 1], [w for w in weights if w.ndim < 2]
    return [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}]


def _rate_of(batches: Sequence[Batch]) -> Callable[[int], float]:
    """Warmup and linear decay, once for each stage."""
    counts = [sum(batch.stage == stage for batch in batches) for stage in (0, 1)]

    def rate(step: int) -> float:
        stage = int(step >= counts[0])
        steps, place = max(1, counts[stage]), step - stage * counts[0]
        warmup = max(1, math.ceil(WARMUP_SHARE * steps))
        return min((place + 1) / warmup, max(0.0, (steps - place) / max(1, steps - warmup)))

    return rate


class _State:
    """The state of a training, written atomically; ``losses`` of all steps so far."""

    def __init__(self, path: Path, net: nn.Module, optimizer: Any, schedule: Any) -> None:
        self.path, self.net, self.optimizer, self.schedule = path, net, optimizer, schedule
        self.losses: list[float] = []

    def add(self, loss: float, step: int) -> None:
        if not math.isfinite(loss):
            raise NotFinite(f"the loss of step {step + 1} is not a finite number; lower embed.lr")
        self.losses.append(loss)

    def save(self, step: int) -> None:
        buffer = io.BytesIO()
        torch.save(self._parts() | {"step": step, "losses": self.losses, "rng": torch.get_rng_state()}, buffer)
        atomic_write(self.path, buffer.getvalue())

    def _parts(self) -> dict[str, Any]:
        named = {"net": self.net, "optimizer": self.optimizer, "schedule": self.schedule}
        return {name: part.state_dict() for name, part in named.items()}

    def restore(self) -> int:
        """The step to begin with."""
        if not self.path.is_file():
            return 0
        content = torch.load(self.path, map_location="cpu", weights_only=True)
        self.net.load_state_dict(content["net"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.schedule.load_state_dict(content["schedule"])
        torch.set_rng_state(content["rng"])
        self.losses = list(content["losses"])
        log.info("resuming at step %d", content["step"])
        return int(content["step"])
