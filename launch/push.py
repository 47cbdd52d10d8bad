"""The commands ``malmoi corpus push`` and ``malmoi tokenizer push``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from launch.console import set_up_console

Name = Annotated[str, typer.Argument(metavar="NAME/REPOSITORY", help="Where to, on the Hugging Face Hub.")]
Private = Annotated[bool, typer.Option("--private", help="Hide the repository.")]
Revision = Annotated[str | None, typer.Option(help="Branch; made where there is none.")]


def push_corpus(
    corpus: Annotated[str, typer.Argument(help="A recipe that was run, a run's folder, or its corpus folder.")],
    repository: Name,
    private: Private = False,
    revision: Revision = None,
    runs: Annotated[Path, typer.Option("--runs", help="Folder that holds the run folders.")] = Path("runs"),
    with_personal_data: Annotated[
        bool, typer.Option("--with-personal-data", help="Publish a corpus in which personal data was kept.")
    ] = False,
) -> None:
    """Check a finished corpus and publish it as a data set: documents, card and counts, no samples.

    `hf auth login` or HF_TOKEN gives access.

    Example:  malmoi corpus push smoke my-team/korean-text --private
    """
    set_up_console()
    from launch.hub import push
    from launch.publish import corpus_repository

    found = corpus_repository(corpus, runs, with_personal_data=with_personal_data)
    typer.echo(push(found, repository, private=private, revision=revision))


def push_tokenizer(
    folder: Annotated[Path, typer.Argument(help="Tokenizer folder, such as runs/smoke/tokenizer.")],
    repository: Name,
    private: Private = False,
    revision: Revision = None,
) -> None:
    """Check a tokenizer and publish it on the Hugging Face Hub; `hf auth login` or HF_TOKEN gives access.

    Example:  malmoi tokenizer push runs/smoke/tokenizer my-team/korean-wordpiece --private
    """
    set_up_console()
    from launch.hub import push
    from launch.publish import tokenizer_repository

    typer.echo(push(tokenizer_repository(folder), repository, private=private, revision=revision))
