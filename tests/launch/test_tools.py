"""Single tools: personal data over streams and files, statistics and scores of a file."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from launch.cli import main

LINE = "문의는 010-0123-4567로 주세요."


def malmoi(*arguments: str, stdin: str | bytes = "", cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """The command in this process, which has imported what it needs; logging is left as it is."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["malmoi", *arguments])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)), "utf-8"))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setattr("launch.cli.set_up_console", lambda **options: None)
        with pytest.raises(SystemExit) as ended:
            main()
    out.flush(), err.flush()
    return subprocess.CompletedProcess(arguments, ended.value.code or 0, out.buffer.getvalue(), err.buffer.getvalue())


def test_the_command_works_as_a_process_between_pipes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "launch", "pii", "replace", "-", "--mode", "tag"]
    result = subprocess.run(command, input=LINE.encode(), capture_output=True, cwd=tmp_path)
    assert (result.returncode, result.stdout.decode()) == (0, "문의는 [TEL]로 주세요.\n")


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
    (tmp_path / "key").chmod(0o600)
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


NLI = [{"guid": g, "premise": "비가 온다.", "hypothesis": "맑다.", "gold_label": label}
       for g, label in (("a", "entailment"), ("b", "neutral"))]  # fmt: skip


def test_scores_of_anybodys_predictions(tmp_path: Path) -> None:
    (tmp_path / "dev.json").write_text(json.dumps(NLI), "utf-8")
    (tmp_path / "p.json").write_text(json.dumps({"a": "entailment", "b": "entailment"}), "utf-8")
    options = ["--samples", "0", "--tables", "--json", "scores.json"]
    result = malmoi("score", "klue-nli", "dev.json", "p.json", *options, cwd=tmp_path)
    printed = result.stdout.decode()
    assert printed.startswith("metric\tvalue\tlower_95\tupper_95\tn\naccuracy\t50.0000\t-\t-\t2\n")
    assert "\nclasses\n" in printed
    written = json.loads((tmp_path / "scores.json").read_text("utf-8"))
    assert (written["task"], written["n"], written["scores"]) == ("klue-nli", 2, {"accuracy": 50.0})


def test_scores_of_our_own_predictions_file_and_of_a_file_that_does_not_fit(tmp_path: Path) -> None:
    rows = [{"guid": r["guid"], "gold": r["gold_label"], "prediction": "neutral", "scores": None} for r in NLI]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
    assert b"\naccuracy\t50.0000\t" in malmoi("score", "klue-nli", "p.jsonl", cwd=tmp_path).stdout
    (tmp_path / "dev.json").write_text(json.dumps(NLI[:1]), "utf-8")
    result = malmoi("score", "klue-nli", "dev.json", "p.jsonl", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode().splitlines() == [
        "malmoi: p.jsonl: guid b not in dev.json; are these predictions for another file?"
    ]


def test_predictions_are_exported_in_the_official_layout(tmp_path: Path) -> None:
    records = [{key: value for key, value in record.items() if key != "gold_label"} for record in NLI]
    (tmp_path / "test.json").write_text(json.dumps(records), "utf-8")
    (tmp_path / "p.json").write_text(json.dumps({"a": "entailment", "b": "neutral"}), "utf-8")
    result = malmoi("finetune", "export", "klue-nli", "test.json", "p.json", "out.json", cwd=tmp_path)
    assert result.stdout.decode() == "out.json: 2 predictions\n"
    assert json.loads((tmp_path / "out.json").read_text("utf-8")) == NLI
