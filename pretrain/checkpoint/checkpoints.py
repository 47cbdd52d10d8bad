"""Checkpoints that are whole or absent, and exactly enough to go on, on any number of processes and any engine.

```
checkpoints/step-000000100/model/                 a Hugging Face folder, ready for use
checkpoints/step-000000100/optimizer.safetensors  the optimizer's averages; with ema, the weights; where it is sharded,
                                                  a file for each process (see pretrain/checkpoint/slices.py)
checkpoints/step-000000100/loop.json              step, meter, held-out scores, settings, scales of what is written
                                                  otherwise than it is trained, size and sha256 of each file and of
                                                  itself
checkpoints/best                                  name of the checkpoint with the lowest held-out loss
```
Order, masks and dropout are functions of the step, so nothing else must be remembered. The state is copied in the step
and written by a thread beside the training, under another name, renamed when it is whole. Gathered, the price is a
second state in the memory of the first process; sharded, of each process's part in its own. One whose files have
changed since is passed over for the one before. Room on the disk is asked for before training, because a full disk
hours later costs those hours.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any

from safetensors.torch import save_file
from torch import Tensor
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
from pretrain.checkpoint.export import MODEL_NAME
from pretrain.checkpoint.found import (
    LOOP_NAME,
    OPTIMIZER_NAME,
    Found,
    changed_settings,
    checkpoint_folders,
    read_loops,
    whole_checkpoints,
    why_not_under,
)
from pretrain.checkpoint.slices import Seals, copied, put_together, require_seen, write_slices
from pretrain.checkpoint.states import scaled, usual_scales
from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import Slice
from pretrain.engine.start import Engine
from pretrain.engine.world import World

log = logging.getLogger(__name__)

BEST_NAME = "best"
GIB = 1 << 30
BYTES_OF_CHECKPOINT, BYTES_OF_MODEL = 12, 4  # a parameter: weights and Adam's two averages, float32; weights alone
SaveModel = Callable[..., None]  # writes a Hugging Face folder: (folder, weights=, facts=)


class Checkpoints:
    """Saves, prunes and finds the checkpoints of one configuration on one token store; all processes call it together.

    ``facts`` is what the cards say of the run; "vocabulary_sha256" in it names the tokenizer of the token store.
    ``is_sharded``: each process writes what it holds, and nothing is gathered.
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
        self._thread: Thread | None = None  # what writes the newest checkpoint, and why it could not
        self._failure: Exception | None = None
        if world.is_first:
            folder.mkdir(parents=True, exist_ok=True)
            for leftover in folder.glob(f"*{PARTIAL_SUFFIX}"):
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()

    def due(self, step: int) -> bool:
        """Whether a checkpoint belongs after this step; always after the last."""
        return step % self._config.saved.checkpoint_every == 0 or step == self._config.steps

    def save(
        self, engine: Engine, progress: dict[str, Any], meter_state: list[float], held_out: dict[str, Any] | None
    ) -> None:
        """Copy the state and let a thread write it; one at a time, so the checkpoint before is waited for.

        ``progress`` holds "step", and what else the card says of how far the training is.
        """
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
            self._write_beside(self._write_slices, copied(engine.slices()), loop)
            return
        weights, moments = engine.state(keep=self._world.is_first)
        if self._world.is_first:
            self._write_beside(self._write_gathered, _copied(weights), _copied(moments), loop)

    @property
    def has_failed(self) -> bool:
        """Whether this process knows that a checkpoint could not be written; ``wait`` tells all of them why."""
        return self._failure is not None

    def wait(self) -> None:
        """Until the checkpoint that is being written is there; BadInput on all processes where it could not be."""
        if self._thread:
            self._thread.join()
            self._thread = None
        self._world.in_first(self._tell_failure)
        if self._failure:  # of this process alone, such as a fault of our own
            raise self._failure

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Around the training: at its end, be that an error, the last checkpoint is written to its end.

        Only the second Ctrl-C does not wait.
        """
        try:
            yield
        except Exception:
            if self._thread:
                self._thread.join()
            raise
        self.wait()

    def find(self) -> Found | None:
        """The newest whole checkpoint, None where there is none yet; BadInput where they are of another run."""
        found: Found | None = self._world.in_first(self._look)
        return found

    def newest(self, count: int) -> list[Found]:
        """The newest ``count`` whole checkpoints, newest first; BadInput where there are some, and none is whole."""
        return list(islice(whole_checkpoints(self._folder), count))

    def _write_beside(self, write: Callable[..., None], *given: Any) -> None:
        self._thread = Thread(target=self._noting_failure, args=(write, *given), name="checkpoint", daemon=True)
        self._thread.start()

    def _noting_failure(self, write: Callable[..., None], *given: Any) -> None:
        try:
            write(*given)
        except Exception as error:  # of any kind: it belongs to the training, which asks for it
            self._failure = error

    def _write_gathered(self, weights: dict[str, Tensor], moments: dict[str, Tensor], loop: dict[str, Any]) -> None:
        with atomic_dir(self._home(loop)) as folder:
            self._write_model(folder, weights, loop)
            with locate_errors(folder / OPTIMIZER_NAME) as path:
                save_file(moments, path)
            _seal(folder, loop, {})
        self._prune()

    def _write_slices(self, slices: list[Slice], loop: dict[str, Any]) -> None:
        """In the threads of all processes: the checkpoint is there when the first has seen what all wrote."""
        home, world = self._home(loop), self._world.for_thread()
        with ExitStack() as stack:
            world.in_first(lambda: str(stack.enter_context(atomic_dir(home))))
            folder = home.with_name(home.name + PARTIAL_SUFFIX)
            seals = write_slices(folder, slices, world)
            if world.is_first:
                require_seen(folder, seals)
                with put_together(folder, seals) as weights:
                    self._write_model(folder, weights, loop)
                _seal(folder, loop, seals)
        if world.is_first:
            self._prune()

    def _home(self, loop: dict[str, Any]) -> Path:
        return self._folder / f"step-{loop['step']:09}"

    def _write_model(self, folder: Path, weights: Mapping[str, Tensor], loop: dict[str, Any]) -> None:
        (folder / MODEL_NAME).mkdir()
        facts = self._facts | loop["progress"] | {"held_out": loop["held_out"]}
        loop["scales"] = usual_scales(weights)
        self._save_model(folder / MODEL_NAME, weights=scaled(weights, loop["scales"]), facts=facts)

    def _tell_failure(self) -> None:
        error = self._failure
        if isinstance(error, OSError):
            kept = next((folder.name for folder in reversed(read_loops(self._folder))), "the start")
            reason, advice = (error.strerror or str(error)).lower(), "check the folder and its permissions"
            if is_full_disk(error):
                reason = "the disk is full, or a quota or the limit of ulimit -f is reached"
                advice = "make room"
            raise BadInput(
                f"{error.filename or self._folder}: could not be written ({reason}); {advice} and run the same command "
                f"again, which goes on from {kept}"
            ) from error
        if error:
            raise error

    def _look(self) -> Found | None:
        for found in self.newest(1):
            fault = self._contradiction(found)
            if fault:
                raise BadInput(fault)
            if changed_settings(found.loop["config"], self._config):
                log.info("another schedule, under which all steps so far are as they were; going on with it")
            return found
        return None

    def _contradiction(self, found: Found) -> str | None:
        fault = why_not_under(found, self._config)
        if fault is None and found.loop["vocabulary_sha256"] != self._identity["vocabulary_sha256"]:
            return f"{found.folder}: written with another vocabulary; use that tokenizer, or another output folder"
        return fault

    def _prune(self) -> None:
        """Drop the oldest checkpoints, but never the best."""
        loops = read_loops(self._folder)  # one that cannot be read is no checkpoint
        kind = "causal_loss" if self._config.model.objective == "causal" else "mlm_loss"
        losses = {folder: loop["held_out"][kind] for folder, loop in loops.items() if loop["held_out"] is not None}
        best = min(losses, key=losses.__getitem__, default=None)  # the earlier one where they are equal
        if best is not None:
            atomic_write(self._folder / BEST_NAME, best.name)
        kept = list(loops)[-self._config.saved.keep_checkpoints :]
        for old in checkpoint_folders(self._folder):
            if old < kept[0] and old != best:
                shutil.rmtree(old)


def _seal(folder: Path, loop: dict[str, Any], known: Seals) -> None:
    """Write last what says that a checkpoint is whole; ``known`` are seals that those who wrote the files made."""
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    loop["files"] = {name: known.get(name) or file_digest(folder / name) for name in names}
    fsync_tree(folder)
    atomic_write(folder / LOOP_NAME, json.dumps(with_digest(loop), ensure_ascii=False))


def _copied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies, one by one in place of what was given: an engine on a CPU gives the very tensors that it trains."""
    return {name: tensors.pop(name).to("cpu", copy=True) for name in list(tensors)}


def mean_weights(models: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean over models of one architecture (Izmailov et al. 2018, arXiv 1803.05407), float32 by name.

    Sums are in float64, so the mean of equal weights is those weights.
    """
    sums = {name: weight.double() for name, weight in models[0].items()}
    for weights in models[1:]:
        for name, weight in weights.items():
            sums[name] += weight
    return {name: (total / len(models)).float() for name, total in sums.items()}


def require_disk_space(
    out: Path, network: PreTrainedModel, config: PretrainConfig, *, is_sharded: bool = False
) -> None:
    """Write a little and count the rest: one more checkpoint than are kept must fit, the best one, and the model.

    Where it is sharded, also the slices of the weights, which the model is put together from.
    """
    probe = out / "disk_space.partial"
    probe.write_bytes(b"\0" * 4096)
    probe.unlink()
    parameters = sum(parameter.numel() for parameter in network.parameters())
    there = sum(path.stat().st_size for path in (out / "checkpoints").rglob("*") if path.is_file())
    each = BYTES_OF_CHECKPOINT + (BYTES_OF_MODEL if config.optimizer.ema else 0)  # the average beside the weights
    needed = parameters * (each * (config.saved.keep_checkpoints + 2) + BYTES_OF_MODEL * (1 + is_sharded)) - there
    free = shutil.disk_usage(out).free
    if free < needed:
        raise BadInput(
            f"{out}: {free / GIB:.1f} GiB free, but {config.saved.keep_checkpoints} checkpoints of "
            f"{parameters / 1e6:.0f} M parameters, the best one and the model need {needed / GIB:.1f} GiB; make room "
            "or lower pretrain.saved.keep_checkpoints"
        )
