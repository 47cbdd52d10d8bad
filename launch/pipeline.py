"""The stages of a run in order, and what decides whether a stage's result is complete.

```
sample ─▶ corpus ─▶ tokenizer ─▶ tokens ─▶ pretrain ─▶ model ─▶ finetune ─▶ report
```
A stage's head holds its recipe section and the keys of the stages (or the fingerprints of the files) that it reads. So
a change repeats exactly the stages that depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from corpus.decontamination.index import build_index
from corpus.sentences.folding import fold
from corpus.sentences.split import split_sentences
from finetune.config import FRESH
from launch import manifest, stage_inputs
from launch.adopt_tokenizer import adopt_tokenizer, checkpoint_files, extend_adopted
from launch.errors import LaunchError
from launch.executors.mapper import engine_cluster, engine_mapper
from launch.manifest import Head, fingerprints
from launch.recipe import OWN_MODEL, SEARCH_FOLDER, Recipe
from launch.report.run import run as write_report
from launch.sample.unpack import unpack
from pretrain.checkpoint.find_checkpoint import changed_settings, require_extendable
from pretrain.config import SCHEDULE_KEYS


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a run; it works in the folder of its name in ``runs/<recipe>/``.

    Attributes:
        settings: the part of the recipe that decides the result.
        depends_on: stages whose folders it reads.
        work: recipe, run folder and stage folder to counts.
        user_inputs: the files of the user that it reads, with their fingerprints; invalid ones raise an error.
        can_extend: whether a folder that was started with other settings can be continued; an error says why not.
        is_additive: whether results with other settings or inputs are added to the folder.
        if_busy: what a command does while another one works on the stage.
    """

    name: str
    settings: Callable[[Recipe], dict[str, Any]]
    depends_on: Callable[[Recipe], tuple[str, ...]]
    work: Callable[[Recipe, Path, Path], dict[str, Any]]
    user_inputs: Callable[[Recipe], stage_inputs.Fingerprints] = lambda recipe: {}
    can_extend: Callable[[Recipe, Path, Mapping[str, Any]], bool] = lambda recipe, out, settings: False
    is_additive: bool = False
    if_busy: Literal["refuse", "wait", "join"] = "refuse"


def run_corpus(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from corpus import run as stage
    from corpus.decontamination.benchmarks import find_benchmarks

    names = [str(stage_inputs.klue_folder(name, recipe, run)) for name in stage_inputs.benchmark_names(recipe)]
    benchmarks = find_benchmarks(names) if names else []
    inputs = stage.CorpusInputs(stage_inputs.raw_inputs(recipe, run), benchmarks, stage_inputs.custom_texts(recipe))
    mapper, language = engine_mapper(recipe.launch.for_stage("corpus")), recipe.launch.resolve_language()
    return stage.run(recipe.corpus, inputs, out, workers=recipe.workers, map_units=mapper, language=language)


def run_tokenizer(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    size = recipe.tokenizer.extend
    if recipe.pretrain.init_from is not None and not size:
        return adopt_tokenizer(recipe.pretrain, out)
    from tokenizer import run as stage

    mapper = engine_mapper(recipe.launch.for_stage("tokenizer"))
    resources: dict[str, Any] = {"workers": recipe.workers, "map_units": mapper}
    if recipe.pretrain.init_from is not None:
        return extend_adopted(recipe.pretrain, run / "corpus", out, size, **resources)
    return stage.run(recipe.tokenizer, stage.TokenizerInputs(run / "corpus"), out, **resources)


def run_pack(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from pretrain.pack import run as stage

    inputs = stage.PackInputs(corpus=run / "corpus", tokenizer=run / "tokenizer")
    mapper = engine_mapper(recipe.launch.for_stage("pack"))
    return stage.run(recipe.pack, inputs, out, workers=recipe.workers, map_units=mapper)


def run_pretrain(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from pretrain import run as stage

    inputs = stage.PretrainInputs(tokens=run / "tokens", tokenizer=run / "tokenizer")
    return stage.run(recipe.pretrain, inputs, out, workers=recipe.workers)


def can_extend_pretraining(recipe: Recipe, out: Path, settings: Mapping[str, Any]) -> bool:
    """Whether only the schedule changed; ``BadInput`` if the new schedule contradicts the completed steps."""
    if not changed_settings(dict(settings), recipe.pretrain).keys() <= SCHEDULE_KEYS:
        return False
    require_extendable(out / "checkpoints", recipe.pretrain)
    return True


def run_export(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from pretrain.checkpoint import export as stage

    inputs = stage.ExportInputs(pretrain=run / "pretrain", tokenizer=run / "tokenizer")
    return stage.run(recipe.pretrain, inputs, out, workers=recipe.workers)


def run_finetune(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from finetune import run as stage

    return _finetune(recipe, run, out, stage.run, cluster=engine_cluster(recipe.launch.for_stage("finetune")))


def run_search(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from finetune.search import run as stage

    return _finetune(recipe, run, out, stage.run)


def run_best(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    """Train the best trials of a search into the results of finetune."""
    from finetune.search.run import train_best

    return _finetune(recipe, run, out, train_best, searched=run / SEARCH_FOLDER)


def _finetune(recipe: Recipe, run: Path, out: Path, work: Callable[..., dict[str, Any]], **more: Any) -> dict[str, Any]:
    from corpus.pii.types import PII_TYPES
    from finetune import run as stage
    from finetune.registry import klue_tasks

    data = recipe.finetune.data
    if not data and klue_tasks(recipe.finetune):
        raise LaunchError(stage_inputs.NO_KLUE_FILES)
    folder = stage_inputs.klue_folder(data, recipe, run) if data else run  # custom tasks alone read no folder
    types = frozenset((*PII_TYPES, *recipe.corpus.pii.extra))
    hide = None if recipe.corpus.pii.mode == "keep" else partial(hide_in_errors, types)
    inputs = stage.FinetuneInputs(folder, stage_inputs.finetune_models(recipe, run), hide)
    return work(recipe.finetune, inputs, out=out, workers=recipe.workers, **more)


def hide_in_errors(types: frozenset[str], errors: dict[str, Any]) -> dict[str, Any]:
    """Hide personal data in the samples of wrong predictions on a custom task, which quote the user's files."""
    from corpus.pii.hide import PiiHider
    from launch.pii.work import EVERYTHING, map_strings

    hider = PiiHider("tag", types=types)
    return errors | {"samples": map_strings(errors["samples"], EVERYTHING, lambda text, *_: hider.hide(text, ""))}


def run_embed(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from finetune.embed import run as stage

    data = recipe.finetune.data
    inputs = stage.EmbedInputs(
        documents=run / "corpus" / "documents" if reads_corpus(recipe) else None,
        klue=stage_inputs.klue_folder(data, recipe, run) if data else None,
        encoder=str(run / "model") if recipe.embed.model == OWN_MODEL else recipe.embed.model,
        find_contaminated=find_contaminated,
    )
    return stage.run(recipe.embed, inputs, out, workers=recipe.workers)


def find_contaminated(evaluation: Sequence[str], texts: Sequence[str]) -> set[int]:
    """The numbers of the texts that contain a sentence of the evaluation texts, or are equal to a text or sentence."""
    sentences = [sentence for text in evaluation for sentence in split_sentences(text)]
    index, _ = build_index(sentences)
    equal = {fold(text) for text in (*evaluation, *sentences)} - {""}
    return {hit.sentence for hit in index.find(texts)} | {i for i, text in enumerate(texts) if fold(text) in equal}


def section(name: str) -> Callable[[Recipe], dict[str, Any]]:
    """A section of the recipe as JSON."""
    return lambda recipe: getattr(recipe, name).model_dump(mode="json")


def _tokenizer_settings(recipe: Recipe) -> dict[str, Any]:
    """How the vocabulary is trained, or which one is adopted."""
    adopted, size = recipe.pretrain.init_from, recipe.tokenizer.extend
    if adopted is None:
        return section("tokenizer")(recipe)
    return {"init_from": adopted, **({"extend": size} if size else {})}


def _finetune_settings(recipe: Recipe) -> dict[str, Any]:
    return recipe.finetune.model_dump(mode="json", exclude={"device", "price_per_hour", "search"})


def _search_settings(recipe: Recipe) -> dict[str, Any]:
    return {**_finetune_settings(recipe), "search": recipe.finetune.search.model_dump(mode="json")}


def reads_corpus(recipe: Recipe) -> bool:
    """Whether embeddings train on, or search in, the documents of the run."""
    has_text = bool(recipe.corpus.inputs or recipe.corpus.sources)
    return has_text and bool(recipe.embed.max_pairs or recipe.embed.purpose == "search")


def _before_embed(recipe: Recipe) -> tuple[str, ...]:
    own = ("model",) if recipe.embed.model == OWN_MODEL else ()
    return (*_sample(recipe), *(("corpus",) if reads_corpus(recipe) else ()), *own)


def trains_tokenizer(recipe: Recipe) -> bool:
    """Whether the tokenizer stage reads the corpus, for a vocabulary or for pieces to add to one."""
    size = recipe.tokenizer.extend
    return recipe.pretrain.init_from is None or (isinstance(size, int) and size > 0)


def _sample(recipe: Recipe) -> tuple[str, ...]:
    return ("sample",) if recipe.uses_sample else ()


def _before_finetune(recipe: Recipe) -> tuple[str, ...]:
    uses_own_model = any(name.removeprefix(FRESH) == OWN_MODEL for name in recipe.finetune.models)
    return (*_sample(recipe), *(("model",) if uses_own_model else ()))


STAGES: tuple[Stage, ...] = (
    Stage("sample", lambda r: {}, lambda r: (), lambda r, run, out: unpack(out), if_busy="wait"),
    Stage("corpus", section("corpus"), _sample, run_corpus, stage_inputs.corpus_inputs),
    Stage(
        "tokenizer",
        _tokenizer_settings,
        lambda r: ("corpus",) if trains_tokenizer(r) else (),
        run_tokenizer,
        lambda r: checkpoint_files(r.pretrain, "tokenizer") | stage_inputs.extension_inputs(r),
    ),
    Stage("tokens", section("pack"), lambda r: ("corpus", "tokenizer"), run_pack),
    Stage(
        "pretrain",
        lambda r: r.pretrain.identity(),
        lambda r: ("tokens", "tokenizer"),
        run_pretrain,
        lambda r: checkpoint_files(r.pretrain, "model"),
        can_extend_pretraining,
    ),
    Stage("model", lambda r: {}, lambda r: ("pretrain", "tokenizer"), run_export),
    Stage(
        "finetune",
        _finetune_settings,
        _before_finetune,
        run_finetune,
        stage_inputs.finetune_inputs,
        is_additive=True,  # each job records its own settings
        if_busy="join",  # each job is claimed
    ),
    # the key of finetune depends on all stages before it
    Stage(
        "report",
        lambda r: {"name": r.name, "about": r.about},
        lambda r: ("finetune",),
        write_report,
        lambda r: fingerprints(stage_inputs.encoder_folders(r)),  # results of a changed encoder are not shown
        is_additive=True,
        if_busy="wait",
    ),
)
FINETUNE = next(stage for stage in STAGES if stage.name == "finetune")
SEARCH_STAGES = (  # the best trials become ordinary results of finetune
    replace(FINETUNE, name=SEARCH_FOLDER, settings=_search_settings, work=run_search, if_busy="refuse"),
    replace(FINETUNE, settings=_search_settings, work=run_best),
)
EMBED = Stage(
    "embed",
    lambda r: r.embed.model_dump(mode="json", exclude={"device"}) | {"data": r.finetune.data},
    _before_embed,
    run_embed,
    stage_inputs.embed_files,
    is_additive=True,
)
VERBS: dict[str, tuple[str, ...]] = {
    "sample": ("sample",),
    "corpus": ("sample", "corpus"),
    "tokenizer": ("tokenizer",),
    "pack": ("tokens",),
    "pretrain": ("pretrain", "model"),
    "finetune": ("sample", "finetune"),
    "search": ("sample", SEARCH_FOLDER, "finetune"),
    "embed": ("sample", "embed"),
    "report": ("report",),
    "run": tuple(stage.name for stage in STAGES),
}


def stages_of(verb: str, recipe: Recipe) -> list[Stage]:
    """The stages of a verb in order; the sample only if the recipe uses it."""
    further = {"search": SEARCH_STAGES, "embed": (EMBED,)}
    stages = [*STAGES[:1], *further[verb]] if verb in further else STAGES
    names = [name for name in VERBS[verb] if name != "sample" or recipe.uses_sample]
    return [stage for stage in stages if stage.name in names]


def require_stage(run: Path, name: str) -> Mapping[str, Any]:
    """The manifest of an earlier stage; ``LaunchError`` with the verb to run if it is not complete."""
    stage_manifest = manifest.read_manifest(run / name)
    if stage_manifest is None:
        verb = next(verb for verb, names in VERBS.items() if name in names)
        raise LaunchError(f"{run / name}: not complete; run `malmoi {verb}` with the same recipe first")
    return stage_manifest


def head_of(stage: Stage, recipe: Recipe, run: Path) -> Head:
    """Identity of the stage's result: its settings, the keys of earlier stages, the fingerprints of the user's files.

    LaunchError: an earlier stage is not complete.
    """
    inputs = {name: require_stage(run, name)["key"] for name in stage.depends_on(recipe)}
    inputs |= {name: compute() for name, compute in stage.user_inputs(recipe).items()}
    return Head(stage.name, stage.settings(recipe), inputs)


def is_done(stage: Stage, recipe: Recipe, run: Path) -> bool:
    """Whether the stage is complete and nothing is to be added to its folder."""
    if not stage.is_additive:
        return (run / stage.name / manifest.MANIFEST_NAME).is_file()
    stage_manifest = manifest.read_manifest(run / stage.name)
    return stage_manifest is not None and expected_head(stage, recipe, run, stage_manifest).key == stage_manifest["key"]


def expected_head(stage: Stage, recipe: Recipe, run: Path, saved_head: Mapping[str, Any]) -> Head:
    """The head under this recipe, with the recorded fingerprints of the user's files."""
    inputs = dict(saved_head.get("inputs", {}))
    for name in stage.depends_on(recipe):
        if earlier := manifest.read_manifest(run / name):
            inputs[name] = earlier["key"]
    return Head(stage.name, stage.settings(recipe), inputs)


def can_continue(stage: Stage, recipe: Recipe, run: Path, head: Head) -> bool:
    """Whether a folder that was started with other settings can be continued with these.

    LaunchError: later stages were made from its present state.
    """
    saved_head = manifest.read_head(folder := run / stage.name)
    if saved_head is None or saved_head["key"] == head.key:
        return False
    if stage.is_additive or manifest.has_no_result(folder):
        return True
    if saved_head.get("inputs") != head.inputs or not stage.can_extend(recipe, folder, saved_head.get("settings", {})):
        return False
    dependent = {stage.name}
    for later in STAGES:
        dependent |= {later.name} if dependent.intersection(later.depends_on(recipe)) else set()
    if made := [str(run / name) for name in sorted(dependent - {stage.name}) if manifest.read_head(run / name)]:
        raise LaunchError(f"{', '.join(made)}: made from {stage.name} before; delete or move it to extend {stage.name}")
    return True
