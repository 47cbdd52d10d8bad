"""``malmoi package``: the predictions of a run in one archive that ``malmoi score`` scores again elsewhere.

```
README.md  package.json  recipe.yaml
finetune/<task>/<model>/[<settings>/]seed-<n>/{predictions.jsonl, scores.json, card.md}
```
Unpacked it is a folder of results like a run's. Equal results give equal bytes: entries are sorted and carry no times.
Gold labels stay at home unless they are asked for: they are KLUE's (CC BY-SA 4.0), and whoever scores has them. Texts,
test files, errors with their texts and places of this machine never go in.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corpus.documents.atomic_files import atomic_file, with_digest
from corpus.documents.errors import BadInput
from launch.console import Table, markdown_table, set_up_console
from launch.errors import LaunchError
from launch.manifest import read_manifest

if TYPE_CHECKING:
    from finetune.task import Task

FORMAT = 1
CONTENTS_NAME, CARD_NAME, RECIPE_NAME = "package.json", "README.md", "recipe.yaml"
PREDICTIONS_NAME, SCORES_NAME, MODEL_CARD_NAME = "predictions.jsonl", "scores.json", "card.md"
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the first time that a zip archive can name
HOLD_PLACES = ("members", "recipe", "hyperparameters")  # of a result, that may
PLACE = re.compile(r"(?P<before>fresh:)?(?:/|~|\.{1,2}/).+")
LICENCE = (
    "Predicted answers of KLUE-MRC are excerpts of its passages, and values of WoS words of its dialogues. The texts "
    "and labels of KLUE are its authors' (Park et al. 2021, arXiv 2105.09680), under CC BY-SA 4.0; whoever passes "
    "these on names them and keeps that licence."
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A result to pack: its folder, the content of its ``scores.json``, and its folder in the archive."""

    source: Path
    result: Mapping[str, Any]  # its model by a name without a place
    place: str
    given: str  # the model as the recipe names it

    @property
    def who(self) -> str:
        """``model, slow, seed 1``."""
        named = (self.result["model"], self.result.get("settings", ""), f"seed {self.result['seed']}")
        return ", ".join(filter(None, named))


def package(
    name: Annotated[str, typer.Argument(metavar="RUN", help="A recipe that was run, or the folder of a run.")],
    target: Annotated[
        Path | None, typer.Argument(metavar="[OUT.zip]", help="Default: <name of the run>-predictions.zip, here.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; repeatable.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this model; repeatable.")] = None,
    settings: Annotated[list[str] | None, typer.Option(help='Only these settings, "" the first; repeatable.')] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Only this seed; repeatable.")] = None,
    with_golds: Annotated[bool, typer.Option("--with-golds", help="Pack the gold labels, too (CC BY-SA 4.0).")] = False,
    runs: Annotated[Path, typer.Option("--runs", help="Folder that holds the run folders.")] = Path("runs"),
) -> None:
    """Pack the predictions of a run with scores, settings, versions and cards; `malmoi score` scores them elsewhere.

    Example:  malmoi package smoke    then    malmoi score smoke-predictions.zip --data klue
    """
    set_up_console()
    from finetune.task_names import full_name

    run = find_run(name, runs)
    target = target or Path(f"{run.resolve().name}-predictions.zip")
    if target.suffix != ".zip":
        raise LaunchError(f"{target}: the archive is a zip file; give it a name that ends in .zip")
    entries = find_entries(run)
    own = {entry.result["task"] for entry in entries if entry.result.get("own")}
    tasks = [full_name(one, own) for one in task or ()]
    entries = chosen(entries, {"task": tasks, "model": model or (), "settings": settings or (), "seed": seed or ()})
    for line in write_package(run, entries, target, with_golds=with_golds):
        typer.echo(line)


def find_run(name: str, runs: Path) -> Path:
    """The folder that holds ``finetune/``: itself, or a recipe's below ``runs``; ``LaunchError`` without one."""
    given = Path(name)
    if given.suffix in (".yaml", ".yml"):
        from launch.recipe import load_recipe

        given = runs / load_recipe(name).name
    for folder in (given, runs / name):
        if (folder / "finetune").is_dir():
            return folder
    raise LaunchError(f"{name}: no finetune folder there, nor in {runs / name}; give a recipe that was fine-tuned")


def find_entries(run: Path) -> list[Entry]:
    """All finished results of a run, tasks in the paper's order, under names without places of this machine; those of
    encoders that have changed since are left out, as in the report."""
    from finetune.queue.jobs import folder_name
    from finetune.saved_models.card import shown_encoder
    from finetune.task_names import sort_key
    from launch.report.results import read_results

    root, results = run / "finetune", read_results(run)
    if results.stale:
        typer.echo(results.stale_note.replace("Not shown", "Left out"), err=True)
    names = _public_names(sorted({result["model"] for result in results.scores}), shown_encoder)
    entries = []
    for result in results.scores:
        folder, shown = Path(result["folder"]), names[result["model"]]
        task, _, *rest = folder.relative_to(root).parts
        place = "/".join(("finetune", task, folder_name(shown), *rest))
        public = {key: without_places(result[key]) for key in HOLD_PLACES if key in result}
        own = {key: value for key, value in result.items() if key not in ("folder", "errors")}
        entries.append(Entry(folder, {**own, **public, "model": shown}, place, given=result["model"]))
    if not entries:
        raise LaunchError(f"{root}: no finished results; run `malmoi finetune` first")
    return sorted(entries, key=lambda e: (sort_key(e.result["task"]), e.place))


def _public_names(models: Sequence[str], shown: Callable[[str], str]) -> dict[str, str]:
    """Each encoder's name without its place; those that become alike are numbered."""
    names: dict[str, str] = {}
    for model in models:
        alike = [shown(model), *(f"{shown(model)}-{n}" for n in range(2, len(models) + 2))]
        names[model] = next(name for name in alike if name not in names.values())
    return names


def without_places(value: Any) -> Any:
    """Settings without where files and encoders lie on this machine: only their names."""
    if isinstance(value, Mapping):
        return {key: without_places(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_places(inner) for inner in value]
    found = PLACE.fullmatch(value) if isinstance(value, str) else None
    return f"{found['before'] or ''}{Path(value).name}" if found else value


def chosen(entries: Sequence[Entry], wanted: Mapping[str, Sequence[Any]]) -> list[Entry]:
    """The entries with one of the values wanted under each key, all where none is named; ``LaunchError`` with what
    there is for a value that none has."""

    def values(entry: Entry, key: str) -> set[Any]:
        return {entry.result.get(key, ""), *([entry.given] if key == "model" else [])}

    kept = list(entries)
    for key, named in wanted.items():
        known = {entry.result.get(key, "") for entry in entries}
        if unknown := [one for one in named if not any(one in values(entry, key) for entry in entries)]:
            there = ", ".join(map(repr, sorted(known)))
            raise LaunchError(f"--{key} {unknown[0]}: no result has it; there are {there}")
        kept = [entry for entry in kept if not named or values(entry, key) & set(named)]
    if not kept:
        raise LaunchError("no result has all that was named; name less")
    return kept


def write_package(run: Path, entries: Sequence[Entry], target: Path, *, with_golds: bool = False) -> list[str]:
    """Write the archive, whole or not at all; returns what to tell: how much is in it, and what is missing."""
    files: dict[str, bytes] = {}
    for entry in entries:
        files |= dict(_files_of(entry, with_golds))
    missing = find_missing(entries)
    if (recipe := _recipe(run)) is not None:
        files[RECIPE_NAME] = recipe
    files[CARD_NAME] = _card(run, entries, missing, with_golds).encode()
    contents = {
        "format": FORMAT,
        "malmoi": version("malmoi"),
        "run": run.resolve().name,
        "golds": with_golds,
        "missing": missing,
        "results": [entry.place for entry in entries],
        "files": {name: [len(content), _sha256(content)] for name, content in sorted(files.items())},
    }
    files[CONTENTS_NAME] = _json(with_digest(contents))
    with atomic_file(target) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name in sorted(files):
            about = zipfile.ZipInfo(name, LONG_AGO)
            about.compress_type, about.create_system, about.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(about, files[name], compresslevel=9)
    golds = "with gold labels" if with_golds else "without gold labels"
    lines = [f"{target}: {len(entries):,} results, {golds}, {target.stat().st_size:,} bytes"]
    return [*lines, *([f"missing: {'; '.join(missing)}"] if missing else [])]


def _files_of(entry: Entry, with_golds: bool) -> Iterator[tuple[str, bytes]]:
    """The files of a result by their names in the archive; ``BadInput`` where its predictions are not those that were
    scored."""
    from finetune.score.scores import defined, read_rows

    path, result = entry.source / PREDICTIONS_NAME, entry.result
    task = task_of_result(result, str(entry.source))
    rows = read_rows(path, task)
    if len(rows) != result["n"] or _plain(defined(task.score(rows))) != result["scores"]:
        raise BadInput(f"{path}: does not give the scores beside it; delete {entry.source} and train again")
    kept = ("guid", "gold", "prediction", "scores") if with_golds else ("guid", "prediction", "scores")
    records = ({key: value for key, value in row._asdict().items() if key in kept} for row in rows)
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    yield f"{entry.place}/{PREDICTIONS_NAME}", text.encode()
    yield f"{entry.place}/{SCORES_NAME}", _json(result)
    card = entry.source / "model" / CARD_NAME
    if card.is_file():
        yield f"{entry.place}/{MODEL_CARD_NAME}", card.read_bytes()


def task_of_result(result: Mapping[str, Any], place: str) -> Task:
    """The task of a result, under its protocol; ``BadInput`` with ``place`` where there is none."""
    from finetune.registry import TASKS
    from finetune.task_names import TASK_NAMES

    if result.get("own") is not None:
        from finetune.tasks.own import own_task

        return own_task(result["own"], place)
    if result["task"] not in TASK_NAMES:
        raise BadInput(f"{place}: no task is called {result['task']!r:.60}")
    return TASKS[result["task"]].with_protocol("klue-baseline" if result["protocol"] == "klue-baseline" else "malmoi")


def find_missing(entries: Sequence[Entry]) -> list[str]:
    """KLUE tasks without any result, and what single trainings lack: ``wos``, ``model, seed 2 (klue-re)``."""
    from finetune.task_names import TASK_NAMES

    by_who: dict[str, set[str]] = {}
    for entry in entries:
        by_who.setdefault(entry.who, set()).add(entry.result["task"])
    anywhere = set[str]().union(*by_who.values())
    if anywhere.isdisjoint(TASK_NAMES):  # own tasks alone
        return []
    lacks = {who: [task for task in TASK_NAMES if task in anywhere - has] for who, has in by_who.items()}
    some = [f"{who} ({', '.join(tasks)})" for who, tasks in lacks.items() if tasks]
    return [task for task in TASK_NAMES if task not in anywhere] + some


def _recipe(run: Path) -> bytes | None:
    """The resolved settings of the last fine-tuning, places of files and encoders cut to their names; None where it
    was never finished."""
    import yaml

    from finetune.saved_models.card import shown_encoder

    manifest = read_manifest(run / "finetune")
    if manifest is None:
        return None
    found = without_places(manifest["settings"])
    if isinstance(found.get("data"), str):
        found["data"] = shown_encoder(found["data"])
    found["models"] = [shown_encoder(name) for name in found["models"]]
    for task in (custom := {name: dict(task) for name, task in (found.get("custom") or {}).items()}).values():
        task |= {split: Path(task[split]).name for split in ("train", "dev", "test") if task.get(split)}
    recipe = {"name": run.resolve().name, "finetune": {**found, **({"custom": custom} if custom else {})}}
    return yaml.safe_dump(recipe, allow_unicode=True, sort_keys=False).encode()


def _card(run: Path, entries: Sequence[Entry], missing: Sequence[str], with_golds: bool) -> str:
    from launch.report.results import weights_of

    def row(entry: Entry) -> list[str]:
        found, metric = entry.result, entry.result["headline"]
        score, interval = found["scores"][metric], found["intervals"].get(metric)
        return [
            found["task"], entry.who, found["protocol"], metric, "–" if score is None else f"{score:.2f}",
            f"{interval[0]:.1f} to {interval[1]:.1f}" if interval else "–", f"{found['n']:,}", found["split"],
            weights_of(dict(found)),
        ]  # fmt: skip

    heads = ["task", "model", "protocol", "metric", "score", "95 % interval", "n", "scored on", "weights"]
    files = dict.fromkeys(
        (entry.result["task"], file["file"], file.get("version", "unknown"), file["sha256"])
        for entry in entries
        for file in entry.result.get("data", {}).values()
    )
    golds = "The gold labels are in it." if with_golds else "Gold labels are not in it."
    parts = [
        f"# Predictions of {run.resolve().name}",
        f"{len(entries):,} results, packed by malmoi {version('malmoi')}. To score them again, with the KLUE files:",
        "```\nmalmoi score ARCHIVE.zip --data KLUE_FOLDER\n```",
        *([f"Missing: {'; '.join(missing)}."] if missing else []),
        markdown_table(Table(heads, [row(entry) for entry in entries], numbers=(4, 6), title="Scores, 0 to 100")),
        markdown_table(Table(["task", "file", "version", "sha256"], [list(f) for f in files], title="Data")),
        f"**Licence**\n\n{golds} {LICENCE}",
        "Versions of each result, its hyperparameters and what was selected on what stand in its scores.json; "
        f"{CONTENTS_NAME} has the digest of every file.",
    ]
    return "\n\n".join(parts) + "\n"


def _plain(value: Any) -> Any:
    """A value as it comes back from a JSON file."""
    return json.loads(json.dumps(value))


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
