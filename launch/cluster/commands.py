"""``malmoi launch`` and ``malmoi status``. Heavy imports wait until one runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from launch.console import PlainConsole, print_json, print_table
from launch.errors import LaunchError

Overrides = Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings, as pretrain.steps=1.")]


def launch_on_cluster(
    where: Annotated[
        Literal["slurm", "k8s", "hosts", "site"],
        typer.Argument(metavar="slurm|k8s|hosts|site", help="Kind of cluster; site: print a site.yaml to edit."),
    ],
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A shipped recipe or a .yaml file.")] = "",
    overrides: Overrides = None,
    site: Annotated[
        Path | None, typer.Option("--site", help="Description of the cluster. Default: ./site.yaml if it exists.")
    ] = None,
    runs: Annotated[
        Path | None, typer.Option("--runs", help="Directory for run outputs. Default: the site's shared folder.")
    ] = None,
    stages: Annotated[str, typer.Option("--stages", help="Only these stages, for example pretrain,finetune.")] = "",
    one_job: Annotated[bool, typer.Option("--one-job", help="Slurm: run all stages in one job.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the files. Write nothing.")] = False,
    submit: Annotated[bool, typer.Option("--submit", help="Submit the jobs after the files are written.")] = False,
) -> None:
    """Write the files that run a recipe on Slurm, Kubernetes or hosts reached by ssh.

    slurm: one batch script per stage and submit.sh. k8s: a JobSet. hosts: run.sh, which starts the stages by ssh and
    waits.

    Example:  malmoi launch slurm klue-roberta-base corpus.inputs=/data/text finetune.data=/data/KLUE --submit
    """
    from launch.cluster import jobs
    from launch.cluster.kubernetes import kubernetes_files
    from launch.cluster.scripts import hosts_files, slurm_files
    from launch.cluster.site import load_site

    if where == "site":
        typer.echo(jobs.render("site.yaml.j2", shared=str(Path.cwd())), nl=False)
        return
    if not recipe:
        raise LaunchError(f"launch {where}: name a recipe; `malmoi recipes` lists the shipped ones")
    names = [name.strip() for name in stages.split(",") if name.strip()]
    launch = jobs.plan_launch(recipe, overrides or [], load_site(site), runs, names)
    if where != "k8s":  # in Kubernetes the inputs may be visible to the pods only
        jobs.check_launch(launch)
    if where == "slurm":
        files, start = slurm_files(launch, one_job=one_job), ["bash", "submit.sh"]
    elif where == "hosts":
        files, start = hosts_files(launch), ["bash", "run.sh"]
    else:
        files, start = kubernetes_files(launch), ["kubectl", "apply", "-f", "jobset.yaml"]
    jobs.deliver(launch, files, start, dry_run=dry_run, submit=submit)


def show_status(
    run: Annotated[
        str | None, typer.Argument(help="A run's folder, or its name in --runs. Default: all runs in --runs.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    runs: Annotated[Path, typer.Option("--runs", help="Directory that holds the run folders.")] = Path("runs"),
) -> None:
    """Show the status of a run: stage, progress, time left, health, last checkpoint and jobs. Read-only.

    Example:  malmoi status smoke
    """
    from launch.cluster.status import find_run, read_run, run_lines, runs_in, runs_table

    if run is not None:
        state = read_run(find_run(run, runs))
    else:
        folders = runs_in(runs)
        if not folders:
            raise LaunchError(f"{runs}: no runs in this folder; name the folder of a run, or set --runs")
        state = {"runs": [read_run(folder) for folder in folders]}
    if as_json:
        print_json(state)
    elif run is None:
        print_table(runs_table(state["runs"]))
    else:
        for line in run_lines(state):
            PlainConsole().print(line, soft_wrap=True)
