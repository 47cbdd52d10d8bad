"""Memory is counted before the first step, and where it does not suffice one sentence says what to set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from corpus.documents.errors import BadInput
from pretrain.engine.memory import describe_memory, explained_memory, needed_memory, out_of_memory
from pretrain.engine.plain import PlainEngine
from pretrain.engine.world import World

from ..runs import train

CPU = torch.device("cpu")


def test_weights_and_optimizer_take_sixteen_bytes_a_parameter_less_what_the_engine_cuts(tiny) -> None:
    def of_model(**changes: Any) -> list[float]:
        return [size / 4e6 for size in needed_memory(tiny(**changes), 100, 1_000_000, 1, 4)[:3]]

    assert of_model() == of_model(engine="ddp", zero_stage=3) == [1, 1, 2]
    assert of_model(engine="deepspeed", zero_stage=1) == [1, 1, 0.5]
    assert of_model(engine="deepspeed", zero_stage=2) == [1, 0.25, 0.5]
    assert of_model(engine="fsdp") == [0.25, 0.25, 0.5]


def test_the_rest_grows_with_the_sequences_and_the_longest_rows(tiny) -> None:
    few, many = (needed_memory(tiny(), 100, 1_000_000, n, 1) for n in (2, 6))
    assert many.activations == 3 * few.activations and many.scores == pytest.approx(3 * few.scores)
    assert few.activations == 2 * 32 * 16 * 1 * 68 and few.scores == pytest.approx(2 * 32 * 0.15 * 100 * 8)
    later = needed_memory(tiny(short_length=8), 100, 1_000_000, 2, 1)
    assert later == few
    assert "memory for 2 sequences at once: about 0.01 GiB (weights 0.00" in describe_memory(few, 2, CPU)


@pytest.mark.parametrize(
    ("sequences", "size", "changes", "advice"),
    [
        (12, 1, {}, "set pretrain.engine.micro_batch=6; the batches of a step stay the same"),
        (1, 4, {"engine": "ddp"}, "set pretrain.engine.name=fsdp"),
        (1, 4, {"engine": "deepspeed", "zero_stage": 1}, "set pretrain.engine.zero_stage=2"),
        (1, 4, {"engine": "deepspeed", "zero_stage": 3}, "use more devices"),
        (1, 1, {}, "use more devices, lower pretrain.rows.sequence_length, or take a smaller model"),
    ],
)
def test_each_way_to_run_out_of_memory_has_its_advice(tiny, sequences, size, changes, advice) -> None:
    said = out_of_memory(tiny(**changes), World(0, size, CPU), sequences)
    assert said.startswith(f"out of memory: a micro-batch of {sequences} x 32 tokens does not fit the ")
    assert advice in said


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried to"),
        MemoryError("Unable to allocate 9.31 GiB for an array"),
    ],
)
def test_training_that_runs_out_of_memory_ends_with_one_sentence(
    made: Path, tmp_path: Path, tiny, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(PlainEngine, "backward", fail)
    with pytest.raises(BadInput, match=r"a micro-batch of 4 x 32 .*; set pretrain\.engine\.micro_batch=2; the batches"):
        train(tiny(), made, tmp_path)


def test_errors_of_ours_stay_errors(tiny) -> None:
    with pytest.raises(RuntimeError, match="size mismatch"), explained_memory(tiny(), World(0, 1, CPU), 4):
        raise RuntimeError("size mismatch")
