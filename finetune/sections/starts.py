"""What a recipe says of trainings that start from another task's trained encoder (``finetune.start_from``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def check_starts(starts: Mapping[str, str], tasks: Sequence[str], where: str) -> None:
    """``ValueError`` for a task that starts from itself, from one that itself starts from another, or from one that is
    not trained; ``starts``: task to the one that it starts from, ``where``: the key that says so."""
    for task, source in starts.items():
        if source == task:
            raise ValueError(f"{where}.{task}: a task cannot start from itself; name another one")
        if source in starts:
            raise ValueError(
                f"{where}.{task}: {source} itself starts from {starts[source]}, and only one step is possible; leave "
                "one of the two out"
            )
        if task in tasks and source not in tasks:
            added = ",".join([*tasks, source])
            raise ValueError(f"{where}.{task}: {source} is not among the tasks; add it: finetune.tasks={added}")
