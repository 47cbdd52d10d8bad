"""The items of an index by number."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather

from corpus.decontamination.report import ITEMS_NAME, BenchmarkItems


def test_an_item_has_the_tasks_and_keys_of_all_equal_texts(tmp_path: Path) -> None:
    table = pa.table({"item": [0, 1, 1, 3], "task": ["ynat", "ynat", "re", "dp"], "key": ["a", "b", "c", "d"]})
    feather.write_feather(table, str(tmp_path / ITEMS_NAME), compression="uncompressed")
    items = BenchmarkItems(tmp_path)
    assert items[0] == [("ynat", "a")]
    assert items[1] == [("ynat", "b"), ("re", "c")]
    assert items[2] == []
    assert items[3] == [("dp", "d")]
