"""``malmoi package``: the predictions and scores of a run in one archive that ``malmoi score`` scores again elsewhere.

```
package.json                                                    manifest: results, size and sha256 of each file
finetune/<task>/<model>/[<settings>/]seed-<n>/{predictions.jsonl, scores.json}
```
Equal results give equal bytes: entries are sorted and have no times. Gold labels belong to KLUE (CC BY-SA 4.0) and are
included only on request. Texts and paths of this machine are never included.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corpus.documents.atomic_files import atomic_file, with_digest
from corpus.documents.errors import BadInput
from launch.console import set_up_console
from launch.errors import LaunchError

if TYPE_CHECKING:
    from finetune.task import Task

FORMAT = 2
MANIFEST, PREDICTIONS, SCORES = "package.json", "predictions.jsonl", "scores.json"
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time of the format
KEYS_WITH_PATHS = ("members", "recipe", "hyperparameters")  # of a result
LOCAL_PATH = re.compile(r"(?P<fresh>fresh:)?(?:/|~|\.{1,2}/).+")
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
    """The folder with ``finetune/``: ``name`` itself, or the run of this recipe in ``runs``."""
    folder = Path(name)
    if folder.suffix in (".yaml", ".yml"):
        from launch.recipe import load_recipe

        folder = runs / load_recipe(name).name
    for candidate in (folder, runs / name):
        if (candidate / "finetune").is_dir():
            return candidate
    raise LaunchError(f"{name}: no finetune folder here or in {runs / name}; give a recipe that was fine-tuned")


def write_package(run: Path, target: Path, *, with_golds: bool = False) -> int:
    """Write the archive atomically and return its number of results.

    Results of encoders that have changed since are left out, as in the report.
    """
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
        place = _place_of(result, names, run / "finetune")
        places.append(place)
        files[f"{place}/{PREDICTIONS}"] = _predictions(result, with_golds)
        public = {key: value for key, value in result.items() if key not in ("folder", "errors")}
        public |= {key: without_paths(result[key]) for key in KEYS_WITH_PATHS if key in result}
        files[f"{place}/{SCORES}"] = _json({**public, "model": names[result["model"]]})
    manifest = {
        "format": FORMAT, "malmoi": version("malmoi"), "run": run.resolve().name, "golds": with_golds,
        "licence": LICENCE, "results": places,
        "files": {name: [len(content), sha256_of(content)] for name, content in sorted(files.items())},
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


def _place_of(result: Mapping[str, Any], names: Mapping[str, str], root: Path) -> str:
    from finetune.queue.jobs import folder_name

    task, _, *rest = Path(result["folder"]).relative_to(root).parts
    return "/".join(("finetune", task, folder_name(names[result["model"]]), *rest))


def without_paths(value: Any) -> Any:
    """Settings in which the paths of files and encoders are cut to their last part."""
    if isinstance(value, Mapping):
        return {key: without_paths(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_paths(inner) for inner in value]
    match = LOCAL_PATH.fullmatch(value) if isinstance(value, str) else None
    return f"{match['fresh'] or ''}{Path(value).name}" if match else value


def _predictions(result: Mapping[str, Any], with_golds: bool) -> bytes:
    """The predictions of a result; ``BadInput`` if they do not give its scores."""
    from finetune.score.scores import defined, read_rows

    path = Path(result["folder"]) / PREDICTIONS
    task = task_of(result, result["folder"])
    rows = read_rows(path, task)
    if len(rows) != result["n"] or as_read(defined(task.score(rows))) != result["scores"]:
        raise BadInput(f"{path}: does not give the scores in scores.json; delete {path.parent} and train again")
    keys = ("guid", "gold", "prediction", "scores") if with_golds else ("guid", "prediction", "scores")
    records = ({key: value for key, value in row._asdict().items() if key in keys} for row in rows)
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def task_of(result: Mapping[str, Any], place: str) -> Task:
    """The task of a result under its protocol; ``BadInput`` with ``place`` if there is no such task."""
    from finetune.registry import TASKS
    from finetune.task_names import TASK_NAMES

    if result.get("own") is not None:
        from finetune.tasks.custom.task import custom_task

        return custom_task(result["own"], place)
    if result["task"] not in TASK_NAMES:
        raise BadInput(f"{place}: unknown task {result['task']!r:.60}")
    return TASKS[result["task"]].with_protocol("klue-baseline" if result["protocol"] == "klue-baseline" else "malmoi")


def as_read(value: Any) -> Any:
    """A value as it would be read from a JSON file."""
    return json.loads(json.dumps(value))


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
