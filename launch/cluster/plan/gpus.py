"""The GPUs that ``malmoi plan`` knows; their peaks are in ``pretrain.metrics.device_speed``."""

from __future__ import annotations

from dataclasses import dataclass

from launch.errors import LaunchError
from pretrain.metrics.device_speed import peak_flops


@dataclass(frozen=True, slots=True)
class Gpu:
    """``device``: its name in torch; ``memory_gib``: from NVIDIA's datasheet."""

    name: str
    device: str
    memory_gib: int

    def precision(self, requested: str) -> str:
        """The precision of training on this GPU; "auto" is bf16, or fp16 without bf16 support."""
        has_bf16 = peak_flops(self.device, "bf16") is not None
        if requested == "bf16" and not has_bf16:
            raise LaunchError(f"pretrain.engine.precision=bf16: {self.name} has no bf16; use auto or fp16")
        return requested if requested != "auto" else "bf16" if has_bf16 else "fp16"

    def peak(self, precision: str) -> float:
        """Dense FLOP/s of matrix products."""
        found = peak_flops(self.device, precision)
        assert found is not None, (self.device, precision)
        return found


GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("v100-16", "Tesla V100-SXM2-16GB", 16),
        Gpu("v100-32", "Tesla V100-SXM2-32GB", 32),
        Gpu("a100-40", "NVIDIA A100-SXM4-40GB", 40),
        Gpu("a100-80", "NVIDIA A100-SXM4-80GB", 80),
        Gpu("h100", "NVIDIA H100 80GB HBM3", 80),
        Gpu("h200", "NVIDIA H200", 140),  # 141 GB
    )
}


def find_gpu(name: str) -> Gpu:
    """The GPU of a name, in upper or lower case."""
    if name.lower() in GPUS:
        return GPUS[name.lower()]
    raise LaunchError(f"--gpu {name}: unknown GPU; use one of {', '.join(GPUS)}")
