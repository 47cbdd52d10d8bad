"""What is left of benchmark text, with the index of all of KLUE.

Passages planted in documents, written otherwise: what of them stays after the stage's first pass. Known pairs of a
benchmark item and a document of real corpora: all are found, and nothing of the items stays.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from corpus.clean import _Cleaner
from corpus.config import CorpusConfig
from corpus.decontamination.benchmarks import BenchmarkText, find_benchmarks, read_benchmarks
from corpus.decontamination.index import ContaminationIndex
from corpus.decontamination.match_rule import MatchRule
from corpus.decontamination.report import BenchmarkItems, _build_index
from corpus.pii.hide import DocumentHider, PiiHider
from corpus.reading.files import read_blocks
from corpus.reading.read import Record
from corpus.sentences.folding import fold
from corpus.sentences.split import split_sentences

OTHER_MARKS = str.maketrans(".,!?'\"()", "!;..\"'[]")
FULL_WIDTH = {ord("0") + digit: 0xFF10 + digit for digit in range(10)}


def wrap(text: str, width: int, *, cuts_words: bool) -> str:
    lines = []
    for line in text.split("\n"):
        while len(line) > width:
            blank = -1 if cuts_words else line.rfind(" ", 0, width + 1)
            cut = blank if blank > 0 else width
            lines.append(line[:cut])
            line = line[cut:].removeprefix(" " if blank > 0 else "")
        lines.append(line)
    return "\n".join(lines)


def swap_halves(text: str) -> str:
    sentences = [sentence.split() for sentence in split_sentences(text)]
    return " ".join(" ".join(words[len(words) // 2 :] + words[: len(words) // 2]) for words in sentences)


def end_every_fifth(text: str) -> str:
    return " ".join(word + "." * (n % 5 == 4) for n, word in enumerate(text.split()))


def replace_words(text: str, share: float, words: list[str]) -> str:
    rng, own = Random(len(text)), text.split(" ")
    for place in rng.sample(range(len(own)), round(share * len(own))):
        own[place] = rng.choice(words)
    return " ".join(own)


# the most of its letters that may stay
VARIANTS: dict[str, tuple[float, Callable[[str, list[str]], str]]] = {
    "exact": (0.01, lambda text, _: text),
    "re-joined": (0.01, lambda text, _: text.replace("\n", " ")),
    "NFD": (0.01, lambda text, _: unicodedata.normalize("NFD", text)),
    "zero-width": (0.01, lambda text, _: "\u200b".join(text)),
    "full-width digits": (0.01, lambda text, _: text.translate(FULL_WIDTH)),
    "punctuation swapped": (0.02, lambda text, _: text.translate(OTHER_MARKS)),
    "commas to newlines": (0.02, lambda text, _: text.replace(",", "\n")),
    "halves swapped": (0.02, lambda text, _: swap_halves(text)),
    "wrapped at 40": (0.02, lambda text, _: wrap(text, 40, cuts_words=False)),
    "wrapped at 20": (0.02, lambda text, _: wrap(text, 20, cuts_words=False)),
    "wrapped at 40, words cut": (0.02, lambda text, _: wrap(text, 40, cuts_words=True)),
    "wrapped at 20, words cut": (0.02, lambda text, _: wrap(text, 20, cuts_words=True)),
    "a period every five eojeols": (0.02, lambda text, _: end_every_fifth(text)),
    "10 % replaced": (0.06, lambda text, words: replace_words(text, 0.1, words)),
    "20 % replaced": (0.3, lambda text, words: replace_words(text, 0.2, words)),
    "30 % replaced": (0.6, lambda text, words: replace_words(text, 0.3, words)),
}

PASSAGES = int(os.environ.get("MALMOI_PASSAGES", "100"))

Passages = tuple[list[str], CorpusConfig, Path]
Shared = Callable[[str], Path]


class KlueIndex(NamedTuple):
    """``folder`` is as ``prepare_index`` leaves it."""

    folder: Path
    texts: list[BenchmarkText]


@pytest.fixture(scope="module")
def klue_index(shared: Shared, tmp_path_factory: pytest.TempPathFactory) -> KlueIndex:
    """Takes ten seconds."""
    folder, rule = tmp_path_factory.mktemp("index"), MatchRule()
    texts = read_benchmarks(find_benchmarks([str(shared("data/klue"))]))
    _build_index(rule, texts, folder, DocumentHider(PiiHider(types=frozenset())))
    return KlueIndex(folder, texts)


@pytest.fixture(scope="module")
def planted(shared: Shared, klue_index: KlueIndex) -> Passages:
    """Passages of MRC, and the index of all of KLUE."""
    path = shared("data/klue/derived/klue-mrc-v1.1/klue-mrc-v1.1_dev.json.zst")
    articles = json.loads(b"".join(read_blocks(path)))["data"]
    passages = list(dict.fromkeys(part["context"] for article in articles for part in article["paragraphs"]))
    return Random(12).sample(passages, PASSAGES), CorpusConfig(pii={"mode": "keep"}), klue_index.folder


@pytest.mark.parametrize("variant", VARIANTS)
def test_little_stays_of_planted_passages(planted: Passages, variant: str) -> None:
    passages, config, folder = planted
    most, change = VARIANTS[variant]
    words = [word for passage in passages for word in passage.split()]
    cleaner = _Cleaner(config, folder, folder.parent)
    drafts = [cleaner.draft(Record(str(n), str(n), "x", change(text, words))) for n, text in enumerate(passages)]
    whole = sum(len(fold(sentence)) for draft in drafts for sentence in draft.sentences)
    left = sum(len(fold(sentence)) for row in cleaner.finish(drafts) for sentence in row.sentences)
    assert whole > 0.9 * sum(len(fold(text)) for text in passages)
    print(f"{variant:30}{left / whole:.3f}")
    assert left / whole <= most


# --- known pairs


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


def guid_of(key: str) -> str:
    return key.replace("#sentence1", "#1").replace("#sentence2", "#2").removesuffix("#sentence")


@pytest.fixture(scope="module")
def known(shared: Shared, klue_index: KlueIndex) -> Known:
    lines = b"".join(read_blocks(shared("data/klue/derived/contamination_truth.jsonl.zst"))).splitlines()
    truth: dict[str, set[str]] = {}
    for pair in map(json.loads, lines):
        truth.setdefault(pair["doc"], set()).add(pair["guid"])
    items = BenchmarkItems(klue_index.folder).table.to_pydict()
    guids: dict[int, set[str]] = {}
    for number, key in zip(items["item"], items["key"], strict=True):
        guids.setdefault(number, set()).add(guid_of(key))
    meant = set[str]().union(*truth.values())
    fields: dict[str, str] = {}
    for text in klue_index.texts:
        if (guid := guid_of(text.key)) in meant:
            fields[guid] = fields.get(guid, "") + fold(text.text)
    index = ContaminationIndex.load(klue_index.folder)
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
