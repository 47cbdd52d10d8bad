"""Write the embedded sample: invented documents, true spans of the personal data in them, and KLUE-style task files.

```
out/corpus/{news,encyclopedia}.jsonl  reviews.jsonl.gz  dialogue.parquet  damaged.jsonl
out/pii_truth.jsonl   {"id", "spans": [[start, end, TYPE], …]}: positions in the document's text
out/klue/             laid out like the KLUE repository
```
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

from corpus.documents.atomic_files import atomic_write, read_bytes
from launch.errors import LaunchError
from launch.recipe import SAMPLE

HOME = Path(__file__).parent
ARCHIVE_BYTES = 1 << 24  # unpacked, at most
SOURCES = ("news", "encyclopedia", "reviews", "dialogue")


def unpack(out: Path) -> dict[str, Any]:
    """Write the sample to the folder ``out``, each file whole or not at all.

    Returns counts: documents by source (an article that comes twice counts once), bytes of text, personal data by type.
    """
    from pyarrow import Table, parquet

    packed = read_archive("documents.tar.zst")
    rows, dialogue = {name: read_rows(packed[f"{name}.jsonl"]) for name in SOURCES}, io.BytesIO()
    parquet.write_table(Table.from_pylist(rows["dialogue"]), dialogue, compression="zstd")
    files = read_archive("klue.tar.zst") | {
        "corpus/news.jsonl": packed["news.jsonl"],
        "corpus/encyclopedia.jsonl": packed["encyclopedia.jsonl"],
        "corpus/reviews.jsonl.gz": gzip.compress(packed["reviews.jsonl"], mtime=0),
        "corpus/dialogue.parquet": dialogue.getvalue(),
        "corpus/damaged.jsonl": packed["damaged.jsonl"],
        "pii_truth.jsonl": packed["pii_truth.jsonl"],
    }
    for name, content in files.items():
        atomic_write(out / name, content)
    documents = [row for source in rows.values() for row in source if not row["id"].endswith("-copy")]
    kinds = Counter(kind for row in read_rows(packed["pii_truth.jsonl"]) for *_, kind in row["spans"])
    return {
        "documents": dict(sorted(Counter(row["source"] for row in documents).items())),
        "text_bytes": sum(len(row["text"].encode()) for row in documents),
        "personal_data": dict(sorted(kinds.items())),
    }


def read_archive(name: str) -> dict[str, bytes]:
    """The files of an archive of the sample by path; its sum is checked first."""
    content = (HOME / name).read_bytes()
    if f"{sha256(content).hexdigest()}  {name}" not in (HOME / "SHA256SUMS").read_text("ascii").splitlines():
        raise LaunchError(f"{HOME / name}: its sum is not in SHA256SUMS; install malmoi again")
    with tarfile.open(fileobj=io.BytesIO(read_bytes(HOME / name, ARCHIVE_BYTES))) as archive:
        opened = ((member.name, archive.extractfile(member)) for member in archive)
        return {path: file.read() for path, file in opened if file is not None}


def find_klue(data: str, out: Path) -> Path:
    """The folder of KLUE files that ``data`` names; for ``malmoi:sample`` the embedded files, written below ``out``."""
    if data != SAMPLE:
        if not Path(data).is_dir():
            raise LaunchError(f"--data {data}: no such folder; give a folder like the KLUE repository, or {SAMPLE}")
        return Path(data)
    if (existing := out / "sample" / "klue").is_dir():  # of a run
        return existing
    for path, content in read_archive("klue.tar.zst").items():
        if not (out / "llm" / "sample" / path).is_file():
            atomic_write(out / "llm" / "sample" / path, content)
    return out / "llm" / "sample" / "klue"


def read_rows(lines: bytes) -> list[dict[str, Any]]:
    """The objects of JSON lines."""
    return [json.loads(line) for line in lines.splitlines()]
