"""Muon and the average over the steps, against the published formulas; both resume, and a bad step moves nothing."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.engine.start import choose_engine
from pretrain.engine.updates import Updates
from pretrain.engine.world import World
from tests.pretrain.runs import assert_same_training, go_on_from, train

ALONE = World(0, 1, torch.device("cpu"))
RATE, DECAY = 0.01, 0.1


@pytest.fixture
def settings(tiny):
    return lambda **changes: tiny().replaced("optimizer", **{"name": "muon", "weight_decay": DECAY} | changes)


def some_weights() -> dict[str, torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(1)
    shapes = {"wide": (6, 10), "tall": (12, 5), "table": (9, 4), "bias": (7,)}
    return {name: torch.nn.Parameter(torch.randn(shape, generator=generator)) for name, shape in shapes.items()}


def walk(config: PretrainConfig, steps: int) -> tuple[Updates, list[dict[str, Tensor]], list[dict[str, Tensor]]]:
    """Updates, weights before the first and after each step, and the gradients."""
    weights, generator = some_weights(), torch.Generator().manual_seed(2)
    updates = Updates(config, weights, ["wide", "tall"] if config.optimizer.name == "muon" else [], ALONE)
    path, gradients = [{name: p.detach().clone() for name, p in weights.items()}], []
    for _ in range(steps):
        gradients.append({name: torch.randn(p.shape, generator=generator) for name, p in weights.items()})
        for name, p in weights.items():
            p.grad = gradients[-1][name].clone()
        updates.step(RATE, torch.tensor(1.0))
        path.append({name: p.detach().clone() for name, p in weights.items()})
    return updates, path, gradients


def orthogonalized(matrix: Tensor) -> Tensor:
    """Jordan's five steps of Newton-Schulz on the singular values, in float64."""
    left, values, right = torch.linalg.svd(matrix.double() / matrix.double().norm(), full_matrices=False)
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return left @ values.diag() @ right


@pytest.mark.parametrize("name", ["wide", "tall"])
def test_matrices_move_by_the_formula_of_muon(settings, name: str) -> None:
    _, path, gradients = walk(settings(), 3)
    weight, momentum = path[0][name].double(), torch.zeros_like(path[0][name]).double()
    for gradient in (step[name].double() for step in gradients):
        momentum = 0.95 * momentum + 0.05 * gradient
        update = orthogonalized(0.05 * gradient + 0.95 * momentum)
        weight = weight * (1 - RATE * DECAY) - RATE * 0.2 * math.sqrt(max(weight.shape)) * update
    torch.testing.assert_close(path[-1][name].double(), weight, rtol=0, atol=1e-6)


def test_all_else_moves_by_adamw(settings) -> None:
    found, expected = (walk(settings(name=name), 3)[1][-1] for name in ("muon", "adamw"))
    assert torch.equal(found["bias"], expected["bias"]) and torch.equal(found["table"], expected["table"])
    assert not torch.allclose(found["wide"], expected["wide"], atol=1e-3)


def test_in_bf16_the_iteration_is_bf16(settings) -> None:
    exact, rounded = (
        walk(settings().replaced("engine", precision=name), 1)[1][-1]["wide"] for name in ("fp32", "bf16")
    )
    assert 0 < (exact - rounded).abs().max() < 1e-3


def test_the_average_counts_each_step_less_than_the_next(settings) -> None:
    updates, path, _ = walk(settings(ema=0.8), 4)
    shares = [0.8 ** (4 - step) for step in range(1, 5)]  # the weights before the first step count nothing
    with updates.averaged():
        for name, p in updates._weights.items():
            mean = sum(share * weights[name] for share, weights in zip(shares, path[1:], strict=True)) / sum(shares)
            torch.testing.assert_close(p.detach(), mean)
    assert all(torch.equal(p, path[-1][name]) for name, p in updates._weights.items())


def test_a_norm_that_is_not_finite_moves_no_matrix(settings) -> None:
    updates, *_ = walk(settings(), 2)
    kept = {(kind, name): part.clone() for kind, name, part in updates.parts()}
    for p in updates._weights.values():
        p.grad = torch.full_like(p, math.nan)
    updates.step(RATE, torch.tensor(math.nan))
    assert all(torch.equal(part, kept[kind, name]) for kind, name, part in updates.parts())
    assert updates.made == 2


def test_both_resume_bit_for_bit_and_the_average_is_the_model(made: Path, tmp_path: Path, tiny) -> None:
    config = tiny(steps=6, keep_checkpoints=3).replaced("optimizer", name="muon", ema=0.9)
    train(config, made, tmp_path / "once")
    shutil.copytree(tmp_path / "once", tmp_path / "twice")
    go_on_from(tmp_path / "twice", 3)
    train(config, made, tmp_path / "twice")
    assert_same_training(tmp_path / "once", tmp_path / "twice")
    last = tmp_path / "once" / "checkpoints" / "step-000000006"
    model, moments = load_file(last / "model" / "model.safetensors"), load_file(last / "optimizer.safetensors")
    train(config.replaced("optimizer", ema=0.0), made, tmp_path / "plain")
    plain = load_file(tmp_path / "plain" / "model" / "model.safetensors")
    for name, weight in model.items():
        assert torch.equal(moments[f"weight/{name}"], plain[name])  # the average changes nothing that is trained
        assert not torch.equal(weight, plain[name])


def test_engines_that_cut_matrices_are_refused(settings) -> None:
    two = World(0, 2, torch.device("cpu"))
    assert choose_engine(settings(), two, 10**9) == "ddp"
    for name in ("fsdp", "deepspeed"):
        with pytest.raises(BadInput, match=f"muon needs whole matrices, which {name} cuts"):
            choose_engine(settings().replaced("engine", name=name), two, 1)
    with pytest.raises(
        BadInput, match=r"optimizer\.ema does not go with deepspeed; choose pretrain\.engine\.name ddp or fsdp"
    ):
        choose_engine(settings(name="adamw", ema=0.9).replaced("engine", name="deepspeed"), two, 1)
