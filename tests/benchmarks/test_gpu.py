"""The benchmark of the first GPU runs whole on a CPU, and one part that fails does not stop the others."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import gpu
from benchmarks.gpu import MODELS, Part, parts_of_bench, run_gpu_bench
from benchmarks.timing import run_fresh
from launch.errors import LaunchError


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile without code generation, which takes a minute for each model."""
    compile_module = torch.nn.Module.compile
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, **o: compile_module(self, **o, backend="aot_eager"))


@pytest.mark.slow
def test_the_whole_bench_runs_on_a_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, in_this_process: None, no_compiler: None
) -> None:
    monkeypatch.setattr(gpu, "ROWS_OF_HEAD", 32)
    monkeypatch.setattr(gpu, "STEPS", 12)
    results = run_gpu_bench(5.0, tmp_path, is_tiny=True)
    parts = results["parts"]
    assert list(parts) == list(parts_of_bench(is_tiny=True))
    assert not [part["problem"] for part in parts.values() if "problem" in part]
    for name in MODELS:
        eager, compiled = (parts[f"{name}, {kind}"] for kind in ("eager", "compiled"))
        assert eager["compile"] is False and compiled["compile"] is True
        assert compiled["last_loss"] == pytest.approx(eager["last_loss"], rel=1e-2)
        assert {"tokens_per_s", "peak_gib", "forecast_gib", "wait_percent", "stall_s"} <= eager.keys()
    for kind in ("blocks", "documents"):
        assert parts[f"resume, {kind}"]["resumed"] == {"weights": 0, "loss": 0, "equal": True}
        assert parts[f"parity, {kind}"]["fp32"]["difference"] < 2e-6
    assert {"head, ours", "head, linear_cross_entropy", "update, fused"} <= parts["kernels"].keys()
    assert json.loads((tmp_path / "gpu.json").read_text("utf-8")) == results
    page = (tmp_path / "gpu.md").read_text("utf-8")
    assert page.startswith("# Pretraining on ") and "roberta-base 512, compiled" in page
    assert "Largest differences between equal runs" in capsys.readouterr().out


def fails(order: Any) -> dict[str, Any]:
    raise RuntimeError("no kernel image is available\nmore")


def works(order: Any) -> dict[str, Any]:
    return {"head, ours": {"ms": 1.5}}


def test_a_part_that_fails_or_has_no_time_is_reported_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_this_process: None
) -> None:
    settings: dict[str, Any] = {"engine": {"compile": False}}
    parts = {name: Part(work, settings, 60.0) for name, work in (("broken", fails), ("kernels", works))}
    monkeypatch.setattr(gpu, "parts_of_bench", lambda is_tiny: parts)
    results = run_gpu_bench(1.0, tmp_path, is_tiny=True)["parts"]
    assert results["broken"] == {"problem": "no kernel image is available"}
    assert results["kernels"]["head, ours"] == {"ms": 1.5}
    assert "no kernel image is available" in (tmp_path / "gpu.md").read_text("utf-8")
    results = run_gpu_bench(0.0, tmp_path, is_tiny=True)["parts"]
    assert results["kernels"] == {"problem": "not run: no time left"}


def sleep(order: float) -> dict[str, Any]:
    time.sleep(order)
    return {}


def test_a_fresh_process_ends_at_its_limit() -> None:
    began = time.monotonic()
    with pytest.raises(LaunchError, match="took longer than 1 s"):
        run_fresh(sleep, 60.0, "the nap", seconds=1.0)
    assert time.monotonic() - began < 30
