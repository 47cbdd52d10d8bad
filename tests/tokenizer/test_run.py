"""The whole stage: what it leaves, the same bytes whatever happens, and input it must refuse."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError
from transformers import AutoTokenizer

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, write_shard
from tokenizer.config import TokenizerConfig
from tokenizer.run import TokenizerInputs, run

MakeCorpus = Callable[..., Path]
SMALL = {"vocab_size": 400, "unused": 4}
ROOT = Path(__file__).resolve().parents[2]
FILES = [
    "README.md", "special_tokens_map.json", "statistics.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt",
]  # fmt: skip


def train(corpus: Path, out: Path, *, workers: int = 1, **settings: object) -> dict[str, bytes]:
    """Run the stage; returns the files it left."""
    out.mkdir(exist_ok=True)
    run(TokenizerConfig(**{**SMALL, **settings}), TokenizerInputs(corpus), out, workers=workers)
    return contents(out)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many portions and partitions, as of a large corpus."""
    monkeypatch.setattr("tokenizer.building.count.SMALLEST_PORTION", 300)
    monkeypatch.setattr("tokenizer.building.count.PARTITION_BYTES", 300)


@pytest.mark.parametrize("builder", ["klue", "bpe", "malmoi"])
def test_stage_leaves_a_tokenizer_that_reads_the_corpus(
    tmp_path: Path, make_corpus: MakeCorpus, documents: list[Document], builder: str
) -> None:
    files = train(make_corpus(documents), tmp_path / "out", builder=builder)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    statistics = json.loads(files["statistics.json"])

    assert sorted(files) == FILES
    assert len(tokenizer) == statistics["vocabulary"]["size"] == files["vocab.txt"].count(b"\n")
    assert statistics["fit"]["unknown_tokens"] == 0
    assert statistics["corpus"]["sources"] == {"뉴스": 8, "백과": 4}
    assert f"{statistics['fit']['fertility']:.3f}" in files["README.md"].decode()
    for document in documents:
        for sentence in document.sentences:
            assert tokenizer.unk_token_id not in tokenizer(sentence)["input_ids"]


@pytest.mark.parametrize("builder", ["klue", "bpe", "malmoi"])
def test_statistics_count_the_sections_of_the_vocabulary(
    tmp_path: Path, make_corpus: MakeCorpus, documents: list[Document], builder: str, caplog: pytest.LogCaptureFixture
) -> None:
    files = train(make_corpus(documents), tmp_path / "out", builder=builder)
    statistics, entries = json.loads(files["statistics.json"]), files["vocab.txt"].decode().splitlines()
    special = [entry for entry in entries if re.fullmatch(r"\[[A-Z]+\]", entry)]
    unused = [entry for entry in entries if entry.startswith("[unused")]
    learned = [entry for entry in entries if entry not in (*special, *unused)]
    assert statistics["vocabulary"] == {
        "size": len(entries), "special": len(special), "unused": len(unused),
        "starting": sum(not entry.startswith("##") for entry in learned),
        "continuing": sum(entry.startswith("##") for entry in learned),
        "alphabet": sum(len(entry) == 1 for entry in learned),
        "sha256": hashlib.sha256(files["vocab.txt"]).hexdigest(),
    }  # fmt: skip
    assert ("python-mecab-ko" in statistics["analyser"]) == (builder != "bpe")
    assert ("pruning" in statistics) == (builder == "malmoi")
    assert ("entries: no other pair" in caplog.text) == (len(entries) < SMALL["vocab_size"])


def test_builders_cut_the_sentence_of_table_30_as_they_should(
    tmp_path: Path, make_corpus: MakeCorpus, documents: list[Document]
) -> None:
    corpus = make_corpus(documents)
    cuts = {}
    for builder in ("klue", "malmoi", "bpe"):
        train(corpus, tmp_path / builder, builder=builder)
        cuts[builder] = AutoTokenizer.from_pretrained(tmp_path / builder).tokenize("분야의 연구자이다.")

    assert cuts["bpe"] == ["분야의", "연구자이다", "."]
    assert cuts["klue"] == cuts["malmoi"] == ["분야", "##의", "연구자", "##이", "##다", "."]


def test_rare_eojeols_are_counted_and_teach_nothing(
    tmp_path: Path, make_corpus: MakeCorpus, documents: list[Document]
) -> None:
    corpus = make_corpus([*documents, Document("rare", "뉴스", ("희귀낱말 희귀낱말",))])
    everything, frequent = train(corpus, tmp_path / "a"), train(corpus, tmp_path / "b", max_types=30)
    counts = json.loads(frequent["statistics.json"])["corpus"]

    assert "희귀낱말" not in frequent["vocab.txt"].decode().splitlines()
    assert "희" in frequent["vocab.txt"].decode().splitlines()
    assert everything["vocab.txt"] != frequent["vocab.txt"]
    assert counts["analysed_types"] <= 30 < counts["eojeol_types"]
    assert counts["lowest_frequency"] > 2


def test_a_vocabulary_with_jamo_fallback_reads_any_hangul(
    tmp_path: Path, make_corpus: MakeCorpus, documents: list[Document]
) -> None:
    train(make_corpus(documents), tmp_path / "out", vocab_size=1_600, jamo_fallback=True, builder="malmoi")
    loaded = AutoTokenizer.from_pretrained(tmp_path / "out")

    assert loaded.unk_token_id not in loaded("뷁쀍이 ㅋㅋ ᄏᄏ Zz~ 안녕😀")["input_ids"]
    assert max(map(len, loaded.tokenize(documents[0].sentences[0]))) > len("##각")


def test_counts_are_those_of_the_text(tmp_path: Path, make_corpus: MakeCorpus, documents: list[Document]) -> None:
    (tmp_path / "out").mkdir()
    counts = run(TokenizerConfig(**SMALL), TokenizerInputs(make_corpus(documents)), tmp_path / "out")
    eojeols = [word for document in documents for sentence in document.sentences for word in sentence.split()]

    assert (counts["documents"], counts["eojeols"], counts["eojeol_types"]) == (12, len(eojeols), len(set(eojeols)))
    assert counts["tokens"] == pytest.approx(counts["fertility"] * len(eojeols))


def test_workers_and_shard_layouts_change_no_byte(
    tmp_path: Path, make_corpus: MakeCorpus, documents: list[Document]
) -> None:
    three_shards, one_shard = make_corpus(documents, 5, "three"), make_corpus(documents[::-1], 99, "one")
    expected = train(three_shards, tmp_path / "a", builder="malmoi")

    assert train(three_shards, tmp_path / "b", builder="malmoi", workers=2) == expected
    assert train(one_shard, tmp_path / "c", builder="malmoi") == expected


def test_hash_seed_changes_no_byte(tmp_path: Path, make_corpus: MakeCorpus, documents: list[Document]) -> None:
    corpus = make_corpus(documents)
    outs = [tmp_path / seed for seed in ("1", "2")]
    for out in outs:
        out.mkdir()
        assert start(corpus, out, PYTHONHASHSEED=out.name).wait() == 0

    assert contents(outs[0]) == contents(outs[1])


@pytest.mark.parametrize("last_step", ["count", "types", "units", "merges", "uses-0", "uses-1", "fit"])
def test_killed_run_finishes_with_the_bytes_of_an_undisturbed_one(
    tmp_path: Path, make_corpus: MakeCorpus, documents: list[Document], last_step: str
) -> None:
    corpus = make_corpus(documents)
    expected = train(corpus, tmp_path / "undisturbed", builder="malmoi")
    out = tmp_path / "killed"
    out.mkdir()
    process = start(corpus, out, kill_after=last_step)

    assert process.wait() == -signal.SIGKILL
    assert (out / "work" / last_step).is_dir() and not (out / "vocab.txt").exists()
    assert train(corpus, out, builder="malmoi") == expected


def test_run_killed_while_clearing_up_starts_clean(
    tmp_path: Path, make_corpus: MakeCorpus, documents: list[Document]
) -> None:
    corpus = make_corpus(documents)
    expected = train(corpus, tmp_path / "out")
    half_deleted = tmp_path / "out/work.discarded/count/unit-00000"
    half_deleted.mkdir(parents=True)
    (half_deleted / "counts.json").write_text("{}", "utf-8")

    assert train(corpus, tmp_path / "out") == expected


def test_short_text_gives_a_smaller_vocabulary_and_says_so(
    tmp_path: Path, make_corpus: MakeCorpus, documents: list[Document], caplog: pytest.LogCaptureFixture
) -> None:
    files = train(make_corpus(documents), tmp_path / "out", vocab_size=5_000, unused=100)

    size = files["vocab.txt"].count(b"\n")
    assert 200 < size < 1_000
    assert f"only {size} of 5000 vocabulary entries" in caplog.text
    assert files["vocab.txt"].decode().splitlines()[-1] == "[unused99]"


@pytest.mark.parametrize(
    ("documents_", "message"),
    [
        (None, "no document shards"),
        ([Document("1", "출처", ())], "no words in its documents"),
        ([Document("1", "출처", ("\x00 \u200b", "가" * 101))], "only control characters"),
    ],
)
def test_corpus_without_words_is_bad_input(
    tmp_path: Path, make_corpus: MakeCorpus, documents_: Sequence[Document] | None, message: str
) -> None:
    corpus = tmp_path if documents_ is None else make_corpus(documents_)

    with pytest.raises(BadInput, match=message):
        train(corpus, tmp_path / "out")


def test_shards_without_rows_change_nothing_and_alone_are_bad_input(
    tmp_path: Path, make_corpus: MakeCorpus, documents: list[Document]
) -> None:
    expected = train(make_corpus(documents), tmp_path / "a")
    folder = make_corpus(documents, name="with-empty-ones") / "documents"
    write_shard(folder / "shard-00001.parquet.empty.parquet", [])
    assert train(folder.parent, tmp_path / "b") == expected

    for shard in folder.glob("shard-0000?.parquet"):
        shard.unlink()
    with pytest.raises(BadInput, match="no words in its documents"):
        train(folder.parent, tmp_path / "c")


def test_a_size_without_room_is_refused_with_the_smallest_that_has_some(
    tmp_path: Path, make_corpus: MakeCorpus, documents: list[Document]
) -> None:
    with pytest.raises(ValidationError, match=r"597 entries are special .* need 4; raise vocab_size to 601 or more"):
        TokenizerConfig(vocab_size=600, unused=592)
    with pytest.raises(
        ValidationError, match=r"jamo and one piece to learn need \d+; raise vocab_size to \d+"
    ) as caught:
        TokenizerConfig(vocab_size=600, unused=500, jamo_fallback=True)
    smallest = int(re.findall(r"to (\d+) or more", str(caught.value))[0])
    with pytest.raises(ValidationError, match=f"raise vocab_size to {smallest} or more, or lower unused to 499 "):
        TokenizerConfig(vocab_size=smallest - 1, unused=500, jamo_fallback=True)

    files = train(make_corpus(documents), tmp_path / "out", vocab_size=smallest, unused=500, jamo_fallback=True)
    assert files["vocab.txt"].count(b"\n") == smallest


def test_a_huge_line_without_spaces_is_survived(
    tmp_path: Path, make_corpus: MakeCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokenizer.building.count.PARTITION_BYTES", 1 << 20)
    huge = Document("1", "출처", ("가나다" * 300_000, "책상 책상 책상", "가나다라" * 60 + "."))

    files = train(make_corpus([huge]), tmp_path / "out")

    assert len(files["statistics.json"]) < 5_000
    assert "책상" in files["vocab.txt"].decode().split("\n")


RUN_AND_KILL = """
import os, signal, sys
from pathlib import Path
import corpus.documents.units as corpus_units

corpus, out, settings, last_step = sys.argv[1:]
map_units = corpus_units.map_units

def map_then_die(work, units, folder, **options):
    results = map_units(work, units, folder, **options)
    if folder.name == last_step:
        os.kill(os.getpid(), signal.SIGKILL)
    return results

corpus_units.map_units = map_then_die
import tokenizer.building.count, tokenizer.run
from tokenizer.config import TokenizerConfig

tokenizer.building.count.SMALLEST_PORTION = tokenizer.building.count.PARTITION_BYTES = 300
tokenizer.run.run(
    TokenizerConfig.model_validate_json(settings), tokenizer.run.TokenizerInputs(Path(corpus)), Path(out)
)
"""


def start(corpus: Path, out: Path, kill_after: str = "", **environment: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-c",
        RUN_AND_KILL,
        str(corpus),
        str(out),
        json.dumps(SMALL | {"builder": "malmoi"}),
        kill_after,
    ]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment})


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
