"""Single tools: statistics, scores and exports of files."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from launch.cli import main


def malmoi(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """The command in this process, which has imported what it needs; logging is left as it is."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["malmoi", *arguments])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setattr("launch.tools.commands.set_up_console", lambda **options: None)
        with pytest.raises(SystemExit) as ended:
            main()
    root.handlers[:] = handlers  # other verbs than those of launch.tools.commands set up the console
    root.setLevel(level)
    out.flush(), err.flush()
    return subprocess.CompletedProcess(arguments, ended.value.code or 0, out.buffer.getvalue(), err.buffer.getvalue())


def test_unreadable_line_stops_the_statistics(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", "utf-8")
    (tmp_path / "a.jsonl").write_text('{"text": "눈"}\n{"text"\n', "utf-8")
    result = malmoi("tokenizer", "stats", "vocab.txt", "a.jsonl", cwd=tmp_path)
    assert result.returncode == 2
    assert "a.jsonl, line 2" in result.stderr.decode()


def test_statistics_of_a_bare_vocabulary(tmp_path: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "새", "강좌", "##를", "연다", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    (tmp_path / "a.txt").write_text("새 강좌를 연다.", "utf-8")
    result = malmoi("tokenizer", "stats", "vocab.txt", "a.txt", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "1.667" in result.stdout.decode()  # five pieces in three eojeols


def test_statistics_of_several_texts_and_gold_files(tmp_path: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "새", "강좌", "##를", "연다", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    (tmp_path / "news.txt").write_text("새 강좌를 연다.", "utf-8")
    (tmp_path / "talk.jsonl").write_text('{"text": "새 강좌를ㅋ 연다."}\n', "utf-8")
    (tmp_path / "a.conllu").write_text("1\t강좌를\t강좌+를" + "\t_" * 7 + "\n", "utf-8")
    (tmp_path / "dp.tsv").write_text("1\t강좌를\t강좌 를\tNNG+JKO\t0\tNP_OBJ\n", "utf-8")
    options = ["--gold", "a.conllu", "--gold", "dp.tsv", "--out", "all.json"]
    result = malmoi("tokenizer", "stats", "vocab.txt", "news.txt", "talk.jsonl", *options, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    [found] = json.loads((tmp_path / "all.json").read_text("utf-8"))
    assert [on["text"] for on in (found["whole"], *found["texts"])] == ["all 2 texts", "news", "talk"]
    assert [on["fit"]["unknown_hangul"] for on in (found["whole"], *found["texts"])] == [1, 0, 1]
    assert [(on["file"], on["convention"]) for on in found["golds"]] == [("a", "CoNLL-U"), ("dp", "KLUE-DP")]
    result = malmoi("tokenizer", "stats", "vocab.txt", "news.txt", "news.txt", cwd=tmp_path)
    assert (result.returncode, b"this text is given twice" in result.stderr) == (2, True)


NLI = [{"guid": g, "premise": "비가 온다.", "hypothesis": "맑다.", "gold_label": label}
       for g, label in (("a", "entailment"), ("b", "neutral"))]  # fmt: skip


def test_scores_of_anybodys_predictions(tmp_path: Path) -> None:
    (tmp_path / "dev.json").write_text(json.dumps(NLI), "utf-8")
    (tmp_path / "p.json").write_text(json.dumps({"a": "entailment", "b": "entailment"}), "utf-8")
    options = ["--samples", "0", "--tables", "--json", "scores.json"]
    result = malmoi("score", "nli", "dev.json", "p.json", *options, cwd=tmp_path)
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
