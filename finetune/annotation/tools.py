"""Project files for Label Studio, doccano, Argilla and Potato, and their exports; spans by character offsets.

Label Studio: tasks and JSON export (its CoNLL export loses spans inside words). doccano: JSON lines, one file per
worker, which is named like the worker. Argilla: the folder of ``Dataset.from_disk`` and ``to_disk``. Potato: a
project, and ``user_state.json`` of each worker.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import yaml

from corpus.documents.atomic_files import atomic_dir, atomic_write, write_json
from corpus.documents.errors import BadInput
from finetune.annotation.config import Benchmark
from finetune.annotation.folder import VOTES, Item, Span, read_items, read_kept_votes
from finetune.annotation.forms import Answer, Form, form_of, is_blank, to_import, to_python_offsets
from finetune.annotation.take_in import REPORTS, Import, item_of
from finetune.data.custom_files import read_json_lines
from finetune.data.files import read_json, read_text, write_json_lines

log = logging.getLogger(__name__)

Items = Mapping[str, Item]
Answers = Iterator[tuple[str, Answer]]  # with the place for messages
UNKNOWN = "unknown"  # status of a response
FINISHED = "finished"  # a question that is the only trace of a text without spans in Argilla and Potato
REPORT_PREFIX = "report:"  # doccano has one set of labels


class Tool(NamedTuple):
    """How a project is written for a tool, and its export read."""

    write: Callable[[Benchmark, Form, Sequence[Item], Path, str], None]
    read: Callable[[Path, Items], Answers]


def hand_out(benchmark: Benchmark, folder: Path, tool: str, size: int) -> dict[str, Any]:
    """Write the items that need votes as projects ``hand-out/TOOL/batch-001`` and so on; returns counts.

    Items with a blank text come first, until somebody has written for each; then those with too few votes of workers
    who are not excluded. Pilot items are in every batch.
    """
    items = read_items(folder)
    votes = read_kept_votes(folder) if (folder / VOTES).is_file() else {}
    written = {item.about.get("group") for item in items if not is_blank(item)}
    blank = [item for item in items if is_blank(item) and item.id not in written and not votes.get(item.id)]
    waiting = [i for i in items if not is_blank(i) and len(votes.get(i.id, ())) < benchmark.votes_per_item]
    pilot = [item for item in waiting if "expected" in item.about]
    chosen = blank or [item for item in waiting if "expected" not in item.about]
    if not chosen:
        raise BadInput(f"{folder}: every item has {benchmark.votes_per_item} votes; run `malmoi benchmark agree`")
    form = form_of(benchmark, is_writing=bool(blank))
    guideline = read_text(folder / benchmark.guideline) if benchmark.guideline else ""
    batches = [chosen[begin : begin + size] for begin in range(0, len(chosen), size)]
    with atomic_dir(folder / "hand-out" / tool) as out:
        for number, batch in enumerate(batches, start=1):
            here = out / f"batch-{number:03}"
            TOOLS[tool].write(benchmark, form, batch if blank else [*pilot, *batch], here, guideline)
            if guideline:
                atomic_write(here / "guideline.md", guideline)
    return {"items": len(chosen), "pilot items": 0 if blank else len(pilot), "batches": len(batches)}


def reader_of(tool: str) -> Callable[[Path, Benchmark, Items], Iterator[Import]]:
    """The reader of a tool's export, for ``take_in``."""

    def read(path: Path, benchmark: Benchmark, items: Items) -> Iterator[Import]:
        for where, answer in TOOLS[tool].read(path, items):
            yield from to_import(benchmark, items, answer, where)

    return read


def write_label_studio(benchmark: Benchmark, form: Form, items: Sequence[Item], folder: Path, guideline: str) -> None:
    """``config.xml`` and ``tasks.json``."""
    marked = form.shown[0]
    lines = [f'  <Text name="{name}" value="${name}"/>' for name in form.shown]
    lines += _controls("Choices", "choice", marked, "Choice", form.choices, ' choice="single"')
    lines += _controls("Labels", "spans", marked, "Label", form.span_labels)
    lines += [f'  <TextArea name={quoteattr(box)} toName="{marked}" maxSubmissions="1"/>' for box in form.boxes]
    lines += _controls("Choices", "reports", marked, "Choice", REPORTS, ' choice="multiple"')
    atomic_write(folder / "config.xml", "\n".join(["<View>", *lines, "</View>", ""]))
    tasks: list[dict[str, Any]] = []
    for item in items:
        result = [
            {"id": f"s{number}", "from_name": "spans", "to_name": marked, "type": "labels",
             "value": {"start": start, "end": end, "text": item.text[start:end], "labels": [label]}}
            for number, (start, end, label) in enumerate(form.tags(item))
        ]  # fmt: skip
        predictions = [{"result": result}] if result else []
        tasks.append({"data": {"id": item.id, **form.texts(item)}, "predictions": predictions})
    write_json(folder / "tasks.json", tasks)


def _controls(tag: str, name: str, target: str, part: str, values: Iterable[str], more: str = "") -> Iterator[str]:
    values = list(values)
    if values:
        yield f'  <{tag} name="{name}" toName="{target}"{more}>'
        yield from (f"    <{part} value={quoteattr(value)}/>" for value in values)
        yield f"  </{tag}>"


def read_label_studio(path: Path, items: Items) -> Answers:
    """The JSON export: a list of tasks with their annotations; the skipped ones are counted in the log."""
    skipped = 0
    for task in read_json(path):
        name = task["data"]["id"]
        for annotation in task["annotations"]:
            if annotation.get("was_cancelled"):
                skipped += 1
                continue
            where, by = f"{path}, {name}", annotation.get("completed_by", "")
            worker = by.get("email") or by["id"] if isinstance(by, dict) else by
            parts: dict[str, list[str]] = {"choice": [], "reports": []}
            spans, boxes = list[Span](), dict[str, str]()
            for result in annotation["result"]:
                value, source = result["value"], result["from_name"]
                if "labels" in value:
                    span = (value["start"], value["end"], value["labels"][0])
                    spans.append(to_python_offsets(item_of(items, name, where).text, span, value.get("text"), where))
                elif "text" in value:
                    boxes[source] = " ".join(value["text"])
                else:
                    parts[source] = value["choices"]
            yield where, Answer(name, str(worker), next(iter(parts["choice"]), None), spans, boxes, parts["reports"])
    if skipped:
        log.warning("%s: annotations that workers skipped, which are no votes: %d", path, skipped)


def write_doccano(benchmark: Benchmark, form: Form, items: Sequence[Item], folder: Path, guideline: str) -> None:
    """``data.jsonl`` and ``label_config.json``; a project shows one text, so a pair is two paragraphs."""
    if form.boxes:
        raise BadInput("doccano: has no box for texts that workers write; use label-studio, argilla or potato")
    rows = [
        {"id": item.id, "item": item.id, **form.texts(item), "text": form.one_text(item), "label": form.tags(item)}
        for item in items
    ]
    write_json_lines(folder / "data.jsonl", rows)
    labels = [*form.choices, *form.span_labels, *([] if form.span_labels else [REPORT_PREFIX + r for r in REPORTS])]
    write_json(folder / "label_config.json", [{"text": label} for label in labels])


def read_doccano(path: Path, items: Items) -> Answers:
    """JSON lines of one worker: labels, or spans as [start, end, label]."""
    for record in read_json_lines(path):
        row = record.values
        labels = row["label"] if "label" in row else row["labels"]
        names = [label for label in labels if isinstance(label, str)]
        spans = [(label[0], label[1], label[2]) for label in labels if not isinstance(label, str)]
        choices = [name for name in names if not name.startswith(REPORT_PREFIX)]
        if len(choices) > 1:
            raise BadInput(f"{record.where}: {len(choices)} labels; set the project to single labels")
        reports = [name.removeprefix(REPORT_PREFIX) for name in names if name not in choices]
        yield record.where, Answer(row["item"], path.stem, next(iter(choices), None), spans, {}, reports)


def write_argilla(benchmark: Benchmark, form: Form, items: Sequence[Item], folder: Path, guideline: str) -> None:
    """``records.json``, ``.argilla/settings.json`` and ``.argilla/dataset.json``, for ``Dataset.from_disk``."""

    def question(name: str, settings: dict[str, Any], title: str = "", required: bool = False) -> dict[str, Any]:
        title = title or name
        return {"name": name, "title": title, "description": None, "required": required, "settings": settings}

    def options(values: Iterable[str]) -> list[dict[str, str]]:
        return [{"value": value, "text": value} for value in values]

    text = {"type": "text", "use_markdown": False}  # names of questions have no Korean letters
    questions = [question(f"text-{number}", text, box) for number, box in enumerate(form.boxes)]
    if form.choices:
        questions.append(question("choice", {"type": "label_selection", "options": options(form.choices)}))
    if form.span_labels:
        spans = {"type": "span", "field": form.shown[0], "options": options(form.span_labels)}
        questions.append(question("spans", {**spans, "allow_overlapping": True}))
        done = {"type": "label_selection", "options": options(["yes"])}
        questions.append(question(FINISHED, done, required=True))
    questions.append(question("reports", {"type": "multi_label_selection", "options": options(REPORTS)}))
    fields = [{"name": name, "title": name, "required": True, "settings": text} for name in form.shown]
    settings = {
        "guidelines": guideline or None, "questions": questions, "fields": fields, "vectors": [], "metadata": [],
        "allow_extra_metadata": True,
        "distribution": {"strategy": "overlap", "min_submitted": benchmark.votes_per_item},
        "mapping": None,
    }  # fmt: skip
    write_json(folder / ".argilla" / "settings.json", settings)
    write_json(folder / ".argilla" / "dataset.json", {"name": benchmark.name, "guidelines": guideline or None})
    records = list[dict[str, Any]]()
    for item in items:
        tags = [{"start": start, "end": end, "label": label} for start, end, label in form.tags(item)]
        suggestions = {"spans": {"value": tags, "score": None, "agent": "pre-tagged"}} if tags else {}
        records.append({"id": item.id, "fields": form.texts(item), "metadata": {}, "responses": {}, "vectors": {},
                        "status": "pending", "suggestions": suggestions})  # fmt: skip
    write_json(folder / "records.json", records)


def read_argilla(path: Path, items: Items) -> Answers:
    """``records.json`` of ``Dataset.to_disk``, or its folder; or the list of ``records.to_list(flatten=True)`` as JSON.

    Only the second one says which responses were submitted; the others are counted in the log.
    """
    folder = path if path.is_dir() else path.parent
    path = path / "records.json" if path.is_dir() else path
    settings = folder / ".argilla" / "settings.json"
    titles = {q["name"]: q["title"] for q in read_json(settings)["questions"]} if settings.is_file() else {}
    counts = Counter[str]()
    for record in read_json(path):
        by_worker: dict[str, dict[str, Any]] = {}
        for name, worker, status, value in _responses(record):
            counts[status] += 1
            if status in ("submitted", UNKNOWN):
                by_worker.setdefault(worker, {})[name] = value
        for worker, by_name in by_worker.items():
            spans = [(span["start"], span["end"], span["label"]) for span in by_name.get("spans") or ()]
            boxes = {titles.get(name, name): text for name, text in by_name.items() if name.startswith("text-")}
            reports = by_name.get("reports") or ()
            yield f"{path}, {record['id']}", Answer(record["id"], worker, by_name.get("choice"), spans, boxes, reports)
    if unsubmitted := counts.total() - counts["submitted"] - counts[UNKNOWN]:
        log.warning("%s: drafts and discarded responses, which are no votes: %d", path, unsubmitted)
    if counts[UNKNOWN]:
        log.warning("%s: no status here, so drafts count as votes; take in records.to_list(flatten=True)", path)


def _responses(record: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    """Question, worker, status and value of each response to a record."""
    for name, responses in record.get("responses", {}).items():
        yield from ((name, response["user_id"], UNKNOWN, response["value"]) for response in responses)
    for key in (key for key in record if key.endswith(".responses")):
        columns = (record[f"{key}.users"], record[f"{key}.status"], record[key])
        for worker, status, value in zip(*columns, strict=True):
            yield key.removesuffix(".responses"), worker, status or "draft", value


def write_potato(benchmark: Benchmark, form: Form, items: Sequence[Item], folder: Path, guideline: str) -> None:
    """``config.yaml`` and ``data.jsonl``."""
    kinds = [
        ("radio", "choice", form.choices),
        ("span", "spans", form.span_labels),
        ("multiselect", "reports", REPORTS),
        ("radio", FINISHED, ("yes",) if form.span_labels else ()),
    ]
    schemes: list[dict[str, Any]] = [
        {"annotation_type": kind, "name": name, "description": name, "labels": [*labels]}
        for kind, name, labels in kinds if labels
    ]  # fmt: skip
    schemes += [{"annotation_type": "text", "name": box, "description": box} for box in form.boxes]
    config = {
        "annotation_task_name": benchmark.name, "task_dir": ".", "output_annotation_dir": "annotation_output",
        "data_files": ["data.jsonl"], "item_properties": {"id_key": "id", "text_key": "text"},
        "max_annotations_per_item": benchmark.votes_per_item, "annotation_schemes": schemes,
        "pre_annotation": {"enabled": True, "field": "predictions"},
        "user_config": {"allow_all_users": True, "users": []}, "alert_time_each_instance": 0,
    }  # fmt: skip
    atomic_write(folder / "config.yaml", yaml.safe_dump(config, allow_unicode=True, sort_keys=False))
    rows = list[dict[str, Any]]()
    for item in items:
        spans = [{"start": start, "end": end, "name": label} for start, end, label in form.tags(item)]
        tagged = {"predictions": {"spans": spans}} if spans else {}
        rows.append({"id": item.id, **form.texts(item), "text": form.one_text(item), **tagged})
    write_json_lines(folder / "data.jsonl", rows)


def read_potato(path: Path, items: Items) -> Answers:
    """``annotation_output``, or one worker's ``user_state.json``."""
    for file in sorted(path.glob("*/user_state.json")) if path.is_dir() else [path]:
        state = read_json(file)
        labels, marked = state["instance_id_to_label_to_value"], state.get("instance_id_to_span_to_value", {})
        for name in dict.fromkeys([*labels, *marked]):
            spans = [(span["start"], span["end"], span["name"]) for span, _ in marked.get(name, ())]
            by_schema: dict[str, list[str]] = {}
            boxes = dict[str, str]()
            for label, value in labels.get(name, ()):
                if label["name"] == "text_box":
                    boxes[label["schema"]] = value
                elif value:
                    by_schema.setdefault(label["schema"], []).append(label["name"])
            choice = next(iter(by_schema.get("choice", ())), None)
            yield f"{file}, {name}", Answer(name, state["user_id"], choice, spans, boxes, by_schema.get("reports", ()))


TOOLS = {
    "label-studio": Tool(write_label_studio, read_label_studio),
    "doccano": Tool(write_doccano, read_doccano),
    "argilla": Tool(write_argilla, read_argilla),
    "potato": Tool(write_potato, read_potato),
}
