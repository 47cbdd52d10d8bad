"""Figures counted by hand, against encoding whole texts, and against the released KLUE vocabulary."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from corpus.documents import BadInput
from tokenizer.config import TokenizerConfig
from tokenizer.export import build_tokenizer, export
from tokenizer.statistics import load_tokenizer, measure, measure_counts

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "나", "##는", "책", "##을", ".", "읽", "##는다", "M", "##A"]
KLUE_VOCABULARY = "data/klue/vocab/klue-bert-base-vocab.txt"


@pytest.fixture
def vocab_file(tmp_path: Path) -> Path:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(VOCABULARY) + "\n", "utf-8")
    return path


def test_ratios_of_a_text_counted_by_hand(vocab_file: Path) -> None:
    # 나|는 책|을 읽|는다|. and 나 [UNK](뷁) [UNK](너는)|.
    statistics = measure(vocab_file, ["나는 책을 읽는다.", "나 뷁\u3000너는.\n", "\x00"])

    assert (statistics.eojeols, statistics.tokens, statistics.unknown_tokens, statistics.characters) == (6, 11, 2, 13)
    assert statistics.fertility == pytest.approx(11 / 6)
    assert statistics.continued_words == pytest.approx(4 / 6)
    assert statistics.unknown_ratio == pytest.approx(2 / 11)
    assert statistics.tokens_per_character == pytest.approx(11 / 13)
    assert statistics.unknown_eojeols == (("너는.", 1), ("뷁", 1))


def test_special_tokens_in_a_text_are_text(vocab_file: Path) -> None:
    statistics = measure(vocab_file, ["[MASK] [MASK]"])

    assert (statistics.eojeols, statistics.tokens, statistics.unknown_tokens) == (2, 6, 6)


@given(st.lists(st.text("나는책을읽다.M뷁漢 \u3000\u200b\n", max_size=20), max_size=6))
def test_sums_equal_those_of_encoding_every_text_whole(texts: list[str]) -> None:
    tokenizer = build_tokenizer(VOCABULARY)
    tokens = [token for text in texts for token in tokenizer.encode(text, add_special_tokens=False).tokens]
    counts = [(eojeol, 1) for text in texts for eojeol in text.split()]
    if not tokens:
        with pytest.raises(BadInput, match="no word"):
            measure_counts(tokenizer, counts)
        return

    statistics = measure_counts(tokenizer, counts)

    assert (statistics.tokens, statistics.unknown_tokens) == (len(tokens), tokens.count("[UNK]"))


def test_folder_and_bare_vocabulary_measure_alike(tmp_path: Path, vocab_file: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    export(VOCABULARY, TokenizerConfig(), "# card\n", folder)
    text = ["나는 책을 읽는다. 뷁"]

    assert measure(folder, text) == measure(vocab_file, text)


def test_missing_and_broken_tokenizers_are_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no tokenizer here; expected a folder with tokenizer\.json"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    with pytest.raises(BadInput, match="not a tokenizer"):
        load_tokenizer(tmp_path)


def test_klue_vocabulary_shows_paper_table_30(shared: Callable[[str], Path]) -> None:
    tokens = load_tokenizer(shared(KLUE_VOCABULARY)).encode("조경현은 인공지능 분야의 저명한 연구자이다.").tokens

    assert tokens[1:-1] == ["조경", "##현", "##은", "인공지능", "분야", "##의", "저명", "##한", "연구자", "##이다", "."]


def test_klue_vocabulary_on_klue_sentences(shared: Callable[[str], Path]) -> None:
    """Figures of an independent measurement of the released vocabulary on the dev sentences of four tasks."""
    official = shared("data/klue/official")

    statistics = measure(shared(KLUE_VOCABULARY), dict.fromkeys(dev_sentences(official)))

    assert round(statistics.fertility, 3) == 2.306
    assert round(statistics.continued_words, 3) == 0.725
    assert round(statistics.unknown_ratio, 4) == 0.0026
    assert statistics.unknown_eojeols[0] == ("ᄏᄏ", 26)  # conjoining jamo, left by NFKC in KLUE-NER


def dev_sentences(official: Path) -> Iterator[str]:
    for sentence in read(official / "klue-ner-v1.1/klue-ner-v1.1_dev.tsv.zst").split("\n\n"):
        rows = [line.split("\t") for line in sentence.split("\n") if not line.startswith("## klue")]
        yield "".join(row[0] for row in rows if len(row) == 2 and not row[0].startswith("##"))
    for line in read(official / "klue-dp-v1.1/klue-dp-v1.1_dev.tsv.zst").split("\n"):
        if line.startswith("## klue"):
            yield line.split("\t")[1]
    for row in json.loads(read(official / "klue-nli-v1.1/klue-nli-v1.1_dev.json.zst")):
        yield from (row["premise"], row["hypothesis"])
    for row in json.loads(read(official / "klue-sts-v1.1/klue-sts-v1.1_dev.json")):
        yield from (row["sentence1"], row["sentence2"])


def read(path: Path) -> str:
    packed = path.read_bytes()
    if path.suffix == ".zst":
        packed = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)).read()
    return packed.decode()
