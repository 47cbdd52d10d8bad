"""R-Drop, FGM and re-initialised layers against their published formulas, written out slowly over stock models."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModel, BertForSequenceClassification, BertForTokenClassification

from corpus.documents.errors import BadInput
from finetune.encoder import load_tokenizer
from finetune.examples import IGNORED, Example
from finetune.heads.labels import Labeller
from finetune.registry import TASKS
from finetune.task import Hyperparameters
from finetune.train.regularisation import adversarial_step, prepare, r_drop_loss
from finetune.train.trainer import seed_everything, train
from tests.finetune.train.test_rates import CONFIGS

YNAT = TASKS["ynat"]
BATCH = {
    "input_ids": torch.tensor([[2, 7, 9, 11, 3], [2, 8, 3, 0, 0], [2, 12, 7, 3, 0]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]),
}
SETTINGS = Hyperparameters(lr=2e-3, epochs=1, batch_size=4, max_tokens=32)


def build(kind: Any, share: float) -> Labeller:
    config = CONFIGS["bert"].__class__(**{**CONFIGS["bert"].to_dict(), "initializer_range": 0.5, "num_labels": 4})
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = share
    torch.manual_seed(1)
    return Labeller(kind(config), lambda logits, batch: []).train()


def divergence(p: list[float], q: list[float]) -> float:
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        (BertForSequenceClassification, [3, 0, 1]),
        (
            BertForTokenClassification,
            [[IGNORED, 1, 2, 3, IGNORED], [IGNORED, 0, *[IGNORED] * 3], [1, 1, 1, 1, IGNORED]],
        ),
    ],
)
def test_r_drop_is_two_likelihoods_and_half_of_two_divergences(kind: Any, labels: list[Any]) -> None:
    model, batch = build(kind, 0.3), {**BATCH, "labels": torch.tensor(labels)}
    torch.manual_seed(5)
    found = r_drop_loss(model, batch, alpha=0.7).item()
    torch.manual_seed(5)
    logits = model.net(**{name: batch[name].repeat(2, 1) for name in BATCH}).logits.double()
    one, two = (half.reshape(-1, 4).softmax(dim=-1).tolist() for half in (logits[:3], logits[3:]))
    losses = []
    for p, q, label in zip(one, two, batch["labels"].flatten().tolist(), strict=True):
        if label != IGNORED:
            likelihoods = -math.log(p[label]) - math.log(q[label])
            losses.append(likelihoods + 0.7 * (divergence(p, q) + divergence(q, p)) / 2)
    assert one != two
    assert found == pytest.approx(sum(losses) / len(losses), rel=1e-5)


def test_an_adversarial_step_adds_the_gradient_at_embeddings_moved_against_each_text() -> None:
    # in float32 a gradient's direction, and with it the step, depends on the processor's rounding
    model, labels = build(BertForSequenceClassification, 0.0).double(), torch.tensor([3, 0, 1])

    def step() -> Tensor:
        loss = model(**BATCH, labels=labels)["loss"]
        loss.backward()
        return loss.detach()

    loss = adversarial_step(step, model, 2.5)
    found = {name: weight.grad.clone() for name, weight in model.named_parameters()}

    model.zero_grad()
    words = model.net.bert.embeddings.word_embeddings.weight
    losses = []
    for ids, mask, label in zip(BATCH["input_ids"], BATCH["attention_mask"], labels, strict=True):

        def loss_at(embedded: Tensor, mask: Tensor = mask, label: Tensor = label) -> Tensor:
            return model.net(inputs_embeds=embedded[None], attention_mask=mask[None], labels=label[None]).loss

        start = words[ids].detach().requires_grad_()
        (gradient,) = torch.autograd.grad(loss_at(start), start)
        losses += [loss_at(words[ids]), loss_at(words[ids] + 2.5 * gradient / math.sqrt(float((gradient**2).sum())))]
    (sum(losses) / 3).backward()
    assert loss.item() == pytest.approx(sum(x.item() for x in losses[::2]) / 3, rel=1e-5)
    assert sum(losses[1::2]) > sum(losses[::2])
    for name, weight in model.named_parameters():
        if name != "net.bert.embeddings.word_embeddings.weight":
            torch.testing.assert_close(found[name], weight.grad, atol=1e-5, rtol=1e-3, msg=name)
    torch.testing.assert_close(
        found["net.bert.embeddings.word_embeddings.weight"][1:], words.grad[1:], atol=1e-5, rtol=1e-3
    )


def test_embeddings_that_are_frozen_move_too() -> None:
    model = build(BertForSequenceClassification, 0.0)
    model.net.bert.requires_grad_(False)
    seen = []

    def step() -> Tensor:
        loss = model(**BATCH, labels=torch.tensor([3, 0, 1]))["loss"]
        loss.backward()
        seen.append(loss.item())
        return loss.detach()

    adversarial_step(step, model, 1.0)
    assert seen[1] > seen[0]
    assert model.net.bert.embeddings.word_embeddings.weight.grad is None


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2", "modernbert", "gpt2"])
def test_only_the_highest_layers_and_the_pooler_start_again(kind: str, tmp_path) -> None:
    torch.manual_seed(1)
    pretrained = AutoModel.from_config(CONFIGS[kind])
    with torch.no_grad():
        for weight in pretrained.parameters():
            weight.fill_(0.7)
    pretrained.save_pretrained(tmp_path)
    model = AutoModel.from_pretrained(tmp_path)
    prepare(model, replace(SETTINGS, reset_layers=2), "ynat")
    changed = {name for name, weight in model.named_parameters() if not (weight == 0.7).all()}
    tops = ("layer.1.", "layer.2.", "layers.1.", "layers.2.", "h.1.", "h.2.", "pooler.")
    assert changed == {name for name, _ in model.named_parameters() if any(f".{top}" in f".{name}" for top in tops)}
    for name, weight in model.named_parameters():
        if name in changed and weight.dim() == 1:
            assert (weight == (1.0 if name.endswith("weight") else 0.0)).all()  # of norms; biases
        elif name in changed:
            assert 0.001 < weight.std().item() < 0.05  # drawn with the architecture's deviation


def test_a_training_with_all_of_them_learns_and_repeats_itself(tiny_encoder) -> None:
    folder, _ = tiny_encoder(["경제 정치 0123"], num_hidden_layers=2, hidden_dropout_prob=0.0)
    tokenizer = load_tokenizer(folder)
    examples = [Example(f"y{i}", label, {"title": f"{label} {i}"}) for i in range(4) for label in ("경제", "정치")]
    features = YNAT.featurize(examples, tokenizer, 32, True)
    settings = replace(SETTINGS, epochs=3, r_drop=1.0, fgm=0.5, reset_layers=1, dropout=0.1, accumulation=2)

    def learn(changed: Hyperparameters) -> list[float]:
        seed = seed_everything(1, "ynat")
        return train(YNAT, YNAT.model(folder, tokenizer), features, changed, seed, 0).losses

    losses = learn(settings)
    assert losses == learn(settings)
    assert losses[-1] < losses[0]
    for switch in ({"r_drop": 0.0}, {"fgm": 0.0}, {"reset_layers": 0}, {"dropout": 0.2}):
        assert learn(replace(settings, epochs=1, **switch)) != losses[:1]


def test_two_passes_that_are_the_same_are_refused(tiny_encoder) -> None:
    folder, tokenizer = tiny_encoder(["가"], hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = YNAT.model(folder, tokenizer)
    with pytest.raises(BadInput, match=r"overrides\.ynat: r_drop compares.*give it some with dropout=0\.1"):
        prepare(model, replace(SETTINGS, r_drop=1.0), "ynat")
    prepare(model, replace(SETTINGS, r_drop=1.0, dropout=0.1), "ynat")
