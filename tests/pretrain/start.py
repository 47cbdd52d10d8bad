"""Trains one configuration as a launcher's process would: ``start.py made-folder out config.json``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pretrain.config import PretrainConfig
from pretrain.interruption import REQUEUE_CODE, Interrupted
from pretrain.run import PretrainInputs
from pretrain.run import run as pretrain

if __name__ == "__main__":
    made, out, config = map(Path, sys.argv[-3:])
    settings = PretrainConfig.model_validate(json.loads(config.read_text("utf-8")))
    try:
        pretrain(settings, PretrainInputs(made / "tokens", made / "tokenizer"), out)
    except Interrupted as error:
        print(error)
        sys.exit(REQUEUE_CODE)
