"""``malmoi llm run``: ask the questions of llm-kr-eval files, parse the answers, compute metrics with intervals.

An answer that cannot be parsed is wrong and stays in the count. The ``guid`` of a prediction is ``NAME-0`` and so on.
The files of llm-kr-eval are one JSON object per task for evaluation, a list of records for tuning:
```
{"instruction": …, "output_length": 4, "metrics": ["exact_match"],
 "few_shots": [{"input": "전제: …\\n가설: …", "output": "neutral"}, …], "samples": [{"input": …, "output": …}, …]}
[{"ID": "klue_nli-0", "instruction": …, "input": …, "output": …, "text": "… ### 지시: … ### 입력: … ### 응답: …"}, …]
```
The keys are those of the published format; the opening sentence is our own. Text is normalized to NFC and ``\\n`` here.

The golds of a file show the form of answer that it demands, by which answers are checked and parsed:
```
             exact form (the "control score")           parsed otherwise
choice       one of the file's gold answers, alone     the one that the text names (``prompts.answers``)
number       one number, alone                         the only number in the text
entities     name(class), on one line or on several    the distinct entities, however they are separated
lines        any lines; no control score               all lines
text         any text; no control score                the first paragraph
```
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, StrictInt, StrictStr, model_validator

from corpus.documents.atomic_files import atomic_write, write_json
from corpus.documents.errors import BadInput
from finetune.data.custom_files import nfc
from finetune.data.files import identify, read_json, validate, write_json_lines
from finetune.data.public_sets import data_sets
from finetune.generative.client.ask import Answer, Client, Question, ask, check_cut, sum_costs
from finetune.generative.kr_eval import metrics as kr
from finetune.generative.prompts import PROMPTS, answers, ner
from finetune.generative.prompts.choices import NUMBER_IN_TEXT, find_choice, find_number
from finetune.generative.prompts.prompt import Message, build_turns, korean_texts

OPENING = "지시를 읽고, 이어지는 입력에 맞는 응답만 요구된 형식으로 쓰세요."
MAX_OUTPUT_TOKENS = 1 << 20  # more is a typing error
MAX_CHOICES, MAX_CHOICE_CHARS = 60, 30
MIN_GOLDS_PER_CHOICE = 2  # on average; golds that repeat less are free text, not classes
ENTITY = re.compile(r"\S(?:.*\S)?\(([^()\s]+)\)")  # at the end of a line
QUOTES = "\"'`“”‘’"
BETWEEN = f" \t,;/|·、{QUOTES}"  # entities on one line


def _known_metric(name: str) -> str:
    if name not in kr.METRICS:
        raise ValueError(f"unknown metric; choose from {', '.join(kr.METRICS)}")
    return name


Text = Annotated[StrictStr, AfterValidator(lambda text: text.replace("\r\n", "\n").replace("\r", "\n"))]
Metric = Annotated[StrictStr, AfterValidator(_known_metric)]


class Sample(BaseModel, frozen=True):
    """The input of a question and its gold answer; KoBBQ: the stereotyped answer, and the one for "unknown"."""

    input: Text
    output: Text
    biased: Text | None = None
    unknown: Text | None = None


class TaskFile(BaseModel, frozen=True):
    """An evaluation file; ``name`` is its file name without the ending."""

    name: str
    instruction: Text
    output_length: StrictInt = Field(gt=0, le=MAX_OUTPUT_TOKENS)
    metrics: Annotated[tuple[Metric, ...], AfterValidator(lambda names: tuple(dict.fromkeys(names)))] = Field(
        min_length=1
    )
    few_shots: tuple[Sample, ...]
    samples: tuple[Sample, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _correlations_need_numbers(self) -> TaskFile:
        for number, gold in enumerate(self.golds if set(self.metrics) & set(kr.CORRELATIONS) else ()):
            if kr.parse_number(gold) is None:
                raise ValueError(f"samples.{number}.output: {gold!r:.60} should be a number for a correlation")
        return self

    @property
    def golds(self) -> list[str]:
        return [sample.output for sample in self.samples]

    def conversation(self, sample: Sample, shots: int = 0) -> tuple[Message, ...]:
        """Opening, instruction and first input in one user turn; the first ``shots`` examples as turns before."""
        answered = ((shot.input, shot.output) for shot in self.few_shots[:shots])
        return build_turns(answered, sample.input, f"{OPENING}\n{self.instruction}")


def read_task_file(path: Path) -> TaskFile:
    """An evaluation file of any task; ``BadInput`` with the place of the problem if it cannot be scored."""
    content = nfc(read_json(path))
    if not isinstance(content, dict):
        hint = "; this file is a list, as tuning files are" if isinstance(content, list) else ""
        raise BadInput(f"{path}: expected one JSON object with instruction, output_length, metrics, samples{hint}")
    name = path.name.removesuffix(".zst").removesuffix(".gz").removesuffix(".json")
    return validate(TaskFile, {**content, "name": name}, str(path))


def write_task_file(task: TaskFile, path: Path) -> None:
    """Write an evaluation file that the published code can read."""
    content = task.model_dump(exclude={"name"}, exclude_none=True)
    atomic_write(path, json.dumps(content, ensure_ascii=False, indent=2) + "\n")


def write_tuning_file(name: str, instruction: str, samples: Sequence[Sample], path: Path) -> None:
    """Write a file for instruction tuning, from other examples than those of the evaluation file."""
    records = [
        {
            "ID": f"{name}-{number}", "instruction": instruction, "input": sample.input, "output": sample.output,
            "text": f"{OPENING}\n\n### 지시:\n{instruction}\n\n### 입력:\n{sample.input}\n\n### 응답:\n{sample.output}",
        }
        for number, sample in enumerate(samples)
    ]  # fmt: skip
    atomic_write(path, json.dumps(records, ensure_ascii=False, indent=1) + "\n")


@dataclass(frozen=True, slots=True)
class Form:
    """A form of answers. ``is_exact``: whether a cleaned answer has exactly this form; None if any answer has.
    ``parse``: the part of a cleaned answer to a question (the second text) that is scored; None if there is none."""

    name: str
    about: str
    is_exact: Callable[[str], bool] | None
    parse: Callable[[str, str], str | None]


def detect_form(task: TaskFile) -> Form:
    """The form of a file's golds."""
    golds = [sample.output.strip() for sample in (*task.samples, *task.few_shots)]
    if any(metric in kr.CORRELATIONS for metric in task.metrics):
        return NUMBERS
    if choices := _detect_choices(task, golds):
        return _choice_form(choices)
    if all(kr.NUMBER.fullmatch(gold) for gold in golds):
        return NUMBERS
    if any(map(_are_entities, golds)) and all(gold in ("", ner.NONE) or _are_entities(gold) for gold in golds):
        return _entity_form(golds)
    return LINES if "set_f1" in task.metrics else TEXT


def clean(answer: str) -> str:
    """Normalize an answer; a number alone loses its thousands separators."""
    text = answers.clean(answer).strip()
    return text.replace(",", "") if re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", text) else text


def _detect_choices(task: TaskFile, golds: Sequence[str]) -> tuple[str, ...]:
    names = (name for name in data_sets() if task.name == name or task.name.startswith(f"{name}_"))
    known = next((data_sets()[name].choices for name in names), ())  # a short file may not contain all of them
    known = known or next((prompt.choices for prompt in PROMPTS.values() if prompt.file_name == task.name), ())
    if known and set(golds) <= set(known):
        return known
    distinct = tuple(dict.fromkeys(golds))
    is_short = all(gold and "\n" not in gold and len(gold) <= MAX_CHOICE_CHARS for gold in distinct)
    is_repeated = len(golds) >= MIN_GOLDS_PER_CHOICE * len(distinct)
    return distinct if is_short and is_repeated and 1 < len(distinct) <= MAX_CHOICES else ()


def _choice_form(choices: Sequence[str]) -> Form:
    names = {choice: choice for choice in choices}
    for group in korean_texts("choices"):
        if set(choices) <= set(group):
            names = {name: choice for choice in choices for name in (choice, *group[choice])}
    are_numbers = all(choice.isdecimal() for choice in choices)

    def parse(answer: str, question: str = "") -> str | None:
        if answer in names:
            return names[answer]
        if are_numbers and re.search(r"\d[.]\d", answer):  # 1.5 is neither 1 nor 5
            return None
        return find_choice(answer, names, question)

    return Form("choice", f"one of {', '.join(choices)}", lambda answer: answer in choices, parse)


def _parse_number(answer: str, question: str = "") -> str | None:
    value = find_number(answer)
    for part in answers.stated(answer) if value is None else ():
        if not NUMBER_IN_TEXT.search(part):
            value = kr.parse_number(part)  # 1200개
    return None if value is None else f"{Decimal(str(value)).normalize():f}"


def _entity_form(golds: Sequence[str]) -> Form:
    """Entities of the classes that end the lines of the golds: ``윤슬(사람) 한빛시(지역)``, in JSON, or one per line.

    Parsed are the distinct ones, one per line, so that ``set_f1`` compares sets; "" for an answer that there are none.
    """
    classes = {match[1] for gold in golds for line in kr.split_lines(gold) if (match := ENTITY.fullmatch(line))}
    if classes <= ner.BY_WORD.keys():  # a short file may not contain all of them
        classes |= ner.BY_WORD.keys()
    kinds = "|".join(sorted(map(re.escape, classes), key=len, reverse=True))
    mark, colon = re.compile(rf"\s?\(\s?({kinds})\s?\)"), re.compile(rf"\s?:\s?({kinds})$")

    def split(line: str) -> list[str]:
        return mark.split(colon.sub(r"(\1)", line))  # text, class, text, class, …, rest

    def parse(answer: str, question: str = "") -> str | None:
        entities, lines = list[str](), answers.lines_of(answers.answer_text(answer))
        for parts in map(split, lines):
            texts = (text.rpartition(": ")[2].strip(BETWEEN) for text in parts[::2])
            entities += [f"{text}({kind})" for text, kind in zip(texts, parts[1::2], strict=False) if text]
        is_none = any(answers.bare(line).casefold() in ner.NONE_TOO for line in lines)
        return "\n".join(dict.fromkeys(entities)) or ("" if is_none else None)

    def is_exact(answer: str) -> bool:
        lines = kr.split_lines(answer)
        return bool(lines) and all(len(parts := mark.split(line)) > 1 and not parts[-1].strip() for line in lines)

    return Form("entities", "entities as name(class)", is_exact, parse)


def _parse_text(answer: str, question: str = "") -> str | None:
    marked = answers.marked_answers(answer)
    return (marked[-1] if marked else answer).split("\n\n")[0].strip().strip(QUOTES).strip() or None


def _are_entities(answer: str) -> bool:
    lines = kr.split_lines(answer)
    return bool(lines) and all(ENTITY.fullmatch(line) for line in lines)


NUMBERS = Form("number", "one number", lambda answer: kr.NUMBER.fullmatch(answer) is not None, _parse_number)
TEXT = Form("text", "any text", None, _parse_text)
LINES = Form(
    "lines", "any lines", None, lambda answer, _: "\n".join(answers.lines_of(answers.answer_text(answer))) or None
)


def run_files(
    paths: Sequence[Path], client: Client, out: Path, *, shots: int = 0, samples: int | None = None,
    resamples: int = kr.RESAMPLES, max_tokens: int | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Ask, score and write each file; returns the content of each ``scores.json``, in the given order.

    All files are checked before the first question is sent. Of each, the first ``samples`` are used. ``max_tokens``
    replaces the limit of the files. ``BadInput``: too many answers of a file were cut; results are written.
    """
    tasks: dict[Path, TaskFile] = {}
    for path in paths:
        task = read_task_file(path)
        if any(other.name == task.name for other in tasks.values()):
            raise BadInput(f"{path}: another file is also called {task.name}; rename one, as results use that name")
        if shots > len(task.few_shots):
            raise BadInput(f"{path}: --shots {shots}, but 'few_shots' has {len(task.few_shots)}")
        tasks[path] = task.model_copy(update={"samples": task.samples[:samples]})
    questions = [
        Question(f"{task.name}-{number}", task.conversation(sample, shots), max_tokens or task.output_length)
        for task in tasks.values() for number, sample in enumerate(task.samples)
    ]  # fmt: skip
    asked = ask(questions, client)  # all files at once, so that a local model is loaded once
    results, cuts = [], []
    for path, task in tasks.items():
        own, asked = asked[: len(task.samples)], asked[len(task.samples) :]
        form = detect_form(task)
        lines = [_parse(form, sample, answer) for sample, answer in zip(task.samples, own, strict=True)]
        result = {
            "task": task.name, "model": client.model, "method": "generation", "shots": shots, "n": len(own),
            "file": identify(path, is_custom=True), "output_length": task.output_length,
            **_score(task, form, lines, resamples), **sum_costs(own),
            "cut_answers": sum(answer.stop == "max_tokens" for answer in own),
        }  # fmt: skip
        write_json_lines(out / task.name / "predictions.jsonl", lines)
        write_json(out / task.name / "scores.json", result)
        results.append(result)
        cuts.append(
            (task.name, own, [line["prediction"] is not None for line in lines], max_tokens or task.output_length)
        )
    for cut in cuts:
        check_cut(*cut)
    return results


def parse_gold(form: Form, gold: str) -> str:
    """A gold, parsed like answers, so that 3.50 equals 3.5."""
    parsed = form.parse(clean(gold), "")
    return clean(gold) if parsed is None else parsed


def _parse(form: Form, sample: Sample, answer: Answer) -> dict[str, Any]:
    """A line of ``predictions.jsonl``; ``prediction`` is None for an answer that cannot be parsed."""
    cleaned = clean(answer.text or "")
    prediction = form.parse(cleaned, sample.input)
    return {
        "guid": answer.id, "gold": parse_gold(form, sample.output), "prediction": prediction, "answer": answer.text,
        "outcome": None if answer.text is None else answers.outcome(answer.text, is_parsed=prediction is not None),
        "has_form": form.is_exact and form.is_exact(cleaned), "error": answer.error,
    }  # fmt: skip


def _score(task: TaskFile, form: Form, lines: Sequence[dict[str, Any]], resamples: int) -> dict[str, Any]:
    """Metrics with intervals, the values of the published code, and shares of answers in the exact form and parsed."""
    golds, parsed = [line["gold"] for line in lines], [line["prediction"] or "" for line in lines]
    raw = [line["answer"] or "" for line in lines]
    result: dict[str, Any] = {
        "metrics": {metric: kr.measure(metric, golds, parsed, resamples) for metric in task.metrics},
        "as_published": {name: kr.score_as_published(name, task.golds, raw, task.name) for name in task.metrics},
        "form": form.about,
        "control": 100 * sum(line["has_form"] for line in lines) / len(lines) if form.is_exact else None,
        "read": 100 * sum(line["prediction"] is not None for line in lines) / len(lines),
        "answers": {
            "wrong": sum(line["prediction"] not in (None, line["gold"]) for line in lines),
            **{name: sum(line["outcome"] == name for line in lines) for name in ("unread", "refused", "empty")},
        },
    }
    if form.name == "entities":
        pairs = [(kr.split_lines(answer), kr.split_lines(gold)) for answer, gold in zip(parsed, golds, strict=True)]
        named, right = sum(len(own) for own, _ in pairs), sum(len({*own} & {*gold}) for own, gold in pairs)
        result |= {"named": named, "right_of_named": 100 * right / named if named else None}
    if "bleu" in task.metrics:
        result["bleu"] = kr.bleu_signature()
    if all(sample.biased and sample.unknown for sample in task.samples):
        marks = [(sample.biased or "", sample.unknown or "") for sample in task.samples]
        rows = [(gold, answer, *mark) for gold, answer, mark in zip(golds, parsed, marks, strict=True)]
        result["metrics"] |= kr.measure_bias(rows, resamples)
        is_read = [row for row in rows if row[1]]  # unread ones are dropped
        published = kr.measure_bias(is_read, 0) if any(parsed) else {}
        result["as_published"] |= {name: measured["value"] for name, measured in published.items()}
    return result
