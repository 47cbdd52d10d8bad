"""Trains one configuration as a launcher's process would: ``start.py made-folder out config.json``."""

from __future__ import annotations

import json
import os
import sys
from functools import partialmethod
from pathlib import Path

from torch import nn

from pretrain.config import PretrainConfig
from pretrain.interruption import REQUEUE_CODE, Interrupted
from pretrain.model import sizes
from pretrain.run import PretrainInputs
from pretrain.run import run as pretrain

if __name__ == "__main__":
    if backend := os.environ.get("MALMOI_TEST_BACKEND"):  # of compiled code
        nn.Module.compile = partialmethod(nn.Module.compile, backend=backend)  # type: ignore[method-assign]
    sizes.LOCAL_WINDOW = int(os.environ.get("MALMOI_TEST_WINDOW", sizes.LOCAL_WINDOW))
    made, out, config = map(Path, sys.argv[-3:])
    settings = PretrainConfig.model_validate(json.loads(config.read_text("utf-8")))
    try:
        pretrain(settings, PretrainInputs(made / "tokens", made / "tokenizer"), out)
    except Interrupted as error:
        print(error)
        sys.exit(REQUEUE_CODE)
