"""A kept model as the encoder of another task: its encoder to the bit, and a head that starts again."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from finetune.encoder.loading import check_encoder, load_tokenizer
from finetune.examples import Example
from finetune.registry import TASKS
from finetune.task import Task
from finetune.tasks.custom.task import custom_task
from finetune.train.batched_prediction import to_tensors

PAIR = {"name": "own", "kind": "pair", "text": ["one", "other"], "label": "label", "labels": ["a", "b", "c"]}


@pytest.fixture
def keep(tiny_encoder, tmp_path: Path):
    """A task's model, changed as by a training, as a kept folder; and its weights."""

    def run(task: Task) -> tuple[str, dict[str, torch.Tensor]]:
        folder, _ = tiny_encoder(["가나다"], "roberta")
        tokenizer = load_tokenizer(folder)
        net = task.model(folder, tokenizer).net
        with torch.no_grad():
            for weight in net.parameters():
                weight.add_(0.3)
        batch = to_tensors(task.collate(task.featurize([EXAMPLES[task.name]], tokenizer, 32, True), 0))
        del batch["token_type_ids"]
        net(**batch)  # from here on its configuration names the kind of problem
        kept = tmp_path / "kept" / "model"
        net.save_pretrained(kept)
        tokenizer.save_pretrained(kept)
        (kept / "malmoi.json").write_text("{}", "utf-8")
        return str(kept), {name: weight.clone() for name, weight in net.state_dict().items()}

    return run


EXAMPLES = {
    "klue-nli": Example("1", "neutral", {"premise": "가", "hypothesis": "나"}),
    "klue-sts": Example("1", 2.5, {"sentence1": "가", "sentence2": "나"}),
    "own": Example("1", "b", {"one": "가", "other": "나"}),
}


@pytest.mark.parametrize(
    ("first", "then", "outputs"), [("klue-nli", "klue-sts", 1), ("klue-nli", "own", 3), ("klue-sts", "klue-nli", 3)]
)
def test_a_task_starts_from_the_encoder_of_another_and_a_new_head(first: str, then: str, outputs: int, keep) -> None:
    task = custom_task(PAIR) if then == "own" else TASKS[then]
    folder, before = keep(TASKS[first])
    check_encoder(folder)
    tokenizer = load_tokenizer(folder)
    model = task.model(folder, tokenizer)
    for name, weight in model.net.state_dict().items():
        if name.startswith("roberta."):
            assert torch.equal(weight, before[name]), name
        elif weight.dim() == 2:
            assert abs(weight.mean().item()) < 0.1, name  # not moved by 0.3
        else:
            assert not weight.any(), name
    batch = to_tensors(task.collate(task.featurize([EXAMPLES[then]], tokenizer, 32, True), 0))
    found = model(**batch)
    assert found["logits"].shape == (1, outputs)
    expected = torch.nn.functional.mse_loss if outputs == 1 else torch.nn.functional.cross_entropy
    logits = found["logits"][0, 0] if outputs == 1 else found["logits"]
    target = batch["labels"][0] if outputs == 1 else batch["labels"]
    assert found["loss"].item() == pytest.approx(expected(logits, target).item())
