"""What a stage reads of the user's files: raw text, benchmarks, encoders, custom tasks, and their fingerprints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from corpus.pii.key import key_fingerprint, read_key
from corpus.reading.hub import HubSet, dataset_state
from corpus.reading.inputs import Input, find_inputs, input_state
from finetune.config import FRESH
from finetune.data.hub import find_copy, materialize
from finetune.registry import klue_tasks, task_of
from launch.errors import LaunchError
from launch.manifest import fingerprints
from launch.recipe import OWN_MODEL, SAMPLE, Recipe

Fingerprints = dict[str, Callable[[], str]]  # by name of the input: the function that computes its fingerprint
NO_TEXT = "corpus.inputs: set files, folders or globs, for example corpus.inputs=/data/text"
NO_KLUE_FILES = "finetune.data: set the folder of the KLUE files, or finetune.data=klue to download them"


def raw_inputs(recipe: Recipe, run: Path | None = None) -> list[Input]:
    """The raw text of the recipe in a fixed order, including the embedded sample if ``run`` is given."""
    settings = recipe.corpus
    if run is not None and not settings.inputs and not settings.sources:
        raise LaunchError(NO_TEXT)
    folder = {SAMPLE: str(run / "sample" / "corpus")} if run is not None else {}
    names = [folder.get(name, name) for name in settings.inputs if run is not None or name != SAMPLE]
    return find_inputs(names, settings.sources, settings.text_field, settings.encoding)


def corpus_inputs(recipe: Recipe) -> Fingerprints:
    """Raw text, benchmark files, the model for names, and the key of keyed replacements (never written down)."""
    inputs: Fingerprints = {}
    for item in raw_inputs(recipe):
        path = item.path
        inputs |= fingerprints([path]) if isinstance(path, Path) else {str(path): partial(input_state, item)}
    key = read_key(recipe.corpus.pii.key_file, recipe.corpus.pii.key_variable)
    inputs |= {"secret of corpus.pii": partial(key_fingerprint, key)} if key else {}
    if (model := recipe.corpus.pii.names.model) is not None:
        inputs |= fingerprints([model])
    custom = fingerprints(custom_files(recipe, "dev", "test")) if recipe.corpus.benchmarks is None else {}
    return inputs | klue_fingerprints(benchmark_names(recipe)) | custom


def finetune_inputs(recipe: Recipe) -> Fingerprints:
    """KLUE data, files of custom tasks, and encoders that are folders."""
    files = [*encoder_folders(recipe), *custom_files(recipe, "train", "dev", "test")]
    return klue_fingerprints([recipe.finetune.data or None]) | fingerprints(files)


def embed_files(recipe: Recipe) -> Fingerprints:
    """KLUE data, files of pairs, and the encoder if it is a folder."""
    section = recipe.embed
    files = [Path(name) for name in (*section.train, *section.evaluate)]
    if missing := [str(path) for path in files if not path.is_file()]:
        raise LaunchError(f"{', '.join(missing)}: no such file; correct the path in embed.train or embed.evaluate")
    encoder = [Path(section.model)] if section.model != OWN_MODEL and Path(section.model).is_dir() else []
    return klue_fingerprints([recipe.finetune.data or None]) | fingerprints([*files, *encoder])


def finetune_models(recipe: Recipe, run: Path) -> dict[str, str]:
    """Encoders by their names in the results."""
    own = {OWN_MODEL: str(run / "model"), FRESH + OWN_MODEL: f"{FRESH}{run / 'model'}"}
    return {name: own.get(name, name) for name in recipe.finetune.models}


def encoder_folders(recipe: Recipe) -> list[Path]:
    """Encoders that are local folders, not names on the Hub."""
    return [path for name in recipe.finetune.models if (path := Path(name.removeprefix(FRESH))).is_dir()]


def custom_files(recipe: Recipe, *splits: str) -> list[Path]:
    """The files of the custom tasks that the recipe trains."""
    tasks = [recipe.finetune.custom[name] for name in recipe.finetune.tasks if name in recipe.finetune.custom]
    files = [Path(path) for task in tasks for split in splits if (path := getattr(task, split)) is not None]
    if missing := [str(path) for path in files if not path.is_file()]:
        raise LaunchError(f"{', '.join(missing)}: no such file; correct the path in finetune.custom")
    return files


def custom_texts(recipe: Recipe) -> dict[str, list[tuple[str, str]]]:
    """Ids and dev and test texts of custom tasks; may hold personal data. {} if the recipe names its benchmarks."""
    if recipe.corpus.benchmarks is not None:
        return {}
    texts = {}
    for name in (task for task in recipe.finetune.tasks if task in recipe.finetune.custom):
        task = task_of(name, recipe.finetune)
        for split in ("dev", "test"):
            if path := task.files.of(split):
                values = ((one.guid, text) for one in task.read(Path(path)) for text in one.inputs.values())
                texts[f"{name}_{split}"] = list(dict.fromkeys(pair for pair in values if isinstance(pair[1], str)))
    return texts


def benchmark_names(recipe: Recipe) -> list[str]:
    """What the corpus is decontaminated against: the recipe's list, else the data of finetune."""
    names = recipe.corpus.benchmarks
    return names if names is not None else [recipe.finetune.data] if recipe.finetune.data else []


def klue_folder(name: str, recipe: Recipe, run: Path) -> Path:
    """The folder of official files for a name; a Hub data set is downloaded to ``klue/`` of the run."""
    return run / "sample" / "klue" if name == SAMPLE else materialize(name, run / "klue", klue_tasks(recipe.finetune))


def klue_fingerprints(names: Sequence[str | None]) -> Fingerprints:
    """Digests of KLUE files, or the commit of a Hub data set."""
    digests: Fingerprints = {}
    for name in names:
        if name is None or name == SAMPLE:
            continue
        if Path(name).exists():
            digests |= fingerprints([Path(name)])
        elif (copy := find_copy(name)) is not None:
            digests[str(copy)] = partial(dataset_state, HubSet(copy.name, None, copy.revision, "train"))
        else:
            raise LaunchError(f"{name}: no such file or folder; correct finetune.data or corpus.benchmarks")
    return digests


def extension_inputs(recipe: Recipe) -> Fingerprints:
    """The record of ``malmoi tokenizer extend``, if the recipe uses a tokenizer that it made."""
    folder = recipe.tokenizer.extend
    if not isinstance(folder, str):
        return {}
    path = Path(folder) / "extension.json"
    if not path.is_file():
        raise LaunchError(f"tokenizer.extend {folder}: no {path.name} there; set a number, or an extended folder")
    return fingerprints([path])
