"""A missing extra is reported in one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from launch.errors import EXTRAS, NEEDED_BY_STAGE
from tests.command import run_command


@pytest.mark.parametrize(
    ("arguments", "blocked", "sentence"),
    [
        (["pretrain", "smoke"], "torch", "pretrain needs torch: pip install 'malmoi[train]'"),
        (["run", "smoke"], "accelerate", "run needs accelerate: pip install 'malmoi[train]'"),
        (["pack", "smoke"], "transformers", "pack needs transformers: pip install 'malmoi[train]'"),
        (
            ["corpus", "real-mini", "corpus.inputs=hub:set"],
            "datasets",
            "corpus needs datasets: pip install 'malmoi[hub]'",
        ),
    ],
)
def test_a_missing_extra_is_one_sentence(
    tmp_path: Path,
    arguments: list[str],
    blocked: str,
    sentence: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, blocked, None)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.jsonl").write_text('{"text": "가"}\n', "utf-8")
    outcome = run_command(capfd, *arguments)
    assert outcome.code == 2, outcome.errors
    assert f"malmoi: {sentence}\n" in outcome.errors
    assert "Traceback" not in outcome.errors


def test_every_module_that_a_stage_needs_has_an_extra() -> None:
    assert {module for modules in NEEDED_BY_STAGE.values() for module in modules} <= EXTRAS.keys()
