"""The stages in order, where each one works, and what decides whether its result is there.

```
sample ─▶ corpus ─▶ tokenizer ─▶ tokens ─▶ pretrain ─▶ model ─▶ finetune ─▶ report
```
A stage's head holds its own recipe section and the keys of the stages (or the fingerprints of the files) it reads, so a
change runs again exactly what depends on it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from finetune.config import FRESH
from launch import manifest
from launch.errors import LaunchError
from launch.init_from import adopt_tokenizer, extend_adopted, model_files, tokenizer_files
from launch.manifest import Head, fingerprints
from launch.recipe import OWN_MODEL, SAMPLE, Recipe

if TYPE_CHECKING:
    from corpus.reading.inputs import Input

Stamps = dict[str, Callable[[], str]]  # what the user gives to read, by name, each with what takes its fingerprint
NO_TEXT = "corpus.inputs: set files, folders or globs, for example corpus.inputs=/data/text"
NO_KLUE_FILES = "finetune.data: set the folder of the KLUE files, or finetune.data=klue to download them"


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a run, in the folder of its name below ``runs/<recipe>/``."""

    name: str
    settings: Callable[[Recipe], dict[str, Any]]  # the part of the recipe that decides the result
    after: Callable[[Recipe], tuple[str, ...]]  # stages whose folders it reads
    work: Callable[[Recipe, Path, Path], dict[str, Any]]  # recipe, run folder and out to counts
    outside: Callable[[Recipe], Stamps] = lambda recipe: {}  # what the user gave to read; contradictions show here
    # whether a folder begun with these other settings may be gone on with; an error for users says what is in the way
    goes_on: Callable[[Recipe, Path, Mapping[str, Any]], bool] = lambda recipe, out, settings: False
    is_open: bool = False  # whether any other settings and inputs add to the folder, or make it anew as a page
    meets_another: Literal["refuses", "waits", "joins"] = "refuses"  # what a command does while one is at work in it


def run_sample(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from launch.sample.unpack import unpack

    return unpack(out, recipe.sample.share)


def run_corpus(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from corpus import run as stage
    from corpus.decontamination.benchmarks import find_benchmarks
    from launch.executors.mapper import engine_mapper
    from launch.own_texts import write_own_texts

    against = [*(str(_klue_folder(name, recipe, run)) for name in _benchmarks(recipe)), *write_own_texts(recipe, run)]
    inputs = stage.CorpusInputs(raw_inputs(recipe, run), find_benchmarks(against) if against else [])
    mapper, language = engine_mapper(recipe.launch), recipe.launch.resolve_language()
    return stage.run(recipe.corpus, inputs, out, workers=recipe.workers, map_units=mapper, language=language)


def run_tokenizer(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    size = recipe.tokenizer.extend
    if recipe.pretrain.init_from is not None and not size:
        return adopt_tokenizer(recipe.pretrain, out)
    from launch.executors.mapper import engine_mapper
    from tokenizer import run as stage

    resources: dict[str, Any] = {"workers": recipe.workers, "map_units": engine_mapper(recipe.launch)}
    if recipe.pretrain.init_from is not None:
        return extend_adopted(recipe.pretrain, run / "corpus", out, size, **resources)
    return stage.run(recipe.tokenizer, stage.TokenizerInputs(run / "corpus"), out, **resources)


def run_pack(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from launch.executors.mapper import engine_mapper
    from pretrain.pack import run as stage

    inputs = stage.PackInputs(corpus=run / "corpus", tokenizer=run / "tokenizer")
    return stage.run(recipe.pack, inputs, out, workers=recipe.workers, map_units=engine_mapper(recipe.launch))


def run_pretrain(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from pretrain import run as stage

    inputs = stage.PretrainInputs(tokens=run / "tokens", tokenizer=run / "tokenizer")
    return stage.run(recipe.pretrain, inputs, out, workers=recipe.workers)


def extends_pretraining(recipe: Recipe, out: Path, settings: Mapping[str, Any]) -> bool:
    """Whether the run in ``out`` goes on under another schedule; BadInput where that contradicts what is trained."""
    from pretrain.config import SCHEDULE_KEYS, by_path

    was, now = by_path(settings), by_path(recipe.pretrain.identity())
    if not {key for key in was.keys() | now.keys() if was.get(key) != now.get(key)} <= SCHEDULE_KEYS:
        return False
    from pretrain.checkpoint.found import require_extendable

    require_extendable(out / "checkpoints", recipe.pretrain)
    return True


def run_export(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from pretrain.checkpoint import export as stage

    inputs = stage.ExportInputs(pretrain=run / "pretrain", tokenizer=run / "tokenizer")
    return stage.run(recipe.pretrain, inputs, out, workers=recipe.workers)


def run_finetune(
    recipe: Recipe, run: Path, out: Path, work: Callable[..., dict[str, Any]] | None = None
) -> dict[str, Any]:
    """``work``: what is done with data and encoders; None: the recipe's own trainings."""
    from finetune import run as stage
    from finetune.registry import klue_tasks
    from launch.executors.mapper import engine_cluster

    data = recipe.finetune.data
    if not data and klue_tasks(recipe.finetune):
        raise LaunchError(NO_KLUE_FILES)
    folder = _klue_folder(data, recipe, run) if data else run  # own tasks alone look into no folder
    inputs = stage.FinetuneInputs(data=folder, models=finetune_models(recipe, run))
    if work is None:
        return stage.run(recipe.finetune, inputs, out, workers=recipe.workers, cluster=engine_cluster(recipe.launch))
    if recipe.launch.engine != "local":
        raise LaunchError("a search works on the machine that it is started on; give launch.engine=local")
    return work(recipe.finetune, inputs, out, workers=recipe.workers)


def finetune_models(recipe: Recipe, run: Path) -> dict[str, str]:
    """Encoders by their names in the results."""
    own = {OWN_MODEL: str(run / "model"), FRESH + OWN_MODEL: f"{FRESH}{run / 'model'}"}
    return {name: own.get(name, name) for name in recipe.finetune.models}


def run_report(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from launch.report import run as stage

    return stage.run(recipe, run, out)


def _klue_folder(name: str, recipe: Recipe, run: Path) -> Path:
    """The folder of official files that a name stands for; a Hub data set is written as such below ``klue/``."""
    from finetune.data.hub import materialize
    from finetune.registry import klue_tasks

    return run / "sample" / "klue" if name == SAMPLE else materialize(name, run / "klue", klue_tasks(recipe.finetune))


def _benchmarks(recipe: Recipe) -> list[str]:
    """What the corpus is decontaminated against: the recipe's list, or else the data of finetune."""
    names = recipe.corpus.benchmarks
    return names if names is not None else [recipe.finetune.data] if recipe.finetune.data else []


def raw_inputs(recipe: Recipe, run: Path | None = None) -> list[Input]:
    """The raw text of the recipe in a fixed order; the embedded sample is part of it where its ``run`` is given."""
    from corpus.reading.inputs import find_inputs

    settings = recipe.corpus
    own = [name for name in settings.inputs if name != SAMPLE]
    names = own if run is None else [str(run / "sample" / "corpus") if n == SAMPLE else n for n in settings.inputs]
    if run is not None and not names and not settings.sources:
        raise LaunchError(NO_TEXT)
    return find_inputs(names, settings.sources, settings.text_field, settings.encoding)


def corpus_outside(recipe: Recipe) -> Stamps:
    """Raw text, benchmark files, the model of names, the secret of keyed replacements (never written down)."""
    from corpus.pii.key import key_fingerprint, read_key
    from corpus.reading.inputs import input_state

    found: Stamps = {}
    for item in raw_inputs(recipe):
        found |= (
            fingerprints([item.path]) if isinstance(item.path, Path) else {str(item.path): partial(input_state, item)}
        )
    key = read_key(recipe.corpus.pii.key_file, recipe.corpus.pii.key_variable)
    found |= {"secret of corpus.pii": partial(key_fingerprint, key)} if key else {}
    if (model := recipe.corpus.pii.names.model) is not None:
        found |= fingerprints([model])
    own = fingerprints(own_files(recipe, "dev", "test")) if recipe.corpus.benchmarks is None else {}
    return found | klue_stamps(_benchmarks(recipe)) | own


def finetune_outside(recipe: Recipe) -> Stamps:
    """Data, own tasks' files among them, and encoders that are folders."""
    read = [*encoder_folders(recipe), *own_files(recipe, "train", "dev", "test")]
    return klue_stamps([recipe.finetune.data or None]) | fingerprints(read)


def encoder_folders(recipe: Recipe) -> list[Path]:
    """Encoders of the user's own; those of the Hub are left out."""
    return [path for name in recipe.finetune.models if (path := Path(name.removeprefix(FRESH))).is_dir()]


def own_files(recipe: Recipe, *splits: str) -> list[Path]:
    """The files of the own tasks that are trained."""
    own = [recipe.finetune.own[name] for name in recipe.finetune.tasks if name in recipe.finetune.own]
    found = [Path(path) for task in own for split in splits if (path := getattr(task, split)) is not None]
    if missing := [str(path) for path in found if not path.is_file()]:
        raise LaunchError(f"{', '.join(missing)}: no such file; correct the path in finetune.own")
    return found


def klue_stamps(names: Sequence[str | None]) -> Stamps:
    """What tells whether KLUE files have changed: digests of files, the commit of a Hub data set."""
    from corpus.reading.hub import HubSet, dataset_state
    from finetune.data.hub import find_copy

    found: Stamps = {}
    for name in names:
        if name is None or name == SAMPLE:
            continue
        if Path(name).exists():
            found |= fingerprints([Path(name)])
        elif (copy := find_copy(name)) is not None:
            found[str(copy)] = partial(dataset_state, HubSet(copy.name, None, copy.revision, "train"))
        else:
            raise LaunchError(f"{name}: no such file or folder; give the benchmark files with finetune.data=FOLDER")
    return found


def section(name: str) -> Callable[[Recipe], dict[str, Any]]:
    """A section of the recipe as JSON."""
    return lambda recipe: getattr(recipe, name).model_dump(mode="json")


def _tokenizer_settings(recipe: Recipe) -> dict[str, Any]:
    """How the vocabulary is trained, or whose it is."""
    adopted, size = recipe.pretrain.init_from, recipe.tokenizer.extend
    if adopted is None:
        return section("tokenizer")(recipe)
    return {"init_from": adopted, **({"extend": size} if size else {})}


def learns_pieces(recipe: Recipe) -> bool:
    """Whether the tokenizer stage reads the corpus: for a vocabulary, or for pieces to add to one."""
    size = recipe.tokenizer.extend
    return recipe.pretrain.init_from is None or (isinstance(size, int) and size > 0)


def _extended(recipe: Recipe) -> Stamps:
    """What was made by ``malmoi tokenizer extend`` before the run."""
    size = recipe.tokenizer.extend
    if not isinstance(size, str):
        return {}
    path = Path(size) / "extension.json"
    if not path.is_file():
        raise LaunchError(f"tokenizer.extend {size}: no {path.name} there; give a number, or an extended folder")
    return fingerprints([path])


def _sample(recipe: Recipe) -> tuple[str, ...]:
    return ("sample",) if recipe.uses_sample else ()


def _after_finetune(recipe: Recipe) -> tuple[str, ...]:
    is_own = any(name.removeprefix(FRESH) == OWN_MODEL for name in recipe.finetune.models)
    return (*_sample(recipe), *(("model",) if is_own else ()))


STAGES: tuple[Stage, ...] = (
    Stage("sample", section("sample"), lambda r: (), run_sample, meets_another="waits"),
    Stage("corpus", section("corpus"), _sample, run_corpus, corpus_outside),
    Stage(
        "tokenizer",
        _tokenizer_settings,
        lambda r: ("corpus",) if learns_pieces(r) else (),
        run_tokenizer,
        lambda r: tokenizer_files(r.pretrain) | _extended(r),
    ),
    Stage("tokens", section("pack"), lambda r: ("corpus", "tokenizer"), run_pack),
    Stage(
        "pretrain",
        lambda r: r.pretrain.identity(),
        lambda r: ("tokens", "tokenizer"),
        run_pretrain,
        lambda r: model_files(r.pretrain),
        extends_pretraining,
    ),
    Stage("model", lambda r: {}, lambda r: ("pretrain", "tokenizer"), run_export),
    Stage(
        "finetune",
        lambda r: r.finetune.model_dump(mode="json", exclude={"device", "price_per_hour", "search"}),
        _after_finetune,
        run_finetune,
        finetune_outside,
        is_open=True,  # every job knows what it was made from
        meets_another="joins",  # every job is claimed
    ),
    # the key of finetune follows from all stages before it
    Stage(
        "report",
        lambda r: {"name": r.name, "about": r.about},
        lambda r: ("finetune",),
        run_report,
        lambda r: fingerprints(encoder_folders(r)),  # results of an encoder that has changed are not shown
        is_open=True,
        meets_another="waits",
    ),
)
VERBS: dict[str, tuple[str, ...]] = {
    "sample": ("sample",),
    "corpus": ("sample", "corpus"),
    "tokenizer": ("tokenizer",),
    "pack": ("tokens",),
    "pretrain": ("pretrain", "model"),
    "finetune": ("sample", "finetune"),
    "search": ("sample", "finetune-search", "finetune"),  # launch.search
    "report": ("report",),
    "run": tuple(stage.name for stage in STAGES),
}


def stages_of(verb: str, recipe: Recipe) -> list[Stage]:
    """What a verb runs, in order; the sample only where the recipe uses it."""
    names = [name for name in VERBS[verb] if name != "sample" or recipe.uses_sample]
    return [stage for stage in STAGES if stage.name in names]


def require_stage(run: Path, name: str) -> Mapping[str, Any]:
    """The manifest of an earlier stage.

    Raises:
        LaunchError: it is not complete; the message names the verb that makes it.
    """
    found = manifest.read_manifest(run / name)
    if found is None:
        verb = next(verb for verb, names in VERBS.items() if name in names)
        raise LaunchError(f"{run / name}: not complete yet; run `malmoi {verb}` with the same recipe first")
    return found


def head_of(stage: Stage, recipe: Recipe, run: Path) -> Head:
    """Identity of the stage's result: its settings, the keys of earlier stages, the user's files."""
    inputs = {name: require_stage(run, name)["key"] for name in stage.after(recipe)}
    inputs |= {name: dataset_state() for name, dataset_state in stage.outside(recipe).items()}
    return Head(stage.name, stage.settings(recipe), inputs)


def is_done(stage: Stage, recipe: Recipe, run: Path) -> bool:
    """Whether the stage is complete, and nothing is to be added to what its folder holds."""
    if not stage.is_open:
        return (run / stage.name / manifest.MANIFEST_NAME).is_file()
    found = manifest.read_manifest(run / stage.name)
    return found is not None and head_by_now(stage, recipe, run, found).key == found["key"]


def head_by_now(stage: Stage, recipe: Recipe, run: Path, found: Mapping[str, Any]) -> Head:
    """Its head under this recipe, with the user's files as they were then."""
    inputs = dict(found.get("inputs", {}))
    for name in stage.after(recipe):
        if earlier := manifest.read_manifest(run / name):
            inputs[name] = earlier["key"]
    return Head(stage.name, stage.settings(recipe), inputs)


def may_go_on(stage: Stage, recipe: Recipe, run: Path, head: Head) -> bool:
    """Whether the folder of a stage was begun with other settings and is gone on with; nothing may stand on it yet."""
    found = manifest.read_head(run / stage.name)
    if found is None or found["key"] == head.key:
        return False
    if stage.is_open:
        return True
    if found.get("inputs") != head.inputs:
        return False
    if not stage.goes_on(recipe, run / stage.name, found.get("settings", {})):
        return False
    above = {stage.name}
    for later in STAGES:
        above |= {later.name} if above.intersection(later.after(recipe)) else set()
    made = [str(run / name) for name in sorted(above - {stage.name}) if manifest.read_head(run / name)]
    if made:
        raise LaunchError(f"{', '.join(made)}: made from {stage.name} as it is now; delete or move that to extend it")
    return True
