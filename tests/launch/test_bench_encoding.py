"""The encoding bench: the same pieces, and a fair account of differences."""

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

from launch.bench.encoding import WAYS, bench_encoding
from tests.pretrain.conftest import invented_documents, write_tokenizer

TEXTS = [" ".join(document.sentences) for document in invented_documents(30)]


def test_every_way_is_timed_and_finds_the_same_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    folder = write_tokenizer(tmp_path / "tokenizer", invented_documents(30))
    found = bench_encoding([*TEXTS, "[MASK]\u3000글 \x1c뷁\n\n끝", ""], folder)
    assert (found["documents"], found["documents_that_differ"]) == (32, 0)
    assert found["megabytes"] == pytest.approx(sum(len(text.encode()) for text in TEXTS) / 1e6, rel=0.1)
    for way in WAYS:
        ratio = found["ours_mb_per_s"] / found[f"{way}_mb_per_s"]
        assert found[f"times_faster_than_{way}"] == pytest.approx(ratio)
    assert os.environ["TOKENIZERS_PARALLELISM"] == "true"


def test_documents_that_a_tokenizer_reads_across_blanks_are_counted(tmp_path: Path) -> None:
    folder = write_tokenizer(tmp_path / "tokenizer", invented_documents(30))
    backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
    backend.normalizer = normalizers.Replace("윤슬은 0", "바다 0")  # only the first document holds it
    crossing = tmp_path / "crossing"
    PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", sep_token="[SEP]").save_pretrained(crossing)
    assert bench_encoding(TEXTS, crossing)["documents_that_differ"] == 1


def test_real_text_gets_the_pieces_that_the_library_finds_in_whole_documents(
    shared: Callable[[str], Path], tmp_path: Path
) -> None:
    with zstandard.open(shared("data/corpora/petitions.jsonl.zst"), "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line, _ in zip(lines, range(300), strict=False)]
    shutil.copy(shared("data/klue/vocab/klue-bert-base-vocab.txt"), tmp_path / "vocab.txt")
    BertTokenizer(vocab=str(tmp_path / "vocab.txt"), do_lower_case=False).save_pretrained(tmp_path)
    assert bench_encoding(texts, tmp_path)["documents_that_differ"] == 0
