"""Items of records with named fields: official JSON files of KLUE, and tables of any benchmark.

The columns of a table are found by their names: KoBEST, KorNLI, KorSTS, NSMC and the columns of custom tasks; other
tables have their texts in the columns with Hangul.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from corpus.documents.errors import BadInput
from finetune.annotation.check.items import Item, Problem
from finetune.annotation.check.tagged import check_spans, check_token_row
from finetune.data.custom_files import Record
from finetune.tasks.nli.task import NLI_LABELS
from finetune.tasks.re.metrics import RE_LABELS
from finetune.tasks.sts.task import MAX_SIMILARITY, SIMILAR_FROM
from finetune.tasks.wos.ontology import Ontology, find_slot, squeeze
from finetune.tasks.ynat.task import YNAT_LABELS

GUIDS = ("guid", "id", "idx", "index", "no")
GOLDS = ("gold_label", "label", "labels", "tags", "ner_tags", "spans", "answer", "answers", "score", "similarity")
TEXTS = (
    "title", "text", "sentence", "document", "review", "comment", "premise", "sentence1", "context", "passage",
    "question", "query", "hypothesis", "sentence2", "target",
)  # fmt: skip
CHOICE = re.compile(r"(?:choice|option|ending|answer)?[ _]?\d", re.IGNORECASE)
HANGUL = re.compile("[가-힣]")
NUMBER_TOKEN = re.compile(r"[\d.,/%-]+")
MAX_CLASSES, MAX_STD, MIN_VOTES = 10, 2.0, 5  # more numbers than this are no classes; section 3.2.1 of the paper
PREMISE_CHARS = range(20, 91)  # section 3.3.1


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a table by their role; ``kind`` as of a custom task."""

    kind: str
    texts: tuple[str, ...]
    gold: str | None
    guid: str | None
    choices: tuple[str, ...] = ()

    def as_custom(self) -> dict[str, Any]:
        """The same as keys of ``finetune.custom``."""
        names: dict[str, Any] = {"kind": self.kind, "guid": self.guid}
        if self.kind == "tagging":
            return names | ({"text": self.texts[0], "spans": self.gold} if self.gold == "spans" else {"tokens": self.texts[0], "tags": self.gold})
        if self.kind == "span":
            return names | {"context": self.texts[0], "question": self.texts[1], "answer": self.gold}
        texts = self.texts[-2:] if self.kind in ("pair", "similarity") else self.texts[:2]
        more = {"choices": self.choices} if self.choices else {}
        return names | more | {"text": texts if len(texts) > 1 else texts[0], "label": self.gold}


def find_columns(records: Sequence[Record], path: Path) -> Columns:
    """The columns of a table; ``BadInput`` if it has no texts."""
    names = {name.lower(): name for name in dict.fromkeys(key for r in records[:100] for key in r.values)}
    guid = next((names[key] for key in GUIDS if key in names), None)
    gold = next((names[key] for key in GOLDS if key in names), None)
    if "tokens" in names or "words" in names:
        tokens = names.get("tokens") or names["words"]
        return Columns("tagging", (tokens,), gold, guid)
    choices = tuple(name for name in names.values() if CHOICE.fullmatch(name) and name != guid)
    texts = tuple(name for name in names.values() if name.lower() in TEXTS)
    if not texts:
        others = [name for name in names.values() if name not in (guid, gold, *choices)]
        texts = tuple(name for name in others if _share(records, name, HANGUL.search) >= 0.5)
    if not texts:
        raise BadInput(f"{path}: no column of texts found among {', '.join(names.values())}; name one text or sentence1")
    if len(choices) > 1:
        return Columns("choice", texts, gold, guid, choices)
    if gold and gold.lower() == "spans":
        return Columns("tagging", texts[:1], gold, guid)
    if gold and gold.lower().startswith("answer") and (span := _span_columns(records, names, gold)):
        return Columns("span", span, gold, guid)
    if len(texts) == 1:
        return Columns("label", texts, gold, guid)
    return Columns("similarity" if gold and _are_scores(records, gold) else "pair", texts, gold, guid)


def _share(records: Sequence[Record], column: str, test: Callable[[str], Any]) -> float:
    return fmean(bool(test(str(record.values.get(column) or ""))) for record in records)


def _span_columns(records: Sequence[Record], names: Mapping[str, str], gold: str) -> tuple[str, str] | None:
    """Context and question, if answers are parts of the context."""
    context = next((names[key] for key in ("context", "passage", "text") if key in names), None)
    if context is None or "question" not in names:
        return None
    labelled = [r for r in records if r.values.get(gold) not in ("", None, [])]
    inside = [any(text in str(r.values.get(context)) for text in _answers(r.values[gold])) for r in labelled]
    is_text = not all(text.isdecimal() and len(text) == 1 for r in labelled for text in _answers(r.values[gold]))
    return (context, names["question"]) if is_text and 2 * sum(inside) > len(labelled) else None


def _answers(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        value = value.get("text")
    return [str(part) for part in value] if isinstance(value, list) else [str(value)] if value not in ("", None) else []


def _are_scores(records: Sequence[Record], column: str) -> bool:
    """Whether most values are numbers, of more kinds than classes have."""
    values = Counter(str(record.values.get(column)) for record in records)
    numbers = sum(count for value, count in values.items() if re.fullmatch(r"-?\d{1,3}(?:\.\d{1,20})?", value))
    return 2 * numbers > len(records) and len(values) > MAX_CLASSES


def table_item(columns: Columns, record: Record, split: str, number: int) -> Item:
    """A row of a table."""
    values = record.values
    guid = str(values[columns.guid]) if columns.guid and values.get(columns.guid) not in ("", None) else str(number)
    names = (*columns.texts, *columns.choices)
    texts = {name: _text(values.get(name)) for name in names}
    problems, cells, exact = list[Problem](), list[tuple[str, str]](), tuple[Any, ...]()
    gold: Any = None
    if columns.gold is not None and columns.gold in values:
        value = values[columns.gold]
        if columns.kind == "tagging" and columns.gold.lower() == "spans":
            gold, problems = check_spans(texts[columns.texts[0]], value)
        elif columns.kind == "tagging":
            texts[columns.texts[0]], gold, problems = check_token_row(record, columns.texts[0], columns.gold)
        elif columns.kind == "span":
            starts = values.get("start", values.get("answer_start"))
            starts = value.get("answer_start") if isinstance(value, Mapping) else starts
            gold, problems, cells = check_answers(texts[columns.texts[0]], _answers(value), starts)
        elif not _text(value).strip():
            problems.append(("empty", f"{columns.gold} is empty"))
        else:
            gold = _number(value) if columns.kind == "similarity" else _text(value).strip()
            if gold is None:
                problems.append(("label", f"{columns.gold} is {value!r:.40}, not a number"))
    if columns.choices and len({texts[name] for name in columns.choices}) < len(columns.choices):
        problems.append(("label", "two choices are equal"))
    return Item(guid, split, texts, gold, exact, problems, cells)


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def check_answers(context: str, answers: Sequence[str], starts: Any) -> tuple[Any, list[Problem], list[tuple[str, str]]]:
    """Gold, problems and cells of answers in a passage; ``starts``: their offsets, None if there are none."""
    problems, cells = list[Problem](), list[tuple[str, str]]()
    places = starts if isinstance(starts, list) else [starts] * len(answers)
    for answer, start in zip(answers, [*places, *[None] * len(answers)], strict=False):
        place = int(start) if isinstance(start, int) or (isinstance(start, str) and start.isdecimal()) else None
        if not answer.strip():
            problems.append(("empty", "an answer is empty"))
        elif place is None and answer not in context:
            problems.append(("offset", f"answer {answer!r:.60} is not in the passage"))
        elif place is not None and not context.startswith(answer, place):
            there = context[place : place + len(answer)] if 0 <= place else ""
            number = NUMBER_TOKEN.match(context, max(place, 0))
            cells.append((answer, number[0] if number else there))
            problems.append(("offset", f"answer {answer!r:.60}, but {there!r:.60} is at its offset {place}"))
    return tuple(sorted(answers)), problems, cells


def read_question(question: Mapping[str, Any], context: str, split: str) -> Item:
    """A question of KLUE-MRC, SQuAD or KorQuAD."""
    texts = {"question": _text(question.get("question")), "context": context}
    guid = _text(question.get("guid", question.get("id")))
    answers = question.get("answers")
    if answers is None:
        return Item(guid, split, texts)
    found = [answer for answer in answers if isinstance(answer, Mapping)]
    starts = [answer.get("answer_start") for answer in found]
    gold, problems, cells = check_answers(context, [_text(answer.get("text")) for answer in found], starts)
    if question.get("is_impossible") is not None and bool(question["is_impossible"]) == bool(found):
        problems.append(("label", f"is_impossible is {question['is_impossible']}, but it has {len(found)} answers"))
    return Item(guid, split, texts, gold, (), problems, cells)


def read_record(task: str, record: Mapping[str, Any], split: str) -> Item:
    """A record of KLUE's YNAT, STS, NLI or RE."""
    fields, key, check = RECORDS[task]
    texts = {name: _text(record.get(name)) for name in fields}
    if key not in record:
        return Item(_text(record.get("guid")), split, texts)
    gold = record[key]
    problems = list(check(record, texts))
    if gold is None or gold == "" or (isinstance(gold, str) and not gold.strip()):
        problems, gold = [*problems, ("empty", f"{key} is empty")], None
    if task == "klue-sts":
        gold = _number(gold.get("real-label")) if isinstance(gold, Mapping) else None
    exact = tuple(_span(record, side) for side in ("subject_entity", "object_entity")) if task == "klue-re" else ()
    cells = [(word, there) for _, _, word, there in exact if word != there]
    about = {name: record[name] for name in ("author", "source", "genre") if record.get(name)}
    return Item(_text(record.get("guid")), split, texts, gold, tuple(span[:2] for span in exact), problems, cells, about)


def _span(record: Mapping[str, Any], side: str) -> tuple[Any, Any, str, str]:
    """Start, end (exclusive), named and actual text of an entity."""
    entity = record.get(side)
    found = entity if isinstance(entity, Mapping) else {}
    start, last, sentence = found.get("start_idx"), found.get("end_idx"), _text(record.get("sentence"))
    if not isinstance(start, int) or not isinstance(last, int) or not 0 <= start <= last < len(sentence):
        return start, last, _text(found.get("word")), ""
    return start, last + 1, _text(found.get("word")), sentence[start : last + 1]


def _check_relation(record: Mapping[str, Any], texts: Mapping[str, str]) -> Iterator[Problem]:
    for side in ("subject_entity", "object_entity"):
        start, end, word, there = _span(record, side)
        if not there:
            yield "offset", f"{side} spans characters {start!r} to {end!r} of {len(texts['sentence'])}"
        elif word != there:
            yield "offset", f"{side} is {word!r}, but {there!r} is at its offsets"
        elif word != word.strip():
            yield "tags", f"{side} {word!r} begins or ends with a space"
    yield from _check_label(RE_LABELS, "label", record)


def _check_label(labels: Sequence[str], key: str, record: Mapping[str, Any]) -> Iterator[Problem]:
    if _text(record[key]).strip() and record[key] not in labels:
        yield "label", f"no label {record[key]!r:.40}"


def _check_inference(record: Mapping[str, Any], texts: Mapping[str, str]) -> Iterator[Problem]:
    yield from _check_label(NLI_LABELS, "gold_label", record)
    gold = record["gold_label"]
    if len(texts["premise"].strip()) not in (0, *PREMISE_CHARS):
        yield "length", f"{len(texts['premise'])} characters: {texts['premise']:.40}"
    votes = [record[key] for key in ("author", "label2", "label3", "label4", "label5") if record.get(key)]
    if len(votes) == MIN_VOTES and 2 * votes.count(gold) <= len(votes):
        yield "votes", f"gold {gold}, but the votes are {', '.join(map(str, votes))}"
    if votes and record.get("author") and record["author"] != gold:
        yield "author", f"gold {gold}, author {record['author']}"


def _check_similarity(record: Mapping[str, Any], texts: Mapping[str, str]) -> Iterator[Problem]:
    labels = record["labels"] if isinstance(record["labels"], Mapping) else {}
    real = _number(labels.get("real-label"))
    if real is None or not 0 <= real <= MAX_SIMILARITY:
        yield "label", f"real-label is {labels.get('real-label')!r:.40}, not 0 to 5"
        return
    if labels.get("binary-label") not in (None, int(real >= SIMILAR_FROM)):
        yield "votes", f"binary-label {labels['binary-label']}, but real-label {real:.2f}"
    if abs((_number(labels.get("label")) or 0.0) - real) > 0.0501:
        yield "votes", f"label {labels.get('label')}, but real-label {real:.2f}"
    found = record.get("annotations")
    votes = found.get("annotations") if isinstance(found, Mapping) else None
    if not votes:
        return
    mean = fmean(votes)
    if abs(mean - real) > 1e-6:
        yield "votes", f"real-label {real:.2f}, but the mean of the votes is {mean:.2f}"
    if fmean((vote - mean) ** 2 for vote in votes) ** 0.5 > MAX_STD or len(votes) < MIN_VOTES:
        yield "votes", f"{len(votes)} votes with a standard deviation above 2, or fewer than 5: {votes}"


RECORDS: Mapping[str, tuple[tuple[str, ...], str, Callable[[Mapping[str, Any], Mapping[str, str]], Iterator[Problem]]]] = {
    "ynat": (("title",), "label", lambda record, texts: _check_label(YNAT_LABELS, "label", record)),
    "klue-sts": (("sentence1", "sentence2"), "labels", _check_similarity),
    "klue-nli": (("premise", "hypothesis"), "gold_label", _check_inference),
    "klue-re": (("sentence",), "label", _check_relation),
}  # texts, label and further checks of the KLUE tasks with one record per item


def read_dialogue(record: Mapping[str, Any], ontology: Ontology, split: str) -> Item:
    """A dialogue of WoS."""
    turns = [turn for turn in record.get("dialogue") or () if isinstance(turn, Mapping)]
    problems, states = list[Problem](), list[Any]()
    for number, turn in enumerate(turns):
        role = "sys" if number % 2 else "user"
        if turn.get("role") != role:
            problems.append(("state", f"turn {number} is of {turn.get('role')!r}, not {role!r}"))
        if not _text(turn.get("text")).strip():
            problems.append(("empty", f"turn {number} is empty"))
        if "state" in turn:
            states.append(tuple(turn["state"]) if isinstance(turn["state"], list) else turn["state"])
            problems += _check_state(turn["state"], ontology, f"turn {number}")
    unique = list(dict.fromkeys(problems))
    texts = {"dialogue": "\n".join(_text(turn.get("text")) for turn in turns)}
    return Item(_text(record.get("guid")), split, texts, tuple(states) or None, (), unique)


def _check_state(state: Any, ontology: Ontology, where: str) -> Iterator[Problem]:
    slots = Counter[str]()
    for entry in state if isinstance(state, list) else [state]:
        found = find_slot(entry)
        if found is None:
            yield "state", f"{where}: {entry!r:.60} is not domain-slot-value"
            continue
        slots[found[0]] += 1
        if slots[found[0]] == 2:
            yield "state", f"{where}: two values of {found[0]}"
        if ontology and squeeze(found[1]) not in ontology[found[0]]:
            yield "ontology", f"{entry}"
