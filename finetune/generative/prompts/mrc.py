"""KLUE-MRC: the answer in the words of the passage, or "답 없음" (no answer).

Quotes and brackets may belong to an answer (‘사람인’ is a gold answer), so they are removed only as far as needed: of
the readings below, each shorter than the one before, the first one in the passage is taken. If the passage contains
none, the text itself is scored. An unparsed answer counts as a character that no answer has; "" would be right for
questions without an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from finetune.examples import Example
from finetune.generative.prompts.answers import any_of, bare, clean, corrected, lines_of, marked_answers, refuses
from finetune.generative.prompts.choices import asserted
from finetune.generative.prompts.prompt import TaskPrompt

MAX_CHARS = 300  # of a sentence that is searched for the end of an answer
NO_ANSWER = "답 없음"
UNREADABLE = "\ufffd"  # shares no character with any answer

_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: " ", 0xA0: " "}  # one character for one
_LEAD = rf"(?:{any_of('lead_ins')}[,:!.]?\s+)"
_PREFIX = re.compile(
    rf"[\[【(|\s]{{0,2}}{_LEAD}{{0,3}}(?:최종\s?|올바른\s?)?"
    r"(?:정답|답변|답안|답|결론|(?:the )?(?:final |correct )?answer)"
    r"(?:[\]】)]\s|\s?(?:\||→|->|-\s)|(?:은|는)(?=[\s\"'“‘「『《〈])|\s?(?:is\b:?)|[\"'”’]{0,3}\s?[:=])\s*",
    re.IGNORECASE,
)
_HEADING = re.compile(r"(?:최종\s?)?(?:정답|답변|답안|답|출력|결과|응답|answer|output)", re.IGNORECASE)
_LEAD_ONLY = re.compile(f"{_LEAD}{{1,3}}", re.IGNORECASE)
_COPULA = re.compile(
    rf"\s?(?:{any_of('copulas')}|(?:이요|요)|(?:인|일) (?:것|듯)(?:으로|이라고|이)?\s?{any_of('hedges')}?"
    rf"|(?:이?라고|으?로) {any_of('sayings')})(?:[.!~]|$).*$"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_CHATTER = re.compile(rf"[^.!?]{{0,60}}?{any_of('chatter')}[^.!?]*[.!?]?", re.IGNORECASE)
_ANNOUNCES = re.compile(r"다음과 같|아래와 같|\bhere(?: is|['’]s)\b", re.IGNORECASE)
_TOPIC = re.compile(r"[^.!?]{1,80}(?<!또)[은는]\s(?=\S)")
_MARKED = re.compile(r"\*\*([^*\n]{1,200})\*\*|[\"'“‘「『《〈`]([^\"'“”‘’「」『』《》〈〉`\n]{1,200})[\"'”’」』》〉`]")
_QUOTES = "\"'“”‘’`"
_PLACE = r"(?:(?:주어진|위|이)\s)?(?:지문|본문|글)(?:에|에는|에서|에서는|만으로는)\s"
_NONE = re.compile(
    rf"(?:(?:{_PLACE})?(?:질문(?:에\s대한|의)\s)?(?:(?:그런|해당|관련)\s)?(?:정?답|답변|해답|정보|내용)[이은는을를]?"
    rf"\s?(?:{_PLACE})?|{_PLACE})(?:(?:나와\s?있지|존재하지|적혀\s?있지|언급되지)\s않(?:음|습니다|는다|아요)"
    r"|(?:찾을\s수\s)?없(?:음|습니다|다|어요|네요))"
)
_NONE_ENGLISH = re.compile(r"(?:no answer|unanswerable|not answerable|n/a|null|none)", re.IGNORECASE)
_UNKNOWN = re.compile(r"알\s?수\s?없|모르겠|I don['’]t know", re.IGNORECASE)


def render_input(example: Example) -> str:
    """Passage and question."""
    return f"지문: {example.inputs['context']}\n질문: {example.inputs['question']}"


def render_gold(example: Example) -> str:
    """The first gold answer."""
    answers = example.gold["answers"]
    return str(answers[0]) if answers else NO_ANSWER


def parse(answer: str, example: Example) -> str | None:
    """The answer in the spelling of the passage if it has it; "" for "no answer"; None for nothing or a refusal."""
    rest = corrected(clean(answer))
    if rest and (correction := parse(rest, example)) and correction in example.inputs["context"]:
        return correction
    line = find_line(answer)
    if line is None:
        return None
    plain = "".join(lines_of(line))
    said = bare(_without_prefix(plain))
    context = example.inputs["context"]
    folded = context.translate(_WIDE)
    if says_none(said) and (said == NO_ANSWER or line not in folded):
        return ""
    for readings in (_whole_readings, _partial_readings):
        for reading in filter(None, readings(line, plain)):
            if (at := folded.find(reading)) >= 0:
                return str(context[at : at + len(reading)])
        if refuses(plain) or _UNKNOWN.search(plain):
            return None
    return _COPULA.sub("", said)


def find_line(answer: str) -> str | None:
    """The line with the answer: the one after "정답:" (on the same line or the next), else the first; None if there is
    no line, or if several answers differ."""
    text = clean(answer)
    if answers := marked_answers(text):
        return answers[-1].strip() or NO_ANSWER if len(set(answers)) == 1 else None
    first, marked, is_next = None, list[str](), False
    for line in text.split("\n"):
        plain = "".join(lines_of(line))
        for sentence in [plain] if _PREFIX.match(plain) else [plain, *_SENTENCE_END.split(plain)[1:]]:
            rest = bare(_without_prefix(sentence))
            if rest and not _CHATTER.fullmatch(rest) and (is_next or _PREFIX.match(sentence)):
                marked.append(line.strip() if sentence == plain else sentence)
                is_next = False
        if not plain:
            continue
        rest = bare(_without_prefix(plain))
        is_next = not rest or _HEADING.fullmatch(rest) is not None or _ANNOUNCES.search(rest) is not None
        is_chatter = all(map(_CHATTER.match, filter(None, _SENTENCE_END.split(plain))))
        first = first or (line.strip() if rest and not is_chatter else None)
    if len({_core(line) for line in marked}) > 1:
        return None
    return marked[0] if marked else first


def _core(line: str) -> str:
    """A line without what surrounds the answer, to compare answers."""
    return bare(_COPULA.sub("", _SENTENCE_END.split(_without_prefix("".join(lines_of(line))))[0]))


def says_none(said: str) -> bool:
    """Whether the text, or its first sentence, only says that there is no answer."""
    ends = (" (", ". ", ", ")
    heads = [bare(_COPULA.sub("", head)) for head in (said, *(said.partition(end)[0] for end in ends))]
    return _COPULA.sub("", said).endswith(f" {NO_ANSWER}") or any(
        head in (NO_ANSWER, "없음", "없습니다") or _NONE.fullmatch(head) or _NONE_ENGLISH.fullmatch(head)
        for head in heads
    )


def _without_prefix(plain: str) -> str:
    while prefix := _PREFIX.match(plain):
        plain = plain[prefix.end() :]
    return plain


def _whole_readings(line: str, plain: str) -> Iterator[str]:
    """The line itself; without Markdown, prefix, full stop, quotes, copula."""
    rest = _without_prefix(plain)
    yield from (line, plain)
    answer = _COPULA.sub("", rest)
    for text in (rest, answer):
        yield from (text, text.rstrip(" .!"), text.rstrip(" .!").strip(_QUOTES), bare(text))


def _partial_readings(line: str, plain: str) -> Iterator[str]:
    """The only part in bold or quotes; the text before a bracket; the first sentence."""
    marked = {bold or quoted for bold, quoted in _MARKED.findall(clean(line))}
    if len(marked) == 1:
        yield from (*marked, *map(bare, marked))
    for sentence in _main_sentences(plain):
        for end in (" (", ""):
            shorter = bare(sentence.partition(end)[0] if end in sentence and end else sentence)
            yield from (shorter, bare(_COPULA.sub("", shorter)))
        for said in asserted(sentence[:MAX_CHARS]):  # "X라고 판단했습니다", "X가 맞습니다"
            yield from (said, bare(said))
            if topic := _TOPIC.match(said):  # "그 사람은 김도윤입니다": what is said of the topic
                yield bare(said[topic.end() :])


def _main_sentences(plain: str) -> Iterator[str]:
    """The sentence of the conclusion, then the first one, with and without what leads to the answer."""
    sentences = [part for part in _SENTENCE_END.split(_without_prefix(plain)) if not _CHATTER.match(part)] or [plain]
    chosen = [sentence for sentence in sentences if _LEAD_ONLY.match(sentence)][-1:] + sentences[:1]
    for sentence in chosen:
        yield from (sentence, _without_prefix(_LEAD_ONLY.sub("", sentence, count=1)))


KLUE_MRC = TaskPrompt(
    task="klue-mrc",
    render_input=render_input,
    render_gold=render_gold,
    parse=parse,
    unparsed=lambda example: UNREADABLE,
    max_tokens=128,
    shot_class=lambda example: "answer" if example.gold["answers"] else "no answer",
)
