"""Detect and decode the encodings of Korean text: UTF-8, CP949 (EUC-KR and more, "ANSI" on Korean Windows) and UTF-16.

The lines of a sample vote: a line that is not UTF-8 but decodes as CP949 to common Hangul is a vote for CP949. Chinese
text in GB 2312 decodes too, but to syllables that are rare in Korean. UTF-16 without a byte order mark has NUL bytes,
and nearly all its characters are Hangul or ASCII. Undecodable bytes become 0xFF, which is invalid UTF-8, so their
record is rejected.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator

AUTO, UTF8, CP949, UTF16 = "auto", "utf-8", "cp949", "utf-16"
MARKS = ((codecs.BOM_UTF8, UTF8), (codecs.BOM_UTF16_LE, UTF16), (codecs.BOM_UTF16_BE, UTF16))

_KS_HANGUL = re.compile(rb"[\xb0-\xc8][\xa1-\xfe]")  # the 2,350 syllables of KS X 1001, nearly all of Korean text
_NON_ASCII = re.compile(rb"[\x80-\xff]")
# the 40 most common syllables are 40 % of newspaper text, and 2 % of Chinese text read as CP949
_EVERYDAY = re.compile("[이다는을의에가고하지로한을를은사기도서대자시인으나리어해일정수보과부전아그라]")
_MIN_HANGUL_SHARE, _MIN_EVERYDAY_SHARE, _ENOUGH_HANGUL = 0.6, 0.1, 40
_USUAL = re.compile("[가-힣\t\r\n -~]")
_MIN_USUAL_SHARE = 0.8
_KEEP = "malmoi.keep"
UNDECODED = re.compile("[\udc00-\udcff]")
"""Characters of ``decode_blocks`` for bytes that could not be decoded; decoders never produce them otherwise."""


def detect_encoding(sample: bytes) -> str:
    """The encoding of a text that starts with ``sample``: "utf-8" (default), "cp949", "utf-16", "utf-16-le" …"""
    for mark, encoding in MARKS:
        if sample.startswith(mark):
            return encoding
    for order in ("le", "be") if b"\0" in sample else ():
        text = sample.decode(f"{UTF16}-{order}", "replace")
        if len(_USUAL.findall(text)) >= _MIN_USUAL_SHARE * len(text):
            return f"{UTF16}-{order}"
    try:
        codecs.getincrementaldecoder(UTF8)().decode(sample)
        return UTF8
    except UnicodeDecodeError:
        pass
    *lines, last = sample.split(b"\n")
    if not _is_mostly_hangul(last):
        last = last[:-1]  # the sample may end inside a character
    foreign = [line for line in (*lines, last) if _NON_ASCII.search(line)]
    utf8 = sum(decodes(line, UTF8) for line in foreign)
    korean = [line for line in foreign if not decodes(line, UTF8) and _is_mostly_hangul(line)]
    text = b"\n".join(korean).decode(CP949)
    hangul = sum("가" <= sign <= "힣" for sign in text)
    is_korean = hangul < _ENOUGH_HANGUL or len(_EVERYDAY.findall(text)) >= _MIN_EVERYDAY_SHARE * hangul
    return CP949 if len(korean) > utf8 and is_korean else UTF8


def decodes(raw: bytes, encoding: str) -> bool:
    try:
        raw.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _is_mostly_hangul(line: bytes) -> bool:
    hangul, foreign = len(_KS_HANGUL.findall(line)), len(_NON_ASCII.findall(line))
    return decodes(line, CP949) and 2 * hangul >= _MIN_HANGUL_SHARE * foreign


def _keep_bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "".join(chr(0xDC00 + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(_KEEP, _keep_bytes)


def line_to_utf8(raw: bytes, encoding: str) -> bytes:
    """Convert a line of an ASCII-compatible encoding such as CP949 to UTF-8."""
    return raw if encoding == UTF8 else _encode(raw.decode(encoding, _KEEP))


def blocks_to_utf8(blocks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Convert a stream of any encoding to UTF-8 without a byte order mark."""
    return iter(blocks) if encoding == UTF8 else map(_encode, codecs.iterdecode(blocks, encoding, _KEEP))


def _encode(text: str) -> bytes:
    return UNDECODED.sub("\udcff", text).encode("utf-8", "surrogateescape")


def decode_blocks(
    blocks: Iterable[bytes], encoding: str, report_encoding: Callable[[str], None] = lambda _: None
) -> Iterator[str]:
    """Decode a stream, without its byte order mark. With "auto", the first non-ASCII block decides.

    Args:
        report_encoding: called with the encoding.
    """
    decode: Callable[..., str] | None = None
    is_start = True
    for block in blocks:
        if not decode and (encoding != AUTO or not block.isascii()):
            actual = detect_encoding(block) if encoding == AUTO else encoding
            report_encoding(actual)
            decode = codecs.getincrementaldecoder(actual)(_KEEP).decode
        if text := decode(block) if decode else block.decode("ascii"):
            yield text.removeprefix("\ufeff") if is_start else text
            is_start = False
    if decode and (text := decode(b"", True)):
        yield text
