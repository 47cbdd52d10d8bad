"""Checkpoints: complete or absent, and enough to resume exactly, with any number of processes and any engine.

```
checkpoints/step-000000100/model/                 a Hugging Face folder, ready for use
checkpoints/step-000000100/optimizer.safetensors  Adam's moments; with ZeRO 1 to 3, one file per process (slices.py)
checkpoints/step-000000100/loop.json              step, meter, scores, settings, export scales, digests of the files
checkpoints/best                                  name of the checkpoint with the lowest held-out loss
```
Order, masks and dropout are functions of the step, so nothing else is saved. The state is copied within the step, and
a thread writes it. A checkpoint whose files have changed is skipped, and the one before is used.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, cast

from safetensors.torch import save_file
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedModel

from corpus.documents.atomic_files import (
    PARTIAL_SUFFIX,
    atomic_dir,
    atomic_write,
    file_digest,
    fsync_tree,
    locate_errors,
    with_digest,
)
from corpus.documents.errors import BadInput, is_full_disk
from pretrain.checkpoint.export import MODEL_NAME, export_scales, scaled
from pretrain.checkpoint.find_checkpoint import (
    LOOP_NAME,
    OPTIMIZER_NAME,
    Checkpoint,
    changed_settings,
    checkpoint_folders,
    newest_checkpoint,
    read_loops,
    resume_problem,
)
from pretrain.checkpoint.slices import Digests, copied, joined_weights, require_visible, write_slices
from pretrain.config import PretrainConfig
from pretrain.engine.memory import CHECKPOINT_BYTES, MODEL_BYTES
from pretrain.engine.optimizer import Slice
from pretrain.engine.start import Engine, ShardedEngine
from pretrain.engine.world import World

log = logging.getLogger(__name__)

BEST_NAME = "best"
SaveModel = Callable[..., None]  # writes a Hugging Face folder: (folder, weights=, facts=)


class Checkpoints:
    """Saves, prunes and finds the checkpoints of a run; all processes call it together.

    ``facts``: values for the model cards. ``is_sharded``: each process writes its own part.
    """

    def __init__(
        self,
        folder: Path,
        config: PretrainConfig,
        facts: dict[str, Any],
        world: World,
        save_model: SaveModel,
        *,
        is_sharded: bool = False,
    ) -> None:
        self._folder, self._config, self._facts, self._world = folder, config, facts, world
        self._save_model, self._is_sharded = save_model, is_sharded
        self._identity = {"config": config.identity(), "vocabulary_sha256": facts["vocabulary_sha256"]}
        self._thread: Thread | None = None  # writes the newest checkpoint; its error, if it failed
        self._failure: Exception | None = None
        if world.is_first:
            folder.mkdir(parents=True, exist_ok=True)
            for leftover in folder.glob(f"*{PARTIAL_SUFFIX}"):
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()

    def due(self, step: int) -> bool:
        """Whether a checkpoint is saved after this step; always after the last."""
        return step % self._config.saved.checkpoint_every == 0 or step == self._config.steps

    def save(
        self, engine: Engine, progress: dict[str, Any], meter_state: list[float], held_out: dict[str, Any] | None
    ) -> None:
        """Copy the state and start a thread that writes it; waits for the previous checkpoint first."""
        self.wait()
        loop = {
            "step": progress["step"],
            "origin": self._facts.get("continued_from"),
            "progress": progress,
            "meter": meter_state,
            "held_out": held_out,
            "scaling": engine.scaling(),
            **self._identity,
        }
        if self._is_sharded:
            self._start_thread(self._write_slices, copied(cast(ShardedEngine, engine).slices()), loop)
            return
        weights, moments = engine.state(keep=self._world.is_first)
        if self._world.is_first:
            self._start_thread(self._write_gathered, weights, moments, loop)

    @property
    def has_failed(self) -> bool:
        """Whether this process failed to write a checkpoint; ``wait`` reports the error in all processes."""
        return self._failure is not None

    def wait(self) -> None:
        """Wait for the checkpoint that is being written; BadInput in all processes if it could not be written."""
        if self._thread:
            self._thread.join()
            self._thread = None
        self._world.in_first(self._raise_failure)
        if self._failure:  # of this process only, such as a bug
            raise self._failure

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Context of the training: waits for the last checkpoint at the end, also after an error."""
        try:
            yield
        except Exception:
            if self._thread:
                self._thread.join()
            raise
        self.wait()

    def find(self) -> Checkpoint | None:
        """The checkpoint to resume from, None if there is none yet; BadInput if it is of another run."""
        checkpoint: Checkpoint | None = self._world.in_first(self._find)
        return checkpoint

    def newest(self) -> Checkpoint | None:
        """The newest complete checkpoint; BadInput if there are checkpoints and none is complete."""
        return newest_checkpoint(self._folder)

    def _start_thread(self, write: Callable[..., None], *arguments: Any) -> None:
        self._thread = Thread(target=self._run, args=(write, *arguments), name="checkpoint", daemon=True)
        self._thread.start()

    def _run(self, write: Callable[..., None], *arguments: Any) -> None:
        try:
            write(*arguments)
        except Exception as error:  # of any kind: the training thread raises it
            self._failure = error

    def _write_gathered(self, weights: dict[str, Tensor], moments: dict[str, Tensor], loop: dict[str, Any]) -> None:
        with atomic_dir(self._home(loop)) as folder:
            self._write_model(folder, weights, loop)
            with locate_errors(folder / OPTIMIZER_NAME) as path:
                save_file(moments, path)
            _finish(folder, loop, {})
        self._prune()

    def _write_slices(self, slices: list[Slice], loop: dict[str, Any]) -> None:
        """In the threads of all processes: the first one completes the checkpoint when it sees the files of all."""
        home, world = self._home(loop), self._world.for_thread()
        with ExitStack() as stack:
            world.in_first(lambda: str(stack.enter_context(atomic_dir(home))))
            folder = home.with_name(home.name + PARTIAL_SUFFIX)
            digests = write_slices(folder, slices, world)
            if world.is_first:
                require_visible(folder, digests)
                with joined_weights(folder, digests) as weights:
                    self._write_model(folder, weights, loop)
                _finish(folder, loop, digests)
        if world.is_first:
            self._prune()

    def _home(self, loop: dict[str, Any]) -> Path:
        return self._folder / f"step-{loop['step']:09}"

    def _write_model(self, folder: Path, weights: Mapping[str, Tensor], loop: dict[str, Any]) -> None:
        (folder / MODEL_NAME).mkdir()
        facts = self._facts | loop["progress"] | {"held_out": loop["held_out"]}
        loop["scales"] = export_scales(weights)
        self._save_model(folder / MODEL_NAME, weights=scaled(weights, loop["scales"]), facts=facts)

    def _raise_failure(self) -> None:
        error = self._failure
        if isinstance(error, OSError):
            newest = next((folder.name for folder in reversed(read_loops(self._folder))), "the start")
            reason, advice = (error.strerror or str(error)).lower(), "check the folder and its permissions"
            if is_full_disk(error):
                reason = "the disk is full, or a quota or the limit of ulimit -f is reached"
                advice = "make room"
            raise BadInput(
                f"{error.filename or self._folder}: could not be written ({reason}); {advice} and run the same command "
                f"again, which resumes from {newest}"
            ) from error
        if error:
            raise error

    def _find(self) -> Checkpoint | None:
        checkpoint = self.newest()
        if checkpoint is None:
            return None
        problem = resume_problem(checkpoint, self._config)
        if problem is None and checkpoint.loop["vocabulary_sha256"] != self._identity["vocabulary_sha256"]:
            problem = (
                f"{checkpoint.folder}: written with another vocabulary; use that tokenizer, or another output folder"
            )
        if problem:
            raise BadInput(problem)
        if changed_settings(checkpoint.loop["config"], self._config):
            log.info("schedule changed; completed steps are unaffected; resuming with the new schedule")
        return checkpoint

    def _prune(self) -> None:
        """Delete the oldest checkpoints, but never the best."""
        loops = read_loops(self._folder)  # without unreadable ones
        kind = "causal_loss" if self._config.model.objective == "causal" else "mlm_loss"
        losses = {folder: loop["held_out"][kind] for folder, loop in loops.items() if loop["held_out"] is not None}
        best = min(losses, key=losses.__getitem__, default=None)  # ties: the earlier one
        if best is not None:
            atomic_write(self._folder / BEST_NAME, best.name)
        newest = list(loops)[-self._config.saved.keep_checkpoints :]
        for old in checkpoint_folders(self._folder):
            if old < newest[0] and old != best:
                shutil.rmtree(old)


def _finish(folder: Path, loop: dict[str, Any], known: Digests) -> None:
    """Write loop.json, which completes a checkpoint; ``known``: digests from the processes that wrote the files."""
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    loop["files"] = {name: known.get(name) or file_digest(folder / name) for name in names}
    fsync_tree(folder)
    atomic_write(folder / LOOP_NAME, json.dumps(with_digest(loop), ensure_ascii=False))


def require_disk_space(
    out: Path, network: PreTrainedModel, config: PretrainConfig, *, is_sharded: bool = False
) -> None:
    """Raise BadInput if the folder is too small for all checkpoints, the model and, if sharded, its slices."""
    probe = out / "disk_space.partial"
    probe.write_bytes(b"\0" * 4096)
    probe.unlink()
    parameters = sum(parameter.numel() for parameter in network.parameters())
    used = sum(path.stat().st_size for path in (out / "checkpoints").rglob("*") if path.is_file())
    max_checkpoints = config.saved.keep_checkpoints + 2  # with the best, and the one being written
    each_parameter = CHECKPOINT_BYTES * max_checkpoints + MODEL_BYTES * (1 + is_sharded)
    needed = parameters * each_parameter - used
    free = shutil.disk_usage(out).free
    if free < needed:
        raise BadInput(
            f"{out}: {tqdm.format_sizeof(free, 'B')} free, but {config.saved.keep_checkpoints} checkpoints of "
            f"{parameters:,} parameters, the best one and the model need {tqdm.format_sizeof(needed, 'B')}; make room "
            "or lower pretrain.saved.keep_checkpoints"
        )
