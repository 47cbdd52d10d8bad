"""Settings of the stage, each seen in what comes out: modes for personal data, keys, removal units, rules off."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from corpus.config import CorpusConfig
from corpus.documents.errors import BadInput
from corpus.documents.shards import read_documents, shard_paths

Clean = Callable[..., dict[str, Any]]
PHONE = "010-0123-4567"
CALL = f"문의는 {PHONE}로 해 주세요."
QUIET = "저녁에는 바람이 불었다."


def write(path: Path, *texts: str) -> Path:
    path.write_text("".join(json.dumps({"id": str(n), "text": text}) + "\n" for n, text in enumerate(texts)), "utf-8")
    return path


def sentences_of(out: Path) -> list[tuple[str, ...]]:
    return [document.sentences for shard in shard_paths(out / "documents") for document in read_documents(shard)]


def test_personal_data_go_in_the_way_that_is_asked_for(tmp_path: Path, clean: Clean) -> None:
    path = write(tmp_path / "a.jsonl", f"{CALL} {QUIET}")
    wanted = {
        "keep": (CALL, QUIET),
        "mask": ("문의는 ***-****-****로 해 주세요.", QUIET),
        "tag": ("문의는 [TEL]로 해 주세요.", QUIET),
        "drop": (QUIET,),
    }
    for mode, sentences in wanted.items():
        counts = clean(path, out=mode, pii={"mode": mode})
        assert sentences_of(tmp_path / mode) == [sentences]
        assert counts["dropped_sentences"] == ({"has_personal_data": 1} if mode == "drop" else {})
        samples = pq.read_table(tmp_path / mode / "changed" / "samples.parquet").to_pylist()
        assert [row["before"] for row in samples] == ([] if mode == "keep" else ["문의는 [TEL]로 해 주세요."])
        assert PHONE not in str(samples)
    clean(path, out="replace")
    assert PHONE not in str(sentences_of(tmp_path / "replace"))


def test_with_a_key_a_value_maps_alike_in_all_documents(
    tmp_path: Path, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", f"처음에 {CALL}", f"나중에 {CALL}")
    values = {}
    for name in ("first secret of this test", "another secret of this test"):
        monkeypatch.setenv("SECRET_OF_TEST", name)
        clean(path, out=name, pii={"key_variable": "SECRET_OF_TEST"})
        values[name] = {sentence.split()[2] for [sentence] in sentences_of(tmp_path / name)}
        everything = b"".join(file.read_bytes() for file in (tmp_path / name).rglob("*") if file.is_file())
        assert name.encode() not in everything
    clean(path, out="without")
    without = {sentence.split()[2] for [sentence] in sentences_of(tmp_path / "without")}
    assert [len(found) for found in values.values()] == [1, 1] and len(without) == 2
    assert len({*without, *(value for found in values.values() for value in found)}) == 4


def test_a_missing_key_is_bad_input_before_anything_is_read(tmp_path: Path, clean: Clean) -> None:
    with pytest.raises(BadInput, match="NO_SUCH_SECRET is not set"):
        clean(write(tmp_path / "a.jsonl", CALL), pii={"key_variable": "NO_SUCH_SECRET"})
    with pytest.raises(ValidationError, match="not both"):
        CorpusConfig.model_validate({"pii": {"key_file": "a", "key_variable": "B"}})


def test_short_benchmark_sentences_are_ignored_and_listed(tmp_path: Path, clean: Clean) -> None:
    (tmp_path / "quiz.txt").write_text("추천합니다~", "utf-8")
    path = write(tmp_path / "a.jsonl", f"추천합니다! {QUIET}")
    clean(path, benchmarks=[tmp_path / "quiz.txt"])
    report = json.loads((tmp_path / "out" / "decontamination.json").read_text("utf-8"))
    assert report["tasks"]["quiz.txt"]["too_short"] == {"count": 1, "examples": ["추천합니다~"]}
    assert sentences_of(tmp_path / "out") == [("추천합니다!", QUIET)]


@pytest.mark.parametrize("least", [1, 2, 3])
def test_a_sentence_of_exactly_the_minimum_length_is_kept(tmp_path: Path, clean: Clean, least: int) -> None:
    sentences = ("가", "나다", "라마바")
    counts = clean(write(tmp_path / "a.jsonl", "\n".join(sentences)), min_sentence_chars={"a": least})
    assert sentences_of(tmp_path / "out") == [sentences[least - 1 :]]
    assert counts["dropped_sentences"] == ({"is_too_short": least - 1} if least > 1 else {})


def test_noise_rules_and_limits_are_set_by_source(tmp_path: Path, clean: Clean) -> None:
    (tmp_path / "code.jsonl").write_text(json.dumps({"text": "값은 #include 처럼 쓴다."}), "utf-8")
    (tmp_path / "blog.jsonl").write_text(json.dumps({"text": "오늘은 #산책 했다."}), "utf-8")
    sources = {name: {"inputs": [str(tmp_path / f"{name}.jsonl")]} for name in ("code", "blog")}
    path = write(tmp_path / "rest.jsonl", "세 번째 글이 여기에 있다.")
    clean(path, sources=sources, noise_rules_off={"code": ["hashtag"]}, min_sentence_chars={"rest": 99})
    assert sentences_of(tmp_path / "out") == [("값은 #include 처럼 쓴다.",), ("오늘은 했다.",)]
    with pytest.raises(BadInput, match=r"hash_tag.*hashtag"):
        clean(path, sources=sources, noise_rules_off={"no such source": ["hash_tag"]}, out="wrong")


def test_the_words_of_hashtags_can_stay(tmp_path: Path, clean: Clean) -> None:
    path = write(tmp_path / "a.jsonl", "오늘은 #산책 을 했다 #봄 #꽃 #나들이")
    for keeps, sentences in ((False, ("오늘은 을 했다",)), (True, ("오늘은 산책 을 했다",))):
        counts = clean(path, out=str(keeps), keep_hashtag_words=keeps)
        assert sentences_of(tmp_path / str(keeps)) == [sentences]
        assert counts["changed"]["hashtag_sign" if keeps else "hashtag"]


def test_duplicates_stay_where_that_is_asked_for(tmp_path: Path, clean: Clean) -> None:
    long = "오래된 도서관 앞에서 아이들이 줄을 서서 책을 기다렸다."
    path = write(tmp_path / "a.jsonl", long, long.replace(" ", ""), f"{long} {QUIET}")
    for name, settings, left in (
        ("both", {}, [(long,), (QUIET,)]),
        ("documents", {"sentences": False}, [(long,), (long, QUIET)]),
        ("sentences", {"documents": False}, [(long,), (QUIET,)]),
        ("none", {"documents": False, "sentences": False}, [(long,), (long.replace(" ", ""),), (long, QUIET)]),
    ):
        clean(path, out=name, deduplicate=settings)
        assert sentences_of(tmp_path / name) == left, name
