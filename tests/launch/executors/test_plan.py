"""Settings, the plan and the task process, without a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from pydantic import ValidationError

from corpus.documents.units import map_units
from launch import errors
from launch.config import LaunchConfig, SlurmConfig
from launch.errors import LaunchError
from launch.executors.mapper import engine_mapper
from launch.executors.task import Plan, describe, start_task, write_plan
from tests.launch.executors.conftest import is_running, until

SLURM = LaunchConfig(engine="slurm", tasks=3)


def test_the_default_is_the_embedded_map() -> None:
    assert engine_mapper(LaunchConfig()) is None


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    with pytest.raises(LaunchError, match=r"needs ray: pip install 'malmoi\[ray\]'"):
        engine_mapper(LaunchConfig(engine="ray"))


def test_a_node_without_the_shared_folder_says_so(toy: ModuleType, words: list[str], tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"plan\.pickle: not visible on .*; every node must see the run folder"):
        start_task(tmp_path / "engine-0", 0, 1)
    write_plan(tmp_path / "engine-0", Plan(toy.shout, words, [0], tmp_path, tmp_path / "elsewhere"))
    with pytest.raises(LaunchError, match="elsewhere: not on this node"):
        start_task(tmp_path / "engine-0", 0, 1)


def test_a_task_ends_with_the_process_that_started_it(toy: ModuleType, tmp_path: Path) -> None:
    work = partial(toy.wait_for, gate=tmp_path / "gate")
    write_plan(tmp_path / "engine-0", Plan(work, ["가람"], [0], tmp_path, tmp_path))
    program = (
        "import sys, pathlib; from launch.executors.task import start_task; start_task(pathlib.Path(sys.argv[1]), 0, 1)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "engine-0")]) as starter:
        until((tmp_path / "gate.pid").exists)
        starter.kill()
    until(lambda: not is_running(int((tmp_path / "gate.pid").read_text())))


def test_identity_does_not_depend_on_the_process() -> None:
    program = (
        "from functools import partial; from pathlib import Path; from launch.config import LaunchConfig;"
        "from launch.executors.task import describe; from corpus.documents.shards import write_shard as f;"
        "print(describe(partial(f, Path('a'), words={'가', '나', '다', '라'}, config=LaunchConfig(tasks=2))))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True
        ).stdout
        for seed in "1234"
    }
    assert len(printed) == 1
    assert "write_shard" in printed.pop()


def test_identity_shows_every_difference() -> None:
    values = [1, "1", [1], (1,), {1}, {"1": 1}, None, Path("1"), b"1", map_units, describe, SLURM, LaunchConfig()]
    values += [partial(describe, 1), partial(describe, 2), partial(map_units, 1), partial(describe, value=1)]
    assert len({json.dumps(describe(value)) for value in values}) == len(values)
    with pytest.raises(TypeError, match="a object cannot be part of work"):
        describe(object())


def test_options_of_a_stage_replace_those_of_all() -> None:
    stages = {"finetune": {"gres": "gpu:a100:1", "constraint": "a100&nvlink", "qos": "gpu"}}
    config = LaunchConfig.model_validate({"slurm": {"options": {"qos": "cpu", "account": "nlp"}, "stages": stages}})
    assert config.for_stage("corpus").slurm.options == {"qos": "cpu", "account": "nlp"}
    assert config.for_stage("finetune").slurm.options == {"account": "nlp", **stages["finetune"]}


@pytest.mark.parametrize(
    "values",
    [
        {"setup": "true\nrm important"},
        {"options": {"partition": "cpu\n#SBATCH --array=0"}},
        {"options": {"account": "a b"}},
        {"options": {"account x": "a"}},
        {"options": {"array": "0-3"}},
        {"stages": {"finetune": {"wrap": "true"}}},
        {"stages": {"pretrain": {}}},
    ],
)
def test_settings_cannot_add_lines_or_words_to_a_batch_script(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SlurmConfig.model_validate(values)
