"""Dry steps find how many sequences a device takes, and change nothing of the run."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from corpus.documents.errors import BadInput
from pretrain.batching.batches import Batch
from pretrain.engine import auto_settings as module
from pretrain.engine.auto_settings import best_size, sizes_to_try, trial, with_device_settings
from pretrain.engine.memory import is_out_of_memory
from pretrain.engine.world import World
from pretrain.model.networks import build_network

GPU = World(0, 1, torch.device("cuda", 0))
SPECIAL_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
MACHINE = {"device": "NVIDIA H200", "processes": 1, "precision": "fp32"}


def batch_of(size: int) -> Batch:
    ids_BL = torch.randint(5, 60, (size, 16), generator=torch.Generator().manual_seed(size))
    return Batch(ids_BL, torch.tensor([[2, 7]] * size), ids_BL[:, [3, 8]].clone())


@pytest.mark.parametrize(
    ("seconds", "best"),
    [
        ({1: 1, 2: 1, 4: 1, 8: 1, 16: 1}, 16),  # bound by launches: each doubling is free
        ({1: 1, 2: 1, 4: 1.1, 8: 2.19, 16: 4.3}, 4),  # busy from 4 on
        ({1: 1, 2: 1, 4: 1}, 4),  # 8 runs out of memory
        ({}, 0),
    ],
)
def test_sizes_grow_while_the_device_gets_faster_and_has_memory(seconds: dict[int, float], best: int) -> None:
    assert best_size([1, 2, 4, 8, 16], seconds.get) == best


def test_sizes_are_about_twice_each_other_and_divide_what_a_process_has_in_a_step(tiny) -> None:
    assert sizes_to_try(tiny(global_batch=256), 8) == [1, 2, 4, 8, 16, 32]
    assert sizes_to_try(tiny(global_batch=72), 2) == [1, 2, 4, 6, 12, 18, 36]
    assert sizes_to_try(tiny(global_batch=8), 8) == [1]


@pytest.fixture
def a_gpu(monkeypatch: pytest.MonkeyPatch):
    """An H200 whose steps take ``seconds``, by size; compiling raises ``broken``, if anything."""

    def pretend(seconds: dict[int, float], broken: Exception | None = None) -> list[Any]:
        asked: list[Any] = []

        @contextmanager
        def timed(config, network, batch_of, device):
            def seconds_of(size: int) -> float | None:
                asked.append((config.engine.compile, size))
                if config.engine.compile and broken:
                    raise broken
                return seconds.get(size)

            yield seconds_of

        monkeypatch.setattr(module, "trial", timed)
        monkeypatch.setattr(module, "device_name", lambda device: "NVIDIA H200")
        monkeypatch.setattr(module, "memory_of", lambda device: (100 << 30, 141 << 30))
        monkeypatch.setattr("pretrain.engine.memory.memory_of", lambda device: (100 << 30, 141 << 30))
        return asked

    return pretend


@pytest.fixture
def left_open(tiny):
    """Settings that leave everything to the machine, precision and engine settled."""
    return tiny(global_batch=64, micro_batch="auto", compile="auto", engine="plain")


def test_a_device_is_tried_once_and_what_it_gave_is_kept_while_it_stays_the_same(left_open, a_gpu, caplog) -> None:
    asked = a_gpu({1: 1, 2: 1, 4: 1, 8: 1, 16: 1.98})
    with caplog.at_level(logging.INFO):
        found = with_device_settings(left_open, build_network(left_open, 60, SPECIAL_IDS), batch_of, GPU, {})
    assert found == left_open.replaced("engine", micro_batch=8, compile=True)
    assert asked == [(False, size) for size in (1, 2, 4, 8, 16)] + [(True, 8)]
    assert "micro-batch: 8 sequences" in caplog.text and "compile: on" in caplog.text
    asked.clear()
    kept = MACHINE | {"micro_batch": 4, "compile": False}
    again = with_device_settings(left_open, build_network(left_open, 60, SPECIAL_IDS), batch_of, GPU, kept)
    assert (again.engine.micro_batch, again.engine.compile, asked) == (4, False, [])
    elsewhere = kept | {"device": "NVIDIA A100"}
    assert with_device_settings(left_open, build_network(left_open, 60, SPECIAL_IDS), batch_of, GPU, elsewhere) == found
    named = left_open.replaced("engine", micro_batch=2, compile=False)
    assert with_device_settings(named, build_network(left_open, 60, SPECIAL_IDS), batch_of, GPU, kept) == named


def test_a_compiler_that_fails_is_not_used_and_its_message_is_reported(left_open, a_gpu, caplog) -> None:
    a_gpu({1: 1, 2: 2}, RuntimeError("Cannot find a working triton installation\nmore"))
    with caplog.at_level(logging.INFO):
        found = with_device_settings(left_open, build_network(left_open, 60, SPECIAL_IDS), batch_of, GPU, {})
    assert found.engine.compile is False and found.engine.micro_batch == 1
    assert "compile: off, Cannot find a working triton installation\n" in caplog.text


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_deepspeed_is_compiled_except_where_parameters_are_gathered(left_open, a_gpu, caplog, stage: int) -> None:
    a_gpu({1: 1, 2: 2})
    sharded = left_open.replaced("engine", name="deepspeed", zero_stage=stage)
    with caplog.at_level(logging.INFO):
        found = with_device_settings(sharded, build_network(left_open, 60, SPECIAL_IDS), batch_of, GPU, {})
    assert found.engine.compile is (stage < 3)
    assert ("compile: off, not tried for ZeRO stage 3" in caplog.text) == (stage == 3)


def test_the_smallest_answer_of_all_processes_is_taken(left_open, a_gpu, monkeypatch) -> None:
    a_gpu({1: 1, 2: 1, 4: 1, 8: 1, 16: 1, 32: 1})
    monkeypatch.setattr(World, "gathered", lambda self, own: [own, 4 if isinstance(own, int) else own])
    two = World(1, 2, torch.device("cuda", 1))
    shared = left_open.replaced("engine", name="ddp")
    assert (
        with_device_settings(shared, build_network(left_open, 60, SPECIAL_IDS), batch_of, two, {}).engine.micro_batch
        == 4
    )


def test_a_model_too_large_for_the_device_is_one_sentence_unless_it_will_be_cut(left_open, a_gpu, monkeypatch) -> None:
    a_gpu({})
    network = build_network(left_open, 60, SPECIAL_IDS)
    with pytest.raises(BadInput, match=r"micro-batch of 1 x 32 tokens does not fit the 141\.0 GiB of cuda:0; use more"):
        with_device_settings(left_open, network, batch_of, GPU, {})
    sharded = left_open.replaced("engine", name="deepspeed")
    assert with_device_settings(sharded, network, batch_of, GPU, {}).engine.micro_batch == 64


def test_processors_are_not_tried(left_open) -> None:
    found = with_device_settings(left_open, None, batch_of, World(0, 1, torch.device("cpu")), {})  # type: ignore[arg-type]
    assert found == left_open.replaced("engine", compile=False) and found.engine.max_sequences == 32


def test_a_trial_trains_and_changes_neither_weights_nor_random_numbers(tiny, monkeypatch) -> None:
    config = tiny(dropout=0.1)
    network = build_network(config, 60, SPECIAL_IDS)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    drawn = torch.random.get_rng_state()
    updates = []
    monkeypatch.setattr("pretrain.engine.torch_engine.PlainEngine.update", lambda self, rate: updates.append(rate))
    with trial(config, network, batch_of, torch.device("cpu")) as seconds_of:
        assert (seconds_of(2) or 0) > 0 and (seconds_of(4) or 0) > 0
    assert len(updates) == 2 * 4
    assert torch.equal(torch.random.get_rng_state(), drawn)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())


def test_memory_that_ends_is_a_size_that_does_not_fit_and_other_errors_are_ours(tiny, monkeypatch) -> None:
    def fail(error: Exception):
        def run(*_: Any) -> None:
            raise error

        monkeypatch.setattr("pretrain.engine.torch_engine.PlainEngine.__call__", run)

    config = tiny()
    with trial(config, build_network(config, 60, SPECIAL_IDS), batch_of, torch.device("cpu")) as seconds_of:
        fail(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."))
        assert seconds_of(2) is None
        fail(RuntimeError("size mismatch"))
        with pytest.raises(RuntimeError, match="size mismatch"):
            seconds_of(2)


def test_memory_that_ends_is_known_by_its_words() -> None:
    with pytest.raises(RuntimeError) as found:
        torch.empty(1 << 60)
    assert is_out_of_memory(found.value) and is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("CUDA error: an illegal memory access was encountered"))
