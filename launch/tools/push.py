"""``malmoi push``: publish a corpus, tokenizer, model or benchmark on the Hugging Face Hub after a check of its files.

Only listed files are sent. A token is never shown, logged or written, and every failure is one sentence.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from launch.errors import LaunchError
from launch.manifest import MANIFEST_NAME, read_manifest

CARD_NAME = "README.md"
MODEL_FILES = (
    CARD_NAME, "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
    "special_tokens_map.json", "vocab.txt",
)  # fmt: skip
TOKEN = re.compile(r"hf_\w+")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Repository:
    """What a repository will hold; other files of the folder are not sent."""

    folder: Path
    kind: Literal["model", "dataset"]  # a tokenizer is a model for the Hub
    names: Sequence[str]  # files, or patterns such as documents/*.parquet
    outdated: Sequence[str] = ()  # patterns of files that an earlier push may have left; they are deleted


def push(
    folder: Annotated[
        Path, typer.Argument(help="Folder of a corpus, tokenizer, model or benchmark: runs/smoke/corpus, …")
    ],
    repository: Annotated[str, typer.Argument(metavar="NAME/REPOSITORY", help="Target on the Hugging Face Hub.")],
    private: Annotated[bool, typer.Option("--private", help="Create a private repository.")] = False,
    with_personal_data: Annotated[
        bool, typer.Option("--with-personal-data", help="Publish a corpus even if personal data was kept in it.")
    ] = False,
) -> None:
    """Publish a corpus, tokenizer, model or benchmark on the Hugging Face Hub, after a check.

    A corpus becomes a data set of documents, card and counts. Log in with `hf auth login` or set HF_TOKEN first.

    Example:  malmoi push runs/smoke/finetune/ynat/model/seed-1/model my-team/korean-topics --private
    """
    typer.echo(upload(find_repository(folder, with_personal_data=with_personal_data), repository, private=private))


def find_repository(folder: Path, *, with_personal_data: bool = False) -> Repository:
    """What to publish of a folder, by what it holds; ``LaunchError`` or ``BadInput`` if it is not complete."""
    kind = _kind_of(folder)
    if kind == "corpus":
        return corpus_repository(folder, with_personal_data=with_personal_data)
    if kind == "model":
        return model_repository(folder)
    if kind == "benchmark":
        from finetune.annotation.card import published_files

        return Repository(folder, "dataset", published_files(folder))
    if kind == "tokenizer":
        from tokenizer.repository import check_repository

        return Repository(folder, "model", check_repository(folder))
    hint = "expected the folder of a corpus, tokenizer, model or benchmark"
    if not folder.is_dir():
        raise LaunchError(f"{folder}: no such folder; {hint}")
    if inside := sorted(str(path) for path in folder.iterdir() if _kind_of(path)):
        hint = f"name one of {', '.join(inside)}"
    raise LaunchError(f"{folder}: nothing to publish here; {hint}")


def _kind_of(folder: Path) -> Literal["benchmark", "corpus", "tokenizer", "model"] | None:
    if (folder / "benchmark.yaml").is_file():
        return "benchmark"
    if (folder / "documents").is_dir():
        return "corpus"
    if (folder / "config.json").is_file():
        return "model"
    return "tokenizer" if any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt")) else None


def corpus_repository(folder: Path, *, with_personal_data: bool = False) -> Repository:
    """The documents, card and counts of a finished corpus, without samples and quarantine.

    Raises:
        LaunchError: it is unfinished, or has personal data that may not be published.
        BadInput: its files are not those that the stage wrote.
    """
    from corpus.card.repository import OUTDATED, check_repository

    manifest = read_manifest(folder)
    if manifest is None:
        raise LaunchError(f"{folder}: {MANIFEST_NAME} is missing, so this corpus is not finished; run `malmoi corpus`")
    settings = manifest.get("settings", {})
    if manifest.get("stage") != "corpus" or "pii" not in settings:
        raise LaunchError(f"{folder}: {MANIFEST_NAME} is not from the corpus stage; give the corpus folder of a run")
    if settings["pii"].get("mode") == "keep" and not with_personal_data:
        raise LaunchError(
            f"{folder}: personal data was kept in this corpus (corpus.pii.mode=keep); clean it with another mode, or "
            "add --with-personal-data if it may be published"
        )
    return Repository(folder, "dataset", check_repository(folder)[1], OUTDATED)


def model_repository(folder: Path) -> Repository:
    """The files of a fine-tuned or pretrained model; ``BadInput`` unless it is complete and loads.

    Other files are not sent: the manifest of a run has paths of this machine.
    """
    from corpus.documents.model_files import INDEX_NAME, WEIGHTS_NAME, check_weight_index, refuse_links
    from finetune.config import MODEL_INFO_NAME
    from finetune.encoder.loading import check_encoder
    from finetune.saved_models.load import load_model

    refuse_links(folder)
    if missing := [name for name in (CARD_NAME, "tokenizer.json") if not (folder / name).is_file()]:
        raise LaunchError(f"{folder}: {', '.join(missing)} is missing; give a model folder as malmoi writes it")
    shards = check_weight_index(folder / INDEX_NAME, str(folder)) if (folder / INDEX_NAME).is_file() else []
    parts: tuple[str, ...] = ()
    if (folder / MODEL_INFO_NAME).is_file():
        load_model(folder, "cpu")
    elif (folder / "modules.json").is_file():  # sentence embeddings
        from finetune.embed import embedder

        embedder.load_embedder(folder, "cpu")
        parts = embedder.FILE_NAMES
    else:
        check_encoder(str(folder))
    names = (MODEL_INFO_NAME, *MODEL_FILES, *parts, WEIGHTS_NAME, INDEX_NAME, *shards)
    return Repository(folder, "model", [name for name in names if (folder / name).is_file()])


def upload(repository: Repository, repo_id: str, *, private: bool = False) -> str:
    """Upload a repository's files and return the address of the commit; ``LaunchError`` with what the Hub answers.

    A missing repository is created; with ``private``, an existing one must be private already.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HTTPError, LocalTokenNotFoundError

    api, kind = HfApi(), repository.kind
    try:
        name = api.create_repo(repo_id, repo_type=kind, private=private, exist_ok=True).repo_id
        is_public = private and not api.repo_info(name, repo_type=kind).private
        if not is_public:
            log.info("uploading %s to %s", ", ".join(repository.names), name)
            commit = api.upload_folder(
                repo_id=name,
                repo_type=kind,
                folder_path=repository.folder,
                allow_patterns=list(repository.names),
                delete_patterns=list(repository.outdated) or None,
                commit_message="Upload with malmoi",
            )
            return str(commit.commit_url)
    except (HTTPError, ConnectionError, LocalTokenNotFoundError, ValueError) as error:
        raise LaunchError(f"{repo_id}: {_explain(error)}") from None
    raise LaunchError(f"{name}: this repository is public; make it private on the Hub first, or push to another name")


def _explain(error: Exception) -> str:
    """An error of the Hub in one sentence, without the HTTP library's text, which may contain the token."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

    if isinstance(error, HFValidationError):
        return "not a repository name; expected NAME/REPOSITORY with letters, digits, '-', '_' and '.'"
    if isinstance(error, LocalTokenNotFoundError):
        return "no access token; run `hf auth login` or set HF_TOKEN"
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        reason = f"{status}, {_without_tokens(error.server_message)}" if error.server_message else f"{status}"
        if status in (401, 403):
            return f"the Hub refuses the access token ({reason}); run `hf auth login` with a token that may write"
        return f"the Hub answered {reason}; check the name of the repository"
    if isinstance(error, ValueError):  # raised if the Hub rejects the metadata of the card
        return f"the Hub rejects README.md ({_without_tokens(error)}); correct the metadata between the --- lines"
    return f"the Hub cannot be reached ({type(error).__name__}); check the network, HF_ENDPOINT and HF_HUB_OFFLINE"


def _without_tokens(message: object) -> str:
    """The first line of a message of another library."""
    return TOKEN.sub("hf_…", str(message)).strip().partition("\n")[0].rstrip(".") or "no reason given"
