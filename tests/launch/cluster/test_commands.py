"""`malmoi status` prints lines for people, and JSON on request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from launch.cluster.site import load_site
from tests.command import run_command


def test_status_prints_json_only_on_request(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run" / "corpus").mkdir(parents=True)
    head = {"stage": "corpus", "settings": {}, "inputs": {}, "key": "sha256:0", "seconds": 4.0}
    (tmp_path / "run" / "corpus" / "manifest.json").write_text(json.dumps(head), "utf-8")
    status = run_command(capfd, "status", str(tmp_path / "run"))
    assert status.code == 0 and not status.output.startswith("{")
    assert json.loads(run_command(capfd, "status", str(tmp_path / "run"), "--json").output)["run"]


SITE = """shared: {shared}
container: {{image: malmoi:1}}
hosts: {{names: [node-1]}}
k8s: {{claim: data}}
"""
STARTS = {"slurm": "submit.sh", "k8s": "jobset.yaml", "hosts": "run.sh"}


@pytest.mark.parametrize("where", STARTS)
def test_launch_prints_the_files_of_its_kind_with_the_overrides_and_writes_nothing(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.yaml").write_text(SITE.format(shared=tmp_path))
    for overrides in ([], ["pretrain.steps=7", "pretrain.seed=3"]):
        printed = run_command(capfd, "launch", where, "smoke", *overrides, "--dry-run")
        assert printed.code == 0, printed.errors
        assert all(override in printed.output for override in overrides)
        assert {kind for kind, name in STARTS.items() if name in printed.output} == {where}
    assert [path.name for path in tmp_path.iterdir()] == ["site.yaml"]


def test_only_kubernetes_may_have_inputs_that_this_machine_cannot_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.yaml").write_text(SITE.format(shared=tmp_path))
    outcomes = {
        kind: run_command(capfd, "launch", kind, "smoke", f"corpus.inputs={tmp_path}/unseen/*.txt", "--dry-run")
        for kind in STARTS
    }
    assert {kind: outcome.code for kind, outcome in outcomes.items()} == {"slurm": 2, "k8s": 0, "hosts": 2}


def test_launch_without_a_recipe_is_one_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    run_command(capfd, "launch", "slurm").refused("launch slurm: name a recipe")


def test_the_printed_site_is_the_file_to_edit(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    printed = run_command(capfd, "launch", "site").output
    (tmp_path / "site.yaml").write_text(printed, "utf-8")
    assert load_site(tmp_path / "site.yaml").shared == str(Path.cwd())
