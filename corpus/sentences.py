"""Sentence splitting by rule: punctuation, verb endings, line ends; quotations and brackets stay whole.

The paper used KSS 1.3.1, a C++ splitter by rules of the same kind. One pattern finds candidates, a second one what must
stay together, a few tests weigh each candidate; all of it in linear time. Nothing is lost: the sentences joined are the
text but for white space. The price against a morphological analyser: bare endings in chatty text are missed at times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# possessive quantifiers (*+) and the tests for a run's first character keep long runs linear
CLOSERS = r"""["'”’」』》〉>)\]]*+"""
FOOTNOTES = r"(?:\[(?:\d{1,3}|[가-힣]{1,3} ?\d{1,3})\])*+"
EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff\ufe0f\u200d"
TAIL = rf"(?: ?[~∼^;♡♥★☆ㅇㅋㅎㅠㅜ{EMOJI}][~∼^;♡♥★☆ㅇㅋㅎㅠㅜㅅㅁㅊㅡ{EMOJI}]*+)?+[.!?…~]*+"
SHORT_NOTE = r"(?: ?\([^()\n]{1,20}\)(?=\s|$))?"

# 해요체, 합쇼체 (polite endings)
POLITE = (
    r"(?:니다|[어아여해예에네데워와봐줘져려래군나가까세게거던든대셔쳐혀겨켜펴돼내]요|[고구지]요|죠"
    r"|[세네에어아]용|[았었]답니당|니당)"
)
# 해라체, 해체 and noun forms (plain endings): the syllable before keeps 다 of 보다, 마다, 에다 apart
PLAIN = (
    r"(?:[았었였했갔왔됐겠랐렀졌쳤봤났켰셨줬컸썼섰렸뒀꼈웠폈뺐뗐뵀]다|[이한된간온본난준진린킨친않없있같싶많좋낸]다"
    r"|[는은던]구나|[았었였했겠]음|[있없않같많싶좋]음|(?:것|거|때문|[가-힣]중)임|[해돼되]야 ?[함됨]"
    r"|[능안못]함|[았었했겠][네지어냐])"
)
CANDIDATE = re.compile(
    rf"(?P<stop>(?<![.!?…。！？])[.!?…。！？]++{CLOSERS}{FOOTNOTES}{TAIL}{CLOSERS}{SHORT_NOTE})(?=\s|$)"
    rf"|(?P<ending>(?:{POLITE}|{PLAIN}){TAIL}{CLOSERS}{SHORT_NOTE})(?=\s)"
    rf"|(?P<glued>(?<=[다요죠까])[.!?]++{CLOSERS}{FOOTNOTES})(?=[가-힣“‘\"'\d])"
    r"|(?P<laugh>(?<![ㅋㅎㅠㅜ])[ㅋㅎㅠㅜ]{2,}+[.!?~]*+)(?=\s)"
    r"|(?P<line>\n)"
)
TOGETHER = re.compile(
    r"“[^“”\n]{0,400}”|‘[^‘’\n]{0,400}’|「[^「」\n]{0,400}」|『[^『』\n]{0,400}』|《[^《》\n]{0,200}》|〈[^〈〉\n]{0,200}〉"
    r"|\([^()\n]{0,400}\)|\[[^\[\]\n]{0,400}\]|<[^<>\n]{0,200}>"
    r"|\"[^\"\n]{0,400}\"|(?<![0-9A-Za-z가-힣])'[^'\n]{0,200}'(?![A-Za-z])"
)
# a quotation goes on: "…해!" 하며, …지? 라는, 하겠다 생각했다
GOES_ON = re.compile(r"\s*(?:이?라[고는며]|이?란 |하[고며는더자였]|[고며는]\s|했[다던으]|한다[고며는]|또는 |및 |[,)])")
BARE_GOES_ON = re.compile(r"\s*(?:생각|느[낌끼꼈]|싶|말[하했이]|해도|치더라도|쳐도|보니|보면|만\s)")
FINAL_SYLLABLES = frozenset("다요죠까네지음임함됨쥬듯라어야군나래냐자마니용당삼셈")
LATIN_SHORT = re.compile(r"(?:^|[^A-Za-z])(?:[A-Z]|Mrs?|Ms|Dr|St|No|vs|Vol|Jr|Sr|Co|Inc|Ltd|pp?|etc|al|e\.g|i\.e|cf)$")
LOOK_BACK = 8


def split_sentences(text: str) -> list[str]:
    """Sentences of a text in order, stripped, none empty; every line end is a boundary.

    ``"".join`` of them equals the text when white space is left out of both.
    """
    sentences = []
    start = 0
    for end in _boundaries(text):
        if sentence := text[start:end].strip():
            sentences.append(sentence)
        start = end
    if sentence := text[start:].strip():
        sentences.append(sentence)
    return sentences


def _boundaries(text: str) -> Iterator[int]:
    """Offsets where a sentence ends, ascending."""
    together = (match.span() for match in TOGETHER.finditer(text))
    span = next(together, None)
    start = 0
    for match in CANDIDATE.finditer(text):
        here, end = match.start(), match.end()
        while span and span[1] <= here:
            span = next(together, None)
        if match.lastgroup == "line" or (
            (span is None or here < span[0] or _closes(text, start, end, span)) and _is_boundary(text, match, start)
        ):
            yield end
            start = end


def _closes(text: str, start: int, end: int, span: tuple[int, int]) -> bool:
    """Whether a candidate inside ``span`` ends it too and the span was the sentence, or a quotation ends there."""
    is_whole = span[0] - start <= LOOK_BACK and not text[start : span[0]].strip()
    return span[1] <= end and (is_whole or text[span[0]] in "“‘\"'")


def _is_boundary(text: str, match: re.Match[str], start: int) -> bool:
    here, end = match.span()
    if GOES_ON.match(text, end):
        return False
    if match.lastgroup == "ending":
        return not BARE_GOES_ON.match(text, end)
    if match.lastgroup != "stop" or here == 0:
        return True
    mark, before = match[0], text[here - 1]
    if mark.startswith(("..", "…")):
        return before in FINAL_SYLLABLES or "!" in mark or "?" in mark
    if mark.startswith("."):
        return not (before.isdigit() or LATIN_SHORT.search(text[max(start, here - LOOK_BACK) : here]))
    return True
