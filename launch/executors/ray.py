"""Tasks on a running Ray cluster: that of this node, or that of the environment variable ``RAY_ADDRESS``."""

from __future__ import annotations

import logging
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from launch.config import LaunchConfig
from launch.errors import LaunchError
from launch.executors.task import Plan, start_task, write_plan

CONNECT_SECONDS = 10.0


def execute_on_ray(config: LaunchConfig, plan: Plan, home: Path) -> None:
    """Run the plan on Ray; connects for the time of the call unless this process is already connected."""
    import ray

    connects = not ray.is_initialized()
    if connects:
        _connect()
    try:
        check_resources(config, ray.nodes())
        write_plan(home, plan)
        tasks = min(config.tasks, len(plan.missing))
        memory = config.cpus_per_task * config.mem_gb_per_cpu << 30
        remote = ray.remote(num_cpus=config.cpus_per_task, num_gpus=config.gpus_per_task, memory=memory)(start_task)
        waiting = list(range(tasks))
        running: list[Any] = []
        while waiting or running:
            while waiting and len(running) < (config.at_once or tasks):
                running.append(remote.remote(home, waiting.pop(0), tasks))
            finished, running = ray.wait(running)
            for task in finished:
                with suppress(ray.exceptions.RayError):  # the plan's folder holds the reason, or units are missing
                    ray.get(task)
    finally:
        if connects:
            ray.shutdown()


def _connect() -> None:
    import ray

    address = os.environ.get("RAY_ADDRESS", "auto")
    try:
        if ":" in address and "://" not in address:  # checked first: Ray retries a wrong address for over five minutes
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
    except (OSError, ValueError):  # Ray's ConnectionError included
        raise LaunchError(
            f"no Ray cluster at {address}; start one with `ray start --head`, or set RAY_ADDRESS=HOST:PORT"
        ) from None


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
