"""Tasks on a running Ray cluster: that of this node, or that of the environment variable ``RAY_ADDRESS``."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections import Counter, deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch.config import LaunchConfig
from launch.errors import LaunchError
from launch.executors.task import MAX_ATTEMPTS, MEMORY_ADVICE, Plan, TaskKilled, start_task, write_plan

log = logging.getLogger(__name__)

CONNECT_SECONDS = 10.0
PING_SECONDS, SILENT_SECONDS = 5.0, 20.0  # together less than 30 s until a lost task is noticed


class Starter:
    """Actor that runs one attempt of a task and answers meanwhile: Ray's calls may wait forever for a lost process."""

    def run(self, home: Path, rank: int, tasks: int) -> None:
        """Run the task; see ``start_task``."""
        start_task(home, rank, tasks)

    def ping(self) -> None:
        """Answer."""


@dataclass
class Attempt:
    """A running attempt. ``end``, ``ping``: its pending calls; ``heard``: when it last answered, None before."""

    rank: int
    actor: Any
    end: Any
    ping: Any
    heard: float | None = None


def execute_on_ray(config: LaunchConfig, plan: Plan, home: Path) -> dict[int, str]:
    """Run the plan on Ray; connects for the time of the call unless this process is already connected.

    A task that is lost (its process is killed, or does not answer) is tried again in a new actor. Returns why, for
    each task that was lost ``MAX_ATTEMPTS`` times.
    """
    import ray

    connects = not ray.is_initialized()
    if connects:
        _connect()
    try:
        check_resources(config, ray.nodes())
        write_plan(home, plan)
        return _run_tasks(config, home, min(config.tasks, len(plan.missing)))
    finally:
        if connects:
            ray.shutdown()


def _run_tasks(config: LaunchConfig, home: Path, tasks: int) -> dict[int, str]:
    import ray

    memory = config.cpus_per_task * config.mem_gb_per_cpu << 30
    needs = {"num_cpus": config.cpus_per_task, "num_gpus": config.gpus_per_task, "memory": memory}
    actors = ray.remote(**needs, max_concurrency=2)(Starter)  # one call runs, another answers
    waiting = deque(range(tasks))
    running: list[Attempt] = []
    losses: Counter[int] = Counter()
    while waiting or running:
        while waiting and len(running) < (config.at_once or tasks):
            actor, rank = actors.remote(), waiting.popleft()
            running.append(Attempt(rank, actor, actor.run.remote(home, rank, tasks), actor.ping.remote()))
        ray.wait([attempt.end for attempt in running], timeout=PING_SECONDS)
        for attempt in list(running):
            has_ended, loss = _look_at(attempt)
            if not has_ended:
                continue
            ray.kill(attempt.actor)
            running.remove(attempt)
            if loss:
                losses[attempt.rank] += 1
                is_last = losses[attempt.rank] == MAX_ATTEMPTS
                waiting.extend([] if is_last else [attempt.rank])
                log.warning("task %d %s (%s)%s", attempt.rank, loss, MEMORY_ADVICE, "" if is_last else "; trying again")
    reason = f"its process was killed {MAX_ATTEMPTS} times ({MEMORY_ADVICE})"
    return {rank: reason for rank, count in losses.items() if count == MAX_ATTEMPTS}


def _look_at(attempt: Attempt) -> tuple[bool, str]:
    """Whether an attempt has ended, and how it was lost; empty if it was not."""
    import ray

    if ray.wait([attempt.end], timeout=0)[0]:
        try:
            ray.get(attempt.end)
        except ray.exceptions.RayTaskError as error:  # the plan's folder holds the reason
            return True, "was killed" if isinstance(error.cause, TaskKilled) else ""
        except ray.exceptions.RayError:
            return True, "lost its Ray process"
        return True, ""
    if ray.wait([attempt.ping], timeout=0)[0]:
        attempt.heard, attempt.ping = time.monotonic(), attempt.actor.ping.remote()
    is_silent = attempt.heard is not None and time.monotonic() - attempt.heard > SILENT_SECONDS
    return is_silent, "does not answer" if is_silent else ""


def _connect() -> None:
    import ray

    address = os.environ.get("RAY_ADDRESS", "auto")
    try:
        if ":" in address and "://" not in address:  # checked first: Ray retries a wrong address for over five minutes
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
    except (OSError, ValueError):  # Ray's ConnectionError included
        raise LaunchError(f"no Ray cluster at {address}; run `ray start --head`, or set RAY_ADDRESS") from None


def check_resources(config: LaunchConfig, nodes: list[dict[str, Any]]) -> None:
    """``LaunchError`` if no node is large enough for a task; Ray would wait forever without a message."""
    living = [node["Resources"] for node in nodes if node["Alive"]]
    offers = [(o.get("CPU", 0), o.get("memory", 0) / 2**30, o.get("GPU", 0)) for o in living]
    needed = config.cpus_per_task, config.cpus_per_task * config.mem_gb_per_cpu, config.gpus_per_task
    if not any(all(has >= needs for has, needs in zip(offer, needed, strict=True)) for offer in offers):
        best = ", ".join(f"{c:.0f} CPUs {m:.1f} GiB" + (f" {g:.0f} GPUs" if g else "") for c, m, g in offers) or "none"
        gpus = f" and launch.gpus_per_task={config.gpus_per_task}" if config.gpus_per_task else ""
        raise LaunchError(
            f"no Ray node has launch.cpus_per_task={config.cpus_per_task} with launch.mem_gb_per_cpu="
            f"{config.mem_gb_per_cpu}{gpus}; nodes: {best}"
        )
