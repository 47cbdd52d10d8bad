"""The networks that transformers does not have (KLUE-DP, KLUE-MRC, WoS, labels of decoders) as models of its kind.

``save_pretrained`` writes them, and ``AutoModel.from_pretrained`` finds them once this module is imported; no code
comes from a model's folder. The configuration nests the encoder's and holds what the head was built with: a head's new
setting goes into ``build`` and ``describe`` of its class here.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, chain
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel

from finetune.config import PoolingName
from finetune.encoder.module import Encoder, default_pooling
from finetune.heads.biaffine import BiaffineParser, PlainReader, PublishedReader
from finetune.heads.dialogue import Design, StateGenerator
from finetune.heads.labels import StateLabeller
from finetune.heads.span import SpanFinder


class HeadConfig(PreTrainedConfig):
    """``encoder``: configuration of the encoder, as JSON; ``head``: what the head is built with; ``pooling``: where it
    is not the usual one."""

    def __init__(
        self, encoder: Mapping[str, Any] | None = None, head: Mapping[str, Any] | None = None,
        pooling: PoolingName | None = None, **rest: Any,
    ) -> None:  # fmt: skip
        super().__init__(**rest)
        self.encoder, self.head, self.pooling = dict(encoder or {}), dict(head or {}), pooling


class ParserConfig(HeadConfig):
    model_type = "malmoi-dp"


class SpanFinderConfig(HeadConfig):
    model_type = "malmoi-mrc"


class StateGeneratorConfig(HeadConfig):
    model_type = "malmoi-wos"


class StateLabellerConfig(HeadConfig):
    model_type = "malmoi-labels"


class HeadModel(PreTrainedModel):
    """A network of this package; ``forward`` returns the loss and ``predict`` raw outputs, as ``net`` does."""

    base_model_prefix = "net"
    main_input_name = "input_ids"
    wraps: ClassVar[type[nn.Module]]

    def __init__(self, config: HeadConfig) -> None:
        super().__init__(config)
        encoder = AutoModel.from_config(AutoConfig.for_model(**config.encoder), dtype=torch.float32)
        self.net: Any = self.build(Encoder(encoder, config.pooling), **config.head)
        self.post_init()

    @staticmethod
    def build(encoder: Encoder, **head: Any) -> nn.Module:
        """The network with random weights."""
        raise NotImplementedError

    @staticmethod
    def describe(net: Any) -> tuple[Encoder, dict[str, Any]]:
        """The encoder of a network, and the other arguments of ``build``."""
        raise NotImplementedError

    def _init_weights(self, module: nn.Module) -> None:
        """Heads keep the initialization of their constructors; an encoder has its own."""

    def forward(self, **batch: Tensor) -> dict[str, Tensor]:
        loss: dict[str, Tensor] = self.net(**batch)
        return loss

    def predict(self, **batch: Tensor) -> list[Any]:
        found: list[Any] = self.net.predict(**batch)
        return found


class ParserModel(HeadModel):
    """KLUE-DP: ``finetune.heads.biaffine``."""

    config_class = ParserConfig
    wraps = BiaffineParser

    @staticmethod
    def build(encoder: Encoder, **head: Any) -> BiaffineParser:
        kind = PublishedReader if head["is_published"] else PlainReader
        reader = kind(encoder, head["pos_tags"])
        return BiaffineParser(reader, head["types"], right_only=head["right_only"], dropout=head["dropout"])

    @staticmethod
    def describe(net: BiaffineParser) -> tuple[Encoder, dict[str, Any]]:
        reader = net.reader
        return reader.encoder, {
            "is_published": isinstance(reader, PublishedReader),
            "pos_tags": None if reader.pos is None else reader.pos.num_embeddings,
            "types": len(net.types.weight),
            "right_only": net.right_only,
            "dropout": net.dropout,
        }


class SpanFinderModel(HeadModel):
    """KLUE-MRC: ``finetune.heads.span``."""

    config_class = SpanFinderConfig
    wraps = SpanFinder

    @staticmethod
    def build(encoder: Encoder, **head: Any) -> SpanFinder:
        return SpanFinder(encoder, **head)

    @staticmethod
    def describe(net: SpanFinder) -> tuple[Encoder, dict[str, Any]]:
        return net.encoder, {"cuts": 0 if net.cuts is None else net.cuts.out_features - 1}


class StateGeneratorModel(HeadModel):
    """WoS: ``finetune.heads.dialogue``. A value is a list of token ids until ``net.spell`` is set, which needs a
    tokenizer."""

    config_class = StateGeneratorConfig
    wraps = StateGenerator

    @staticmethod
    def build(encoder: Encoder, **head: Any) -> StateGenerator:
        return StateGenerator(encoder, **{**head, "design": Design(**head["design"]), "spell": list})

    def _init_weights(self, module: nn.Module) -> None:
        """The pieces of the slots, which are in the configuration and not among the weights."""
        if isinstance(module, StateGenerator):
            slots = list(self.config.head["slots"].values())
            module.slot_ids.copy_(torch.tensor(list(chain.from_iterable(slots))))
            module.slot_starts.copy_(torch.tensor([0, *accumulate(map(len, slots[:-1]))]))
            module.end_ids.copy_(torch.tensor(self.config.head["ends"]))

    @staticmethod
    def describe(net: StateGenerator) -> tuple[Encoder, dict[str, Any]]:
        pieces = torch.tensor_split(net.slot_ids.cpu(), net.slot_starts[1:].cpu())
        return net.encoder, {
            "slots": {name: ids.tolist() for name, ids in zip(net.names, pieces, strict=True)},
            "gates": net.gate.out_features,
            "spell_gate": net.spell_gate,
            "ends": net.end_ids.tolist(),
            "design": net.design._asdict(),
        }


class StateLabellerModel(HeadModel):
    """Labels, numbers or tags from the states of a decoder: ``finetune.heads.labels``."""

    config_class = StateLabellerConfig
    wraps = StateLabeller

    @staticmethod
    def build(encoder: Encoder, **head: Any) -> StateLabeller:
        return StateLabeller(encoder, **head)

    @staticmethod
    def describe(net: StateLabeller) -> tuple[Encoder, dict[str, Any]]:
        return net.encoder, {"kind": net.kind, "outputs": net.outputs.out_features}


MODELS = (ParserModel, SpanFinderModel, StateGeneratorModel, StateLabellerModel)
MODEL_TYPES = tuple(model.config_class.model_type for model in MODELS)

for _model in MODELS:
    AutoConfig.register(_model.config_class.model_type, _model.config_class, exist_ok=True)
    AutoModel.register(_model.config_class, _model, exist_ok=True)


def as_pretrained(net: nn.Module) -> PreTrainedModel:
    """A trained network with the same weights as a ``PreTrainedModel``, ready for ``save_pretrained``."""
    kind: Any = next(kind for kind in MODELS if isinstance(net, kind.wraps))
    encoder, head = kind.describe(net)
    pooling = None if encoder.pooling == default_pooling(encoder.config) else encoder.pooling
    with torch.device("meta"):
        model: HeadModel = kind(kind.config_class(encoder=encoder.config.to_diff_dict(), head=head, pooling=pooling))
    model.net = net
    return model
