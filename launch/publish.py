"""What ``malmoi tokenizer push`` and ``malmoi corpus push`` publish: a checked tokenizer, a finished corpus."""

from __future__ import annotations

from pathlib import Path

from launch.errors import LaunchError
from launch.hub import Repository
from launch.manifest import MANIFEST_NAME, read_manifest
from launch.recipe import load_recipe


def tokenizer_repository(folder: Path) -> Repository:
    """The files of an exported tokenizer.

    Raises:
        BadInput: the folder is not a complete tokenizer whose files agree.
    """
    from tokenizer.building.export import PLAIN_FOLDER, read_vocabulary
    from tokenizer.repository import check_repository

    names = check_repository(folder)
    has_plain = any(name.startswith(f"{PLAIN_FOLDER}/") for name in names)
    return Repository(
        folder=folder,
        kind="model",
        names=names,
        outdated=() if has_plain else (f"{PLAIN_FOLDER}/*",),  # of another vocabulary, pushed before
        message=f"Korean WordPiece vocabulary, {len(read_vocabulary(folder / 'vocab.txt')):,} entries",
    )


def corpus_repository(name: str, runs: Path, *, with_personal_data: bool = False) -> Repository:
    """The documents, card and counts of a finished corpus; samples, quarantine and all else stay at home.

    Args:
        name: a recipe, a run's folder, or its corpus folder.
        with_personal_data: publish a corpus in which they were kept (corpus.pii.mode=keep).

    Raises:
        LaunchError: there is no such corpus, it is unfinished, or holds personal data that nobody asked to publish.
        BadInput: its files are not what the stage left.
    """
    from corpus.repository import OUTDATED, check_repository

    folder = find_corpus(name, runs)
    manifest = read_manifest(folder)
    if manifest is None:
        raise LaunchError(f"{folder}: no {MANIFEST_NAME}, so this corpus is not finished; run `malmoi corpus` first")
    settings = manifest.get("settings", {})
    if manifest.get("stage") != "corpus" or "pii" not in settings:
        raise LaunchError(f"{folder}: its {MANIFEST_NAME} is not of a corpus; give the corpus folder of a run")
    if settings["pii"].get("mode") == "keep" and not with_personal_data:
        raise LaunchError(
            f"{folder}: personal data was kept in this corpus (corpus.pii.mode=keep); clean it with another mode, or "
            "give --with-personal-data if it may be published"
        )
    documents, names = check_repository(folder)
    return Repository(folder, "dataset", names, OUTDATED, f"{documents:,} documents, cleaned with malmoi")


def find_corpus(name: str, runs: Path) -> Path:
    """The corpus folder that is meant: itself, a run that holds it, or a recipe's run below ``runs``."""
    given = Path(name)
    if given.suffix in (".yaml", ".yml"):
        given = runs / load_recipe(name).name
    for folder in (given, given / "corpus", runs / name / "corpus"):
        if (folder / "documents").is_dir() or (folder / MANIFEST_NAME).is_file():
            return folder
    raise LaunchError(f"{name}: no corpus there, nor in {runs / name}; give a recipe that was run, or a corpus folder")
