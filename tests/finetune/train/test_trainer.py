"""Training: repetition, accumulation, precision, selection of weights, similar lengths, and losses that break."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from corpus.documents.errors import BadInput
from finetune.config import Hyperparameters
from finetune.encoder.loading import load_tokenizer
from finetune.examples import Example, Feature
from finetune.registry import TASKS
from finetune.task import Task
from finetune.train.batched_prediction import predict
from finetune.train.trainer import POOL_BATCHES, Training, order_by_length, seed_everything, train

YNAT = TASKS["ynat"]
TITLES = (("경제", "은행 금리"), ("스포츠", "축구 우승"), ("정치", "국회 예산"))
EXAMPLES = [Example(f"y{i}", label, {"title": f"{title} {i}"}) for i in range(5) for label, title in TITLES]
SETTINGS = Hyperparameters(lr=2e-3, epochs=2, batch_size=4, max_tokens=32)


@pytest.fixture
def learn(tiny_encoder) -> Callable[..., tuple[Training, nn.Module]]:
    """Trains a tiny encoder on YNAT; ``(settings, seed, **how)`` to what ``train`` returned and the model."""
    folder, _ = tiny_encoder([title for _, title in TITLES] + ["0123456789"])
    tokenizer = load_tokenizer(folder)
    features = YNAT.featurize(EXAMPLES, tokenizer, 32, True)

    def run(settings: Hyperparameters = SETTINGS, seed: int = 1, **how: Any) -> tuple[Training, nn.Module]:
        derived = seed_everything(seed, "ynat")
        model = YNAT.model(folder, tokenizer)
        return train(YNAT, model, features, settings, derived, 0, **how), model

    return run


def weights_of(model: nn.Module) -> Tensor:
    return torch.cat([x.detach().flatten().clone() for x in model.parameters()])


class Sums(nn.Module):
    """A model of one weight; its loss is the mean over rows of weight x first token, so gradients are known."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.batches: list[list[int]] = []

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> dict[str, Tensor]:
        self.batches.append(input_ids[:, 0].tolist())
        return {"loss": (self.weight * input_ids[:, 0].float()).mean()}


def tokens(count: int) -> list[Feature]:
    return [{"example": i, "input_ids": [i + 1] * (i % 7 + 1), "label": 0} for i in range(count)]


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(learn) -> None:
    (first, model), (again, copy), (_, other) = learn(), learn(), learn(seed=2)
    assert again._replace(peak_mib=first.peak_mib) == first  # what the process holds is not the training's alone
    assert len(first.losses) == 2 and first.averaged == 0
    assert first.losses[-1] < first.losses[0]
    assert torch.equal(weights_of(model), weights_of(copy))
    assert not torch.equal(weights_of(model), weights_of(other))


@pytest.mark.parametrize(("parts", "sizes"), [(1, [8, 8, 4]), (4, [2] * 8 + [2, 2])])
def test_a_step_in_parts_takes_as_many_features_as_a_whole_one(parts: int, sizes: list[int]) -> None:
    model = Sums()
    settings = Hyperparameters(lr=0.1, epochs=1, batch_size=8, warmup_share=0.0, accumulation=parts)
    done = train(YNAT, model, tokens(20), settings, 1, 0)
    assert [len(batch) for batch in model.batches] == sizes
    assert done.steps == 3
    assert sorted(token for batch in model.batches for token in batch) == list(range(1, 21))
    assert model.weight.item() == pytest.approx(-0.1 * (1 + 2 / 3 + 1 / 3), rel=1e-4)  # AdamW: each step by the rate


def test_parts_must_divide_the_batch() -> None:
    with pytest.raises(BadInput, match=r"overrides\.ynat: batch_size 8 cannot be done in 3 equal parts"):
        train(YNAT, Sums(), tokens(8), Hyperparameters(batch_size=8, accumulation=3), 1, 0)


def test_bf16_differs_from_fp32_a_little_and_leaves_the_weights_float32(learn) -> None:
    (full, model), (half, rounded) = learn(), learn(precision="bf16")
    assert {x.dtype for x in rounded.parameters()} == {torch.float32}
    assert half.losses != full.losses
    assert half.losses == pytest.approx(full.losses, rel=0.05)
    assert weights_of(model) == pytest.approx(weights_of(rounded), abs=0.05)


def test_the_best_weights_are_kept_and_said_to_be(learn) -> None:
    scores, seen = iter([1.0, float("nan"), 7.0, 7.0, 3.0, 2.0]), []

    def score(model: nn.Module) -> float:
        seen.append(weights_of(model))
        model.eval()  # as a real evaluation does
        return next(scores)

    done, model = learn(SETTINGS.replaced(epochs=3), evaluations_per_epoch=2, score=score)
    assert done.selected == (7.0, 6, 6)  # score, step of 12, evaluations
    assert done.steps == 12
    assert torch.equal(weights_of(model), seen[2])
    assert not torch.equal(weights_of(model), seen[3])


@pytest.mark.parametrize(
    ("scores", "best"), [([math.nan, -3.0, math.nan], 1), ([math.nan] * 3, 0), ([-math.inf, math.nan, 0.0], 2)]
)
def test_an_undefined_score_is_worse_than_any_other(learn, scores: list[float], best: int) -> None:
    seen, remaining = [], iter(scores)

    def score(model: nn.Module) -> float:
        seen.append(weights_of(model))
        return next(remaining)

    done, model = learn(SETTINGS.replaced(epochs=3), evaluations_per_epoch=1, score=score)
    assert done.selected is not None
    assert done.selected.score == pytest.approx(scores[best], nan_ok=True)
    assert done.selected.step == 4 * (best + 1)
    assert torch.equal(weights_of(model), seen[best])


def test_evaluating_changes_nothing_in_the_training(learn) -> None:
    plain, model = learn()
    scores = iter([1.0, 2.0])
    done, same = learn(evaluations_per_epoch=1, score=lambda evaluated: evaluated.eval() and next(scores))
    assert (done.losses, done.steps) == (plain.losses, plain.steps)
    assert done.selected == (2.0, plain.steps, 2)
    assert torch.equal(weights_of(model), weights_of(same))


def test_nothing_is_evaluated_unless_asked_for(learn) -> None:
    assert learn()[0].selected is None


def test_more_evaluations_than_steps_are_one_a_step(learn) -> None:
    done, _ = learn(SETTINGS.replaced(epochs=1), evaluations_per_epoch=50, score=lambda model: 1.0)
    assert done.selected == (1.0, 1, done.steps)


@pytest.mark.parametrize("parts", [1, 2])
def test_a_loss_that_is_not_a_number_stops_the_training_and_names_the_step(parts: int) -> None:
    class Breaks(Sums):
        def forward(self, **batch: Tensor) -> dict[str, Tensor]:
            loss = super().forward(**batch)["loss"]
            return {"loss": loss * float("nan") if len(self.batches) == 3 * parts else loss}

    settings = Hyperparameters(epochs=2, batch_size=4, accumulation=parts)
    with pytest.raises(BadInput, match=r"the loss of step 3 of 10 is not a finite number; lower lr"):
        train(YNAT, Breaks(), tokens(20), settings, 1, 0)


@pytest.mark.parametrize(("count", "batch_size"), [(1, 4), (8, 4), (203, 4), (1_001, 3)])
def test_an_epoch_holds_every_feature_once_in_batches_of_similar_length(count: int, batch_size: int) -> None:
    rng = np.random.default_rng(1)
    lengths_N = rng.integers(2, 90, count)
    order, next_order = (order_by_length(lengths_N, batch_size, rng) for _ in range(2))
    assert sorted(order) == sorted(next_order) == list(range(count))
    assert count < 8 or order.tolist() != next_order.tolist()
    longest = [max(lengths_N[order[i : i + batch_size]]) for i in range(0, count, batch_size)]
    spread = [x - min(lengths_N[order[i * batch_size :][:batch_size]]) for i, x in enumerate(longest)]
    assert np.mean(spread) <= 90 / min(len(longest), POOL_BATCHES) + 2
    assert len(longest) < 10 or abs(np.corrcoef(longest, range(len(longest)))[0, 1]) < 0.5  # not from long to short


def slots_per_token(task: Task, features: Sequence[Feature]) -> float:
    """Padded positions of the batches that a training sees, for each real token."""
    slots = [0, 0]

    def collate(rows: Sequence[Feature], pad_id: int) -> dict[str, Any]:
        batch = task.collate(rows, pad_id)
        slots[0] += batch["attention_mask"].size
        slots[1] += int(batch["attention_mask"].sum())
        return {key: batch[key] for key in ("input_ids", "attention_mask", "labels")}

    train(replace(task, collate=collate), Sums(), features, Hyperparameters(epochs=1), 1, 0)
    assert slots[1] == sum(len(feature["input_ids"]) for feature in features)
    return slots[0] / slots[1]


def test_batches_of_real_pairs_hold_little_padding(shared, klue_tokenizer) -> None:
    task = TASKS["klue-sts"]
    examples = task.read(shared("data/klue/official/klue-sts-v1.1/klue-sts-v1.1_dev.json"))
    features = task.featurize(examples, klue_tokenizer, task.published.hyperparameters.max_tokens, True)
    assert slots_per_token(task, features) <= 1.1


def test_bf16_gives_usable_predictions(learn, tiny_encoder) -> None:
    _, model = learn(SETTINGS.replaced(epochs=20), precision="bf16")
    tokenizer = load_tokenizer(tiny_encoder([title for _, title in TITLES] + ["0123456789"])[0])
    features = YNAT.featurize(EXAMPLES, tokenizer, 32, False)
    predictions = YNAT.decode(EXAMPLES, features, predict(YNAT, model, features, 0, "bf16"))
    assert [prediction.value for prediction in predictions] == [example.gold for example in EXAMPLES]


def train_as_published_slowly(model: nn.Module, batches: list[list[Feature]], count: int) -> None:
    """KLUE-baseline's training at its plainest: the number of steps is a fraction, that of the warm-up is not."""
    frozen = ("bias", "LayerNorm.weight")
    groups = [
        {
            "params": [p for name, p in model.named_parameters() if any(part in name for part in frozen)],
            "weight_decay": 0.0,
        },
        {"params": [p for name, p in model.named_parameters() if not any(part in name for part in frozen)]},
    ]
    optimizer = torch.optim.AdamW(groups, lr=2e-3, eps=1e-8, weight_decay=0.01)
    steps = count / 4 * 2
    warmup = math.ceil(0.3 * steps)
    for number, batch in enumerate(batches):
        share = number / warmup if number < warmup else max(0.0, (steps - number) / (steps - warmup))
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * share
        optimizer.zero_grad()
        padded = YNAT.collate([*batch, {**batch[0], "input_ids": [9] * 32, "token_type_ids": [0] * 32}], 0)
        rows = {name: torch.from_numpy(values[:-1]) for name, values in padded.items()}  # every input padded to 32
        model(**rows)["loss"].backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def test_training_as_published_equals_a_plain_loop_over_random_batches(tiny_encoder) -> None:
    folder, _ = tiny_encoder(
        [*(title for _, title in TITLES), "0123456789"], hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    tokenizer = load_tokenizer(folder)
    features = YNAT.featurize(EXAMPLES[:14], tokenizer, 32, True)
    batches: list[list[Feature]] = []
    watched = replace(YNAT, collate=lambda batch, pad_id: batches.append(batch) or YNAT.collate(batch, pad_id))
    settings = SETTINGS.replaced(warmup_share=0.3, weight_decay=0.01)
    fast, slow = (seed_everything(1, "ynat") and YNAT.model(folder, tokenizer) for _ in range(2))
    done = train(watched, fast, features, settings, 1, 0, as_published=True)
    assert (done.steps, [len(batch) for batch in batches]) == (8, [4, 4, 4, 2] * 2)
    for epoch in (batches[:4], batches[4:]):
        assert sorted(feature["example"] for batch in epoch for feature in batch) == list(range(14))
    train_as_published_slowly(slow.train(), batches, len(features))
    for (name, weight), expected in zip(fast.named_parameters(), slow.parameters(), strict=True):
        if not name.endswith("key.bias"):  # it moves no attention, so its gradient is rounding, which Adam makes large
            torch.testing.assert_close(weight, expected, atol=2e-5, rtol=1e-4)


def test_published_batches_are_drawn_regardless_of_length() -> None:
    features = [{"example": i, "input_ids": [i + 1] * (1 + i // 40), "label": 0} for i in range(400)]
    spreads = []
    for as_published in (False, True):
        model = Sums()
        train(YNAT, model, features, Hyperparameters(epochs=1, batch_size=8), 1, 0, as_published=as_published)
        spreads.append(np.mean([max(batch) - min(batch) for batch in model.batches]))
    assert spreads[0] < 60 < 250 < spreads[1]
