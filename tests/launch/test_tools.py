"""Single tools: personal data over streams and files, statistics and scores of a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LINE = "문의는 010-0123-4567로 주세요."


def malmoi(*arguments: str, stdin: str | bytes = "", cwd: Path) -> subprocess.CompletedProcess[bytes]:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    return subprocess.run([sys.executable, "-m", "launch", *arguments], input=data, capture_output=True, cwd=cwd)


def test_detect_writes_a_record_for_every_line(tmp_path: Path) -> None:
    result = malmoi("pii", "detect", "-", stdin=f"{LINE}\n\n맑다.\n", cwd=tmp_path)
    records = [json.loads(line) for line in result.stdout.decode().splitlines()]
    assert [record["spans"] for record in records] == [[[4, 17, "TEL"]], [], []]


def test_replace_keeps_json_records_and_their_other_fields(tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps({"id": "7", "text": LINE, "n": 3}) + "\n", "utf-8")
    assert malmoi("pii", "replace", str(source), str(target), cwd=tmp_path).returncode == 0
    record = json.loads(target.read_text("utf-8"))
    assert (record["id"], record["n"]) == ("7", 3)
    assert "010-0123-4567" not in record["text"]
    assert record["text"].startswith("문의는 010-")


def test_standard_input_may_hold_json_lines(tmp_path: Path) -> None:
    stdin = json.dumps({"id": "7", "text": LINE}) + "\n"
    record = json.loads(malmoi("pii", "replace", "-", stdin=stdin, cwd=tmp_path).stdout)
    assert record["id"] == "7"
    assert "010-0123-4567" not in record["text"]


def test_unreadable_line_stops_the_statistics(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", "utf-8")
    (tmp_path / "a.jsonl").write_text('{"text": "눈"}\n{"text"\n', "utf-8")
    result = malmoi("tokenizer", "stats", "vocab.txt", "a.jsonl", cwd=tmp_path)
    assert result.returncode == 2
    assert "a.jsonl, line 2" in result.stderr.decode()


def test_replace_depends_on_the_seed_alone(tmp_path: Path) -> None:
    outputs = [
        malmoi("pii", "replace", "-", "--seed", seed, stdin=LINE, cwd=tmp_path).stdout for seed in ("1", "1", "2")
    ]
    assert outputs[0] == outputs[1] != outputs[2]


@pytest.mark.parametrize(
    ("mode", "shown"), [("mask", "문의는 ***-****-****로 주세요."), ("tag", "문의는 [TEL]로 주세요."), ("drop", "")]
)
def test_personal_data_may_be_hidden_otherwise(tmp_path: Path, mode: str, shown: str) -> None:
    result = malmoi("pii", "replace", "-", "--mode", mode, stdin=f"맑다.\n{LINE}\n흐리다.\n", cwd=tmp_path)
    assert result.stdout.decode() == f"맑다.\n{shown}\n흐리다.\n"


def test_with_a_key_all_records_share_replacements(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a secret of this test alone\n", "utf-8")
    outputs = [
        malmoi("pii", "replace", "-", "--seed", seed, "--key-file", "key", stdin=f"{LINE}\n{LINE}\n", cwd=tmp_path)
        for seed in ("1", "2")
    ]
    lines = [line for output in outputs for line in output.stdout.decode().splitlines()]
    assert len(lines) == 4 and len(set(lines)) == 1 and LINE not in lines


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--mode", "erase"], "no such mode; there are replace, mask, tag, drop"),
        (["--key-file", "nothing"], "key file nothing cannot be read"),
        (["--key-variable", "MALMOI_NO_SUCH_KEY"], "MALMOI_NO_SUCH_KEY is not set"),
    ],
)
def test_options_that_cannot_be_used_are_one_sentence(tmp_path: Path, options: list[str], words: str) -> None:
    result = malmoi("pii", "replace", "-", *options, stdin=LINE, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert words in result.stderr.decode() and "Traceback" not in result.stderr.decode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"text": \n', "line 1: not JSON"),
        (b'{"body": "x"}\n', 'a string under "text"'),
        (b'{"text": "\xff"}\n', "line 1: not UTF-8"),
    ],
)
def test_broken_record_is_refused_and_no_output_is_left(content: bytes, words: str, tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(content)
    result = malmoi("pii", "replace", str(source), str(target), cwd=tmp_path)
    assert result.returncode == 2
    assert words in result.stderr.decode()
    assert list(tmp_path.iterdir()) == [source]


def test_missing_file_is_named(tmp_path: Path) -> None:
    result = malmoi("pii", "detect", "absent.txt", cwd=tmp_path)
    assert result.returncode == 2
    assert "absent.txt" in result.stderr.decode()


def test_statistics_of_a_bare_vocabulary(tmp_path: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "새", "강좌", "##를", "연다", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    (tmp_path / "a.txt").write_text("새 강좌를 연다.", "utf-8")
    result = malmoi("tokenizer", "stats", "vocab.txt", "a.txt", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "1.667" in result.stdout.decode()  # five pieces in three eojeols


def test_scores_of_anybodys_predictions(tmp_path: Path) -> None:
    rows = [("a", "entailment", "entailment"), ("b", "neutral", "entailment")]
    lines = [json.dumps({"guid": g, "gold": gold, "prediction": p, "scores": None}) for g, gold, p in rows]
    (tmp_path / "p.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    result = malmoi("score", "klue-nli", "p.jsonl", cwd=tmp_path)
    assert result.stdout.decode() == "accuracy\t50.0000\n"
