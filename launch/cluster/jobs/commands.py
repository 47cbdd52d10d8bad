"""``malmoi launch …``: files that start a recipe on a cluster. Heavy imports wait until one runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launch.console import set_up_console

if TYPE_CHECKING:
    from launch.cluster.jobs.plan import Launch

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
    from launch.cluster.jobs.slurm import slurm_files

    launch = _planned(recipe, overrides, site, runs, stages)
    _deliver(launch, slurm_files(launch, one_job=one_job), ["bash", "submit.sh"], dry_run, submit)


@launch_app.command("k8s")
def launch_kubernetes(
    recipe: RecipeName,
    overrides: Overrides = None,
    site: SiteFile = None,
    runs: Runs = None,
    stages: Stages = "",
    dry_run: DryRun = False,
    submit: Submit = False,
) -> None:
    """Write a JobSet for Kubernetes, with a Job for each stage; `--submit` is `kubectl apply`.

    Example:  malmoi launch k8s klue-roberta-base corpus.inputs=/shared/text finetune.data=/shared/KLUE
    """
    from launch.cluster.jobs.kubernetes import kubernetes_files

    launch = _planned(recipe, overrides, site, runs, stages, sees_inputs=False)
    _deliver(launch, kubernetes_files(launch), ["kubectl", "apply", "-f", "jobset.yaml"], dry_run, submit)


@launch_app.command("hosts")
def launch_hosts(
    recipe: RecipeName,
    overrides: Overrides = None,
    site: SiteFile = None,
    runs: Runs = None,
    stages: Stages = "",
    dry_run: DryRun = False,
    submit: Submit = False,
) -> None:
    """Write scripts for hosts that ssh reaches; `--submit` runs them and waits.

    Example:  malmoi launch hosts klue-roberta-base corpus.inputs=/shared/text finetune.data=/shared/KLUE --submit
    """
    from launch.cluster.jobs.hosts import hosts_files

    launch = _planned(recipe, overrides, site, runs, stages)
    _deliver(launch, hosts_files(launch), ["bash", "run.sh"], dry_run, submit)


@launch_app.command("site")
def write_site() -> None:
    """Print a site.yaml to begin with, filled in from Slurm where that is here.

    Example:  malmoi launch site > site.yaml
    """
    from launch.cluster.jobs.starter import starter_site

    typer.echo(starter_site(), nl=False)


def _planned(
    recipe: str,
    overrides: list[str] | None,
    site: Path | None,
    runs: Path | None,
    stages: str,
    sees_inputs: bool = True,
) -> Launch:
    """``sees_inputs``: what the recipe reads is to be found under the same paths here."""
    set_up_console()
    from launch.cluster.jobs.config import load_site
    from launch.cluster.jobs.plan import check_launch, plan_launch

    names = [name.strip() for name in stages.split(",") if name.strip()]
    launch = plan_launch(recipe, overrides or [], load_site(site), runs, names)
    if sees_inputs:
        check_launch(launch)
    return launch


def _deliver(launch: Launch, files: dict[str, str], start: list[str], dry_run: bool, submit: bool) -> None:
    from launch.cluster.jobs.write import deliver

    deliver(launch, files, start, dry_run=dry_run, submit=submit)
