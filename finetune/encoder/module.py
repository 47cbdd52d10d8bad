"""The encoder as a torch module: the state that represents a text; and networks as ONNX, which run on the processor.

Heads read what a text says from state 0: that of [CLS], which in a decoder has seen nothing, so there it is replaced by
the state of the last token.
Legend: ``B`` texts, ``L`` positions, ``H`` hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerBase

from corpus.documents.errors import BadInput
from finetune.encoder.loading import has_segments, load_pretrained, reads_one_way


class Encoder(nn.Module):
    """An encoder that ignores ``token_type_ids`` where it has no segments; the output has ``last_hidden_state``."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        config: Any = encoder.config
        self.config = config
        self.is_decoder = reads_one_way(config)
        if self.is_decoder and not getattr(config, "is_causal", True):
            raise BadInput("a decoder with attention in both directions, which was removed; train it again")

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Any:
        """Token ids, mask and segments, each (B, L), padding on the right, to the encoder's own output."""
        more: dict[str, Any] = {"token_type_ids": token_type_ids} if has_segments(self.config) else {}
        if not self.is_decoder:
            return self.encoder(input_ids=input_ids, attention_mask=attention_mask, **more)
        output = self.encoder(input_ids=input_ids, attention_mask=attention_mask, use_cache=False, **more)
        states_BLH = output.last_hidden_state
        row_B = torch.arange(len(states_BLH), device=states_BLH.device)
        last_BH = states_BLH[row_B, attention_mask.sum(dim=1) - 1]
        output.last_hidden_state = torch.cat([last_BH[:, None], states_BLH[:, 1:]], dim=1)
        return output


def load_encoder(name: str, tokenizer: PreTrainedTokenizerBase | None = None) -> Encoder:
    """The encoder alone, without a task's head."""
    return Encoder(load_pretrained(AutoModel, name, tokenizer))


def find_encoder(model: nn.Module) -> Any:
    """The encoder inside a task's model, without the head."""
    return next(part for part in model.modules() if isinstance(part, PreTrainedModel)).base_model


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
