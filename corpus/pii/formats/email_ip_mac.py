"""EMAIL, IP and MAC.

Korean particles follow without a space, so every pattern excludes only ASCII characters after the value. Replacements
use unused names and blocks: example.com/.net/.org and .example (RFC 2606), IPv4 240/4 (reserved), IPv6 2e00::/16 (not
allocated), MAC 00-00-5E-00-53-xx (RFC 7042). Private and documentation addresses are not reported.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address
from random import Random

from corpus.pii.formats.shapes import faker
from corpus.pii.types import BY_LABEL, CERTAIN, CLEAR, NOBODY, Format, PiiType, Scope

DOMAIN_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?+"
RESERVED_DOMAINS = ("example.com", "example.net", "example.org", "mail.example")

# --- EMAIL

# 드릴께요.hong@…, *hong@…, **hong@…**; but g**dong@… and ***dong@… are masked
EMAIL_PATTERN = re.compile(
    r"(?<![A-Za-z0-9])(?<![A-Za-z0-9][._%+*\-])(?<![A-Za-z0-9]\*\*)(?<!\*{3})(?![0-9]{1,2}\.@)[A-Za-z0-9_][A-Za-z0-9._%+\-]{0,63}@(?![0-9]x\.)"
    rf"(?:{DOMAIN_LABEL}\.){{1,8}}(?:[A-Za-z]{{2,24}}(?![A-Za-z0-9@]|\*+[A-Za-z0-9.]|\.[A-Za-z0-9])"
    r"|(?:com|net|kr)(?=01[016-9]-?[0-9]{3}))"  # a telephone number without a space before it
)


def fake_email(rng: Random, value: str) -> str:
    """A new user name at an example domain."""
    name = f"{faker(rng).user_name()}{rng.randrange(1000):03}"
    address = f"{name}@{rng.choice(RESERVED_DOMAINS)}"
    return address.upper() if value.isupper() else address


# --- IP

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = re.compile(
    rf"(?:(?<![0-9A-Za-z])|(?<=[Ii][Pp]))(?<![0-9A-Za-z]\.)(?:(?<![A-Za-z]-)|(?<=[Ii][Pp]-)){_OCTET}(?:\.{_OCTET}){{3}}"
    r"(?![0-9A-Za-z]|\.[0-9])"
)
IPV6 = re.compile(
    r"(?:(?<![0-9A-Za-z])(?<![0-9A-Za-z]\.)(?<![0-9A-Fa-f:]:)|(?<=[Vv]6:))(?!:[^:])(?=[0-9A-Fa-f]{0,4}:)"
    r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?<![^:]:)(?![0-9A-Za-z]|:[0-9A-Fa-f:]|\.[0-9])"
)
MIN_CLEAR_OCTET, MIN_LARGEST_OCTET = 11, 100
"""Versions and chapters have smaller numbers; lots of a lottery and dates have only smaller ones."""
_CHAPTER = re.compile(" ?(?:(?:이[전상하] )?(?:버전|버젼)|판|편|장|절|항|시|일)(?![가-힣])")
# 26.7.7.7:8080, the lines of web servers
_PORT = re.compile(r":(?!00(?![0-9]))[0-9]{2,5}(?![0-9])| - - \[| port [0-9]|\]:[0-9]")
_VERSION_WORD = re.compile(
    r"(?:버전|버젼|(?<!호)판|로또|음력|(?<![가-힣])제|웨일|드라이버|프로그램|노트 -|빌드|펌웨어|릴리스|업데이트"
    r"|패치|[A-Za-z]/|(?<![a-z])(?:version|ver\.?|build|firmware|release|v|ios|android|chrome))"
    r"[은는이가을를]?[ :：=]?$",
    re.I,
)


def _is_public_ipv4(match: re.Match[str], label: str | None) -> bool:
    """Whether the address is public or reserved (240/4), and not a chapter number or a software version."""
    a, b, c, _ = octets = [int(part) for part in match[0].split(".")]
    is_private = a in (10, 127) or (a, b) in ((192, 168), (169, 254)) or (a == 172 and 16 <= b < 32)
    is_shared = a == 100 and 64 <= b < 128
    is_documentation = (a, b, c) in ((192, 0, 2), (198, 51, 100), (203, 0, 113))
    is_network = octets[1:] == [0, 0, 0]  # also a version: Chrome/126.0.0.0
    if a in (0, 255) or 224 <= a < 240 or is_network or is_private or is_shared or is_documentation:
        return False
    if label == "IP" or _PORT.match(match.string, match.end()):
        return True
    before = match.string[max(0, match.start() - 12) : match.start()]
    is_clear = min(octets) >= MIN_CLEAR_OCTET
    if is_clear and max(octets) >= MIN_LARGEST_OCTET:
        return True
    is_menu = max(octets) < 20 and octets == sorted(octets)  # allergens of a dish
    if is_menu or _CHAPTER.match(match.string, match.end()) or _VERSION_WORD.search(before):
        return False
    if is_clear:
        return True
    is_small = (a < 100 and sum(octet >= 10 for octet in octets) < 2) or (a < 20 and 0 in (b, c))
    return label not in NOBODY and not is_small


def _is_global_ipv6(match: re.Match[str], label: str | None) -> bool:
    try:
        address = IPv6Address(match.group())
    except AddressValueError:
        return False
    names_a_network = match.group().endswith("::") or address.exploded.startswith(("2001:0db8", "3fff:0"))
    return 0x2 <= int(address) >> 124 <= 0x3 and not names_a_network


def fake_ip(rng: Random, value: str) -> str:
    """IPv4 from 240/4; IPv6 from 2e00::/16 with the same groups."""
    if ":" not in value:
        return ".".join([str(rng.randrange(240, 255)), *(str(rng.randrange(1, 255)) for _ in range(3))])
    first, *rest = value.split(":")
    groups = [f"{rng.randrange(16 ** (len(g) - 1), 16 ** len(g)):x}" if g else "" for g in rest]
    fake = ":".join(["2e00" if first else "", *groups])
    return fake.upper() if value.isupper() else fake


# --- MAC

_HEX2 = "[0-9A-Fa-f]{2}"
_MAC_START, _MAC_END = (
    r"(?<![0-9A-Za-z])(?<!(?<![0-9A-Za-z])[0-9A-Fa-f]{2}[:\-.])",
    r"(?![0-9A-Za-z]|[:\-.][0-9A-Fa-f])",
)
MAC_PAIRS = re.compile(rf"{_MAC_START}{_HEX2}(?P<sep>[:.\-]){_HEX2}(?:(?P=sep){_HEX2}){{4}}{_MAC_END}")
MAC_BLANK = re.compile(rf"{_MAC_START}{_HEX2}(?P<sep> | ?: ?){_HEX2}(?:(?P=sep){_HEX2}){{4}}{_MAC_END}")
MAC_BARE = re.compile(rf"{_MAC_START}[0-9A-Fa-f]{{6}}-?[0-9A-Fa-f]{{6}}{_MAC_END}")
MAC_DOTS = re.compile(rf"{_MAC_START}[0-9A-Fa-f]{{4}}(?:\.[0-9A-Fa-f]{{4}}){{2}}{_MAC_END}")
_LETTER = re.compile("[A-Fa-f]")


def _is_mac(match: re.Match[str], label: str | None) -> bool:
    """Excludes six pairs of digits, which may be lottery numbers or dates."""
    return bool(_LETTER.search(match[0])) or (label == "MAC" and "." not in match[0])


def fake_mac(rng: Random, value: str) -> str:
    """One of the 256 documentation addresses, in the same notation."""
    drawn = iter(f"00005e0053{rng.randrange(256):02x}")
    fake = re.sub("[0-9A-Fa-f]", lambda _: next(drawn), value)
    return fake.upper() if any(c.isupper() for c in value) else fake


# --- rows

_AT = Scope("@", "", before=66, after=260, run=r"[A-Za-z0-9._%+\-]*+")
_COLONS = Scope(":", "[0-9A-Fa-f:]", before=6, after=42)
# MAC, macAddress; it may head a column
_MAC_WORD = Scope("Mm맥", "(?:[Aa][Cc](?![B-Zb-z]|[Aa][^Dd])| ?(?:주소|어드레스))", before=60, after=2_000)

EMAIL = PiiType("EMAIL", (Format(EMAIL_PATTERN, CERTAIN, scope=_AT),), fake_email, "hong@example.com")
IP = PiiType(
    "IP",
    (
        Format(IPV4, CLEAR, _is_public_ipv4, digits=4, needs=re.compile(r"\.[0-9]{1,3}\.[0-9]{1,3}\.")),
        Format(IPV6, CERTAIN, _is_global_ipv6, _COLONS),
    ),
    fake_ip,
    "240.1.2.3",
)
MAC = PiiType(
    "MAC",
    (
        Format(MAC_PAIRS, CERTAIN, _is_mac, _COLONS),
        Format(MAC_PAIRS, CERTAIN, _is_mac, Scope(r"\-", "[0-9A-Fa-f]{2}-[0-9A-Fa-f]{2}-", before=6, after=18)),
        Format(MAC_DOTS, CERTAIN, _is_mac, Scope(".", r"[0-9A-Fa-f]{4}\.", before=6, after=8)),
        Format(MAC_PAIRS, CERTAIN, _is_mac, Scope(".", r"[0-9A-Fa-f]{2}\.[0-9A-Fa-f]{2}\.", 12, 12)),
        Format(MAC_BLANK, BY_LABEL, scope=_MAC_WORD),
        Format(MAC_BARE, BY_LABEL, scope=_MAC_WORD),
    ),
    fake_mac,
    "00-00-5E-00-53-00",
)
