"""What datatrove executes: one step that finishes units, and its executors with fixes for bugs of 0.10.1.

Only this module imports datatrove. Of datatrove only the executors are used: its readers, filters and writers lose
records silently, and its statistics are wrong after a resume.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from datatrove.executor.ray import RayPipelineExecutor
from datatrove.executor.slurm import SlurmPipelineExecutor
from datatrove.pipeline.base import PipelineStep

from launch.executors.task import start_task


class FinishUnits(PipelineStep):
    """Finishes units ``missing[rank::world_size]`` of the plan in ``home``; reads and yields no documents."""

    name = "finish units"
    type = "malmoi"

    def __init__(self, home: Path) -> None:
        super().__init__()
        self.home = str(home)

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Any:
        start_task(Path(self.home), rank, world_size)
        return ()


class SlurmArray(SlurmPipelineExecutor):
    """One job array, without the job that merges statistics, which waits forever after a failed task."""

    def launch_merge_stats(self) -> None:
        pass

    def get_sbatch_args(self, max_array: int = 1) -> dict[str, Any]:
        """The options of the batch script; datatrove writes an empty partition as an option without value."""
        options = super().get_sbatch_args(max_array)
        return {name: value for name, value in options.items() if value or name == "requeue"}


class RayTasks(RayPipelineExecutor):
    """Keeps the log of a task in its own folder; datatrove's `/tmp/ray_logs` belongs to the user who created it."""

    def _run_for_rank(self, rank: int, local_rank: int = 0, node_rank: int = -1) -> Any:
        before = tempfile.tempdir
        with tempfile.TemporaryDirectory(prefix="malmoi-") as folder:
            tempfile.tempdir = folder
            try:
                return super()._run_for_rank(rank, local_rank, node_rank)
            finally:
                tempfile.tempdir = before
