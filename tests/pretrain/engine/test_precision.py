"""What a recipe leaves to the machine is settled once, the same for all processes, and remembered."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from corpus.documents import accelerator as device
from corpus.documents.errors import BadInput
from pretrain.checkpoint.checkpoints import Checkpoints
from pretrain.engine import auto_settings
from pretrain.engine.auto_settings import read_earlier_settings, with_precision
from pretrain.engine.world import World

from ..runs import train

ALONE = World(0, 1, torch.device("cpu"))


@pytest.fixture
def bf16_runs_at(monkeypatch: pytest.MonkeyPatch):
    return lambda times: monkeypatch.setattr(
        device, "matmul_flops_per_second", lambda kind, precision: 1e11 * (times if precision == "bf16" else 1)
    )


def test_the_default_leaves_the_precision_to_the_machine(tiny, bf16_runs_at) -> None:
    config = tiny(precision="auto", zero_stage=1)
    for times, chosen in ((0.1, "fp32"), (4, "bf16")):
        bf16_runs_at(times)
        settled = with_precision(config, ALONE, {})
        assert settled == config.replaced("engine", precision=chosen)


@pytest.mark.parametrize(
    ("capability", "requested", "chosen"),
    [
        ((7, 0), "auto", "fp16"),  # V100
        ((7, 5), "auto", "fp16"),  # T4
        ((7, 5), "fp32", "fp32"),
        ((6, 1), "auto", "fp32"),  # no tensor cores
        ((8, 0), "auto", "bf16"),  # A100
    ],
)
def test_gpus_without_bf16_but_with_tensor_cores_train_in_fp16(
    tiny, monkeypatch: pytest.MonkeyPatch, caplog, capability: tuple[int, int], requested: str, chosen: str
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: capability)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: capability >= (8, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=None: "a GPU")
    with caplog.at_level(logging.INFO):
        settled = with_precision(tiny(precision=requested), World(0, 1, torch.device("cuda")), {})
    assert settled.engine.precision == chosen
    assert ("so fp16 with loss scaling" in caplog.text) == (chosen == "fp16")


def test_the_first_process_decides_for_all(tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_settings, "choose_precision", lambda *_: pytest.fail("only the first process may ask"))
    for answer in (device.PrecisionChoice("fp32", "chosen by the first"), BadInput("this GPU has no bf16")):
        monkeypatch.setattr(World, "broadcast", lambda self, thing, answer=answer: answer)
        other = World(1, 2, torch.device("cpu"))
        if isinstance(answer, BadInput):
            with pytest.raises(BadInput, match="no bf16"):
                with_precision(tiny(precision="auto"), other, {})
        else:
            assert with_precision(tiny(precision="auto"), other, {}).engine.precision == "fp32"


def test_a_run_moves_to_a_machine_that_chooses_otherwise_and_says_so(
    made: Path, tmp_path: Path, tiny: Callable[..., Any], bf16_runs_at, caplog, monkeypatch
) -> None:
    config = tiny(precision="auto", zero_stage=1, steps=6, checkpoint_every=2)
    saved = Checkpoints.save

    def stop_after_four(self, engine, progress, meter_state, held_out):
        saved(self, engine, progress, meter_state, held_out)
        if progress["step"] == 4:
            self.wait()  # Ctrl-C would end the process, and with it the thread that writes
            raise KeyboardInterrupt

    bf16_runs_at(0.1)
    monkeypatch.setattr(Checkpoints, "save", stop_after_four)
    with pytest.raises(KeyboardInterrupt):
        train(config, made, tmp_path)
    monkeypatch.setattr(Checkpoints, "save", saved)
    assert read_earlier_settings(tmp_path / "engine.json")["precision"] == "fp32"
    bf16_runs_at(4)
    with caplog.at_level(logging.INFO):
        result = train(config, made, tmp_path)
    assert "precision changed from fp32 to bf16; resuming in bf16" in caplog.text and "resuming from" in caplog.text
    assert result["step"] == 6 and result["engine"]["precision"] == "bf16"
    loop = json.loads((tmp_path / "checkpoints" / "step-000000006" / "loop.json").read_text("utf-8"))
    assert loop["config"]["engine"]["precision"] == "auto"  # the recipe's word: the run may move again
    assert "bf16" in (tmp_path / "model" / "README.md").read_text("utf-8")


@pytest.mark.parametrize("content", ['{"settled', "[]", '{"settled": {"precision": "bf17"}}'])
def test_a_broken_engine_json_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "engine.json").write_text(content, "utf-8")
    with pytest.raises(BadInput, match=r"engine\.json: .*delete this file; it is written again"):
        read_earlier_settings(tmp_path / "engine.json")
