"""Rule-based sentence splitting by punctuation, verb endings and line ends; quotations and brackets are not split.

The paper used KSS 1.3.1, a rule-based C++ splitter. One pattern finds candidates by their last character and looks back
at the ending, a second pattern finds spans to keep together, and a few checks decide the rest. Linear time, about
40 MB/s per core. The joined sentences equal the text except for white space. Without a morpheme analyzer, endings that
nouns share (맛집임, 웃김, 가고 있어) are missed in chat-like text.
"""

from __future__ import annotations

import re
import sys
from itertools import chain, pairwise, repeat

# possessive quantifiers (*+) and checks for the first character of a run keep the time linear
STOPS = ".!?…。！？"
LAUGHS = "ㅋㅎㅠㅜ"
EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff\ufe0f\u200d"
CLOSERS = r"""["'”’」』》〉>)\]]*+"""
FOOTNOTES = r"(?:\[(?:\d{1,3}|[가-힣]{1,3} ?\d{1,3})\])*+"
FACES = rf"~∼^;♡♥ㅋㅎㅠㅜ{EMOJI}"
FACE = rf"[~∼^;♡♥★☆ㅇㅋㅎㅠㅜㄷㅡ{EMOJI}][~∼^;♡♥★☆ㅇㅋㅎㅠㅜㅅㅁㅊㅡㄷ{EMOJI}]*+"
# bounded, because ~ is also a face: …~…~…~ would be read to its end from every stop
TAIL = rf"(?: ?(?:{FACE}|:\)++))?+[.!?…~]{{0,200}}+"
SHORT_NOTE = (
    r"(?:(?! ?\((?:\d{1,2}|[가나다라마바사아자차카타파하a-z])\))"
    r"(?:\([^()\n]{1,20}| \([^()\n]{0,19}[^()\n.!?…])\)(?=\s|$)"
    r"| ?[<‹〈](?:개정|신설|전문개정|제목개정|본조신설|삭제|종전)[^<>‹›〈〉\n]{0,80}[>›〉](?=\s|$))?"
)

# 해요체, 합쇼체 (polite), 해라체, 해체 and noun forms (plain), by their last syllable; the syllable before it excludes
# 다 of 보다, 마다, 에다
LAST_SYLLABLES = "다요죠용당나음임함됨네지어냐라오까"
BEFORE_YO = "어아여해예에네데워와봐줘져려래군나가까세게거든던대셔쳐혀겨켜펴돼내고구지짜써커꺼빠싸러파뻐퍼서더"
ENDING = (
    r"(?:(?<=[니는았었였했갔왔됐겠랐렀졌쳤봤났켰셨줬컸썼섰렸뒀꼈웠폈뺐뗐뵀이한된간온본난준진린킨친않없있같싶많좋낸"
    r"힌긴핀낀띈뛴쉰닌낫싫맞옳]다"
    rf"|[{BEFORE_YO}]요"
    r"|[세네에어아]용|니당|[았었였했겠있없않같많싶좋]음|[것거]임|[능안못]함"
    r"|[았었했겠였갔왔됐랐렀졌쳤봤났줬썼켰][네지어]|[있없같많좋싫]네|[하있없같좋이구러되겠었았했거]냐|[해봐줘]라)"
    r"|(?<=죠)|(?<=십시오)|(?<=[습합입됩갑옵봅]니까)|(?<=[는은던]구나|[합읍갑봅입맙둡줍]시다|[지하]마라|[가-힣]중임|때문임|[해돼되]야[함됨])"
    r"|(?<=[해돼되]야 [함됨]))"
)
# before a laugh, a face or an emoji these end a sentence too: 짜요ㅠ, 먹음ㅋ, 축하해🎂
SOFT = "다요네지음임함됨어해냐라나줘"
SOFT_ENDING = rf"(?:(?<=[가-힣][{SOFT}][{FACES}])|(?<=[가-힣][{SOFT}] [♡♥ㅋㅎㅠㅜ{EMOJI}]))"
# continuations of the previous sentence, mostly reported speech: "…해!" 하며, …지? 라는
GOES_ON = r"\s*(?:이?라(?:[고는며]|면서)|이?란 |하[며는]\s|하는데|하고(?=\s?[말묻물생])|[,)])|[고며는]\s"
# the same without a full stop before; after one, 하고 싶은 말은 or 고 홍길동 (the late) begin a sentence
ASKED_GOES_ON = (
    r"\s*(?:하[고며는더자였니면시여길]|했[다던더으지고는습]|한다[고며는]|싶[었은다]|또는 |및 |등[의을이에]?\s"
    r"|[고며는가를을의에]\s)"
)
# and after a bare ending: 하겠다 생각했다, 했지 않습니까, 않았다 합니다
BARE_GOES_ON = (
    r"\s*(?:생각|느[낌끼꼈]|싶|말[하했이]|해도|치더라도|쳐도|보니|보면|만\s|않[았습는을으고다]|못[했하]"
    r"|합니다|한다|했|하[네던려]|판단|고민|묻|물[어으었])"
)
# 갔다 왔음, 들었다 놨다: there and back again, one predicate
BACK_AGAIN = (
    r"(?<=[갔왔렀었섰썼켰났탔]다)\s"
    r"(?:왔|오[고면는니자던지]|와[서야도]|올\s|갔|놨|놓|껐|지웠|말았|(?:들어|내려|올라)[갔왔]|나[갔왔])"
)
# 해야 한다. 보다: "than that one must", where no adverb (보다 나은, "better") follows
RATHER = (
    r"(?:(?<=야한다\.)|(?<=야 한다\.)) ?보다(?:는|도)?\s"
    r"(?!더|나[은아]|[가-힣]{1,4}(?:게|적|한|히|인|운|된|른)[\s으이인]|[가-힣]{1,3}[은큰높낮넓깊]\s)"
)
# the first letters of all three save time
HOLDS = (
    r"(?=\s*+[이라란하고며는했한싶또및등가를을의에보,)였입면로와과중])"
    rf"(?:(?={GOES_ON})|(?<![^.]\.)(?={ASKED_GOES_ON})|(?<=한다\.)(?={RATHER})"
    r"|(?<=[.!?…][\"'”’])(?=\s(?:였|이[다었며]|입니다|라[는고]?\s|며|면서|[로와과]\s|에서\s|한다|중 하나)))"
)
# Each alternative first looks at the character just read: one set of them lets the search skip the rest of the text at
# table speed. The last closed group names the kind of candidate; "held": the sentence continues.
CANDIDATE = re.compile(
    rf"[\n{STOPS}{LAST_SYLLABLES}{FACES}]"
    rf"(?:(?![가-힣])(?<=[가-힣]){ENDING}{TAIL}{CLOSERS}{SHORT_NOTE}(?=\s)(?!(?<=[다요죠까]) [.!?]++[가-힣])"
    rf"(?:(?:(?<![.!?…])(?={BARE_GOES_ON}|{BACK_AGAIN})|(?<=냐)(?=\s(?:\S{{1,9}}\s)?\S{{0,9}}냐)|{HOLDS})(?P<bare_held>)|(?P<ending>))"
    rf"|(?<![가-힣])(?:(?<=\n)(?P<line>)|(?:"
    rf"(?<=[{STOPS}])(?<![{STOPS}]{{2}})"
    rf"(?:[{STOPS}]*+{CLOSERS}{FOOTNOTES}{TAIL}{CLOSERS}{SHORT_NOTE}(?=\s|$)(?P<stop>)"
    rf"|(?:(?<=[다요죠까][.!?])[.!?]*+{CLOSERS}{FOOTNOTES}(?=[가-힣“‘\"'\d])"
    r"|(?<=[다요죠까] [.!?])[.!?]*+(?=[가-힣]))(?P<glued>)"
    rf"|(?<=(?<!\S)[1-9]\.)(?=[가-힣])(?P<item>))"
    rf"|(?<=[{FACES}])"
    rf"(?:(?:(?<=[요죠][\^{EMOJI}])|(?<=[{BEFORE_YO}]요[~∼])|(?<=죠[~∼]))[~∼\^{EMOJI}]*+(?=[가-힣])(?P<face>)"
    rf"|(?<![{FACES}]{{2}}){SOFT_ENDING}[{FACES}]*+[.!?…~]*+{CLOSERS}{SHORT_NOTE}(?=\s)(?P<soft>)"
    rf"|(?<=[{LAUGHS}])(?<![{LAUGHS}]{{2}})[{LAUGHS}]++[.!?~]*+(?=\s)(?P<laugh>)))"
    rf"(?:{HOLDS}(?P<held>))?))"
)
KINDS = CANDIDATE.groupindex
LINE, STOP, GLUED, ITEM, BARE = (KINDS[name] for name in ("line", "stop", "glued", "item", "ending"))
HELD, WEIGHED = frozenset((KINDS["held"], KINDS["bare_held"])), frozenset((STOP, ITEM))
TOGETHER = re.compile(
    r"“[^“”\n]{0,400}”|‘[^‘’\n]{0,400}’|「[^「」\n]{0,400}」|『[^『』\n]{0,400}』|《[^《》\n]{0,200}》|〈[^〈〉\n]{0,200}〉"
    r"|\([^()\n]{0,400}\)|\[[^\[\]\n]{0,400}\]|<[^<>\n]{0,200}>"
    r"|\"[^\"\n]{0,400}\"|'(?<![0-9A-Za-z가-힣]')[^'\n]{0,200}'(?![A-Za-z])"
)
# dots after these end a sentence; after 음 and 어 too, except as hesitation
FINAL_SYLLABLES = frozenset("다요죠까네지임함됨쥬듯라야군나래냐자마니용당삼셈ㅋㅎㅠㅜ")
# after dots, these words start a new sentence
BEGINS = re.compile(r"\s*(?:근데|그런데|그래서|그리고|그래도|그러나|하지만|아무튼|암튼|솔직히|다만|게다가|왜냐)")
LATIN_SHORT = re.compile(
    r"(?:^|[^A-Za-z])(?:[A-Z]|Mrs?|Ms|[DJS]r|[MS]t|Prof|Gen|Capt|Col|Lt|Sgt|No|Op|vs|[Vv]ol|[Vv]er|[Ff]eat|[Ff]igs?|[Ee]ds?|Co|Inc"
    r"|Ltd|Univ|pp?|etc|al|e\.g|i\.e|cf|approx|[ap]\.m|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)$"
)
# 가. 나. 다.: letters of a list; dots after such openings are a pause
LETTER_ITEM = frozenset("가나다라마바사아자차카타파하")
PAUSE = re.compile(r"(?:^|\s)(?:사실은?|실은|저는|나는|[전난]|우리는|그[건게]|글쎄요?|[음어저]|그러니까|뭐랄까)$")
LOOK_BACK = 8
URL = re.compile(r"://\S*$")
URL_LOOK_BACK = 200
WORD = re.compile(r"[^\W_ㄱ-ㆎ]")  # excludes ㅋㅋ, ㅠㅠ, ㄷㄷ
ITEM_NUMBER = re.compile(r"(?<!\S)[1-9][0-9]?$")
ITEM_TEXT = re.compile(r" ?[^\s\d]")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text in order, stripped and not empty; every line end is a boundary.

    Joined, they equal the text without white space. Parts without a letter or digit (punctuation, emoji, ㅋㅋ) join a
    sentence of their line; a line of such parts only is a sentence.
    """
    ends, item = [0], (0, 0)  # item: line of the current list and number of its last item
    start = searched = line_start = 0  # searched: no word of the sentence before this position
    spans = chain((match.span() for match in TOGETHER.finditer(text)), repeat((sys.maxsize, sys.maxsize)))
    opens, closes = next(spans)
    for match in CANDIDATE.finditer(text):
        kind = match.lastindex
        here, end = match.span()
        if kind == LINE:
            if end == start + 1:  # after a full stop
                ends[-1] = end
                start = searched = line_start = end
                continue
        else:
            if kind in HELD:
                continue
            while closes <= here:
                opens, closes = next(spans)
            if here >= opens and not _ends_span(text, start, end, opens, closes):
                continue
            if kind == GLUED and URL.search(text, max(start, here - URL_LOOK_BACK), here):
                continue
            if kind in WEIGHED and here and (here - start < 3 or text[here - 1] not in FINAL_SYLLABLES):
                end, item = _weigh(text, match, start, line_start, item)
                if not end:
                    continue
        if kind == BARE or (kind == LINE and start == line_start) or WORD.search(text, searched, end):
            ends.append(end)
        elif start > line_start:
            ends[-1] = end
        else:
            searched = end
            continue
        start = searched = end
        if kind == LINE:
            line_start = end
    if start == line_start or WORD.search(text, searched):
        ends.append(len(text))
    ends[-1] = len(text)
    return [sentence for start, end in pairwise(ends) if (sentence := text[start:end].strip())]


def _ends_span(text: str, start: int, end: int, opens: int, closes: int) -> bool:
    """Whether a candidate inside a span also ends the span, and the span is a quotation or the whole sentence."""
    is_whole = opens - start <= LOOK_BACK and not text[start:opens].strip()
    return closes <= end and (is_whole or text[opens] in "“‘\"'")


def _weigh(
    text: str, match: re.Match[str], start: int, line_start: int, item: tuple[int, int]
) -> tuple[int, tuple[int, int]]:
    """The end of the sentence at a stop (0: no end), and the list item after it.

    Inline lists such as ``1. 하나 2. 둘`` are split before the second and later numbers.
    """
    here, end = match.span()
    if match[0] == "." and here - start < 3 and text[start:here].strip() in LETTER_ITEM:
        return 0, item
    if text[here - 1] in FINAL_SYLLABLES:
        return end, item
    if match[0] == "." and text[here - 1].isdecimal():
        item_match = ITEM_NUMBER.search(text, max(start, here - 3), here)
        if item_match and ITEM_TEXT.match(text, end):
            number = int(item_match[0])
            if number == 1:
                return 0, (line_start, 1)
            return (item_match.start(), (line_start, number)) if item == (line_start, number - 1) else (0, item)
    is_end = match.lastindex == STOP and _is_full_stop(text, match[0], start, here, end)
    return end if is_end else 0, item


def _is_full_stop(text: str, mark: str, start: int, here: int, end: int) -> bool:
    """Whether the stop at ``here`` is a full stop, not part of a number, initial, abbreviation or pause."""
    before = text[here - 1]
    if mark[0] not in ".…" or "!" in mark or "?" in mark:
        return True
    if mark.startswith(("..", "…")):
        if before == " ":
            return here - start < 3  # right after a sentence, dots belong to it
        if before in "음어":
            return here - start > 1 and not text[here - 2].isspace()
        return BEGINS.match(text, end) is not None and not PAUSE.search(text[max(start, here - LOOK_BACK) : here])
    return not (before.isdigit() or LATIN_SHORT.search(text[max(start, here - LOOK_BACK) : here]))
