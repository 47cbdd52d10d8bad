"""Text that lies in object storage becomes the corpus that it becomes from a disk."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from corpus.documents import units
from corpus.documents.errors import BadInput
from corpus.reading.files import to_path
from corpus.reading.inputs import find_inputs
from corpus.run import CorpusInputs
from tests.launch.executors.conftest import run_corpus


@pytest.mark.slow
def test_the_corpus_stage_reads_a_bucket_as_it_reads_a_folder(
    bucket: str, texts: CorpusInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "get_context", multiprocessing.get_context)  # forked pools lack the bucket's variables
    names = ("가.jsonl", "나.txt", "다.jsonl.gz")
    for name in names:
        (to_path(f"{bucket}/texts") / name).write_bytes((tmp_path / name).read_bytes())
    far = CorpusInputs(find_inputs([f"{bucket}/texts/"], {}, "text"), [tmp_path / "bench.txt"])
    assert [str(one.path) for one in far.texts] == [f"{bucket}/texts/{name}" for name in names]
    expected = run_corpus(tmp_path / "near", texts)
    assert run_corpus(tmp_path / "far", far, workers=2) == expected
    with pytest.raises(BadInput, match="no such file or folder"):
        find_inputs([f"{bucket}/nothing/"], {}, "text")
