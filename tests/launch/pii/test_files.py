"""Files and streams of ``malmoi pii``: encodings, folders, what is set aside, outputs that are whole or not there."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from corpus.reading.files import PACKINGS, read_blocks

Malmoi = Callable[..., subprocess.CompletedProcess[bytes]]
TEL = "010-0123-4567"
LINE = f"문의는 {TEL}로 주세요.\n"
TAGGED = LINE.replace(TEL, "[TEL]")
COMMAND = [sys.executable, "-m", "launch", "pii"]


def test_the_command_works_as_a_process_between_pipes_of_any_encoding(tmp_path: Path) -> None:
    for encoding in ("ascii", "cp949", "utf-8"):
        environment = os.environ | {"PYTHONIOENCODING": encoding}
        command = [*COMMAND, "replace", "-", "--mode", "tag"]
        result = subprocess.run(command, input=LINE.encode(), capture_output=True, cwd=tmp_path, env=environment)
        assert (result.returncode, result.stdout.decode()) == (0, TAGGED)


def test_errors_in_a_terminal_without_hangul_are_escaped(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}
    result = subprocess.run([*COMMAND, "detect", "글.txt"], capture_output=True, cwd=tmp_path, env=environment)
    assert result.returncode == 2 and b"Traceback" not in result.stderr
    assert rb"\uae00.txt" in result.stderr


def test_a_reader_that_leaves_early_ends_the_command_quietly(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(LINE * 20_000, "utf-8")
    command = f"{' '.join(COMMAND)} replace a.txt --mode tag | head -1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, cwd=tmp_path)
    assert (result.stdout.decode(), result.stderr) == (TAGGED, b"")


@pytest.mark.parametrize(
    ("closing", "words"), [("<&-", "standard input is closed"), (">&-", "standard output is closed")]
)
def test_a_closed_stream_is_one_sentence(tmp_path: Path, closing: str, words: str) -> None:
    command = f"echo {TEL} | {{ {' '.join(COMMAND)} replace - {closing}; }}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 2 and words in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("output", ["/dev/full", "- > /dev/full"])
def test_a_full_disk_is_one_sentence(tmp_path: Path, output: str) -> None:
    (tmp_path / "a.txt").write_text(LINE, "utf-8")
    result = subprocess.run(
        ["bash", "-c", f"{' '.join(COMMAND)} replace a.txt {output}"], capture_output=True, text=True, cwd=tmp_path
    )
    assert result.returncode == 2
    assert [line for line in result.stderr.splitlines() if line] == [
        "malmoi: no space left on the disk; make room, then run the same command again to resume"
    ]


def test_an_output_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(LINE * 5_000, "utf-8")
    unmeasured = "unset COVERAGE_PROCESS_START COVERAGE_PROCESS_CONFIG"  # the limit would cut its data, too
    command = f"{unmeasured}; ulimit -f 64; {' '.join(COMMAND)} replace a.txt b.txt"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 2 and "Traceback" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("encoding", ["cp949", "utf-16", "utf-8-sig"])
def test_encodings_are_recognised_and_output_is_utf8(malmoi: Malmoi, tmp_path: Path, encoding: str) -> None:
    text = "안녕하세요, 반갑습니다.\r\n" + LINE
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    for result in (malmoi("replace", "a.txt", "--mode", "tag"),
                   malmoi("replace", "-", "--mode", "tag", stdin=text.encode(encoding))):  # fmt: skip
        assert result.stdout.decode() == text.replace(TEL, "[TEL]")
        told = "" if encoding == "utf-8-sig" else f"read as {encoding.upper()}\n"
        assert result.stderr.decode().endswith(told) and bool(result.stderr) == bool(told)


def test_other_encodings_go_by_name(malmoi: Malmoi) -> None:
    stdin = LINE.encode("johab")
    assert malmoi("replace", "-", "--mode", "tag", "--encoding", "johab", stdin=stdin).stdout.decode() == TAGGED
    result = malmoi("replace", "-", "--encoding", "utf-8", stdin=LINE.encode("cp949"))
    assert result.returncode == 2 and b"line 1: not valid UTF-8; set --encoding" in result.stderr


@pytest.mark.parametrize("packing", PACKINGS)
def test_packed_files_are_read_and_written(malmoi: Malmoi, tmp_path: Path, packing: str) -> None:
    (tmp_path / "a.txt").write_text(LINE * 3, "utf-8")
    assert malmoi("replace", "a.txt", f"b.TXT{packing}", "--mode", "tag").returncode == 0
    assert b"".join(read_blocks(tmp_path / f"b.TXT{packing}")).decode() == TAGGED * 3
    (tmp_path / f"b.TXT{packing}").rename(tmp_path / "without_suffix")
    assert malmoi("replace", "without_suffix").stdout.decode() == TAGGED * 3


def folder(root: Path) -> Path:
    for name, content in {
        "a.txt": LINE, "B/A.NDJSON": json.dumps({"text": TEL}) + "\n", "B/c.csv": f"전화\n{TEL}\n", "B/.d.txt": LINE,
        "e.png": "x",
    }.items():  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, "utf-8")
    (root / "f.txt.gz").write_bytes(gzip.compress(LINE.encode()))
    return root


def files_below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_a_folder_becomes_a_folder_of_the_same_paths(malmoi: Malmoi, tmp_path: Path) -> None:
    folder(tmp_path / "in")
    result = malmoi("replace", "in", "out", "--mode", "tag")
    assert result.returncode == 0 and b"2 files of other kinds are ignored" in result.stderr
    assert files_below(tmp_path / "out") == ["B/A.NDJSON", "B/c.csv", "a.txt", "f.txt.gz"]
    assert gzip.decompress((tmp_path / "out/f.txt.gz").read_bytes()).decode() == TAGGED
    assert (tmp_path / "out/B/c.csv").read_text("utf-8") == "전화\n[TEL]\n"
    assert malmoi("detect", "in", "found").returncode == 0
    assert files_below(tmp_path / "found") == ["B/A.NDJSON", "B/c.csv.jsonl", "a.txt.jsonl", "f.txt.jsonl.gz"]
    assert malmoi("detect", "in/**/*.csv", "by_glob").returncode == 0
    assert files_below(tmp_path / "by_glob") == ["B/c.csv.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("in", "-"), "give a folder for the output"),
        (("in", "in/out"), "is in the input folder"),
        (("in", "in"), "is also an input"),
        (("in/a.txt", "in/a.txt"), "is also an input"),
        (("in/a.txt", "in/../in/a.txt"), "is also an input"),
        (("absent.txt", "-"), "no such file or folder"),
        (("in/*.parquet", "out"), "no file to read"),
    ],
)
def test_outputs_never_fall_on_inputs(malmoi: Malmoi, tmp_path: Path, arguments: tuple[str, str], words: str) -> None:
    folder(tmp_path / "in")
    before = files_below(tmp_path)
    result = malmoi("replace", *arguments)
    assert result.returncode == 2 and words in result.stderr.decode()
    assert files_below(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "content", "options", "output", "is_written"),
    [
        ("a.csv", f"전화,이름\n{TEL},가\n", [], "b.jsonl", False),
        ("a.json", f'[{{"text": "{TEL}"}}]', [], "b.csv", False),
        ("a.json", f'[{{"text": "{TEL}"}}]', [], "b.jsonl.gz", False),
        ("a.json", f'{{"text": "{TEL}"}}\n{{"text": "가"}}\n', [], "b.jsonl", True),
        ("a.json", f'{{"text": "{TEL}"}}\n{{"text": "가"}}\n', [], "b.json", True),
        ("a.txt", LINE, [], "b.parquet", False),
        ("a.txt", LINE, [], "b.md", True),
        ("a.txt", f"전화,이름\n{TEL},가\n", ["--format", "csv"], "b.csv", True),
        ("a.txt", f"전화,이름\n{TEL},가\n", ["--format", "csv"], "b.txt", True),
    ],
)
def test_what_is_written_is_of_the_kind_that_was_read(
    malmoi: Malmoi, tmp_path: Path, name: str, content: str, options: list[str], output: str, is_written: bool
) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    result = malmoi("replace", name, output, *options)
    assert (result.returncode == 0) == (tmp_path / output).exists() == is_written
    assert is_written or "; name the output " in result.stderr.decode()


def test_an_object_from_standard_input_may_be_written_as_json(malmoi: Malmoi, tmp_path: Path) -> None:
    assert malmoi("replace", "-", "b.json", "--mode", "tag", stdin=f'{{"text": "{TEL}"}}').returncode == 0
    assert json.loads((tmp_path / "b.json").read_text("utf-8")) == {"text": "[TEL]"}
    assert malmoi("replace", "-", "b.csv", stdin=LINE).returncode == 2


def test_skipped_lines_are_counted_and_set_aside_for_the_owner_alone(malmoi: Malmoi, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(LINE.encode() + b"\xff secret\n" + LINE.encode())
    result = malmoi("replace", "a.txt", "b.txt", "--mode", "tag", "--on-error", "skip")
    assert result.returncode == 0 and b"records: 1 (undecodable 1)" in result.stderr
    assert (tmp_path / "b.txt").read_text("utf-8") == TAGGED * 2
    aside = tmp_path / "b.txt.skipped.jsonl"
    assert aside.stat().st_mode & 0o777 == 0o600
    [row] = [json.loads(line) for line in aside.read_text("utf-8").splitlines()]
    assert row == {"file": "a.txt", "place": "line 2", "reason": "undecodable", "raw": "\udcff secret"}
    assert row["raw"].encode("utf-8", "surrogateescape") == b"\xff secret"
    assert malmoi("replace", "a.txt", "--on-error", "skip").returncode == 0
    assert files_below(tmp_path) == ["a.txt", "b.txt", "b.txt.skipped.jsonl"]  # of standard output they are counted


def test_types_are_chosen_and_spans_explained(malmoi: Malmoi) -> None:
    text = f"연락처 {TEL}, hong@example.com\n"
    assert malmoi("replace", "-", "--types", "email", "--mode", "tag", stdin=text).stdout.decode() == (
        f"연락처 {TEL}, [EMAIL]\n"
    )
    record = json.loads(malmoi("detect", "-", "--types", "TEL", "--explain", stdin=text).stdout)
    [span] = record["spans"]
    assert (span["start"], span["end"], span["type"]) == (4, 17, "TEL")
    assert 0 < span["score"] <= 1 and "label" in span["why"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--mode", "erase"], "unknown mode; expected one of replace, mask, tag, drop"),
        (["--key-file", "nothing"], "key file nothing cannot be read"),
        (["--key-variable", "MALMOI_NO_SUCH_KEY"], "MALMOI_NO_SUCH_KEY is not set"),
        (["--types", "TEL,PHONE"], "unknown type PHONE; expected any of TEL"),
        (["--format", "xml"], "unknown format; expected one of auto"),
        (["--encoding", "base64"], "base64: unknown; expected auto"),
        (["--on-error", "ignore"], "'ignore' is not one of 'stop'"),
        (["--fields", ","], "--fields: expected names separated by commas"),
        (["--seed", "1", "--key-variable", "PATH"], "--seed cannot be combined with a key"),
        (["--fields", "a", "--all-fields"], "without --all-fields"),
    ],
)
def test_options_that_cannot_be_used_are_one_sentence(malmoi: Malmoi, options: list[str], words: str) -> None:
    result = malmoi("replace", "-", *options, stdin=LINE)
    assert (result.returncode, result.stdout) == (2, b"")
    assert words in result.stderr.decode() and "Traceback" not in result.stderr.decode()


def test_with_a_key_all_records_share_replacements(malmoi: Malmoi, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a secret of this test alone\n", "utf-8")
    (tmp_path / "key").chmod(0o600)
    stdin = (json.dumps({"text": LINE}) + "\n") * 2
    outputs = [malmoi("replace", "-", "--key-file", "key", stdin=stdin).stdout.decode() for _ in range(2)]
    lines = [line for output in outputs for line in output.splitlines()]
    assert len(lines) == 4 and len(set(lines)) == 1 and TEL not in lines[0]
