"""The encoder of a training, kept as ``<source>/seed-<n>/start/`` for other tasks that start from it.

It is separate from ``model/``, so ``finetune.save`` is unaffected. It is written before the result marks the training
as finished, and removed when a command has finished all its jobs and no other command works in the folder.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable
from pathlib import Path

from corpus.documents.atomic_files import atomic_dir
from corpus.documents.errors import BadInput
from corpus.documents.locks import hold_lock
from corpus.documents.model_files import quiet_transformers
from finetune.encoder.module import find_encoder
from finetune.queue.jobs import Job, alone
from finetune.saved_models.load import MODEL_NAME, load_model
from finetune.saved_models.save import LOCK_NAME, Trained

log = logging.getLogger(__name__)

START_NAME = "start"


def save_start(folder: Path, trained: Trained) -> None:
    """Write the encoder of a trained model below the folder of its training."""
    model, tokenizer = trained
    with atomic_dir(folder / START_NAME) as target, quiet_transformers():
        find_encoder(model).save_pretrained(target)
        tokenizer.backend_tokenizer.no_truncation()  # what the last call set
        tokenizer.backend_tokenizer.no_padding()
        tokenizer.save_pretrained(target)


def has_start(folder: Path) -> bool:
    """Whether other trainings can start from this one."""
    return (folder / START_NAME).is_dir()


def start_from_model(folder: Path) -> None:
    """If a finished training saved its model, take the encoder from there, unless it exists already."""
    with hold_lock(folder.parent / LOCK_NAME, waits=True):  # or another process may find a better seed meanwhile
        if has_start(folder) or not (folder / MODEL_NAME).is_dir():
            return
        try:
            kept = load_model(folder / MODEL_NAME, "cpu")
        except BadInput as error:
            log.warning("%s", error)
            return
    save_start(folder, Trained(getattr(kept.model, "net", kept.model), kept.tokenizer))


def encoder_of(job: Job, out: Path) -> str:
    """The encoder of a job; ``BadInput`` if the one that it starts from was removed."""
    if job.start is None:
        return job.encoder
    folder = job.start.folder(out)
    if not has_start(folder):
        raise BadInput(f"{folder / START_NAME}: gone, though {job} starts from it; run the same command again")
    return str(folder / START_NAME)


def drop_starts(jobs: Iterable[Job], out: Path) -> None:
    """Remove the encoders that these finished jobs started from, unless another command may need them."""
    sources = dict.fromkeys(job.start for job in jobs if job.start is not None)
    folders = [folder for source in sources if has_start(folder := source.folder(out))]
    with alone(out) as is_alone:
        for folder in folders if is_alone else ():
            drop_start(folder)


def drop_start(folder: Path) -> None:
    """Rename first, so that a partly removed folder is never taken for an encoder."""
    if has_start(folder):
        doomed = folder / f".{START_NAME}-removed"
        shutil.rmtree(doomed, ignore_errors=True)
        (folder / START_NAME).rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)
