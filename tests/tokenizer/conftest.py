"""A small corpus folder for the tests of the tokenizer stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from corpus.documents.shards import Document, write_shard

SENTENCES = (
    "조경현은 인공지능 분야의 저명한 연구자이다.",
    "새로운 연구가 분야의 흐름을 바꾸었다고 연구자들은 말했다.",
    "시장은 오늘 오전 회의에서 공원을 넓히겠다고 말했다.",
    "영화가 정말 재미있었고 배우들의 연기도 훌륭했다!",
    "오늘 저녁에 회의가 끝나면 공원에서 만나자.",
    "도서관에서 책을 읽다가 친구에게 편지를 썼다.",
    "친구가 준 책은 재미있었지만 조금 어려웠다.",
    "가격은 1,200원이고 배송은 3일 걸린다고 했다.",
)

MakeCorpus = Callable[..., Path]


@pytest.fixture
def documents() -> list[Document]:
    """Twelve documents of three sentences each."""
    count = len(SENTENCES)
    return [
        Document(f"doc-{n}", "뉴스" if n % 3 else "백과", tuple(SENTENCES[(n * 5 + k) % count] for k in range(3)))
        for n in range(12)
    ]


@pytest.fixture
def make_corpus(tmp_path: Path) -> MakeCorpus:
    """``make_corpus(documents, per_shard)`` writes a folder as the corpus stage leaves it."""

    def make(documents: Sequence[Document], per_shard: int = 5, name: str = "corpus") -> Path:
        folder = tmp_path / name / "documents"
        folder.mkdir(parents=True)
        for number, start in enumerate(range(0, len(documents), per_shard)):
            write_shard(folder / f"shard-{number:05}.parquet", documents[start : start + per_shard])
        return folder.parent

    return make
