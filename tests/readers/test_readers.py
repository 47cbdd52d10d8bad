"""Every program that reads an exported tokenizer gives the same ids; .ci/readers asks more of them, and more often."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from tests.readers.read import main as compare
from tests.readers.read import read_in_all_classes
from tests.readers.sentences import READ_DIFFERENTLY, make_sentences
from tests.readers.write import main as write
from tests.readers.write import read_alone

HERE = Path(__file__).parent
FOLDERS = ("jamo_fallback-bert", "jamo_fallback-roberta", "plain-bert", "plain-roberta")
COUNT = 500  # sentences; .ci/readers takes 2,000


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``python -m tests.readers.write`` leaves."""
    out = tmp_path_factory.mktemp("readers")
    write(out, COUNT)
    return out


@pytest.mark.parametrize("name", FOLDERS)
def test_all_classes_of_python_give_the_same_ids(home: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(str(home / name)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8 and all(line.endswith(f": {COUNT} of {COUNT}") for line in lines)


def test_a_folder_that_is_read_differently_is_reported(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(home / "jamo_fallback-bert", tmp_path / "damaged")
    shutil.copy(home / "sentences.json", tmp_path)
    settings = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "strip_accents": False}), "utf-8")

    assert compare(str(folder)) == 1
    assert "damaged, PreTrainedTokenizerFast.backend_tokenizer: 500 of 500" in capsys.readouterr().out


@pytest.mark.parametrize("order", ["bert", "roberta"])
def test_a_tokenizer_that_was_saved_again_gives_the_same_ids(home: Path, tmp_path: Path, order: str) -> None:
    sentences = make_sentences(COUNT)[::2]
    AutoTokenizer.from_pretrained(home / f"jamo_fallback-{order}").save_pretrained(tmp_path)

    expected = read_alone(home / f"jamo_fallback-{order}", sentences)
    for name, ids in read_in_all_classes(tmp_path, sentences):
        assert ids == expected, name


def test_real_sentences_and_what_other_programs_read_differently(home: Path, shared: Callable[[str], Path]) -> None:
    real = shared("data/sentences/tweets.txt").read_text("utf-8").splitlines()
    sentences = [*real, *(text for texts in READ_DIFFERENTLY.values() for text in texts)]

    expected = read_alone(home / "jamo_fallback-bert", sentences)
    for name, ids in read_in_all_classes(home / "jamo_fallback-bert", sentences):
        assert ids == expected, name


def test_javascript_gives_the_same_ids(home: Path) -> None:
    if shutil.which("node") is None or not (HERE / "node_modules").is_dir():
        pytest.skip("needs node, and `npm install --ignore-scripts --no-package-lock` in tests/readers")
    command = ["node", HERE / "read.mjs", *(home / name for name in FOLDERS)]
    done = subprocess.run(command, capture_output=True, text=True)

    assert done.stdout.splitlines() == [f"{name}, JavaScript: {COUNT} of {COUNT}" for name in FOLDERS], done.stderr
