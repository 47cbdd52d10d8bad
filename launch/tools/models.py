"""``malmoi model …``: a trained model onto the Hub, or into ONNX. Heavy imports wait until one runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from launch.console import set_up_console
from launch.tools.commands import Private, RepositoryName, Revision

model_app = typer.Typer(no_args_is_help=True, help="Publish a trained model, or write it as ONNX.")


@model_app.command("push")
def push_model(
    folder: Annotated[Path, typer.Argument(help="A kept model, runs/…/seed-1/model, or a run's pretrained model.")],
    repository: RepositoryName,
    private: Private = False,
    revision: Revision = None,
) -> None:
    """Check a model and publish it on the Hugging Face Hub; `hf auth login` or HF_TOKEN gives access.

    Example:  malmoi model push runs/smoke/finetune/ynat/model/seed-1/model my-team/korean-topics --private
    """
    set_up_console()
    from launch.tools.hub import model_repository, push

    typer.echo(push(model_repository(folder), repository, private=private, revision=revision))


@model_app.command("export")
def export_model(
    folder: Annotated[str, typer.Argument(help="A kept model that labels texts or tokens, or its name on the Hub.")],
    out: Annotated[Path, typer.Argument(help="A folder to be made: model.onnx, configuration, tokenizer.")],
) -> None:
    """Write a kept model of YNAT, STS, NLI, NER or RE as ONNX, after checking that its outputs are the same.

    Example:  malmoi model export runs/smoke/finetune/ynat/model/seed-1/model topics-onnx
    """
    set_up_console()
    from finetune.saved_models.export import export_onnx

    typer.echo(f"{out}: outputs differ by {export_onnx(folder, out):.1e} at most")
