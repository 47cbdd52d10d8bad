"""One training loop for all tasks: the transformers Trainer, quiet, without checkpoints.

Batches hold features of similar length, padded to their longest. AdamW with linear warm-up and decay, no weight decay
on biases and norms, gradients clipped at 1, as published. The last weights are kept: nothing is selected on the
examples that are scored, unlike the published figures, each the best of many evaluations of the split it reports.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence

import torch
from torch import nn
from transformers import PrinterCallback, ProgressCallback, Trainer, TrainingArguments, set_seed

from finetune.predict import to_tensors
from finetune.task import Feature, Hyperparameters, Task


def seed_everything(seed: int, task: str) -> int:
    """Seed torch for one training (fresh heads, dropout, order of batches); returns the derived seed."""
    derived = int.from_bytes(hashlib.blake2b(f"{seed}:{task}".encode(), digest_size=4).digest())
    set_seed(derived)
    return derived


def train(
    task: Task, model: nn.Module, features: Sequence[Feature], settings: Hyperparameters, seed: int, pad_id: int
) -> list[float]:
    """Train ``model`` in place.

    Args:
        seed: as ``seed_everything`` returned it.
        pad_id: id of the padding token.

    Returns:
        mean loss of each epoch.
    """
    vars(model)["accepts_loss_kwargs"] = False  # the loss is a mean, also of modules that take **batch
    with tempfile.TemporaryDirectory() as unused:
        trainer = Trainer(
            model=model,
            args=_arguments(settings, seed, unused),
            train_dataset=features,  # a list has all that a map-style data set needs
            data_collator=lambda batch: to_tensors(task.collate(batch, pad_id)),
        )
        for callback in (PrinterCallback, ProgressCallback):
            trainer.remove_callback(callback)
        trainer.train()
    losses = [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]
    trainer.accelerator.free_memory()
    return losses


def _arguments(settings: Hyperparameters, seed: int, folder: str) -> TrainingArguments:
    return TrainingArguments(
        output_dir=folder,
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.lr,
        weight_decay=settings.weight_decay,
        lr_scheduler_type="linear",
        warmup_steps=settings.warmup_share,  # a number below 1 is a share of all steps
        max_grad_norm=1.0,
        optim="adamw_torch",
        train_sampling_strategy="group_by_length",
        seed=seed,
        data_seed=seed,
        use_cpu=not torch.cuda.is_available(),
        save_strategy="no",
        eval_strategy="no",
        logging_strategy="epoch",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
