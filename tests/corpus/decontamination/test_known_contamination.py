"""Known pairs of a benchmark item and a document of real corpora: all are found, and nothing of the items stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from corpus.decontamination.benchmarks import find_benchmarks, read_benchmarks
from corpus.decontamination.index import ContaminationIndex, build_index
from corpus.decontamination.match_rule import MatchRule
from corpus.reading.files import read_blocks
from corpus.sentences.folding import fold
from corpus.sentences.split import split_sentences

Shared = Callable[[str], Path]
CONFIG = MatchRule()


def read_corpus(path: Path) -> Iterator[tuple[str, str]]:
    for line in b"".join(read_blocks(path)).splitlines():
        record = json.loads(line)
        yield record["id"], record["text"]


class Known(NamedTuple):
    """What is to be found: items of each document, the index, items of each of its numbers, folded text of each."""

    truth: dict[str, set[str]]
    index: ContaminationIndex
    guids: dict[int, set[str]]
    fields: dict[str, str]


@pytest.fixture(scope="module")
def known(shared: Shared) -> Known:
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
    return Known(truth, index, guids, fields)


@pytest.mark.parametrize(
    ("corpora", "pairs"),
    [
        (["wikinews"], 3175),
        pytest.param(["nsmc_reviews", "kowiki", "law", "petitions"], 12_118, marks=pytest.mark.slow),
    ],
)
def test_known_contamination_of_the_corpora_is_found(
    shared: Shared, known: Known, corpora: list[str], pairs: int
) -> None:
    """And of none of them 60 % of the 16-letter shingles stay."""
    truth, index, guids, fields = known
    meant = found = stay = 0
    for corpus in corpora:
        for document, text in read_corpus(shared(f"data/corpora/{corpus}.jsonl.zst")):
            if document in truth:
                sentences = split_sentences(text)
                hits = index.find_in_documents([sentences])
                meant += len(truth[document])
                found += len(truth[document] & set().union(*(guids[hit.item] for hit in hits)))
                dropped = {hit.sentence for hit in hits}
                left = fold("".join(sentence for n, sentence in enumerate(sentences) if n not in dropped))
                stay += sum(share_of_shingles(fields[guid], left) >= 0.6 for guid in truth[document])
    assert (meant, found, stay) == (pairs, pairs, 0)


def share_of_shingles(item: str, text: str) -> float:
    shingles = [item[at : at + 16] for at in range(0, len(item) - 15, 4)]
    return sum(shingle in text for shingle in shingles) / len(shingles)
