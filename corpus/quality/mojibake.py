"""Repair Korean text that was decoded with the wrong encoding: ``ì•ˆë…•`` and ``¾È³ç`` were ``안녕``.

A part of a line is repaired if its bytes are valid in the right encoding and are common Hangul there, so the repair is
exact. UTF-8 read as CP949 (``援щ쫫`` was ``구름``) is repaired if all bytes of the line are left. Text that lost bytes
(``�븞�뀞``) cannot be repaired; the rule ``is_mojibake`` drops it.
"""

from __future__ import annotations

import re
from unicodedata import normalize

# bytes 0x80 to 0x9f in Windows-1252; undefined ones stay control characters, as in browsers
WINDOWS = {
    bytes([byte]).decode("cp1252"): byte for byte in range(0x80, 0xA0) if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}
HIGH = "\x80-\xff" + "".join(WINDOWS)
TAIL = rf"[\x80-\xbf{''.join(WINDOWS)}]"
# Hangul in UTF-8, the same damaged twice, or two different syllables in CP949; other text has no such runs
CUE = re.compile(rf"[\xea-\xed]{TAIL}{{2}}|\xc3[\xaa-\xad][\xc2\xe2]|([\xb0-\xc8].)(?!\1)[\xb0-\xc8][\xa1-\xfe]")
# the first two bytes of a syllable in UTF-8 are a Han character in CP949, the next two are another character
HAN = "".join(bytes([first, second]).decode("cp949") for first in range(0xEA, 0xEE) for second in range(0xA1, 0xC0))
SPLIT = {ord(normalize("NFC", character)): character for character in HAN}  # NFC merges 20 of them with others
HAN += normalize("NFC", HAN)
CP949_LINE = re.compile(f"^[^{HAN}\n]*[{HAN}][\x80-\ufffc][^\n\ufffd]*$", re.MULTILINE)
MAY_HAVE_CUE = re.compile(rf"[\xb0-\xc8\xea-\xed{HAN}][{HIGH}\u0400-\ufffc]")  # faster
PART = re.compile(rf"[{HIGH}][\x20-\x7e{HIGH}]*")
COMMON = frozenset(bytes([row, cell]).decode("cp949") for row in range(0xB0, 0xC9) for cell in range(0xA1, 0xFF))
MIN_SYLLABLES = 2  # different common syllables
MIN_SHARE = 0.5  # of common syllables among what is not ASCII, in CP949, in which most bytes are valid


def repair_mojibake(text: str) -> tuple[str, int]:
    """The text with repaired parts, and their number."""
    repaired = 0

    def repair(match: re.Match[str]) -> str:
        nonlocal repaired
        right = (_encode_again if match.re is CP949_LINE else _decode_again)(match[0])
        repaired += right is not None
        return match[0] if right is None else right

    if MAY_HAVE_CUE.search(text):
        text = CP949_LINE.sub(repair, text)
        text = PART.sub(repair, text) if CUE.search(text) else text
    return text, repaired


def _encode_again(line: str) -> str | None:
    """The Korean line whose UTF-8 was read as CP949, or None."""
    try:
        right = line.translate(SPLIT).encode("cp949").decode("utf-8")
    except UnicodeError:
        return None
    return right if len(COMMON.intersection(right)) >= MIN_SYLLABLES else None


def _decode_again(part: str) -> str | None:
    """The Korean text of which a part of a line was made, or None."""
    if not CUE.search(part):
        return None
    content = bytes(WINDOWS.get(character, ord(character)) for character in part)
    for encoding in ("utf-8", "cp949"):
        try:
            right = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        common = [character for character in right if character in COMMON]
        other = sum(character > "\x7f" for character in right)
        if len(set(common)) >= MIN_SYLLABLES and (encoding == "utf-8" or len(common) >= MIN_SHARE * other):
            return right
        if encoding == "utf-8" and CUE.search(right):
            return PART.sub(lambda match: _decode_again(match[0]) or match[0], right)  # damaged twice
    return None
