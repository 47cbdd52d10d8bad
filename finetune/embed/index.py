"""An index folder: passages, BM25 on their bigrams, and, with a model, their vectors as a flat float16 matrix.

```
index.json                     number of passages, the model, the weight of its cosines
passages.jsonl, offsets.npy    ids and texts; where each line begins
bm25/                          of bm25s
vectors.npy                    (passages, width), memory-mapped
```
A flat matrix is exact and needs no further package; a query over a million passages of width 192 reads 384 MB.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from corpus.documents.accelerator import DeviceName
from corpus.documents.atomic_files import atomic_dir, read_json_object
from corpus.documents.errors import BadInput
from corpus.documents.model_files import refuse_links
from finetune.embed.evaluate import Bm25
from finetune.score.baselines import bigrams

INDEX_NAME, PASSAGES_NAME, OFFSETS_NAME, VECTORS_NAME, BM25_NAME = (
    "index.json", "passages.jsonl", "offsets.npy", "vectors.npy", "bm25",
)  # fmt: skip
FORMAT = 1
ROWS_AT_ONCE = 65_536  # of vectors, turned into float32
AGAIN = "build it again with `malmoi embed index`"


class Hit(NamedTuple):
    """A found passage; ``score``: BM25 divided by the maximum of the query, plus the weighted cosine."""

    id: str
    score: float
    text: str


def build_index(passages: Iterable[tuple[str, str]], out: Path, model: str | None = None,
                weight: float | None = None, device: DeviceName = "auto") -> dict[str, Any]:  # fmt: skip
    """Write an index of ``(id, text)`` to the folder ``out``; returns the content of index.json.

    Args:
        model: folder of an embedding model; None: BM25 alone.
        weight: of the cosines; None: the one that the model's evaluation chose, which is 0 if it did not help.
    """
    rows = [(name, text) for name, text in passages if text.strip()]
    if not rows:
        raise BadInput("no text to index; give files with text, or a folder of document shards")
    width = 0
    with atomic_dir(out) as folder:
        if model is not None:
            from finetune.embed.embedder import INFO_NAME, load_embedder

            vectors_NH = load_embedder(Path(model), device).encode([text for _, text in rows], prompt="passage")
            np.save(folder / VECTORS_NAME, vectors_NH.astype(np.float16), allow_pickle=False)
            width, info = vectors_NH.shape[1], Path(model) / INFO_NAME
            chosen = read_json_object(info, AGAIN).get("weight") if info.is_file() else None
            weight = weight if weight is not None else float(chosen or 0.0)
        lines = [json.dumps({"id": name, "text": text}, ensure_ascii=False).encode() + b"\n" for name, text in rows]
        np.save(folder / OFFSETS_NAME, np.cumsum([0, *map(len, lines)])[:-1], allow_pickle=False)
        (folder / PASSAGES_NAME).write_bytes(b"".join(lines))
        Bm25.build([bigrams(text) for _, text in rows]).save(folder / BM25_NAME)
        model = model and str(Path(model).absolute())  # so that the index is searched from any folder
        about = {"format": FORMAT, "passages": len(rows), "model": model, "width": width, "weight": weight or 0.0}
        (folder / INDEX_NAME).write_text(json.dumps(about, ensure_ascii=False) + "\n", "utf-8")
    return about


class Index:
    """An index folder, opened; arrays are memory-mapped."""

    def __init__(self, folder: Path, device: DeviceName = "auto") -> None:
        if not (folder / INDEX_NAME).is_file():
            raise BadInput(f"{folder}: no index here ({INDEX_NAME} is missing); {AGAIN}")
        refuse_links(folder)
        self.about = read_json_object(folder / INDEX_NAME, AGAIN)
        if self.about.get("format") != FORMAT:
            raise BadInput(f"{folder}: format {self.about.get('format')!r:.40}, this malmoi reads {FORMAT}; {AGAIN}")
        self.weight = float(self.about.get("weight") or 0.0)
        self._bm25, self._folder, self._device = Bm25.load(folder / BM25_NAME), folder, device
        self._offsets = _open_array(folder / OFFSETS_NAME)
        self._vectors = _open_array(folder / VECTORS_NAME) if self.weight else None
        self._embedder: Any = None

    def search(self, query: str, count: int = 10) -> list[Hit]:
        """The best ``count`` passages, best first; passages without anything in common with the query are left out."""
        query = normalize("NFC", query)
        scores_P = self._bm25.scores(bigrams(query))
        scores_P = scores_P / max(scores_P.max(), 1e-9)
        if self._vectors is not None and query.strip():
            scores_P = scores_P + self.weight * self._cosines(query)
        best = np.argsort(-scores_P, kind="stable")[:count]
        return [Hit(*self._passage(int(i), float(scores_P[i]))) for i in best if scores_P[i] > 0]

    def _cosines(self, query: str) -> NDArray[np.float32]:
        assert self._vectors is not None
        if self._embedder is None:
            from finetune.embed.embedder import load_embedder

            self._embedder = load_embedder(Path(str(self.about["model"])), self._device)
        vector_H = self._embedder.encode([query], prompt="query")[0]
        parts = range(0, len(self._vectors), ROWS_AT_ONCE)
        return np.concatenate([self._vectors[i : i + ROWS_AT_ONCE].astype(np.float32) @ vector_H for i in parts])

    def _passage(self, number: int, score: float) -> tuple[str, float, str]:
        with (self._folder / PASSAGES_NAME).open("rb") as file:
            file.seek(int(self._offsets[number]))
            record = json.loads(file.readline())
        return record["id"], score, record["text"]


def _open_array(path: Path) -> NDArray[Any]:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: not readable ({error!s:.80}); {AGAIN}") from None
