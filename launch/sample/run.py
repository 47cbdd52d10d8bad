"""The embedded sample as files: raw text as the corpus stage reads it, true spans of personal data, KLUE files.

```
out/corpus/{news,encyclopedia}.jsonl  reviews.jsonl.gz  dialogue.parquet  damaged.jsonl
out/pii_truth.jsonl   id, spans [[start, end, TYPE], …] in the document's text
out/klue/             laid out like the KLUE repository
```
Same configuration, same bytes; nothing is read and nothing third-party is in it.
"""

from __future__ import annotations

import gzip
import json
import logging
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from launch.sample.config import SampleConfig
from launch.sample.documents.articles import Draft
from launch.sample.documents.dialogue import write_dialogues
from launch.sample.documents.encyclopedia import write_encyclopedia
from launch.sample.documents.news import write_news
from launch.sample.documents.reviews import write_reviews
from launch.sample.entities import World
from launch.sample.pii import add_personal_data, spans_of
from launch.sample.world import make_world

log = logging.getLogger(__name__)

DUPLICATES = 12  # news articles that come twice, as from an aggregator


def run(config: SampleConfig, inputs: None, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Write the sample to ``out``; one process does it in seconds, so ``workers`` is not used.

    Returns:
        documents by source, bytes of text, personal data by type, and what the KLUE part counted.
    """
    from launch.sample.klue import write_klue

    world = make_world(config.seed)
    drafts = write_documents(world, config)
    folder = out / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    by_source: dict[str, list[Draft]] = {}
    for draft in drafts:
        by_source.setdefault(draft.source, []).append(draft)
    _write_news(folder / "news.jsonl", by_source["news"])
    _write(folder / "encyclopedia.jsonl", _json_lines(by_source["encyclopedia"]))
    _write(folder / "reviews.jsonl.gz", gzip.compress(_json_lines(by_source["reviews"]), mtime=0))
    _write_parquet(folder / "dialogue.parquet", by_source["dialogue"])
    _write(folder / "damaged.jsonl", damaged_lines())
    truth = [{"id": draft.id, "spans": spans_of(draft)} for draft in drafts if draft.personal]
    _write(out / "pii_truth.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in truth).encode())
    (out / "klue").mkdir(exist_ok=True)
    return {
        "documents": {source: len(listed) for source, listed in sorted(by_source.items())},
        "text_bytes": sum(len(draft.text.encode()) for draft in drafts),
        "personal_data": dict(sorted(Counter(kind for draft in drafts for *_, kind in draft.personal).items())),
        "klue": write_klue(world, config.seed, out / "klue"),
    }


def write_documents(world: World, config: SampleConfig) -> list[Draft]:
    """All documents of the sample, personal data included, source by source."""
    drafts = [
        *write_news(world, config.seed, config.news),
        *write_encyclopedia(world, config.seed, config.encyclopedia),
        *write_reviews(world, config.seed, config.reviews),
        *write_dialogues(world, config.seed, config.dialogue),
    ]
    return add_personal_data(drafts, config.seed)


def damaged_lines() -> bytes:
    """Lines that a reader must repair or put aside: NFD text, broken JSON, invalid UTF-8, no text, a good line."""
    good = {"id": "damaged-0", "text": "가온시의 작은 서점이 문을 연 지 열 해가 됐다.", "source": "news"}
    decomposed = {
        **good,
        "id": "damaged-1",
        "text": unicodedata.normalize("NFD", "해솔시 바닷가에 새 산책로가 놓였다."),
    }
    rows = [
        json.dumps(row, ensure_ascii=False).encode()
        for row in (good, decomposed, {"id": "damaged-2", "source": "news"})
    ]
    rows.append('{"id": "damaged-3", "text": "닫히지 않은 따옴표'.encode())
    rows.append(b'{"id": "damaged-4", "text": "\xb0\xa1\xbf\xc2\xbd\xc3", "source": "news"}')  # EUC-KR, not UTF-8
    return b"\n".join(rows) + b"\n"


def _row(draft: Draft) -> dict[str, str]:
    row = {"id": draft.id, "text": draft.text, "source": draft.source}
    return row | {"title": draft.title} if draft.title else row


def _json_lines(drafts: Sequence[Draft]) -> bytes:
    return "".join(json.dumps(_row(draft), ensure_ascii=False) + "\n" for draft in drafts).encode()


def _write_news(path: Path, drafts: Sequence[Draft]) -> None:
    """Articles, then the first few without personal data once more under other ids."""
    copies = [draft for draft in drafts if not draft.personal][:DUPLICATES]
    rows = [{**_row(draft), "id": f"{draft.id}-copy"} for draft in copies]
    repeated = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    _write(path, _json_lines(drafts) + repeated)


def _write_parquet(path: Path, drafts: Sequence[Draft]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    temporary = path.with_name(path.name + ".partial")
    columns = {name: [_row(draft)[name] for draft in drafts] for name in ("id", "text", "source")}
    pq.write_table(pa.table(columns), temporary, compression="zstd")
    temporary.replace(path)


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(path.name + ".partial")
    temporary.write_bytes(content)
    temporary.replace(path)
