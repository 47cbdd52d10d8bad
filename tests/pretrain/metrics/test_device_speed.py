"""The cost model: peaks of GPUs, and estimates that agree with the measured time of training on a CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from launch.checks.estimate import Machine, estimate
from launch.recipe import load_recipe
from pretrain.batching.batches import TrainingBatches
from pretrain.batching.held_out_split import split_rows
from pretrain.batching.masking import describe_pieces
from pretrain.config import PretrainConfig
from pretrain.engine.start import start_engine
from pretrain.engine.world import World
from pretrain.metrics import device_speed
from pretrain.metrics.device_speed import cpu_speed, gpu_speed, mfu_range, peak_flops
from pretrain.metrics.flops import flops_by_phase, flops_per_token
from pretrain.model.loss import PretrainingModule, mean_loss
from pretrain.model.networks import build_network
from pretrain.model.sizes import count_parameters
from pretrain.pack.store import open_store, read_pieces

ALONE = World(0, 1, torch.device("cpu"))
SIZES: dict[str, dict[str, Any]] = {
    "2x128": {"layers": 2, "hidden": 128, "heads": 4, "intermediate": 340},
    "4x256": {"layers": 4, "hidden": 256, "heads": 4, "intermediate": 688},
}
STEPS = 12


@pytest.fixture
def one_thread():
    """CPU time of one thread: other programs on the machine have little influence on it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    device_speed._measure.cache_clear()
    yield
    device_speed._measure.cache_clear()
    torch.set_num_threads(threads)


def train(made: Path, config: PretrainConfig) -> tuple[float, float, int]:
    """Seconds of steps after a warm-up, their operations, and the size of the vocabulary."""
    store = open_store(made / "tokens", made / "tokenizer")
    pieces = describe_pieces(read_pieces(made / "tokenizer"), store.meta["special_ids"])
    batches = TrainingBatches(split_rows(store, config), pieces, config, 0, 1, 16)
    vocab_size = store.meta["vocab_size"]
    network = build_network(config, vocab_size, store.meta["special_ids"])
    engine = start_engine(config, PretrainingModule(network), ALONE)
    steps = [batches.of_step(step) for step in range(1, STEPS + 4)]
    began = 0.0
    for number, (batch,) in enumerate(steps):
        if number == 3:
            began = time.thread_time()
        engine.backward(mean_loss(engine(*batch), batch.predictions, batch.others))
        engine.update(1e-4)
    seconds = time.thread_time() - began
    tokens = STEPS * config.global_batch * config.rows.sequence_length
    return seconds, flops_by_phase(batches, config, vocab_size)[0] * tokens, vocab_size


@pytest.mark.parametrize("size", SIZES)
def test_the_estimate_agrees_with_the_measured_time(
    made: Path, tiny: Callable[..., PretrainConfig], one_thread: None, size: str
) -> None:
    config = tiny(
        architecture="modernbert", dropout=0.0, positions=64, sequence_length=64, global_batch=16, micro_batch=16,
        **SIZES[size],
    )  # fmt: skip
    seconds, flops, vocab_size = train(made, config)
    assert cpu_speed(config, vocab_size).seconds(flops, STEPS) == pytest.approx(seconds, rel=0.25)


def test_the_dry_run_and_the_log_use_the_same_speed(one_thread: None) -> None:
    recipe = load_recipe("smoke")
    machine = Machine(cores=1, memory=8 << 30, gpu=None, devices=1, can_measure=True)
    expected = machine.training_speed(recipe.pretrain, recipe.tokenizer.vocab_size)
    assert expected == cpu_speed(recipe.pretrain, recipe.tokenizer.vocab_size)
    assert estimate("pretrain", recipe, machine).seconds == estimate("pretrain", recipe, machine).seconds


def test_a_large_model_is_measured_with_a_small_one(one_thread: None) -> None:
    large = load_recipe("klue-roberta-large").pretrain.replaced("engine", precision="fp32")
    probe, rows = device_speed._probe(large, 32_000)
    assert probe.model.layers == 3 and rows == 1 and probe.rows.sequence_length < 512
    before = torch.get_rng_state()
    small = large.replaced("model", layers=2, hidden=64, heads=2, intermediate=64)
    assert cpu_speed(small, 300).flops > 1e8
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("NVIDIA H100 80GB HBM3", 0.25, 0.30), ("NVIDIA H200", 0.25, 0.30), ("NVIDIA GH200 480GB", 0.25, 0.30),
        ("NVIDIA B200", 0.25, 0.30), ("NVIDIA A100-SXM4-80GB", 0.25, 0.40), ("NVIDIA GeForce RTX 4090", 0.25, 0.40),
    ],
)  # fmt: skip
def test_the_speed_of_gpus_is_the_share_of_their_peak_that_published_encoders_reach(
    name: str, low: float, high: float
) -> None:
    found, peak = gpu_speed(name, "bf16", 8), peak_flops(name, "bf16")
    assert found and peak and mfu_range(name) == (low, high)
    assert low * peak < found.flops / 8 < high * peak and found.update_seconds == 0


def test_the_estimate_of_an_h100_is_close_to_a_published_encoder() -> None:
    """ModernBERT-base: 304k tokens a second, 824 M operations a token by its layers (arXiv 2412.13663)."""
    speed = gpu_speed("NVIDIA H100 80GB HBM3", "bf16")
    assert speed and speed.flops == pytest.approx(304e3 * 824e6, rel=0.15)


def test_an_unknown_gpu_has_the_speed_of_the_middle_range() -> None:
    assert gpu_speed("NVIDIA unheard of", "bf16", 2).flops == 2 * device_speed.UNKNOWN_GPU_FLOPS


@pytest.mark.parametrize(
    ("together", "passing", "updating"), [((1.2, 0.3), 1.2, 0.3), ((0.9, 0.1), 1.0, 0.2), ((90.0, 60.0), 1 / 0.7, 0.4)]
)
def test_threads_that_wait_on_a_busy_machine_do_not_count(
    monkeypatch: pytest.MonkeyPatch, one_thread: None, together: tuple[float, float], passing: float, updating: float
) -> None:
    """CPU seconds of a step: 1 and 0.2 with one thread, ``together`` with two."""
    monkeypatch.setattr(device_speed, "_step_seconds", lambda *args: (1.0, 0.2) if args[2] == 1 else together)
    torch.set_num_threads(2)
    probe, rows = device_speed._probe(load_recipe("smoke").pretrain.replaced("engine", precision="fp32"), 300)
    flops, per_parameter = device_speed._measure(probe, rows, 300)
    expected = 2 * flops_per_token(probe, 300) * rows * probe.rows.sequence_length
    assert flops == pytest.approx(expected / passing)
    assert per_parameter * count_parameters(probe.model, 300) == pytest.approx(updating / 2, rel=0.01)


def test_peaks_are_dense_and_of_the_whole_named_device() -> None:
    assert peak_flops("NVIDIA H200", "bf16") == 989.5e12
    assert peak_flops("NVIDIA H100 80GB HBM3", "fp16") == 989.5e12
    assert peak_flops("NVIDIA H100 PCIe", "bf16") == 756.5e12
    assert peak_flops("NVIDIA A100-SXM4-80GB", "fp32") == 156e12  # TF32
    assert peak_flops("NVIDIA GH200 480GB", "bf16") == peak_flops("NVIDIA H800", "bf16") == 989.5e12
    assert peak_flops("NVIDIA B300 SXM6 AC", "bf16") == peak_flops("NVIDIA B200", "bf16") == 2250e12
    assert peak_flops("NVIDIA H20", "bf16") == 148e12 and peak_flops("NVIDIA GeForce RTX 5090", "bf16") == 209.5e12
    assert peak_flops("NVIDIA A100 80GB PCIe", "bf16") == peak_flops("NVIDIA A100-PCIE-40GB", "bf16") == 312e12
    assert peak_flops("Tesla V100-SXM2-32GB", "fp16") == 125e12
    assert peak_flops("NVIDIA GeForce RTX 4090", "bf16") == 165.2e12


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("cpu", "fp32"), ("Tesla V100-SXM2-32GB", "bf16"), ("Tesla T4", "bf16"), ("NVIDIA A10G", "bf16"),
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", "bf16"), ("NVIDIA GeForce RTX 4090 Laptop GPU", "bf16"),
    ],
)  # fmt: skip
def test_no_peak_is_guessed(name: str, precision: str) -> None:
    assert peak_flops(name, precision) is None
