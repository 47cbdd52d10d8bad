"""Check a cleaned corpus before it is published as a Hub data set, and choose its files.

Samples, quarantine and toxicity scores are not published.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from corpus.card.write import CARD_NAME, DATA_FILES
from corpus.documents.errors import BadInput
from corpus.documents.shards import SCHEMA, shard_paths

COUNTS, REPORT = "statistics.json", "decontamination.json"
OUTDATED = ("documents/*",)
"""Files to delete on the Hub: an earlier push may have had more shards."""


def check_repository(folder: Path) -> tuple[int, list[str]]:
    """Check that the corpus is complete; returns its number of documents and patterns of the files to publish.

    Raises:
        BadInput: a file is missing, damaged or unknown, or the number of documents differs from statistics.json.
    """
    if missing := [name for name in (CARD_NAME, COUNTS, REPORT) if not (folder / name).is_file()]:
        raise BadInput(f"{folder}: {', '.join(missing)} is missing; run `malmoi corpus` again")
    _check_card(folder / CARD_NAME)
    try:
        total = int(json.loads((folder / COUNTS).read_text("utf-8"))["total"]["documents"])
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{folder / COUNTS}: not the statistics of a corpus; run `malmoi corpus` again") from None
    shards = shard_paths(folder / "documents")
    if strange := sorted({path.name for path in (folder / "documents").iterdir()} - {path.name for path in shards}):
        raise BadInput(f"{folder / 'documents' / strange[0]}: not a file of malmoi; remove it before you publish")
    for path in [*(folder / name for name in (CARD_NAME, COUNTS, REPORT)), folder / "documents", *shards]:
        if path.is_symlink():
            raise BadInput(f"{path}: is a link; replace it with a copy of the file")
    documents = sum(map(_rows_of, shards))
    if documents != total:
        raise BadInput(
            f"{folder}: the shards have {documents:,} documents, {COUNTS} says {total:,}; run `malmoi corpus` again"
        )
    return documents, [CARD_NAME, COUNTS, REPORT, DATA_FILES]


def _check_card(path: Path) -> None:
    """Check that the card lists the data files; without them, the Hub would use all Parquet files."""
    text = path.read_text("utf-8")
    _, _, rest = text.partition("---\n")
    try:
        head = yaml.safe_load(rest.partition("\n---\n")[0]) if text.startswith("---\n") else None
        files = [row["data_files"] for row in head["configs"]] if isinstance(head, dict) else []
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: the YAML header cannot be read ({type(error).__name__}); fix it") from None
    if files != [[{"split": "train", "path": DATA_FILES}]]:
        raise BadInput(f"{path}: expected data_files {DATA_FILES} in the YAML header; run `malmoi corpus` again")


def _rows_of(shard: Path) -> int:
    """The number of rows of a shard, from its footer."""
    try:
        with pq.ParquetFile(shard) as file:
            if not file.schema_arrow.equals(SCHEMA):
                raise BadInput(f"{shard}: expected the columns {', '.join(SCHEMA.names)}; run `malmoi corpus` again")
            return int(file.metadata.num_rows)
    except pa.ArrowException as error:
        raise BadInput(f"{shard}: not complete ({type(error).__name__}); run `malmoi corpus` again") from None
