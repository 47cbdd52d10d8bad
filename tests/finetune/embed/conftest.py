"""A small world of sentences, in which a rephrased sentence shares its nouns, and its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from corpus.documents.shards import Document, write_shard
from finetune.embed.config import EmbedConfig
from finetune.embed.run import EmbedInputs
from tests.finetune.conftest import build_tiny_encoder

PLACES = ("강릉", "부산", "서울", "제주", "전주", "대구", "광주", "속초")
THINGS = ("기차", "시장", "도서관", "축제", "빵집", "등대")
FRAMES = ("{0}에 있는 {1}에 어제 다녀왔다.", "어제 {0} {1} 앞에서 사진을 찍었다.", "{0}의 {1}은 아침에 문을 연다.")


def sentence(place: int, thing: int, frame: int) -> str:
    return FRAMES[frame % 3].format(PLACES[place % 8], THINGS[thing % 6])


def equal_texts(evaluation: Sequence[str], texts: Sequence[str]) -> set[int]:
    """The simplest search for evaluation texts."""
    return {i for i, text in enumerate(texts) if any(other in text for other in evaluation)}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of what the tests of a module share."""
    return tmp_path_factory.mktemp("embed")


@pytest.fixture(scope="module")
def inputs(home: Path) -> EmbedInputs:
    """Documents of the world and a tiny encoder."""
    documents = [
        Document(
            f"d{i}", "test", tuple(sentence(i, i // 8, j) + f" 이것은 {i}번 글의 {j}번째 문장이다." for j in range(5))
        )
        for i in range(48)
    ]
    write_shard(home / "documents" / "shard-00000.parquet", documents)
    encoder, _ = build_tiny_encoder(home, [*PLACES, *THINGS, *FRAMES, "0123456789 이것은번글의째문장이다"])
    return EmbedInputs(home / "documents", None, encoder, equal_texts)


@pytest.fixture(scope="module")
def config(home: Path, inputs: EmbedInputs) -> EmbedConfig:
    """A training of a few steps with graded pairs and triplets, scored on graded pairs and questions."""
    graded = ["sentence1\tsentence2\tscore"]
    graded += [f"{sentence(i, i, 0)}\t{sentence(i + (i % 3), i, 1)}\t{5 - 2 * (i % 3)}" for i in range(24)]
    (home / "graded.tsv").write_text("\n".join(graded), "utf-8")
    triplets = [
        {"anchor": sentence(i, i + 1, 1), "positive": sentence(i, i + 1, 2), "negative": sentence(i + 1, i + 2, 2)}
        for i in range(16)
    ]
    (home / "triplets.jsonl").write_text("\n".join(map(json.dumps, triplets)), "utf-8")
    dev = ["sentence1\tsentence2\tscore"]
    dev += [f"내일 {sentence(i, i, 0)}\t내일 {sentence(i + (i % 2), i, 1)}\t{5 - 4 * (i % 2)}" for i in range(30)]
    (home / "dev.tsv").write_text("\n".join(dev), "utf-8")
    return EmbedConfig(
        model=inputs.encoder, train=(str(home / "graded.tsv"), str(home / "triplets.jsonl")), device="cpu",
        evaluate=(str(home / "dev.tsv"),), max_pairs=40, batch_size=8, lr=1e-3, epochs=2, graded_epochs=2,
    )  # fmt: skip
