"""Recorded results of reading, guessing and scoring files of custom tasks."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from random import Random
from typing import Any

from corpus.documents.errors import BadInput
from finetune.custom_config import CustomTask
from finetune.data.custom_files import find_columns, holds_words, read_table, read_words
from finetune.examples import Prediction
from finetune.tasks.custom.task import custom_task, define
from launch.tools.init import describe_columns
from tests.same_results.recording import check_recorded
from tests.same_results.test_corpus import varied_texts
from tests.same_results.test_finetune import guessed, simple

KINDS: dict[str, dict[str, Any]] = {
    "label": {"kind": "label"},
    "named": {"kind": "label", "text": "본문", "label": "분류", "labels": ["다", "나", "가"], "guid": "id"},
    "pair": {"kind": "pair", "text": ["q1", "q2"]},
    "similarity": {"kind": "similarity", "text": ["q1", "q2"], "label": "score"},
    "choice": {"kind": "choice", "text": "q1", "choices": ["a", "b", "c"], "label": "right"},
    "tagging": {"kind": "tagging"},
    "spans": {"kind": "tagging", "text": "text", "spans": "spans"},
    "span": {"kind": "span", "start": "start"},
}  # fmt: skip
COLUMNS = (
    ("text", "label"), ("id", "본문", "분류"), ("q1", "q2", "label"), ("q1", "q2", "score"),
    ("id", "q1", "a", "b", "right"),
    ("tokens", "tags"), ("text", "spans"), ("question", "context", "answer"), ("id", "score"), ("text",),
    ("label", "score"),
)  # fmt: skip
SUFFIXES = (".csv", ".tsv", ".jsonl", ".json")


def rows_of(seed: int) -> list[dict[str, Any]]:
    """Rows with columns for all kinds."""
    rng, rows = Random(seed), []
    for number in range(24):
        text = rng.choice(varied_texts()).replace("\n", " ").replace("\t", " ")[: rng.randrange(8, 60)].strip() or "글"
        words = text.split()
        tags = ["O"] * len(words)
        for place in range(0, len(words), 3):
            tags[place] = rng.choice(("B-PS", "B-LC", "O", "I-PS"))
        start = rng.randrange(len(text))
        rows.append({
            "id": f"n{number}", "text": text, "본문": text, "label": rng.choice(("긍정", "부정")),
            "분류": rng.choice("가나다"), "q1": text, "q2": rng.choice(varied_texts())[:30].replace("\n", " "),
            "score": rng.randrange(11) / 2,
            "a": "하나", "b": "둘", "c": "셋", "right": rng.randrange(1, 4), "tokens": words, "tags": tags,
            "spans": [[0, 2, "PS"]] if len(text) > 2 and number % 2 else [], "question": "무엇?", "context": text,
            "answer": text[start : start + 4] if number % 4 else "", "start": start if number % 4 else "",
        })  # fmt: skip
    return rows


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    if path.suffix in (".csv", ".tsv"):
        plain = [
            {k: json.dumps(v) if k == "spans" else " ".join(v) if isinstance(v, list) else v for k, v in row.items()}
            for row in rows
        ]
        text = io.StringIO()
        writer = csv.DictWriter(text, [*rows[0]], delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writeheader()
        writer.writerows(plain)
        path.write_text(text.getvalue(), "utf-8-sig")
    elif path.suffix == ".json":
        path.write_text(json.dumps({"data": rows}, ensure_ascii=False), "utf-8")
    else:
        path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), "utf-8")


def test_custom_tasks(tmp_path: Path) -> None:
    results: dict[str, Any] = {}
    for suffix in SUFFIXES:
        for split, seed in (("train", 1), ("dev", 2)):
            write_table(tmp_path / f"{split}{suffix}", rows_of(seed))
        for kind, settings in KINDS.items():
            results[f"{kind} {suffix}"] = result_of(settings, suffix, tmp_path)
    check_recorded("custom_tasks", results, tmp_path)


def result_of(settings: dict[str, Any], suffix: str, folder: Path) -> Any:
    own = CustomTask.model_validate(
        {**settings, **{split: str(folder / f"{split}{suffix}") for split in ("train", "dev")}}
    )
    try:
        definition = define("mine", own)
        task = custom_task(definition, files=own.files)
        examples = task.read(Path(own.dev))
        rows = guessed(task, examples, 3) if all(example.gold is not None for example in examples) else []
    except BadInput as error:
        return str(error).replace(str(folder), "")
    problems = [task.inspection.validate(e, Prediction(v)) for e in examples[:3] for v in (e.gold, 3, "x", ["O"])]
    shown = [task.inspection.show(*pair) for pair in zip(examples, rows, strict=False)][:5]
    return definition, simple(examples), task.score(rows) if rows else {}, task.inspection.tables(rows), problems, shown


def test_guessed_columns(tmp_path: Path) -> None:
    rows, results = rows_of(3), dict[str, Any]()
    for names in COLUMNS:
        for suffix in SUFFIXES:
            path = tmp_path / f"{'-'.join(names)}{suffix}"
            write_table(path, [{name: row[name] for name in names} for row in rows])
            for guess in (find_columns, None):
                key = f"{path.name} {guess is None}"
                try:
                    results[key] = (
                        describe_columns(path) if guess is None else guess(read_table(path, ()), path).model_dump()
                    )
                except BadInput as error:
                    results[key] = str(error).replace(str(tmp_path), "")
    check_recorded("guessed_columns", results, tmp_path)


def test_words_of_conll_files(tmp_path: Path) -> None:
    rows, results = rows_of(4), dict[str, Any]()
    layouts = {
        "two": "{word}\t{tag}", "numbered": "{number}\t{word}\t{tag}", "four": "{word} N B {tag}",
        "middle": "{word}\t{tag}\t_",
        "plain": "{word}", "first": "{number}\t{word}",
    }  # fmt: skip
    for name, form in layouts.items():
        blocks = []
        for row in rows:
            cells = enumerate(zip(row["tokens"], row["tags"], strict=True), 1)
            lines = [form.format(number=number, word=word, tag=tag) for number, (word, tag) in cells]
            blocks.append("\n".join([f"## {row['id']}\t{row['text']}", *lines]))
        path = tmp_path / f"{name}.tsv"
        path.write_text("-DOCSTART- -X- O O\n\n" + "\n\n".join(blocks) + "\n# comment\n", "utf-8")
        try:
            found = [words._replace(where=words.where.replace(str(tmp_path), "")) for words in read_words(path)]
            results[name] = holds_words(path, ("text",)), found
        except BadInput as error:
            results[name] = str(error).replace(str(tmp_path), "")
    check_recorded("conll_files", results, tmp_path)
