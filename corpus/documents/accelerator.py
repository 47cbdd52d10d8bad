"""What this machine trains on, and in which precision: pretraining and fine-tuning ask before they begin.

An accelerator that torch can use is used. NVIDIA devices that it cannot use stop the training: a processor would take
days for hours, and nobody would know why.

Where the hardware has instructions for bf16 it is several times as fast as float32; a CPU without them imitates it at a
third to a thirtieth of the speed. GPUs say what they have. Anything else is timed for half a second with the matrix
products of a layer's step. torch is imported when it is needed.
"""

from __future__ import annotations

import os
import platform
import re
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
ROWS, HIDDEN, INNER = 256, 256, 1024  # tokens, and the sizes of a small model's feed-forward layer
PROBE_SECONDS, PROBE_ROUNDS = 0.25, 6
CLEARLY_FASTER = 1.25  # bf16 rounds, so a tie goes to float32; instructions for it give 2 and more
MUCH_SLOWER = 1.5


class PrecisionChoice(NamedTuple):
    """A precision, why it is that one, and what to warn of ("" for nothing)."""

    precision: PrecisionName
    reason: str
    warning: str = ""


def find_device(asked: DeviceName, key: str) -> torch.device:
    """What to train on: the accelerator that torch knows (CUDA, ROCm, XPU, MPS), without an index, else the processor.

    BadInput: there are NVIDIA devices that torch cannot use, and ``key``, the setting that gave ``asked``, is not cpu.
    """
    import torch

    if asked == "cpu":
        return torch.device("cpu")
    if torch.accelerator.is_available():
        found = torch.accelerator.current_accelerator()
        assert found is not None
        return torch.device(found.type)
    if has_nvidia_devices():
        raise BadInput(
            f"this machine has NVIDIA devices, but torch cannot use them: {_why_unusable()}; or train on the processor "
            f"with {key}=cpu"
        )
    return torch.device("cpu")


def device_name(device: torch.device) -> str:
    """What its maker calls it; of processors the model, where the system tells."""
    import torch

    if device.type in ("cuda", "xpu"):
        return str(torch.get_device_module(device).get_device_name(device))
    with suppress(OSError):
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
        if found and device.type == "cpu":
            return found[1]
    return platform.processor() or platform.machine()


def has_nvidia_devices(root: Path = Path("/")) -> bool:
    """Whether the system shows NVIDIA devices; torch is not asked."""
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
    return "it finds none; see nvidia-smi"


def choose_precision(asked: PrecisionName, key: str, device: torch.device) -> PrecisionChoice:
    """What to train in on ``device``: "auto" is bf16 where it is clearly faster than float32, and float32 elsewhere.

    Any other precision stays; ``key`` is the setting that names it. BadInput: bf16 is asked of a GPU without it.
    """
    if asked not in ("auto", "bf16"):
        return PrecisionChoice(asked, f"set by {key}")
    if device.type == "cuda":
        return _by_capability(asked, key, device)
    fp32, bf16 = matmul_flops_per_second(device.type, "fp32"), matmul_flops_per_second(device.type, "bf16")
    times = bf16 / fp32
    found = (
        f"matrix products in bf16 run at {times:.2g} times the speed of float32 here "
        f"({bf16 / 1e9:.0f} and {fp32 / 1e9:.0f} GFLOP/s)"
    )
    if asked == "auto":
        return PrecisionChoice("bf16" if times >= CLEARLY_FASTER else "fp32", found)
    slower = f"{key}=bf16 is {1 / times:.1f} times slower than float32 on this machine; set {key}=auto, or fp32"
    return PrecisionChoice(asked, f"set by {key}; {found}", slower if times * MUCH_SLOWER <= 1 else "")


def _by_capability(asked: PrecisionName, key: str, device: torch.device) -> PrecisionChoice:
    import torch

    name = torch.cuda.get_device_name(device)
    has_bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
    if asked == "bf16" and not has_bf16:
        raise BadInput(f"{key}=bf16: this GPU has no bf16 ({name}); use auto or fp32")
    return PrecisionChoice(
        "bf16" if has_bf16 else "fp32", f"{name} has {'' if has_bf16 else 'no '}instructions for bf16"
    )


@cache
def matmul_flops_per_second(device_type: str, precision: str) -> float:
    """FLOP/s in the three products that a linear layer needs in a step, timed for a quarter of a second at most.

    On a CPU that of one core, in CPU time: what else runs there does not decide.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    drawn = [torch.randn(sizes, generator=generator) for sizes in ((ROWS, HIDDEN), (HIDDEN, INNER), (ROWS, INNER))]
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    given = [matrix.to(device_type, dtype) for matrix in drawn]
    spent: list[float] = []
    began = time.perf_counter()
    while len(spent) < 2 or (len(spent) < PROBE_ROUNDS and time.perf_counter() - began < PROBE_SECONDS):
        spent.append(_time_matmuls(*given))
    torch.set_num_threads(threads)
    return 3 * 2 * ROWS * HIDDEN * INNER / max(median(spent[1:]), 1e-9)


def _time_matmuls(inputs: Any, weights: Any, gradients: Any) -> float:
    """Seconds for the outputs, the gradient of the inputs and that of the weights."""
    import torch

    clock = time.thread_time if inputs.device.type == "cpu" else time.perf_counter
    began = clock()
    inputs @ weights, gradients @ weights.T, inputs.T @ gradients
    if inputs.device.type != "cpu":
        torch.accelerator.synchronize(inputs.device)
    return clock() - began
