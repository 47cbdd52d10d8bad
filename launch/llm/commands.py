"""``malmoi llm …``: generative models on KLUE. Heavy imports wait until a verb runs."""

from __future__ import annotations

import typer

from launch.llm.judge.commands import mt_bench, total
from launch.llm.kr_eval.commands import export_kr_eval, run_kr_eval

export_app = typer.Typer(no_args_is_help=True, help="Write the KLUE tasks for other harnesses.")
llm_app = typer.Typer(no_args_is_help=True, help="Generative models on KLUE, scored as encoders are.")
llm_app.add_typer(export_app, name="export")
llm_app.command("run")(run_kr_eval)
llm_app.command("mt-bench")(mt_bench)
llm_app.command("total")(total)
export_app.command("llm-kr-eval")(export_kr_eval)
