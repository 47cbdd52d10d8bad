"""A cleaned corpus as a data set of the Hugging Face Hub: which files of its folder, and that they belong together.

Samples of what was dropped and changed, quarantine and scores stay at home: they are for who made the corpus.
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
"""What an earlier push of another corpus may have left: shards with higher numbers."""


def check_repository(folder: Path) -> tuple[int, list[str]]:
    """Number of documents, and patterns of the files to publish, once they are known to be complete.

    Raises:
        BadInput: a file is missing, damaged or strange, or the shards hold other documents than were counted.
    """
    if missing := [name for name in (CARD_NAME, COUNTS, REPORT) if not (folder / name).is_file()]:
        raise BadInput(f"{folder}: no {', '.join(missing)}; run `malmoi corpus` again, it writes them all")
    _check_card(folder / CARD_NAME)
    try:
        counted = int(json.loads((folder / COUNTS).read_text("utf-8"))["total"]["documents"])
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{folder / COUNTS}: no counts of a corpus; run `malmoi corpus` again") from None
    shards = shard_paths(folder / "documents")
    if strange := sorted({path.name for path in (folder / "documents").iterdir()} - {path.name for path in shards}):
        raise BadInput(f"{folder / 'documents' / strange[0]}: malmoi did not write this; remove it, or it is published")
    for path in [*(folder / name for name in (CARD_NAME, COUNTS, REPORT)), folder / "documents", *shards]:
        if path.is_symlink():
            raise BadInput(f"{path}: is a link, so what it leads to would be published; put the file itself there")
    documents = sum(map(_rows_of, shards))
    if documents != counted:
        raise BadInput(
            f"{folder}: its shards hold {documents:,} documents, {COUNTS} counts {counted:,}; run `malmoi corpus` again"
        )
    return documents, [CARD_NAME, COUNTS, REPORT, DATA_FILES]


def _check_card(path: Path) -> None:
    """Without its data files in the card, a data set would be all Parquet files of the repository."""
    text = path.read_text("utf-8")
    _, _, rest = text.partition("---\n")
    try:
        head = yaml.safe_load(rest.partition("\n---\n")[0]) if text.startswith("---\n") else None
        files = [row["data_files"] for row in head["configs"]] if isinstance(head, dict) else []
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: what stands between --- cannot be read ({type(error).__name__}); mend it") from None
    if files != [[{"split": "train", "path": DATA_FILES}]]:
        raise BadInput(f"{path}: its data files are not {DATA_FILES}; write the card again with `malmoi corpus`")


def _rows_of(shard: Path) -> int:
    """Rows of a shard; only its footer is read."""
    try:
        with pq.ParquetFile(shard) as file:
            if not file.schema_arrow.equals(SCHEMA):
                raise BadInput(f"{shard}: its columns are not {', '.join(SCHEMA.names)}; run `malmoi corpus` again")
            return int(file.metadata.num_rows)
    except pa.ArrowException as error:
        raise BadInput(
            f"{shard}: not a whole Parquet file ({type(error).__name__}); run `malmoi corpus` again"
        ) from None
