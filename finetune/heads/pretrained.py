"""The networks that transformers does not have (KLUE-DP, KLUE-MRC, WoS, labels of decoders) as models of its kind.

``save_pretrained`` writes them, and ``AutoModel.from_pretrained`` finds them once this module is imported; no code
comes from a model's folder. The configuration nests the encoder's and holds the ``head`` of the network: the arguments
of its constructor after the encoder, as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel

from finetune.encoder.loading import Encoder
from finetune.heads.biaffine import BiaffineParser
from finetune.heads.dialogue import StateGenerator
from finetune.heads.labels import StateLabeller
from finetune.heads.span import SpanFinder


class HeadConfig(PreTrainedConfig):
    """``encoder``: configuration of the encoder, as JSON; ``head``: what the head is built with."""

    def __init__(
        self, encoder: Mapping[str, Any] | None = None, head: Mapping[str, Any] | None = None, **rest: Any
    ) -> None:
        super().__init__(**rest)
        self.encoder, self.head = dict(encoder or {}), dict(head or {})


class HeadModel(PreTrainedModel):
    """A network of this package; ``forward`` returns the loss and ``predict`` raw outputs, as ``net`` does."""

    base_model_prefix = "net"
    main_input_name = "input_ids"
    wraps: ClassVar[type[nn.Module]]

    def __init__(self, config: HeadConfig) -> None:
        super().__init__(config)
        encoder = AutoModel.from_config(AutoConfig.for_model(**config.encoder), dtype=torch.float32)
        self.net: Any = self.wraps(Encoder(encoder), **config.head)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Heads keep the initialization of their constructors, an encoder has its own; the pieces of the WoS slots are
        in the configuration and not among the weights."""
        if isinstance(module, StateGenerator):
            for name, values in module.piece_ids().items():
                getattr(module, name).copy_(values)

    def forward(self, **batch: Tensor) -> dict[str, Tensor]:
        return self.net(**batch)

    def predict(self, **batch: Tensor) -> list[Any]:
        return self.net.predict(**batch)


def _register(name: str, model_type: str, wraps: type[nn.Module]) -> type[HeadModel]:
    config: Any = type(f"{name}Config", (HeadConfig,), {"model_type": model_type})
    model = type(f"{name}Model", (HeadModel,), {"config_class": config, "wraps": wraps})
    AutoConfig.register(model_type, config, exist_ok=True)
    AutoModel.register(config, model, exist_ok=True)
    return model


HEADS = (
    ("Parser", "malmoi-dp", BiaffineParser),
    ("SpanFinder", "malmoi-mrc", SpanFinder),
    ("StateGenerator", "malmoi-wos", StateGenerator),  # values are token ids until ``net.spell`` is set
    ("StateLabeller", "malmoi-labels", StateLabeller),  # of decoders
)
MODEL_TYPES = tuple(model_type for _, model_type, _ in HEADS)
MODELS = tuple(_register(*head) for head in HEADS)


def as_pretrained(net: nn.Module) -> PreTrainedModel:
    """A trained network with the same weights as a ``PreTrainedModel``, ready for ``save_pretrained``."""
    trained: Any = net
    kind: Any = next(kind for kind in MODELS if isinstance(net, kind.wraps))
    with torch.device("meta"):
        model: HeadModel = kind(kind.config_class(encoder=trained.encoder.config.to_diff_dict(), head=trained.head))
    model.net = net
    return model
