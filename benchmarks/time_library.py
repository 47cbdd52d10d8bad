"""Times the tokenizers library in any Python and prints its ids; imports nothing of this project.

Version 1 of the library changed its calls, and cannot be installed together with a transformers that needs 0.23.
"""

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import tokenizers


def digest(ids: list[int]) -> str:
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()


def main(tokenizer_json: str, texts_json: str) -> None:
    """Print as JSON "version", "seconds" of CPU time and the digest of the ids of each text; 100 texts per call."""
    texts = json.loads(Path(texts_json).read_text("utf-8"))
    backend = tokenizers.Tokenizer.from_file(tokenizer_json)
    options: dict[str, Any] = {"add_special_tokens": False}
    if hasattr(backend, "encode_batch_fast"):
        backend.encode_special_tokens = True
        backend.no_truncation()
        backend.no_padding()
        encode = backend.encode_batch_fast
    else:
        options |= {"encode_special_tokens": True, "truncation": None, "padding": None}
        encode = backend.encode_batch
    encoded = []
    start = time.process_time()
    for first in range(0, len(texts), 100):
        encoded += [encoding.ids for encoding in encode(texts[first : first + 100], **options)]
    seconds = time.process_time() - start
    print(json.dumps({"version": tokenizers.__version__, "seconds": seconds, "digests": [*map(digest, encoded)]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
