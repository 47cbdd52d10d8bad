"""Publish a tokenizer, a model or a corpus on the Hugging Face Hub after a check: its listed files, and nothing else.

A token is never shown, logged or written; failures are told in one sentence.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from finetune.config import MODEL_INFO_NAME
from launch.errors import LaunchError
from launch.manifest import MANIFEST_NAME, read_manifest
from launch.recipe import load_recipe

CARD_NAME = "README.md"
MODEL_FILES = (
    CARD_NAME, MODEL_INFO_NAME, "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
    "special_tokens_map.json", "vocab.txt",
)  # fmt: skip
TOKEN = re.compile(r"hf_\w+")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Repository:
    """What a repository will hold; files of the folder that ``names`` leaves out stay where they are."""

    folder: Path
    kind: Literal["model", "dataset"]  # tokenizers count as models
    names: Sequence[str]  # files, or patterns of the library's: documents/*.parquet
    outdated: Sequence[str]  # patterns of files that an earlier push may have left and that go
    message: str


def tokenizer_repository(folder: Path) -> Repository:
    """The files of an exported tokenizer; ``BadInput`` unless it is complete and its files agree."""
    from tokenizer.building.export import read_vocabulary
    from tokenizer.repository import check_repository

    names = check_repository(folder)
    outdated = ("plain/*",)  # a second form that earlier versions wrote
    entries = len(read_vocabulary(folder / "vocab.txt"))
    return Repository(folder, "model", names, outdated, f"Korean WordPiece vocabulary, {entries:,} entries")


def corpus_repository(name: str, runs: Path, *, with_personal_data: bool = False) -> Repository:
    """The documents, card and counts of a finished corpus; samples, quarantine and all else stay at home.

    ``name`` is a recipe, a run's folder, or its corpus folder.

    Raises:
        LaunchError: there is no such corpus, it is unfinished, or holds personal data that nobody asked to publish.
        BadInput: its files are not what the stage left.
    """
    from corpus.card.repository import OUTDATED, check_repository

    folder = _find_corpus(name, runs)
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


def model_repository(folder: Path) -> Repository:
    """The files of a kept model, or of a run's pretrained ``model/``; ``BadInput`` unless it is whole and loads.

    What else lies in the folder stays at home: a run's manifest names places of this machine.
    """
    from corpus.documents.model_files import CONFIG_NAME, INDEX_NAME, WEIGHTS_NAME, check_weight_index, refuse_links

    if not folder.is_dir():
        raise LaunchError(f"{folder}: no such folder; give a kept model, runs/…/seed-1/model, or a run's model folder")
    if not (folder / CONFIG_NAME).is_file() and (folder / "model" / CONFIG_NAME).is_file():
        folder = folder / "model"
    refuse_links(folder)
    if missing := [name for name in (CARD_NAME, CONFIG_NAME, "tokenizer.json") if not (folder / name).is_file()]:
        raise LaunchError(f"{folder}: no {', '.join(missing)}; give a model folder as malmoi writes it")
    shards = check_weight_index(folder / INDEX_NAME, str(folder)) if (folder / INDEX_NAME).is_file() else []
    message = _check_kept(folder) if (folder / MODEL_INFO_NAME).is_file() else _check_pretrained(folder)
    names = [name for name in (*MODEL_FILES, WEIGHTS_NAME, INDEX_NAME, *shards) if (folder / name).is_file()]
    return Repository(folder, "model", names, (), message)


def _check_kept(folder: Path) -> str:
    from finetune.saved_models.load import load_kept

    settings = load_kept(folder, "cpu").settings
    headline = settings.get("headline")
    score = (settings.get("scores") or {}).get(headline)
    return f"{settings['task']}" + (f", {headline} {score:.2f}" if score is not None else "")


def _check_pretrained(folder: Path) -> str:
    from transformers import AutoConfig, AutoTokenizer

    from corpus.documents.model_files import check_model_files, check_sizes

    check_sizes(folder, str(folder))
    check_model_files(folder, str(folder))
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # the library raises what it likes for files it cannot read
        raise LaunchError(f"{folder}: does not load ({_first_line(error)}); give a whole model folder") from None
    if len(tokenizer) > config.vocab_size:
        raise LaunchError(
            f"{folder}: its tokenizer has {len(tokenizer):,} pieces, its model {config.vocab_size:,} embeddings; they "
            "do not belong together"
        )
    return f"{config.model_type}, pretrained with malmoi"


def _find_corpus(name: str, runs: Path) -> Path:
    """The corpus folder that is meant: itself, a run that holds it, or a recipe's run below ``runs``."""
    given = Path(name)
    if given.suffix in (".yaml", ".yml"):
        given = runs / load_recipe(name).name
    for folder in (given, given / "corpus", runs / name / "corpus"):
        if (folder / "documents").is_dir() or (folder / MANIFEST_NAME).is_file():
            return folder
    raise LaunchError(f"{name}: no corpus there, nor in {runs / name}; give a recipe that was run, or a corpus folder")


def push(
    repository: Repository,
    repo_id: str,
    *,
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
) -> str:
    """Upload a repository's files and return the address of the commit; repository and branch are made where missing.

    Args:
        private: hide a repository that is made now; one that exists must be hidden already.
        token: by default the one that ``hf auth login`` keeps, or HF_TOKEN.

    Raises:
        LaunchError: the Hub refuses, or cannot be reached.
    """
    from huggingface_hub import HfApi

    if token is not None and not (token.isascii() and token.isprintable() and token and " " not in token):
        raise LaunchError(
            "the token has characters that no token of the Hub has; copy it again, without quotes and spaces"
        )
    api, kind = HfApi(token=token), repository.kind
    with _told_in_one_sentence(repo_id):
        name = api.create_repo(repo_id, repo_type=kind, private=private, exist_ok=True).repo_id
        if private and not api.repo_info(name, repo_type=kind).private:
            raise LaunchError(f"{name}: is public already; make it private on the Hub first, or push to another name")
        if revision and not revision.startswith("refs/"):
            api.create_branch(name, repo_type=kind, branch=revision, exist_ok=True)
        log.info("uploading %s to %s", ", ".join(repository.names), name)
        commit = api.upload_folder(
            repo_id=name,
            repo_type=kind,
            folder_path=repository.folder,
            revision=revision,
            allow_patterns=list(repository.names),
            delete_patterns=list(repository.outdated) or None,
            commit_message=repository.message,
        )
    return str(commit.commit_url)


@contextmanager
def _told_in_one_sentence(repo_id: str) -> Iterator[None]:
    """Messages of the HTTP library are not passed on: they may show a header with the token."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, HTTPError, LocalTokenNotFoundError

    try:
        yield
    except LaunchError:
        raise
    except HFValidationError:
        raise LaunchError(
            f"{repo_id!r} is no name for a repository; expected NAME/REPOSITORY, of letters, digits, '-', '_' and '.'"
        ) from None
    except LocalTokenNotFoundError:
        raise LaunchError(f"{repo_id}: no access token; run `hf auth login` or set HF_TOKEN") from None
    except HfHubHTTPError as error:
        status = error.response.status_code
        said = f"{status}, {_first_line(error.server_message)}" if error.server_message else f"{status}"
        raise LaunchError(
            f"{repo_id}: the Hub refuses the access token ({said}); run `hf auth login` with one that may write"
            if status in (401, 403)
            else f"{repo_id}: the Hub answers {said}; see that the repository and the branch are what you meant"
        ) from None
    except ValueError as error:  # raised where the Hub finds fault with the card's metadata
        raise LaunchError(
            f"{repo_id}: the Hub takes no such README.md ({_first_line(error)}); mend what stands between --- there"
        ) from None
    except (HTTPError, ConnectionError) as error:
        raise LaunchError(
            f"{repo_id}: the Hub cannot be reached ({type(error).__name__}); check the network, HF_ENDPOINT and "
            "HF_HUB_OFFLINE, then push again"
        ) from None


def _first_line(message: object) -> str:
    """Of what somebody else's code says, the beginning; a token in it is blotted out."""
    lines = TOKEN.sub("hf_…", str(message)).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no reason given"
