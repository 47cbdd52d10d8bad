"""Is there room for the checkpoints? Asked before training, because a full disk hours later costs those hours.

A checkpoint holds 12 bytes a parameter: weights and two averages of Adam, float32. One more than those that are kept
must fit, the best one beside the newest, and the finished model.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from transformers import PreTrainedModel

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig

GIB = 1 << 30
BYTES_OF_CHECKPOINT, BYTES_OF_MODEL = 12, 4
PROBE_NAME = "room.partial"


def refuse_too_little_room(out: Path, network: PreTrainedModel, config: PretrainConfig) -> None:
    """Write a little and count the rest.

    Raises:
        BadInput: the disk has too little room for what the training will leave there.
        OSError: the folder cannot be written to.
    """
    probe = out / PROBE_NAME
    probe.write_bytes(b"\0" * 4096)
    probe.unlink()
    parameters = sum(parameter.numel() for parameter in network.parameters())
    there = sum(path.stat().st_size for path in (out / "checkpoints").rglob("*") if path.is_file())
    needed = parameters * (BYTES_OF_CHECKPOINT * (config.keep_checkpoints + 2) + BYTES_OF_MODEL) - there
    free = shutil.disk_usage(out).free
    if free < needed:
        raise BadInput(
            f"{out}: {free / GIB:.1f} GiB free, but {config.keep_checkpoints} checkpoints of {parameters / 1e6:.0f} M "
            f"parameters, the best one and the model need {needed / GIB:.1f} GiB; make room or lower "
            "pretrain.keep_checkpoints"
        )
