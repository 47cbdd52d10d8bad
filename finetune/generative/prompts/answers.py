"""From the text that a model wrote to the text of its answer: the first steps of every reader.

```
raw ─ clean: without thoughts and special tokens ─▶ text ─ stated: JSON, <answer>, \\boxed, heading, "정답은" ─▶ answers
```
Answers come in Markdown, in quotes, in JSON, in full-width or decomposed letters, after reasoning. What a model marks
as its answer comes before everything else it writes. All rules take time linear in the length of the answer.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

MAX_CHARS = 20_000  # of an answer; the rest is ignored
MAX_JSON_STARTS = 20
Outcome = Literal["parsed", "empty", "refused", "unread"]


@cache
def read_endings() -> Mapping[str, Sequence[str]]:
    """Words and endings of answers by name, from ``endings.yaml``."""
    endings: dict[str, list[str]] = yaml.safe_load(Path(__file__).with_name("endings.yaml").read_text("utf-8"))
    return endings


def any_of(name: str) -> str:
    """A group of a regular expression that matches any of these endings, longer ones first."""
    return f"(?:{'|'.join(sorted(read_endings()[name], key=len, reverse=True))})"


_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: " ", 0xA0: " ", 0x200B: "", 0xFEFF: ""}
_QUOTES = "\"'`“”‘’„«»「」『』《》〈〉<>[]【】()"
_EDGES = _QUOTES + "|*_~#:.,;!。、 \t"
_EMOJI = re.compile(r"^[\U0001F000-\U0001FAFF\u2600-\u27BF\uFE0F\s]+|[\U0001F000-\U0001FAFF\u2600-\u27BF\uFE0F\s]+$")
_FENCE = re.compile(r"^\s*(?:```|~~~).*$")
_BULLET = re.compile(
    r"^\s*(?:>\s*)*(?:(?:[-*+•·▪◦‣→⇒]|[=-]>|[\u2600-\u27BF\U0001F000-\U0001FAFF])\uFE0F?\s+|\(?\d{1,3}[.)]\s+|#{1,6}\s+|[①-⑳]\s*)?"
)

# --- chat templates

_THOUGHT = r"(?:think|thinking|thought|thoughts|reasoning|scratchpad)"
_THOUGHT_ENDS = re.compile(rf"</{_THOUGHT}>|◁/think▷|<\|channel\|>final<\|message\|>")
_THOUGHT_BEGINS = re.compile(rf"<{_THOUGHT}>|◁think▷|<\|channel\|>analysis<\|message\|>")
_LEADING_ROLE = re.compile(rf"\s*{any_of('roles')}", re.IGNORECASE)
_TURN_ENDS = re.compile(any_of("turn_ends"), re.IGNORECASE)

_TWO_ANSWERS = re.compile(any_of("two_answers"), re.IGNORECASE)
_CALLED_WRONG = re.compile(any_of("called_wrong"))
_CORRECTS = re.compile(rf"{any_of('corrections')}\s?[.!:,]?\s", re.IGNORECASE)
_DENIES = re.compile(r"[.!…]\s{1,3}아니(?:요|오|다|에요)?[,.]\s")  # no answer to the question, but to what was said
_JSON_START = re.compile(r"[\[{]")
_RULE = re.compile(r"[\s|:=*_~#.-]+")  # a line that draws a rule

# --- marked answers

_TAG = re.compile(r"<(answer|final_answer|final|정답|답|답변|output|result|label)>", re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\s?\{((?:[^{}]|\{[^{}]*\})*)\}")
_LATEX = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s?\{([^{}]*)\}")
_LEAD = rf"(?:{any_of('answer_lead_ins')}[,:!.]?\s+){{0,3}}"
_NAME = rf"(?:최종\s?|올바른\s?|가장 적절한\s?)?{any_of('answer_names')}"
_SIGN = r"(?:[\]】)>]\s|은|는|\||:|=|->|→|⇒|입니다:|이|\s(?:is|would be|should be)\b:?)"
PREFIX = re.compile(rf"{_NAME}[\"'”’`*_\s]*{_SIGN}\s*", re.IGNORECASE)
HEADING = re.compile(
    rf"{_LEAD}{_NAME}\s?[:.]?\s?[|>]?"
    r"|.{0,60}?(?:다음과 같습니다|아래와 같습니다|here(?: is|['’]s) (?:the|my) answer)[.:]?",
    re.IGNORECASE,
)

_REFUSED = re.compile(any_of("refusals"), re.IGNORECASE)
_UNSURE = re.compile(any_of("doubts"), re.IGNORECASE)


def clean(answer: str) -> str:
    """Normalize to NFC, half-width characters and ``\\n``; remove thoughts, special tokens and further turns.

    An answer that was cut off while thinking is empty.
    """
    text = unicodedata.normalize("NFC", answer[:MAX_CHARS]).translate(_WIDE).replace("\r\n", "\n").replace("\r", "\n")
    for end in [*_THOUGHT_ENDS.finditer(text)][-1:]:
        text = text[end.end() :]
    if begin := _THOUGHT_BEGINS.search(text):
        text = text[: begin.start()]
    while role := _LEADING_ROLE.match(text):
        text = text[role.end() :]
    for end in _TURN_ENDS.finditer(text):
        if text[: end.start()].strip():
            return text[: end.start()]
    return _TURN_ENDS.sub("", text)


def lines_of(answer: str) -> list[str]:
    """The non-empty cleaned lines, without code fences, bullets, numbers and bold marks."""
    lines = (line for line in clean(answer).split("\n") if not _FENCE.match(line) and not _RULE.fullmatch(line))
    return [line for line in (undecorate(line) for line in lines) if line]


def undecorate(line: str) -> str:
    """A line without its bullet or heading and without marks of bold and code."""
    return _BULLET.sub("", line, count=1).replace("**", "").replace("__", "").replace("`", "").strip()


def bare(text: str) -> str:
    """The text without surrounding quotes, brackets, punctuation, emoji and white space."""
    return _EMOJI.sub("", text.strip(_EDGES)).strip(_EDGES)


def corrected(text: str, *, has_replies: bool = False) -> str:
    """What follows the last correction, "정정합니다." (I correct myself); "" without one. With ``has_replies``, 아니요
    (no) is an answer to the question, and no correction."""
    matches = [*_CORRECTS.finditer(text)][-1:] or ([] if has_replies else [*_DENIES.finditer(text)][-1:])
    return text[matches[0].end() :] if matches else ""


def refuses(answer: str) -> bool:
    """Whether the model states that it cannot or will not answer."""
    return _REFUSED.search(answer) is not None


def doubts(answer: str) -> bool:
    """Whether the model states that it does not know; words that it mentions are then no answer."""
    return _UNSURE.search(answer) is not None


def outcome(answer: str | None, *, is_parsed: bool) -> Outcome:
    """Why an answer counts as it does: "empty" (also while thinking), "refused", "unread", else "parsed"."""
    text = clean(answer or "")
    if is_parsed or not text.strip():
        return "parsed" if is_parsed else "empty"
    return "refused" if refuses(text) else "unread"


def stated(text: str) -> list[str]:
    """What a cleaned text marks as its answer, by the first of these marks that it has; [] if it has none.

    JSON with an answer; ``<answer>``; ``\\boxed``; text below a heading, and after "정답은" up to the end of its line.
    """
    return marked_answers(text) or [*_below_headings(text), *after_prefixes(text)]


def answer_text(answer: str) -> str:
    """The cleaned answer of a task with several lines: JSON as lines, else the content of ``<answer>``, else all.

    "" for two answers ("또는") and for one that is called wrong.
    """
    text = clean(answer)
    if _TWO_ANSWERS.search(text) or _CALLED_WRONG.search(text):
        return ""
    value = read_json_answer(text)
    if value is not None:
        return "\n".join(as_lines(value)) or ("없음" if isinstance(value, list | dict) else "")
    return (_tagged(text) or [text])[-1]


def marked_answers(text: str) -> list[str]:
    """The answer in JSON, or in ``<answer>``, or in ``\\boxed``; [] without such marks."""
    value = read_json_answer(text)
    if value is not None:
        lines = as_lines(value)
        return lines if lines and isinstance(value, list | dict) else ["\n".join(lines)]
    if tagged := [inner.strip() for inner in _tagged(text)]:
        return tagged
    return [_LATEX.sub(r"\1", inner).strip() for inner in _BOXED.findall(text)]


def _tagged(text: str) -> list[str]:
    """What is between ``<answer>`` and ``</answer>``; up to the first tag that is not closed."""
    contents, at = list[str](), 0
    while begin := _TAG.search(text, at):
        end = re.compile(f"</{begin[1]}>", re.IGNORECASE).search(text, begin.end())
        if end is None:
            break
        contents.append(text[begin.end() : end.start()])
        at = end.end()
    return contents


def _below_headings(text: str) -> Iterator[str]:
    """The next line after a line such as "### 정답"."""
    is_next = False
    for line in lines_of(text):
        if is_next:
            yield line
        is_next = HEADING.fullmatch(bare(line)) is not None


def after_prefixes(text: str) -> list[str]:
    """The text after each "답:" up to the end of its line."""
    plain = [undecorate(line) for line in text.split("\n")]
    return [part for line in plain for part in PREFIX.split(line)[1:] if bare(part)]


# --- JSON


def read_json_answer(text: str) -> Any | None:
    """The value of the JSON object or list of a text, or that under its key "answer" and the like; None if there is
    none. Of several, objects with fields such as "text" and "type" are one list, different answers are all answers of
    a list, and otherwise the last one counts."""
    decoder, at, values = json.JSONDecoder(), 0, list[Any]()
    failed = 0
    while failed < MAX_JSON_STARTS and (start := _JSON_START.search(text, at)):
        try:
            value, at = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at, failed = start.end(), failed + 1
            continue
        if isinstance(value, dict) or (isinstance(value, list) and (not value or not isinstance(value[0], int))):
            values.append(value)
    if len(values) > 1 and all(isinstance(value, dict) and _is_record(value) for value in values):
        return values
    answers = list(map(_answer_in, values))
    scalars = [a for a, v in zip(answers, values, strict=True) if a is not v and isinstance(a, str | int | float)]
    return scalars if len(set(scalars)) > 1 else answers[-1] if answers else None


def _answer_in(value: Any) -> Any:
    """Follow the keys that name an answer."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and not _is_record(value[0]):
        value = value[0]
    while isinstance(value, dict):
        by_name = {str(key).strip().casefold(): key for key in value}
        key = next((by_name[name] for name in read_endings()["field_names"] if name in by_name), None)
        if key is None or _rows_in(value) or len(by_name.keys() & {"text", "type", "head", "entity"}) > 1:
            break
        value = value[key]
    return "" if value is None else value


def as_lines(value: Any) -> list[str]:
    """A JSON value as lines of text.

    >>> as_lines({"윤슬": "사람"}), as_lines([{"text": "윤슬", "type": "사람"}]), as_lines({"1": [3, "NP"]})
    (['윤슬: 사람'], ['윤슬: 사람'], ['1: 3 NP'])
    """
    if isinstance(value, Mapping):
        if rows := _rows_in(value):
            return list(map(_joined, rows))
        if _is_record(value):
            is_slot = [*value] in (["domain", "slot", "value"], ["영역", "슬롯", "값"])
            return [_joined([part for part in value.values() if part is not None], is_slot=is_slot)]
        return [line for key, inner in value.items() for line in _under(str(key), inner)]
    if isinstance(value, list):
        if value and all(isinstance(part, str | int) for part in value) and any(isinstance(p, int) for p in value):
            return [_joined(value)]
        if value and all(isinstance(part, list) for part in value):
            return [_joined(part) for part in value if part]
        return [line for inner in value for line in as_lines(inner)]
    return [] if value is None else str(value).split("\n")


def _under(key: str, value: Any) -> list[str]:
    """The lines of a key: "key: value", or "key-inner: value" for an object below it."""
    if isinstance(value, Mapping) and not _is_record(value):
        return [f"{key}-{line}" for line in as_lines(value)]
    if isinstance(value, list) and not any(isinstance(part, int) for part in value):
        return [f"{key}: {line}" for inner in value for line in as_lines(inner)]
    if isinstance(value, Mapping | list):
        parts = list(value.values()) if isinstance(value, Mapping) else value
        return [f"{key}: {' '.join(map(str, parts))}"]
    return [f"{key}: {value}"] if value is not None else []


def _rows_in(value: Mapping[str, Any]) -> list[list[Any]]:
    """The rows of an object of columns, such as {"heads": [2, 0], "relations": ["NP", "VP"]}; [] for others."""
    columns = list(value.values())
    if not _is_record(value) or not all(isinstance(c, list) and len(c) == len(columns[0]) for c in columns):
        return []
    return [list(row) for row in zip(*columns, strict=True)]


def _is_record(value: Mapping[str, Any]) -> bool:
    """Whether the keys are names of fields, such as "text" and "type", not content."""
    fields = set(read_endings()["record_fields"])
    names = {str(key).strip().casefold() for key in value}
    return len(value) > 1 and all({name, name.removesuffix("s")} & fields for name in names)


def _joined(parts: list[Any], *, is_slot: bool = False) -> str:
    first, *rest = map(str, parts)
    if is_slot and len(rest) == 2:
        return f"{first}-{rest[0]}: {rest[1]}"
    return f"{first}: {' '.join(rest)}" if rest else first
