"""The corpus stage with a model of names: nothing that it finds is published, whoever does the work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from corpus.config import PiiConfig
from corpus.documents.errors import BadInput
from corpus.documents.shards import read_documents
from corpus.documents.units import map_units
from corpus.pii.extra import person_by_model as tagged
from tests.corpus.pii.name_models import save_model

NAMES = ("가온", "하람", "구름")


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    """Three files; some sentences come again, so that they are dropped and others get new neighbours."""
    rng = Random(2)
    paths = []
    for file in "abc":
        stories = [
            [
                f"어제 {rng.choice(NAMES)}은 {rng.choice(NAMES)}을 만났다.",
                "오늘은 비가 왔고 어제는 비가 오지 않았다 합니다.",
                rng.choice(["전화 010-0123-4567입니다.", "학교에 갔다."]),
            ]
            for _ in range(12)
        ]
        paths.append(tmp_path / f"{file}.jsonl")
        rows = (json.dumps({"id": f"{file}{n}", "text": "\n".join(s)}) for n, s in enumerate(stories))
        paths[-1].write_text("\n".join(rows), "utf-8")
    return paths


@pytest.fixture
def names(tmp_path: Path) -> dict[str, Any]:
    return {"model": save_model(tmp_path / "names"), "device": "cpu"}


def published(folder: Path) -> str:
    texts = [sentence for shard in sorted((folder / "documents").iterdir()) for d in read_documents(shard)
             for sentence in d.sentences]  # fmt: skip
    tables = [
        json.dumps(pq.read_table(path).to_pylist(), ensure_ascii=False) for path in folder.glob("*/samples.parquet")
    ]
    pages = [path.read_text("utf-8") for path in (folder / "README.md", folder / "card.html")]
    return "\n".join([*texts, *tables, *pages])


@pytest.mark.parametrize("mode", ["replace", "mask", "tag", "drop"])
def test_no_name_that_the_model_knows_is_published(
    texts: list[Path], names: dict[str, Any], clean: Callable[..., Any], tmp_path: Path, mode: str
) -> None:
    counts = clean(*texts, pii={"mode": mode, "repeatable": True, "names": names})
    text = published(tmp_path / "out")
    assert not any(name in text for name in NAMES)
    assert counts["documents"] > 1
    statistics = json.loads((tmp_path / "out" / "statistics.json").read_text("utf-8"))
    assert (statistics["total"]["pii"].get("PERSON", 0) > 12) == (mode != "drop")
    assert ("name of a person" in text) == (mode != "drop")


def test_results_do_not_depend_on_who_does_which_unit(
    texts: list[Path], names: dict[str, Any], clean: Callable[..., Any], tmp_path: Path
) -> None:
    def backwards(work: Any, units: Any, folder: Path, **given: Any) -> Any:
        """Each unit by a process that has read nothing else, the last one first."""

        def do(unit: Any, scratch: Path) -> Any:
            tagged._load.cache_clear()
            return work(unit, scratch)

        units = list(units)
        for number in reversed(range(len(units))):
            map_units(do, units[number : number + 1], folder / f"{number}", workers=1)
            (folder / f"{number}" / "unit-00000").rename(folder / f"unit-{number:05}")
            (folder / f"{number}").rmdir()
        return map_units(do, units, folder)

    pii = {"mode": "replace", "repeatable": True, "names": names}
    clean(*texts, pii=pii)
    clean(*texts, pii=pii, out="backwards", map_units=backwards)
    assert published(tmp_path / "out") == published(tmp_path / "backwards")


def test_a_model_that_cannot_be_used_is_reported_before_the_work(
    texts: list[Path], clean: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=r"^corpus\.pii\.names\.model .*none: no such folder"):
        clean(*texts, pii={"names": {"model": tmp_path / "none"}})
    assert not list((tmp_path / "out").iterdir())


def test_a_threshold_is_a_probability() -> None:
    for value in (0, 1, -1, 50):
        with pytest.raises(ValueError, match="threshold"):
            PiiConfig(names={"threshold": value})  # type: ignore[arg-type]
