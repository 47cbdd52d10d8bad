"""``malmoi plan``: what it prints and writes for every recipe, and that bad input is one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launch.recipe import load_recipe, shipped_recipes
from tests.command import Outcome, run_command

Malmoi = Callable[..., Outcome]


@pytest.fixture
def malmoi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Malmoi:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: run_command(capfd, "plan", *arguments)


def written(malmoi: Malmoi, *arguments: str) -> dict[str, Any]:
    result = malmoi(*arguments, "--json", "plan.json")
    assert result.code == 0, result.errors
    return json.loads(Path("plan.json").read_text("utf-8"))


@pytest.mark.parametrize("name", [name for name in shipped_recipes() if load_recipe(name).pretrain.init_from is None])
def test_every_recipe_with_sizes_of_its_own_has_a_plan(name: str, malmoi: Malmoi) -> None:
    result = malmoi(name, "--gpus-per-node", "1")
    assert result.code == 0, result.errors
    assert result.output.startswith(f"{name}: ") and "disk: model" in result.output


def test_the_whole_of_a_plan_is_shown(malmoi: Malmoi) -> None:
    result = malmoi("klue-roberta-base", "--gpu", "a100-80", "--nodes", "1", "--nodes", "4", "--price-per-hour", "2")
    shown = result.output
    assert "110.65 M parameters, 554.9 MFLOP a token; 1,000,000 steps of 2,048 rows, 1.05e12 tokens" in shown
    assert "Time at 25% / 40% of the peak" in shown and "1.12 / 1.80" in shown and "4 x 8" in shown
    assert "Memory of each of 8 GPUs in bf16" in shown and "ZeRO 3" in shown
    assert "Network of 4 x 8 GPUs in bf16" in shown
    assert "a checkpoint 1.24; at most 5.36 GiB at once (2 kept" in shown
    assert "fp16" not in shown


def test_figures_are_written_for_every_gpu_number_of_nodes_share_and_engine(malmoi: Malmoi) -> None:
    given = ("--gpu", "h100", "--gpu", "v100-32", "--nodes", "1", "--nodes", "2", "--mfu", "0.3")
    found = written(malmoi, "klue-roberta-small", *given, "--price-per-hour", "4", "--price-per-hour", "1")
    assert [(run["gpu"], run["gpus"]) for run in found["runs"]] == [
        ("h100", 8), ("h100", 16), ("v100-32", 8), ("v100-32", 16),
    ]  # fmt: skip
    one, two, *old = found["runs"]
    assert one["seconds"] == pytest.approx(2 * two["seconds"]) and one["cost"] == pytest.approx(two["cost"])
    assert one["cost"] == pytest.approx(one["seconds"] / 3600 * 8 * 4)
    assert old[0]["seconds"] == pytest.approx(one["seconds"] * 989.5 / 125)
    assert old[0]["cost"] == pytest.approx(old[0]["seconds"] / 3600 * 8 * 1)
    engines = [(row["gpu"], row["engine"]) for row in found["memory"] if row["nodes"] == 1]
    assert len(engines) == 5 + 3 and ("v100-32", "ddp") not in engines  # fp16 is DeepSpeed's alone


def test_overrides_and_settings_of_the_recipe_count(malmoi: Malmoi) -> None:
    plain = written(malmoi, "klue-roberta-base", "--gpu", "h200")
    short = written(malmoi, "klue-roberta-base", "pretrain.steps=250000", "--gpu", "h200")
    assert short["runs"][0]["seconds"] == pytest.approx(plain["runs"][0]["seconds"] / 4)
    exact = written(malmoi, "klue-roberta-base", "pretrain.engine.precision=fp32", "--gpu", "v100-32")
    assert {row["precision"] for row in exact["memory"]} == {"fp32"}
    assert exact["runs"][0]["tokens_per_second"] == pytest.approx(8 * 15.7e12 * 0.25 / exact["work"]["flops_per_token"])
    price = written(malmoi, "klue-roberta-base", "--price-per-hour", "2", "--gpu", "h100")
    assert price["runs"][0]["cost"] == pytest.approx(price["runs"][0]["seconds"] / 3600 * 8 * 2)


def test_a_gpu_without_bf16_is_planned_in_fp16_and_says_what_to_set(malmoi: Malmoi) -> None:
    assert (
        "v100-32: no bf16, so planned in fp16; set pretrain.engine.precision=fp16 (DeepSpeed)"
        in malmoi("klue-roberta-base", "--gpu", "v100-32").output
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("klue-roberta-bass",), "did you mean klue-roberta-base?"),
        (("klue-roberta-base", "--gpu", "b300"), "--gpu b300: unknown GPU; use one of v100-16"),
        (("klue-roberta-base", "--gpus-per-node", "3"), "is not divisible by 3 GPUs; set it to a multiple of 3"),
        (
            ("klue-roberta-base", "--gpu", "h100", "--price-per-hour", "1", "--price-per-hour", "2"),
            "2 prices for 1 GPU",
        ),
        (("klue-roberta-base", "pretrain.engine.precision=bf16", "--gpu", "v100-16"), "v100-16 has no bf16"),
        (("klue-roberta-base", "pretrain.stepps=1"), "did you mean pretrain.steps?"),
        (("continued",), "its sizes are those of pretrain.init_from (klue/roberta-base)"),
    ],
)
def test_bad_input_is_one_sentence(arguments: tuple[str, ...], words: str, malmoi: Malmoi) -> None:
    malmoi(*arguments).refused(words)


@pytest.mark.parametrize(
    "arguments", [("--nodes", "0"), ("--mfu", "1.5"), ("--mfu", "nan"), ("--price-per-hour", "-1")]
)
def test_figures_out_of_range_are_refused(arguments: tuple[str, ...], malmoi: Malmoi) -> None:
    assert malmoi("klue-roberta-base", *arguments).code == 2


def test_planning_needs_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = None\n"
        "import malmoi; sys.argv = ['malmoi', 'plan', 'klue-bert-base']; malmoi.main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
