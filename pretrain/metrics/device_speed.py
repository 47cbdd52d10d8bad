"""How fast devices train: the cost model of ``--dry-run`` and the training log.

| device | operations per second | source |
|---|---|---|
| Hopper and newer | peak x 25 to 30 % | ModernBERT-base on H100 25 % (arXiv 2412.13663); AzNeoBERT on H200 24 to 27 % |
| other known GPU | peak x 25 to 40 % | A100: BERT-base 24 % (MosaicML); BERT-large: A100 45 %, V100 43 % (NVIDIA) |
| unknown GPU | ``UNKNOWN_GPU_FLOPS`` | a GPU of the middle range |
| CPU | measured: training steps of a model with the widths of the recipe (``cpu_speed``) | this machine |
| CPU, fine-tuning | matrix products of one core x ``CPU_SHARE`` | measured for the demo on two cores |

On a CPU, a step has a fixed part (the update of the weights and the overhead of each operation) and a part that grows
with the tokens, so both are measured, as CPU time: with one thread, because threads that wait on a busy machine use CPU
time too, and with all threads, for the time that they lose to one another. On a GPU, the share of the peak (MFU)
contains both; single estimates use the middle of its range. The model is exact to about 25 %.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pretrain.batching.masking import max_predictions
from pretrain.config import PretrainConfig
from pretrain.metrics.flops import flops_per_token
from pretrain.model.sizes import count_parameters
from pretrain.schedule import phases

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from pretrain.engine.start import Engine

# name without maker and brand: dense TFLOP/s of NVIDIA's datasheets (half of the values "with sparsity") in fp32 (TF32
# if the GPU has it), and in fp16 and bf16 on tensor cores; None if there are none
PEAK_TFLOPS: dict[str, tuple[float, float, float | None]] = {
    r"V100-SXM2-\d+GB": (15.7, 125.0, None),
    r"V100-PCIE-\d+GB": (14.0, 112.0, None),
    r"T4": (8.1, 65.0, None),
    r"A[18]00[- ](SXM4-\d+GB|PCIE-\d+GB|80GB PCIe)": (156.0, 312.0, 312.0),
    r"A10": (62.5, 125.0, 125.0),
    r"L4": (60.0, 121.0, 121.0),
    r"L40S": (183.0, 362.0, 362.0),
    r"H100 80GB HBM3|H800( 80GB HBM3)?|H200|GH200 \d+GB?( HBM3e?)?": (494.5, 989.5, 989.5),  # SXM
    r"H[18]00 PCIe": (378.0, 756.5, 756.5),
    r"H[12]00 NVL": (417.5, 835.5, 835.5),
    r"H20(-3e)?": (74.0, 148.0, 148.0),
    r"B[23]00( SXM6 AC)?": (1100.0, 2250.0, 2250.0),
    r"RTX 3090": (35.6, 71.0, 71.0),  # sums kept in fp32, as torch does
    r"RTX 4090": (82.6, 165.2, 165.2),
    r"RTX 5090": (104.8, 209.5, 209.5),
}
PRECISIONS = ("fp32", "fp16", "bf16")
MFU_RANGE, MFU_RANGE_OF_HOPPER = (0.25, 0.40), (0.25, 0.30)
HOPPER_AND_NEWER = re.compile(r"\bG?[HB]\d+\b")
UNKNOWN_GPU_FLOPS = 20e12  # of useful work
CPU_FLOPS = 40e9  # of one core, if torch is not installed
CPU_SHARE = 0.4  # of the speed of a core's matrix products, in fine-tuning
PROBE_LAYERS, PROBE_FLOPS, PROBE_ROUNDS = 3, 6e10, 4  # FLOP of one pass: less than a second of a core
MIN_THREAD_SHARE = 0.7  # of the speed of a thread alone; .77 in the demo: 82 s with one thread, 53 s with two


class Speed(NamedTuple):
    """Operations per second of all devices together, and the seconds of one update that are not in it."""

    flops: float
    update_seconds: float = 0.0

    def seconds(self, flops: float, steps: int) -> float:
        """Time to train ``steps`` steps of ``flops`` operations in total."""
        return flops / self.flops + steps * self.update_seconds


def gpu_speed(device_name: str, precision: str, devices: int = 1) -> Speed:
    """Speed of GPUs."""
    peak = peak_flops(device_name, precision)
    return Speed(devices * (UNKNOWN_GPU_FLOPS if peak is None else sum(mfu_range(device_name)) / 2 * peak))


def mfu_range(device_name: str) -> tuple[float, float]:
    """Lowest and highest share of a GPU's peak that encoders usually reach in training."""
    return MFU_RANGE_OF_HOPPER if HOPPER_AND_NEWER.search(device_name) else MFU_RANGE


def cpu_speed(config: PretrainConfig, vocab_size: int, processes: int = 1) -> Speed:
    """Speed of CPU processes like this one, from training steps of a model with few layers of the widths of ``config``,
    which has the sizes of the model and its resolved precision. The random state is not changed."""
    probe, rows = _probe(config, vocab_size)
    flops, seconds_per_parameter = _measure(probe, rows, vocab_size)
    return Speed(processes * flops, count_parameters(config.model, vocab_size) * seconds_per_parameter)


def peak_flops(device_name: str, precision: str) -> float | None:
    """Dense peak in FLOP/s of a device, named as by torch (fp32 as TF32); None for CPUs, slices and unknown GPUs."""
    name = re.sub(r"^(NVIDIA|Tesla|GeForce| )+", "", device_name)
    peaks = next((peaks for pattern, peaks in PEAK_TFLOPS.items() if re.fullmatch(pattern, name)), (None,) * 3)
    peak = peaks[PRECISIONS.index(precision)]
    return None if peak is None else peak * 1e12


def _probe(config: PretrainConfig, vocab_size: int) -> tuple[PretrainConfig, int]:
    """Settings of the model that is timed, and its rows per pass: those of the run, or up to ``PROBE_FLOPS``."""
    first = phases(config)[0].config
    probe = first.replaced("model", layers=min(first.model.layers, PROBE_LAYERS), nsp=False)
    probe = probe.replaced("engine", name="plain", compile=False, device="cpu")
    probe = probe.replaced("rows", packing="blocks", sources=None)
    probe = probe.model_copy(update={"init_from": None, "continue_from": None})
    length = probe.rows.sequence_length
    affordable = int(PROBE_FLOPS / flops_per_token(probe, vocab_size))  # tokens
    length = min(length, max(affordable, 32))
    rows = max(1, min(affordable // length, probe.engine.max_sequences, probe.global_batch))
    return probe.replaced("rows", sequence_length=length), rows


@lru_cache(maxsize=8)
def _measure(probe: PretrainConfig, rows: int, vocab_size: int) -> tuple[float, float]:
    """Operations per second, and seconds of an update per parameter."""
    import torch

    from pretrain.engine.start import start_engine
    from pretrain.engine.world import World
    from pretrain.model.loss import PretrainingModule, mean_loss
    from pretrain.model.networks import build_network

    ids = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
    with torch.random.fork_rng(devices=[]):
        module = PretrainingModule(build_network(probe, vocab_size, ids))
        parameters = sum(p.numel() for p in module.parameters())
        engine = start_engine(probe, module, World(0, 1, torch.device("cpu")))
        batch, predictions = _random_batch(probe, rows, vocab_size)
        loss = lambda: mean_loss(engine(*batch), predictions, predictions)  # noqa: E731
        threads = torch.get_num_threads()
        alone, together = (_step_seconds(engine, loss, count) for count in (1, threads))
    flops = flops_per_token(probe, vocab_size) * rows * probe.rows.sequence_length
    passing = min(max(alone[0], together[0]), alone[0] / MIN_THREAD_SHARE)
    updating = min(max(alone[1], together[1]), alone[1] * threads)
    return threads * flops / passing, updating / threads / parameters


def _step_seconds(engine: Engine, loss: Callable[[], torch.Tensor], threads: int) -> tuple[float, float]:
    """CPU seconds of the two passes of a step, and of its update: the shortest of some rounds after the first."""
    import torch

    torch.set_num_threads(threads)
    passes, updates = [], []
    for _ in range(1 + PROBE_ROUNDS):
        began = time.process_time()  # unlike the wall clock, other programs have little influence on it
        engine.backward(loss())
        passed = time.process_time()
        engine.update(0.0)
        passes.append(passed - began)
        updates.append(time.process_time() - passed)
    return max(min(passes[1:]), 1e-9), min(updates[1:])


def _random_batch(
    probe: PretrainConfig, rows: int, vocab_size: int
) -> tuple[tuple[torch.Tensor, torch.Tensor | None, torch.Tensor], int]:
    """Fields of a batch, and the number of its predictions."""
    import torch

    length = probe.rows.sequence_length
    ids_BL = torch.randint(min(5, vocab_size - 1), vocab_size, (rows, length))
    if probe.is_causal:
        return (ids_BL, None, ids_BL), ids_BL.numel()
    count = max_predictions(length, probe.rows.masking.share)
    positions_BM = torch.linspace(0, length - 1, count).long().expand(rows, -1)
    return (ids_BL, positions_BM, ids_BL.gather(1, positions_BM)), rows * count
