"""Convert files of any encoding to UTF-8 (``corpus.documents.encoding`` detects it).

Undecodable bytes become 0xFF, which is invalid UTF-8, so their record is rejected.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import get_args

from corpus.config import Encoding
from corpus.documents.encoding import detect_encoding
from corpus.documents.errors import BadInput
from corpus.reading.files import DamagedFile, read_blocks

ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
AUTO, UTF8, CP949, UTF16 = ENCODINGS
SAMPLE_BYTES = 1 << 20
_KEEP = "malmoi.keep"
UNDECODED = re.compile("[\udc00-\udcff]")
"""Characters of ``decode_blocks`` for bytes that could not be decoded; decoders never produce them otherwise."""


def _keep_bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "".join(chr(0xDC00 + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(_KEEP, _keep_bytes)


def inspect_text(path: Path, encoding: str) -> tuple[str, bool]:
    """The encoding of a file, which "auto" detects, and whether its lines end in a carriage return alone (old Mac).

    Raises:
        BadInput: ``encoding`` is "utf-8" and the file is clearly not UTF-8.
    """
    sample = b""
    with suppress(DamagedFile):  # reported when the file is read
        for block in read_blocks(path):
            sample += block
            if len(sample) >= SAMPLE_BYTES:
                break
    sample = sample[:SAMPLE_BYTES]
    found = CP949 if encoding == CP949 else detect_encoding(sample)
    if encoding == UTF16:
        found = found if found.startswith(UTF16) else UTF16  # with the byte order of the file
    if encoding == UTF8 != found:
        setting = UTF16 if found.startswith(UTF16) else found
        raise BadInput(f"{path}: looks like {found.upper()}, not UTF-8; set corpus.encoding={setting}, or auto")
    text = sample.decode(found, "ignore") if b"\r" in sample else ""
    return found, "\r" in text and "\n" not in text


def line_to_utf8(raw: bytes, encoding: str) -> bytes:
    """Convert a line of an ASCII-compatible encoding such as CP949 to UTF-8."""
    return raw if encoding == UTF8 else _encode(raw.decode(encoding, _KEEP))


def blocks_to_utf8(blocks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Convert a stream of any encoding to UTF-8 without a byte order mark."""
    return iter(blocks) if encoding == UTF8 else map(_encode, codecs.iterdecode(blocks, encoding, _KEEP))


def _encode(text: str) -> bytes:
    return UNDECODED.sub("\udcff", text).encode("utf-8", "surrogateescape")


def decode_blocks(
    blocks: Iterable[bytes], encoding: str, settled: Callable[[str], None] = lambda found: None
) -> Iterator[str]:
    """Decode a stream, without its byte order mark. With "auto", the first non-ASCII block decides.

    Args:
        settled: called with the encoding.
    """
    decode: Callable[..., str] | None = None
    is_start = True
    for block in blocks:
        if not decode and (encoding != AUTO or not block.isascii()):
            found = detect_encoding(block) if encoding == AUTO else encoding
            settled(found)
            decode = codecs.getincrementaldecoder(found)(_KEEP).decode
        if text := decode(block) if decode else block.decode("ascii"):
            yield text.removeprefix("\ufeff") if is_start else text
            is_start = False
    if decode and (text := decode(b"", True)):
        yield text
