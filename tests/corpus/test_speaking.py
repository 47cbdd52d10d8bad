"""What the stage says: files that are not read, wrong keys, unreadable records, strict rules, progress."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from corpus.config import CorpusConfig
from corpus.documents import units
from corpus.documents.errors import BadInput
from corpus.documents.section import warn_once
from corpus.documents.shards import read_documents, shard_paths
from corpus.documents.units import PROGRESS_NAME, describe_progress, map_units
from corpus.reading.files import find_texts
from corpus.reading.inputs import find_inputs
from corpus.reading.read import check_first_records
from launch import manifest

Clean = Callable[..., dict[str, Any]]
SENTENCE = "강가의 오래된 도서관에서 소년이 책을 천천히 읽었다."


@pytest.fixture(autouse=True)
def _warnings_again() -> Iterator[None]:
    yield
    warn_once.cache_clear()


def write_lines(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), "utf-8")
    return path


def texts_of(out: Path) -> list[str]:
    return [" ".join(d.sentences) for shard in shard_paths(out / "documents") for d in read_documents(shard)]


# --- files


KINDS = ("a.csv", "b.csv", "c.docx", "d.json", "e.pdf", "f.zip", "g.html", "h.strange", "i")


@pytest.mark.parametrize("pattern", ["", "*", "**"])
def test_files_that_are_not_read_are_counted_by_kind_with_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, pattern: str
) -> None:
    for name in KINDS:
        (tmp_path / name).touch()
    with pytest.raises(BadInput, match=r"no text file .* here, only 2 \.csv \(save as .*1 \.docx \(extract"):
        find_inputs([str(tmp_path / pattern)], {}, "text")
    (tmp_path / "text.txt").write_text(SENTENCE, "utf-8")
    (tmp_path / "folder").mkdir()
    assert [item.name for item in find_inputs([str(tmp_path / pattern)], {}, "text")] == ["text.txt"]
    [warning] = caplog.messages
    assert "files that are read: 1; files that are not: 2 .csv (save as .jsonl or .parquet" in warning
    for part in ("1 .json (set corpus.sources.NAME.format", "1 .zip (unpack)", "1 .html (", "1 .pdf (", "2 other (re"):
        assert part in warning
    assert ("1 folder(s) (end the glob in /**" in warning) == (pattern == "*")


@pytest.mark.parametrize("pattern", [".", "*/*", "**/*.txt", "runs/*/*/*"])
@pytest.mark.parametrize("head", ["started.json", "manifest.json"])
def test_results_of_runs_are_not_read_again_unless_they_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, pattern: str, head: str
) -> None:
    stage = tmp_path / "runs" / "a" / "tokenizer"
    manifest.start(stage, manifest.Head("tokenizer", {}, {}))
    (stage / "started.json").rename(stage / head)
    texts = [tmp_path / "in" / "a.txt", stage / "deep" / "vocab.txt", stage / "vocab.txt"]
    for path in [*texts, tmp_path / "in" / "manifest.json", tmp_path / "runs" / "a" / "other" / "b.txt"]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("글", "utf-8")
    found = {item.file.name for item in find_inputs([str(tmp_path / pattern)], {}, "text")}
    assert found == {"**/*.txt": {"a.txt", "b.txt"}, ".": {"a.txt", "b.txt"}, "*/*": {"a.txt"}}.get(pattern, {"b.txt"})
    assert ("in results of malmoi runs (name the folder itself" in caplog.text) == (pattern != "*/*")
    assert len(find_inputs([str(stage)], {}, "text")) == 2


def test_brackets_of_an_existing_folder_are_no_pattern(tmp_path: Path) -> None:
    for name in ("data [2024]/a.txt", "data 2/b.txt", "data [2024]/[0]/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("글", "utf-8")
    expected = {"data [2024]/*.txt": "a", "data [2024]": "ac", "data [2]/*.txt": "b", "data [2024]/[0]/[a-c].txt": "c"}
    for pattern, names in expected.items():
        assert {path.stem for path in find_texts([str(tmp_path / pattern)])} == {*names}, pattern


def test_a_source_with_a_format_says_what_it_skips(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_lines(tmp_path / "a.jsonl", {"id": "1", "text": SENTENCE})
    (tmp_path / "b.hwp").touch()
    find_inputs([], CorpusConfig(sources={"N": {"inputs": str(tmp_path), "format": "news"}}).sources, "text")
    assert "1 .hwp (extract the text" in caplog.text


@pytest.mark.parametrize("is_glob", [False, True])
def test_links_are_not_followed_out_of_a_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_glob: bool
) -> None:
    outside = tmp_path / "private.txt"
    outside.write_text("비밀", "utf-8")
    home = tmp_path / "in"
    (home / "deep").mkdir(parents=True)
    (home / "a.txt").write_text("글", "utf-8")
    (home / "deep" / "link.txt").symlink_to(outside)
    (home / "folder").symlink_to(tmp_path)
    (home / "deep" / "same.txt").symlink_to(home / "a.txt")
    found = find_inputs([f"{home}/**/*.txt" if is_glob else str(home)], {}, "text")
    assert {item.file.resolve() for item in found} == {home / "a.txt"}
    assert "links to files outside of this folder are not read: " in caplog.text
    assert len(find_inputs([str(home / "deep" / "link.txt")], {}, "text")) == 1  # a link that is named itself


def test_links_of_the_hub_cache_are_read(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "abc").write_text("글", "utf-8")
    revision = tmp_path / "snapshots" / "rev"
    revision.mkdir(parents=True)
    (revision / "a.txt").symlink_to(tmp_path / "blobs" / "abc")
    assert len(find_inputs([str(revision)], {}, "text")) == 1


@pytest.mark.parametrize(("name", "advice"), [("a.csv", "save as .jsonl"), ("a.pdf", "extract the"), ("a", "rename")])
def test_a_named_file_of_another_kind_says_what_to_do(tmp_path: Path, name: str, advice: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(BadInput, match=f"not a text file .*; {advice}"):
        find_inputs([str(tmp_path / name)], {}, "text")


# --- keys


@pytest.mark.parametrize("value", [["글", "글"], {"body": "글"}, 3])
def test_a_key_without_a_string_is_not_proposed(tmp_path: Path, value: object) -> None:
    with pytest.raises(BadInput, match=r"no text under 'text' in the first 1 records .*; set corpus\.text_field=…"):
        check_first_records(find_inputs([str(write_lines(tmp_path / "a.jsonl", {"text": value}))], {}, "text"))


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson"])
def test_the_keys_of_the_first_records_are_named_before_any_work(tmp_path: Path, suffix: str) -> None:
    path = write_lines(tmp_path / f"a{suffix}", *({"id": n, "title": "제목", "body": SENTENCE} for n in range(30)))
    message = r"no text under 'text' in the first 10 records .*: body, title, id\); set corpus.text_field=body"
    with pytest.raises(BadInput, match=message):
        check_first_records(find_inputs([str(path)], {}, "text"))
    check_first_records(find_inputs([str(path)], {}, "body"))


def test_keys_of_a_source_and_of_a_format_name_its_own_setting(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"본문": SENTENCE, "010-0123-4567 에게": "x"})
    for source, message in (
        ({"inputs": [str(path)]}, r"set corpus\.sources\.N\.text_field=본문$"),
        (
            {"inputs": [str(path)], "format": "petitions"},
            r"not in the layout of the format petitions .*sources\.N\.format",
        ),
    ):
        with pytest.raises(BadInput, match=message) as caught:
            check_first_records(find_inputs([], CorpusConfig(sources={"N": source}).sources, "text"))
        assert "0123" not in str(caught.value)


def test_one_file_with_other_keys_is_a_warning_and_null_or_broken_records_are_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_lines(tmp_path / "a.jsonl", {"text": SENTENCE})
    write_lines(tmp_path / "b.jsonl", {"body": SENTENCE})
    write_lines(tmp_path / "c.jsonl", {"text": None, "body": ""})
    (tmp_path / "d.jsonl").write_text("{\n", "utf-8")
    check_first_records(find_inputs([str(tmp_path)], {}, "text"))
    assert [line.rpartition("/")[2][:7] for line in caplog.messages] == ["b.jsonl"]


def test_one_path_is_a_list_of_one(tmp_path: Path) -> None:
    config = CorpusConfig(inputs="text.txt", benchmarks="klue", sources={"N": {"inputs": "n.txt"}})
    assert (config.inputs, config.benchmarks, config.sources["N"].inputs) == (["text.txt"], ["klue"], ["n.txt"])
    assert CorpusConfig().benchmarks is None


# --- encodings and line ends


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("setting", ["auto", "utf-16"])
def test_utf_16_without_a_mark_is_recognised(tmp_path: Path, clean: Clean, encoding: str, setting: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(f"{SENTENCE}\n\n둘째 글이다, 1998년.\n".encode(encoding))
    clean(path, encoding=setting)
    assert texts_of(tmp_path / "out") == [SENTENCE, "둘째 글이다, 1998년."]
    with pytest.raises(BadInput, match=r"looks like UTF-16-.E, not UTF-8; set corpus.encoding=utf-16, or auto"):
        clean(path, encoding="utf-8", out="other")


@pytest.mark.parametrize("encoding", ["utf-8", "cp949", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("cut", [1 << 24, 64])
def test_old_mac_line_ends_separate_documents(
    tmp_path: Path, clean: Clean, encoding: str, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corpus.reading.inputs.UNIT_BYTES", cut)
    texts = [f"{n}번째 글은 하나의 문장이다." for n in "가나다라마"]
    (tmp_path / "a.txt").write_bytes("\r\r".join(texts).encode(encoding))
    (tmp_path / "b.txt").write_bytes("\r\n\r\n".join(f"또 {text}" for text in texts).encode(encoding))
    clean(tmp_path / "a.txt", tmp_path / "b.txt", deduplicate={"documents": False, "sentences": False})
    assert texts_of(tmp_path / "out") == [*texts, *(f"또 {text}" for text in texts)]


# --- what was lost


def test_unreadable_records_are_one_warning_with_counts_and_place(
    tmp_path: Path, clean: Clean, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_lines(tmp_path / "a.jsonl", *({"text": f"{n} {SENTENCE}"} for n in range(6)))
    path.write_text(path.read_text("utf-8") + "{broken\n" * 6, "utf-8")
    clean(path)
    [line] = [message for message in caplog.messages if "could not be read" in message]
    assert line.startswith("6 of 12 records could not be read (broken_json 6); see ")
    assert line.endswith("quarantine/records.jsonl for file and line")


@pytest.mark.parametrize(("short", "says"), [(177, True), (2, False)])
def test_a_rule_that_drops_more_than_half_of_a_source_is_a_warning(
    tmp_path: Path, clean: Clean, caplog: pytest.LogCaptureFixture, short: int, says: bool
) -> None:
    texts = [f"{n}번 문장은 짧다." for n in range(short)] + [f"{n} {SENTENCE * 8}".replace(".", ",") for n in range(2)]
    clean(write_lines(tmp_path / "a.jsonl", *({"text": text, "source": "CC-100"} for text in texts)))
    lines = [message for message in caplog.messages if "dropped" in message]
    expected = "source CC-100: rule is_too_short dropped 177 of 179 sentences; see dropped/samples.parquet"
    assert [line.partition(" and")[0] for line in lines] == [expected] * says


# --- progress


def _slow(unit: int, scratch: Path) -> dict[str, Any]:
    [path] = scratch.parent.glob(PROGRESS_NAME)
    record = json.loads(path.read_text("utf-8"))
    time.sleep(0.06)
    return {"seen": record["done"], "total": record["total"]}


@pytest.mark.parametrize("sizes", [None, lambda unit: 1_000])
def test_without_a_terminal_a_line_shows_done_total_and_time_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, sizes: Any
) -> None:
    monkeypatch.setattr(units, "REPORT_SECONDS", 0.05)
    with caplog.at_level(logging.INFO):
        counts = map_units(_slow, list(range(4)), tmp_path / "map", title="clean", size_of=sizes)
    step = 1_000 if sizes else 1
    assert [count["seen"] for count in counts] == [0, step, 2 * step, 3 * step]
    lines = [message for message in caplog.messages if message.startswith("clean: ")]
    assert len(lines) >= 3 and lines[0].endswith("so far") and lines[-1].endswith("left")
    assert ("1.00kB of 4.00kB" if sizes else "1 of 4") in "\n".join(lines)
    assert not (tmp_path / "map" / PROGRESS_NAME).exists()


def test_progress_of_an_unknown_total_has_no_time_left() -> None:
    record = {"title": "clean", "done": 3, "total": None, "is_bytes": False, "seconds": 90.0, "seconds_left": None}
    assert describe_progress(record) == "3 done, 01:30 so far"
    assert describe_progress(record | {"total": 6, "seconds_left": 30.0}) == "3 of 6, 00:30 left"


def test_a_file_system_without_room_for_progress_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "map" / PROGRESS_NAME).mkdir(parents=True)
    with units.Progress(tmp_path / "map" / PROGRESS_NAME, "x", 1, is_bytes=False) as progress:
        progress.add(1)
        (tmp_path / "map" / PROGRESS_NAME).rmdir()
