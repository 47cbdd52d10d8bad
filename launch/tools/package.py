"""``malmoi package`` and ``malmoi score ARCHIVE``: results of a run in an archive, scored again elsewhere.

```
package.json                                                    manifest: results, size and sha256 of each file
finetune/<task>/<model>/[<settings>/]seed-<n>/{predictions.jsonl, scores.json}
```
Equal results give equal bytes. Gold labels belong to KLUE (CC BY-SA 4.0) and are included only on request; texts and
paths of this machine never. An archive is not trusted: it has a size limit and the digests of the manifest, and no
entry is unpacked under its own name.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corpus.documents.atomic_files import atomic_file, digest_matches, parse_json, with_digest
from corpus.documents.errors import BadInput
from corpus.documents.escaping import escape_controls
from launch.console import set_up_console
from launch.errors import LaunchError

if TYPE_CHECKING:
    from finetune.task import Task

FORMAT = 2
MANIFEST, PREDICTIONS, SCORES = "package.json", "predictions.jsonl", "scores.json"
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time of the format
MAX_BYTES = 4 << 30  # unpacked; 64 trainings of all eight tasks have about 2 GB
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OverflowError, UnicodeError)
PUBLIC_KEYS = (  # of a result: what has no paths and no texts
    "task", "settings", "seed", "protocol", "split", "is_official_dev", "n", "n_train", "headline", "scores",
    "intervals", "bootstrap_samples", "trivial", "tables", "data", "own", "method", "selected", "versions", "device",
    "seconds",
)  # fmt: skip
RESULT_TYPES: Mapping[str, type] = {  # of the keys that scoring needs
    "task": str, "model": str, "seed": int, "n": int, "split": str, "protocol": str, "scores": dict, "data": dict,
}  # fmt: skip
MANIFEST_TYPES: Mapping[str, type] = {"format": int, "golds": bool, "results": list, "files": dict}
LICENCE = (
    "Predicted answers of KLUE-MRC are excerpts of its passages, and values of WoS are words of its dialogues. The "
    "texts and labels of KLUE are by Park et al. 2021 (arXiv 2105.09680) under CC BY-SA 4.0: name the authors and keep "
    "the licence when you pass them on."
)


def package(
    name: Annotated[str, typer.Argument(metavar="RUN", help="Recipe name, or the folder of a run.")],
    target: Annotated[
        Path | None, typer.Argument(metavar="[OUT.zip]", help="Output file. Default: <run>-predictions.zip.")
    ] = None,
    with_golds: Annotated[bool, typer.Option("--with-golds", help="Include gold labels (CC BY-SA 4.0).")] = False,
    runs: Annotated[Path, typer.Option("--runs", help="Directory of the run folders.")] = Path("runs"),
) -> None:
    """Pack the predictions and scores of a run into one archive; `malmoi score` scores it again elsewhere.

    Example:  malmoi package smoke    then    malmoi score smoke-predictions.zip --data klue
    """
    set_up_console()
    run = find_run(name, runs)
    target = target or Path(f"{run.resolve().name}-predictions.zip")
    if target.suffix != ".zip":
        raise LaunchError(f"{target}: the archive is a zip file; give it a name that ends in .zip")
    results = write_package(run, target, with_golds=with_golds)
    golds = "with gold labels" if with_golds else "without gold labels"
    typer.echo(f"{target}: {results:,} results, {golds}, {target.stat().st_size:,} bytes")


def find_run(name: str, runs: Path) -> Path:
    """The folder with ``finetune/``: ``name`` itself, or the run of this name or recipe file in ``runs``."""
    folder = Path(name)
    if folder.suffix in (".yaml", ".yml"):
        from launch.recipe import load_recipe

        folder = runs / load_recipe(name).name
    for candidate in (folder, runs / name):
        if (candidate / "finetune").is_dir():
            return candidate
    raise LaunchError(f"{name}: no finetune folder here or in {runs / name}; give a recipe that was fine-tuned")


def write_package(run: Path, target: Path, *, with_golds: bool = False) -> int:
    """Write the archive atomically and return its number of results, without those of encoders that have changed."""
    from finetune.queue.jobs import folder_name
    from launch.report.results import read_results

    results = read_results(run)
    if results.stale:
        typer.echo(results.stale_note.replace("Not shown", "Not packed"), err=True)
    if not results.scores:
        raise LaunchError(f"{run / 'finetune'}: no finished results; run `malmoi finetune` first")
    names = _public_names(sorted({result["model"] for result in results.scores}))
    files: dict[str, bytes] = {}
    places = []
    for result in results.scores:
        task, _, *rest = Path(result["folder"]).relative_to(run / "finetune").parts
        place = "/".join(("finetune", task, folder_name(names[result["model"]]), *rest))
        places.append(place)
        files[f"{place}/{PREDICTIONS}"] = _predictions(result, with_golds)
        public = {key: result[key] for key in PUBLIC_KEYS if key in result}
        recipe = {key: value for key, value in result.get("recipe", {}).items() if key == "held_out_share"}
        files[f"{place}/{SCORES}"] = _json({"model": names[result["model"]], **public, "recipe": recipe})
    manifest = {
        "format": FORMAT, "malmoi": version("malmoi"), "run": run.resolve().name, "golds": with_golds,
        "licence": LICENCE, "results": places,
        "files": {name: _size_and_digest(content) for name, content in sorted(files.items())},
    }  # fmt: skip
    files[MANIFEST] = _json(with_digest(manifest))
    with atomic_file(target) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, ZIP_EPOCH)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, files[name], compresslevel=9)
    return len(places)


def _public_names(models: Sequence[str]) -> dict[str, str]:
    """The name of each encoder without its path; equal names are numbered."""
    from finetune.saved_models.card import shown_encoder

    names: dict[str, str] = {}
    for model in models:
        name = shown_encoder(model)
        candidates = [name, *(f"{name}-{n}" for n in range(2, len(models) + 2))]
        names[model] = next(candidate for candidate in candidates if candidate not in names.values())
    return names


def _predictions(result: Mapping[str, Any], with_golds: bool) -> bytes:
    """The predictions of a result; ``BadInput`` if they do not give its scores."""
    from finetune.score.scores import defined, read_rows

    path = Path(result["folder"]) / PREDICTIONS
    task = _task_of(result, result["folder"])
    rows = read_rows(path, task)
    if len(rows) != result["n"] or defined(task.score(rows)) != result["scores"]:
        raise BadInput(f"{path}: does not give the scores in scores.json; delete {path.parent} and train again")
    keys = ("guid", "gold", "prediction", "scores") if with_golds else ("guid", "prediction", "scores")
    records = ({key: value for key, value in row._asdict().items() if key in keys} for row in rows)
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def _task_of(result: Mapping[str, Any], place: str) -> Task:
    """The task of a result under its protocol; ``BadInput`` with ``place`` if there is no such task."""
    from finetune.registry import TASKS

    if result.get("own") is not None:
        from finetune.tasks.custom.task import custom_task

        return custom_task(result["own"], place)
    if result["task"] not in TASKS:
        raise BadInput(f"{place}: unknown task {result['task']!r:.60}")
    return TASKS[result["task"]].with_protocol("klue-baseline" if result["protocol"] == "klue-baseline" else "malmoi")


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def _size_and_digest(content: bytes) -> list[Any]:
    return [len(content), hashlib.sha256(content).hexdigest()]


def print_archive_scores(path: Path, data: Path | None) -> None:
    """``malmoi score ARCHIVE``: a line for each result and each difference; exit code 1 if there are differences."""
    same = total = 0
    for name, scores, differences in score_archive(path, data):
        values = ", ".join(f"{metric} {'undefined' if x is None else f'{x:.4f}'}" for metric, x in scores.items())
        for line in (values, *differences) if scores else differences:
            typer.echo(escape_controls(f"{name}: {line}"))
        same, total = same + (not differences), total + 1
    typer.echo(f"{same} of {total} results are the same to the last digit")
    if same < total:
        raise typer.Exit(1)


def score_archive(path: Path, data: Path | None) -> Iterator[tuple[str, dict[str, float | None], list[str]]]:
    """Name, scores and differences from the stated scores of each result; ``BadInput`` for a damaged archive.

    Args:
        data: folder of the official files; None: use the gold labels of the archive.
    """
    try:
        with zipfile.ZipFile(path) as archive, TemporaryDirectory(prefix="malmoi-score-") as folder:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_BYTES:
                raise BadInput(f"{path}: more than {MAX_BYTES:,} bytes; not read")
            manifest = _read_manifest(archive, path)
            if data is None and not manifest["golds"]:
                raise BadInput(f"{path}: no gold labels in this archive; add --data with the folder of the KLUE files")
            predictions = Path(folder) / PREDICTIONS
            for place in manifest["results"]:
                stated, lines = (
                    _read_file(archive, manifest, path, f"{place}/{name}") for name in (SCORES, PREDICTIONS)
                )
                result = _parse(stated, f"{path}, {place}/{SCORES}", RESULT_TYPES)
                predictions.write_bytes(lines)
                name = f"{result['task']}, {result['model']}, {result.get('settings') or 'recipe settings'}"
                try:
                    scores, differences = _rescore(result, predictions, f"{path}, {place}", data)
                except BadInput as error:
                    scores, differences = {}, [str(error).replace(str(predictions), f"{place}/{PREDICTIONS}")]
                yield f"{name}, seed {result['seed']}", scores, differences
    except DAMAGED as error:
        raise BadInput(f"{path}: not a readable zip archive ({error}); copy it again") from None


def _read_manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    """The manifest, which lists exactly the entries of the archive."""
    if MANIFEST not in archive.namelist():
        raise BadInput(f"{path}: {MANIFEST} is missing; give an archive of `malmoi package`")
    manifest = _parse(archive.read(MANIFEST), f"{path}, {MANIFEST}", MANIFEST_TYPES)
    if manifest["format"] != FORMAT or not digest_matches(manifest) or not manifest["results"]:
        raise BadInput(f"{path}, {MANIFEST}: changed, or written by another release (expected format {FORMAT})")
    if sorted(archive.namelist()) != sorted([*manifest["files"], MANIFEST]):
        raise BadInput(f"{path}: its files are not those that {MANIFEST} lists; copy it again")
    return manifest


def _read_file(archive: zipfile.ZipFile, manifest: Mapping[str, Any], path: Path, name: str) -> bytes:
    content = archive.read(name) if name in manifest["files"] else b""
    if _size_and_digest(content) != manifest["files"].get(name):
        raise BadInput(f"{path}, {name}: not the file that was packed; copy the archive again")
    return content


def _parse(content: bytes, where: str, types: Mapping[str, type]) -> dict[str, Any]:
    """A JSON object with values of these types."""
    try:
        record = dict(parse_json(content.decode()))
    except (ValueError, TypeError) as error:
        raise BadInput(f"{where}: not a JSON object ({error}); copy the archive again") from None
    for key, kind in types.items():
        if not isinstance(record.get(key), kind):
            raise BadInput(f"{where}: '{key}' should be a {kind.__name__}, found {record.get(key)!r:.60}")
    return record


def _rescore(
    stated: Mapping[str, Any], predictions: Path, where: str, data: Path | None
) -> tuple[dict[str, float | None], list[str]]:
    """Score one result with the golds of the archive, or with the official file in ``data``."""
    from finetune.data.files import find_file, sha256
    from finetune.examples import Row
    from finetune.score.predictions import match, read_predictions
    from finetune.score.scores import defined, read_rows

    task, differences = _task_of(stated, where), []
    if data is None:
        rows = read_rows(predictions, task)
    else:
        recipe = stated.get("recipe")  # a part of train may have been scored
        split = "train" if isinstance(recipe, dict) and recipe.get("held_out_share") else "dev"
        scored = stated["data"].get(split) or {}
        name = Path(str(scored.get("file", ""))).name if task.custom else task.files.of(split)
        gold = find_file(data, name) if name else None
        if gold is None:
            raise BadInput(f"{data}: {name or 'the scored file'} is missing (plain or .zst)")
        if sha256(gold) != scored.get("sha256"):
            differences.append(f"{gold} is not the file that was scored (another sha256)")
        examples = task.read(gold)
        if stated["split"] != "dev":  # a part of the file: the examples that have predictions
            guids = read_predictions(predictions).keys()
            examples = [example for example in examples if example.guid in guids]
        rows = [
            Row(e.guid, e.gold, *p) for e, p in zip(examples, match(task, examples, predictions, gold), strict=True)
        ]
    scores = defined(task.score(rows))
    pairs = {"n": (stated["n"], len(rows))}
    pairs |= {metric: (stated["scores"].get(metric), scores.get(metric)) for metric in {**stated["scores"], **scores}}
    return scores, differences + [f"{key}: {was} stated, {now} here" for key, (was, now) in pairs.items() if was != now]
