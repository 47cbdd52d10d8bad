"""``malmoi launch …``: files that start a recipe on a cluster, and handing them in. Heavy imports wait until one runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from launch.console import set_up_console

launch_app = typer.Typer(no_args_is_help=True, help="Start a recipe on a cluster: Slurm, Kubernetes or hosts by ssh.")
RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help="A shipped recipe or a .yaml file.")]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Overrides, for example pretrain.steps=500.")
]
SiteFile = Annotated[
    Path | None, typer.Option("--site", help="What the cluster is like; default: site.yaml here, if there is one.")
]
Runs = Annotated[Path | None, typer.Option("--runs", help="Folder of the run folders; default: shared/runs, or runs.")]
Stages = Annotated[str, typer.Option("--stages", help="Only these, for example pretrain,finetune.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the files; write nothing.")]
Submit = Annotated[bool, typer.Option("--submit", help="Hand them in, too.")]


@launch_app.command("slurm")
def launch_slurm(
    recipe: RecipeName,
    overrides: Overrides = None,
    site: SiteFile = None,
    runs: Runs = None,
    stages: Stages = "",
    one_job: Annotated[bool, typer.Option("--one-job", help="One job that does all stages on one allocation.")] = False,
    dry_run: DryRun = False,
    submit: Submit = False,
) -> None:
    """Write batch scripts, one for each stage, and what hands them in one after the other.

    Example:  malmoi launch slurm klue-roberta-base corpus.inputs=/data/text finetune.data=/data/KLUE --submit
    """
    set_up_console()
    from launch.sites.config import load_site
    from launch.sites.plan import check_launch, plan_launch
    from launch.sites.slurm import slurm_files
    from launch.sites.write import deliver

    launch = plan_launch(recipe, overrides or [], load_site(site), runs, _names(stages))
    check_launch(launch)
    deliver(launch, slurm_files(launch, one_job=one_job), ["bash", "submit.sh"], dry_run=dry_run, submit=submit)


def _names(stages: str) -> list[str]:
    return [name.strip() for name in stages.split(",") if name.strip()]
