"""``malmoi launch site``: a new site.yaml that loads and holds the defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from launch.cluster.jobs import render
from launch.cluster.site import PretrainTask, Site, load_site


def test_a_new_site_file_holds_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("site.yaml").write_text(render("site.yaml.j2", shared=str(Path.cwd())), "utf-8")
    site = load_site(None)
    assert site.shared == str(tmp_path)
    assert site.model_copy(update={"shared": ""}) == Site()


def test_a_new_site_file_shows_every_section() -> None:
    assert yaml.safe_load(render("site.yaml.j2", shared=str(Path.cwd()))).keys() == Site.model_fields.keys() - {"port"}


@pytest.mark.parametrize(("given", "threads"), [({"cpus": 8, "gpus": 4}, 2), ({"cpus": 3, "processes": 8}, 1), ({}, 8)])
def test_processes_share_the_cores_of_a_machine(given: dict[str, int], threads: int) -> None:
    assert PretrainTask(**given).threads == threads
