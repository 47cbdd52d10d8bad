"""What the four annotation tools export for a project, when a worker answers every item."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from finetune.annotation.forms import Answer

Answers = Mapping[str, Answer]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def label_studio(project: Path, answers: Answers, out: Path) -> Path:
    tasks = json.loads((project / "tasks.json").read_text("utf-8"))
    for number, task in enumerate(tasks, start=1):
        answer, to_name = answers[task["data"]["id"]], list(task["data"])[1]
        text, result = task["data"][to_name], []

        def add(
            name: str, kind: str, value: dict[str, Any], to_name: str = to_name, result: list[Any] = result
        ) -> None:
            result.append(
                {"id": f"r{len(result)}", "from_name": name, "to_name": to_name, "type": kind, "value": value}
            )

        for start, end, label in answer.spans:
            first, last = (len(text[:offset].encode("utf-16-le")) // 2 for offset in (start, end))  # as in a browser
            add("spans", "labels", {"start": first, "end": last, "text": text[start:end], "labels": [label]})
        if answer.choice:
            add("choice", "choices", {"choices": [answer.choice]})
        if answer.reports:
            add("reports", "choices", {"choices": [*answer.reports]})
        for box, written in answer.boxes.items():
            add(box, "textarea", {"text": [written]})
        by = {"id": 1, "email": answer.worker}
        task["id"] = number
        task["annotations"] = [{"id": number, "completed_by": by, "was_cancelled": False, "result": result}]
    path = out / "export.json"
    path.write_text(json.dumps(tasks), "utf-8")
    return path


def doccano(project: Path, answers: Answers, out: Path) -> Path:
    rows = []
    for number, row in enumerate(lines(project / "data.jsonl"), start=1):
        answer = answers[row["item"]]
        label = [[*span] for span in answer.spans] or [x for x in [answer.choice] if x]
        rows.append({**row, "id": number, "label": [*label, *(f"report:{r}" for r in answer.reports)], "Comments": []})
    path = out / f"{answer.worker}.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def argilla(project: Path, answers: Answers, out: Path) -> Path:
    records = json.loads((project / "records.json").read_text("utf-8"))
    names = {
        q["title"]: q["name"] for q in json.loads((project / ".argilla/settings.json").read_text("utf-8"))["questions"]
    }
    for record in records:
        answer = answers[record["id"]]
        values: dict[str, Any] = {"choice": answer.choice, "reports": [*answer.reports], "finished": "yes"}
        values["spans"] = [dict(zip(("start", "end", "label"), span, strict=True)) for span in answer.spans]
        values |= {names[box]: text for box, text in answer.boxes.items()}
        record["responses"] = {
            n: [{"value": v, "user_id": answer.worker}] for n, v in values.items() if v and n in names.values()
        }
        record["status"] = "completed"
    (out / ".argilla").mkdir()
    (out / ".argilla/settings.json").write_text((project / ".argilla/settings.json").read_text("utf-8"), "utf-8")
    (out / "records.json").write_text(json.dumps(records), "utf-8")
    return out


def potato(project: Path, answers: Answers, out: Path) -> Path:
    labels, spans = dict[str, Any](), dict[str, Any]()
    config = yaml.safe_load((project / "config.yaml").read_text("utf-8"))
    for row in lines(project / "data.jsonl"):
        answer, said = answers[row["id"]], list[Any]()
        said += [[{"schema": "choice", "name": answer.choice}, answer.choice]] if answer.choice else []
        said += [[{"schema": "reports", "name": report}, report] for report in answer.reports]
        asks = {scheme["name"] for scheme in config["annotation_schemes"]}
        said += [[{"schema": "finished", "name": "yes"}, "yes"]] if "finished" in asks else []
        said += [[{"schema": box, "name": "text_box"}, text] for box, text in answer.boxes.items()]
        labels |= {row["id"]: said} if said else {}
        marked = [
            [{"schema": "spans", "name": s[2], "title": s[2], "start": s[0], "end": s[1], "id": f"span_{n}"}, "true"]
            for n, s in enumerate(answer.spans)
        ]
        spans |= {row["id"]: marked} if marked else {}
    folder = out / config["output_annotation_dir"]
    (folder / answer.worker).mkdir(parents=True)
    state = {"user_id": answer.worker, "instance_id_to_label_to_value": labels, "instance_id_to_span_to_value": spans}
    (folder / answer.worker / "user_state.json").write_text(json.dumps(state), "utf-8")
    return folder


EXPORTS: dict[str, Callable[[Path, Answers, Path], Path]] = {
    "label-studio": label_studio, "doccano": doccano, "argilla": argilla, "potato": potato,
}  # fmt: skip
