"""Jobs in the order in which they are given out; one that starts from another waits for its result.

```
ready ──▶ given out ──▶ outcome ── result ──▶ what starts from it becomes ready, before all others
                          │
                          ├── failure ──▶ what starts from it fails with it, without a try
                          └── neither (another command is at it, its process died) ──▶ it is ready again later
```
No deadlock: what is waited for waits for nothing itself. A command that ends without waiting for others leaves what
starts from their jobs to them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from finetune.queue.attempts import Outcome
from finetune.queue.jobs import Job


class Line:
    """``ready`` are the jobs that nothing holds back, the next one first."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        jobs = list(jobs)
        there = set(jobs)
        self.ready = deque(job for job in jobs if job.start not in there)
        self._held: dict[Job, list[Job]] = defaultdict(list)
        for job in jobs:
            if job.start in there:
                self._held[job.start].append(job)

    def settle(self, outcome: Outcome) -> list[Outcome]:
        """Take note of what came of a job; returns the failures that follow from it."""
        if outcome.result is None and outcome.failure is None:
            return []
        held = self._held.pop(outcome.job, [])
        if outcome.failure is not None:
            return [Outcome(job, failure=f"it starts from {outcome.job}, which failed") for job in held]
        self.ready.extendleft(reversed(held))
        return []
