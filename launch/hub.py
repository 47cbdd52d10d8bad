"""Folders of a run to the Hugging Face Hub: what a stage says belongs to the repository, and nothing else.

A token is never shown, logged or written. ``launch.publish`` says what is sent; failures are told in one sentence.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from launch.errors import LaunchError

TOKEN = re.compile(r"hf_\w+")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Repository:
    """What a repository will hold.

    Fields:
        folder: on this machine; other files in it stay where they are.
        kind: "model" (tokenizers are of that kind) or "dataset".
        names: its files, or patterns of the library's: ``documents/*.parquet``.
        outdated: patterns of files that an earlier push may have left and that go.
        message: of the commit.
    """

    folder: Path
    kind: Literal["model", "dataset"]
    names: Sequence[str]
    outdated: Sequence[str]
    message: str


def push(
    repository: Repository,
    repo_id: str,
    *,
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
) -> str:
    """Upload a repository's files; it is made where there is none yet.

    Args:
        repo_id: "NAME/REPOSITORY" on the Hub.
        private: hide a repository that is made now; one that exists must be hidden already.
        revision: branch to write to, made where there is none; the main one by default.
        token: access token; by default the one that ``hf auth login`` keeps, or HF_TOKEN.

    Returns:
        Address of the commit.

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
    except HFValidationError:
        raise LaunchError(
            f"{repo_id!r} is no name for a repository; expected NAME/REPOSITORY, of letters, digits, '-', '_' and '.'"
        ) from None
    except HfHubHTTPError as error:
        raise LaunchError(_refusal(repo_id, error.response.status_code, error.server_message)) from None
    except LocalTokenNotFoundError:
        raise LaunchError(f"{repo_id}: no access token; run `hf auth login` or set HF_TOKEN") from None
    except LaunchError:
        raise
    except ValueError as error:  # raised where the Hub finds fault with the card's metadata
        raise LaunchError(
            f"{repo_id}: the Hub takes no such README.md ({_first_line(error)}); mend what stands between --- there"
        ) from None
    except (HTTPError, ConnectionError) as error:
        raise LaunchError(
            f"{repo_id}: the Hub cannot be reached ({type(error).__name__}); check the network, HF_ENDPOINT and "
            "HF_HUB_OFFLINE, then push again"
        ) from None


def _refusal(repo_id: str, status: int, message: str | None) -> str:
    said = f", {_first_line(message)}" if message else ""
    if status in (401, 403):
        return (
            f"{repo_id}: the Hub refuses the access token ({status}{said}); run `hf auth login` with one that may write"
        )
    return f"{repo_id}: the Hub answers {status}{said}; see that the repository and the branch are what you meant"


def _first_line(message: object) -> str:
    """Of what somebody else's code says, the beginning; a token in it is blotted out."""
    lines = TOKEN.sub("hf_…", str(message)).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no reason given"
