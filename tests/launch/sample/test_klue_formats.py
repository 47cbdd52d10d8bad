"""The invented benchmark files have the shape of the official ones, field by field, and read the same way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
import zstandard

from launch.sample.klue import SIZES, write_klue
from launch.sample.world import make_world

ROOT = Path(__file__).resolve().parents[3]
OFFICIAL = "data/klue/official"
DERIVED = "data/klue/derived"


@pytest.fixture(scope="module")
def klue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("klue")
    write_klue(make_world(1), 1, out)
    return out


def load(path: Path) -> Any:
    if path.suffix == ".zst":
        with path.open("rb") as file:
            return json.loads(zstandard.ZstdDecompressor().stream_reader(file).read())
    return json.loads(path.read_text("utf-8"))


def shape(value: Any) -> Any:
    """Keys, in order, all the way down; a list by its first item, anything else by nothing."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else None


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("klue-nli-v1.1/klue-nli-v1.1_train.json", f"{OFFICIAL}/klue-nli-v1.1/klue-nli-v1.1_train.json.zst"),
        ("klue-nli-v1.1/klue-nli-v1.1_dev.json", f"{OFFICIAL}/klue-nli-v1.1/klue-nli-v1.1_dev.json.zst"),
        ("klue-sts-v1.1/klue-sts-v1.1_dev.json", f"{OFFICIAL}/klue-sts-v1.1/klue-sts-v1.1_dev.json"),
        ("klue-re-v1.1/klue-re-v1.1_dev.json", f"{OFFICIAL}/klue-re-v1.1/klue-re-v1.1_dev.json.zst"),
    ],
)
def test_records_have_the_official_keys_in_order(
    klue: Path, shared: Callable[[str], Path], ours: str, theirs: str
) -> None:
    assert json.dumps(shape(load(klue / ours))) == json.dumps(shape(load(shared(theirs))))


def test_titles_have_the_official_keys(klue: Path, shared: Callable[[str], Path]) -> None:
    ours = load(klue / "ynat-v1.1/ynat-v1.1_dev.json")
    assert list(ours[0]) == list(load(shared(f"{DERIVED}/ynat-v1.1/ynat-v1.1_dev.json.zst"))[0])


def test_relation_list_equals_the_official_one(klue: Path, shared: Callable[[str], Path]) -> None:
    official = shared(f"{OFFICIAL}/klue-re-v1.1/relation_list.json")
    assert load(klue / "klue-re-v1.1/relation_list.json") == load(official)


def test_questions_have_the_official_keys(klue: Path, shared: Callable[[str], Path]) -> None:
    ours = load(klue / "klue-mrc-v1.1/klue-mrc-v1.1_dev.json")
    theirs = load(shared(f"{DERIVED}/klue-mrc-v1.1/klue-mrc-v1.1_dev.json.zst"))
    assert list(ours) == list(theirs)
    for record in (ours, theirs):
        assert list(record["data"][0]) == ["title", "paragraphs", "news_category", "source"]
        assert list(record["data"][0]["paragraphs"][0]) == ["context", "qas"]
    assert question_shapes(ours) == question_shapes(theirs)


def question_shapes(file: Any) -> set[tuple[str, ...]]:
    return {tuple(qa) for d in file["data"] for p in d["paragraphs"] for qa in p["qas"]}


def test_dialogues_and_ontology_have_the_official_keys(klue: Path, shared: Callable[[str], Path]) -> None:
    ours, theirs = load(klue / "wos-v1.1/wos-v1.1_dev.json"), load(shared(f"{DERIVED}/wos-v1.1/wos-v1.1_dev.json.zst"))
    assert list(ours[0]) == list(theirs[0])
    for record in (ours, theirs):
        turns = record[0]["dialogue"]
        assert [list(turn) for turn in turns[:2]] == [["role", "text", "state"], ["role", "text"]]
    official = load(shared(f"{OFFICIAL}/wos-v1.1/ontology.json"))
    ontology = load(klue / "wos-v1.1/ontology.json")
    assert set(ontology) == set(official)
    assert all(values[:2] == ["none", "dontcare"] for values in ontology.values())


@pytest.mark.parametrize("task", ["klue-ner", "klue-dp"])
def test_headers_equal_the_official_ones(klue: Path, shared: Callable[[str], Path], task: str) -> None:
    path = shared(f"{OFFICIAL}/{task}-v1.1/{task}-v1.1_dev.tsv.zst")
    with path.open("rb") as file:
        official = zstandard.ZstdDecompressor().stream_reader(file).read(2_000).decode("utf-8", "ignore")
    ours = (klue / f"{task}-v1.1/{task}-v1.1_dev.tsv").read_text("utf-8")
    assert ours.splitlines()[:5] == official.splitlines()[:5]
    assert ours.splitlines()[5].startswith(f"## {task}-v1_dev_00000")
    assert ours.endswith("\n\n")


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def strings(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        return [text for item in (value.values() if isinstance(value, dict) else value) for text in strings(item)]
    return [value] if isinstance(value, str) else []


def test_all_text_is_composed_hangul_without_leftover_slots(klue: Path) -> None:
    assert len(files(klue)) == 18
    for path in files(klue):
        texts = strings(load(path)) if path.suffix == ".json" else [path.read_text("utf-8")]
        for text in texts:
            assert unicodedata.is_normalized("NFC", text), path
            assert not set("{}[]|") & set(text), text[:80]


@pytest.mark.parametrize("seed", [2, 3, 7])
def test_sizes_are_as_announced_in_any_world(tmp_path: Path, seed: int) -> None:
    counts = write_klue(make_world(seed), seed, tmp_path)
    assert counts == {f"{task}_{side}": n for task, sides in SIZES.items() for side, n in sides.items()}
    assert len(load(tmp_path / "ynat-v1.1/ynat-v1.1_train.json")) == counts["ynat_train"]
    data = load(tmp_path / "klue-mrc-v1.1/klue-mrc-v1.1_dev.json")["data"]
    assert sum(len(p["qas"]) for d in data for p in d["paragraphs"]) == counts["klue-mrc_dev"]


def digest(folder: Path) -> str:
    total = blake2b()
    for path in files(folder):
        total.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return total.hexdigest()


def test_bytes_do_not_depend_on_the_hash_seed(klue: Path, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from launch.sample.world import make_world; from launch.sample.klue import write_klue;"
        "write_klue(make_world(1), 1, pathlib.Path(sys.argv[1]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=environment, cwd=ROOT)
    assert digest(tmp_path) == digest(klue)


def test_another_seed_gives_other_examples(klue: Path, tmp_path: Path) -> None:
    write_klue(make_world(1), 2, tmp_path)
    name = "klue-dp-v1.1/klue-dp-v1.1_dev.tsv"
    assert (tmp_path / name).read_bytes() != (klue / name).read_bytes()
