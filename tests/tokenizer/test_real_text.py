"""On real text the builders keep the order that the paper and people's boundaries give them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.texts import mix_texts, write_corpus
from tokenizer.config import TokenizerConfig
from tokenizer.measuring.compare import Comparison, compare
from tokenizer.measuring.encoder import load_tokenizer
from tokenizer.run import TokenizerInputs, run

SENTENCE = "조경현은 인공지능 분야의 저명한 연구자이다."  # paper Table 30
LEARNT, MEASURED = ("petitions", "book_reviews", "kaist"), "wikinews"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, shared: Callable[[str], Path]) -> dict[str, Path]:
    """Vocabularies of 8,000 entries from 2 MB."""
    folder = tmp_path_factory.mktemp("real")
    texts = [str(shared(f"data/corpora/{name}.jsonl.zst")) for name in LEARNT]
    corpus = write_corpus(mix_texts(texts, [], 2).documents, folder / "corpus")
    for builder in ("malmoi", "klue", "bpe"):
        (folder / builder).mkdir()
        config = TokenizerConfig(builder=builder, vocab_size=8_000, alphabet=1_500)
        run(config, TokenizerInputs(corpus), folder / builder, workers=2)
    return {builder: folder / builder for builder in ("malmoi", "klue", "bpe")}


@pytest.fixture(scope="module")
def compared(built: dict[str, Path], shared: Callable[[str], Path]) -> dict[str, Comparison]:
    """Measured on news, which none of them has seen, and on KLUE-DP."""
    texts = mix_texts([str(shared(f"data/corpora/{MEASURED}.jsonl.zst"))], [], 100)
    gold = shared("data/klue/official/klue-dp-v1.1/klue-dp-v1.1_dev.tsv.zst")
    return {found.name: found for found in compare(list(built.values()), {"news": texts.measured}, [gold])}


def test_plain_merges_differ_from_morphemes_as_in_table_35(compared: dict[str, Comparison]) -> None:
    morphemes, plain = compared["klue"].whole.fit, compared["bpe"].whole.fit

    assert plain.fertility < morphemes.fertility
    assert plain.continued_words < morphemes.continued_words
    assert plain.unknown_ratio > morphemes.unknown_ratio


def test_our_pieces_keep_more_boundaries_than_the_papers_recipe(compared: dict[str, Comparison]) -> None:
    ours, theirs, plain = (compared[name].golds[0].scores for name in ("malmoi", "klue", "bpe"))

    assert ours.f1 > theirs.f1 + 0.01 > plain.f1 + 0.1
    assert ours.crossing < 0.01
    assert ours.keeps_all > 0.96
    assert compared["malmoi"].whole.fit.fertility < compared["klue"].whole.fit.fertility


def test_particles_stay_whole_and_apart_from_their_nouns(built: dict[str, Path]) -> None:
    cuts = {
        name: load_tokenizer(path).encode(SENTENCE, add_special_tokens=False).tokens for name, path in built.items()
    }

    assert {"##은", "##의"} <= set(cuts["malmoi"])
    assert cuts["malmoi"][-3:] == ["##이", "##다", "."]
    assert "##의" not in cuts["bpe"]
