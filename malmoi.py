"""The public and stable Python interface of malmoi (docs/python.md). The packages in this folder are internal.

Each function imports what it needs when it is called, so ``import malmoi`` is fast. Bad input raises a ``ValueError``
whose message says what to do. The import raises an ``ImportError`` if Python would find another package under one of
our names (``tokenizer``, ``launch`` …).
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

if TYPE_CHECKING:
    from corpus.pii.detect import Span
    from finetune.embed.embedder import Embedder
    from finetune.inference.predict import TaskModel
    from finetune.score.scores import Scored
    from finetune.task import Task
    from finetune.task_names import TaskName
    from launch.recipe import Recipe

PACKAGES = ("corpus", "tokenizer", "pretrain", "finetune", "launch")
__version__ = "0.1.0"
__all__ = [
    "find_pii",
    "load_embedder",
    "load_recipe",
    "load_task",
    "pseudonymize",
    "register_models",
    "run",
    "score",
    "split_sentences",
]


def _unsupported_system(platform: str = sys.platform) -> str | None:
    """A sentence on systems other than Linux and macOS."""
    if platform in ("linux", "darwin"):
        return None
    return f"malmoi runs on Linux and macOS, not on {platform}; on Windows install it inside WSL (`wsl --install`)"


def _foreign_package() -> str | None:
    """A sentence if one of our packages would be imported from somewhere else. Nothing is imported to find out."""
    home = Path(__file__).resolve().parent
    for name in PACKAGES:
        spec = find_spec(name)
        place = next(iter(spec.submodule_search_locations or ()), spec.origin) if spec else None
        if place is None or Path(place).resolve() != home / name:
            return (
                f"the package `{name}` resolves to {place or 'nowhere'}, not to malmoi's {home / name}; uninstall the "
                f"other `{name}` package, start Python in another folder, or use a separate virtual environment"
            )
    return None


# the command prints the same sentence and exits with code 2 (see main)
if __name__ == "malmoi" and Path(sys.argv[0] if sys.argv else "").name != "malmoi" and (_problem := _foreign_package()):
    raise ImportError(f"malmoi cannot be imported: {_problem}")


def find_pii(text: str, types: Collection[str] | None = None, *, names: str | Path | None = None) -> list[Span]:
    """Find personal data in a text: spans with ``start``, ``end``, ``type``, ``score`` (0..1) and ``why``, in order.

    Args:
        text: in NFC (``unicodedata.normalize``); offsets are ``str`` indices.
        types: names such as "TEL" and "PERSON". Default: the sixteen types of the paper's Table 29.
        names: folder of a fine-tuned KLUE-NER model that also finds names of people (type "PERSON"); loaded once.
    """
    from corpus.pii import detect
    from corpus.pii.extra.person_by_model import load_tagger

    with _extras("find_pii with names"):
        name_model = load_tagger(Path(names)) if names is not None else None
    return detect.find_pii(text, _known_types(types), name_model=name_model)


def pseudonymize(
    text: str,
    *,
    mode: Literal["replace", "mask", "tag", "drop"] = "replace",
    types: Collection[str] | None = None,
    seed: int | None = None,
    key: bytes | None = None,
) -> str:
    """Return the text without personal data. The rest is unchanged; equal values get equal replacements.

    Args:
        mode: "replace": invented values of the same format; "mask": ``***-****``; "tag": ``[TEL]``; "drop": remove the
            sentence.
        types: as for ``find_pii``.
        seed: makes replacements reproducible, for tests. Anyone who knows it can verify guesses. Default: random.
        key: a secret of at least 16 bytes; equal values then get equal replacements in all texts and runs.
    """
    from corpus.pii.hide import MODES, PiiHider
    from corpus.pii.key import MIN_KEY_BYTES, random_secret, seeded_secret
    from launch.pii.work import Hiding

    if mode not in MODES:
        raise ValueError(f"mode {mode!r}: expected one of {', '.join(MODES)}")
    if key is not None and (seed is not None or len(key) < MIN_KEY_BYTES):
        raise ValueError(f"key: expected at least {MIN_KEY_BYTES} bytes, and no seed at the same time")
    secret = random_secret() if seed is None else seeded_secret(seed)
    return Hiding(PiiHider(mode, secret, key, _known_types(types))).hidden(text, document="")


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences: in order, stripped, none empty. Every line end is a boundary."""
    from corpus.sentences import split

    return split.split_sentences(text)


@overload
def load_task(name: TaskName, *, device: Literal["auto", "cpu"] = "auto") -> Task: ...
@overload
def load_task(name: str | Path, *, device: Literal["auto", "cpu"] = "auto") -> Task | TaskModel: ...
def load_task(name: str | Path, *, device: Literal["auto", "cpu"] = "auto") -> Task | TaskModel:
    """Load a KLUE task by name, or a fine-tuned model from its folder or from the Hub.

    ``load_task("ynat")``: ``read`` returns the examples of an official file, ``score`` the metrics of rows.
    ``load_task("runs/real-small/finetune/ynat/model/seed-1/model").predict(["코스피 2,600선 회복"])``: one result for
    each text, in order, with the text and its "prediction" (docs/predict.md lists the other keys).

    Args:
        device: for models; "auto": the accelerator if torch finds one, otherwise the CPU.
    """
    if isinstance(name, str) and "/" not in name and not Path(name).is_dir():
        from finetune.registry import find_task

        return find_task(name)
    with _extras("load_task"):
        from finetune.inference.predict import TaskModel
        from finetune.saved_models.load import load_model
    return TaskModel(load_model(name, device))


def score(task: str, predictions: str | Path, gold: str | Path | None = None, *, samples: int = 200) -> Scored:
    """Compute the metrics of the KLUE paper (0..100) for a predictions file.

    Args:
        predictions: JSON lines with guid and prediction, or one JSON object from guid to prediction.
        gold: an official file of the task, plain or ``.zst``; not needed if the predictions include their gold labels.
        samples: bootstrap resamples for the 95 % intervals; 0: no intervals.

    Returns:
        ``scores`` and ``intervals`` by metric, ``tables`` by class or type, the number of examples ``n``.
    """
    from finetune.score.scores import score_file

    return score_file(task, Path(predictions), Path(gold) if gold is not None else None, samples)


def load_embedder(folder: str | Path, *, device: Literal["auto", "cpu"] = "auto") -> Embedder:
    """Load a model of `malmoi embed`, or another sentence-transformers folder with mean or [CLS] pooling.

    ``load_embedder("runs/smoke/embed/model").encode(["비가 온다"])``: one vector of length 1 for each text, float32.
    """
    from finetune.embed.embedder import load_embedder

    return load_embedder(Path(folder), device)


def register_models() -> None:
    """Register the networks of KLUE-DP, KLUE-MRC and WoS, so that transformers' ``AutoModel`` loads saved models."""
    with _extras("register_models"):
        import finetune.heads.pretrained  # noqa: F401


def load_recipe(name: str | Path, *overrides: str) -> Recipe:
    """Load a shipped recipe or a YAML file with overrides such as ``"pretrain.steps=500"``; check all keys."""
    from launch.recipe import load_recipe

    return load_recipe(str(name), overrides)


def run(recipe: str | Path, *overrides: str, verb: str = "run", runs: str | Path = "runs") -> Path:
    """Run ``malmoi VERB RECIPE`` and return the folder of the run; finished stages are skipped.

    Stages start processes that import the calling script, so call this under ``if __name__ == "__main__":``.
    """
    from launch.conduct import conduct
    from launch.pipeline import VERBS

    if verb not in VERBS:
        raise ValueError(f"verb {verb!r}: expected one of {', '.join(VERBS)}")
    conduct(verb, str(recipe), overrides, Path(runs), dry_run=False)
    return Path(runs) / load_recipe(recipe, *overrides).name


@contextmanager
def _extras(user: str) -> Iterator[None]:
    """A ``ValueError`` with what to install for the import of a module of an optional extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        from launch.errors import explain_missing_module

        raise explain_missing_module(user, error) or error from None


def _known_types(names: Collection[str] | None) -> frozenset[str] | None:
    from corpus.pii.types import ALL_TYPES

    if unknown := sorted(set(names or ()) - set(ALL_TYPES)):
        raise ValueError(f"unknown type {', '.join(unknown)}; expected {', '.join(ALL_TYPES)}")
    return None if names is None else frozenset(names)


def main() -> None:
    """The command ``malmoi``, also ``python -m malmoi``. It checks the environment before it imports our packages."""
    if problem := _unsupported_system() or _foreign_package():
        print(f"malmoi: {problem}", file=sys.stderr)
        sys.exit(2)
    from launch.cli import main

    main()


if __name__ == "__main__":
    main()
