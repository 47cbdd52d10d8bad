"""Loss and accuracy on held-out text (``pretrain.batching.held_out_split``), in total and by source.

A small source gets more rows than its share, and its rows have less weight in the total. The masks are always those of
epoch 0, so two measurements differ by the model only.

Shapes: B sequences, S segments of a sequence, K measured sources, C sums (``_COLUMNS``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from corpus.documents.errors import BadInput
from pretrain.batching.batches import Batch, make_batch
from pretrain.batching.masking import IGNORED, Pieces
from pretrain.batching.sources import Numbers, RowSource
from pretrain.config import PretrainConfig
from pretrain.engine.start import Engine
from pretrain.engine.world import World, widest_float
from pretrain.model.loss import Sums
from pretrain.rng import derive_key, permute

MAX_SOURCES = 16  # the largest sources have their own figures, all others share one set
OTHERS = "all other sources"
MIN_ROWS = 16  # every source gets this many before any gets more: about 1,200 predictions in rows of 512
# counts of rows, masked pieces, and next tokens or pairs; then sums
_COLUMNS = ("rows", "predictions", "others", *Sums._fields)


class Chosen(NamedTuple):
    """The measured rows of one source."""

    source: int  # -1: all sources that are not among the largest
    rows_B: Numbers  # ascending
    weight: float  # held-out rows of the source per measured row


def measure(
    engine: Engine, source: RowSource, source_names: list[str], pieces: Pieces, config: PretrainConfig, world: World,
    micro_batch: int, sign: Callable[[], None] = lambda: None,
) -> dict[str, Any]:  # fmt: skip
    """Figures on held-out rows, without dropout, equal for any number of processes; all processes must call it.

    Losses are in nats, accuracies 0..1; "sources" has the same figures by source. ``sign`` is called regularly, for the
    watchdog. BadInput: there is nothing to predict.
    """
    chosen = choose_rows(source, config)
    sums_KC = torch.zeros(len(chosen), len(_COLUMNS), dtype=widest_float(world.device), device=world.device)
    was_training = engine.module.training
    engine.module.eval()
    try:
        with torch.no_grad():
            for place, rows_B, count in _parts_of_rank(chosen, micro_batch, world):
                batch = _batch(source, rows_B, count, pieces, config)
                counts_3 = torch.tensor([count, batch.predictions, batch.others], dtype=widest_float(world.device))
                sums_KC[place, :3] += counts_3.to(world.device, non_blocking=True)
                sums_KC[place, 3:] += torch.stack([*engine(*batch.to(world.device))])
                sign()
    finally:
        engine.module.train(was_training)
    sums_KC = world.total(sums_KC).cpu()
    weights_K = torch.tensor([part.weight for part in chosen], dtype=torch.float64)
    overall = _figures((weights_K[:, None] * sums_KC).sum(0), config)
    figures = [_figures(sums_C, config) for sums_C in sums_KC]
    overall |= {name: sum(part[name] for part in figures) for name in ("rows", "predictions")}
    if not overall["predictions"]:
        raise BadInput(
            f"no word of {overall['rows']} held-out rows could be masked; raise pretrain.rows.held_out_share, or give "
            "text that the tokenizer can encode"
        )
    names = [OTHERS if part.source < 0 else source_names[part.source] for part in chosen]
    return overall | {"sources": dict(zip(names, figures, strict=True))}


def choose_rows(source: RowSource, config: PretrainConfig) -> list[Chosen]:
    """The held-out rows that are measured: ``config.watch.measure_rows``, or all if there are fewer; always the same.

    Sources beyond the ``MAX_SOURCES`` largest count as one. First, each source gets up to ``MIN_ROWS`` random rows, in
    turn; after that, the same share of the rows of each source is chosen.
    """
    total = source.count(0)
    if not total:
        raise BadInput("the held-out part of the corpus has no rows; raise pretrain.rows.held_out_share")
    rows = permute(np.arange(total), total, derive_key(config.seed, "measured rows"))
    numbers, sources, sizes = _largest_sources(source.sources(0, rows))
    by_source = np.argsort(sources, kind="stable")
    turns = np.empty(total)  # index of the row within its source: 0, 1, 2, …
    turns[by_source] = np.arange(total) - (np.cumsum(sizes) - sizes)[sources[by_source]]
    when = np.where(turns < MIN_ROWS, turns - MIN_ROWS, turns / sizes[sources])
    first = np.argsort(when, kind="stable")[: config.watch.measure_rows]
    chosen = []
    for place in np.unique(sources[first]).tolist():
        rows_B = np.sort(rows[first[sources[first] == place]])
        chosen.append(Chosen(numbers[place], rows_B, float(sizes[place]) / len(rows_B)))
    return chosen


def _largest_sources(sources_B: Numbers) -> tuple[list[int], Numbers, Numbers]:
    """Numbers of the largest sources, the index among them of each row, and the number of rows of each."""
    sources, sizes = np.unique(sources_B, return_counts=True)
    largest = np.sort(np.argsort(-sizes, kind="stable")[:MAX_SOURCES])
    places = np.full(int(sources[-1]) + 1, len(largest))
    places[sources[largest]] = np.arange(len(largest))
    return [*sources[largest].tolist(), -1], places[sources_B], np.bincount(places[sources_B])


def _parts_of_rank(chosen: list[Chosen], micro_batch: int, world: World) -> Iterator[tuple[int, Numbers, int]]:
    """Index of a source, some of its rows, and how many of them count.

    ZeRO-3 needs all processes in every forward pass, and a compiled model needs one shape; so ranks have equally many
    parts of one size, padded with rows that do not count.
    """
    size = min(micro_batch, max(len(part.rows_B) for part in chosen))
    filler = np.full(size, chosen[0].rows_B[0])
    parts = []
    for place, part in enumerate(chosen):
        for begin in range(0, len(part.rows_B), size):
            rows_B = part.rows_B[begin : begin + size]
            parts.append((place, np.append(rows_B, filler[len(rows_B) :]), len(rows_B)))
    parts += [(0, filler, 0)] * (-len(parts) % world.size)
    yield from parts[world.rank :: world.size]


def _batch(source: RowSource, rows_B: Numbers, count: int, pieces: Pieces, config: PretrainConfig) -> Batch:
    """The rows as a batch, with targets only in the first ``count`` rows."""
    rows = source.gather(np.zeros_like(rows_B), rows_B)
    fills_B = np.arange(len(rows_B)) >= count
    if rows.is_random_BS is not None:
        rows = rows._replace(is_random_BS=np.where(fills_B[:, None], IGNORED, rows.is_random_BS))
    batch = make_batch(rows, np.zeros_like(rows_B), pieces, config)
    batch.targets_BM[torch.from_numpy(fills_B)] = IGNORED
    return batch


def _figures(sums_C: Tensor, config: PretrainConfig) -> dict[str, Any]:
    sums = dict(zip(_COLUMNS, sums_C, strict=True))
    predictions = sums["others" if config.is_causal else "predictions"]
    figures: dict[str, Any] = {"rows": int(sums["rows"]), "predictions": int(predictions)}
    if sums["predictions"]:
        figures["mlm_loss"] = (sums["mlm_loss"] / sums["predictions"]).item()
        figures["masked_accuracy"] = (sums["mlm_hits"] / sums["predictions"]).item()
    if config.model.nsp:
        figures["nsp_loss"] = (sums["other_loss"] / sums["rows"]).item()
        figures["nsp_accuracy"] = (sums["other_hits"] / sums["rows"]).item()
    if config.is_causal:
        loss = sums["other_loss"] / sums["others"]
        figures |= {"causal_loss": loss.item(), "causal_accuracy": (sums["other_hits"] / sums["others"]).item()}
        figures["perplexity"] = loss.exp().item()
    return figures
