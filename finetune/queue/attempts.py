"""Run one job under a lock, so that two processes never train it, and turn every error into an outcome.

The lock is released with the process, so the job of a killed process can be taken at once. After an out-of-memory error
the job runs once more with half the micro-batch: the same global batch, and the same result up to rounding if training
draws nothing (no dropout) and the loss is a mean over examples.
"""

from __future__ import annotations

import gc
import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from corpus.documents.errors import BadInput, first_line, is_full_disk
from corpus.documents.locks import hold_lock, write_lock_holder
from finetune.queue.jobs import Job

log = logging.getLogger(__name__)

CLAIM_NAME = "claim.lock"

NO_MEMORY = ("DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory", "out of memory")
MORE_MEMORY = "free memory, run fewer workers, or lower max_tokens or batch_size in finetune.overrides"


class Work(Protocol):
    """Finishes a job with its steps divided into ``parts``, or finds it finished; returns its ``scores.json``."""

    def __call__(self, job: Job, *, parts: int) -> dict[str, Any]: ...


class Outcome(NamedTuple):
    """A ``result``, or the reason why there is none (``failure``); neither: another process has the job."""

    job: Job
    result: dict[str, Any] | None = None
    failure: str | None = None
    trace: str = ""  # of an unexpected error
    stops: OSError | None = None  # no other job would do better: a full disk


@contextmanager
def claim(folder: Path) -> Iterator[bool]:
    """Whether this process now holds the job of this folder; False if another process does."""
    folder.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder / CLAIM_NAME) as is_ours:
        if is_ours:
            write_lock_holder(folder / CLAIM_NAME)  # for ``malmoi status``
        yield is_ours
        if is_ours:  # finished, and whoever opened the file before it went will find that
            with suppress(OSError):
                (folder / CLAIM_NAME).unlink()


def attempt(work: Work, job: Job, out: Path) -> Outcome:
    """Lock a job below ``out`` and run it; every error becomes an outcome."""
    try:
        with claim(job.folder(out)) as is_ours:
            return Outcome(job, _in_memory(work, job)) if is_ours else Outcome(job)
    except BadInput as error:
        return Outcome(job, failure=str(error))
    except Exception as error:
        if is_full_disk(error):
            stops = error if isinstance(error, OSError) else OSError(28, "no space left on the disk")
            return Outcome(job, failure=str(error), stops=stops)
        if is_out_of_memory(error):
            return Outcome(job, failure=f"out of memory with half the micro-batch, too ({first_line(error)})")
        return Outcome(job, failure=first_line(error), trace=traceback.format_exc())


def _in_memory(work: Work, job: Job) -> dict[str, Any]:
    try:
        return work(job, parts=1)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        log.warning("%s: out of memory (%s); once more with half the micro-batch", job, first_line(error))
    gc.collect()  # after the error, which holds the tensors
    torch = sys.modules.get("torch")
    if torch is not None and torch.accelerator.is_available():
        torch.get_device_module(torch.accelerator.current_accelerator()).empty_cache()
    return work(job, parts=2)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch (any device) or Python means out of memory; does not import torch."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"MemoryError", "OutOfMemoryError"}) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY)
    )
