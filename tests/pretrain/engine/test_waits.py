"""No step asks the device for a value: forward, backward, update and the meter's sums, in every engine and mode.

On a CPU nothing would be seen to wait, so the operations that would are forbidden: by name as Python calls them, and
below, where torch's own code does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from pretrain.batching.batches import Batch, TrainingBatches
from pretrain.batching.held_out_split import split_rows
from pretrain.batching.masking import describe_pieces
from pretrain.config import PretrainConfig
from pretrain.engine.start import choose_engine, ready_for_engine, start_engine
from pretrain.engine.world import World
from pretrain.metrics.meter import Meter
from pretrain.model import isolation
from pretrain.model.isolation import isolate_documents
from pretrain.model.loss import PretrainingModule, mean_loss
from pretrain.model.networks import build_network
from pretrain.pack.store import open_store, read_pieces

ALONE = World(0, 1, torch.device("cpu"))
CALLED = ("item", "tolist", "cpu", "numpy", "nonzero", "equal", "unique", "masked_select", "__array__")
CALLED += ("__bool__", "__int__", "__float__", "__index__", "__contains__")
BELOW = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "_unique2", "unique_dim", "allclose")


class WaitError(AssertionError):
    """Something waits for the device."""


class _NotCalled(TorchFunctionMode):
    forbidden = frozenset(getattr(Tensor, name) for name in CALLED if hasattr(Tensor, name)) | {torch.nonzero}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in self.forbidden:
            raise WaitError(func)
        return func(*args, **(kwargs or {}))


class _NotBelow(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        chosen = args[1] if name in ("index", "index_put", "index_put_", "_index_put_impl_") else ()
        if name in BELOW or any(isinstance(t, Tensor) and t.dtype in (torch.bool, torch.uint8) for t in chosen):
            raise WaitError(func)
        return func(*args, **(kwargs or {}))


@contextmanager
def no_waits() -> Iterator[None]:
    with _NotCalled(), _NotBelow():
        yield


ENGINES = [{"engine": name} for name in ("plain", "ddp")]
ENGINES += [{"engine": "deepspeed", "zero_stage": stage} for stage in range(3)]
MODES: dict[str, dict[str, Any]] = {
    "blocks": {},
    "documents": {"packing": "documents"},
    "pairs": {"architecture": "bert", "nsp": True},
    "packed pairs": {"architecture": "bert", "nsp": True, "packing": "documents"},
    "modernbert": {"architecture": "modernbert", "layers": 2},
    "modernbert documents": {"architecture": "modernbert", "layers": 2, "packing": "documents"},
    "gpt": {"architecture": "gpt"},
    "gpt documents": {"architecture": "gpt", "packing": "documents"},
    "short first": {"phases": [{"until": 0.9, "sequence_length": 16}, {}]},
}


def as_on_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPUs attend segment by segment, and ask for their lengths."""
    monkeypatch.setattr(isolation, "_attend_one_by_one", isolation._attend_by_mask)


def steps_of(config: PretrainConfig, made: Path) -> tuple[Any, list[list[Batch]]]:
    store = open_store(made / "tokens", made / "tokenizer")
    network = build_network(config, store.meta["vocab_size"], store.meta["special_ids"])
    if config.rows.packing == "documents":
        isolate_documents(network)
    pieces = describe_pieces(read_pieces(made / "tokenizer"), store.meta["special_ids"])
    batches = TrainingBatches(split_rows(store, config), pieces, config, 0, 1, config.engine.micro_batch)
    return network, [batches.of_step(step) for step in (1, 2)]


def train_without_waits(config: PretrainConfig, made: Path, out: Path) -> None:
    config = config.replaced("engine", name=choose_engine(config, ALONE, 0))
    network, steps = steps_of(config, made)
    meter = Meter(out / "metrics.jsonl", config, ALONE, (0, None), lambda step: 1.0, lambda step: [])
    with ready_for_engine(config, ALONE):
        engine = start_engine(config, PretrainingModule(network), ALONE)
        for step, batches in enumerate(steps, 1):
            counts = [(batch.predictions, batch.tokens, batch.others) for batch in batches]
            predictions, _, others = (sum(column) for column in zip(*counts, strict=True))
            with no_waits():
                meter.record_point()
                for batch, count in zip(batches, counts, strict=True):
                    sums = engine(*batch)
                    if batch is batches[-1]:
                        meter.record_point()
                    engine.backward(mean_loss(sums, predictions, others))
                    meter.add(sums, *count)
                meter.end_step(step, 1e-3, engine.update(1e-3), 0.0)
        meter.write(2)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: "-".join(map(str, engine.values())))
def test_no_engine_waits(made: Path, tmp_path: Path, tiny, engine: dict) -> None:
    train_without_waits(tiny(clip=0.5, precision="bf16", **engine), made, tmp_path)


@pytest.mark.parametrize("mode", MODES)
def test_no_mode_waits(made: Path, tmp_path: Path, tiny, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    as_on_gpus(monkeypatch)
    train_without_waits(tiny(**MODES[mode]), made, tmp_path)


def test_a_wait_would_be_seen() -> None:
    value = torch.ones(3, requires_grad=True)
    backward = value.sum()
    backward.register_hook(lambda gradient: print(gradient.item()))
    waits = (
        *(value.sum().item, value.tolist, value.cpu, value.nonzero, backward.backward),
        *(lambda: bool(value.sum()), lambda: value[value > 0], lambda: torch.nn.functional.one_hot(value.long())),
    )
    for wait in waits:
        with pytest.raises(WaitError), no_waits():
            wait()


@pytest.mark.matrix
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: "-".join(map(str, engine.values())))
def test_no_engine_waits_in_any_mode(
    made: Path, tmp_path: Path, tiny, monkeypatch: pytest.MonkeyPatch, engine: dict, mode: str
) -> None:
    as_on_gpus(monkeypatch)
    for precision in ("fp32", "bf16"):
        train_without_waits(tiny(precision=precision, **engine, **MODES[mode]), made, tmp_path)
