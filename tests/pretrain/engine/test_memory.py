"""Memory is counted before the first step, and where it does not suffice one sentence says what to set."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.engine.memory import (
    ACTIVATION_BYTES,
    BUCKET,
    cpu_activations,
    describe_memory,
    explained_memory,
    needed_memory,
    out_of_memory,
)
from pretrain.engine.torch_engine import PlainEngine
from pretrain.engine.world import World
from pretrain.model.isolation import isolate_documents
from pretrain.model.loss import PretrainingModule
from pretrain.model.networks import build_network

from ..runs import TORCHRUN, train

CPU = torch.device("cpu")
SPECIAL_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}


def test_weights_and_optimizer_take_sixteen_bytes_a_parameter_less_what_the_engine_cuts(tiny) -> None:
    def of_model(sequences: int = 1, **changes: Any) -> list[float]:
        return [size / 4e6 for size in needed_memory(tiny(**changes), 100, 1_000_000, sequences, 4)[:3]]

    assert of_model() == of_model(engine="ddp", zero_stage=3) == [1, 1, 2]
    assert of_model(engine="deepspeed", zero_stage=1) == [1.25, 1, 0.5]  # it updates a copy of its part
    assert of_model(engine="deepspeed", zero_stage=2) == [1.25, 0.25, 0.5]
    assert of_model(engine="deepspeed", zero_stage=3) == [0.5, 0.25, 0.5]


@pytest.mark.parametrize(("stage", "published"), [(1, 31.4), (2, 16.6), (3, 1.88)])
def test_fp16_takes_what_the_zero_paper_counts(tiny, stage: int, published: float) -> None:
    """arXiv 1910.02054, Table 1: 7.5 billion parameters, 64 processes, GB."""
    found = needed_memory(
        tiny(engine="deepspeed", precision="fp16", zero_stage=stage, global_batch=64), 100, 7_500_000_000, 1, 64
    )
    assert sum(found[:3]) / 1e9 == pytest.approx(published, rel=0.003)
    halves = (needed_memory(tiny(engine="ddp", precision=name), 100, 10**9, 8, 1) for name in ("fp16", "bf16"))
    assert next(halves) == next(halves)  # both by autocast
    assert sum(needed_memory(tiny(engine="ddp"), 100, 7_500_000_000, 1, 1)[:3]) == 120e9


def saved_bytes(config: PretrainConfig) -> float:
    """Bytes of the tensors that torch keeps for the backward pass, without weights and copies of weights."""
    network = build_network(config, 100, SPECIAL_IDS)
    lengths_BS = None
    if config.rows.packing == "documents":
        isolate_documents(network)
        lengths_BS = torch.full((2, 2), config.rows.sequence_length // 2)
    weights = {p.untyped_storage().data_ptr() for p in network.parameters()}
    held: dict[int, tuple[int, torch.Tensor]] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            held[storage.data_ptr()] = storage.nbytes(), tensor  # held, so that no address is used twice
        return tensor

    engine = PlainEngine(config, PretrainingModule(network), World(0, 1, CPU))
    ids_BL = torch.randint(5, 100, (2, config.rows.sequence_length))
    targets = (None, ids_BL) if config.is_causal else (torch.arange(5).expand(2, -1), torch.full((2, 5), 7))
    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with hooks, torch.autocast("cpu", torch.bfloat16, enabled=config.engine.precision == "bf16"):
        engine(ids_BL, *targets, None, lengths_BS)
    copies = 2 * sum(p.numel() for p in network.parameters()) if config.engine.precision == "bf16" else 0
    return sum(size for size, _ in held.values()) - copies


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("architecture", ["roberta", "bert"])
def test_activations_of_the_paper_are_what_torch_saves(tiny, architecture: str, precision: str) -> None:
    """Of three layers more, without dropout, whose masks are a byte in the count, and without score matrices."""
    sizes = {"hidden": 64, "intermediate": 256, "dropout": 0.0, "sequence_length": 160, "positions": 160}
    few, many = (
        saved_bytes(tiny(architecture=architecture, precision=precision, layers=layers, **sizes)) for layers in (2, 5)
    )
    measured = (many - few) / 3 / (2 * 160 * 64)
    assert measured + 2 == pytest.approx(ACTIVATION_BYTES[precision], rel=0.05)


# in short rows, attention keeps its shares
@pytest.mark.parametrize(("length", "packing"), [(96, "blocks"), (160, "blocks"), (160, "documents")])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("architecture", ["roberta", "bert", "gpt", "modernbert"])
def test_activations_on_a_cpu_are_what_torch_saves(
    tiny, architecture: str, precision: str, dropout: float, length: int, packing: str
) -> None:
    """Of three layers more."""
    sizes = {"hidden": 64, "intermediate": 256, "positions": 160, "sequence_length": length, "packing": packing}
    few, many = (
        tiny(architecture=architecture, precision=precision, dropout=dropout, layers=layers, **sizes)
        for layers in (2, 5)
    )
    expected = 2 * length * (cpu_activations(many)[0] - cpu_activations(few)[0])
    assert saved_bytes(many) - saved_bytes(few) == pytest.approx(expected, rel=0.1)


# model, dropout, precision, layers x hidden, rows x tokens
PEAKS = (
    "roberta 0.1 fp32 6x384 8x512",
    "roberta 0.1 bf16 4x256 16x512",
    "roberta 0.0 fp32 4x256 16x512",
    "roberta 0.0 bf16 6x384 32x128",
    "roberta 0.1 fp32 4x256 32x128",
    "bert-nsp 0.1 fp32 4x256 8x512",
    "bert-nsp 0.1 bf16 6x384 8x512",
    "bert-nsp 0.0 bf16 4x256 16x512",
    "gpt 0.1 fp32 4x256 4x512",
    "gpt 0.1 bf16 4x256 16x512",
    "gpt 0.0 fp32 4x256 8x512",
    "modernbert 0.0 fp32 6x384 32x128",
    "modernbert 0.1 bf16 6x384 8x512",
    "modernbert-documents 0.0 fp32 6x256 4x1024",
)

FEW_PEAKS = ("bert-nsp 0.1 fp32 4x256 8x512", "gpt 0.1 fp32 4x256 4x512", "modernbert-documents 0.0 fp32 6x256 4x1024")


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep freed memory in other ways")
@pytest.mark.parametrize(
    "setting", [pytest.param(each, marks=[] if each in FEW_PEAKS else pytest.mark.matrix) for each in PEAKS]
)
def test_the_forecast_on_a_cpu_is_within_a_quarter_of_the_peak(tiny, setting: str) -> None:
    name, dropout, precision, model, rows = setting.split()
    architecture, _, kind = name.partition("-")
    layers, hidden, count, length = map(int, f"{model}x{rows}".split("x"))
    config = tiny(
        architecture=architecture, nsp=kind == "nsp", packing="documents" if kind == "documents" else "blocks",
        layers=layers, hidden=hidden, heads=hidden // 64, intermediate=4 * hidden, dropout=float(dropout),
        precision=precision, positions=max(512, length), sequence_length=length, engine="plain",
        micro_batch=count, global_batch=count,
    )  # fmt: skip
    command = [sys.executable, str(Path(__file__).with_name("peak.py")), config.model_dump_json()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    found = json.loads(done.stdout.splitlines()[-1])
    assert sum(found["needed"].values()) == pytest.approx(found["peak"], rel=0.25)


@pytest.mark.matrix
@pytest.mark.parametrize(
    "engine", [{"name": "ddp"}, *({"name": "deepspeed", "zero_stage": stage} for stage in (0, 1, 2))]
)
def test_engines_hold_what_is_counted(tiny, engine: dict[str, Any]) -> None:
    """In two processes. Not ZeRO 3, as DeepSpeed does not cut the weights of a model as small as this one."""
    sizes = {"layers": 4, "hidden": 128, "intermediate": 512, "dropout": 0.0, "micro_batch": 2}
    config = tiny(**sizes).replaced("engine", **engine)
    command = [*TORCHRUN, str(Path(__file__).with_name("held.py")), config.model_dump_json()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.strip().splitlines()[-1])
    needed = needed_memory(config, 2_000, found["parameters"], 2, 2)
    bucket = 4 * BUCKET  # held between the micro-batches of a step
    seen = max(size - bucket if size > bucket else size for size in found["held"])
    assert seen == pytest.approx(sum(needed[:3]), rel=0.08)
    assert (max(found["held"]) > bucket) <= (needed.buffers == bucket)


def test_the_rest_grows_with_the_sequences_and_the_longest_rows(tiny) -> None:
    few, many = (needed_memory(tiny(), 100, 1_000_000, n, 1) for n in (2, 6))
    assert many.activations == 3 * few.activations and many.scores == pytest.approx(3 * few.scores)
    assert few.activations == 2 * 32 * 16 * 1 * 68 and few.scores == pytest.approx(2 * 32 * 0.15 * 100 * 8)
    later = needed_memory(tiny(phases=[{"until": 0.9, "sequence_length": 8}, {}]), 100, 1_000_000, 2, 1)
    assert later == few
    assert "memory for 2 sequences at once: about 0.01 GiB (weights 0.00" in describe_memory(few, 2, CPU)


@pytest.mark.parametrize(
    ("sequences", "size", "changes", "advice"),
    [
        (12, 1, {}, "set pretrain.engine.micro_batch=6; the batches of a step stay the same"),
        (1, 4, {"engine": "ddp"}, "set pretrain.engine.name=deepspeed"),
        (1, 4, {"engine": "deepspeed", "zero_stage": 1}, "set pretrain.engine.zero_stage=2"),
        (1, 4, {"engine": "deepspeed", "zero_stage": 3}, "use more devices"),
        (1, 1, {}, "use more devices, lower pretrain.rows.sequence_length, or use a smaller model"),
    ],
)
def test_each_way_to_run_out_of_memory_has_its_advice(tiny, sequences, size, changes, advice) -> None:
    said = out_of_memory(tiny(**changes), World(0, size, CPU), sequences)
    assert said.startswith(f"out of memory: a micro-batch of {sequences} x 32 tokens does not fit the ")
    assert advice in said


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried to"),
        MemoryError("Unable to allocate 9.31 GiB for an array"),
    ],
)
def test_training_that_runs_out_of_memory_ends_with_one_sentence(
    made: Path, tmp_path: Path, tiny, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(PlainEngine, "backward", fail)
    with pytest.raises(BadInput, match=r"a micro-batch of 4 x 32 .*; set pretrain\.engine\.micro_batch=2; the batches"):
        train(tiny(), made, tmp_path)


def test_errors_of_ours_stay_errors(tiny) -> None:
    with pytest.raises(RuntimeError, match="size mismatch"), explained_memory(tiny(), World(0, 1, CPU), 4):
        raise RuntimeError("size mismatch")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left as they are")
def test_a_processor_keeps_what_a_step_freed_for_the_next() -> None:
    """Pages that the system must hand out for twenty tensors of 32 MiB, each freed before the next is made."""
    code = """
import resource, torch
from pretrain.engine.memory import keep_freed_memory
def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.ones(1 << 23)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
given_back = pages()
keep_freed_memory()
pages()
print(given_back, pages())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    given_back, kept = map(int, done.stdout.split())
    assert given_back >= 20 and kept <= given_back // 20  # less than one of them
