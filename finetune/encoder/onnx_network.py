"""A network as ONNX, in place of the torch module that it was exported from; runs on the processor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from corpus.documents.errors import BadInput

ONNX_NAME = "model.onnx"  # in a folder that `malmoi model export` wrote


class OnnxNetwork(nn.Module):
    """The graph in ``path``, on as many threads as torch uses; ``config``: of the model that it is of.

    ``BadInput``: onnxruntime is missing, or the file is no graph.
    """

    def __init__(self, path: Path, config: Any) -> None:
        super().__init__()
        try:
            import onnxruntime
        except ImportError:
            raise BadInput(f"{path}: needs onnxruntime; run: pip install 'malmoi[onnx]'") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        try:
            self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the classes of onnxruntime derive from Exception alone
            raise BadInput(f"{path}: cannot be read ({str(error)[:100]}); export the model again") from None
        self.config = config
        self.device = nn.Parameter(torch.empty(0))  # predictions ask a parameter where the model is

    def run(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The one output; inputs that the graph does not have are left out, and missing segment ids are 0."""
        wanted = [value.name for value in self.session.get_inputs()]
        zeros_BL = torch.zeros_like(inputs["input_ids"])
        (found,) = self.session.run(None, {name: inputs.get(name, zeros_BL).numpy() for name in wanted})
        return torch.from_numpy(found)

    def forward(self, **inputs: Tensor) -> SimpleNamespace:
        """The one output as ``logits``."""
        return SimpleNamespace(logits=self.run(inputs))
