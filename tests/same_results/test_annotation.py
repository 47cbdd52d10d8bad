"""Recorded results of building and checking benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from corpus.documents.errors import BadInput
from finetune.annotation.agree import agree
from finetune.annotation.card import write_card
from finetune.annotation.check.run import check
from finetune.annotation.config import TASK_FORMS, Benchmark
from finetune.annotation.draw import Models, draw
from finetune.annotation.folder import Item
from finetune.annotation.settle import settle
from finetune.annotation.split import split
from finetune.annotation.take_in import value_problem
from finetune.annotation.tools import TOOLS, hand_out
from launch.sample.unpack import read_archive
from launch.tools.benchmark import render_page
from tests.finetune.annotation.folders import add_votes, make_folder
from tests.same_results.mangling import damaged_rows
from tests.same_results.recording import check_recorded
from tests.same_results.test_corpus import varied_texts
from tests.same_results.test_custom_files import COLUMNS, rows_of
from tests.same_results.test_tokenizer import sample_documents, write_corpus

LABELS = {"tc": ("정치", "경제", "사회"), "nli": (), "re": ("no_relation", "per:title"), "ner": ("PS", "LC")}
RULES: dict[str, Any] = {
    "tc": {"settle": {"rule": "dawid-skene"}},
    "sts": {"agree": {"min_pearson": 0.5}, "split": {"dev": 0.3, "test": 0.3}},
    "nli": {"split": {"per_source": {"news": 3, "reviews": 2}}},
}


def invented_items(task: str, rng: Random) -> list[Item]:
    form, items = TASK_FORMS[task], list[Item]()
    for number in range(60):
        texts = {name: rng.choice(varied_texts())[:80].replace("\n", " ") or "글" for name in form.texts}
        if task == "nli":
            texts["premise"] = f"전제 {number // 3} 입니다."
        spans = ((0, 2, "PS"), (3, 5, "LC")) if form.spans and len(min(texts.values(), key=len)) > 5 else ()
        about: dict[str, Any] = {"date": f"2020-{1 + number % 12:02}-01", "group": f"g{number // 3}"}
        if number % 15 == 0 and task in ("tc", "re"):
            about["expected"] = LABELS[task][0]
        items.append(Item(f"i{number}", ("news", "reviews")[number % 2], texts, spans, about))
    return items


def vote_of(benchmark: Benchmark, item: Item, rng: Random) -> Any:
    right = int(item.id[1:]) % 3
    match benchmark.form.vote:
        case "label":
            return rng.choice((*[benchmark.labels[right % len(benchmark.labels)]] * 3, *benchmark.labels))
        case "score":
            return round(min(5, max(0, int(item.id[1:]) % 11 / 2 + rng.choice((-1, 0, 0, 0.5, 2.5)))), 1)
        case "spans":
            spans = [[0, 2, "PS"], [3, 5, "LC"], [1, 4, "LC"]]
            return [span for span in spans if rng.random() < 0.6 and span[1] <= len(item.text)]
        case "answer":
            return rng.choice(([[0, 2]], [[0, 2]], [], [[0, 1], [1, 2]])) if len(item.text) > 2 else []
        case "words":
            return [f"{rng.randrange(3)}:NP" for _ in item.text.split()]
        case _:
            return {"관광-이름": rng.choice(("가", "가", "나"))}


def invented_votes(benchmark: Benchmark, items: list[Item], rng: Random) -> list[dict[str, Any]]:
    rows = []
    for item in items:
        for number in range(benchmark.votes_per_item + 1):
            worker, careless = f"w{(int(item.id[1:]) + number) % 8}", rng.random() < 0.04
            value = vote_of(benchmark, item, Random(rng.random()) if worker == "w7" else rng)
            reports = [rng.choice(("hate", "undecided"))] if careless else []
            rows.append({"item": item.id, "worker": worker, "value": value, "reports": reports})
    return rows


@pytest.mark.parametrize("task", TASK_FORMS)
def test_steps_of_a_benchmark(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("finetune.annotation.folder.secrets.token_bytes", bytes)
    monkeypatch.setattr("finetune.annotation.folder.secrets.token_hex", lambda size=0: "00")
    rng = Random(task)
    items = invented_items(task, rng)
    settings = {
        "labels": list(LABELS.get(task, ())),
        "licence": "cc-by-4.0",
        "agree": {"min_alpha": 0.1},
        **RULES.get(task, {}),
    }
    benchmark, folder = make_folder(tmp_path, items, task=task, **settings), tmp_path
    results: dict[str, Any] = {"taken in": add_votes(benchmark, folder, invented_votes(benchmark, items, rng))}
    for step in (agree, settle, split, write_card):
        results[step.__name__] = step(benchmark, folder)
    names = ("gold.jsonl", "data/train.jsonl", "data/dev.jsonl", "data/test.jsonl", "README.md", "dropped.jsonl")
    results |= {name: (folder / name).read_text("utf-8") for name in names if (folder / name).is_file()}
    check_recorded(f"benchmark_{task}", results, tmp_path)


@pytest.mark.parametrize("task", TASK_FORMS)
def test_values_of_votes(task: str, tmp_path: Path) -> None:
    spans: list[Any] = [[[0, 1]], [[0, 4], [1, 2]], [[0, 5]], [[1, 1]], [[-1, 2]], [[0]], [0], [[0, 1.0]], [[True, 2]]]
    spans += [
        [[0, 1, "PS"]],
        [[3, 4, "LC"]],
        [[0, 1, "XX"]],
        [[0, 1, "PS", 1]],
        [["0", 1, "PS"]],
        ["1:NP"],
        ["1:NP", 2],
    ]
    values = [
        -0.1,
        0,
        2.5,
        5,
        5.1,
        6,
        True,
        False,
        None,
        "",
        "정치",
        "없는 것",
        "5",
        [],
        {},
        {"관광-이름": "가"},
        *spans,
    ]
    benchmark = make_folder(tmp_path, [], task=task, labels=list(LABELS.get(task, ())))
    items = [Item("a", "news", dict.fromkeys(benchmark.form.texts, "가나다라")), Item("b", "news", {"other": "가"})]
    found = [value_problem(benchmark, item, value) for item in items for value in values]
    check_recorded(f"votes_{task}", {"problems": found}, tmp_path)


@pytest.mark.parametrize("task", ["tc", "sts", "nli", "ner", "mrc", "re"])
def test_projects_of_annotation_tools(task: str, tmp_path: Path) -> None:
    items = invented_items(task, Random(task))[:7]
    benchmark = make_folder(tmp_path, items, task=task, labels=list(LABELS.get(task, ())))
    results: dict[str, Any] = {}
    for tool in TOOLS:
        results[tool] = hand_out(benchmark, tmp_path, tool, 5)
        for path in sorted((tmp_path / "hand-out" / tool).rglob("*")):
            if path.is_file():
                results[str(path.relative_to(tmp_path))] = path.read_text("utf-8").replace(str(tmp_path), "")
    check_recorded(f"projects_{task}", results, tmp_path)


@pytest.mark.parametrize("task", ["tc", "sts", "nli", "mrc"])
def test_drawn_items(task: str, tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", sample_documents())
    source = {"documents": str(tmp_path / "corpus" / "documents")}
    settings = {"labels": list(LABELS.get(task, ())), "draw": {"count": 20, "min_chars": 15}}
    sources = {"news": {**source, "source": "news"}, "others": {**source, "source": "reviews", "count": 5}}
    benchmark = make_folder(tmp_path / "own", task=task, sources=sources, **settings)
    models = Models(lambda model, rules, texts: [False] * len(texts), lambda model, questions: ["가"] * len(questions))
    results = {"counts": draw(benchmark, tmp_path / "own", models)}
    check_recorded(
        f"drawn_{task}", results | {"items": (tmp_path / "own" / "items.jsonl").read_text("utf-8")}, tmp_path
    )


def damaged_files(rng: Random) -> dict[str, str]:
    """KLUE's JSON files and tables of all kinds by name, with damaged records."""
    files = dict[str, str]()
    for name, content in read_archive("klue.tar.zst").items():
        if name.endswith("train.json"):
            parsed = json.loads(content)
            if isinstance(parsed, dict):
                for paragraph in [paragraph for article in parsed["data"] for paragraph in article["paragraphs"]]:
                    paragraph["qas"] = damaged_rows(paragraph["qas"], rng)
            else:
                parsed = [row for row in damaged_rows(parsed[:80], rng) if isinstance(row, dict)]
            files[Path(name).name] = json.dumps(parsed, ensure_ascii=False)
    for names in COLUMNS:
        rows = [{name: row[name] for name in names} for row in rows_of(5)]
        rows[2:] = [row for row in damaged_rows(rows, rng) if isinstance(row, dict)]
        files["-".join(names) + "-dev.jsonl"] = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return files


@pytest.mark.parametrize("seed", range(3))
def test_checks_of_damaged_records(seed: int, tmp_path: Path) -> None:
    results: dict[str, Any] = {}
    for name, text in damaged_files(Random(seed)).items():
        path = tmp_path / name.removesuffix(".json") / name
        path.parent.mkdir()
        path.write_text(text, "utf-8")
        try:
            found = check([path], None)
        except BadInput as error:
            results[name] = str(error).replace(str(tmp_path), "")
            continue
        results[name] = json.loads(json.dumps(found, ensure_ascii=False, default=str).replace(str(tmp_path), ""))
        results[f"{name} page"] = render_page(found).replace(str(tmp_path), "")
    check_recorded(f"damaged_records_{seed}", results, tmp_path)


def test_checks_of_damaged_files(tmp_path: Path) -> None:
    rng, results = Random(7), dict[str, Any]()
    for name, content in read_archive("klue.tar.zst").items():
        lines = content.decode().split("\n" if name.endswith("tsv") else "},\n")
        keep = [line if rng.random() > 0.02 else spoil(line, rng) for line in lines]
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(("\n" if name.endswith("tsv") else "},\n").join(keep), "utf-8")
    for folder in sorted((tmp_path / "klue").iterdir()):
        found = check([folder], None)
        text = json.dumps(found, ensure_ascii=False, default=str).replace(str(tmp_path), "")
        results[folder.name] = json.loads(text)
        results[f"{folder.name} page"] = render_page(found).replace(str(tmp_path), "")
    check_recorded("checks", results, tmp_path)


def spoil(line: str, rng: Random) -> str:
    """A line with repeated signs, other labels or damage inside its texts."""
    changes = (
        ("습니다", "습니다<br/>"),
        ("했다", "했다 했다"),
        ("entailment", "neutral"),
        ("B-", "I-"),
        (" ", "  "),
        ("다.", "다\ufffd"),
    )
    before, after = rng.choice(changes)
    return line.replace(before, after, 1)
