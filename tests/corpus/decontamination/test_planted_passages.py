"""Benchmark passages planted in documents, written otherwise: what of them stays after the stage's first pass."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from corpus.clean import _Cleaner
from corpus.config import CorpusConfig
from corpus.decontamination.benchmarks import find_benchmarks
from corpus.decontamination.report import prepare_index
from corpus.pii.hide import DocumentHider
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


@pytest.fixture(scope="module")
def planted(shared: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Passages:
    """Passages of MRC, and the index of all of KLUE."""
    path = shared("data/klue/derived/klue-mrc-v1.1/klue-mrc-v1.1_dev.json.zst")
    articles = json.loads(b"".join(read_blocks(path)))["data"]
    passages = list(dict.fromkeys(part["context"] for article in articles for part in article["paragraphs"]))
    config = CorpusConfig(pii={"mode": "keep"})
    files, home = find_benchmarks([str(shared("data/klue"))]), tmp_path_factory.mktemp("index") / "index"
    folder = prepare_index(config.decontaminate, files, {}, home, DocumentHider(None))
    assert folder
    return Random(12).sample(passages, PASSAGES), config, folder


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
