"""The precision of training follows from what the machine does fast; what it does badly is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from corpus.documents import accelerator as device
from corpus.documents.accelerator import choose_precision, find_device, matmul_flops_per_second
from corpus.documents.errors import BadInput

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
KEY = "pretrain.engine.precision"


@pytest.fixture
def bf16_runs_at(monkeypatch: pytest.MonkeyPatch):
    """A CPU with 100 GFLOP/s in float32 and ``times`` this speed in bf16."""
    return lambda times: monkeypatch.setattr(
        device, "matmul_flops_per_second", lambda kind, precision: 1e11 * (times if precision == "bf16" else 1)
    )


@pytest.mark.parametrize(("times", "chosen"), [(0.05, "fp32"), (1.1, "fp32"), (1.3, "bf16"), (8, "bf16")])
def test_automatic_is_bf16_only_on_a_processor_where_it_is_clearly_faster(bf16_runs_at, times: float, chosen) -> None:
    bf16_runs_at(times)
    found = choose_precision("auto", KEY, CPU)
    assert (found.precision, found.warning) == (chosen, "")
    assert f"{times:.2g} times the speed of float32" in found.reason and f"{100 * times:.0f} and 100" in found.reason


def test_a_named_precision_stays_and_one_much_slower_is_warned_of(bf16_runs_at) -> None:
    bf16_runs_at(0.7)
    assert choose_precision("bf16", KEY, CPU)[::2] == ("bf16", "")
    bf16_runs_at(0.05)
    named = choose_precision("bf16", KEY, CPU)
    assert named.precision == "bf16"
    assert named.warning == (
        "pretrain.engine.precision=bf16 is 20.0 times slower than float32 on this machine; "
        "set pretrain.engine.precision=auto, or fp32"
    )
    assert choose_precision("fp32", KEY, CPU) == ("fp32", "set by pretrain.engine.precision", "")


@pytest.mark.parametrize(("major", "chosen"), [(7, "fp32"), (8, "bf16"), (9, "bf16")])
def test_a_gpu_says_itself_what_it_has(monkeypatch: pytest.MonkeyPatch, major: int, chosen: str) -> None:
    def is_supported(*, including_emulation: bool) -> bool:  # as torch answers: with emulation every GPU has it
        return including_emulation or major >= 8

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", is_supported)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA T4")
    assert choose_precision("auto", KEY, GPU).precision == chosen
    assert choose_precision("fp16", KEY, GPU).precision == "fp16"
    if major < 8:
        with pytest.raises(BadInput, match=r"precision=bf16: this GPU has no bf16 \(NVIDIA T4\); use auto or fp32"):
            choose_precision("bf16", KEY, GPU)


def test_the_probe_times_both_precisions_once_and_leaves_the_threads_alone() -> None:
    matmul_flops_per_second.cache_clear()
    threads, drawn = torch.get_num_threads(), torch.random.get_rng_state()
    rates = [matmul_flops_per_second("cpu", precision) for precision in ("fp32", "bf16", "fp32", "bf16")]
    assert min(rates) > 0 and rates[:2] == rates[2:]
    assert torch.get_num_threads() == threads and torch.equal(torch.random.get_rng_state(), drawn)


@pytest.fixture
def idle_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system with an NVIDIA device, and a torch that sees none."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidia0").touch()
    looks = device.has_nvidia_devices
    monkeypatch.setattr(device, "has_nvidia_devices", lambda: looks(tmp_path))
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)


def _no_driver() -> None:
    raise RuntimeError("The NVIDIA driver on your system is too old (found version 11040). Please update it.\nSee …")


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_the_probe_multiplies_in_the_precision_that_it_is_asked_for(monkeypatch, precision: str, dtype) -> None:
    seen: set[torch.dtype] = set()
    monkeypatch.setattr(device, "_time_matmuls", lambda *matrices: seen.update(m.dtype for m in matrices) or 1.0)
    matmul_flops_per_second.cache_clear()
    matmul_flops_per_second("cpu", precision)
    matmul_flops_per_second.cache_clear()
    assert seen == {dtype}


@pytest.mark.parametrize(
    ("cuda", "visible", "cause"),
    [
        (None, None, "was built without CUDA; install a build with it"),
        ("13.0", "", "CUDA_VISIBLE_DEVICES='' hides them; unset it"),
        ("13.0", None, "driver on your system is too old (found version 11040). Please update it; to train on"),
    ],
)
def test_nvidia_devices_that_torch_cannot_use_stop_the_training(
    idle_gpu: None, monkeypatch: pytest.MonkeyPatch, cuda: str | None, visible: str | None, cause: str
) -> None:
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "init", _no_driver)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(BadInput, match="NVIDIA devices, but torch cannot use them") as found:
        find_device("auto", "finetune.device")
    assert cause in str(found.value) and str(found.value).endswith("set finetune.device=cpu")
    assert find_device("cpu", "finetune.device") == CPU


def test_the_accelerator_that_torch_knows_is_used_unless_the_processor_is_asked_for(monkeypatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("xpu", 3))
    assert find_device("auto", "engine.device") == torch.device("xpu")
    assert find_device("cpu", "engine.device") == CPU


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux keeps the peak of each program apart")
def test_the_peak_of_a_process_is_not_that_of_the_process_that_started_it() -> None:
    small = "from corpus.documents.accelerator import process_peak; print(process_peak() >> 20)"
    large = f"import subprocess, sys; held = b'1' * (600 << 20); subprocess.run([sys.executable, '-c', {small!r}])"
    found = [
        int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for code in (small, large, f"held = b'1' * (600 << 20); {small}")
    ]
    assert found[0] == pytest.approx(found[1], abs=30) and found[2] >= 600
