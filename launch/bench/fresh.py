"""Work measured in a process of its own: wall and CPU time, and the peak memory of it and of its workers.

A fresh process shares no warm cache, no imported module and no memory peak with what was measured before. CPU time
counts all processes below it, so that several cores cannot make a core look fast.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from launch.bench.memory import watch_peaks
from launch.errors import LaunchError

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def run_fresh(module: str, order: Any, what: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run ``python -m module`` with ``order`` as JSON; the module's main passes it to ``report_measured``.

    Args:
        what: named in the error, "the corpus stage".
        environment: variables besides our own and one thread for numeric libraries.

    Raises:
        LaunchError: the process failed.
    """
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    variables = os.environ | ONE_THREAD | {"PYTHONPATH": path} | dict(environment or {})
    command = [sys.executable, "-m", module, json.dumps(order)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise LaunchError(f"{what} failed in its own process ({last}); run it alone on the same text")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def report_measured(work: Callable[[Any], dict[str, Any] | None]) -> None:
    """Do ``work`` on the order in the command line and print what it returned with the figures, as JSON."""
    order = json.loads(sys.argv[1])
    start = time.perf_counter()
    with watch_peaks() as peaks:
        found = work(order) or {}
    wall = time.perf_counter() - start
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    figures = {
        "wall_s": wall,
        "cpu_s": own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
        "peak_mib": peaks.own,
        "peak_worker_mib": peaks.worker,
    }
    print(json.dumps(found | figures))
