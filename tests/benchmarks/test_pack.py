"""The pack benchmark: ours and the library give equal pieces."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from tokenizers import Tokenizer, normalizers
from transformers import BertTokenizer, PreTrainedTokenizerFast

from benchmarks.pack import LIBRARY, OURS, bench_encoding, run_pack_bench
from corpus.documents.errors import BadInput
from tests.pretrain.conftest import invented_documents, write_tokenizer

TEXTS = [" ".join(document.sentences) for document in invented_documents(30)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tokenizer(tmp_path / "tokenizer", invented_documents(30))


def test_ours_finds_the_pieces_of_the_library_and_is_compared_with_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    found = bench_encoding([*TEXTS, "[MASK]\u3000글 \x1c뷁\n\n끝", ""], folder)
    ours, theirs = found["encoders"][OURS], found["encoders"][LIBRARY]
    assert (found["documents"], theirs["documents_that_differ"]) == (32, 0)
    assert found["megabytes"] == pytest.approx(sum(len(text.encode()) for text in TEXTS) / 1e6, rel=0.1)
    assert theirs["times"] == pytest.approx(ours["mb_per_s"] / theirs["mb_per_s"])
    assert os.environ["TOKENIZERS_PARALLELISM"] == "true"


def test_documents_that_a_tokenizer_reads_across_blanks_are_counted(folder: Path, tmp_path: Path) -> None:
    backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
    backend.normalizer = normalizers.Replace("윤슬은 0", "바다 0")  # only the first document holds it
    crossing = tmp_path / "crossing"
    PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", sep_token="[SEP]").save_pretrained(crossing)
    assert bench_encoding(TEXTS, crossing)["encoders"][LIBRARY]["documents_that_differ"] == 1


def test_real_text_gets_the_pieces_that_the_library_finds_in_whole_documents(
    shared: Callable[[str], Path], tmp_path: Path
) -> None:
    with zstandard.open(shared("data/corpora/petitions.jsonl.zst"), "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line, _ in zip(lines, range(60), strict=False)]
    shutil.copy(shared("data/klue/vocab/klue-bert-base-vocab.txt"), tmp_path / "vocab.txt")
    BertTokenizer(vocab=str(tmp_path / "vocab.txt"), do_lower_case=False).save_pretrained(tmp_path)
    assert bench_encoding(texts, tmp_path)["encoders"][LIBRARY]["documents_that_differ"] == 0


def test_a_run_prints_a_table_and_writes_its_figures(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), "utf-8")
    results = run_pack_bench([folder], [str(tmp_path / "texts.txt")], 1.0, tmp_path / "figures.json")
    assert "other pieces" in capsys.readouterr().out
    assert json.loads((tmp_path / "figures.json").read_text("utf-8")) == results
    with pytest.raises(BadInput, match="above 0"):
        run_pack_bench([folder], [], 0.0, None)
