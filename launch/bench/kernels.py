"""Where the time of training goes: torch.profiler over some steps, its kernels added up by what they do.

Kinds are told from kernel names (on a CPU: from operator names), so a new library may need a new pattern; what no
pattern knows is "other", never lost. Times on a CPU are those of an operator without the operators inside it.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

# kind → pattern of names, the first that fits counts; compiled kernels bear the names of all they fuse
KINDS = {
    "fused by the compiler": r"^triton_(poi|red|per)|^cpp_fused",
    "attention": r"flash|fmha|sdpa|attention|flex",
    "matrix products": r"gemm|cutlass|cublas|nvjet|xmma|triton_tem|^aten::(add|bad)?d?b?mm|^aten::linear|mkl",
    "optimizer": r"adam|multi_tensor|foreach|^Optimizer",
    "dropout": r"dropout|philox|bernoulli",
    "norms": r"layer_?norm",
    "softmax and loss": r"softmax|nll|cross_entropy|arg_?max",
    "copies": r"memcpy|memset|copy|cat_?|::to$|fill",
    "embeddings and gathering": r"index|gather|scatter|embedding|sort",
    "sums": r"reduce|sum|norm",
    "other element by element": r"elementwise|vectorized|gelu|^aten::(add|mul|div|where|gelu)",
}
SHOWN_KERNELS = 15


class Profiler:
    """A profile from ``start`` to ``stop``."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        activities = [ProfilerActivity.CPU]
        if device.type == "cuda":
            activities.append(ProfilerActivity.CUDA)
        self._profile = profile(activities=activities)
        self._start = 0.0

    def start(self) -> None:
        """Begin."""
        self._profile.__enter__()
        self._start = time.perf_counter()

    def stop(self) -> dict[str, Any]:
        """End.

        Returns:
            "seconds" of the wall clock, "busy_share" of them in kernels, "kinds": share of the kernels' time of each
            kind, largest first, and "kernels": name, kind and share of the largest.
        """
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        seconds = time.perf_counter() - self._start
        self._profile.__exit__(None, None, None)
        spent: dict[str, float] = defaultdict(float)
        for average in self._profile.key_averages():
            # a range such as "Optimizer.step" spans the kernels inside it: it would count them twice
            on_device = average.device_type == torch.autograd.DeviceType.CUDA and not average.is_user_annotation
            if self._device.type == "cuda":
                spent[average.key] += average.self_device_time_total if on_device else 0
            else:
                spent[average.key] += average.self_cpu_time_total
        return summarize(spent, seconds)


def summarize(microseconds: dict[str, float], seconds: float) -> dict[str, Any]:
    """What ``Profiler.stop`` returns, from the time of each kernel."""
    total = sum(microseconds.values()) or 1.0
    kinds: dict[str, float] = defaultdict(float)
    for name, spent in microseconds.items():
        kinds[kind_of(name)] += spent / total
    largest = _largest_first(microseconds)[:SHOWN_KERNELS]
    return {
        "seconds": seconds,
        "busy_share": total / 1e6 / seconds,
        "kinds": dict(_largest_first(kinds)),
        "kernels": [{"name": name, "kind": kind_of(name), "share": spent / total} for name, spent in largest],
    }


def _largest_first(spent: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(((name, value) for name, value in spent.items() if value), key=lambda item: -item[1])


def kind_of(name: str) -> str:
    """What a kernel does, by its name."""
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, name, re.IGNORECASE)), "other")
