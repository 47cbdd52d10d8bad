"""Averages of weights against sums by hand over what the optimizer left after every step, and what is scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from finetune.config import Hyperparameters
from finetune.encoder.loading import load_tokenizer
from finetune.examples import Example
from finetune.registry import TASKS
from finetune.train.trainer import Averaging, Training, seed_everything, train

YNAT = TASKS["ynat"]
EXAMPLES = [Example(f"y{i}", label, {"title": f"{label} {i}"}) for i in range(7) for label in ("경제", "정치")]
SETTINGS = Hyperparameters(lr=2e-3, epochs=4, batch_size=4, max_tokens=32)  # 4 steps an epoch
Learn = Callable[..., tuple[Training, nn.Module, list[Tensor]]]


def weights_of(model: nn.Module) -> Tensor:
    return torch.cat([x.detach().flatten() for x in model.parameters()])


@pytest.fixture
def learn(tiny_encoder) -> Iterator[Learn]:
    """``(settings, …)`` to what ``train`` returned, the model, and its weights after each step."""
    folder, _ = tiny_encoder(["경제 정치 0123456789"])
    tokenizer = load_tokenizer(folder)
    features = YNAT.featurize(EXAMPLES, tokenizer, 32, True)
    steps: list[Tensor] = []
    model = nn.Module()

    def run(settings: Hyperparameters, **how: object) -> tuple[Training, nn.Module, list[Tensor]]:
        nonlocal model
        seed = seed_everything(1, "ynat")
        model = YNAT.model(folder, tokenizer)
        steps.clear()
        return train(YNAT, model, features, settings, seed, 0, **how), model, list(steps)

    handle = register_optimizer_step_post_hook(lambda *_: steps.append(weights_of(model).clone()))
    yield run
    handle.remove()


def test_swa_is_the_mean_of_the_weights_after_each_epoch_but_the_first(learn: Learn) -> None:
    done, model, steps = learn(SETTINGS.replaced(average="swa"))
    assert (len(steps), done.averaged) == (16, 3)
    torch.testing.assert_close(weights_of(model), (steps[7] + steps[11] + steps[15]) / 3)
    assert not torch.allclose(weights_of(model), steps[-1], atol=1e-4)


def test_the_average_is_evaluated_once_there_is_one_and_the_training_continues_from_its_own(learn: Learn) -> None:
    seen, scores = [], iter([1.0, 5.0, 2.0])

    def score(model: nn.Module) -> float:
        seen.append(weights_of(model))
        return next(scores)

    settings = SETTINGS.replaced(average="swa")
    done, model, steps = learn(settings, evaluations_per_epoch=1, score=score)
    for found, ends in zip(seen, ([7], [7, 11], [7, 11, 15]), strict=True):
        torch.testing.assert_close(found, sum(steps[end] for end in ends) / len(ends))
    assert done.selected == (5.0, 12, 3)
    assert torch.equal(weights_of(model), seen[1])
    assert all(map(torch.equal, steps, learn(settings)[2]))  # unevaluated


def test_frozen_weights_are_neither_copied_nor_changed(tiny_encoder) -> None:
    folder, _ = tiny_encoder(["경제"])
    model = YNAT.model(folder, load_tokenizer(folder))
    model.net.bert.requires_grad_(False)
    average = Averaging(1)
    average.on_train_begin(None, None, None, model)
    assert [tuple(x.shape) for x in average.mean.module.parameters()] == [(7, 32), (7,)]
