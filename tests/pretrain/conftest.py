"""A tiny invented corpus, its tokenizer and its token store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import BertTokenizer

from corpus.documents.shards import Document, write_shard
from pretrain.config import PackConfig, PretrainConfig
from pretrain.model import sizes
from pretrain.pack.run import PackInputs
from pretrain.pack.run import run as pack
from tests.pretrain.settings import in_sections

SPECIAL_PIECES = ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")  # KLUE-RoBERTa's order
NAMES = ("윤슬", "가람", "도담", "새벽", "한별", "미르")
PLACES = ("바다", "도서관", "시장", "언덕", "정원")
VERBS = ("걸었다", "노래했다", "편지를 썼다", "빵을 나누었다", "별을 보았다")
WORDS = ("윤슬", "가람", "바다", "도서관", "시장", "편지", "노래", "##에서", "##했다", "##었다")


def invented_documents(count: int) -> list[Document]:
    """Documents of two to six sentences; no two are alike."""
    documents = []
    for number in range(count):
        name = NAMES[number % 6]
        particle = "은" if name in ("윤슬", "가람", "도담", "새벽", "한별") else "는"
        sentences = [
            f"{name}{particle} {number}번째 날 {PLACES[(number + i) % 5]}에서 {VERBS[(number * 3 + i) % 5]}."
            for i in range(2 + number % 5)
        ]
        documents.append(Document(f"d{number}", "수필" if number % 3 else "일기", tuple(sentences)))
    return documents


def write_corpus(folder: Path, documents: list[Document], shards: int) -> Path:
    (folder / "documents").mkdir(parents=True)
    for shard in range(shards):
        write_shard(folder / "documents" / f"shard-{shard:05}.parquet", documents[shard::shards])
    return folder


def write_tokenizer(folder: Path, documents: list[Document], extra: tuple[str, ...] = ()) -> Path:
    """Words, every character of the corpus and its continuation, and two unused pieces."""
    characters = sorted({c for d in documents for s in d.sentences for c in s if not c.isspace()})
    pieces = [*SPECIAL_PIECES, *WORDS, *characters, *(f"##{c}" for c in characters), *extra, "[unused0]", "[unused1]"]
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(pieces)) + "\n", "utf-8")
    BertTokenizer(
        vocab=str(folder / "vocab.txt"), do_lower_case=False, strip_accents=False, model_max_length=512
    ).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with ``corpus``, ``tokenizer`` and ``tokens`` of 120 documents in three shards; read only."""
    root = tmp_path_factory.mktemp("made")
    documents = invented_documents(120)
    write_corpus(root / "corpus", documents, shards=3)
    write_tokenizer(root / "tokenizer", documents)
    (root / "tokens").mkdir()
    pack(PackConfig(), PackInputs(root / "corpus", root / "tokenizer"), root / "tokens")
    return root


@pytest.fixture(scope="session")
def tiny() -> Callable[..., PretrainConfig]:
    """A configuration that trains in a second; keyword arguments replace fields of any section."""

    def configure(**changes: object) -> PretrainConfig:
        fields: dict[str, object] = {
            "layers": 1,
            "hidden": 16,
            "heads": 2,
            "intermediate": 32,
            "positions": 48,
            "sequence_length": 32,
            "steps": 8,
            "global_batch": 8,
            "micro_batch": 4,
            "lr": 5e-3,
            "warmup_share": 0.25,
            "precision": "fp32",
            "zero_stage": 0,
            "held_out_share": 0.05,
            "checkpoint_every": 3,
            "log_every": 2,
        }
        return PretrainConfig.model_validate(in_sections(fields | changes))

    return configure


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Local layers of ModernBERT see 4 tokens on either side, so that rows of 32 tokens have several windows."""
    monkeypatch.setattr(sizes, "LOCAL_WINDOW", 8)
    monkeypatch.setenv("MALMOI_TEST_WINDOW", "8")  # for `start.py`
