"""Figures counted by hand, against encoding whole texts, and against the released KLUE vocabulary."""

from __future__ import annotations

import io
import json
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import BPE, Unigram
from tokenizers.pre_tokenizers import ByteLevel, Metaspace
from tokenizers.trainers import BpeTrainer

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document
from tests.tokenizer.measuring.measured import measure_counts
from tokenizer.building.count import count_eojeols
from tokenizer.building.export import build_tokenizer, export
from tokenizer.config import TokenizerConfig
from tokenizer.measuring.boundaries import count_boundaries, cut_by_mecab, score_boundaries
from tokenizer.measuring.compare import compare, name_tokenizers
from tokenizer.measuring.encoder import load_tokenizer, make_encoder
from tokenizer.measuring.statistics import TokenizerStatistics, renyi_efficiency
from tokenizer.run import TokenizerInputs, run

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "나", "##는", "책", "##을", ".", "읽", "##는다", "M", "##A"]
SENTENCES = ("나는 책을 읽는다.", "너는 책을 산다!", "나는 학교에 갔다")
GOLD = "## h\n1\t나는\t나 는\tNP+JX\t2\tNP_SBJ\n2\t했다\t하 었 다\tVV+EP+EF\t0\tVP\n"
KLUE_VOCABULARY = "data/klue/vocab/klue-bert-base-vocab.txt"


@pytest.fixture
def vocab_file(tmp_path: Path) -> Path:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(VOCABULARY) + "\n", "utf-8")
    return path


def measure(path: Path, texts: Iterable[str]) -> TokenizerStatistics:
    """Statistics of a tokenizer over texts."""
    counts = Counter(word for text in texts for word in text.split())
    return measure_counts(load_tokenizer(path), sorted(counts.items()))


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


FORMS = pytest.mark.parametrize("jamo_fallback", [False, True], ids=["plain", "jamo_fallback"])


@FORMS
def test_figures_of_a_build_are_those_of_its_folder_and_of_its_vocabulary_alone(
    tmp_path: Path, make_corpus: Callable[..., Path], documents: list[Document], jamo_fallback: bool
) -> None:
    chat = ("안녕😀반가워🫠 ᄒᆞᆫ글 뷁은 café나 " + "가" * 101 + " " + "가" * 30, "나🫠 책을")
    fit = build(make_corpus([*documents, Document("chat", "", chat)]), tmp_path / "out", jamo_fallback=jamo_fallback)
    texts = [sentence for document in documents for sentence in document.sentences] + [*chat]

    fit.pop("crossing_share")
    assert fit == json.loads(json.dumps(asdict(measure(tmp_path / "out", texts))))
    assert fit["unknown_hangul"] > 0
    bare = tmp_path / "alone.txt"
    bare.write_bytes((tmp_path / "out" / "vocab.txt").read_bytes())
    assert fit == json.loads(json.dumps(asdict(measure(bare, texts))))


@FORMS
def test_crossing_share_of_a_build_is_that_of_the_folder_by_the_same_analysis(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    make_corpus: Callable[..., Path],
    documents: list[Document],
    jamo_fallback: bool,
) -> None:
    monkeypatch.setattr("tokenizer.run.MAX_CROSSING_SHARE", 1.0)
    documents.append(Document("cider", "", ("사이다를 마셨다. 사이다가 사이다는 책이다. 학생이다.",)))  # 책|##이다
    fit = build(make_corpus(documents), tmp_path / "out", jamo_fallback=jamo_fallback)
    types = count_eojeols(documents)
    cuts = [cut_by_mecab(row) for row in types]

    encoder = make_encoder(load_tokenizer(tmp_path / "out"), [cut.text for cut in cuts])
    sums = np.array([row.frequency for row in types]) @ count_boundaries(encoder.spans, cuts)

    found = score_boundaries(sums.astype(float), np.full((1, len(sums)), np.nan))
    assert 0 < fit["crossing_share"] == pytest.approx(found.crossing)


def build(corpus: Path, out: Path, **settings: Any) -> dict[str, Any]:
    """The stage's own figures."""
    out.mkdir()
    config = TokenizerConfig(builder="malmoi", vocab_size=1_700, alphabet=100, unused=4, **settings)
    run(config, TokenizerInputs(corpus), out)
    fit: dict[str, Any] = json.loads((out / "statistics.json").read_text("utf-8"))["fit"]
    return fit


def test_missing_and_broken_tokenizers_are_bad_input(tmp_path: Path) -> None:
    for name in ("spiece.model", "cl100k_base.tiktoken"):
        (tmp_path / name).write_bytes(b"IQ== 0\n\xff")
        with pytest.raises(BadInput, match=r"only tokenizer\.json and vocab\.txt are read; use transformers"):
            load_tokenizer(tmp_path / name)
    with pytest.raises(BadInput, match=r"no tokenizer here; expected a folder with tokenizer\.json"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    with pytest.raises(BadInput, match="not a tokenizer"):
        load_tokenizer(tmp_path)


def test_entries_without_use_leave_out_special_and_spare_ones(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*VOCABULARY, "[unused0]", "[unused1]"]), "utf-8")

    statistics = measure(path, ["나는 " * 4 + "책을 " * 5])

    assert (statistics.vocab_size, statistics.pieces) == (16, 9)
    assert statistics.never_used == 5  # . 읽 ##는다 M ##A
    assert statistics.rarely_used == 7  # and 나 ##는, four times


def train_byte_level(folder: Path) -> Path:
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(vocab_size=290, initial_alphabet=ByteLevel.alphabet(), special_tokens=["<s>"])
    tokenizer.train_from_iterator(SENTENCES * 3, trainer)
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=9)
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@given(st.lists(st.text("나는책을뷁a.漢\u200b", min_size=1, max_size=6), min_size=1, max_size=6))
def test_byte_level_sums_are_those_of_words_behind_a_space(
    tmp_path_factory: pytest.TempPathFactory, words: list[str]
) -> None:
    """Its tokenizer.json also pads and truncates, which must not count."""
    folder = tmp_path_factory.getbasetemp() / "bytes"
    tokenizer = load_tokenizer(folder if folder.exists() else train_byte_level(folder))
    seen = [*SENTENCES, *words]

    statistics = measure_counts(tokenizer, sorted((word, 1) for text in seen for word in text.split()))

    expected = tokenizer.encode(" " + " ".join(seen), add_special_tokens=False).ids
    assert statistics.tokens == len(expected)
    assert (statistics.unknown_tokens, statistics.unknown_words) == (0, {})


def test_spans_count_from_the_first_character_of_the_eojeol(tmp_path: Path) -> None:
    words = [word for sentence in SENTENCES for word in sentence.split()]

    encoder = make_encoder(load_tokenizer(train_byte_level(tmp_path / "bytes")), words)

    assert encoder.before == " "
    for word, spans in zip(words, encoder.spans(words), strict=True):
        assert {place for begin, end in spans for place in range(begin, end)} == set(range(len(word)))


def test_unigram_counts_unknown_characters_and_the_space_it_keeps() -> None:
    entries = [("<unk>", 0.0), ("▁", -2.0), ("▁나", -1.0), ("는", -1.0), ("책", -2.0)]
    tokenizer = Tokenizer(Unigram(entries, unk_id=0))
    tokenizer.pre_tokenizer = Metaspace()

    statistics = measure_counts(tokenizer, [("나는", 2), ("책뷁漢.", 1)])  # ▁나|는 twice, ▁|책|<unk>

    assert (statistics.tokens, statistics.unknown_tokens) == (7, 1)
    assert statistics.unknown_words == {"Hangul syllable": 1, "Han": 1, "symbol or emoji": 1}
    assert (statistics.pieces, statistics.never_used) == (5, 0)


def test_vocabulary_of_an_uncased_folder_is_lowercased_as_its_settings_say(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join([*VOCABULARY, "nlp"]), "utf-8")
    assert load_tokenizer(tmp_path).encode("NLP").tokens[1:-1] == ["[UNK]"]

    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true, "strip_accents": false}', "utf-8")
    assert load_tokenizer(tmp_path).encode("NLP 나는").tokens[1:-1] == ["nlp", "나", "##는"]

    (tmp_path / "tokenizer_config.json").write_text("{", "utf-8")
    with pytest.raises(BadInput, match=r"tokenizer_config\.json: not readable as JSON"):
        load_tokenizer(tmp_path)


def test_vocabulary_written_in_jamo_is_read_as_its_settings_say(tmp_path: Path) -> None:
    pieces = [unicodedata.normalize("NFD", piece) for piece in [*VOCABULARY, "##A😀", "😀"]]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces), "utf-8")
    token = {"content": "😀", "normalized": False, "special": False}
    settings = {"do_lower_case": False, "strip_accents": True, "added_tokens_decoder": {"15": token}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")

    tokens = load_tokenizer(tmp_path).encode("나는😀나는 Á", add_special_tokens=False).tokens

    assert [unicodedata.normalize("NFC", token) for token in tokens] == ["나", "##는", "😀", "나", "##는", "[UNK]"]
    for broken in ({"added_tokens_decoder": {"15": {}}}, {"added_tokens_decoder": [1]}, {"strip_accents": "yes"}):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(broken), "utf-8")
        with pytest.raises(BadInput, match=r"tokenizer_config\.json: not the settings of a BERT tokenizer"):
            load_tokenizer(tmp_path)


def test_text_that_a_tokenizer_cannot_take_is_bad_input(vocab_file: Path) -> None:
    with pytest.raises(BadInput, match="cannot encode this text"):
        measure(vocab_file, ["나는 \ud800"])


def test_tokenizers_side_by_side_read_the_text_once(tmp_path: Path, vocab_file: Path) -> None:
    gold = tmp_path / "dp.tsv"
    gold.write_text(GOLD, "utf-8")
    tokenizers = [vocab_file, train_byte_level(tmp_path / "bytes")]

    found = compare(tokenizers, {"text": iter(SENTENCES)}, [gold])

    assert [c.name for c in found] == [tmp_path.name, "bytes"]
    assert [c.whole.fit for c in found] == [measure(path, SENTENCES) for path in tokenizers]
    assert {c.whole.silver.boundaries for c in found} == {found[0].whole.silver.boundaries}
    [on_gold] = found[0].golds
    assert (on_gold.file, on_gold.convention) == ("dp", "KLUE-DP")
    assert (on_gold.scores.f1, on_gold.scores.keeps_all, on_gold.scores.skipped) == (1.0, 1.0, 1)
    assert json.loads(json.dumps(asdict(found[0])))["whole"]["silver"]["eojeols"] == 9


def test_each_of_several_texts_and_all_together_are_as_if_measured_alone(tmp_path: Path, vocab_file: Path) -> None:
    texts = {"a": ["나는 책을", "뷁 읽는다.\n\n나는"], "나": ["나는 \u200b나는 산다\n" + "나" * 120]}
    tokenizers = [vocab_file, train_byte_level(tmp_path / "bytes")]

    for found in compare(tokenizers, texts):
        path = tokenizers[found.name == "bytes"]
        assert [on.text for on in (found.whole, *found.texts)] == ["all 2 texts", "a", "나"]
        assert found.whole.fit == measure(path, texts["a"] + texts["나"])
        for on in found.texts:
            assert on.fit == measure(path, texts[on.text])
            [alone] = compare([path], {on.text: texts[on.text]})
            assert alone.texts == ()
            assert alone.whole.silver.boundaries == on.silver.boundaries
        parts = [on.silver for on in found.texts]
        assert found.whole.silver.skipped == sum(part.skipped for part in parts) == 1
        assert found.whole.silver.eojeols == sum(part.eojeols for part in parts)
        low, high = found.texts[0].fertility_interval or (0, 0)
        assert low <= found.texts[0].fit.fertility <= high


def test_order_of_the_texts_changes_no_text(vocab_file: Path) -> None:
    texts = {"a": ["나는 책을 산다"], "b": ["책을 나는 읽는다."]}

    there, back = (compare([vocab_file], dict(order))[0] for order in (texts.items(), reversed(texts.items())))

    assert [(on.fit, on.silver.f1) for on in there.texts] == [(on.fit, on.silver.f1) for on in reversed(back.texts)]
    assert there.whole.fit == back.whole.fit


def test_side_by_side_without_gold_and_without_text(vocab_file: Path) -> None:
    assert compare([vocab_file], {"text": SENTENCES})[0].golds == ()
    with pytest.raises(BadInput, match="no words in the text"):
        compare([vocab_file], {"text": ["\x00", " \u3000\n"]})
    with pytest.raises(BadInput, match=r"b: no words in this text"):
        compare([vocab_file], {"a": SENTENCES, "b": [" \u3000\n"]})


def test_names_are_as_short_as_they_stay_different(tmp_path: Path) -> None:
    for folder in ("a/tokenizer", "b/tokenizer", "c"):
        (tmp_path / folder).mkdir(parents=True)
    bare = tmp_path / "klue-vocab.txt"
    for file in (bare, tmp_path / "c/vocab.txt", tmp_path / "c/tokenizer.json"):
        file.touch()

    folders = [tmp_path / "a/tokenizer", tmp_path / "b/tokenizer"]
    assert name_tokenizers([*folders, bare, tmp_path / "c/vocab.txt"]) == [
        "a/tokenizer", "b/tokenizer", "klue-vocab", "c"
    ]  # fmt: skip
    assert name_tokenizers([tmp_path / "c/vocab.txt", tmp_path / "c/tokenizer.json"]) == [
        "vocab.txt", "tokenizer.json"
    ]  # fmt: skip
    with pytest.raises(BadInput, match="given twice"):
        name_tokenizers([folders[0], tmp_path / "c/../a/tokenizer"])


def test_klue_vocabulary_shows_paper_table_30(shared: Callable[[str], Path]) -> None:
    tokens = load_tokenizer(shared(KLUE_VOCABULARY)).encode("조경현은 인공지능 분야의 저명한 연구자이다.").tokens

    assert tokens[1:-1] == ["조경", "##현", "##은", "인공지능", "분야", "##의", "저명", "##한", "연구자", "##이다", "."]


def test_klue_vocabulary_on_klue_sentences(shared: Callable[[str], Path]) -> None:
    """Figures of an independent measurement of the released vocabulary on the dev sentences of four tasks."""
    official = shared("data/klue/official")

    [found] = compare([shared(KLUE_VOCABULARY)], {"dev": dict.fromkeys(dev_sentences(official))})
    statistics, silver = found.whole.fit, found.whole.silver

    assert round(statistics.fertility, 3) == 2.306
    assert round(statistics.continued_words, 3) == 0.725
    assert round(statistics.unknown_ratio, 4) == 0.0026
    assert statistics.unknown_eojeols[0] == ("ᄏᄏ", 26)  # conjoining jamo, left by NFKC in KLUE-NER
    assert sum(statistics.unknown_words.values()) == statistics.unknown_tokens == 756
    # there the analyser saw whole sentences, here one neighbour on each side
    assert silver.f1_within_words == pytest.approx(0.868, abs=0.004)
    assert silver.crossing == pytest.approx(0.028, abs=0.002)


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pick @@ed pick @@l @@ed pick @@les", 0.8265064834225245),
        ("pick @@e @@d pick @@l @@e @@d pick @@l @@e @@s", 0.9204840242168808),
    ],
)
def test_renyi_efficiency_is_that_of_its_authors_package(text: str, expected: float) -> None:
    """tokenization-scorer 1.1.8, metric renyi, power 2.5."""
    uses = np.array([0, *Counter(text.split()).values(), 0])

    assert renyi_efficiency(uses) == pytest.approx(expected)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=9), st.sampled_from([0.5, 2.0, 2.5, 3.0]))
def test_renyi_efficiency_equals_the_slow_formula(uses: list[int], alpha: float) -> None:
    seen = [count / sum(uses) for count in uses if count]
    if len(seen) < 2:
        assert renyi_efficiency(np.array(uses), alpha) is None
        return
    entropy = 1 / (1 - alpha) * math.log2(sum(share**alpha for share in seen))

    assert renyi_efficiency(np.array(uses), alpha) == pytest.approx(entropy / math.log2(len(seen)))


def test_renyi_efficiency_is_over_the_pieces_of_the_text(vocab_file: Path) -> None:
    found = measure(vocab_file, ["나는 나는 책을"])  # 나 ##는 twice, 책 ##을 once

    assert found.renyi_efficiency == pytest.approx(renyi_efficiency(np.array([2, 2, 1, 1])))
