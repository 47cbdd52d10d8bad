"""A corpus run that stopped before it wrote a result continues in its folder, with other settings or other files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpus.documents.errors import BadInput
from corpus.documents.units import PROGRESS_NAME
from launch.conduct import run_stage
from launch.errors import LaunchError
from launch.manifest import has_no_result, read_manifest
from launch.pipeline import STAGES
from launch.recipe import load_recipe
from tests.command import run_command

CORPUS = next(stage for stage in STAGES if stage.name == "corpus")
SENTENCE = "강가의 오래된 도서관에서 소년이 책을 천천히 읽었다."


def put(tmp_path: Path, *records: dict[str, str]) -> str:
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    (tmp_path / "a.jsonl").write_text(lines, "utf-8")
    (tmp_path / "mine.yaml").write_text("corpus: {inputs: a.jsonl, benchmarks: []}\n", "utf-8")
    return str(tmp_path / "mine.yaml")


def records(key: str, count: int) -> list[dict[str, str]]:
    return [{key: f"{n} {SENTENCE}"} for n in range(count)]


@pytest.mark.parametrize("correction", ["settings", "files"])
def test_after_unreadable_records_the_corrected_command_resumes(tmp_path: Path, correction: str) -> None:
    recipe, run = put(tmp_path, *records("text", 1), *records("body", 40)), tmp_path / "run"
    with pytest.raises(BadInput, match="40 of 41 records could not be read"):
        run_stage(CORPUS, load_recipe(recipe), run)
    assert {path.name for path in (run / "corpus").iterdir()} == {"started.json", "quarantine"}
    overrides = ["corpus.text_field=body", "corpus.max_bad_share=0.5"] if correction == "settings" else []
    if correction == "files":
        put(tmp_path, *records("text", 41))
    assert run_stage(CORPUS, load_recipe(recipe, overrides), run)
    manifest = read_manifest(run / "corpus")
    assert manifest and manifest["counts"]["documents"] >= 40


def test_after_all_documents_were_dropped_other_settings_resume(tmp_path: Path) -> None:
    recipe, run = put(tmp_path, *records("text", 4)), tmp_path / "run"
    strict = load_recipe(recipe, ["corpus.min_sentence_chars={a: 500}"])
    with pytest.raises(BadInput, match="all 4 documents were dropped"):
        run_stage(CORPUS, strict, run)
    assert run_stage(CORPUS, load_recipe(recipe), run)


def test_finished_parts_and_results_are_never_discarded_by_other_settings(tmp_path: Path) -> None:
    recipe, run = put(tmp_path, *records("text", 4)), tmp_path / "run"
    run_stage(CORPUS, load_recipe(recipe), run)
    with pytest.raises(LaunchError, match="delete this folder"):
        run_stage(CORPUS, load_recipe(recipe, ["corpus.seed=1"]), run)
    (run / "corpus" / "manifest.json").rename(run / "corpus" / "started.json")
    assert not has_no_result(run / "corpus")


def test_a_dry_run_names_the_keys_of_the_first_records(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recipe = put(tmp_path, *records("body", 3))
    done = run_command(capfd, "corpus", recipe, "--dry-run", "--runs", str(tmp_path / "runs"))
    assert done.code == 2
    assert "no text under 'text' in the first 3 records" in " ".join((done.output + done.errors).split())


def test_status_shows_the_progress_of_a_stage(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "runs" / "mine"
    folder = run / "corpus" / ".work-0" / "clean"
    folder.mkdir(parents=True)
    head = {"stage": "corpus", "settings": {}, "inputs": {}, "key": "sha256:0"}
    (run / "corpus" / "started.json").write_text(json.dumps(head), "utf-8")
    record = {"title": "clean", "done": 12e6, "total": 48e6, "is_bytes": True, "seconds": 30.0, "seconds_left": 90.0}
    (folder / PROGRESS_NAME).write_text(json.dumps(record), "utf-8")
    done = run_command(capfd, "status", str(run))
    assert "clean 12.0MB of 48.0MB, 01:30 left" in done.output
