"""The tokenizer bench: fair shares, nothing measured that was learnt from, one run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.texts import mix_texts, write_corpus
from benchmarks.tokenizer import COMMON, build, configuration, run_tokenizer_bench
from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, shard_paths
from tests.pretrain.conftest import invented_documents
from tokenizer.building.export import read_vocabulary

WORDS = ("도서관에서", "책을", "읽는", "사람이", "늘어났다고", "시장은", "말했다.", "공원을", "넓히겠다고")
TEXTS = [" ".join(document.sentences) for document in invented_documents(30)]
GOLD = "## h\n1\t책을\t책 을\tNNG+JKO\t2\tNP_OBJ\n2\t읽는다\t읽 는다\tVV+EF\t0\tVP\n"


def write_texts(path: Path, count: int, salt: int) -> Path:
    rows = []
    for number in range(count):
        words = [WORDS[(number * salt + k * k) % len(WORDS)] for k in range(12)]
        rows.append(
            json.dumps(
                {"id": str(number), "text": f"{path.stem} {number}번째 글. {' '.join(words)}"}, ensure_ascii=False
            )
        )
    path.write_text("\n".join(rows) + "\n", "utf-8")
    return path


@pytest.fixture
def texts(tmp_path: Path) -> list[str]:
    sizes = {"small": (60, 3), "large": (400, 5)}
    return [str(write_texts(tmp_path / f"{name}.jsonl", *size)) for name, size in sizes.items()]


def test_files_give_equal_shares_and_a_small_one_leaves_the_rest_to_others(texts: list[str]) -> None:
    everything = mix_texts(texts, [], 100)
    size = sum(everything.sources.values())
    some = mix_texts(texts, [], size / 2)

    assert some.sources["small.jsonl"] == everything.sources["small.jsonl"]
    assert some.sources["large.jsonl"] < everything.sources["large.jsonl"]
    assert sum(some.sources.values()) == pytest.approx(size / 2, rel=0.05)


def test_what_is_measured_was_not_learnt_from_and_does_not_depend_on_the_size(texts: list[str]) -> None:
    large, small = mix_texts(texts, texts[1:], 100), mix_texts(texts, texts[1:], 0.02)
    learnt = {sentence for document in large.documents for sentence in document.sentences}

    assert large.measured == small.measured
    assert 5 <= len(large.measured) <= 40
    assert not learnt & {line for text in large.measured for line in text.splitlines() if "번째" in line}


def test_too_little_text_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="too few documents"):
        mix_texts([str(write_texts(tmp_path / "a.jsonl", 1, 1))], [], 1)


@pytest.mark.parametrize("name", ["malmoi", COMMON])
def test_builds_leave_a_vocabulary_and_tell_what_they_took(tmp_path: Path, texts: list[str], name: str) -> None:
    corpus = write_corpus(mix_texts(texts, [], 100).documents, tmp_path / "corpus")

    figures = build((name,), corpus, tmp_path / "out", workers=1)[name]
    vocabulary = read_vocabulary(tmp_path / "out" / name / "vocab.txt")

    assert {"책", "도서관"} <= set(vocabulary) and len(vocabulary) <= 32_000
    assert figures["wall_s"] >= figures["analyse_s"] + figures["merge_s"] > 0
    assert figures["cpu_s"] > 0 and figures["peak_mib"] > 10


def test_a_corpus_is_written_as_the_stage_leaves_it(tmp_path: Path) -> None:
    folder = write_corpus([Document("1", "a", ("가나",))], tmp_path / "corpus")

    assert len(shard_paths(folder / "documents")) == 1


@pytest.mark.parametrize(
    ("name", "builder", "size", "jamo_fallback"),
    [
        ("malmoi", "malmoi", 32_000, False),
        ("klue-8k", "klue", 8_000, False),
        ("malmoi-jamo", "malmoi", 32_000, True),
    ],
)  # fmt: skip
def test_the_name_of_a_build_gives_its_settings(name: str, builder: str, size: int, jamo_fallback: bool) -> None:
    config = configuration(name)

    assert (config.builder, config.vocab_size, config.jamo_fallback) == (builder, size, jamo_fallback)


def test_a_run_prints_every_section_and_writes_its_files(
    tmp_path: Path,
    texts: list[str],
    capsys: pytest.CaptureFixture[str],
    in_this_process: None,
) -> None:
    (tmp_path / "gold.tsv").write_text(GOLD, "utf-8")

    results = run_tokenizer_bench(texts, texts[1:], [tmp_path / "gold.tsv"], [], 1.0, 1, out=tmp_path / "out")

    shown = capsys.readouterr().out
    for title in ("Building", "Fit to held-out text", "annotated"):
        assert title in shown
    names = {"malmoi", COMMON, "klue", "bpe", "malmoi-jamo", "malmoi-8k", "klue-8k"}
    assert {row["name"] for row in results["compared"]} == names
    assert results["builds"]["times_faster"] > 0
    assert json.loads((tmp_path / "out" / "bench.json").read_text("utf-8")) == results
    assert (tmp_path / "out" / "malmoi" / "tokenizer.json").is_file()


@pytest.mark.parametrize("megabytes", [0, -1])
def test_nothing_to_learn_from_is_one_sentence(megabytes: float) -> None:
    with pytest.raises(BadInput, match="above 0"):
        run_tokenizer_bench([], [], [], [], megabytes, 1, None)


def test_any_prefix_of_the_mix_has_the_share_of_every_file(texts: list[str]) -> None:
    mix = mix_texts(texts, [], 0.02)
    shares = [
        sum(document.source == "large.jsonl" for document in part) / len(part)
        for part in (mix.documents, mix.documents[: len(mix.documents) // 2])
    ]

    assert shares[0] == pytest.approx(shares[1], abs=0.15)
