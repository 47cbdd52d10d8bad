"""The results of the pretrain bench: tables on the terminal, and files to keep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


def print_results(results: dict[str, Any], console: Console) -> None:
    """A table for each part that was measured, and one for each profile."""
    console.print(f"Token store: {results['material']}")
    if "loader" in results:
        console.print(_loader(results["loader"]))
    if "trainer" in results:
        console.print(_trainer(results["trainer"]))
    if "sizes" in results:
        print_sizes(results["sizes"], console)


def print_sizes(found: dict[str, Any], console: Console) -> None:
    """Sizes and modes, then the profiles."""
    console.print(_sizes(found))
    for row in found["rows"]:
        if isinstance(row.get("profile"), dict):
            console.print(_profile(row))


def write_results(results: dict[str, Any], out: Path) -> None:
    """``bench.json``, and ``losses.svg`` where training was compared."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "bench.json").write_text(json.dumps(results, ensure_ascii=False, indent=2) + "\n", "utf-8")
    if "trainer" in results:
        curves = {name: row["curve"] for name, row in results["trainer"]["rows"].items()}
        _write_curves(curves, out / "losses.svg")


def _loader(found: dict[str, Any]) -> Table:
    table = _table(
        "Loading and masking",
        f"Rows of {found['length']} tokens, {found['tokens']:,} tokens a round, CPU time of one core, medians of "
        f"{found['rounds']} rounds in turns. transformers shows [MASK] for every piece when it masks whole words.",
        "way", "M tokens/s", "times", "predicted", "of it [MASK]",
    )  # fmt: skip
    for name, row in found["rows"].items():
        shares = (f"{100 * row[share]:.1f} %" for share in ("predicted_share", "mask_share"))
        table.add_row(name, f"{row['m_tokens_per_s']:.2f}", f"{row['times']:.1f}", *shares)
    return table


def _trainer(found: dict[str, Any]) -> Table:
    config = found["config"]
    table = _table(
        "Training beside transformers' Trainer",
        f"{config['layers']} layers x {config['hidden']}, {config['steps']} steps of {config['global_batch']} x "
        f"{config['sequence_length']}, {config['precision']}, {found['threads']} threads, medians of {found['rounds']} "
        f"runs in turns: {found['times_faster_cpu']:.2f} times the tokens of the Trainer in CPU time, "
        f"{found['times_faster_wall']:.2f} times in wall time. Held-out losses under equal masks of both kinds.",
        "", "tokens/CPU s", "tokens/s", "MiB", "last loss", "held out, whole words", "single pieces",
    )  # fmt: skip
    for name, row in found["rows"].items():
        losses = (row["curve"]["losses"][-1], row["held_out"]["whole_words"], row["held_out"]["single_pieces"])
        speeds = (f"{row[figure]:,.0f}" for figure in ("tokens_per_cpu_s", "tokens_per_s", "peak_mib"))
        table.add_row(name, *speeds, *(f"{loss:.3f}" for loss in losses))
    return table


def _sizes(found: dict[str, Any]) -> Table:
    peak = f"{found['peak_tflops']:.1f} TFLOP/s" if found["peak_tflops"] else "an unknown peak: no MFU"
    table = _table(
        "Sizes and modes",
        f"{found['device']}, {found['precision']}, rows of {found['length']} tokens, {found['accumulation']} "
        f"micro-batches a step, padding not counted; MFU of {peak}.",
        "size", "packing", "compiled", "micro-batch", "tokens/s", "MFU", "GiB", "data wait",
    )  # fmt: skip
    for row in found["rows"]:
        first = (row["size"], row["packing"], "yes" if row["compile"] else "no", str(row["micro_batch"]))
        if "failed" in row:
            table.add_row(*first, row["failed"], style="dim")
            continue
        mfu = f"{100 * row['mfu']:.1f} %" if row["mfu"] else "–"
        wait = f"{100 * row['data_wait_share']:.1f} %"
        table.add_row(*first, f"{row['tokens_per_s']:,.0f}", mfu, f"{row['memory_gib']:.1f}", wait)
    return table


def _profile(row: dict[str, Any]) -> Table:
    profile = row["profile"]
    mode = f"{row['size']}, {row['packing']}, {'compiled' if row['compile'] else 'eager'}, {row['micro_batch']} rows"
    table = _table(
        f"Where the time goes: {mode}",
        f"Kernels take {100 * profile['busy_share']:.0f} % of the wall time. Largest: "
        + "; ".join(f"{kernel['name'][:60]} {100 * kernel['share']:.0f} %" for kernel in profile["kernels"][:5]),
        "kind", "share",
    )  # fmt: skip
    for kind, share in profile["kinds"].items():
        table.add_row(kind, f"{100 * share:.1f} %")
    return table


def _table(title: str, caption: str, first: str, *numbers: str) -> Table:
    table = Table(
        title=title, caption=caption, title_justify="left", caption_justify="left", padding=(0, 0), min_width=76
    )
    table.add_column(first)
    for column in numbers:
        table.add_column(column, justify="right")
    return table


def _write_curves(curves: dict[str, dict[str, list[float]]], path: Path) -> None:
    from matplotlib.figure import Figure

    from launch.plotting import ACCENT, SECOND, STYLE, matplotlib

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.6, 3.0), layout="constrained")
        axes = figure.subplots()
        for (name, curve), color in zip(curves.items(), (ACCENT, SECOND), strict=True):
            axes.plot(curve["steps"], curve["losses"], color=color, linewidth=1.8, label=name)
        axes.set(xlabel="optimizer step", ylabel="masked-LM loss on training masks (nats)")
        axes.legend(frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
