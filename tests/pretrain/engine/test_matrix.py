"""Every engine, number of processes and precision gives the losses of one process with torch alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pretrain.runs import TORCHRUN, finish, launch, lines_without_timing, train

SHARED = [{"engine": "ddp"}, *({"engine": "deepspeed", "zero_stage": n} for n in range(4))]
MODERN = {"architecture": "modernbert", "layers": 2, "packing": "documents"}
MODES = [{}, {"packing": "documents"}, {"architecture": "bert", "nsp": True}, MODERN]


def curve(out: Path) -> list[float]:
    """Loss and gradient norm of each step, and the losses on held-out rows."""
    lines = lines_without_timing(out)
    found = [number for line in lines if "loss" in line for number in (line["loss"], line["grad_norm"])]
    return found + [line["held_out"]["mlm_loss"] for line in lines if "held_out" in line]


def distance(a: list[float], b: list[float]) -> float:
    assert len(a) == len(b)
    return max(abs(x - y) / abs(y) for x, y in zip(a, b, strict=True))


@pytest.mark.matrix
@pytest.mark.parametrize("mode", MODES, ids=["blocks", "documents", "pairs", "modernbert"])
def test_engines_processes_and_precisions_agree(made: Path, tmp_path: Path, tiny, mode: dict) -> None:
    """float32 within 1e-5; bf16 as near to the plain engine's as that is to float32."""
    settings = {"steps": 6, "dropout": 0.0, "clip": 0.5, "log_every": 1, "micro_batch": 2} | mode
    plain = {}
    for precision in ("fp32", "bf16"):
        train(tiny(**settings, engine="plain", precision=precision), made, tmp_path / precision)
        plain[precision] = curve(tmp_path / precision)
    rounding = distance(plain["bf16"], plain["fp32"])
    print(f"\nplain: bf16 is {rounding:.1e} from fp32")
    far = []
    for precision, most in (("fp32", 1e-5), ("bf16", rounding)):
        for place, engine in enumerate(SHARED):
            for processes in (1, 2):
                out = tmp_path / f"{precision}-{place}-{processes}"
                config = tiny(**settings, **engine, precision=precision)
                if processes == 1:
                    train(config, made, out)
                else:
                    finish(launch(config, made, out, TORCHRUN, DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1"))
                found = distance(curve(out), plain[precision])
                print(f"{engine} {precision} {processes}: {found:.1e}")
                if found > most:
                    far.append((engine, precision, processes, found))
    assert not far and rounding > 0
