"""Recorded texts of commands: plans, job scripts, reports, tables and files with hidden personal data."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from launch.checks.estimate import Machine
from launch.cluster.node_checks import find_problems
from launch.cluster.status import read_run, read_training, run_lines, runs_table
from launch.recipe import load_recipe, shipped_recipes
from launch.report.run import run
from launch.report.scores import printed_table
from tests.command import Outcome, run_command
from tests.finetune.score.simulated import Benchmark
from tests.launch.cluster.test_status import begin, complete, line, write_checkpoint
from tests.launch.fake_results import fake_result, fake_results, write_results
from tests.same_results.recording import check_recorded
from tests.same_results.test_corpus import varied_texts

ROOT = Path(__file__).resolve().parents[2]
SITES: dict[str, Any] = {
    "plain": {"launcher": "torchrun"},
    "gpus": {
        "pretrain": {"nodes": 2, "gpus": 4, "hours": 30.5}, "finetune": {"gpus": 2, "tasks": 8, "memory_gb": 64},
        "container": {"image": "repo/malmoi:1", "mounts": ["/data"]}, "modules": ["cuda/12"], "port": 29501,
        "environment": {"NCCL_DEBUG": "INFO"}, "interface": "ib0", "slurm": {"account": "nlp"},
    },
}  # fmt: skip


@pytest.fixture
def quiet_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("launch.conduct.this_machine", lambda recipe, trains=True: Machine(4, 16 << 30, None, 1))
    monkeypatch.setenv("COLUMNS", "120")


AGO = re.compile(r"\d+ s(econds)? ago")


def plain(text: str, folder: Path) -> str:
    """Without folders and times."""
    return re.sub(r"\d\d:\d\d:\d\d", "", text.replace(str(folder), "").replace(str(ROOT), ""))


def printed(outcome: Outcome, folder: Path) -> Any:
    """Exit code, errors and output; JSON as values."""
    text = plain(outcome.output, folder)
    return outcome.code, plain(outcome.errors, folder), json.loads(text) if text.startswith("{") else text


@pytest.mark.usefixtures("quiet_machine")
def test_plans_of_recipes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    results: dict[str, Any] = {}
    for name in shipped_recipes():
        outcome = run_command(capfd, "run", name, "--dry-run")
        results[name] = outcome.code, plain(outcome.output, tmp_path), plain(outcome.errors, tmp_path)
        results[f"settings of {name}"] = load_recipe(name).model_dump_json()
    check_recorded("plans", results, tmp_path)


@pytest.mark.usefixtures("quiet_machine")
@pytest.mark.parametrize("where", ["slurm", "k8s", "hosts"])
def test_job_files(
    where: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/opt/malmoi/bin/python")
    more: dict[str, Any] = {"k8s": {"claim": "runs", "queue": "gpu", "node_selector": {"zone": "a"}}}
    more["hosts"] = {"names": ["first", "second:4"], "elastic": True}
    results: dict[str, Any] = {}
    for name, site in SITES.items():
        content = {"shared": str(tmp_path), **site, **({where: more[where]} if where in more else {})}
        content |= {"container": {"image": "repo/malmoi:1"}} if where == "k8s" else {}
        (tmp_path / "site.yaml").write_text(yaml.safe_dump(content), "utf-8")
        outcome = run_command(capfd, "launch", where, "smoke", "--site", "site.yaml", "--dry-run")
        assert outcome.code == 0, outcome.errors
        results[name] = plain(outcome.output, tmp_path), plain(outcome.errors, tmp_path)
    check_recorded(f"jobs_{where}", results, tmp_path)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_reports(language: str, tmp_path: Path) -> None:
    results: dict[str, Any] = {}
    recipe = load_recipe("smoke", [f"launch.language={language}"])
    for name, settings, seeds in (("one", ("",), (1,)), ("several", ("", "swa"), (1, 2, 3))):
        found = list(fake_results(["ynat", "klue-sts", "wos"], ["model", "klue/bert-base"], settings, seeds))
        out = tmp_path / name / "report"
        write_results(tmp_path / name, iter(found))
        out.mkdir()
        results[name] = run(recipe, tmp_path / name, out), printed_table(found)
        results |= {f"{name} {path.name}": path.read_text("utf-8") for path in sorted(out.iterdir())}
    check_recorded(f"reports_{language}", results, tmp_path)


@pytest.mark.usefixtures("quiet_machine")
def test_files_with_hidden_personal_data(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_bytes(bytes(range(32)))
    (tmp_path / "key").chmod(0o600)
    texts = varied_texts()[:80]
    records = [
        {"id": n, "text": text, "author": {"name": f"글쓴이 {n}", "memo": [text[:40]]}} for n, text in enumerate(texts)
    ]
    (tmp_path / "a.txt").write_text("\n\n".join(texts), "utf-8")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records), "utf-8")
    (tmp_path / "a.json").write_text(json.dumps(records, ensure_ascii=False, indent=1), "utf-8")
    rows = [
        "이름,연락처,본문",
        *(f'"김{n}","010-0123-{n:04}","{text[:60].replace(chr(34), "")}"' for n, text in enumerate(texts)),
    ]
    (tmp_path / "a.csv").write_bytes("\r\n".join(rows).encode("cp949", "ignore"))
    pq.write_table(pa.table({"text": texts, "n": list(range(len(texts)))}), tmp_path / "a.parquet")
    results: dict[str, Any] = {}
    for name, options in (
        ("a.txt", ()), ("a.jsonl", ("--all-fields",)), ("a.json", ("--fields", "text,author.memo")),
        ("a.csv", ("--all-fields",)), ("a.parquet", ()),
    ):  # fmt: skip
        for verb, more in (
            ("detect", ("--explain",)),
            ("replace", ("--key-file", "key")),
            ("replace", ("--mode", "mask")),
        ):
            target = f"{verb}-{len(more[-1])}-{name}" if verb == "replace" else f"{name}.found.jsonl"
            outcome = run_command(capfd, "pii", verb, name, target, *options, *more)
            assert outcome.code == 0, outcome.errors
            path = tmp_path / target
            written = pq.read_table(path).to_pylist() if path.suffix == ".parquet" and path.exists() else None
            results[f"{verb} {name} {more[-1]}"] = [
                plain(outcome.output + outcome.errors, tmp_path),
                written or (path.read_text("utf-8") if path.exists() else None),
            ]  # fmt: skip
    check_recorded("hidden_files", results, tmp_path)


@pytest.mark.usefixtures("quiet_machine")
def test_printed_scores(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    results: dict[str, Any] = {}
    golds = {
        "ynat": ["정치", "경제", "사회"],
        "klue-nli": ["entailment", "neutral", "contradiction"],
        "klue-sts": [0.0, 2.5, 4.2],
    }
    for name, labels in golds.items():
        lines = [
            {"guid": f"g{n}", "gold": labels[n % 3], "prediction": labels[(n + (n % 4 == 0)) % 3]} for n in range(60)
        ]
        (tmp_path / "p.jsonl").write_text(
            "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8"
        )
        for options in ((), ("--tables",), ("--json",)):
            results[f"{name} {options}"] = printed(run_command(capfd, "score", name, "p.jsonl", *options), tmp_path)
    check_recorded("printed_scores", results, tmp_path)


def write_trained(runs: Path) -> None:
    """Predictions of two models with two seeds."""
    own = Benchmark(np.random.default_rng(3), 60)
    for model, quality in (("model", 0.5), ("klue/bert-base", 3.0)):
        for seed, rows in own.labels(2, quality, 0.01).items():
            folder = runs / "toy" / "finetune" / "ynat" / model.replace("/", "-") / f"seed-{seed}"
            folder.mkdir(parents=True)
            lines = (json.dumps(row._asdict(), ensure_ascii=False) + "\n" for row in rows)
            (folder / "predictions.jsonl").write_text("".join(lines), "utf-8")
            about = fake_result("ynat", model, "", seed) | {"selected": {"by": "macro_f1"} if seed == 2 else None}
            (folder / "scores.json").write_text(json.dumps(about), "utf-8")


@pytest.mark.usefixtures("quiet_machine")
def test_printed_comparisons(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_trained(tmp_path / "runs")
    results: dict[str, Any] = {}
    commands = [("compare", "toy"), ("compare", "toy", "--json"), ("score", "toy"), ("score", "toy", "--json")]
    files = [f"runs/toy/finetune/ynat/{model}/seed-1/predictions.jsonl" for model in ("model", "klue-bert-base")]
    for command in (*commands, ("compare", *files, "--task", "ynat"), ("ensemble", "toy")):
        results[" ".join(command)] = printed(run_command(capfd, *command), tmp_path)
    check_recorded("printed_comparisons", results, tmp_path)


@pytest.mark.usefixtures("quiet_machine")
def test_printed_vocabularies(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    letters = sorted({letter for text in varied_texts()[:60] for letter in text if "가" <= letter <= "힣"})
    for name, share in (("small", 3), ("large", 1)):
        pieces = [
            *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
            *letters[::share],
            *(f"##{one}" for one in letters[::share]),
        ]
        (tmp_path / name).mkdir()
        (tmp_path / name / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    for name, texts in (("a.txt", varied_texts()[:40]), ("b.txt", varied_texts()[40:60])):
        (tmp_path / name).write_text("\n\n".join(texts), "utf-8")
    results: dict[str, Any] = {}
    for command in (("small", "a.txt"), ("small", "a.txt", "b.txt", "--with", "large")):
        outcome = run_command(capfd, "tokenizer", "stats", *command)
        assert outcome.code == 0, outcome.errors
        results[" ".join(command)] = plain(outcome.output + outcome.errors, tmp_path)
    check_recorded("printed_vocabularies", results, tmp_path)


def test_lines_of_status(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for stage in ("corpus", "tokenizer", "tokens"):
        complete(run, stage)
    begin(run, "pretrain", steps=400)
    lines = [line(step, seconds=40.0 if step == 20 else 20.0) for step in (10, 20, 30, 40, 100)]
    (run / "pretrain" / "metrics.jsonl").write_text("".join(lines), "utf-8")
    write_checkpoint(run / "pretrain" / "checkpoints", 100)
    training = read_training(run / "pretrain", 400)
    results: dict[str, Any] = {"training": [training["seconds_per_step"], training["seconds_left"]]}
    state = read_run(run)
    results["lines"] = [AGO.sub("", plain(text, tmp_path)) for text in run_lines(state)]
    results["table"] = [AGO.sub("", str(row)) for row in runs_table([state, state]).rows]
    check_recorded("status", results, tmp_path)


def test_checks_of_nodes(tmp_path: Path) -> None:
    records: list[Any] = []
    for number, device in enumerate(("A100", "A100", "H100", "not usable (no driver)")):
        versions = {"Python": "3.11", "torch": f"2.{number // 2}", "device": device}
        error = "" if number else "is on another disk"
        about = {"host": f"node-{number // 2}", "folder": "runs", "folder_error": error}
        records.append({**about, "versions": versions})
    failed = [{"seconds": 0.1, "backend": "gloo"}, {"error": "refused"}, {"error": "refused"}, None]
    results = {"three": list(find_problems([*records[:3], None])), "same": list(find_problems([records[1]] * 2))}
    results["four"] = list(find_problems(records, failed))
    check_recorded("nodes", results, tmp_path)
