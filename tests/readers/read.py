"""Ids of sentences from every Python class that reads a tokenizer's folder; needs nothing but transformers, 4 or 5.

    python tests/readers/read.py OUT/jamo_fallback-*

compares them with what ``write.py`` left and says how many are equal; exit code 1 where not all are.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

CLASSES = ("AutoTokenizer", "BertTokenizer", "BertTokenizerFast", "PreTrainedTokenizerFast")
Ids = list[list[int]]


def read_in_all_classes(folder: Path, sentences: Sequence[str]) -> Iterator[tuple[str, Ids]]:
    """Name of a reader and its ids; a batch given to the library below a class counts as one more."""
    transformers = importlib.import_module("transformers")
    for name in CLASSES:
        tokenizer = getattr(transformers, name).from_pretrained(folder)
        yield f"{name} ({type(tokenizer).__name__})", [tokenizer(sentence)["input_ids"] for sentence in sentences]
        if tokenizer.is_fast:
            backend = tokenizer.backend_tokenizer
            yield f"{name}.backend_tokenizer", [encoding.ids for encoding in backend.encode_batch(list(sentences))]


def main(*folders: str) -> int:
    differing = 0
    for folder in map(Path, folders):
        sentences = json.loads((folder.parent / "sentences.json").read_text("utf-8"))
        expected = json.loads((folder / "ids.json").read_text("utf-8"))
        for name, ids in read_in_all_classes(folder, sentences):
            wrong = [text for text, own, right in zip(sentences, ids, expected, strict=True) if own != right]
            print(f"{folder.name}, {name}: {len(sentences) - len(wrong)} of {len(sentences)}", *map(ascii, wrong[:3]))
            differing += len(wrong)
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
