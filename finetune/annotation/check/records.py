"""Items of KLUE's JSON files, with their votes and offsets, and of tables (KoBEST, KorNLI, KorSTS, custom tasks)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from statistics import fmean, pstdev
from typing import Any, NamedTuple

from corpus.documents.atomic_files import parse_json
from finetune.annotation.check.items import Item, Problem
from finetune.annotation.check.tagged import check_spans, check_tags
from finetune.custom_config import CustomColumns
from finetune.data.custom_files import Record as Row
from finetune.data.custom_files import text_in
from finetune.tasks.nli.task import NLI_LABELS
from finetune.tasks.re.metrics import RE_LABELS
from finetune.tasks.sts.task import MAX_SIMILARITY, SIMILAR_FROM
from finetune.tasks.wos.reader import find_slot
from finetune.tasks.ynat.task import YNAT_LABELS

NUMBER_TOKEN = re.compile(r"[\d.,/%-]+")
MAX_STD, MIN_VOTES = 2.0, 5  # section 3.2.1 of the paper
PREMISE_CHARS = range(20, 91)  # section 3.3.1
Record = Mapping[str, Any]


def number_in(value: Any) -> float | None:
    """A value as a number; None if it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def list_in(value: Any) -> list[Any]:
    """A value if it is a list, otherwise an empty one."""
    return value if isinstance(value, list) else []


def read_record(record: Record, task: str, split: str) -> Item:
    """A record of KLUE's YNAT, STS, NLI or RE."""
    _, fields, key, check = RECORDS[task]
    texts, guid = {name: text_in(record.get(name)) for name in fields}, text_in(record.get("guid"))
    if key not in record:
        return Item(guid, split, texts)
    gold, problems = record[key], list(check(record))
    if not text_in(gold).strip():
        gold, problems = None, [*problems, ("empty", f"{key} is empty")]
    if task == "klue-sts":
        gold = number_in(gold.get("real-label")) if isinstance(gold, Mapping) else None
    spans = [_span(record, side) for side in ("subject_entity", "object_entity")] if task == "klue-re" else []
    cells = [(word, there) for _, _, word, there in spans]
    return Item(guid, split, texts, gold, problems, cells, tuple(str(span[:2]) for span in spans), record.get("author"))


def _span(record: Record, side: str) -> tuple[Any, Any, str, str]:
    """Start, end (exclusive), named and actual text of an entity; "" if it is outside the sentence."""
    entity = record.get(side)
    fields = entity if isinstance(entity, Mapping) else {}
    start, last, sentence = fields.get("start_idx"), fields.get("end_idx"), text_in(record.get("sentence"))
    if not (isinstance(start, int) and isinstance(last, int) and 0 <= start <= last < len(sentence)):
        return start, last, text_in(fields.get("word")), ""
    return start, last, text_in(fields.get("word")), sentence[start : last + 1]


def _check_relation(record: Record) -> Iterator[Problem]:
    for side in ("subject_entity", "object_entity"):
        start, last, word, there = _span(record, side)
        if not there or word != there:
            yield "offset", f"{side} is {word!r}, but characters {start!r} to {last!r} are {there!r}"
        elif word != word.strip():
            yield "tags", f"{side} {word!r} begins or ends with a space"
    yield from _check_label(RE_LABELS, record["label"])


def _check_label(labels: Sequence[str], label: Any) -> Iterator[Problem]:
    if text_in(label).strip() and label not in labels:
        yield "label", f"no label {label!r:.40}"


def _check_inference(record: Record) -> Iterator[Problem]:
    gold, premise = record["gold_label"], text_in(record.get("premise")).strip()
    yield from _check_label(NLI_LABELS, gold)
    if premise and len(premise) not in PREMISE_CHARS:
        yield "length", f"{len(premise)} characters: {premise:.40}"
    votes = [record[key] for key in ("author", "label2", "label3", "label4", "label5") if record.get(key)]
    if len(votes) == MIN_VOTES and 2 * votes.count(gold) <= len(votes):
        yield "votes", f"gold {gold}, but the votes are {', '.join(map(str, votes))}"
    if record.get("author") not in (None, gold):
        yield "author", f"gold {gold}, author {record['author']}"


def _check_similarity(record: Record) -> Iterator[Problem]:
    labels = record["labels"] if isinstance(record["labels"], Mapping) else {}
    real, annotations = number_in(labels.get("real-label")), record.get("annotations")
    if real is None or not 0 <= real <= MAX_SIMILARITY:
        yield "label", f"real-label is {labels.get('real-label')!r:.40}, not 0 to 5"
        return
    listed = list_in(annotations.get("annotations") if isinstance(annotations, Mapping) else None)
    votes = [vote for vote in map(number_in, listed) if vote is not None]
    rounded = number_in(labels.get("label"))
    if labels.get("binary-label") not in (None, int(real >= SIMILAR_FROM)) or abs((rounded or 0.0) - real) > 0.0501:
        yield "votes", f"label {rounded} or binary-label {labels.get('binary-label')}, but real-label {real:.2f}"
    if votes and abs(fmean(votes) - real) > 1e-6:
        yield "votes", f"real-label {real:.2f}, but the mean of the votes is {fmean(votes):.2f}"
    if votes and (len(votes) < MIN_VOTES or pstdev(votes) > MAX_STD):
        yield "votes", f"fewer than 5 votes, or a standard deviation above 2: {votes}"


class Layout(NamedTuple):
    """A task with one record per item: its kind, the fields of texts and label, and its own checks."""

    kind: str
    texts: tuple[str, ...]
    label: str
    check: Callable[[Record], Iterator[Problem]]


RECORDS: Mapping[str, Layout] = {
    "ynat": Layout("label", ("title",), "label", lambda record: _check_label(YNAT_LABELS, record["label"])),
    "klue-sts": Layout("similarity", ("sentence1", "sentence2"), "labels", _check_similarity),
    "klue-nli": Layout("pair", ("premise", "hypothesis"), "gold_label", _check_inference),
    "klue-re": Layout("relation", ("sentence",), "label", _check_relation),
}


def check_answers(
    context: str, answers: Sequence[str], starts: Sequence[Any]
) -> tuple[Any, list[Problem], list[tuple[str, str]]]:
    """Gold, problems and cells of answers in a passage; an offset of None: the answer must be somewhere."""
    problems, cells = list[Problem](), list[tuple[str, str]]()
    for answer, start in zip(answers, [*starts, *[None] * len(answers)], strict=False):
        place = int(text_in(start)) if text_in(start).isdecimal() else None
        if not answer.strip():
            problems.append(("empty", "an answer is empty"))
        elif start in (None, "") and answer not in context:
            problems.append(("offset", f"answer {answer!r:.60} is not in the passage"))
        elif start not in (None, "") and (place is None or not context.startswith(answer, place)):
            there = context[place : place + len(answer)] if place is not None else ""
            number = NUMBER_TOKEN.match(context, place) if place is not None else None
            cells.append((answer, number[0] if number else there))
            problems.append(("offset", f"answer {answer!r:.60}, but {there!r:.60} is at its offset {start!r:.20}"))
    return tuple(sorted(answers)), problems, cells


def read_question(question: Record, context: str, split: str) -> Item:
    """A question of KLUE-MRC, SQuAD or KorQuAD."""
    texts = {"question": text_in(question.get("question")), "context": context}
    guid, answers = text_in(question.get("guid", question.get("id"))), question.get("answers")
    if answers is None:
        return Item(guid, split, texts)
    answers = [answer for answer in list_in(answers) if isinstance(answer, Mapping)]
    starts = [answer.get("answer_start") for answer in answers]
    gold, problems, cells = check_answers(context, [text_in(answer.get("text")) for answer in answers], starts)
    if question.get("is_impossible") is not None and bool(question["is_impossible"]) == bool(answers):
        problems.append(("label", f"is_impossible is {question['is_impossible']}, but it has {len(answers)} answers"))
    return Item(guid, split, texts, gold, problems, cells)


def read_dialogue(record: Record, split: str) -> Item:
    """A dialogue of WoS."""
    turns = [turn for turn in list_in(record.get("dialogue")) if isinstance(turn, Mapping)]
    problems, states = list[Problem](), [turn["state"] for turn in turns if "state" in turn]
    for number, turn in enumerate(turns):
        if turn.get("role") != ("sys" if number % 2 else "user"):
            problems.append(("state", f"turn {number} is of {turn.get('role')!r}; user and sys take turns"))
        if not text_in(turn.get("text")).strip():
            problems.append(("empty", f"turn {number} is empty"))
        slots = [(entry, find_slot(entry)) for entry in list_in(turn.get("state"))]
        problems += [("state", f"turn {number}: {entry!r:.60} has no known slot") for entry, slot in slots if not slot]
        counts = Counter(slot[0] for _, slot in slots if slot)
        problems += [("state", f"turn {number}: two values of {name}") for name, count in counts.items() if count > 1]
    texts = {"dialogue": "\n".join(text_in(turn.get("text")) for turn in turns)}
    return Item(text_in(record.get("guid")), split, texts, states or None, problems)


def read_row(columns: CustomColumns, record: Row, split: str) -> Item:
    """The item of a row of a table."""
    values, key = record.values, columns.gold_field
    names = (*columns.text_fields, *(columns.choices or ()))
    if columns.kind == "span":
        names = (columns.question or "", columns.context or "")
    elif columns.kind == "tagging" and not columns.has_spans:
        names = (columns.tokens or "",)
    texts = {name: text_in(values.get(name)) for name in names}
    item = Item(text_in(values.get(columns.guid or "")) or str(record.line), split, texts)
    if key not in values:
        return item
    value, problems = _parsed(values[key]), list[Problem]()
    if columns.kind == "span":
        return _read_answer(item, texts[names[1]], value, values.get("start", values.get("answer_start")))
    if columns.kind == "tagging" and columns.has_spans:
        gold, problems = check_spans(texts[names[0]], value)
        return item._replace(gold=gold, problems=problems)
    if columns.kind == "tagging":
        return _read_tokens(item._replace(texts={}), names[0], _parsed(values.get(names[0])), value)
    if columns.choices and len({texts[name] for name in columns.choices}) < len(columns.choices):
        problems.append(("label", "two choices are equal"))
    label = text_in(values[key]).strip()
    if not label:
        return item._replace(problems=[*problems, ("empty", f"{key} is empty")])
    if columns.kind != "similarity":
        return item._replace(gold=label, problems=problems)
    score = number_in(label)
    return item._replace(gold=score, problems=[] if score is not None else [("label", f"{label:.40} is no number")])


def _parsed(value: Any) -> Any:
    """A cell that holds a JSON list or object, parsed."""
    with suppress(ValueError):
        return parse_json(value) if isinstance(value, str) and value[:1] in "[{" and value else value
    return value


def _read_tokens(item: Item, name: str, tokens: Any, tags: Any) -> Item:
    words, gold = (part.split() if isinstance(part, str) else [*map(str, list_in(part))] for part in (tokens, tags))
    problems = list(check_tags(gold))
    if len(words) != len(gold):
        problems.append(("tags", f"{len(words)} tokens, but {len(gold)} tags"))
    return item._replace(texts={name: " ".join(words)}, gold=tuple(gold), problems=problems)


def _read_answer(item: Item, passage: str, value: Any, starts: Any) -> Item:
    if isinstance(value, Mapping):  # as the Hub has SQuAD
        value, starts = value.get("text"), value.get("answer_start")
    answers = [*map(text_in, value)] if isinstance(value, list) else [text_in(value)] if value not in ("", None) else []
    gold, problems, cells = check_answers(passage, answers, starts if isinstance(starts, list) else [starts])
    return item._replace(gold=gold, problems=problems, cells=cells)
