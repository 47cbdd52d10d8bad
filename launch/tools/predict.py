"""``malmoi predict``: predict plain text, JSON lines or an official file with a fine-tuned model.

```
input ─ bytes ─ text ─ form ─┬ lines, records: blocks ─┐
                             └ official file: at once ─┴▶ results in order ─ JSON lines or for people ─▶ output
```
The first line that is not blank decides the format: a JSON object, an official file of the task, or plain text. A .csv
is a table, and so is a .tsv that names its columns. Blank lines also get a result: line n of the input is result n.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from corpus.documents.atomic_files import parse_json
from corpus.documents.errors import BadInput
from corpus.documents.escaping import escape_controls
from corpus.reading.files import file_format
from launch.tools.score import TaskName

if TYPE_CHECKING:
    from launch.pii.streams import TextLine

Form = Literal["plain", "records", "official"]
LINES_AT_ONCE = 4_096
OWN_TABLES = (".csv", ".conll", ".conllu", ".bio", ".iob", ".iob2")  # of own tasks, never plain text


def predict(
    task: TaskName,
    model: Annotated[str, typer.Argument(help="Fine-tuned model: folder or Hub name.")],
    source: Annotated[
        str, typer.Argument(metavar="INPUT", help="Plain text, JSON lines, CSV, TSV, an official file, or -: stdin.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="[OUTPUT]", help="Output file (.jsonl: JSON lines), or - for stdout.")
    ] = "-",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines, one for each result.")] = False,
    device: Annotated[Literal["auto", "cpu"], typer.Option(help="auto: the accelerator if there is one.")] = "auto",
) -> None:
    """Predict new text with a fine-tuned model: one result for each line, in order.

    A line is a text. Tabs separate sentence pairs, question and passage, and the turns of a dialogue. KLUE-RE needs
    marked entities, <subj>…</subj> and <obj>…</obj>. JSON lines, CSV and TSV use the official field names.

    Example:  echo '코스피 2,600선 회복' | malmoi predict ynat runs/smoke/finetune/ynat/model/seed-1/model -
    """
    path = None if source == "-" else Path(source)
    if path is not None and path.is_dir():
        raise BadInput(f"{source}: a folder; give a file, or - for standard input")
    if path is not None:
        path.open("rb").close()
        if target != "-" and Path(target).resolve() == path.resolve():
            raise BadInput(f"{target}: this is the input; give the output a name of its own")
    from finetune.inference.predict import check_task
    from finetune.saved_models.load import load_model

    saved_model = load_model(model, device)
    check_task(saved_model, task, model)
    predict_file(saved_model, path, None if target == "-" else Path(target), as_json)


def predict_file(model: Any, path: Path | None, target: Path | None, as_json: bool) -> None:
    """Predict all of a file, or of standard input, and write the results; how many there were goes to the user."""
    from finetune.inference.predict import format_lines
    from launch.pii.streams import open_output, print_note

    inference, counts = model.task.inference, Counter[str]()
    as_json = as_json or (target is not None and file_format(target).kind in (".jsonl", ".ndjson"))
    with open_output(target) as out:
        for results in results_of(model, path):
            for result in results:
                counts["results"] += 1
                counts["blank"] += result["prediction"] is None
                if as_json:
                    lines = [json.dumps(result, ensure_ascii=False)]
                else:
                    lines = [escape_controls(line, keep="\t") for line in format_lines(inference, result)]
                out.write("".join(line + "\n" for line in lines).encode())
            out.flush()
        if not counts["results"]:
            raise BadInput(f"{_name(path)}: no text here; expected at least one line")
    if target is not None or counts["blank"]:
        blank = f", {counts['blank']:,} of them for blank texts" if counts["blank"] else ""
        print_note(f"{target or 'standard output'}: {counts['results']:,} results{blank}")


def results_of(model: Any, path: Path | None) -> Iterator[list[dict[str, Any]]]:
    """Results in order, as many lines at a time as have come, at most ``LINES_AT_ONCE``; an official file at once."""
    from corpus.documents.encoding import AUTO, decode_blocks
    from finetune.inference.predict import predict_official, predict_table, predict_texts
    from launch.pii.streams import line_blocks, peek, source_blocks

    name, (head, blocks) = _name(path), peek(decode_blocks(source_blocks(path), AUTO))
    head, is_tsv = head.lstrip(), path is not None and file_format(path).kind == ".tsv"
    form, is_custom = form_of(head, model.task.files.suffix), model.task.custom is not None
    if form == "official" or (path is not None and is_table(head, model.task.custom, path)):
        with official_file(path, blocks, model.task.files.suffix) as file:
            yield predict_official(model, file) if form == "official" or is_custom else predict_table(model, file)
        return
    for block in line_blocks(blocks):
        for begin in range(0, len(block), LINES_AT_ONCE):
            lines = block[begin : begin + LINES_AT_ONCE]
            inputs = [parse_line(line, form, f"{name}, line {line.number}", is_tsv) for line in lines]
            results = predict_texts(model, inputs, place=f"{name}, line", first=lines[0].number)
            yield [{"line": line.number, **result} for line, result in zip(lines, results, strict=True)]


def form_of(head: str, suffix: str) -> Form:
    """The form of a text that begins with ``head``; ``suffix``: of the task's official files."""
    line = head.partition("\n")[0].rstrip()
    if suffix == "tsv":
        if line.startswith("##"):
            return "official"
    elif line.startswith("[") and head[1:].lstrip()[:1] == "{":
        return "official"
    if line == "{" or (line.startswith("{") and isinstance(_parsed(line).get("data"), list)):
        return "official"
    return "records" if line.startswith("{") else "plain"


def is_table(head: str, own: Mapping[str, Any] | None, path: Path) -> bool:
    """Whether a file is a table by its name, or a TSV whose first line names a column; ``own``: of a custom task."""
    from finetune.data.custom_files import COLUMNS

    columns = [(own or {}).get(key) for key in ("text", "question", "tokens")]
    names = {name for value in columns if value for name in ([value] if isinstance(value, str) else value)} or COLUMNS
    cells, kind = head.partition("\n")[0].rstrip("\r").split("\t"), file_format(path).kind
    return kind in OWN_TABLES[: 1 if own is None else None] or (kind == ".tsv" and not {*cells}.isdisjoint(names))


def _parsed(line: str) -> dict[str, Any]:
    with suppress(ValueError):
        value = parse_json(line)
        return value if isinstance(value, dict) else {}
    return {}


@contextmanager
def official_file(path: Path | None, blocks: Iterable[str], suffix: str) -> Iterator[Path]:
    """The file itself, or an unpacked copy of what finetune cannot unpack; messages name what the user gave."""
    if path is not None and file_format(path).packing in ("", ".gz", ".zst"):
        yield path
        return
    with TemporaryDirectory(prefix="malmoi-predict-") as folder:
        copy = Path(folder) / (f"official.{suffix}" if path is None else path.with_suffix("").name)
        with copy.open("w", encoding="utf-8", newline="", errors="surrogatepass") as file:
            file.writelines(blocks)
        try:
            yield copy
        except BadInput as error:
            raise BadInput(str(error).replace(str(copy), _name(path))) from None


def parse_line(line: TextLine, form: Form, where: str, is_tsv: bool = False) -> Any:
    """What a line gives to the task: itself, its columns in a TSV, or its record. A task with one text keeps tabs."""
    from launch.pii.streams import UNDECODABLE, explain_problem

    text = line.text
    if line.problem == UNDECODABLE:
        raise BadInput(f"{where}: not UTF-8; convert the file to UTF-8 first")
    if line.problem:
        raise BadInput(f"{where}: {explain_problem(line.problem)}")
    if not text.strip():
        return text
    is_record = text.lstrip().startswith("{")
    if form == "records":
        try:
            record = parse_json(text) if is_record else None
        except ValueError as error:
            raise BadInput(f"{where}: not JSON ({error}); a line holds one object") from None
        if not isinstance(record, dict):
            raise BadInput(f"{where}: not an object of JSON, as the first line is; do not mix forms in one file")
        return record
    if is_record and _parsed(text):
        raise BadInput(f"{where}: an object of JSON, but the first line is plain text; do not mix forms in one file")
    return text.split("\t") if is_tsv else text


def _name(path: Path | None) -> str:
    return "standard input" if path is None else str(path)
