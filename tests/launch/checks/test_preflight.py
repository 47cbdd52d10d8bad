"""All problems that would stop a run are reported before its first stage, and nothing is written."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from launch.checks.estimate import GIB, Machine, estimate, this_machine, with_local_sizes
from launch.checks.preflight import NO_KLUE_FILES, NO_TEXT, find_problems, format_problems, needs_deepspeed
from launch.conduct import conduct
from launch.errors import LaunchError
from launch.manifest import Head
from launch.pipeline import stages_of
from launch.recipe import load_recipe
from pretrain.metrics.device_speed import Speed

LAPTOP = Machine(cores=2, memory=8 * GIB, gpu=None, devices=1)
CLUSTER = Machine(cores=64, memory=512 * GIB, gpu=272e12, devices=8)


def problems_of(
    tmp_path: Path, *overrides: str, recipe: str = "smoke", machine: Machine = LAPTOP, verb: str = "run"
) -> str:
    loaded = load_recipe(recipe, overrides)
    return "\n".join(find_problems(verb, stages_of(verb, loaded), loaded, tmp_path / "run", machine))


def test_the_demo_has_no_problems(tmp_path: Path) -> None:
    assert problems_of(tmp_path) == ""


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("corpus.inputs=", "corpus.inputs: set files, folders or globs"),
        ("corpus.inputs=absent.jsonl", "absent.jsonl"),
        ("finetune.data=", "finetune.data: set the folder"),
        ("finetune.data=nowhere", "nowhere: no such file or folder"),
        ("finetune.data=pyproject.toml", "pyproject.toml: no such folder; expected a folder laid out"),
        ("corpus.benchmarks=[pyproject.toml]", "pyproject.toml: not a benchmark file"),
        ("corpus.pii.names.model=pyproject.toml", "corpus.pii.names.model pyproject.toml: no such folder"),
        ("pretrain.continue_from=tests", "pretrain.continue_from tests: no complete checkpoint there"),
        ("finetune.models=./nothing/here", "./nothing/here: no such folder"),
        ("pretrain.steps=2000000000", "there is no GPU"),
        ("launch.engine=slurm", "launch.engine=slurm needs"),
    ],
)
def test_each_problem_is_one_sentence(
    tmp_path: Path, override: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launch.executors.slurm.shutil.which", lambda name: None)
    assert words in problems_of(tmp_path, override)


@pytest.mark.parametrize(
    ("module", "override", "message"),
    [
        ("kiwipiepy", "tokenizer.analyser=kiwi", "tokenizer.analyser=kiwi needs kiwipiepy: pip install 'malmoi[kiwi]'"),
        ("peft", "finetune.lora.rank=8", "finetune.lora needs peft: pip install 'malmoi[lora]'"),
        (
            "deepspeed", "pretrain.engine.name=deepspeed",
            "pretrain.engine.name=deepspeed needs deepspeed: pip install",
        ),
    ],
)  # fmt: skip
def test_a_missing_extra_stops_only_the_recipes_that_need_it(
    module: str, override: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launch.errors.find_spec", lambda name: None if name == module else find_spec(name))
    assert problems_of(tmp_path) == ""
    assert message in problems_of(tmp_path, override)
    assert problems_of(tmp_path, override).count(f"needs {module}") == 1


@pytest.mark.parametrize(("recipe", "processes", "needed"), [
    ("klue-roberta-base", 8, False), ("klue-roberta-large", 8, False), ("klue-roberta-large", 1, False),
])  # fmt: skip
def test_ddp_is_enough_for_the_papers_models(recipe: str, processes: int, needed: bool) -> None:
    assert needs_deepspeed(load_recipe(recipe), processes) is needed


def test_large_models_in_several_processes_need_deepspeed() -> None:
    recipe = load_recipe("klue-roberta-large", ["pretrain.model.layers=48"])
    assert needs_deepspeed(recipe, 8) and not needs_deepspeed(recipe, 1)


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    found = problems_of(tmp_path, "corpus.inputs=absent.jsonl", "finetune.models=./nothing/here")
    assert "absent.jsonl" in found and "./nothing/here" in found


def test_missing_klue_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "klue").mkdir()
    found = problems_of(tmp_path, f"finetune.data={tmp_path / 'klue'}", "finetune.tasks=ynat")
    assert "missing ynat-v1.1/ynat-v1.1_train.json, ynat-v1.1/ynat-v1.1_dev.json" in found
    assert found.count("ynat-v1.1_dev.json") == 1


def test_the_papers_plan_needs_a_gpu_and_gets_one(tmp_path: Path) -> None:
    given = ("corpus.inputs=malmoi:sample", "finetune.data=malmoi:sample")
    assert "231 years" in problems_of(tmp_path, *given, recipe="klue-roberta-base")
    assert problems_of(tmp_path, *given, recipe="klue-roberta-base", machine=CLUSTER) == ""


def test_weights_that_no_memory_holds_stop_the_run(tmp_path: Path) -> None:
    assert "weights and optimizer alone need" in problems_of(
        tmp_path, "pretrain.model.hidden=16384", "pretrain.model.heads=128"
    )


def manifest(folder: Path, head: dict[str, Any], name: str = "manifest.json") -> None:
    folder.mkdir(parents=True)
    (folder / name).write_text(json.dumps(head), "utf-8")


def test_a_folder_of_another_recipe_is_reported_before_the_run(tmp_path: Path) -> None:
    settings = load_recipe("smoke", ["tokenizer.vocab_size=3000"]).tokenizer.model_dump(mode="json")
    head = {"stage": "tokenizer", "settings": settings, "inputs": {}, "key": "sha256:0"}
    manifest(tmp_path / "run" / "tokenizer", head)
    found = problems_of(tmp_path)
    assert "tokenizer: made with another recipe" in found and "settings.vocab_size: was 3000, is now 4000" in found


def test_changed_inputs_and_foreign_files_are_reported_before_the_run(tmp_path: Path) -> None:
    text, run = tmp_path / "text.txt", tmp_path / "run"
    text.write_text("가나다", "utf-8")
    recipe = load_recipe("smoke", [f"corpus.inputs={text}"])
    corpus = next(stage for stage in stages_of("corpus", recipe) if stage.name == "corpus")
    inputs = {"sample": "sha256:0"} | {name: compute() for name, compute in corpus.user_inputs(recipe).items()}
    manifest(run / "corpus", Head("corpus", corpus.settings(recipe), inputs).as_json())
    manifest(run / "sample", {"stage": "sample", "key": "sha256:0", "settings": {}, "inputs": {}})
    assert "text.txt" not in problems_of(tmp_path, f"corpus.inputs={text}")
    text.write_text("라마바사", "utf-8")
    assert "text.txt: was" in problems_of(tmp_path, f"corpus.inputs={text}")
    (run / "tokens").mkdir()
    (run / "tokens" / "holiday.jpg").touch()
    assert "tokens: holds files that malmoi did not write" in problems_of(tmp_path, f"corpus.inputs={text}")


def test_new_encoders_of_a_finished_finetune_are_checked_first(tmp_path: Path) -> None:
    settings = load_recipe("smoke").finetune.model_dump(mode="json", exclude={"device", "price_per_hour"})
    head = Head("finetune", settings, {"model": "sha256:0", "sample": "sha256:0"})
    manifest(tmp_path / "run" / "finetune", head.as_json())
    assert problems_of(tmp_path, "finetune.models=./nothing/here") == problems_of(
        tmp_path / "new", "finetune.models=./nothing/here"
    )
    assert problems_of(tmp_path, "finetune.seeds=1,2") == ""


def test_broken_benchmark_files_are_found_before_the_corpus_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "klue" / "ynat-v1.1"
    folder.mkdir(parents=True)
    for split in ("train", "dev"):
        record = {"guid": f"ynat-v1_{split}_00000", "title": f"제목 {split}", "label": "체육"}
        (folder / f"ynat-v1.1_{split}.json").write_text(json.dumps([record], ensure_ascii=False), "utf-8")
    found = problems_of(tmp_path, f"finetune.data={tmp_path / 'klue'}", "finetune.tasks=ynat")
    assert "ynat-v1.1_dev.json" in found and "체육" in found
    assert "체육" in problems_of(tmp_path, f"finetune.data={tmp_path / 'klue'}", "finetune.tasks=ynat", verb="finetune")


def test_an_earlier_stage_that_is_missing_is_named_with_its_verb(tmp_path: Path) -> None:
    assert "run `malmoi corpus` with the same recipe first" in problems_of(tmp_path, verb="tokenizer")


def test_a_run_with_problems_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="no such folder"):
        conduct("run", "smoke", ["finetune.models=./nothing/here"], tmp_path / "runs", dry_run=False)
    assert not (tmp_path / "runs").exists()


def test_the_plan_is_complete_although_a_file_of_a_custom_task_is_missing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("finetune: {models: [./none], custom: {hate: {kind: label, train: no.csv, dev: no.csv}}}\n")
    with pytest.raises(SystemExit):
        conduct("finetune", str(recipe), [], tmp_path / "runs", dry_run=True)
    shown = capsys.readouterr().out
    assert "no.csv: no such file" in shown and "Settings of this recipe" in shown


def test_the_settings_of_the_recipe_are_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    conduct("run", "smoke", ["pretrain.steps=7"], tmp_path, dry_run=True)
    shown = yaml.safe_load(capsys.readouterr().out.partition("Settings of this recipe")[2].partition(":\n")[2])
    assert shown["pretrain"]["steps"] == 7 and "betas" not in shown["pretrain"]
    assert shown["finetune"]["overrides"]["wos"] == {"lr": 2e-3, "epochs": 8, "batch_size": 4, "max_tokens": 128}
    assert not {"pack", "launch"} & shown.keys()


def test_estimates_grow_with_the_work_and_shrink_with_the_machine() -> None:
    short, long = (estimate("pretrain", load_recipe("smoke", [f"pretrain.steps={n}"]), LAPTOP) for n in (100, 200))
    assert short.seconds is not None and long.seconds == pytest.approx(2 * short.seconds)
    fast = estimate("pretrain", load_recipe("smoke"), CLUSTER)
    assert fast.seconds is not None and fast.seconds < 1


INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path
from launch import conduct as module
from launch.pipeline import stages_of
from launch.recipe import load_recipe

recipe = load_recipe("smoke")
run = Path(sys.argv[1])
with module.exit_on_ctrl_c(run, stages_of("run", recipe)):
    if sys.argv[2] == "pool":
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            pool.submit(time.sleep, 0).result()
            print("ready", flush=True)
            pool.submit(time.sleep, 600).result()
    print("ready", flush=True)
    time.sleep(600)
"""


def test_continued_training_is_estimated_with_the_sizes_of_its_checkpoint(tmp_path: Path) -> None:
    from transformers import RobertaConfig

    RobertaConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128).save_pretrained(
        tmp_path / "small"
    )
    recipe = load_recipe("continued", [f"pretrain.init_from={tmp_path / 'small'}", "tokenizer.extend=768"])
    known = with_local_sizes(recipe)
    assert (known.pretrain.model.hidden, known.pretrain.model.layers, known.pretrain.model.intermediate) == (64, 2, 128)
    assert known.tokenizer.vocab_size == 50_265 + 768
    assert 0 < (estimate("pretrain", recipe, CLUSTER).seconds or 0) < 3600
    elsewhere = load_recipe("continued", ["pretrain.init_from=nobody/has-this"])
    assert estimate("pretrain", elsewhere, CLUSTER).seconds is None


@pytest.mark.parametrize("kind", ["alone", "pool"])
def test_ctrl_c_ends_with_one_line_and_code_130(tmp_path: Path, kind: str) -> None:
    manifest(tmp_path / "sample", {"key": "k"})
    script = tmp_path / "script.py"
    script.write_text(f"if __name__ == '__main__':\n    exec({INTERRUPTED!r})\n", "utf-8")
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path), kind], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    (line,) = errors.strip().splitlines()
    assert "stopped in corpus;" in line and "to resume" in line


def test_a_hub_name_without_network_is_reported_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr("launch.checks.preflight.getproxies", dict)
    monkeypatch.setattr("socket.getaddrinfo", no_network)
    found = problems_of(tmp_path, "finetune.models=nobody/encoder")
    assert found == "nobody/encoder: no such folder, and the Hub cannot be reached; go online, or name a folder"


@pytest.mark.parametrize("way", ["cached", "proxy", "name server"])
def test_a_hub_model_is_read_if_it_is_cached_or_the_hub_may_be_reached(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_address(*_: object) -> list[object]:
        if way != "name server":
            raise OSError("Name or service not known")
        return []

    read: list[str] = []
    monkeypatch.setattr("socket.getaddrinfo", find_address)
    monkeypatch.setattr("launch.checks.preflight.getproxies", lambda: {"https": "a:1"} if way == "proxy" else {})
    cached = "config.json" if way == "cached" else None
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda name, file: cached)
    monkeypatch.setattr("finetune.run.check_encoder", read.append)
    monkeypatch.setattr("finetune.run.settings_of", lambda *given: None)
    assert problems_of(tmp_path, "finetune.models=somebody/encoder") == ""
    assert read == ["somebody/encoder"]


def test_unusable_devices_are_reported_before_the_run(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("launch.checks.preflight.has_nvidia_devices", lambda: True)
    monkeypatch.setattr("corpus.documents.accelerator.has_nvidia_devices", lambda: True)
    monkeypatch.setattr("torch.accelerator.is_available", lambda: False)
    found = problems_of(tmp_path).splitlines()
    assert [line.rpartition("set ")[2] for line in found] == ["finetune.device=cpu", "pretrain.engine.device=cpu"]
    assert problems_of(tmp_path, "pretrain.engine.device=cpu", "finetune.device=cpu") == ""


def test_emulated_bf16_is_estimated_at_its_real_speed(monkeypatch) -> None:
    rates = {"fp32": 100e9, "bf16": 5e9}
    for module in ("corpus.documents.accelerator", "launch.checks.estimate"):  # auto decides by the first
        monkeypatch.setattr(f"{module}.matmul_flops_per_second", lambda kind, name: rates[name])
    monkeypatch.setattr("launch.checks.estimate.cpu_speed", lambda config, _: Speed(rates[config.engine.precision]))
    seconds = {
        name: estimate("pretrain", recipe, this_machine(recipe)).seconds or 0
        for name in ("fp32", "bf16")
        for recipe in [load_recipe("smoke", [f"pretrain.engine.precision={name}"])]
    }
    assert seconds["bf16"] == pytest.approx(20 * seconds["fp32"])


def test_settings_are_missing_only_if_nothing_else_is_wrong() -> None:
    assert format_problems("mine", [NO_TEXT]).startswith("mine: 1 setting is missing\n")
    assert format_problems("mine", [NO_TEXT, NO_KLUE_FILES]).startswith("mine: 2 settings are missing\n")
    assert format_problems("mine", [NO_TEXT, "no space"]).startswith("mine: 2 problems\n")
    assert format_problems("mine", ["no space"]) == "no space"
