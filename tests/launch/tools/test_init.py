"""``malmoi init``: what it finds in the user's files, and that its recipes pass the checks of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from launch.recipe import load_recipe
from launch.tools import init
from launch.tools.init import describe_columns
from tests.command import run_command
from tests.finetune.conftest import build_tiny_encoder

TITLES = [f"{place} {what} {n}번째 소식" for n in range(10) for place in ("서울", "부산") for what in ("축구", "금리")]
ROWS = [
    {"번호": str(n), "title": title, "분류": "경제" if "금리" in title else "운동"} for n, title in enumerate(TITLES)
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an encoder, mixed text and a labelled file; commands run in it."""
    build_tiny_encoder(tmp_path / "encoder", TITLES)
    (tmp_path / "data" / "text").mkdir(parents=True)
    (tmp_path / "data" / "text" / "plain.txt").write_text("\n\n".join(TITLES), "utf-8")
    (tmp_path / "data" / "text" / "windows.txt").write_bytes("\n\n".join(TITLES).encode("cp949"))
    bodies = "".join(json.dumps({"no": n, "by": "kim", "body": text}) + "\n" for n, text in enumerate(TITLES))
    (tmp_path / "data" / "text" / "board.jsonl").write_text(bodies, "utf-8")
    write_csv(tmp_path / "data" / "tickets.csv", ROWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_csv(path: Path, rows: list[dict[str, str]], encoding: str = "utf-8") -> Path:
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding)
    return path


def encoder_of(here: Path) -> str:
    return str(next((here / "encoder").rglob("config.json")).parent)


def test_mixed_text_and_one_labelled_file_give_a_recipe_that_passes_its_checks(here: Path, capfd: Any) -> None:
    (here / "recipes").mkdir()
    done = run_command(
        capfd, "init", "recipes/tickets.yaml", "--text", "data/text", "--task", "data/tickets.csv",
        "--model", encoder_of(here),
    )  # fmt: skip
    assert done.code == 0 and "Nothing would stop this run." in done.output, done
    assert "kind: label" in done.output and "text: title" in done.output and "label: 분류" in done.output
    recipe = load_recipe("recipes/tickets.yaml")
    assert recipe.corpus.text_field == "body" and recipe.tokenizer.extend and recipe.pretrain.init_from
    assert recipe.finetune.models == ("model", encoder_of(here)) and recipe.finetune.split_dev == ("tickets",)
    assert run_command(capfd, "run", "recipes/tickets.yaml", "--dry-run").code == 0
    again = run_command(capfd, "init", "recipes/tickets.yaml", "--task", "data/tickets.csv")
    again.refused("exists already")


def test_files_with_other_keys_become_sources(here: Path, capfd: Any) -> None:
    pq.write_table(pa.table({"id": [1, 2], "article": TITLES[:2]}), here / "data" / "text" / "old.parquet")
    done = run_command(
        capfd, "init", "two.yaml", "--text", "data/text", "--task", "data/tickets.csv", "--model", encoder_of(here)
    )
    assert done.code == 0, done
    corpus = load_recipe("two.yaml").corpus
    assert {name: source.text_field for name, source in corpus.sources.items()} == {
        "body": "body",
        "article": "article",
    }
    assert [Path(name).name for name in corpus.inputs] == ["plain.txt", "windows.txt"]


def test_without_text_the_encoder_is_only_fine_tuned(here: Path, capfd: Any) -> None:
    done = run_command(capfd, "init", "--task", "data/tickets.csv", "--model", encoder_of(here))
    assert done.code == 0 and "malmoi finetune mine.yaml" in done.output, done


SPAN = {"Question": "누가?", "context": "비가 왔다", "answer": "비"}
FILES: list[tuple[str, Any, dict[str, Any]]] = [
    ("t.csv", ROWS, {"kind": "label", "text": "title", "label": "분류"}),
    ("windows.csv", ROWS, {"kind": "label", "text": "title", "label": "분류"}),
    ("t.jsonl", [{"a": row["분류"], "b": row["title"]} for row in ROWS], {"kind": "label", "text": "b", "label": "a"}),
    (
        "p.jsonl", [{"Premise": "비", "hypothesis": "눈", "gold": str(n / 2 % 2)} for n in range(9)],
        {"kind": "similarity", "text": ["Premise", "hypothesis"], "label": "gold"},
    ),
    (
        "p.json", [{"sentence1": "비", "sentence2": "눈", "label": number} for number in (0, 1, 2)],
        {"kind": "pair", "text": ["sentence1", "sentence2"], "label": "label"},
    ),
    ("s.jsonl", [SPAN], {"kind": "span", "question": "Question", "context": "context", "answer": "answer"}),
    ("n.jsonl", [{"text": "비", "spans": []}], {"kind": "tagging", "text": "text", "spans": "spans"}),
    ("w.conll", "비\tO\n", {"kind": "tagging"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "found"), FILES, ids=[name for name, *_ in FILES])
def test_the_kind_and_the_columns_are_found(name: str, content: Any, found: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / name
    if name.endswith(".csv"):
        write_csv(path, content, "cp949" if name.startswith("windows") else "utf-8")
    elif isinstance(content, str):
        path.write_text(content, "utf-8")
    else:
        lines = [json.dumps(row) for row in content]
        path.write_text("\n".join(lines) if name.endswith("l") else f"[{','.join(lines)}]", "utf-8")
    assert describe_columns(path) == found


def test_what_cannot_be_found_is_asked_for_or_one_sentence(here: Path, capfd: Any) -> None:
    run_command(capfd, "init", "--text", "data/text").refused("--task", "no terminal")
    run_command(capfd, "init", "mine.yml.txt", "--task", "data/tickets.csv").refused("a .yaml file")
    run_command(capfd, "init", "--task", "data/none.csv").refused("none.csv")
    write_csv(here / "unlabelled.csv", [{"title": row["title"]} for row in ROWS])
    run_command(capfd, "init", "--task", "unlabelled.csv").refused("title", "no column", "labels")
    (here / "data" / "text" / "numbers.jsonl").write_text('{"a": 1}\n', "utf-8")
    run_command(capfd, "init", "--task", "data/tickets.csv", "--text", "data/text").refused("numbers.jsonl", "no key")
    assert not (here / "mine.yaml").exists()


@pytest.mark.parametrize(("size", "steps"), [(0, 100), (10**8, 5_812), (10**10, 12_500)])
def test_continued_training_lasts_as_long_as_the_text(
    size: int, steps: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pass over the text, but 100 to 12,500 steps."""
    monkeypatch.setattr(init, "find_texts_and_keys", lambda text, folder: ({}, size))
    recipe = init.make_recipe("data/text", here / "data" / "tickets.csv", encoder_of(here), here)
    assert recipe["pretrain"]["steps"] == steps
