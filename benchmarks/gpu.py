"""``python -m benchmarks gpu``: everything that the first GPU must show, in one command of at most nine minutes.

```
parity ─▶ three models, eager ─▶ kernels ─▶ resume ─▶ three models, compiled ─▶ gpu.json, gpu.md
```
Models are those of the recipes, on an invented token store (``benchmarks.texts``) and with random weights. Training
runs the whole pretrain stage. Every part has its own process and time limit; a part that fails, or for which no time is
left, is reported, and the next ones run. Both files are written after each part. ``--tiny`` runs all of it on a CPU.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, linear_cross_entropy

from benchmarks.pretrain import TrainingData
from benchmarks.texts import write_invented_store
from benchmarks.timing import Work, record_table, run_fresh, versions_of, write_figures
from corpus.documents.accelerator import find_device
from corpus.documents.atomic_files import atomic_write
from launch.console import PlainConsole, Table, markdown_table, print_table
from launch.recipe import load_recipe
from pretrain.batching.batches import Batch
from pretrain.batching.masking import IGNORED
from pretrain.checkpoint.checkpoints import Checkpoints
from pretrain.config import PretrainConfig
from pretrain.engine.memory import GIB, needed_memory
from pretrain.engine.optimizer import adamw
from pretrain.engine.world import wait_for_device
from pretrain.model.loss import PretrainingModule, loss_and_hits
from pretrain.model.networks import build_network
from pretrain.run import PretrainInputs
from pretrain.run import run as pretrain

log = logging.getLogger(__name__)

VOCABULARY, TOKENS = 32_000, 4_000_000
TINY_VOCABULARY, TINY_TOKENS = 400, 30_000
STEP_TOKENS = 131_072  # of a step, as a few GPUs have it in the recipes
STEPS, LINES = 30, 6  # lines of the log; the first one has start-up and compilation
MODELS = {
    "roberta-base 512": ("klue-roberta-base", 512),
    "malmoi-base 1,024": ("malmoi-base", 1024),
    "malmoi-base 8,192": ("malmoi-base", 8192),
}
TINY = {"layers": 2, "hidden": 16, "heads": 2, "intermediate": 32}
LENGTH_OF_TINY = 16  # times shorter
FROM_COUNTS = {"output_bias": "zero", "embedding_init": "normal", "attention_init": "normal"}  # takes CPU minutes
REPEATS = 10
ROWS_OF_HEAD = 64 * 77  # predictions of 64 rows of 512 tokens


class Part(NamedTuple):
    """``work`` gets paths of token store and tokenizer, and the settings of the pretrain stage."""

    work: Work
    settings: dict[str, Any]
    seconds: float  # limit


def run_gpu_bench(minutes: float, out: Path, *, is_tiny: bool = False) -> dict[str, Any]:
    """Run all parts within ``minutes``, print tables, and write gpu.json and gpu.md to ``out``."""
    deadline = time.monotonic() + 60 * minutes
    results: dict[str, Any] = {
        "versions": versions_of(("torch", "transformers", "triton", "liger-kernel")),
        "parts": {},
    }
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        sizes = (TINY_VOCABULARY, TINY_TOKENS) if is_tiny else (VOCABULARY, TOKENS)
        store = write_invented_store(Path(folder), *sizes)
        for name, part in parts_of_bench(is_tiny=is_tiny).items():
            if part.settings["engine"]["compile"]:  # with the micro-batch that was found without compiling
                eager = results["parts"][name.replace("compiled", "eager")]
                part.settings["engine"]["micro_batch"] = eager.get("micro_batch", "auto")
            seconds = min(part.seconds, deadline - time.monotonic())
            results["parts"][name] = _run_part(name, part, store, seconds)
            results = write_figures(results, out / "gpu.json")
            atomic_write(out / "gpu.md", _page(results))
    for table in _tables(results["parts"]):
        print_table(table, PlainConsole())
    return results


def parts_of_bench(*, is_tiny: bool) -> dict[str, Part]:
    """By name, the most important first."""
    settings = {name: _settings(*model, is_tiny=is_tiny) for name, model in MODELS.items()}
    blocks, documents, _ = settings.values()

    def trained(kind: str, *, is_compiled: bool) -> dict[str, Part]:
        return {
            f"{name}, {kind}": Part(train_model, _with_engine(own, compile=is_compiled), 150.0)
            for name, own in settings.items()
        }

    few = {"engine": {"micro_batch": 2, "compile": False}, "global_batch": 4}
    return {
        "parity, blocks": Part(compare_losses, blocks | few, 60.0),
        "parity, documents": Part(compare_losses, documents | few, 60.0),
        **trained("eager", is_compiled=False),
        "kernels": Part(time_kernels, _with_engine(blocks, compile=False), 60.0),
        "resume, blocks": Part(resume_run, blocks | few | {"steps": 6}, 90.0),
        "resume, documents": Part(resume_run, documents | few | {"steps": 6}, 90.0),
        **trained("compiled", is_compiled=True),
    }


def _settings(recipe: str, length: int, *, is_tiny: bool) -> dict[str, Any]:
    """The pretrain section of a recipe, for a short run with rows of one length."""
    settings: dict[str, Any] = load_recipe(recipe).pretrain.model_dump(mode="json")
    tokens = STEP_TOKENS
    if is_tiny:
        length, tokens = length // LENGTH_OF_TINY, 4 * length // LENGTH_OF_TINY
        settings["model"] |= TINY | {"positions": 8192 // LENGTH_OF_TINY}
    settings["model"] |= FROM_COUNTS
    settings["phases"] = ()
    settings["rows"] |= {"sequence_length": length, "held_out_share": 0.01}
    settings["watch"] |= {"log_every": STEPS // LINES, "measure_every": STEPS, "measure_rows": 64}
    settings["saved"] |= {"checkpoint_every": STEPS // 2}
    return settings | {"steps": STEPS, "global_batch": tokens // length}


def _with_engine(settings: dict[str, Any], **engine: Any) -> dict[str, Any]:
    return settings | {"engine": settings["engine"] | engine}


def _run_part(name: str, part: Part, store: tuple[Path, Path], seconds: float) -> dict[str, Any]:
    if seconds <= 1:
        return {"problem": "not run: no time left"}
    log.info("%s: at most %.0f seconds", name, seconds)
    try:
        return run_fresh(part.work, [*map(str, store), part.settings], name, seconds=seconds)
    except Exception as error:  # of any kind: the next part runs
        return _problem(error)


def _problem(error: Exception) -> dict[str, Any]:
    return {"problem": str(error).partition("\n")[0] or type(error).__name__}


# --- training: the whole stage


def train_model(order: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    """Speed and waits (medians of the log lines after the first), memory, and stalls by checkpoints."""
    tokens, tokenizer, settings = order
    config = PretrainConfig.model_validate(settings)
    with TemporaryDirectory(prefix="malmoi-gpu-") as folder, timed_saves() as stalls:
        result = pretrain(config, PretrainInputs(Path(tokens), Path(tokenizer)), Path(folder))
        lines = [line for line in _read_lines(Path(folder)) if "loss" in line]
    engine = result["engine"]
    resolved = config.replaced("engine", **{key: engine[key] for key in ("precision", "micro_batch")}, name="plain")
    vocab_size = TrainingData.open(tokens, tokenizer, config).vocab_size
    is_cpu = find_device("auto", "pretrain.engine.device").type == "cpu"
    needed = needed_memory(resolved, vocab_size, result["parameters"], engine["micro_batch"], 1, is_cpu=is_cpu)
    later = lines[1:]
    peak, forecast = max(line["memory_gib"] for line in lines), sum(needed) / GIB
    figures = {
        "tokens_per_s": median(line["tokens_per_second"] for line in later),
        "first_line_s": lines[0]["seconds"],
        "wait_percent": 100 * median(line["data_wait_share"] for line in later),
        "stall_s": max(stalls),
        "peak_gib": peak,
        "forecast_gib": forecast,
        "forecast_of_peak": forecast / peak,
        "last_loss": lines[-1]["loss"],
        **{key: lines[-1][key] for key in ("eager",) if key in lines[-1]},
        **engine,
    }
    return figures | ({"mfu_percent": 100 * median(line["mfu"] for line in later)} if "mfu" in later[0] else {})


@contextmanager
def timed_saves() -> Iterator[list[float]]:
    """Seconds for which each checkpoint inside the block stops the training."""
    stalls: list[float] = []
    save = Checkpoints.save

    def timed(self: Checkpoints, *arguments: Any) -> None:
        began = time.perf_counter()
        save(self, *arguments)
        stalls.append(time.perf_counter() - began)

    Checkpoints.save = timed  # type: ignore[assignment, method-assign]
    try:
        yield stalls
    finally:
        Checkpoints.save = save  # type: ignore[method-assign]


def _read_lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]


# --- equality


def resume_run(order: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    """A run resumed in the middle, and a repeated one, compared with the first one: largest differences."""
    tokens, tokenizer, settings = order
    half = settings["steps"] // 2
    changes = {"watch": settings["watch"] | {"log_every": 1}, "saved": settings["saved"] | {"checkpoint_every": half}}
    config = PretrainConfig.model_validate(settings | changes)
    inputs = PretrainInputs(Path(tokens), Path(tokenizer))
    with TemporaryDirectory(prefix="malmoi-gpu-") as folder:
        first, again, resumed = (Path(folder) / name for name in ("first", "again", "resumed"))
        for out in (first, again):
            out.mkdir()
            pretrain(config, inputs, out)
        shutil.copytree(first, resumed)
        shutil.rmtree(resumed / "checkpoints" / f"step-{config.steps:09}")
        shutil.rmtree(resumed / "model")
        pretrain(config, inputs, resumed)
        return {"repeated": _difference(first, again), "resumed": _difference(first, resumed)}


def _difference(a: Path, b: Path) -> dict[str, Any]:
    weights = [load_file(out / "model" / "model.safetensors") for out in (a, b)]
    losses = [[line["loss"] for line in _read_lines(out) if "loss" in line] for out in (a, b)]
    largest = max(float((weights[0][name] - weights[1][name]).abs().max()) for name in weights[0])
    return {"weights": largest, "loss": max(abs(x - y) for x, y in zip(*losses, strict=True)), "equal": largest == 0}


def compare_losses(order: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    """Losses of the stock class, one document at a time, next to ours; without dropout."""
    tokens, tokenizer, settings = order
    data = TrainingData.open(tokens, tokenizer, PretrainConfig.model_validate(settings))
    device = find_device("auto", "pretrain.engine.device")
    (batch, *_) = data.batches().of_step(1)
    stock = build_network(data.config, data.vocab_size, data.special_ids)
    stock.set_attn_implementation("sdpa")
    module, figures = PretrainingModule(data.network()), {}
    for model in (stock, module):
        nn.Module.to(model, device).eval()
    for precision in ("fp32", "bf16"):
        with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            ours = float(module(*batch.to(device)).mlm_loss) / batch.predictions
            theirs = stock_loss(stock, batch, device) / batch.predictions
        figures[precision] = {"ours": ours, "stock": theirs, "difference": abs(ours - theirs)}
    return figures


def stock_loss(stock: nn.Module, batch: Batch, device: torch.device) -> float:
    """Sum of the losses of all documents of a masked batch."""
    assert batch.positions_BM is not None
    labels_BL = torch.full_like(batch.ids_BL, IGNORED)
    labels_BL.scatter_(1, batch.positions_BM, batch.targets_BM)  # unused places predict nothing
    total = 0.0
    for row in range(len(batch.ids_BL)):
        sizes = [batch.ids_BL.shape[1]] if batch.lengths_BS is None else batch.lengths_BS[row].tolist()
        parts = (part_BL[row, : sum(sizes)].split(sizes) for part_BL in (batch.ids_BL, labels_BL))
        for ids, labels in zip(*parts, strict=True):
            if count := int((labels != IGNORED).sum()):
                total += count * float(stock(input_ids=ids[None].to(device), labels=labels[None].to(device)).loss)
    return total


# --- kernels


def time_kernels(order: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    """Milliseconds and memory of the vocabulary head with its loss, and of an update of the weights; bf16."""
    config = PretrainConfig.model_validate(order[2])
    data = TrainingData.open(*order[:2], config)
    device = find_device("auto", "pretrain.engine.device")
    hidden_NH = torch.randn(ROWS_OF_HEAD, config.model.hidden, device=device, requires_grad=True)
    head_VH = torch.randn(data.vocab_size, config.model.hidden, device=device, requires_grad=True)
    targets_N = torch.randint(data.vocab_size, (ROWS_OF_HEAD,), device=device)
    losses: dict[str, Callable[[], Tensor]] = {
        "head, ours": lambda: loss_and_hits(linear(hidden_NH, head_VH), targets_N)[0],
        "head, cross_entropy": lambda: cross_entropy(linear(hidden_NH, head_VH), targets_N, reduction="sum"),
        "head, linear_cross_entropy": lambda: linear_cross_entropy(hidden_NH, head_VH, targets_N, reduction="sum"),
    }
    if find_spec("liger_kernel"):
        from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

        liger = LigerFusedLinearCrossEntropyLoss(reduction="sum")
        losses["head, Liger"] = lambda: liger(head_VH, hidden_NH, targets_N)

    def both_ways(loss: Callable[[], Tensor]) -> None:
        with torch.autocast(device.type, torch.bfloat16):
            total = loss()
        total.backward()

    figures = {name: _time_kernel(partial(both_ways, loss), device) for name, loss in losses.items()}
    network: nn.Module = data.network()
    parameters = list(network.to(device).parameters())
    for p in parameters:
        p.grad = torch.randn_like(p)
    optimizer = adamw(config, parameters)
    figures["update, fused"] = _time_kernel(optimizer.step, device)
    foreach = torch.optim.AdamW(parameters, foreach=True)
    figures["update, foreach"] = _time_kernel(foreach.step, device)
    return figures


def _time_kernel(work: Callable[[], Any], device: torch.device) -> dict[str, Any]:
    """Median milliseconds, and on a GPU the memory that a call adds; a kernel that fails is reported."""
    spent, is_gpu = [], device.type == "cuda"
    before = torch.cuda.memory_allocated() if is_gpu else 0
    try:
        for _ in range(1 + REPEATS):
            if is_gpu:
                torch.cuda.reset_peak_memory_stats()
            wait_for_device(device)
            began = time.perf_counter()
            work()
            wait_for_device(device)
            spent.append(1000 * (time.perf_counter() - began))
    except Exception as error:  # of any kind: the next kernel is timed
        return _problem(error)
    return {"ms": median(spent[1:])} | ({"mib": (torch.cuda.max_memory_allocated() - before) / 2**20} if is_gpu else {})


# --- the page


SPEED = {
    "tokens/s": "{tokens_per_s:,.0f}", "MFU %": "{mfu_percent:.1f}", "GiB": "{peak_gib:.2f}",
    "forecast": "{forecast_of_peak:.2f}", "wait %": "{wait_percent:.2f}", "stall s": "{stall_s:.2f}",
    "start s": "{first_line_s:.0f}", "rows": "{micro_batch}", "eager": "{eager}",
}  # fmt: skip
SPEED_NOTE = (
    "GiB: peak; forecast: divided by the peak. Stall: the longest by a checkpoint. Start: five steps with start-up and "
    "compilation. Rows: at once. Eager: the run fell back to eager code."
)
EQUAL = {"weights": "{weights:.1e}", "loss": "{loss:.1e}", "bit for bit": "{equal}"}
PARITY = {"ours": "{ours:.6f}", "stock class": "{stock:.6f}", "difference": "{difference:.1e}"}


def _tables(parts: Mapping[str, dict[str, Any]]) -> list[Table]:
    """A table for each kind of part."""
    inner = {
        f"{name}, {key}": own for name, part in parts.items() for key, own in part.items() if isinstance(own, dict)
    }
    kinds = (
        ("Training", "tokens_per_s", SPEED, SPEED_NOTE),
        ("Losses of untrained models", "ours", PARITY, ""),
        ("Largest differences between equal runs", "equal", EQUAL, ""),
        ("Kernels, forward and backward", "ms", {"ms": "{ms:.2f}", "MiB": "{mib:.0f}"}, ""),
        ("Problems", "problem", {"problem": "{problem}"}, ""),
    )
    rows = {key: {name: own for name, own in {**parts, **inner}.items() if key in own} for _, key, *_ in kinds}
    return [record_table(title, rows[key], columns, note) for title, key, columns, note in kinds if rows[key]]


def _page(results: Mapping[str, Any]) -> str:
    devices = sorted({part["device"] for part in results["parts"].values() if "device" in part})
    head = f"# Pretraining on {', '.join(devices) or 'a GPU'}\n\n`python -m benchmarks gpu`; {results['versions']}\n"
    return "\n".join([head, *(f"{markdown_table(table)}\n\n{table.note}\n" for table in _tables(results["parts"]))])
