"""URL: with scheme, with www, short links and bare domains, including Hangul hosts and paths.

The end is difficult: particles, punctuation and brackets of the sentence follow without a space, but Hangul and
brackets also occur inside URLs. Replacements keep the form and use an example domain.
"""

from __future__ import annotations

import re
from random import Random

from corpus.pii.formats.email_ip_mac import DOMAIN_LABEL, RESERVED_DOMAINS
from corpus.pii.formats.shapes import faker, scramble
from corpus.pii.types import CERTAIN, Format, PiiType, Scope

_PATH_SIGN = r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]"
# in a list, these separate a URL from the next value
_NEXT = r"(?![,;|]['\"]?(?:https?://|ftp://|www\.|[0-9]{2,4}-|[0-9]{6}|[A-Za-z0-9._%+\-]{1,64}@|@|\+82)|['\"][=:,;|_]['\"]|\*\*|\](?:[/,;|)]|_\[)|(?:https?|ftp)://)"
# Hangul belongs to a path only after / _ - = and in brackets of a Hangul name; after a word it is a particle
_PATH_HANGUL = r"(?:(?<=[/_\-=+])|(?<=%[0-9A-F]{2})|(?<=[_가-힣]\())[가-힣]{1,40}"
_PATH = rf"(?::[0-9]{{1,5}})?(?:[/?#](?:{_NEXT}{_PATH_SIGN}|{_PATH_HANGUL}){{0,2000}})?"
_USER = r"(?:[A-Za-z0-9._~%!$&+:\-]{1,64}@)?"
_HANGUL_NAME = r"[가-힣][가-힣0-9\-]{0,40}"
_HANGUL_HOST = (
    rf"(?:[A-Za-z0-9\-]{{1,63}}\.){{0,3}}{_HANGUL_NAME}\."
    r"(?:[A-Za-z0-9가-힣\-]{1,40}\.){0,3}(?:[A-Za-z]{2,24}|한국)"
)
_TLDS = (
    r"(?:com|net|org|info|biz|edu|gov|dev|app|shop|site|xyz|blog|online|io|me|tv|ai|cc|eu|us|uk|jp|cn|de|fr|kr|example"
    r"|(?:co|go|or|ac|re|ne|pe|hs|ms|es|kg)\.kr|co\.jp|com\.cn|co\.uk|COM|ORG|KR|(?:CO|GO|OR|AC)\.KR)"
)
_BARE_END = r"(?![A-Za-z0-9@\-_]|\.[A-Za-z0-9])"
URL_SCHEME = re.compile(
    rf"(?P<value>(?:h(?:tt|xx)ps?|s?ftp|wss?)://{_USER}(?:{_HANGUL_HOST}|[A-Za-z0-9](?:(?!(?:https?|ftp)://)[A-Za-z0-9.\-]){{0,250}})"
    rf"{_PATH})",
    re.IGNORECASE,
)
URL_WWW = re.compile(
    rf"(?<![A-Za-z0-9@])(?<![A-Za-z0-9@][.\-_])(?P<value>www\.(?:{DOMAIN_LABEL}\.){{1,6}}[A-Za-z]{{2,24}}(?![A-Za-z0-9]){_PATH})",
    re.IGNORECASE,
)
URL_BARE = re.compile(
    rf"(?:(?<![A-Za-z0-9@/\-_*])|(?<=(?<![A-Za-z0-9*])\*\*)|(?<=[^A-Za-z0-9_\-./@*][-*]))(?<![A-Za-z0-9@./\-_*]\.)(?<!\.\.)"
    rf"(?P<value>(?:\*\.)?(?!(?i:asp|ado|vb|dot|f|c)\.net)(?:{DOMAIN_LABEL}\.){{1,5}}{_TLDS}{_BARE_END}{_PATH})"
)
URL_SHORT = re.compile(
    r"(?<![A-Za-z0-9@./\-_])(?P<value>[a-z0-9]{1,12}\.(?:be|gl|gle|ly|do|co|la|to|gg|ee|me)/[A-Za-z0-9\-_/?=&]{2,80})"
)
URL_HANGUL = re.compile(
    rf"(?<![가-힣A-Za-z0-9@.\-])(?P<value>(?:www\.)?{_HANGUL_NAME}\.(?:com|net|(?:co\.)?kr){_BARE_END}{_PATH})"
)
MAX_URL = 2_300
_TRAILING = ".,;:!?'*&|[]("
_ENTITY = re.compile("&(?:lt|gt|quot|apos|#39)(?![a-z])")
_BRACKET, _CLOSING = re.compile(r"[()\[\]]"), {"(": ")", "[": "]"}
_HANGUL = re.compile("[가-힣]")
_HANGUL_RUN = re.compile("[가-힣]+")
MIN_STEM = 2  # minimum number of syllables before a particle: 과 is no particle in /사과
_PARTICLE = re.compile(
    "(?:에서는|에서도|에서|에게|에는|에도|에|으로|로|을|를|이|가|은|는|와|과|도|의|나|이나|처럼|까지|부터"
    "|입니다|이다|이고|이며|인데|이에요|예요|라고|이라고|라는|이라는)$"
)


# after these, the last part of a path may be a Hangul word; otherwise it belongs to the sentence
_HANGUL_PLACE = re.compile(
    "[=_+-]$|/(?:w|wiki|entry|tags?|search|category|people|users?|channel|c|place|keyword)/$", re.IGNORECASE
)


def _trim_hangul(url: str) -> str:
    """Remove Hangul of the sentence: 를 of ``/위키/사과를``, and 에서 of ``example.com/에서``."""
    last = _HANGUL_RUN.match(url[::-1])
    if not last:
        return url
    tail = len(url) - last.end()
    host_end = url.find("/", url.find("//") + 2)
    place = url[host_end:tail]
    if host_end >= 0 and not (_HANGUL.search(place) or _HANGUL_PLACE.search(place)):
        return url[:tail]
    particle = _PARTICLE.search(url, tail)
    if particle and (particle.start() == tail or particle.start() - tail >= MIN_STEM):
        return url[: particle.start()]
    return url


def trim_url(url: str, before: str = "") -> str:
    """A URL without punctuation and particles of the sentence.

    It ends at a closing bracket without its opening one, at escaped brackets and quotation marks of HTML, and at the
    quotation mark ``before`` it.
    """
    if before and before in "'\"":
        url = url.partition(before)[0]
    url = _before_closing(_ENTITY.split(url, maxsplit=1)[0]).rstrip(_TRAILING)
    if "?" not in url:  # & separates key=value pairs
        url = url.partition("&")[0]
    return _trim_hangul(url).rstrip(_TRAILING)


def _before_closing(url: str) -> str:
    """The part before the first ``)`` or ``]`` without its opening one."""
    opened = {")": 0, "]": 0}
    for bracket in _BRACKET.finditer(url):
        closing = _CLOSING.get(bracket[0], bracket[0])
        opened[closing] += 1 if bracket[0] in _CLOSING else -1
        if opened[closing] < 0:
            return url[: bracket.start()]
    return url


_PATH_START, _HOST_END = re.compile("[/?#]"), re.compile("[:/?#]")
_NO_HOST = re.compile(
    r"(?:com|org|net|io)\.|[0-9]+\.[0-9]+\.|(?:co|or|go|ac)\.[a-z]+$|[A-Z][a-z]+\.(?:info|io|me|app|net)$"
    r"|(?:this|self|config|console|log|logger|user|row|item|event|lang|messages?|data|state|props|req|res|it|java|scipy|main|member|layouts|settings|price)\.[a-z]+$"
)
_CALL = re.compile("\\((?:[\"')]|[a-z]+[(,)=])")  # log.info("…") is a call
_DOMAIN_END = re.compile(rf"[A-Za-z0-9-]{{2}}\.{_TLDS}$")


def _has_host(match: re.Match[str], label: str | None) -> bool:
    host = _PATH_START.split(trim_url(match["value"]).partition("://")[2], 1)[0]
    return "." in host and len(host) > 3


def _is_domain(match: re.Match[str], label: str | None) -> bool:
    """Excludes names of one letter before the suffix (``M.net``, ``P.S.M.de``), package names (``com.example.app``) and
    ``3.14.com``."""
    host = _HOST_END.split(match["value"], 1)[0]
    return not (_NO_HOST.match(host) or _CALL.match(match.string, match.end())) and bool(_DOMAIN_END.search(host))


_URL_PARTS = re.compile(
    r"(?P<scheme>(?:https?|ftp)://)?(?P<star>\*\.)?(?P<user>[^/?#@]*@)?(?P<www>www\.)?"
    r"(?P<host>[^/?#:]*)(?P<port>:[0-9]+)?(?P<path>.*)",
    re.IGNORECASE | re.DOTALL,
)


def fake_url(rng: Random, value: str) -> str:
    """The same scheme, ``www``, and form of user and path, with a host under an example domain."""
    parts = _URL_PARTS.fullmatch(value)
    assert parts, "any string has the parts of a URL"
    host = f"{faker(rng).user_name()}.{rng.choice(RESERVED_DOMAINS)}"
    user = scramble(rng, parts["user"] or "")
    front = "".join(parts[name] or "" for name in ("scheme", "star"))
    return f"{front}{user}{parts['www'] or ''}{host}{parts['port'] or ''}{scramble(rng, parts['path'])}"


_DOMAIN = Scope(
    ".",
    rf"(?=[A-Za-z]{{2}})(?:(?<=[wW]\.)|{_TLDS}(?![A-Za-z0-9])|(?:be|gle?|ly|do|co|la|to|gg|ee|me)/|[A-Za-z0-9-]{{2,63}}\.[A-Za-z])",
    before=130,
    after=MAX_URL,
    run=r"[A-Za-z0-9*.\-]*+",
)

_HANGUL_DOMAIN = Scope(".", r"(?<=[가-힣0-9]\.)(?:com|net|(?:co\.)?kr)(?![A-Za-z0-9])", before=44, after=MAX_URL)

URL = PiiType(
    "URL",
    (
        Format(
            URL_SCHEME,
            CERTAIN + 4,
            _has_host,
            Scope(":", "//", before=6, after=MAX_URL, run="(?i:s?p(?:tt|xx)h|ptfs?|s?sw|)"),
        ),
        Format(URL_WWW, CERTAIN + 4, scope=_DOMAIN),
        Format(URL_BARE, CERTAIN + 1, _is_domain, _DOMAIN),
        Format(URL_SHORT, CERTAIN + 1, scope=_DOMAIN),
        Format(URL_HANGUL, CERTAIN + 1, scope=_HANGUL_DOMAIN),
    ),
    fake_url,
    "http://www.example.com",
)
