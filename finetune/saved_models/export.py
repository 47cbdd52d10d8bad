"""A saved model as ONNX with its configuration and tokenizer, for runtimes without torch.

Only label heads; the other networks search and generate step by step. torch's exporter is used, because the newest
optimum-onnx refuses transformers 5; the folder has the layout that optimum's ``ORTModelFor…`` classes load.
"""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from corpus.documents.atomic_files import atomic_dir
from corpus.documents.errors import BadInput
from finetune.encoder.loading import has_segments
from finetune.heads.labels import Labeller
from finetune.saved_models.load import find_model_folder, load_model

ONNX_NAME = "model.onnx"
LARGEST_DIFFERENCE = 1e-4
COPIED = ("config.json", "malmoi.json", "tokenizer.json", "tokenizer_config.json")
PACKAGES = ("onnx", "onnxscript", "onnxruntime")
TRIALS = (["내일 전국에 비", "비"], ["비"], ["비가 온다. " * 8, "비가 온다", "온다"])  # the exporter traces the first


def export_onnx(name: str, out: Path) -> float:
    """Write ``model.onnx``, configuration and tokenizer to the new folder ``out``; returns the largest difference of
    its outputs from torch's on trial inputs.

    BadInput: the model does not label texts or tokens, ``out`` exists, a package is missing, or the outputs differ.
    """
    if missing := [package for package in PACKAGES if find_spec(package) is None]:
        raise BadInput(f"ONNX needs {', '.join(missing)}; run: pip install 'malmoi[onnx]'")
    if out.exists():
        raise BadInput(f"{out}: exists already; name a new folder")
    kept = load_model(name, "cpu")
    if not isinstance(kept.model, Labeller):
        raise BadInput(
            f"{name}: a model for {kept.task.name}, which has no stock class of transformers; ONNX export needs "
            "models that label texts or tokens"
        )
    net: Any = kept.model.net
    tokenizer: Any = kept.tokenizer
    segments = has_segments(net.config)
    with atomic_dir(out) as folder:
        trials = [
            dict(tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=segments))
            for texts in TRIALS
        ]
        write_graph(net, trials[0], folder / ONNX_NAME)
        difference = compare(net, trials, folder / ONNX_NAME)
        for file in COPIED:
            shutil.copyfile(find_model_folder(name) / file, folder / file)
    return difference


def write_graph(net: Any, inputs: Mapping[str, Tensor], path: Path) -> None:
    """Export the network for any number of texts and positions; weights beyond 2 GB go to a second file."""
    free = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    disabled = logging.root.manager.disable
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)  # the exporter logs every step
        try:
            program: Any = torch.onnx.export(
                net, (), kwargs=dict(inputs), dynamo=True, verbose=False, input_names=list(inputs),
                output_names=["logits"], dynamic_shapes=dict.fromkeys(inputs, free),
            )  # fmt: skip
            program.save(str(path))
        finally:
            logging.disable(disabled)


def compare(net: Any, trials: list[dict[str, Tensor]], path: Path) -> float:
    """The largest difference of the outputs over all trial inputs; ``BadInput`` above 1e-4."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    largest = 0.0
    for inputs in trials:
        (found,) = session.run(None, {name: values.numpy() for name, values in inputs.items()})
        with torch.inference_mode():
            expected = net(**inputs).logits
        largest = max(largest, float((torch.from_numpy(found) - expected).abs().max()))
    if not largest <= LARGEST_DIFFERENCE:
        raise BadInput(f"the outputs of ONNX differ from torch's by {largest:.1e}; use the model with torch")
    return largest
