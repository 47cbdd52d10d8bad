"""``malmoi tokenizer extend``: text files or a run's corpus to a longer tokenizer folder, made whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from corpus.documents.atomic_files import PARTIAL_SUFFIX, atomic_dir
from corpus.documents.shards import Document, write_shard
from launch.errors import LaunchError


def corpus_folder(texts: Sequence[Path]) -> Path | None:
    """The corpus stage's folder where that, or the run's folder, is what was given; None for files of text."""
    for folder in (path for text in texts for path in (text, text / "corpus")):
        if (folder / "documents").is_dir():
            if len(texts) > 1:
                raise LaunchError(f"{folder}: a corpus folder stands alone; give it, or files of text")
            return folder
    return None


def extend_in(
    out: Path, base: Path, texts: Path | Iterable[str], pieces: int, multiple: int, workers: int
) -> dict[str, Any]:
    """Write the longer tokenizer into the new folder ``out``; returns what its extension.json holds.

    Args:
        texts: a corpus folder, or documents.
    """
    from tokenizer.extend import extend_vocabulary, read_base

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise LaunchError(f"{out}: exists already; name a new folder with --out, or remove it")
    try:
        with atomic_dir(out) as folder:
            base = _on_disk(base, folder / "work" / "base")
            read_base(base)  # refuses what is no WordPiece before text is read
            corpus = texts if isinstance(texts, Path) else folder / "work" / "corpus"
            if not isinstance(texts, Path):
                write_shard(corpus / "documents" / "shard-00000.parquet", _documents(texts))
            return extend_vocabulary(base, corpus, folder, pieces, multiple=multiple, workers=workers)
    except BaseException:
        shutil.rmtree(out.with_name(out.name + PARTIAL_SUFFIX), ignore_errors=True)
        raise


def _on_disk(base: Path, folder: Path) -> Path:
    """The base, or where it is a name on the Hub, a copy of its tokenizer in ``folder``."""
    name = base.as_posix()
    if base.exists() or name.startswith((".", "/", "~")) or name.count("/") != 1:
        return base
    from finetune.encoder import load_tokenizer

    load_tokenizer(name).save_pretrained(folder)
    return folder


def _documents(texts: Iterable[str]) -> Iterator[Document]:
    for text in texts:
        yield Document("", "text", tuple(text.splitlines()))
