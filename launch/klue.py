"""Where the KLUE files and the encoders of a run are: names in a recipe to folders, and what identifies them.

``finetune.data`` is a folder of official files, "sample" or a Hub data set; the last is written as official files below
``klue/`` of the run, before the corpus stage, which keeps those files out of the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from finetune.config import FRESH
from launch.errors import LaunchError
from launch.manifest import fingerprints
from launch.recipe import SAMPLE, Recipe

OWN_MODEL = "model"  # the one that the run itself pretrains


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
