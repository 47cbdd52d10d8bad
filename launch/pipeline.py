"""The stages in order, where each one works, and the one way in which any of them is run.

```
sample ─▶ corpus ─▶ tokenizer ─▶ tokens ─▶ pretrain ─▶ model ─▶ finetune ─▶ report
```
A stage's head holds its own recipe section and the keys of the stages (or the fingerprints of the files) it reads, so a
change runs again exactly what depends on it, and nothing else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finetune.config import FRESH
from launch import manifest
from launch.console import peak_memory_mib, rank
from launch.errors import LaunchError
from launch.manifest import Head, fingerprints, held
from launch.recipe import SAMPLE, Recipe

if TYPE_CHECKING:
    from corpus.reading.inputs import Input

log = logging.getLogger(__name__)
OWN_MODEL = "model"  # the encoder that the run itself pretrains


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a run.

    Fields:
        name: the stage and its folder below ``runs/<recipe>/``.
        settings: the part of the recipe that decides the result.
        after: stages whose folders it reads.
        outside: what the user gave it to read, by name, each with a function that fingerprints it.
        work: ``(recipe, run folder, out)`` to counts; imports the stage when called.
    """

    name: str
    settings: Callable[[Recipe], dict[str, Any]]
    after: Callable[[Recipe], tuple[str, ...]]
    work: Callable[[Recipe, Path, Path], dict[str, Any]]
    outside: Callable[[Recipe], Mapping[str, Callable[[], str]]] = lambda recipe: {}


def run_sample(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from launch.sample.unpack import unpack

    return unpack(out, recipe.sample.share)


def run_corpus(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from corpus.decontamination.benchmarks import find_benchmarks
    from corpus.run import CorpusInputs
    from corpus.run import run as clean
    from launch.engines.mapper import engine_mapper

    folders = [str(folder) for folder in klue_folders(benchmark_names(recipe), recipe, run)]
    inputs = CorpusInputs(texts=raw_inputs(recipe, run), benchmarks=find_benchmarks(folders) if folders else [])
    return clean(
        recipe.corpus,
        inputs,
        out,
        workers=recipe.workers,
        map_units=engine_mapper(recipe.launch),
        language=recipe.launch.spoken(),
    )


def run_tokenizer(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    if recipe.pretrain.init_from is not None:
        from launch.init_from import adopt_tokenizer

        return adopt_tokenizer(recipe.pretrain, out)
    from tokenizer.run import TokenizerInputs
    from tokenizer.run import run as train

    return train(recipe.tokenizer, TokenizerInputs(corpus=run / "corpus"), out, workers=recipe.workers)


def run_pack(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from pretrain.pack.run import PackInputs
    from pretrain.pack.run import run as pack

    inputs = PackInputs(corpus=run / "corpus", tokenizer=run / "tokenizer")
    return pack(recipe.pack, inputs, out, workers=recipe.workers)


def run_pretrain(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from pretrain.run import PretrainInputs
    from pretrain.run import run as pretrain

    inputs = PretrainInputs(tokens=run / "tokens", tokenizer=run / "tokenizer")
    return pretrain(recipe.pretrain, inputs, out, workers=recipe.workers)


def run_export(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from pretrain.saved.export import ExportInputs
    from pretrain.saved.export import run as export

    inputs = ExportInputs(pretrain=run / "pretrain", tokenizer=run / "tokenizer")
    return export(recipe.pretrain, inputs, out, workers=recipe.workers)


def run_finetune(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from finetune.run import FinetuneInputs
    from finetune.run import run as finetune

    if not recipe.finetune.data:
        raise LaunchError("finetune.data is empty; name the folder of the KLUE files: finetune.data=FOLDER")
    (data,) = klue_folders([recipe.finetune.data], recipe, run)
    inputs = FinetuneInputs(data=data, models=encoders(recipe, run))
    return finetune(recipe.finetune, inputs, out, workers=recipe.workers)


def run_report(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from launch.report.run import run as report

    return report(recipe, run, out)


def section(name: str) -> Callable[[Recipe], dict[str, Any]]:
    """A section of the recipe as JSON."""
    return lambda recipe: getattr(recipe, name).model_dump(mode="json")


def sample_of(recipe: Recipe) -> tuple[str, ...]:
    """The sample's stage, for recipes that use it."""
    return ("sample",) if recipe.uses_sample else ()


def given_inputs(recipe: Recipe) -> list[Input]:
    """The user's own raw text; the embedded sample is a stage of the run instead."""
    from corpus.reading.inputs import find_inputs

    own = [pattern for pattern in recipe.corpus.inputs if pattern != SAMPLE]
    return find_inputs(own, recipe.corpus.sources, recipe.corpus.text_field, recipe.corpus.encoding)


def tokenizer_settings(recipe: Recipe) -> dict[str, Any]:
    """How the vocabulary is trained, or whose it is."""
    adopted = recipe.pretrain.init_from
    return {"init_from": adopted} if adopted is not None else section("tokenizer")(recipe)


def tokenizer_outside(recipe: Recipe) -> Mapping[str, Callable[[], str]]:
    """The tokenizer of ``pretrain.init_from``; contradictions between recipe and checkpoint show here."""
    if recipe.pretrain.init_from is None:
        return {}
    from launch.init_from import tokenizer_files

    return tokenizer_files(recipe.pretrain)


def pretrain_outside(recipe: Recipe) -> Mapping[str, Callable[[], str]]:
    """Configuration and weights of ``pretrain.init_from``."""
    if recipe.pretrain.init_from is None:
        return {}
    from launch.init_from import model_files

    return model_files(recipe.pretrain)


def corpus_outside(recipe: Recipe) -> dict[str, Callable[[], str]]:
    """Raw text, benchmark files and the secret of keyed replacements, which is never written down."""
    from corpus.pii.key import key_fingerprint, read_key
    from corpus.reading.inputs import stamp

    found: dict[str, Callable[[], str]] = {}
    for item in given_inputs(recipe):
        found |= fingerprints([item.path]) if isinstance(item.path, Path) else {str(item.path): partial(stamp, item)}
    key = read_key(recipe.corpus.pii.key_file, recipe.corpus.pii.key_variable)
    found |= {"secret of corpus.pii": partial(key_fingerprint, key)} if key else {}
    return found | stamps(benchmark_names(recipe))


def benchmark_names(recipe: Recipe) -> list[str]:
    """What the corpus is decontaminated against: the recipe's list, or else the data of finetune."""
    names = recipe.corpus.benchmarks
    return list(names) if names is not None else [recipe.finetune.data] if recipe.finetune.data else []


def klue_folders(names: Sequence[str], recipe: Recipe, run: Path) -> list[Path]:
    """The folder of official files that each name stands for."""
    from finetune.data.hub import materialize

    sample = run / "sample" / "klue"
    return [sample if name == SAMPLE else materialize(name, run / "klue", recipe.finetune.tasks) for name in names]


def encoders(recipe: Recipe, run: Path) -> dict[str, str]:
    """Folder or Hub name of each of ``finetune.models``; behind ``FRESH`` likewise."""
    found = {}
    for name in recipe.finetune.models:
        prefix, plain = (FRESH, name.removeprefix(FRESH)) if name.startswith(FRESH) else ("", name)
        found[name] = prefix + (str(run / "model") if plain == OWN_MODEL else plain)
    return found


def uses_own_model(recipe: Recipe) -> bool:
    """Whether an encoder is the run's own, fresh or trained."""
    return any(name.removeprefix(FRESH) == OWN_MODEL for name in recipe.finetune.models)


def finetune_outside(recipe: Recipe) -> dict[str, Callable[[], str]]:
    """What the user gives the finetune stage: data, and encoders that are folders."""
    models = [Path(name.removeprefix(FRESH)) for name in recipe.finetune.models]
    data = [recipe.finetune.data] if recipe.finetune.data else []
    return stamps(data) | dict(fingerprints([path for path in models if path.is_dir()]))


def stamps(names: Sequence[str]) -> dict[str, Callable[[], str]]:
    """What tells whether KLUE files have changed: digests of files, the commit of a Hub data set."""
    from corpus.reading.hub import HubSet, identify
    from finetune.data.hub import find_copy

    found: dict[str, Callable[[], str]] = {}
    for name in names:
        copy = find_copy(name)
        if name == SAMPLE:
            continue
        if copy is not None and not Path(name).exists():
            found[str(copy)] = partial(identify, HubSet(copy.name, None, copy.revision, "train"))
        elif Path(name).exists():
            found |= fingerprints([Path(name)])
        else:
            raise LaunchError(f"{name}: no such file or folder; give the benchmark files with finetune.data=FOLDER")
    return found


STAGES: tuple[Stage, ...] = (
    Stage("sample", section("sample"), lambda r: (), run_sample),
    Stage(
        "corpus",
        section("corpus"),
        sample_of,
        run_corpus,
        corpus_outside,
    ),
    Stage(
        "tokenizer",
        tokenizer_settings,
        lambda r: ("corpus",) if r.pretrain.init_from is None else (),
        run_tokenizer,
        tokenizer_outside,
    ),
    Stage("tokens", section("pack"), lambda r: ("corpus", "tokenizer"), run_pack),
    Stage(
        "pretrain", lambda r: r.pretrain.identity(), lambda r: ("tokens", "tokenizer"), run_pretrain, pretrain_outside
    ),
    Stage("model", lambda r: {}, lambda r: ("pretrain", "tokenizer"), run_export),
    Stage(
        "finetune",
        section("finetune"),
        lambda r: sample_of(r) + (("model",) if uses_own_model(r) else ()),
        run_finetune,
        finetune_outside,
    ),
    # the key of finetune follows from all stages before it
    Stage("report", lambda r: {"name": r.name, "about": r.about}, lambda r: ("finetune",), run_report),
)
VERBS: dict[str, tuple[str, ...]] = {
    "sample": ("sample",),
    "corpus": ("sample", "corpus"),
    "tokenizer": ("tokenizer",),
    "pack": ("tokens",),
    "pretrain": ("pretrain", "model"),
    "finetune": ("sample", "finetune"),
    "report": ("report",),
    "run": tuple(stage.name for stage in STAGES),
}


def stages_of(verb: str, recipe: Recipe) -> list[Stage]:
    """What a verb runs, in order; the sample only where the recipe uses it."""
    names = [name for name in VERBS[verb] if name != "sample" or recipe.uses_sample]
    return [stage for stage in STAGES if stage.name in names]


def verb_of(stage: str) -> str:
    """The verb that makes a stage."""
    return next(verb for verb, names in VERBS.items() if stage in names)


def run_stage(stage: Stage, recipe: Recipe, run: Path) -> bool:
    """Run one stage unless its result is there; returns whether it worked.

    Raises:
        LaunchError: an earlier stage is missing, or the folder belongs to another recipe.
    """
    out = run / stage.name
    head = head_of(stage, recipe, run)
    if manifest.is_complete(out, head) and not is_in_another_language(stage, recipe, out):
        log.info("%-9s complete, nothing to do (%s)", stage.name, out)
        return False
    with held(run, stage.name) if rank() == 0 else nullcontext():
        if rank() == 0:
            manifest.start(out, head)
        log.info("%-9s → %s", stage.name, out)
        began = time.monotonic()
        counts = stage.work(recipe, run, out)
        seconds = time.monotonic() - began
        if rank() == 0:
            manifest.finish(out, head, counts, seconds, peak_memory_mib())
        log.info("%-9s done in %.1f s", stage.name, seconds)
    return True


def is_in_another_language(stage: Stage, recipe: Recipe, out: Path) -> bool:
    """Whether a finished report speaks otherwise than is asked for now; it is written again then."""
    found = manifest.read_manifest(out) if stage.name == "report" else None
    return found is not None and found["counts"].get("language") != recipe.launch.spoken()


def head_of(stage: Stage, recipe: Recipe, run: Path) -> Head:
    """Identity of the stage's result: its settings, the keys of earlier stages, the user's files."""
    inputs: dict[str, str] = {}
    for name in stage.after(recipe):
        found = manifest.read_manifest(run / name)
        if found is None:
            raise LaunchError(
                f"{run / name}: not complete yet; run `malmoi {verb_of(name)}` with the same recipe first"
            )
        inputs[name] = found["key"]
    inputs |= {name: identify() for name, identify in stage.outside(recipe).items()}
    return Head(stage.name, stage.settings(recipe), inputs)


def raw_inputs(recipe: Recipe, run: Path) -> list[Input]:
    """The raw text of the recipe, the sample's included, in a fixed order."""
    from corpus.reading.inputs import find_inputs

    settings = recipe.corpus
    patterns = resolve(settings.inputs, run, "corpus")
    if not patterns and not settings.sources:
        raise LaunchError("corpus.inputs is empty; give files, folders or globs: corpus.inputs=PATH[,PATH…]")
    return find_inputs(patterns, settings.sources, settings.text_field, settings.encoding)


def resolve(names: Sequence[str], run: Path, part: str) -> list[str]:
    """Paths of names, the sample's ``part`` where a name stands for it."""
    return [str(run / "sample" / part) if name == SAMPLE else name for name in names]
