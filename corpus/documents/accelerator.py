"""Choose the device and the precision for pretraining and fine-tuning.

Training stops with an error if there are NVIDIA devices that torch cannot use, because training on the CPU would take
days instead of hours. bf16 is several times as fast as float32 with hardware support, and 3 to 30 times slower on a CPU
without it. GPUs report their support; on other devices, matrix products of one layer are timed for half a second.
"""

from __future__ import annotations

import os
import platform
import re
import resource
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from corpus.documents.errors import BadInput

if TYPE_CHECKING:
    import torch

DeviceName = Literal["auto", "cpu"]
PrecisionName = Literal["auto", "fp32", "bf16", "fp16"]

NVIDIA_SIGNS = ("dev/nvidia0", "proc/driver/nvidia/gpus/*")
ROWS, HIDDEN, INNER = 256, 256, 1024  # tokens and sizes of the feed-forward layer of a small model
PROBE_SECONDS, PROBE_ROUNDS = 0.25, 6
CLEARLY_FASTER = 1.25  # bf16 is less precise, so it must be faster; hardware support gives a factor of 2 or more
MUCH_SLOWER = 1.5


class PrecisionChoice(NamedTuple):
    """A precision, the reason for it, and a warning ("" for none)."""

    precision: PrecisionName
    reason: str
    warning: str = ""


def find_device(requested: DeviceName, key: str) -> torch.device:
    """The accelerator of torch (CUDA, ROCm, XPU, MPS) without an index, or the CPU.

    Args:
        requested: value of the setting ``key``.

    Raises:
        BadInput: there are NVIDIA devices that torch cannot use, and ``requested`` is not cpu.
    """
    import torch

    if requested == "cpu":
        return torch.device("cpu")
    if torch.accelerator.is_available():
        accelerator = torch.accelerator.current_accelerator()
        assert accelerator is not None
        return torch.device(accelerator.type)
    if has_nvidia_devices():
        raise BadInput(
            f"this machine has NVIDIA devices, but torch cannot use them: {_why_unusable()}; to train on the CPU, set "
            f"{key}=cpu"
        )
    return torch.device("cpu")


def device_name(device: torch.device) -> str:
    """The product name of a device; for CPUs the model name, if the system reports it."""
    import torch

    if device.type in ("cuda", "xpu"):
        return str(torch.get_device_module(device).get_device_name(device))
    with suppress(OSError):
        match = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
        if match and device.type == "cpu":
            return match[1]
    return platform.processor() or platform.machine()


def process_peak() -> int:
    """Peak resident memory of this process in bytes (ru_maxrss may be that of the process that started this one)."""
    with suppress(OSError):  # no Linux
        if peak := re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("utf-8")):
            return int(peak[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (0 if sys.platform == "darwin" else 10)


def has_nvidia_devices(root: Path = Path("/")) -> bool:
    """Whether the system lists NVIDIA devices; does not use torch."""
    return any(path for sign in NVIDIA_SIGNS for path in root.glob(sign))


def _why_unusable() -> str:
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if torch.version.cuda is None:
        return f"torch {torch.__version__} was built without CUDA; install a build with it"
    if visible is not None and visible.strip() in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES={visible!r} hides them; unset it"
    try:
        torch.cuda.init()
    except Exception as error:
        return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
    return "torch finds none; see nvidia-smi"


def choose_precision(requested: PrecisionName, key: str, device: torch.device) -> PrecisionChoice:
    """The precision for ``device``. "auto" is bf16 if it is clearly faster than float32, else float32.

    Raises:
        BadInput: the setting ``key`` requests bf16 on a GPU without support.
    """
    if requested not in ("auto", "bf16"):
        return PrecisionChoice(requested, f"set by {key}")
    if device.type == "cuda":
        return _by_capability(requested, key, device)
    fp32, bf16 = matmul_flops_per_second(device.type, "fp32"), matmul_flops_per_second(device.type, "bf16")
    times = bf16 / fp32
    measured = (
        f"matrix products in bf16 have {times:.2g} times the speed of float32 here "
        f"({bf16 / 1e9:.0f} and {fp32 / 1e9:.0f} GFLOP/s)"
    )
    if requested == "auto":
        return PrecisionChoice("bf16" if times >= CLEARLY_FASTER else "fp32", measured)
    slower = f"{key}=bf16 is {1 / times:.1f} times slower than float32 on this machine; set {key}=auto, or fp32"
    return PrecisionChoice(requested, f"set by {key}; {measured}", slower if times * MUCH_SLOWER <= 1 else "")


def _by_capability(requested: PrecisionName, key: str, device: torch.device) -> PrecisionChoice:
    import torch

    name = torch.cuda.get_device_name(device)
    has_bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
    if requested == "bf16" and not has_bf16:
        raise BadInput(f"{key}=bf16: this GPU has no bf16 ({name}); use auto or fp32")
    return PrecisionChoice("bf16" if has_bf16 else "fp32", f"{name} has {'' if has_bf16 else 'no '}bf16 instructions")


@cache
def matmul_flops_per_second(device_type: str, precision: str) -> float:
    """FLOP/s of the three matrix products of a linear layer in a training step; takes at most 0.25 s.

    On a CPU, the rate of one core in CPU time, so that other processes do not matter.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    drawn = [torch.randn(sizes, generator=generator) for sizes in ((ROWS, HIDDEN), (HIDDEN, INNER), (ROWS, INNER))]
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    matrices = [matrix.to(device_type, dtype) for matrix in drawn]
    spent: list[float] = []
    began = time.perf_counter()
    while len(spent) < 2 or (len(spent) < PROBE_ROUNDS and time.perf_counter() - began < PROBE_SECONDS):
        spent.append(_time_matmuls(*matrices))
    torch.set_num_threads(threads)
    return 3 * 2 * ROWS * HIDDEN * INNER / max(median(spent[1:]), 1e-9)


def _time_matmuls(inputs: Any, weights: Any, gradients: Any) -> float:
    """Seconds for the outputs, the gradient of the inputs and the gradient of the weights."""
    import torch

    clock = time.thread_time if inputs.device.type == "cpu" else time.perf_counter
    began = clock()
    inputs @ weights, gradients @ weights.T, inputs.T @ gradients
    if inputs.device.type != "cpu":
        torch.accelerator.synchronize(inputs.device)
    return clock() - began
