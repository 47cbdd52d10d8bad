"""Checkpoints that are whole or absent, and exactly enough to go on.

```
checkpoints/step-000000100/   DeepSpeed's files, loop.json
checkpoints/latest            name of the newest whole checkpoint, written last
```
Order, masks and dropout are functions of the step, so loop.json needs the step, what the meter has summed up, and
what the checkpoint belongs to. A checkpoint is written under another name and renamed when all processes are done.
"""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

from pretrain.config import BadInput, PretrainConfig
from pretrain.world import World

log = logging.getLogger(__name__)

LATEST_NAME = "latest"
LOOP_NAME = "loop.json"
PARTIAL = ".partial"


class Checkpoints:
    """Saves, prunes and resumes the training of one configuration on one token store.

    Args:
        folder: where checkpoints live; created when missing.
        config: the configuration being trained.
        vocabulary_sha256: the tokenizer the token store was packed with.
        world: the processes; all of them must call every method together.
    """

    def __init__(self, folder: Path, config: PretrainConfig, vocabulary_sha256: str, world: World) -> None:
        self._folder, self._config, self._world = folder, config, world
        self._identity = {
            "config": json.loads(config.model_dump_json()),
            "vocabulary_sha256": vocabulary_sha256,
        }
        if world.is_first:
            folder.mkdir(parents=True, exist_ok=True)
            for leftover in folder.glob(f"*{PARTIAL}"):
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        world.wait_for_all()

    def due(self, step: int) -> bool:
        """Whether a checkpoint belongs behind this step; always behind the last."""
        return step % self._config.checkpoint_every == 0 or step == self._config.steps

    def save(self, engine: Any, step: int, meter_state: list[float]) -> None:
        """Write the checkpoint of ``step`` and drop the oldest ones."""
        name = f"step-{step:09}"
        partial = self._folder / (name + PARTIAL)
        engine.save_checkpoint(str(self._folder), tag=partial.name, save_latest=False)
        self._world.wait_for_all()
        if self._world.is_first:
            loop = {"step": step, "meter": meter_state, "world_size": self._world.size, **self._identity}
            (partial / LOOP_NAME).write_text(json.dumps(loop), "utf-8")
            shutil.rmtree(self._folder / name, ignore_errors=True)
            partial.replace(self._folder / name)
            pointer = self._folder / (LATEST_NAME + PARTIAL)
            pointer.write_text(name, "utf-8")
            pointer.replace(self._folder / LATEST_NAME)
            self._prune()
        self._world.wait_for_all()

    def resume(self, engine: Any) -> tuple[int, list[float] | None]:
        """Load the newest checkpoint; returns its step and meter state, or (0, None) when there is none.

        Raises:
            BadInput: the checkpoint was made by other settings, another vocabulary or too different a world.
        """
        pointer = self._folder / LATEST_NAME
        if not pointer.is_file():
            return 0, None
        name = pointer.read_text("utf-8")
        loop = json.loads((self._folder / name / LOOP_NAME).read_text("utf-8"))
        self._check(name, loop)
        loaded, _ = engine.load_checkpoint(str(self._folder), tag=name)
        if loaded is None:
            raise BadInput(f"{self._folder / name}: no checkpoint of DeepSpeed in here; delete the folder")
        if self._world.is_first:
            log.info("resumed from %s", self._folder / name)
        return loop["step"], loop["meter"]

    def _check(self, name: str, loop: dict[str, Any]) -> None:
        here = self._folder / name
        before, now = loop["config"], self._identity["config"]
        keys = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
        if keys:
            changes = ", ".join(f"pretrain.{key}: {before.get(key)} -> {now.get(key)}" for key in keys)
            raise BadInput(f"{here}: written with other settings ({changes}); use those, or another output folder")
        if loop["vocabulary_sha256"] != self._identity["vocabulary_sha256"]:
            raise BadInput(f"{here}: written with another vocabulary; use that tokenizer, or another output folder")
        if loop["world_size"] != self._world.size and self._config.zero_stage > 0:
            raise BadInput(
                f"{here}: written by {loop['world_size']} processes, now there are {self._world.size}; ZeRO stage "
                f"{self._config.zero_stage} shards its state by process, so start with {loop['world_size']}"
            )

    def _prune(self) -> None:
        kept = sorted(self._folder.glob("step-" + "[0-9]" * 9))
        for old in kept[: -self._config.keep_checkpoints]:
            shutil.rmtree(old)
