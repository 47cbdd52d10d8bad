"""Personal data of the net: e-mail, IP and MAC addresses, mentions and URLs.

Korean particles follow without a blank, so every pattern says which ASCII characters may not follow and stops there.
Replacements use names and blocks that nobody owns: example.com/.net/.org (RFC 2606), IPv4 240/4 (reserved), IPv6
2e00::/16 (not allocated), MAC 00-00-5E-00-53-xx (RFC 7042). Private and documentation addresses are nobody's either,
so they are not reported.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address
from random import Random

from corpus.pii.shapes import draw_person_name, draw_user_name, scramble
from corpus.pii.types import BY_LABEL, CERTAIN, LIKELY, Format, PiiType, Scope

_RESERVED_TLDS = ("com", "net", "org")

# --- EMAIL

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?+"
EMAIL_PATTERN = re.compile(
    r"(?<![A-Za-z0-9._%+*\-])[A-Za-z0-9_][A-Za-z0-9._%+\-]{0,63}@"
    rf"(?:{_LABEL}\.){{1,8}}[A-Za-z]{{2,24}}(?![A-Za-z0-9@*]|\.[A-Za-z0-9])"
)


def fake_email(rng: Random, value: str) -> str:
    """A new user at a domain that exists for examples only."""
    name = f"{draw_user_name(rng)}{rng.randrange(1000):03}"
    address = f"{name}@example.{rng.choice(_RESERVED_TLDS)}"
    return address.upper() if value.isupper() else address


# --- URL

_PATH = r"(?::[0-9]{1,5})?(?:[/?#][A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%|]{0,2000})?"
_TLDS = (
    r"(?:com|net|org|info|biz|edu|gov|dev|app|shop|site|xyz|blog|online|io|me|tv|ai|cc|eu|us|uk|jp|cn|de|fr|kr"
    r"|(?:co|go|or|ac|re|ne|pe|hs|ms|es|kg)\.kr|co\.jp|com\.cn|co\.uk)"
)
_BARE_END = r"(?![A-Za-z0-9@\-_]|\.[A-Za-z0-9])"
URL_SCHEME = re.compile(
    rf"(?<![A-Za-z0-9])(?P<value>https?://[A-Za-z0-9](?:[A-Za-z0-9.\-]{{0,250}}){_PATH})", re.IGNORECASE
)
URL_WWW = re.compile(
    rf"(?<![A-Za-z0-9@./\-_])(?P<value>www\.(?:{_LABEL}\.){{1,6}}[A-Za-z]{{2,24}}(?![A-Za-z0-9]){_PATH})", re.IGNORECASE
)
URL_BARE = re.compile(
    rf"(?<![A-Za-z0-9@./\-_*])(?P<value>(?!(?i:asp|ado|vb|dot|f|c)\.net)(?:{_LABEL}\.){{1,5}}{_TLDS}{_BARE_END}{_PATH})"
)
URL_SHORT = re.compile(
    r"(?<![A-Za-z0-9@./\-_])(?P<value>(?:youtu\.be|goo\.gl|bit\.ly|me2\.do|t\.co)/[A-Za-z0-9\-_/?=&]{2,80})"
)
MAX_URL = 2_300
_TRAILING = ".,;:!?'*&|[("


def trim_url(url: str) -> str:
    """A URL without the punctuation of the sentence around it; a closing bracket stays if it was opened inside."""
    end = len(url)
    opened, closed = url.count("("), url.count(")")
    while end:
        last = url[end - 1]
        if last == ")" and closed > opened:
            closed -= 1
        elif last == "]" or last in _TRAILING:
            opened -= last == "("
        else:
            break
        end -= 1
    return url[:end]


def _has_host(match: re.Match[str], label: str | None) -> bool:
    host = trim_url(match["value"]).partition("://")[2]
    return "." in host.split("/")[0] and len(host) > 3


def _is_domain(match: re.Match[str], label: str | None) -> bool:
    """``M.net`` (a television channel) and ``P.S.M.de`` are no domains: the name before the suffix has two letters."""
    return bool(re.search(rf"[A-Za-z0-9-]{{2}}\.{_TLDS}$", re.split("[:/?#]", match["value"])[0]))


_URL_PARTS = re.compile(
    r"(?P<scheme>https?://)?(?P<www>www\.)?(?P<host>[^/?#:]*)(?P<port>:[0-9]+)?(?P<path>.*)", re.I | re.S
)


def fake_url(rng: Random, value: str) -> str:
    """Same scheme, ``www`` and form of the path, another host under an example domain."""
    parts = _URL_PARTS.fullmatch(value)
    assert parts, "any string has the parts of a URL"
    host = f"{draw_user_name(rng)}.example.{rng.choice(_RESERVED_TLDS)}"
    return f"{parts['scheme'] or ''}{parts['www'] or ''}{host}{parts['port'] or ''}{scramble(rng, parts['path'])}"


# --- IP

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = re.compile(
    rf"(?<![0-9A-Za-z.])(?<![0-9A-Za-z]-){_OCTET}(?:\.{_OCTET}){{3}}(?![0-9A-Za-z]|\.[0-9]| ?(?:버전|버젼|판|편|장|절))"
)
IPV6 = re.compile(
    r"(?<![0-9A-Za-z:.])(?=[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![0-9A-Za-z:]|\.[0-9])"
)
_VERSION_WORD = re.compile(
    r"(?:버전|버젼|판|version|ver\.?|빌드|build|펌웨어|firmware|릴리스|release|v)[은는이가을를]?[ :：]?$", re.I
)


def _is_public_ipv4(match: re.Match[str], label: str | None) -> bool:
    """Public or reserved for the future (240/4); chapter numbers and software versions look the same."""
    a, b, c, _ = octets = [int(part) for part in match.group().split(".")]
    if a in (0, 10, 127) or 224 <= a < 240 or a == 255:
        return False
    if (a, b) in ((192, 168), (169, 254)) or (a == 172 and 16 <= b < 32) or (a == 100 and 64 <= b < 128):
        return False
    if (a, b, c) in ((192, 0, 2), (198, 51, 100), (203, 0, 113)):
        return False
    if label == "IP":
        return True
    if max(octets) < 10 or (a < 20 and 0 in (b, c)):
        return False
    return not _VERSION_WORD.search(match.string[max(0, match.start() - 12) : match.start()])


def _is_global_ipv6(match: re.Match[str], label: str | None) -> bool:
    try:
        address = IPv6Address(match.group())
    except AddressValueError:
        return False
    names_a_network = match.group().endswith("::") or address.exploded.startswith(("2001:0db8", "3fff:0"))
    return 0x2 <= int(address) >> 124 <= 0x3 and not names_a_network


def fake_ip(rng: Random, value: str) -> str:
    """IPv4 from 240/4; IPv6 from 2e00::/16 with groups as many and as long as before."""
    if ":" not in value:
        return ".".join([str(rng.randrange(240, 255)), *(str(rng.randrange(1, 255)) for _ in range(3))])
    first, *rest = value.split(":")
    groups = [f"{rng.randrange(16 ** (len(g) - 1), 16 ** len(g)):x}" if g else "" for g in rest]
    fake = ":".join(["2e00" if first else "", *groups])
    return fake.upper() if value.isupper() else fake


# --- MAC

_HEX2 = "[0-9A-Fa-f]{2}"
_MAC_START, _MAC_END = r"(?<![0-9A-Za-z])(?<![0-9A-Za-z][:\-.])", r"(?![0-9A-Za-z]|[:\-.][0-9A-Fa-f])"
MAC_COLON = re.compile(rf"{_MAC_START}{_HEX2}(?::{_HEX2}){{5}}{_MAC_END}")
MAC_HYPHEN = re.compile(rf"{_MAC_START}{_HEX2}(?:-{_HEX2}){{5}}{_MAC_END}")
MAC_DOTS = re.compile(rf"{_MAC_START}[0-9A-Fa-f]{{4}}(?:\.[0-9A-Fa-f]{{4}}){{2}}{_MAC_END}")
_LETTER = re.compile("[A-Fa-f]")


def _is_mac(match: re.Match[str], label: str | None) -> bool:
    """Six pairs of plain digits may be lottery numbers or dates, unless announced."""
    return label == "MAC" or bool(_LETTER.search(match.group()))


def fake_mac(rng: Random, value: str) -> str:
    """One of the 256 addresses for documentation, written as before."""
    drawn = iter(f"00005e0053{rng.randrange(256):02x}")
    fake = re.sub("[0-9A-Fa-f]", lambda _: next(drawn), value)
    return fake.upper() if any(c.isupper() for c in value) else fake


# --- MENTION

_NO_CODE = (
    r"(?!(?i:property|override|overload|staticmethod|classmethod|abstractmethod|dataclass|cached_property|wraps|param"
    r"|returns?|throws|deprecated|see|since|author|version|autowired|component|service|repository|bean|test|entity"
    r"|controller|restcontroller|configuration|\w{3,7}mapping|requestparam|pathvariable|transactional|getter|setter"
    r"|data|builder|column|nullable|notnull|inject|provides|composable|interface|implementation|suppresswarnings|media"
    r"|import|charset|include|extend|mixin|keyframes|font-face|supports|tailwind|apply|pytest|app|router|decorator"
    r"|everyone|here|channel)(?![A-Za-z0-9_]))"
)
MENTION_LATIN = re.compile(
    rf"(?<![A-Za-z0-9@/*_\\\-])(?<![A-Za-z0-9]\.)@{_NO_CODE}(?=[0-9_.]{{0,9}}[A-Za-z])"
    r"[A-Za-z0-9_][A-Za-z0-9_.]{0,28}[A-Za-z0-9_](?![A-Za-z0-9_@*(\[/=]|-[A-Za-z]|\.[A-Za-z0-9])"
)
_BEFORE_HANGUL = r"(?<![A-Za-z0-9@./*_\-가-힣])"
_PARTICLES = "에게서|에게|한테서|한테|께서|께|님[이은을의께도]?|씨[가는를의]?"
_COPULAS = "입니다|이에요|예요|이고|이다"
MENTION_MIXED = re.compile(rf"{_BEFORE_HANGUL}@[가-힣]{{2,20}}[A-Za-z0-9_.]{{0,20}}[A-Za-z0-9_](?![A-Za-z0-9@*])")
MENTION_CALLED = re.compile(rf"{_BEFORE_HANGUL}@[가-힣]{{2,20}}?(?=(?:{_PARTICLES})(?![가-힣]))")
MENTION_HANGUL = re.compile(rf"{_BEFORE_HANGUL}@[가-힣]{{2,20}}?(?=(?:{_COPULAS})?(?![가-힣A-Za-z0-9_@*]))")
_NO_HANDLE = re.compile(r".*\.(?i:com|net|org|edu|kr)|@[A-Z]+|@(?:[A-Z][a-z]+){2,}")


def _is_handle(match: re.Match[str], label: str | None) -> bool:
    """At least three characters; no rest of a masked address (``@naver.com``), no code (``@ECHO``, ``@StartDate``)."""
    return len(match.group()) > 3 and (label == "MENTION" or not _NO_HANDLE.fullmatch(match.group()))


def fake_mention(rng: Random, value: str) -> str:
    """A handle in the script of the value."""
    if "가" <= value[1] <= "힣":
        return f"@{draw_person_name(rng).replace(' ', '')}_{rng.randrange(10_000):04}"
    return f"@{draw_user_name(rng)}_{rng.randrange(10_000):04}"


# --- rows

_AT = re.compile("@")
_AROUND_AT = Scope(_AT, before=2, after=36)
_COLONS = Scope(re.compile(":[0-9A-Fa-f:]"), before=6, after=42)
_DOMAIN = Scope(re.compile(r"\.[A-Za-z]{2}"), before=130, after=MAX_URL)

EMAIL = PiiType(
    "EMAIL",
    (Format(EMAIL_PATTERN, CERTAIN, scope=Scope(_AT, before=66, after=260)),),
    ("이메일", "메일", "e-mail", "email"),
    fake_email,
    "hong@example.com",
)
IP = PiiType(
    "IP",
    (Format(IPV4, LIKELY, _is_public_ipv4), Format(IPV6, CERTAIN, _is_global_ipv6, _COLONS)),
    ("아이피", "ip", "ipv4", "ipv6"),
    fake_ip,
    "240.1.2.3",
)
MAC = PiiType(
    "MAC",
    (
        Format(MAC_COLON, CERTAIN, scope=_COLONS),
        Format(MAC_HYPHEN, CERTAIN, _is_mac, Scope(re.compile("-[0-9A-Fa-f]{2}-"), before=6, after=18)),
        Format(MAC_DOTS, CERTAIN, _is_mac, Scope(re.compile(r"\.[0-9A-Fa-f]{4}\."), before=6, after=8)),
    ),
    ("맥주소", "맥 주소", "mac"),
    fake_mac,
    "00-00-5E-00-53-00",
)
MENTION = PiiType(
    "MENTION",
    (
        Format(MENTION_LATIN, CERTAIN, _is_handle, _AROUND_AT),
        Format(MENTION_MIXED, CERTAIN, scope=_AROUND_AT),
        Format(MENTION_CALLED, CERTAIN, scope=_AROUND_AT),
        Format(MENTION_HANGUL, BY_LABEL, scope=_AROUND_AT),
    ),
    ("인스타", "트위터", "유튜브", "멘션", "디엠"),
    fake_mention,
    "@hong_0000",
)
URL = PiiType(
    "URL",
    (
        Format(URL_SCHEME, CERTAIN + 2, _has_host, Scope(re.compile("://"), before=6, after=MAX_URL)),
        Format(URL_WWW, CERTAIN + 2, scope=_DOMAIN),
        Format(URL_BARE, CERTAIN + 1, _is_domain, _DOMAIN),
        Format(URL_SHORT, CERTAIN + 1, scope=_DOMAIN),
    ),
    ("홈페이지", "누리집", "사이트", "링크", "url"),
    fake_url,
    "http://www.example.com",
)
