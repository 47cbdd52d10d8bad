"""``malmoi score ARCHIVE``: score the results of an archive of ``malmoi package`` again and report differences.

An archive may come from anybody, so it is not trusted: its entries must be those of the manifest, with their size and
digest, and below a limit that is checked before anything is unpacked. Only predictions are written, to a temporary
folder. Scoring again costs one reading of the official files and one bootstrap for each result.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from corpus.documents.atomic_files import digest_matches, parse_json
from corpus.documents.errors import BadInput
from corpus.documents.escaping import escape_controls
from launch.tools.package import FORMAT, MANIFEST, PREDICTIONS, SCORES, as_read, sha256_of, task_of

if TYPE_CHECKING:
    from finetune.examples import Example, Row
    from finetune.task import Task

MAX_BYTES = 4 << 30  # unpacked; 64 trainings of all eight tasks have about 2 GB
MAX_FILE_BYTES = 1 << 30
MAX_ENTRIES = 100_000
PLACE = re.compile(r"finetune(/(?!\.\.?(?:/|$))[^/\\\x00-\x1f:]{1,200}){3,4}")
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OverflowError, UnicodeError)
TYPES: Mapping[str, type] = {  # of the keys of a result that scoring needs
    "task": str, "model": str, "seed": int, "n": int, "split": str, "protocol": str, "headline": str, "scores": dict,
    "intervals": dict, "data": dict, "tables": dict, "bootstrap_samples": int, "recipe": dict,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rescored:
    """A result that was scored again: its record in the archive, the new scores, and the differences in words."""

    stated: Mapping[str, Any]
    scores: Mapping[str, float | None]
    differences: list[str] = field(default_factory=list)
    is_scored: bool = True


def print_archive_scores(path: Path, data: Path | None, samples: int, json_file: Path | None) -> None:
    """``malmoi score ARCHIVE``: one line for each metric, then the number of equal results; exit code 1 unless all."""
    typer.echo("task\tmodel\tsettings\tseed\tmetric\tvalue\tstated\tn")
    records, same = [], 0
    for rescored in score_archive(path, data, samples):
        stated = rescored.stated
        who = [stated["task"], stated["model"], stated.get("settings", ""), str(stated["seed"])]
        for metric, value in rescored.scores.items():
            cells = (*who, metric, _four_digits(value), _four_digits(stated["scores"].get(metric)), str(stated["n"]))
            typer.echo("\t".join(map(escape_controls, cells)))
        name = ", ".join(filter(None, (*who[:3], f"seed {who[3]}")))
        for difference in rescored.differences:
            typer.echo(escape_controls(f"{name}: {difference}"), err=True)
        same += rescored.is_scored and not rescored.differences
        scores = {"scores": rescored.scores, "stated": stated["scores"], "differences": rescored.differences}
        records.append({key: stated.get(key, "") for key in ("task", "model", "settings", "seed")} | scores)
    typer.echo(f"{same} of {len(records)} results are the same to the last digit")
    if json_file is not None:
        json_file.write_text(json.dumps(records, ensure_ascii=False, indent=1) + "\n", "utf-8")
    if same < len(records):
        raise typer.Exit(1)


def _four_digits(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def score_archive(path: Path, data: Path | None, samples: int) -> Iterator[Rescored]:
    """Score every result of an archive again; ``BadInput`` if the archive is damaged or not one of ours.

    Args:
        data: folder of the official files; None: use the gold labels of the archive. Intervals need the files.
        samples: maximum number of resamples; intervals are compared if a result has no more.
    """
    with _opened(path) as (archive, manifest), TemporaryDirectory(prefix="malmoi-score-") as folder:
        if data is None and not manifest["golds"]:
            raise BadInput(f"{path}: no gold labels in this archive; add --data with the folder of the KLUE files")
        examples: dict[tuple[str, ...], list[Example]] = {}
        for place in manifest["results"]:
            stated = _read_result(archive, manifest, path, place)
            predictions = Path(folder) / PREDICTIONS
            predictions.write_bytes(_read_file(archive, manifest, path, f"{place}/{PREDICTIONS}"))
            try:
                yield _rescore(stated, predictions, f"{path}, {place}", data, samples, examples)
            except BadInput as error:
                message = str(error).replace(str(predictions), f"{place}/{PREDICTIONS}")
                yield Rescored(stated, {}, [message], is_scored=False)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """The archive and its manifest, which lists exactly its entries; ``BadInput`` otherwise."""
    advice = "copy it again, or pack it again with `malmoi package`"
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MAX_ENTRIES or sum(entry.file_size for entry in entries) > MAX_BYTES:
                raise BadInput(f"{path}: more than {MAX_ENTRIES:,} files or {MAX_BYTES:,} bytes; not read")
            manifest = _read_manifest(archive, path)
            if sorted(entry.filename for entry in entries) != sorted([*manifest["files"], MANIFEST]):
                raise BadInput(f"{path}: its files are not those that {MANIFEST} lists; {advice}")
            yield archive, manifest
    except DAMAGED as error:
        raise BadInput(f"{path}: not a readable zip archive ({error}); {advice}") from None


def _read_manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    where = f"{path}, {MANIFEST}"
    if MANIFEST not in archive.namelist():
        raise BadInput(f"{path}: {MANIFEST} is missing; give an archive of `malmoi package`")
    manifest = _parse(_read_bytes(archive, path, MANIFEST), where)
    if manifest.get("format") != FORMAT or not digest_matches(manifest):
        raise BadInput(f"{where}: changed, or written by another release (expected format {FORMAT})")
    files, results = manifest.get("files"), manifest.get("results")
    if not isinstance(files, dict) or not isinstance(results, list) or not results:
        raise BadInput(f"{where}: it lists no results")
    for place in results:
        names = {f"{place}/{name}" for name in (PREDICTIONS, SCORES)}
        if not isinstance(place, str) or not PLACE.fullmatch(place) or not names <= files.keys():
            raise BadInput(f"{where}: {place!r:.80} is not a result of it")
    return manifest


def _read_file(archive: zipfile.ZipFile, manifest: Mapping[str, Any], path: Path, name: str) -> bytes:
    content = _read_bytes(archive, path, name)
    if [len(content), sha256_of(content)] != manifest["files"][name]:
        raise BadInput(f"{path}, {name}: not the file that was packed; copy the archive again")
    return content


def _read_bytes(archive: zipfile.ZipFile, path: Path, name: str) -> bytes:
    with archive.open(name) as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise BadInput(f"{path}, {name}: more than {MAX_FILE_BYTES:,} bytes; not read")
    return content


def _parse(content: bytes, where: str) -> dict[str, Any]:
    try:
        value = parse_json(content.decode())
    except ValueError as error:
        raise BadInput(f"{where}: not readable as JSON ({error}); copy the archive again") from None
    if not isinstance(value, dict):
        raise BadInput(f"{where}: expected a JSON object, found a {type(value).__name__}")
    return value


def _read_result(archive: zipfile.ZipFile, manifest: Mapping[str, Any], path: Path, place: str) -> dict[str, Any]:
    """The ``scores.json`` of a result with the keys that scoring needs, checked for their types."""
    where = f"{path}, {place}/{SCORES}"
    record = _parse(_read_file(archive, manifest, path, f"{place}/{SCORES}"), where)
    result = {"bootstrap_samples": 0, "recipe": {}, "tables": {}, **record}
    for key, kind in TYPES.items():
        if not isinstance(result.get(key), kind):
            raise BadInput(f"{where}: '{key}' should be a {kind.__name__}, found {result.get(key)!r:.60}")
    return result


def _rescore(
    stated: Mapping[str, Any], predictions: Path, where: str, data: Path | None, samples: int,
    known: dict[tuple[str, ...], list[Example]],
) -> Rescored:  # fmt: skip
    """Score one result with the golds of the archive, or with the official file in ``data``; ``known`` caches it."""
    from finetune.data.files import sha256
    from finetune.examples import Row
    from finetune.score.bootstrap import SEED, bootstrap
    from finetune.score.predictions import match, read_predictions
    from finetune.score.scores import read_rows

    task = task_of(stated, where)
    if data is None:
        return _compare(task, stated, read_rows(predictions, task), None, [])
    recipe = stated["recipe"]
    split = "train" if recipe.get("held_out_share") else "dev"  # a part of train may have been scored instead of dev
    file = stated["data"].get(split) or {}
    gold = _find_gold(task, split, str(file.get("file", "")), data)
    notes = [] if sha256(gold) == file.get("sha256") else [f"{gold} is not the file that was scored (another sha256)"]
    key = (task.name, stated["protocol"], split)
    if key not in known:
        known.clear()  # results are sorted by task
        known[key] = task.read(gold)
    examples = known[key]
    if stated["split"] != "dev":  # a part of the file: the examples that have predictions
        guids = read_predictions(predictions).keys()
        examples = [example for example in examples if example.guid in guids]
    rows = [Row(e.guid, e.gold, *p) for e, p in zip(examples, match(task, examples, predictions, gold), strict=True)]
    intervals, resamples = None, stated["bootstrap_samples"]
    if 1 < resamples <= samples:
        groups = [task.group(example) for example in examples]
        intervals = bootstrap(task, rows, groups, resamples, recipe.get("split_seed", SEED))
    return _compare(task, stated, rows, intervals, notes)


def _find_gold(task: Task, split: str, name: str, data: Path) -> Path:
    """The official file of a task and split in ``data``; for a custom task the file of the same name."""
    from finetune.data.files import find_file

    expected = Path(name).name if task.custom else task.files.of(split)
    path = find_file(data, expected) if expected else None
    if path is None:
        raise BadInput(f"{data}: {expected or 'the scored file'} is missing (plain or .zst)")
    return path


def _compare(
    task: Task, stated: Mapping[str, Any], rows: Sequence[Row], intervals: Mapping[str, Any] | None, notes: list[str]
) -> Rescored:
    """Differences from the scores in the archive, to the last digit."""
    from finetune.score.scores import defined, defined_tables

    tables = defined_tables(task.inspection.tables(rows))
    made = as_read({"scores": defined(task.score(rows)), "tables": tables, "intervals": intervals})
    differences = notes + ([f"n: {stated['n']} stated, {len(rows)} here"] if len(rows) != stated["n"] else [])
    for key in ("scores", "intervals") if intervals is not None else ("scores",):
        for metric in dict.fromkeys([*stated[key], *made[key]]):
            was, now = (record[key].get(metric) for record in (stated, made))
            what = " (interval)" if key == "intervals" else ""
            if was != now:
                values = [("undefined" if value is None else json.dumps(value)) for value in (was, now)]
                differences.append(f"{metric}{what}: {values[0]} stated, {values[1]} here")
    differences += [f"table {title}" for title, rows in made["tables"].items() if stated["tables"].get(title) != rows]
    return Rescored(stated, made["scores"], differences)
