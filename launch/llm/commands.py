"""``malmoi llm …``: generative models on KLUE. Heavy imports wait until a verb runs."""

from __future__ import annotations

import typer

export_app = typer.Typer(no_args_is_help=True, help="Write the KLUE tasks for other harnesses.")
llm_app = typer.Typer(no_args_is_help=True, help="Generative models on KLUE, scored as encoders are.")
llm_app.add_typer(export_app, name="export")
