"""An archive of ``malmoi package``, read as what anybody may have sent, and scored again against the official files.

Nothing of it is trusted: entries must be those that its contents list, of the listed size and digest, below a limit
that is known before anything is unpacked; predictions are the only thing that is written, to a folder that goes.
The price of scoring again is that of scoring: reading the files once, and a bootstrap a result.
"""

from __future__ import annotations

import hashlib
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

from corpus.documents.atomic_files import digest_matches, parse_json
from corpus.documents.errors import BadInput
from launch.tools.package import CONTENTS_NAME, FORMAT, PREDICTIONS_NAME, SCORES_NAME, task_of_result

if TYPE_CHECKING:
    from finetune.examples import Example, Row
    from finetune.task import Task

MOST_BYTES = 4 << 30  # unpacked; 64 trainings of all eight tasks have some 2 GB
MOST_OF_ONE = 1 << 30
MOST_ENTRIES = 100_000
PLACE = re.compile(r"finetune(/(?!\.\.?(?:/|$))[^/\\\x00-\x1f:]{1,200}){3,4}")
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OverflowError, UnicodeError)
KINDS: Mapping[str, type | tuple[type, ...]] = {
    "task": str, "model": str, "seed": int, "n": int, "split": str, "protocol": str, "headline": str, "scores": dict,
    "intervals": dict, "data": dict, "tables": dict, "bootstrap_samples": int, "recipe": dict,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Again:
    """A result that was scored again: what the archive states, what came out, and what differs, in words."""

    stated: Mapping[str, Any]
    scores: Mapping[str, float | None]
    differences: list[str] = field(default_factory=list)
    is_scored: bool = True


def score_archive(path: Path, data: Path | None, samples: int, official: Path | None = None) -> Iterator[Again]:
    """Score every result of an archive again, in its order; ``BadInput`` where the archive is damaged or none of ours.

    Args:
        data: folder of the official files, and of own ones by their names; None: the golds stand in the archive, which
            does not know all that intervals need, so there are none.
        samples: at most so many resamples; intervals are compared where a result asks for no more.
        official: a folder for the predictions in the layout of the official files.
    """
    with opened(path) as (archive, contents), TemporaryDirectory(prefix="malmoi-score-") as folder:
        if data is None and not contents["golds"]:
            raise BadInput(f"{path}: it holds no gold labels; give the folder of the KLUE files with --data")
        known: dict[tuple[str, ...], list[Example]] = {}
        for place in contents["results"]:
            stated = _result(archive, contents, path, place)
            copy = Path(folder) / "predictions.jsonl"
            copy.write_bytes(_content(archive, contents, path, f"{place}/{PREDICTIONS_NAME}"))
            try:
                task = task_of_result(stated, f"{path}, {place}")
                if data is None:
                    yield _from_golds(task, stated, copy)
                else:
                    yield _from_data(task, stated, copy, data, samples, known, official and official / place)
            except BadInput as error:
                said = str(error).replace(str(copy), f"{place}/{PREDICTIONS_NAME}")
                yield Again(stated, {}, [said], is_scored=False)


@contextmanager
def opened(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """The archive and its contents, which list exactly its entries; ``BadInput`` for anything else."""
    advice = "copy it again, or pack it again with `malmoi package`"
    try:
        with zipfile.ZipFile(path) as archive:
            found = archive.infolist()
            if len(found) > MOST_ENTRIES or sum(about.file_size for about in found) > MOST_BYTES:
                raise BadInput(
                    f"{path}: more than {MOST_ENTRIES:,} files or {MOST_BYTES:,} bytes; no package is so large"
                )
            contents = _contents(archive, path)
            if sorted(about.filename for about in found) != sorted([*contents["files"], CONTENTS_NAME]):
                raise BadInput(f"{path}: its files are not those that {CONTENTS_NAME} lists; {advice}")
            yield archive, contents
    except DAMAGED as error:
        raise BadInput(f"{path}: not a readable zip archive ({error}); {advice}") from None


def _contents(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    if CONTENTS_NAME not in archive.namelist():
        raise BadInput(f"{path}: no {CONTENTS_NAME} in it; give an archive that `malmoi package` wrote")
    found = _parsed(_read(archive, path, CONTENTS_NAME), f"{path}, {CONTENTS_NAME}")
    if found.get("format") != FORMAT or not digest_matches(found):
        raise BadInput(f"{path}, {CONTENTS_NAME}: changed, or of another release (format {FORMAT} is read here)")
    files, results = found.get("files"), found.get("results")
    if not isinstance(files, dict) or not isinstance(results, list) or not results:
        raise BadInput(f"{path}, {CONTENTS_NAME}: it lists no results")
    for place in results:
        names = {f"{place}/{name}" for name in (PREDICTIONS_NAME, SCORES_NAME)}
        if not isinstance(place, str) or not PLACE.fullmatch(place) or not names <= files.keys():
            raise BadInput(f"{path}, {CONTENTS_NAME}: {place!r:.80} is no result of it")
    return found


def _content(archive: zipfile.ZipFile, contents: Mapping[str, Any], path: Path, name: str) -> bytes:
    content = _read(archive, path, name)
    if [len(content), hashlib.sha256(content).hexdigest()] != contents["files"][name]:
        raise BadInput(f"{path}, {name}: not the file that was packed; copy the archive again")
    return content


def _read(archive: zipfile.ZipFile, path: Path, name: str) -> bytes:
    with archive.open(name) as file:
        content = file.read(MOST_OF_ONE + 1)
    if len(content) > MOST_OF_ONE:
        raise BadInput(f"{path}, {name}: more than {MOST_OF_ONE:,} bytes; no file of its kind is that large")
    return content


def _parsed(content: bytes, where: str) -> dict[str, Any]:
    try:
        value = parse_json(content.decode())
    except ValueError as error:
        raise BadInput(f"{where}: not readable as JSON ({error}); copy the archive again") from None
    if not isinstance(value, dict):
        raise BadInput(f"{where}: expected a JSON object, found a {type(value).__name__}")
    return value


def _result(archive: zipfile.ZipFile, contents: Mapping[str, Any], path: Path, place: str) -> dict[str, Any]:
    """A result's ``scores.json``, with the keys that scoring again needs, of their kinds."""
    where = f"{path}, {place}/{SCORES_NAME}"
    read = _parsed(_content(archive, contents, path, f"{place}/{SCORES_NAME}"), where)
    found = {"bootstrap_samples": 0, "recipe": {}, "tables": {}, **read}
    for key, kind in KINDS.items():
        if not isinstance(found.get(key), kind):
            raise BadInput(f"{where}: '{key}' should be a {kind}, found {found.get(key)!r:.60}")
    return found


def _from_golds(task: Task, stated: Mapping[str, Any], predictions: Path) -> Again:
    from finetune.score.scores import read_rows

    return _compare(task, stated, read_rows(predictions, task), None)


def _from_data(
    task: Task, stated: Mapping[str, Any], predictions: Path, data: Path, samples: int,
    known: dict[tuple[str, ...], list[Example]], official: Path | None,
) -> Again:  # fmt: skip
    """Score against the file that was scored, found in ``data``; ``known`` keeps what was read."""
    from finetune.data.files import sha256
    from finetune.examples import Row
    from finetune.score.bootstrap import SEED, bootstrap
    from finetune.score.predictions import match, read_predictions

    recipe = stated["recipe"]
    split = "train" if recipe.get("held_out_share") else "dev"  # a part of train may have been scored in place of dev
    about = stated["data"].get(split) or {}
    gold = _find(task, split, str(about.get("file", "")), data)
    notes = [] if sha256(gold) == about.get("sha256") else [f"{gold} is not the file that was scored (another sha256)"]
    key = (task.name, stated["protocol"], split)
    if key not in known:
        known.clear()  # results are sorted by task
        known[key] = task.read(gold)
    examples = known[key]
    if stated["split"] != "dev":  # a part of the file: the one that was predicted
        guids = read_predictions(predictions).keys()
        examples = [example for example in examples if example.guid in guids]
    found = match(task, examples, predictions, gold)
    rows = [Row(e.guid, e.gold, *p) for e, p in zip(examples, found, strict=True)]
    wanted, intervals = stated["bootstrap_samples"], None
    if 1 < wanted <= samples:
        groups, seed = [task.group(example) for example in examples], recipe.get("split_seed", SEED)
        intervals = bootstrap(task, rows, groups, wanted, seed)
    if official is not None and stated["split"] == "dev":
        target = official / gold.name.removesuffix(".zst")
        task.write(gold, {row.guid: row.prediction for row in rows}, target)
    return _compare(task, stated, rows, intervals, notes)


def _find(task: Task, split: str, name: str, data: Path) -> Path:
    """The file of a task and split below ``data``; that of an own task by the name it had."""
    from finetune.data.files import find_file

    wanted = Path(name).name if task.own else task.files.of(split)
    path = find_file(data, wanted) if wanted else None
    if path is None:
        raise BadInput(f"{data}: {wanted or 'the file that was scored'} is missing (plain or .zst)")
    return path


def _compare(
    task: Task, stated: Mapping[str, Any], rows: Sequence[Row], intervals: Mapping[str, Any] | None,
    notes: Sequence[str] = (),
) -> Again:  # fmt: skip
    """What differs from what the archive states, to the last digit."""
    from finetune.score.scores import defined, defined_tables

    scores = defined(task.score(rows))
    made = json.loads(
        json.dumps({"scores": scores, "tables": defined_tables(task.tables(rows)), "intervals": intervals})
    )
    differences = list(notes) + ([f"n: {stated['n']} stated, {len(rows)} here"] if len(rows) != stated["n"] else [])
    for key in ("scores", "intervals") if intervals is not None else ("scores",):
        names = dict.fromkeys([*stated[key], *made[key]])
        changed = [name for name in names if stated[key].get(name) != made[key].get(name)]
        what = " (interval)" if key == "intervals" else ""
        differences += [
            f"{name}{what}: {_said(stated, key, name)} stated, {_said(made, key, name)} here" for name in changed
        ]
    was = stated.get("tables", {})
    differences += [f"table {name}" for name, rows in made["tables"].items() if was.get(name) != rows]
    return Again(stated, made["scores"], differences)


def _said(record: Mapping[str, Any], key: str, name: str) -> str:
    value = record[key].get(name)
    return "undefined" if value is None else json.dumps(value)


def tell_archive(path: Path, data: Path | None, samples: int, official: Path | None, json_file: Path | None) -> None:
    """``malmoi score ARCHIVE``: a line a metric, then how many results came out the same; code 1 unless all did."""
    import typer

    from corpus.documents.escaping import escape_controls

    typer.echo("task\tmodel\tsettings\tseed\tmetric\tvalue\tstated\tn")
    records, same = [], 0
    for again in score_archive(path, data, samples, official):
        stated = again.stated
        who = [stated["task"], stated["model"], stated.get("settings", ""), str(stated["seed"])]
        for metric, value in again.scores.items():
            was = stated["scores"].get(metric)
            typer.echo("\t".join(map(escape_controls, (*who, metric, _figure(value), _figure(was), str(stated["n"])))))
        name = ", ".join(filter(None, (*who[:3], f"seed {who[3]}")))
        for said in again.differences:
            typer.echo(escape_controls(f"{name}: {said}"), err=True)
        same += again.is_scored and not again.differences
        found = {"scores": again.scores, "stated": stated["scores"], "differences": again.differences}
        records.append({key: stated.get(key, "") for key in ("task", "model", "settings", "seed")} | found)
    typer.echo(f"{same} of {len(records)} results are the same to the last digit")
    if json_file is not None:
        json_file.write_text(json.dumps(records, ensure_ascii=False, indent=1) + "\n", "utf-8")
    if same < len(records):
        raise typer.Exit(1)


def _figure(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"
