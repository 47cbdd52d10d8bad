"""malmoi from Python: the public and stable interface (docs/python.md). All in the folders beside it is internal.

Each function imports what it needs when it is called, so ``import malmoi`` costs nothing. Bad input is a ``ValueError``
whose message says what to do.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

if TYPE_CHECKING:
    from corpus.pii.detect import Span
    from finetune.config import TaskName
    from finetune.inference.predict import TaskModel
    from finetune.score.scores import Scored
    from finetune.task import Task
    from launch.recipe import Recipe

__version__ = "0.1.0"
__all__ = ["find_pii", "load_recipe", "load_task", "pseudonymize", "register_models", "run", "score", "split_sentences"]


def find_pii(text: str, types: Collection[str] | None = None, *, names: str | Path | None = None) -> list[Span]:
    """Personal data in a text: spans with ``start``, ``end``, ``type``, ``score`` (0..1) and ``why``, in order.

    Args:
        text: in NFC (``unicodedata.normalize``); offsets are ``str`` indices.
        types: names such as "TEL" and "PERSON"; the sixteen of the paper's Table 29 if None.
        names: folder of a fine-tuned KLUE-NER model, which finds names of people, too (type "PERSON"); loaded once.
    """
    from corpus.pii import detect
    from corpus.pii.extra.person_by_model import load_tagger

    return detect.find_pii(text, _known_types(types), people=load_tagger(Path(names)) if names is not None else None)


def pseudonymize(
    text: str,
    *,
    mode: Literal["replace", "mask", "tag", "drop"] = "replace",
    types: Collection[str] | None = None,
    seed: int | None = None,
    key: bytes | None = None,
) -> str:
    """The text without personal data; all else stays as it is, and equal values of the text map alike.

    Args:
        mode: invented values of the same format, ``***-****``, ``[TEL]``, or without the sentence.
        types: as for ``find_pii``.
        seed: the same replacements each time, for tests: who knows it can test guesses. Random if None.
        key: a secret of at least 16 bytes; a value then maps alike in all texts and runs.
    """
    from corpus.pii.hide import MODES, Protection
    from corpus.pii.key import MIN_KEY_BYTES, random_secret, seeded_secret
    from launch.pii.work import Hiding

    if mode not in MODES:
        raise ValueError(f"mode {mode!r}: there are {', '.join(MODES)}")
    if key is not None and (seed is not None or len(key) < MIN_KEY_BYTES):
        raise ValueError(f"a key has at least {MIN_KEY_BYTES} bytes and goes without a seed")
    secret = random_secret() if seed is None else seeded_secret(seed)
    return Hiding(Protection(mode, secret, key, _known_types(types))).hidden(text, document="")


def split_sentences(text: str) -> list[str]:
    """Sentences of a text in order, stripped, none empty; every line end is a boundary."""
    from corpus.sentences import split

    return split.split_sentences(text)


@overload
def load_task(name: TaskName, *, device: Literal["auto", "cpu"] = "auto") -> Task: ...
@overload
def load_task(name: str | Path, *, device: Literal["auto", "cpu"] = "auto") -> Task | TaskModel: ...
def load_task(name: str | Path, *, device: Literal["auto", "cpu"] = "auto") -> Task | TaskModel:
    """A KLUE task by name, or a model that was kept for one, by its folder or its name on the Hub.

    ``load_task("ynat")``: ``read`` gives the examples of an official file, ``score`` the metrics of rows.
    ``load_task("runs/real-small/finetune/ynat/model/seed-1/model").predict(["코스피 2,600선 회복"])``: a result a text,
    in order, with the text and its "prediction" (docs/finetune.md says what else).

    Args:
        device: of a model: the accelerator that torch knows, or "cpu".
    """
    if isinstance(name, str) and "/" not in name and not Path(name).is_dir():
        from finetune.registry import find_task

        return find_task(name)
    from finetune.inference.predict import TaskModel
    from finetune.saved_models.load import load_kept

    return TaskModel(load_kept(name, device))


def score(task: str, predictions: str | Path, gold: str | Path | None = None, *, samples: int = 200) -> Scored:
    """Metrics of a predictions file, 0..100, as the KLUE paper counts them.

    Args:
        predictions: JSON lines with guid and prediction, or one JSON map from guid to prediction.
        gold: an official file of the task, plain or ``.zst``; None where the predictions hold their golds.
        samples: bootstrap resamples of the 95 % intervals; 0: none.

    Returns:
        ``scores`` and ``intervals`` by metric, ``tables`` by class and the like, ``n`` examples.
    """
    from finetune.score.scores import score_file

    return score_file(task, Path(predictions), Path(gold) if gold is not None else None, samples)


def register_models() -> None:
    """Let ``AutoModel`` of transformers know the networks of KLUE-DP, KLUE-MRC and WoS, so that it loads kept ones."""
    import finetune.heads.pretrained  # noqa: F401


def load_recipe(name: str | Path, *overrides: str) -> Recipe:
    """A shipped recipe by name or a YAML file, with overrides such as ``"pretrain.steps=500"``; all keys checked."""
    from launch.recipe import load_recipe

    return load_recipe(str(name), overrides)


def run(recipe: str | Path, *overrides: str, verb: str = "run", runs: str | Path = "runs") -> Path:
    """Do what ``malmoi VERB RECIPE`` does and return the folder of the run; finished stages are not done again.

    Stages start processes that import the calling script, so call it below ``if __name__ == "__main__":``.
    """
    from launch.conduct import conduct
    from launch.pipeline import VERBS

    if verb not in VERBS:
        raise ValueError(f"verb {verb!r}: there are {', '.join(VERBS)}")
    conduct(verb, str(recipe), overrides, Path(runs), dry_run=False)
    return Path(runs) / load_recipe(recipe, *overrides).name


def _known_types(names: Collection[str] | None) -> frozenset[str] | None:
    from corpus.pii.types import ALL_TYPES

    if unknown := sorted(set(names or ()) - set(ALL_TYPES)):
        raise ValueError(f"no type {', '.join(unknown)}; there are {', '.join(ALL_TYPES)}")
    return None if names is None else frozenset(names)


def main() -> None:
    """The command ``malmoi``, also ``python -m malmoi``; looks first for what would fail far away from its cause."""
    home = Path(__file__).resolve().parent / "launch"
    spec = find_spec("launch")
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places or Path(places[0]).resolve() != home:
        where = places[0] if places else spec.origin if spec else "nowhere"
        print(
            f"malmoi: the package `launch` resolves to {where}, not to malmoi's {home}; start malmoi in another folder",
            file=sys.stderr,
        )
        sys.exit(2)
    from launch.checks.guard import check_start

    check_start()
    from launch.cli import main

    main()


if __name__ == "__main__":
    main()
