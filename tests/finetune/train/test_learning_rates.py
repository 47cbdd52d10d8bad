"""Rates by step against torch's own schedules and a loop by hand, and by layer against the names of stock models."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from transformers import (
    AlbertConfig,
    AutoModel,
    AutoModelForTokenClassification,
    BertConfig,
    DebertaV2Config,
    ElectraConfig,
    GPT2Config,
    ModernBertConfig,
    RobertaConfig,
    get_linear_schedule_with_warmup,
)

from finetune.config import Hyperparameters
from finetune.encoder.loading import Encoder
from finetune.examples import Example
from finetune.heads.labels import Labeller
from finetune.heads.span import SpanFinder
from finetune.registry import TASKS
from finetune.train.trainer import decay_by_layer, rate_at, train

SETTINGS = Hyperparameters(lr=5e-5, epochs=10, batch_size=32, warmup_share=0.0)


def torch_rates(make, steps: int, lr: float = 5e-5) -> list[float]:
    optimizer = torch.optim.AdamW([nn.Parameter(torch.zeros(1))], lr)
    scheduler = make(optimizer)
    rates = []
    for _ in range(steps):
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return rates


def test_the_schedule_of_snroberta_is_torchs_cosine_in_the_first_epoch_and_constant_afterwards() -> None:
    settings = SETTINGS.replaced(schedule="cyclic-cosine", average="swa")
    found = [settings.lr * rate_at(step, settings, 0, 1000) for step in range(1000)]
    cosine = torch_rates(lambda optimizer: CosineAnnealingLR(optimizer, T_max=100 / 5, eta_min=5e-6), 100)
    assert found[:100] == pytest.approx(cosine, rel=1e-6)
    assert (min(found[:100]), max(found[:100])) == pytest.approx((5e-6, 5e-5))
    assert found[100:] == [5e-5] * 900
    other = settings.replaced(swa_lr=1e-5)
    assert settings.lr * rate_at(90, other, 0, 1000) == pytest.approx(2.75e-5)  # half way down
    assert settings.lr * rate_at(100, other, 0, 1000) == pytest.approx(1e-5)


def test_before_a_constant_rate_a_linear_one_is_that_of_transformers() -> None:
    settings = SETTINGS.replaced(average="swa", epochs=2)
    found = [settings.lr * rate_at(step, settings, 30, 200) for step in range(100)]
    linear = torch_rates(lambda optimizer: get_linear_schedule_with_warmup(optimizer, 30, 200), 100)
    assert found == pytest.approx(linear)


class Weight(nn.Module):
    """One weight whose gradient is clipped to 1, so that Adam moves it by the rate of the step."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, **batch: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": 9 * self.weight.sum()}


def test_a_training_takes_the_rates_of_its_schedule() -> None:
    features = [{"example": i, "input_ids": [7] * 4, "label": 0} for i in range(20)]
    settings = Hyperparameters(
        lr=0.1, epochs=3, batch_size=8, warmup_share=0.0, schedule="cyclic-cosine", average="swa", swa_lr=0.02
    )
    model = Weight()
    assert train(TASKS["ynat"], model, features, settings, 1, 0).averaged == 2
    first = sum(0.1 * rate_at(step, settings, 0, 9) for step in range(3))
    assert model.weight.item() == pytest.approx(-(first + 3 * 0.02 + first + 6 * 0.02) / 2, rel=1e-4)


SIZES = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 50}
MODERN = {"pad_token_id": 0, "bos_token_id": 1, "cls_token_id": 1, "eos_token_id": 2, "sep_token_id": 2}
DEBERTA = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "norm_rel_ebd": "layer_norm"}
CONFIGS = {
    "bert": BertConfig(**SIZES),
    "roberta": RobertaConfig(**SIZES),
    "electra": ElectraConfig(**SIZES, embedding_size=8),
    "deberta-v2": DebertaV2Config(**SIZES, **DEBERTA),
    "modernbert": ModernBertConfig(**SIZES, **MODERN),
    "gpt2": GPT2Config(n_embd=16, n_layer=3, n_head=2, vocab_size=50),
}
LAYER = re.compile(r"\b(?:layer|layers|h)\.(\d)\.")
LOWEST = re.compile(r"embeddings|embeddings_project|wte|wpe")


def rates_by_name(model: nn.Module, settings: Hyperparameters) -> dict[str, float]:
    """The rate of each parameter; each is in exactly one group."""
    names = {id(weight): name for name, weight in model.named_parameters()}
    halves = list(model.parameters())
    groups = [{"params": halves[0::2], "lr": 1.0, "weight_decay": 0.1}, {"params": halves[1::2], "lr": 1.0}]
    parted = decay_by_layer(groups, model, settings)
    found = [(names[id(weight)], group["lr"]) for group in parted for weight in group["params"]]
    assert sorted(name for name, _ in found) == sorted(names.values())
    assert sum(len(group["params"]) for group in parted if group.get("weight_decay")) == len(halves[0::2])
    torch.optim.AdamW(parted)  # which refuses a parameter in two groups
    return dict(found)


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_rate_falls_from_head_to_embeddings_in_every_kind_of_encoder(kind: str) -> None:
    model = Labeller(AutoModelForTokenClassification.from_config(CONFIGS[kind]), lambda logits, batch: [])
    rates = rates_by_name(model, SETTINGS.replaced(layer_decay=0.5))
    inside = f"net.{model.net.base_model_prefix}."
    expected = {}
    for name in rates:
        number = LAYER.search(name)
        if not name.startswith(inside):
            expected[name] = 1.0
        elif number:
            expected[name] = (0.25, 0.5, 1.0)[int(number[1])]
        else:
            expected[name] = 0.125 if LOWEST.search(name) else 1.0
    assert rates == expected
    assert {0.125, 0.25, 0.5, 1.0} <= set(rates.values())


def test_heads_of_our_own_and_layers_that_share_their_weights_have_depths_too() -> None:
    config = AlbertConfig(**SIZES, embedding_size=8)
    model = SpanFinder(Encoder(AutoModel.from_config(config)), 3)
    rates = rates_by_name(model, SETTINGS.replaced(layer_decay=0.5))
    assert {rate for name, rate in rates.items() if name.startswith(("ends", "cuts"))} == {1.0}
    assert rates["encoder.encoder.embeddings.word_embeddings.weight"] == 0.5
    shared = [rate for name, rate in rates.items() if "albert_layers" in name]
    assert set(shared) == {1.0}


def test_a_training_moves_each_layer_by_its_rate(tiny_encoder) -> None:
    """A first step of Adam moves each weight that has a gradient by its rate."""
    folder, tokenizer = tiny_encoder(["경제 1"], num_hidden_layers=2)
    features = TASKS["ynat"].featurize([Example("1", "경제", {"title": "경제 1"})], tokenizer, 32, True)
    model = TASKS["ynat"].model(folder, tokenizer)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    settings = Hyperparameters(lr=1e-3, epochs=1, batch_size=1, warmup_share=0.0, layer_decay=0.5)
    train(TASKS["ynat"], model, features, settings, 1, 0)
    moved = {name: (weight.detach() - before[name]).abs().max().item() for name, weight in model.named_parameters()}
    bert = "net.bert.encoder.layer.{}.output.dense.weight"
    expected = {
        "net.classifier.weight": 1e-3, bert.format(1): 1e-3, bert.format(0): 5e-4,
        "net.bert.embeddings.word_embeddings.weight": 2.5e-4,
    }  # fmt: skip
    assert {name: moved[name] for name in expected} == pytest.approx(expected, rel=0.02)
