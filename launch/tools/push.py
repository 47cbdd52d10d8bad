"""``malmoi push``: publish a corpus, tokenizer or model on the Hugging Face Hub after a check of its files.

Only listed files are sent. A token is never shown, logged or written, and every failure is one sentence.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from launch.console import set_up_console
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
    outdated: Sequence[str]  # patterns of files that an earlier push may have left; they are deleted
    message: str


def push(
    folder: Annotated[Path, typer.Argument(help="Folder of a corpus, tokenizer or model: runs/smoke/corpus, …")],
    repository: Annotated[str, typer.Argument(metavar="NAME/REPOSITORY", help="Target on the Hugging Face Hub.")],
    private: Annotated[bool, typer.Option("--private", help="Create a private repository.")] = False,
    revision: Annotated[str | None, typer.Option(help="Branch; created if it does not exist.")] = None,
    with_personal_data: Annotated[
        bool, typer.Option("--with-personal-data", help="Publish a corpus even if personal data was kept in it.")
    ] = False,
) -> None:
    """Publish a corpus, tokenizer or model on the Hugging Face Hub, after a check.

    A corpus becomes a data set of documents, card and counts. Log in with `hf auth login` or set HF_TOKEN first.

    Example:  malmoi push runs/smoke/finetune/ynat/model/seed-1/model my-team/korean-topics --private
    """
    set_up_console()
    files = find_repository(folder, with_personal_data=with_personal_data)
    typer.echo(upload(files, repository, private=private, revision=revision))


def find_repository(folder: Path, *, with_personal_data: bool = False) -> Repository:
    """What to publish of a folder, by what it holds; ``LaunchError`` or ``BadInput`` if it is not complete."""
    kind = _kind_of(folder)
    if kind == "corpus":
        return corpus_repository(folder, with_personal_data=with_personal_data)
    if kind is not None:
        return model_repository(folder) if kind == "model" else tokenizer_repository(folder)
    inside = sorted(str(path) for path in folder.iterdir() if _kind_of(path)) if folder.is_dir() else []
    hint = f"name one of {', '.join(inside)}" if inside else "expected the folder of a corpus, tokenizer or model"
    raise LaunchError(f"{folder}: {'nothing to publish here' if folder.is_dir() else 'no such folder'}; {hint}")


def _kind_of(folder: Path) -> Literal["corpus", "tokenizer", "model"] | None:
    if (folder / "documents").is_dir():
        return "corpus"
    if (folder / "config.json").is_file():
        return "model"
    return "tokenizer" if any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt")) else None


def tokenizer_repository(folder: Path) -> Repository:
    """The files of a tokenizer; ``BadInput`` unless it is complete and its files agree."""
    from tokenizer.building.export import read_vocabulary
    from tokenizer.repository import check_repository

    names = check_repository(folder)
    entries = len(read_vocabulary(folder / "vocab.txt"))
    outdated = ("plain/*",)  # a second form that earlier versions wrote
    return Repository(folder, "model", names, outdated, f"Korean WordPiece vocabulary, {entries:,} entries")


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
    documents, names = check_repository(folder)
    return Repository(folder, "dataset", names, OUTDATED, f"{documents:,} documents, cleaned with malmoi")


def model_repository(folder: Path) -> Repository:
    """The files of a fine-tuned or pretrained model; ``BadInput`` unless it is complete and loads.

    Other files are not sent: the manifest of a run has paths of this machine.
    """
    from corpus.documents.model_files import INDEX_NAME, WEIGHTS_NAME, check_weight_index, refuse_links
    from finetune.config import MODEL_INFO_NAME

    refuse_links(folder)
    if missing := [name for name in (CARD_NAME, "tokenizer.json") if not (folder / name).is_file()]:
        raise LaunchError(f"{folder}: {', '.join(missing)} is missing; give a model folder as malmoi writes it")
    shards = check_weight_index(folder / INDEX_NAME, str(folder)) if (folder / INDEX_NAME).is_file() else []
    message = _check_saved(folder) if (folder / MODEL_INFO_NAME).is_file() else _check_pretrained(folder)
    names = [
        name for name in (MODEL_INFO_NAME, *MODEL_FILES, WEIGHTS_NAME, INDEX_NAME, *shards) if (folder / name).is_file()
    ]
    return Repository(folder, "model", names, (), message)


def _check_saved(folder: Path) -> str:
    from finetune.saved_models.load import load_model

    settings = load_model(folder, "cpu").settings
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
    except Exception as error:  # of many kinds for unreadable files
        raise LaunchError(f"{folder}: does not load ({_first_line(error)}); give a complete model folder") from None
    if len(tokenizer) > config.vocab_size:
        raise LaunchError(
            f"{folder}: the tokenizer has {len(tokenizer):,} entries but the model {config.vocab_size:,} embeddings; "
            "use the tokenizer of this model"
        )
    return f"{config.model_type}, pretrained with malmoi"


def upload(
    repository: Repository,
    repo_id: str,
    *,
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
) -> str:
    """Upload a repository's files and return the address of the commit; create repository and branch if needed.

    Args:
        private: a new repository becomes private; an existing one must be private already.
        token: by default the one of ``hf auth login``, or HF_TOKEN.

    Raises:
        LaunchError: the Hub refuses, or cannot be reached.
    """
    from huggingface_hub import HfApi

    if token is not None and not (token.isascii() and token.isprintable() and token and " " not in token):
        raise LaunchError(
            "the token has characters that are not allowed in tokens; copy it again, without quotes and spaces"
        )
    api, kind = HfApi(token=token), repository.kind
    with _one_sentence_errors(repo_id):
        name = api.create_repo(repo_id, repo_type=kind, private=private, exist_ok=True).repo_id
        if private and not api.repo_info(name, repo_type=kind).private:
            raise LaunchError(
                f"{name}: this repository is public; make it private on the Hub first, or push to another name"
            )
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
def _one_sentence_errors(repo_id: str) -> Iterator[None]:
    """Turn errors of the Hub into one sentence without the HTTP library's text, which may contain the token."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, HTTPError, LocalTokenNotFoundError

    try:
        yield
    except LaunchError:
        raise
    except HFValidationError:
        raise LaunchError(
            f"{repo_id!r} is not a repository name; expected NAME/REPOSITORY with letters, digits, '-', '_' and '.'"
        ) from None
    except LocalTokenNotFoundError:
        raise LaunchError(f"{repo_id}: no access token; run `hf auth login` or set HF_TOKEN") from None
    except HfHubHTTPError as error:
        status = error.response.status_code
        reason = f"{status}, {_first_line(error.server_message)}" if error.server_message else f"{status}"
        raise LaunchError(
            f"{repo_id}: the Hub refuses the access token ({reason}); run `hf auth login` with a token that may write"
            if status in (401, 403)
            else f"{repo_id}: the Hub answered {reason}; check the names of repository and branch"
        ) from None
    except ValueError as error:  # raised if the Hub rejects the metadata of the card
        raise LaunchError(
            f"{repo_id}: the Hub rejects README.md ({_first_line(error)}); correct the metadata between the --- lines"
        ) from None
    except (HTTPError, ConnectionError) as error:
        raise LaunchError(
            f"{repo_id}: the Hub cannot be reached ({type(error).__name__}); check the network, HF_ENDPOINT and "
            "HF_HUB_OFFLINE, then push again"
        ) from None


def _first_line(message: object) -> str:
    """The first line of a message of another library, without tokens."""
    lines = TOKEN.sub("hf_…", str(message)).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no reason given"
