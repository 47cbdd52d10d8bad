"""``malmoi pretrain RECIPE --dry-run --gpus …``: figures against published runs, and every error is one sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from launch.checks.estimate import planned_flops, planned_tokens
from launch.checks.gpu_plan import plan_on_gpus
from launch.recipe import Recipe, load_recipe, shipped_recipes
from pretrain.config import PretrainConfig
from pretrain.metrics.flops import flops_per_token
from tests.command import Outcome, run_command
from tests.pretrain.settings import in_sections

Malmoi = Callable[..., Outcome]
BASE = load_recipe("klue-roberta-base")
NAMES = [name for name in shipped_recipes() if load_recipe(name).pretrain.init_from is None]


@pytest.fixture
def malmoi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Malmoi:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: run_command(capfd, "pretrain", *arguments)


def config_of(**fields: object) -> PretrainConfig:
    return PretrainConfig.model_validate(in_sections(fields))


@pytest.mark.parametrize(("length", "predictions", "samples", "tflops"), [(128, 20, 272, 64), (512, 80, 52, 53)])
def test_operations_are_those_that_deepspeed_published_for_bert_large(
    length: int, predictions: int, samples: int, tflops: int
) -> None:
    """Its post of 2020-05-28: samples and TFLOP a second of one V100; the last layer was as wide as the others."""
    sizes = {"layers": 24, "hidden": 1024, "heads": 16, "intermediate": 4096, "packing": "documents"}
    config = config_of(sequence_length=length, masking={"share": predictions / length}, **sizes)
    assert samples * length * flops_per_token(config, 30_528) / 1e12 == pytest.approx(tflops, rel=0.04)


def test_modernberts_published_hours_are_those_of_a_quarter_of_the_peak() -> None:
    """1.7 T tokens in 194 hours of eight H100 (arXiv 2412.13663); most of them at 1,024 tokens and a share of 30 %."""
    settings = config_of(
        architecture="modernbert", layers=22, intermediate=1152, positions=1024, sequence_length=1024,
        masking={"share": 0.3}, packing="documents", global_batch=4608, steps=360_000,
    )  # fmt: skip
    plan = plan_on_gpus(Recipe(name="modernbert", pretrain=settings, tokenizer={"vocab_size": 50_368}), "8xh100")
    assert planned_tokens(plan.recipe) == pytest.approx(1.7e12, rel=0.001)
    assert plan.parameters == pytest.approx(149e6, rel=0.01)
    assert plan.seconds[0] / 3600 == pytest.approx(194, rel=0.1)


def test_the_papers_models_take_as_many_tokens_as_their_table_says() -> None:
    """Table 31: steps x batch x 512; KLUE-BERT's first 90 % of steps are of 128 (BERT's README)."""
    assert planned_tokens(BASE) == 1_000_000 * 2048 * 512
    bert = load_recipe("klue-bert-base")
    assert planned_tokens(bert) == 256 * (900_000 * 128 + 100_000 * 512)
    assert planned_flops(bert) / planned_tokens(bert) < planned_flops(BASE) / planned_tokens(BASE)


def test_the_largest_micro_batch_that_fits_divides_the_rows_of_a_gpu() -> None:
    most = {}
    for gpu in ("a100-40", "a100-80"):
        most[gpu] = {engine: size for engine, size, _ in plan_on_gpus(BASE, f"8x{gpu}").memory()}
    assert (most["a100-40"]["ddp"], most["a100-80"]["ddp"]) == (128, 256)


def test_a_model_too_large_for_one_gpu_fits_where_it_is_sharded() -> None:
    sizes = {"layers": 32, "hidden": 3072, "heads": 32, "intermediate": 12_288}
    plan = plan_on_gpus(Recipe(name="huge", pretrain=config_of(**sizes)), "8xA100-40")
    found = {name: (most, needed) for name, most, needed in plan.memory()}
    assert plan.parameters == pytest.approx(3.7e9, rel=0.01)
    assert found["ddp"][0] == found["ZeRO 1"][0] == 0 < found["ZeRO 3"][0]
    assert found["ddp"][1].weights == 4 * plan.parameters


def test_twice_the_gpus_take_half_the_time() -> None:
    one, two = (plan_on_gpus(BASE, f"{count}xh100").seconds for count in (8, 16))
    assert one == tuple(pytest.approx(2 * seconds) for seconds in two)


@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_with_sizes_of_its_own_has_a_plan(name: str, malmoi: Malmoi) -> None:
    result = malmoi(name, "--dry-run", "--gpus", "h100")
    assert result.code == 0, result.errors
    assert result.output.startswith(f"{name}: ") and "ZeRO 3" in result.output


def test_a_gpu_without_bf16_is_planned_in_fp16(malmoi: Malmoi) -> None:
    printed = malmoi("klue-roberta-base", "--dry-run", "--gpus", "8xv100-32").output
    assert "8 x v100-32 in fp16" in printed and "ddp" in printed
    assert "ZeRO 1" in printed and "ZeRO 0" not in printed  # which keeps no exact weights


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("klue-roberta-base", "--gpus", "h100"), "add --dry-run"),
        (("klue-roberta-base", "--dry-run", "--gpus", "b300"), "GPUs are v100-16"),
        (("klue-roberta-base", "--dry-run", "--gpus", "0xh100"), "such as 8xa100-80"),
        (("klue-roberta-base", "--dry-run", "--gpus", "3xh100"), "not divisible by 3 GPUs; set it to a multiple of 3"),
        (("klue-roberta-base", "pretrain.engine.precision=bf16", "--dry-run", "--gpus", "v100-16"), "has no bf16"),
        (("continued", "--dry-run", "--gpus", "h100"), "its sizes are those of pretrain.init_from (klue/roberta-base)"),
    ],
)
def test_bad_input_is_one_sentence(arguments: tuple[str, ...], words: str, malmoi: Malmoi) -> None:
    malmoi(*arguments).refused(words)


def test_planning_needs_no_torch() -> None:
    words = ["malmoi", "pretrain", "klue-bert-base", "--dry-run", "--gpus", "h100"]
    code = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = None\n"
        f"import malmoi; sys.argv = {words}; malmoi.main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
