"""Counts of a plan against published runs, and against what engines were seen to send."""

from __future__ import annotations

import pytest

from launch.cluster.plan.count import ENGINES, Memory, Work, bytes_sent, disk_of, memory, micro_batches, speed, work_of
from launch.cluster.plan.gpus import GPUS
from launch.recipe import Recipe, load_recipe
from pretrain.config import PretrainConfig
from pretrain.engine.memory import CHECKPOINT_BYTES, MODEL_BYTES
from pretrain.metrics.flops import flops_per_token
from tests.pretrain.settings import in_sections

NAMED = {engine.name: engine for engine in ENGINES}
BASE = load_recipe("klue-roberta-base")


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
    recipe = Recipe(name="modernbert", pretrain=settings, tokenizer={"vocab_size": 50_368})
    work = work_of(recipe)
    assert work.tokens == pytest.approx(1.7e12, rel=0.001) and work.parameters == pytest.approx(149e6, rel=0.01)
    assert speed(work, GPUS["h100"], "bf16", 8, 0.25, None).seconds / 3600 == pytest.approx(194, rel=0.1)


def test_the_papers_models_take_as_many_tokens_as_their_table_says() -> None:
    """Table 31: steps x batch x 512; KLUE-BERT's first 90 % of steps are of 128 (BERT's README)."""
    assert work_of(BASE).tokens == 1_000_000 * 2048 * 512
    assert work_of(load_recipe("klue-roberta-large")).tokens == 500_000 * 2048 * 512
    bert = work_of(load_recipe("klue-bert-base"))
    assert bert.tokens == 256 * (900_000 * 128 + 100_000 * 512)
    assert bert.flops_per_token < work_of(BASE).flops_per_token  # attention over 128


@pytest.mark.parametrize(
    (
        "engine",
        "sent",
    ),  # bytes a parameter, seen on the loopback device of two gloo processes, two micro-batches a step
    [("ddp", 4.0), ("ZeRO 0", 4.0), ("ZeRO 1", 6.0), ("ZeRO 2", 10.0)],
)
def test_engines_send_what_two_processes_were_seen_to_send(engine: str, sent: float) -> None:
    config = config_of(global_batch=8)
    work = Work(1_000_000, 1, 1.0, 1, 2_000)
    found = memory(config_of(global_batch=4), work, NAMED[engine], GPUS["h100"], "fp32", 2)
    assert found.sequences == 2  # so the larger step has two micro-batches
    assert bytes_sent(config, work, found, "fp32", 2) == sent * work.parameters


def test_cut_weights_are_gathered_twice_in_each_micro_batch() -> None:
    config, work = config_of(global_batch=64), Work(1_000_000, 1, 1.0, 1, 2_000)
    found = memory(config_of(global_batch=16), work, NAMED["ZeRO 3"], GPUS["h100"], "fp32", 8)
    assert found.sequences == 2  # four micro-batches per step
    assert bytes_sent(config, work, found, "fp32", 8) / (4e6 * 7 / 8) == 3 * 4


def test_the_micro_batch_is_the_largest_that_fits_and_divides_the_rows_of_a_gpu() -> None:
    work, config = work_of(BASE), BASE.pretrain
    assert micro_batches(config, 12 * 8 // 3) == [1, 2, 4, 8, 16, 32, 64]
    small, large = (memory(config, work, NAMED["ddp"], GPUS[name], "bf16", 8) for name in ("a100-40", "a100-80"))
    assert (small.sequences, large.sequences) == (128, 256)
    limit = 0.9 * 40 * (1 << 30)
    assert sum(small.needed) <= limit < sum(small.needed) + small.needed.activations


def test_a_model_too_large_for_one_gpu_fits_where_it_is_cut() -> None:
    sizes = {"layers": 32, "hidden": 3072, "heads": 32, "intermediate": 12_288}
    recipe = Recipe(name="huge", pretrain=config_of(**sizes))
    work = work_of(recipe)
    found = {name: memory(recipe.pretrain, work, one, GPUS["a100-40"], "bf16", 8) for name, one in NAMED.items()}
    assert work.parameters == pytest.approx(3.7e9, rel=0.01)
    assert not found["ddp"].fits and not found["ZeRO 1"].fits and found["ZeRO 3"].fits
    assert found["ddp"].needed.weights == 4 * work.parameters  # what one sequence would take


def test_disk_is_what_training_asks_for_before_it_begins() -> None:
    disk, parameters = disk_of(BASE.pretrain, work_of(BASE)), work_of(BASE).parameters
    assert disk.checkpoint == CHECKPOINT_BYTES * parameters == disk.model + disk.optimizer
    assert disk.run == parameters * (CHECKPOINT_BYTES * (2 + 2) + MODEL_BYTES)


def test_every_way_is_refused_where_training_would_refuse_it() -> None:
    fp16 = {name for name, engine in NAMED.items() if not engine.refuses("fp16")}
    assert fp16 == {"ZeRO 1", "ZeRO 2", "ZeRO 3"}


def test_a_way_that_fits_nothing_says_so() -> None:
    found = memory(BASE.pretrain, Work(10**12, 1, 1.0, 1, 32_000), NAMED["ddp"], GPUS["h200"], "bf16", 8)
    assert isinstance(found, Memory) and found.sequences == 0 and not found.fits
