"""Sentence splitting by rule: punctuation, verb endings, line ends; quotations and brackets stay whole.

The paper used KSS 1.3.1, a C++ splitter by rules of the same kind. One pattern finds candidates by their last character
and looks back at the ending, a second one finds what must stay together, a few tests weigh the rest; linear time, about
50 MB/s a core. Nothing is lost: the sentences joined are the text but for white space. The price against an
analyser of morphemes: bare noun endings in chatty text (맛집임, 웃김) are missed at times.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

# possessive quantifiers (*+) and the tests for a run's first character keep long runs linear
STOPS = ".!?…。！？"
LAUGHS = "ㅋㅎㅠㅜ"
EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff\ufe0f\u200d"
CLOSERS = r"""["'”’」』》〉>)\]]*+"""
FOOTNOTES = r"(?:\[(?:\d{1,3}|[가-힣]{1,3} ?\d{1,3})\])*+"
TAIL = rf"(?: ?[~∼^;♡♥★☆ㅇㅋㅎㅠㅜ{EMOJI}][~∼^;♡♥★☆ㅇㅋㅎㅠㅜㅅㅁㅊㅡ{EMOJI}]*+)?+[.!?…~]*+"
SHORT_NOTE = r"(?: ?\([^()\n]{1,20}\)(?=\s|$))?"

# 해요체, 합쇼체 (polite), 해라체, 해체 and noun forms (plain), each seen from its last syllable; the one before keeps
# 다 of 보다, 마다, 에다 apart
LAST_SYLLABLES = "다요죠용당나음임함됨네지어냐"
ENDING = (
    r"(?:(?<=[니았었였했갔왔됐겠랐렀졌쳤봤났켰셨줬컸썼섰렸뒀꼈웠폈뺐뗐뵀이한된간온본난준진린킨친않없있같싶많좋낸]다"
    r"|[어아여해예에네데워와봐줘져려래군나가까세게거든던대셔쳐혀겨켜펴돼내고구지]요|[세네에어아]용|니당"
    r"|[았었였했겠있없않같많싶좋]음|[것거]임|[능안못]함|[았었했겠][네지어냐])"
    r"|(?<=죠)|(?<=[는은던]구나|[가-힣]중임|때문임|[해돼되]야[함됨])|(?<=[해돼되]야 [함됨]))"
)
# a quotation goes on: "…해!" 하며, …지? 라는, …나? 싶었는데; a bare ending: 하겠다 생각했다
GOES_ON = (
    r"\s*(?:이?라(?:[고는며]|면서)|이?란 |하[고며는더자였]|[고며는]\s"
    r"|했[다던으]|한다[고며는]|싶[었은다]|또는 |및 |[,)])"
)
BARE_GOES_ON = r"\s*(?:생각|느[낌끼꼈]|싶|말[하했이]|해도|치더라도|쳐도|보니|보면|만\s)"
# Each alternative first looks at the character just read: one set of them lets the search skip the rest of the text at
# the speed of a table. The group that closes last says what was found; "held" that the sentence goes on.
CANDIDATE = re.compile(
    rf"[\n{STOPS}{LAUGHS}{LAST_SYLLABLES}^{EMOJI}]"
    rf"(?:(?<=\n)(?P<line>)"
    rf"|(?:(?<=[{STOPS}])(?<![{STOPS}]{{2}})"
    rf"(?:[{STOPS}]*+{CLOSERS}{FOOTNOTES}{TAIL}{CLOSERS}{SHORT_NOTE}(?=\s|$)(?P<stop>)"
    rf"|(?<=[다요죠까][.!?])[.!?]*+{CLOSERS}{FOOTNOTES}(?=[가-힣“‘\"'\d])(?P<glued>))"
    rf"|(?<=[요죠][\^{EMOJI}])[\^{EMOJI}]*+(?=[가-힣])(?P<face>)"
    rf"|(?<=[{LAUGHS}])(?<![{LAUGHS}]{{2}})[{LAUGHS}]++[.!?~]*+(?=\s)(?P<laugh>)"
    rf"|(?![가-힣]){ENDING}{TAIL}{CLOSERS}{SHORT_NOTE}(?=\s)(?:(?={BARE_GOES_ON})(?P<bare_held>)|(?P<ending>)))"
    rf"(?:(?={GOES_ON})(?P<held>))?)"
)
KINDS = CANDIDATE.groupindex
LINE, STOP, GLUED, HELD = KINDS["line"], KINDS["stop"], KINDS["glued"], frozenset((KINDS["held"], KINDS["bare_held"]))
TOGETHER = re.compile(
    r"“[^“”\n]{0,400}”|‘[^‘’\n]{0,400}’|「[^「」\n]{0,400}」|『[^『』\n]{0,400}』|《[^《》\n]{0,200}》|〈[^〈〉\n]{0,200}〉"
    r"|\([^()\n]{0,400}\)|\[[^\[\]\n]{0,400}\]|<[^<>\n]{0,200}>"
    r"|\"[^\"\n]{0,400}\"|'(?<![0-9A-Za-z가-힣]')[^'\n]{0,200}'(?![A-Za-z])"
)
NOWHERE = (sys.maxsize, sys.maxsize)
FINAL_SYLLABLES = frozenset("다요죠까네지음임함됨쥬듯라어야군나래냐자마니용당삼셈")
LATIN_SHORT = re.compile(r"(?:^|[^A-Za-z])(?:[A-Z]|Mrs?|Ms|Dr|St|No|vs|Vol|Jr|Sr|Co|Inc|Ltd|pp?|etc|al|e\.g|i\.e|cf)$")
LOOK_BACK = 8
URL = re.compile(r"://\S*$")
URL_LOOK_BACK = 200


def split_sentences(text: str) -> list[str]:
    """Sentences of a text in order, stripped, none empty; every line end is a boundary.

    ``"".join`` of them equals the text when white space is left out of both.
    """
    sentences = []
    start = 0
    spans = TOGETHER.finditer(text)
    opens, closes = _next_span(spans)
    for match in CANDIDATE.finditer(text):
        kind = match.lastindex
        here, end = match.span()
        if kind != LINE:
            if kind in HELD:
                continue
            while closes <= here:
                opens, closes = _next_span(spans)
            if here >= opens and not _ends_span(text, start, end, opens, closes):
                continue
            if kind == STOP and here and not _is_full_stop(text, match[0], start, here):
                continue
            if kind == GLUED and URL.search(text, max(start, here - URL_LOOK_BACK), here):
                continue
        if sentence := text[start:end].strip():
            sentences.append(sentence)
        start = end
    if sentence := text[start:].strip():
        sentences.append(sentence)
    return sentences


def _next_span(spans: Iterator[re.Match[str]]) -> tuple[int, int]:
    match = next(spans, None)
    return match.span() if match else NOWHERE


def _ends_span(text: str, start: int, end: int, opens: int, closes: int) -> bool:
    """Whether a candidate inside a span ends it too and the span was the sentence, or a quotation ends there."""
    is_whole = opens - start <= LOOK_BACK and not text[start:opens].strip()
    return closes <= end and (is_whole or text[opens] in "“‘\"'")


def _is_full_stop(text: str, mark: str, start: int, here: int) -> bool:
    """Whether the stop at ``here`` is no decimal point, number, initial, abbreviation or mere hesitation."""
    before = text[here - 1]
    if mark.startswith(("..", "…")):
        return before in FINAL_SYLLABLES or "!" in mark or "?" in mark
    if mark.startswith("."):
        return not (before.isdigit() or LATIN_SHORT.search(text[max(start, here - LOOK_BACK) : here]))
    return True
