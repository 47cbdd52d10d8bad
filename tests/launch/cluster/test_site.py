"""``malmoi launch site``: a new site.yaml that loads and names the partitions of Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from launch.cluster.jobs import starter_site
from launch.cluster.site import Site, choose_partitions, load_site, read_partitions

SINFO = "cpu*|40|128|(null)|4-00:00:00\ngpu|6|64+|gpu:a100:8(S:0-1)|2:00:00\nold|2|32|gpu:2|infinite\n"


def test_partitions_are_read_as_slurm_writes_them() -> None:
    cpu, gpu, old = read_partitions(SINFO.splitlines())
    assert (cpu.partition, cpu.is_default, cpu.cpus, cpu.gpus, cpu.hours) == ("cpu", True, 128, 0, 24)
    assert (gpu.nodes, gpu.cpus, gpu.gpus, gpu.hours) == (6, 64, 8, 2)
    assert (old.gpus, old.hours) == (2, 24)
    assert choose_partitions([cpu, gpu, old]) == (cpu, gpu)


@pytest.mark.parametrize(("limit", "hours"), [("30:00", 0.5), ("1:30:00", 1.5), ("1-00:00:00", 24), ("UNLIMITED", 24)])
def test_time_limits_are_hours(limit: str, hours: float) -> None:
    (found,) = read_partitions([f"a|1|2|(null)|{limit}"])
    assert found.hours == hours


def test_the_file_loads_and_names_the_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sinfo").write_text(f"#!/bin/sh\ncat <<'END'\n{SINFO}END\n")
    (tmp_path / "bin" / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.chdir(tmp_path)
    Path("site.yaml").write_text(starter_site(), "utf-8")
    site = load_site(None)
    assert (site.prepare.partition, site.pretrain.partition, site.finetune.partition) == ("cpu", "gpu", "gpu")
    assert (site.pretrain.gpus, site.pretrain.cpus, site.finetune.tasks, site.finetune.cpus) == (8, 64, 8, 8)
    assert site.shared == str(tmp_path)


def test_without_slurm_it_holds_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("launch.cluster.site.shutil.which", lambda name: None)
    monkeypatch.chdir(tmp_path)
    Path("site.yaml").write_text(starter_site(), "utf-8")
    assert load_site(None).model_copy(update={"shared": ""}) == Site()
