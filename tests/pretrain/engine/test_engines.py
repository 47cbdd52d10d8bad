"""All engines make the same updates, and each resumes from the state of another."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partialmethod
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounter

from corpus.documents.errors import BadInput
from pretrain.batching.batches import Batch
from pretrain.config import PretrainConfig
from pretrain.engine import start
from pretrain.engine.optimizer import adamw, fit_micro_batch
from pretrain.engine.start import Engine, choose_engine, ready_for_engine, start_engine
from pretrain.engine.world import World
from pretrain.engine.zero import ZeroEngine
from pretrain.model.loss import PretrainingModule
from pretrain.model.networks import build_network
from pretrain.schedule import learning_rate

ALONE = World(0, 1, torch.device("cpu"))
SPECIAL_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
PLAIN, DDP = ({"engine": name} for name in ("plain", "ddp"))
ZERO_0, ZERO_1, ZERO_2, ZERO_3 = ({"engine": "deepspeed", "zero_stage": stage} for stage in range(4))
ALL = [PLAIN, DDP, ZERO_0, ZERO_1, ZERO_2, ZERO_3]


@contextmanager
def started(config: PretrainConfig, weights: dict[str, Tensor] | None = None) -> Iterator[Engine]:
    network = build_network(config, 60, SPECIAL_IDS)
    config = config.replaced("engine", name=start.choose_engine(config, ALONE, 0))
    if weights:
        network.load_state_dict(weights, strict=False)
    with ready_for_engine(config, ALONE):
        yield start_engine(config, PretrainingModule(network), ALONE)


def train(engine: Engine, config: PretrainConfig, first: int, last: int) -> list[float]:
    """Norms of the gradients of some steps, two micro-batches each."""
    norms = []
    for step in range(first, last + 1):
        generator = torch.Generator().manual_seed(step)
        for _ in range(2):
            ids_BL = torch.randint(5, 60, (4, 16), generator=generator)
            batch = Batch(ids_BL, torch.tensor([[2, 7]] * 4), ids_BL[:, [3, 8]].clone())
            engine.backward(engine(*batch).mlm_loss / 16)
        norms.append(float(engine.update(learning_rate(config, step))))
    return norms


@pytest.fixture
def settings(tiny):
    usual = {"dropout": 0.0, "global_batch": 8, "micro_batch": 4, "clip": 0.5, "steps": 8}
    return lambda **changes: tiny(**usual | changes)


def test_norm_and_update_are_those_of_adam_on_the_whole_batch(settings) -> None:
    config = settings(**PLAIN)
    network = build_network(config, 60, SPECIAL_IDS)
    module = PretrainingModule(network)
    optimizer = torch.optim.AdamW(
        network.parameters(),
        lr=learning_rate(config, 1),
        betas=config.optimizer.betas,
        eps=1e-6,
        weight_decay=0.0,
    )
    generator = torch.Generator().manual_seed(1)
    ids_BL = torch.cat([torch.randint(5, 60, (4, 16), generator=generator) for _ in range(2)])
    (module(ids_BL, torch.tensor([[2, 7]] * 8), ids_BL[:, [3, 8]].clone()).mlm_loss / 16).backward()
    norm = torch.nn.utils.clip_grad_norm_(network.parameters(), config.optimizer.clip)
    optimizer.step()
    with started(config.replaced("optimizer", weight_decay=0.0)) as engine:
        assert train(engine, config, 1, 1) == pytest.approx([float(norm)], rel=1e-5)
        weights, _ = engine.state(keep=True)
    assert all(torch.allclose(weights[name], p, atol=1e-6) for name, p in network.named_parameters())


@pytest.mark.parametrize("other", ALL[1:])
def test_a_state_goes_from_engine_to_engine_and_back(settings, other: dict) -> None:
    """Six steps of one engine equal two of it, two of the other and two of it again."""
    plain, zero = settings(**PLAIN), settings(**other)
    with started(plain) as engine:
        norms = train(engine, plain, 1, 6)
        expected, _ = engine.state(keep=True)
    with started(plain) as engine:
        found = train(engine, plain, 1, 2)
        weights, moments = engine.state(keep=True)
    for config, first in ((zero, 3), (plain, 5)):
        with started(config, weights) as engine:
            engine.restore(weights, moments, first - 1)
            found += train(engine, config, first, first + 1)
            weights, moments = engine.state(keep=True)
    assert found == pytest.approx(norms, rel=1e-5)
    assert weights.keys() == expected.keys()
    assert all(torch.allclose(weights[name], expected[name], atol=1e-6) for name in weights)


@pytest.mark.parametrize("change", [PLAIN, DDP, ZERO_1, ZERO_3])
def test_bf16_resumes_bit_for_bit_with_bits_that_bf16_does_not_have(settings, change: dict) -> None:
    config = settings(precision="bf16", **change)
    with started(config) as engine:
        train(engine, config, 1, 2)
        weights, moments = engine.state(keep=True)
        weights, moments = ({k: v.clone() for k, v in part.items()} for part in (weights, moments))
        norms = train(engine, config, 3, 4)
        expected, _ = engine.state(keep=True)
    assert any((weight.view(torch.int32) & 0xFFFF).any() for weight in weights.values())
    with started(config, weights) as engine:
        engine.restore(weights, moments, 2)
        assert train(engine, config, 3, 4) == norms
        again, _ = engine.state(keep=True)
    assert all(torch.equal(again[name], expected[name]) for name in expected)


@pytest.mark.slow
def test_every_phase_of_a_compiled_run_has_its_graphs(settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten masked shares, in training and in measurements; torch gives up after eight graphs by default."""
    torch._dynamo.reset()
    counter = CompileCounter()
    monkeypatch.setattr(PretrainingModule, "compile", partialmethod(nn.Module.compile, backend=counter))
    monkeypatch.setattr(start, "_require_compiler", lambda *arguments: None)
    parts = [{"masked_share": 0.05 * number, "until": number / 10} for number in range(1, 11)]
    config = settings(**PLAIN, compile=True, steps=24, phases=parts)
    engine = start_engine(config, PretrainingModule(build_network(config, 60, SPECIAL_IDS)), ALONE)
    ids_BL = torch.randint(5, 60, (4, 32), generator=torch.Generator().manual_seed(1))
    for count in range(1, 11):
        batch = ids_BL, torch.arange(count).repeat(4, 1), ids_BL[:, :count].contiguous()
        engine(*batch)
        with torch.no_grad():
            engine(*batch)
    assert counter.frame_count == 20


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
@pytest.mark.parametrize("repeats", [5, pytest.param(200, marks=pytest.mark.slow)])
def test_the_threads_of_a_ddp_engine_end_with_its_group_even_if_the_engine_is_kept(settings, repeats: int) -> None:
    """Also if an error passes through. Otherwise the garbage collector ends them later, which can wait forever."""
    kept, before = [], gloo_threads()
    for number in range(repeats):
        with suppress(ZeroDivisionError), started(settings(**DDP)) as engine:
            kept.append(engine)
            train(engine, settings(**DDP), 1, 1)
            assert gloo_threads() > before
            if number % 2:
                _ = 1 / 0
        deadline = time.monotonic() + 10  # Linux lists a thread for some milliseconds after it was joined
        while gloo_threads() > before:
            assert time.monotonic() < deadline
            time.sleep(0.001)


def gloo_threads() -> int:
    count = 0
    for path in Path("/proc/self/task").glob("*/comm"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            count += "gloo" in path.read_text("utf-8")
    return count


@pytest.fixture
def fp16_on_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused there, because it is slow; the scaler of torch works as on a GPU."""
    monkeypatch.setattr(start, "choose_engine", lambda config, world, parameters: config.engine.name)


@pytest.mark.parametrize("change", [PLAIN, DDP])
def test_fp16_scales_the_loss_and_resumes_bit_for_bit(settings, fp16_on_cpus, change: dict) -> None:
    """The scale halves at an overflow, and scale and its counter are part of the state."""
    config = settings(precision="fp16", zero_stage=1, **change)
    with started(config) as engine:
        assert engine.scaling() == {"cur_scale": 65536.0, "growth_tracker": 0}
        norms = train(engine, config, 1, 2)
        poisoned(engine, config)
        assert engine.scaling() == {"cur_scale": 32768.0, "growth_tracker": 0}
        train(engine, config, 4, 4)
        weights, moments = engine.state(keep=True)
        scaling = engine.scaling()
        assert scaling == {"cur_scale": 32768.0, "growth_tracker": 1} and moments["updates"] == 3
        later = train(engine, config, 5, 6)
        expected, _ = engine.state(keep=True)
    assert norms == pytest.approx(norms_with(settings(**change)), rel=0.02)
    with started(config, weights) as engine:
        engine.restore(weights, moments, 4)
        engine.restore_scaling(scaling)
        assert train(engine, config, 5, 6) == later and engine.scaling()["growth_tracker"] == 3
        again, _ = engine.state(keep=True)
    assert all(torch.equal(again[name], expected[name]) for name in expected)


def test_the_loss_scale_moves_between_torch_and_deepspeed(settings, fp16_on_cpus) -> None:
    optimizer = SimpleNamespace(loss_scaler=SimpleNamespace(cur_scale=0))
    zero = SimpleNamespace(_engine=SimpleNamespace(optimizer=optimizer), _is_exact=False)
    with started(settings(precision="fp16", zero_stage=1, **PLAIN)) as engine:
        engine.restore_scaling({"cur_scale": 1024.0, "cur_iter": 7, "last_overflow_iter": 3, "cur_hysteresis": 2})
        assert engine.scaling() == {"cur_scale": 1024.0, "growth_tracker": 0}
        ZeroEngine.restore_scaling(cast(Any, zero), engine.scaling())
    assert vars(optimizer.loss_scaler) == {"cur_scale": 1024.0}
    for change in (PLAIN, DDP, ZERO_0, ZERO_1, ZERO_3):  # a run that moves to a GPU with bf16 leaves the scale behind
        with started(settings(precision="bf16", **change)) as engine:
            engine.restore_scaling({"cur_scale": 1024.0})
            assert engine.scaling() == {}


@pytest.mark.parametrize("change", ALL)
def test_a_state_is_a_copy_that_later_steps_do_not_change(settings, change: dict) -> None:
    """The only one on its way to the file: a checkpoint is written while training continues."""
    config = settings(**change)
    with started(config) as engine:
        train(engine, config, 1, 1)
        state = engine.state(keep=True)
        before = [{name: value.clone() for name, value in part.items()} for part in state]
        train(engine, config, 2, 3)
        for part, kept in zip(state, before, strict=True):
            assert all(torch.equal(part[name], kept[name]) for name in kept)


def test_nothing_of_zero_3_is_left_behind(settings) -> None:
    linear = torch.nn.functional.linear
    with started(settings(**ZERO_3)):
        assert torch.nn.functional.linear is not linear
    assert torch.nn.functional.linear is linear


def test_in_bf16_weights_gradients_and_residuals_are_float32(settings) -> None:
    with started(settings(precision="bf16", **PLAIN)) as engine:
        seen: dict[str, torch.dtype] = {}
        layer = engine.module.network.roberta.encoder.layer[0]
        layer.attention.self.query.register_forward_hook(lambda *call: seen.update(product=call[2].dtype))
        layer.output.LayerNorm.register_forward_hook(
            lambda *call: seen.update(residual=call[1][0].dtype, norm=call[2].dtype)
        )
        ids_BL = torch.randint(5, 60, (4, 16))
        engine.backward(engine(ids_BL, torch.tensor([[2, 7]] * 4), ids_BL[:, [3, 8]]).mlm_loss)
        assert seen == {"product": torch.bfloat16, "residual": torch.float32, "norm": torch.float32}
        for p in engine.module.parameters():
            assert p.dtype == torch.float32 and p.grad is not None and p.grad.dtype == torch.float32


@pytest.mark.parametrize("change", ALL)
def test_a_gradient_that_is_not_finite_moves_nothing_and_the_norm_says_so(settings, change: dict) -> None:
    config = settings(**change)
    with started(config) as engine:
        train(engine, config, 1, 2)
        before = [{name: value.clone() for name, value in part.items()} for part in engine.state(keep=True)]
        poisoned(engine, config)
        for part, kept in zip(engine.state(keep=True), before, strict=True):
            assert part.keys() == kept.keys() and all(torch.equal(part[name], kept[name]) for name in kept)
        weights, moments = before
        norms = train(engine, config, 4, 4)
    with started(settings(**PLAIN), weights) as engine:  # continues as if the step had not happened
        engine.restore(weights, moments, 3)
        assert train(engine, config, 4, 4) == pytest.approx(norms, rel=1e-5)


def poisoned(engine: Engine, config: PretrainConfig) -> None:
    """A step whose first micro-batch has an infinite gradient."""
    ids_BL = torch.full((4, 16), 7)
    for factor in (float("inf"), 1.0):
        engine.backward(engine(ids_BL, torch.tensor([[2, 7]] * 4), ids_BL[:, [3, 8]]).mlm_loss * factor)
    assert not math.isfinite(engine.update(learning_rate(config, 3)))


def norms_with(config: PretrainConfig) -> list[float]:
    with started(config) as engine:
        return train(engine, config, 1, 2)


@pytest.mark.parametrize("change", [PLAIN, ZERO_0, ZERO_1, ZERO_2])
def test_a_compiled_model_is_one_graph_and_makes_the_same_updates(
    settings, monkeypatch: pytest.MonkeyPatch, change: dict
) -> None:
    """Without the C++ compiler, which takes half a minute."""
    torch._dynamo.reset()
    compile_module, compiled = torch.nn.Module.compile, []
    whole = {"backend": "aot_eager", "fullgraph": True}

    def compile_(self: nn.Module, **given: Any) -> None:
        compiled.append(type(self))
        compile_module(self, **given | whole)

    monkeypatch.setattr(torch.nn.Module, "compile", compile_)
    found = norms_with(settings(compile=True, **change))
    assert compiled == [PretrainingModule]
    assert found == pytest.approx(norms_with(settings(**change)), rel=1e-5)


def test_the_compiled_graph_of_ddp_is_cut_at_the_buckets(settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the all-reduce of the last layers runs while the first ones still compute; 8 M parameters, 32 MB."""
    torch._dynamo.reset()
    counter = CompileCounter()
    monkeypatch.setattr(PretrainingModule, "compile", partialmethod(nn.Module.compile, backend=counter))
    large = {"hidden": 512, "intermediate": 2048, "layers": 3, "heads": 4}
    config = settings(compile=True, **large, **DDP)
    norms = norms_with(config)
    assert counter.frame_count >= 3
    assert norms == pytest.approx(norms_with(settings(**large, **PLAIN)), rel=1e-5)


def test_engines_are_chosen_by_processes_size_and_precision(settings) -> None:
    two = World(0, 2, torch.device("cpu"))
    assert choose_engine(settings(), ALONE, 10**9) == "plain"
    assert choose_engine(settings(), two, 4 * 10**8) == "ddp"
    assert choose_engine(settings(), two, 4 * 10**8 + 1) == "deepspeed"
    half = settings(precision="fp16", zero_stage=1)
    assert choose_engine(half, World(0, 1, torch.device("cuda")), 1) == "plain"
    with pytest.raises(BadInput, match="fp16 needs a GPU; choose bf16 or fp32"):
        choose_engine(half, ALONE, 1)
    with pytest.raises(BadInput, match="plain is for one process, but there are 2"):
        choose_engine(settings(**PLAIN), two, 1)


def test_biases_and_layer_norms_do_not_decay(settings) -> None:
    named = dict(build_network(settings(), 60, SPECIAL_IDS).named_parameters())
    decayed, kept = adamw(settings(), list(named.values())).param_groups
    assert decayed["weight_decay"] == 0.01 and kept["weight_decay"] == 0.0
    spared = {id(p) for name, p in named.items() if name.endswith("bias") or "orm" in name}
    assert {id(p) for p in kept["params"]} == spared
    assert len(decayed["params"]) + len(spared) == len(named)


def test_processes_that_cannot_share_the_batch_get_the_nearest_one_in_the_message(tiny) -> None:
    with pytest.raises(BadInput, match="32 is not divisible by 3 processes; the nearest value that is: 33"):
        fit_micro_batch(tiny(global_batch=32), 3)
    assert fit_micro_batch(tiny(global_batch=36, micro_batch=8), 2) == 6


def test_code_that_is_not_compiled_any_more_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    start._DYNAMO_LOG.setLevel(logging.WARNING)
    start._DYNAMO_LOG.addFilter(start._report_eager_code)
    for _ in range(2):
        torch._dynamo.reset()
        compiled = torch.compile(lambda values: values + 1, dynamic=False, backend="eager")
        with torch._dynamo.config.patch(recompile_limit=1):
            for size in range(2, 6):
                compiled(torch.ones(size))
    said = [message for message in caplog.messages if message.startswith("the rest of the run is eager and slower")]
    assert len(said) == 1 and not any("hit config.recompile_limit" in message for message in caplog.messages)
