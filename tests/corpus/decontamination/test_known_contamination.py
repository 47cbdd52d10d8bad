"""Known pairs of a benchmark item and a document of real corpora: all are found, and nothing of the items stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from corpus.config import DecontaminateConfig
from corpus.decontamination.benchmarks import find_benchmarks, read_benchmarks
from corpus.decontamination.index import build_index
from corpus.folding import fold
from corpus.reading.files import read_blocks
from corpus.sentences.split import split_sentences

Shared = Callable[[str], Path]
CONFIG = DecontaminateConfig()


def read_corpus(path: Path) -> Iterator[tuple[str, str]]:
    for line in b"".join(read_blocks(path)).splitlines():
        record = json.loads(line)
        yield record["id"], record["text"]


@pytest.mark.parametrize(
    ("corpora", "pairs", "least"),
    [
        (["wikinews"], 3175, 3175),
        pytest.param(["nsmc_reviews", "kowiki", "law", "petitions"], 12_118, 12_118, marks=pytest.mark.slow),
    ],
)
def test_known_contamination_of_the_corpora_is_found(
    shared: Shared, corpora: list[str], pairs: int, least: int
) -> None:
    """And of none of them 60 % of the 16-letter shingles stay."""
    lines = b"".join(read_blocks(shared("data/klue/derived/contamination_truth.jsonl.zst"))).splitlines()
    truth: dict[str, set[str]] = {}
    for pair in map(json.loads, lines):
        truth.setdefault(pair["doc"], set()).add(pair["guid"])
    texts = read_benchmarks(find_benchmarks([str(shared("data/klue"))]))
    index, numbers = build_index([text.text for text in texts], CONFIG)
    guids: dict[int, set[str]] = {}
    fields: dict[str, str] = {}
    for text, number in zip(texts, numbers, strict=True):
        guid = text.key.replace("#sentence1", "#1").replace("#sentence2", "#2").removesuffix("#sentence")
        guids.setdefault(number, set()).add(guid)
        fields[guid] = fields.get(guid, "") + fold(text.text)
    known = found = stay = 0
    for corpus in corpora:
        for document, text in read_corpus(shared(f"data/corpora/{corpus}.jsonl.zst")):
            if document in truth:
                sentences = split_sentences(text)
                hits = index.find_in_documents([sentences])
                known += len(truth[document])
                found += len(truth[document] & set().union(*(guids[hit.item] for hit in hits)))
                dropped = {hit.sentence for hit in hits}
                left = fold("".join(sentence for n, sentence in enumerate(sentences) if n not in dropped))
                stay += sum(share_of_shingles(fields[guid], left) >= 0.6 for guid in truth[document])
    assert (known, found >= least, stay) == (pairs, True, 0)


def share_of_shingles(item: str, text: str) -> float:
    shingles = [item[at : at + 16] for at in range(0, len(item) - 15, 4)]
    return sum(shingle in text for shingle in shingles) / len(shingles)
