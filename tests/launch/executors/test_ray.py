"""Ray: a cluster of two nodes, started on the loopback of this machine and stopped again whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

from corpus.documents.errors import BadInput
from corpus.documents.units import map_units
from corpus.run import CorpusInputs
from launch.config import LaunchConfig
from launch.errors import LaunchError
from launch.executors.mapper import engine_mapper, run_tasks
from launch.executors.ray import check_resources
from tests.launch.executors.conftest import (
    build_and_pack,
    contents,
    deadly_engine,
    is_running,
    run_corpus,
    until,
)

NODE = {
    "num_cpus": 2,
    "memory": 4 * 2**30,
    "object_store_memory": 100 * 2**20,
    "node_ip_address": "127.0.0.1",
    "include_dashboard": False,
}


@pytest.fixture(scope="module")
def cluster(toy: ModuleType) -> Iterator[Any]:
    """Head and one more node, two CPUs each; `toy` first, since nodes inherit where modules are found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")  # otherwise 15: other programs would slow the tests down
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # read at import; this process says 127.0.0.1 too
        pytest.importorskip("ray")
        from ray.cluster_utils import Cluster

        cluster = Cluster()
        try:
            for _ in range(2):
                cluster.add_node(**NODE)
            cluster.wait_for_nodes(60)
            yield cluster
        finally:
            cluster.shutdown()


@pytest.fixture
def two_nodes(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", str(cluster.address))


def on_ray(**settings: Any) -> LaunchConfig:
    return LaunchConfig.model_validate({"engine": "ray", "mem_gb_per_cpu": 1, **settings})


@pytest.mark.slow
def test_two_nodes_give_the_files_and_counts_of_the_embedded_map(
    toy: ModuleType, words: list[str], tmp_path: Path, two_nodes: None
) -> None:
    expected = map_units(toy.shout, words, tmp_path / "embedded")
    assert engine_mapper(on_ray(tasks=4))(toy.shout, words, tmp_path / "units") == expected
    assert contents(tmp_path / "units") == contents(tmp_path / "embedded")


@pytest.mark.slow
def test_two_nodes_with_a_killed_worker_leave_the_bytes_of_the_embedded_corpus_stage(
    toy: ModuleType, texts: CorpusInputs, tmp_path: Path, two_nodes: None, caplog: pytest.LogCaptureFixture
) -> None:
    engine, flags = deadly_engine(toy.lose_the_task, tmp_path / "engine", engine_mapper(on_ray(tasks=4)), {"clean"})
    assert run_corpus(tmp_path / "engine", texts, map_units=engine) == run_corpus(tmp_path / "embedded", texts)
    [flag] = flags.iterdir()
    warned = next(record for record in caplog.records if "lost its Ray process" in record.message)
    assert warned.created - flag.stat().st_mtime < 30
    assert "raise launch.mem_gb_per_cpu); trying again" in warned.message


@pytest.mark.slow
def test_two_nodes_with_killed_workers_leave_the_bytes_of_the_embedded_tokenizer_and_pack(
    toy: ModuleType, shards: Path, built_here: dict[str, bytes], tmp_path: Path, two_nodes: None
) -> None:
    maps = {"count", "fit", "tokens-units"}
    engine, flags = deadly_engine(toy.lose_the_task, tmp_path / "run", engine_mapper(on_ray(tasks=4)), maps)
    assert build_and_pack(tmp_path / "run", shards, engine) == built_here
    assert {flag.name for flag in flags.iterdir()} == maps


@pytest.mark.slow
def test_a_killed_worker_of_fine_tuning_is_replaced(toy: ModuleType, tmp_path: Path, two_nodes: None) -> None:
    work = partial(toy.lose_the_task, work=partial(toy.serve, folder=tmp_path), flag=tmp_path / "flag")
    assert run_tasks(on_ray(tasks=2), work, 2, tmp_path / "plans") == []
    assert len(list(tmp_path.glob("served-*"))) == 2 and (tmp_path / "flag").exists()


@pytest.mark.slow
def test_a_worker_that_is_always_killed_is_an_error_that_names_memory(
    toy: ModuleType, words: list[str], tmp_path: Path, two_nodes: None
) -> None:
    work = partial(toy.lose_the_task, work=toy.shout, flag=tmp_path / "flag", number=1)
    message = r"task 1: its process was killed 3 times \(usually too little memory: raise launch\.mem_gb_per_cpu\)"
    with pytest.raises(LaunchError, match=message):
        engine_mapper(on_ray(tasks=3))(work, words, tmp_path / "units")


@pytest.mark.slow
def test_a_worker_that_does_not_answer_is_replaced(
    toy: ModuleType, tmp_path: Path, two_nodes: None, caplog: pytest.LogCaptureFixture
) -> None:
    """A stopped process is like one on a host that is gone: Ray itself waits for it."""
    gate = tmp_path / "gate"

    def stop_the_worker() -> None:
        until((tmp_path / "gate.pid").exists)
        work = int((tmp_path / "gate.pid").read_text())
        os.kill(psutil.Process(work).ppid(), signal.SIGSTOP)
        until(lambda: (tmp_path / "gate.pid").read_text() not in ("", str(work)), seconds=60)
        gate.touch()

    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(stop_the_worker)
        done = engine_mapper(on_ray())(partial(toy.wait_for, gate=gate), ["가람"], tmp_path / "units")
        stopping.result()
    assert done == map_units(toy.shout, ["가람"], tmp_path / "embedded")
    assert "task 0 does not answer" in caplog.text


@pytest.mark.slow
def test_both_nodes_work(toy: ModuleType, tmp_path: Path, two_nodes: None) -> None:
    """Four tasks that wait for each other need four CPUs; a node has two."""
    work = partial(toy.meet, folder=tmp_path, guests=4)
    assert len(engine_mapper(on_ray(tasks=4))(work, ["가", "나", "다", "라"], tmp_path / "units")) == 4


@pytest.mark.slow
def test_killed_work_is_tried_again_and_finished_units_are_kept(
    toy: ModuleType, words: list[str], tmp_path: Path, two_nodes: None
) -> None:
    work = partial(toy.die_once, deadly="나무", flag=tmp_path / "flag")
    expected = map_units(toy.shout, words, tmp_path / "embedded")
    assert engine_mapper(on_ray(tasks=3, at_once=2))(work, words, tmp_path / "units") == expected
    assert contents(tmp_path / "units") == contents(tmp_path / "embedded")


@pytest.mark.slow
def test_bad_input_passes_through(toy: ModuleType, words: list[str], tmp_path: Path, two_nodes: None) -> None:
    with pytest.raises(BadInput, match=r"^다리: cannot be read; remove it$"):
        engine_mapper(on_ray(tasks=3))(partial(toy.reject, bad=["다리"]), words, tmp_path)


@pytest.mark.slow
def test_a_task_that_fits_on_no_node_is_an_error(
    toy: ModuleType, words: list[str], tmp_path: Path, two_nodes: None
) -> None:
    with pytest.raises(LaunchError, match=r"no Ray node has launch\.cpus_per_task=3"):
        engine_mapper(on_ray(cpus_per_task=3))(toy.shout, words, tmp_path)


PROGRAM = """
import sys
from functools import partial
from pathlib import Path
from toy_work import wait_for
from launch.config import LaunchConfig
from launch.executors.mapper import engine_mapper
config = LaunchConfig.model_validate_json(sys.argv[1])
print(engine_mapper(config)(partial(wait_for, gate=Path(sys.argv[3])), ["가람"], Path(sys.argv[2])))
"""


@pytest.mark.slow
def test_tasks_end_with_the_command(toy: ModuleType, tmp_path: Path, two_nodes: None) -> None:
    arguments = [on_ray().model_dump_json(), str(tmp_path / "units"), str(tmp_path / "gate")]
    with subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments]) as command:
        until((tmp_path / "gate.pid").exists)
        command.kill()
    until(lambda: not is_running(int((tmp_path / "gate.pid").read_text())))


@pytest.mark.slow
def test_tasks_of_a_dead_node_are_done_on_another(
    toy: ModuleType, tmp_path: Path, cluster: Any, two_nodes: None
) -> None:
    """A third node, the only one with three CPUs, is killed with its tasks; a fourth like it takes over."""
    settings = on_ray(cpus_per_task=3, mem_gb_per_cpu=1)
    arguments = [settings.model_dump_json(), str(tmp_path / "units"), str(tmp_path / "gate")]
    node = cluster.add_node(**NODE | {"num_cpus": 3})
    with subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, text=True) as command:
        until((tmp_path / "gate.pid").exists)
        first = (tmp_path / "gate.pid").read_text()
        cluster.remove_node(node, allow_graceful=False)
        other = cluster.add_node(**NODE | {"num_cpus": 3})
        until(lambda: (tmp_path / "gate.pid").read_text() not in ("", first), seconds=90)
        (tmp_path / "gate").touch()
        printed, _ = command.communicate(timeout=90)
    cluster.remove_node(other)
    assert printed.splitlines()[-1] == str(map_units(toy.shout, ["가람"], tmp_path / "embedded"))  # Ray prints too


def test_only_living_nodes_count() -> None:
    large = {"Alive": False, "Resources": {"CPU": 8.0, "memory": 64.0 * 2**30}}
    small = {"Alive": True, "Resources": {"CPU": 2.0, "memory": 4.0 * 2**30}}
    check_resources(LaunchConfig(cpus_per_task=2, mem_gb_per_cpu=2), [large, small])
    with pytest.raises(LaunchError, match=r"nodes: 2 CPUs 4\.0 GiB"):
        check_resources(LaunchConfig(cpus_per_task=2, mem_gb_per_cpu=3), [large, small])


@pytest.mark.slow
def test_a_missing_cluster_is_an_error(
    toy: ModuleType, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(LaunchError, match=r"no Ray cluster at 127\.0\.0\.1:1"):
        engine_mapper(on_ray())(toy.shout, words, tmp_path)
