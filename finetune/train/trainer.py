"""One training loop for all tasks: the transformers Trainer, without output and checkpoints.

Batches hold features of similar length, padded to the longest; under protocol ``klue-baseline`` they are random. AdamW
with linear warmup and decay, no weight decay on biases and norms, gradients clipped at 1, as published. The last
weights are kept, unless others are scored: each published score is the best of many evaluations of the split
that it reports. The published training has neither of these options:

Stochastic weight averaging (Izmailov et al. 2018): the mean of the weights after each epoch but the first is scored and
saved. The learning rate stays constant while weights are averaged, so that they differ. The cost is a second copy of
the trained weights. No network here has batch norm, so no statistics need an update.

With layer decay d, the head has the rate of the step, layer k of n d^(n-k) of it, the embeddings d^n. Lower layers hold
general features and should move less (Howard and Ruder 2018; Sun et al. 2019 for BERT).
"""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import RandomSampler, Sampler
from transformers import PrinterCallback, ProgressCallback, Trainer, TrainerCallback, TrainingArguments, set_seed

from corpus.documents.accelerator import PrecisionName, process_peak
from corpus.documents.errors import BadInput
from finetune.config import Hyperparameters
from finetune.encoder.loading import find_encoder
from finetune.examples import Feature
from finetune.task import Task
from finetune.train.batched_prediction import autocast, to_tensors

START_EPOCHS = 1  # epochs before the first that is averaged
CYCLES_PER_EPOCH = 5  # times that the cosine goes down or up
LOWEST = 0.1  # of the rate, where the cosine turns


class Averaging(TrainerCallback):
    """The average of the trained weights; it is in the model only inside ``averaged_weights`` and after ``finish``."""

    def __init__(self, steps_per_epoch: int) -> None:
        self.steps_per_epoch = steps_per_epoch

    @property
    def count(self) -> int:
        """Number of averaged weights."""
        return int(self.mean.n_averaged)

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **named: Any) -> None:
        self.trained = nn.ParameterList(x for x in model.parameters() if x.requires_grad)
        self.mean = AveragedModel(self.trained)

    def on_step_end(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        epochs, rest = divmod(state.global_step, self.steps_per_epoch)
        if not rest and epochs > START_EPOCHS:
            self.mean.update_parameters(self.trained)

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """Put the average into the model, and restore the trained weights afterwards."""
        trained = [weight.detach().clone() for weight in self.trained]
        self.finish()
        try:
            yield
        finally:
            self._write(trained)

    def finish(self) -> int:
        """Put the average into the model for good; returns ``count``."""
        assert self.count, "nothing was averaged yet"
        self._write(list(self.mean.module.parameters()))
        return self.count

    @torch.no_grad()
    def _write(self, weights: list[torch.Tensor]) -> None:
        for weight, value in zip(self.trained, weights, strict=True):
            weight.copy_(value)


def rate_at(step: int, settings: Hyperparameters, warmup: float, steps: float) -> float:
    """The learning rate before step ``step`` (from 0) of ``steps``, in units of ``lr``: warmup, then linear decay or a
    cosine as in torch's ``CosineAnnealingLR``; constant while SWA averages."""
    epoch = steps / settings.epochs
    if settings.average == "swa" and step >= START_EPOCHS * epoch:
        return 1.0 if settings.swa_lr is None else settings.swa_lr / settings.lr
    if step < warmup:
        return step / warmup
    if settings.schedule == "linear":
        return max(0.0, (steps - step) / max(1.0, steps - warmup))
    turns = math.cos(math.pi * CYCLES_PER_EPOCH * step / epoch)
    return LOWEST + (1 - LOWEST) * (1 + turns) / 2


def decay_by_layer(
    groups: Sequence[dict[str, Any]], model: nn.Module, settings: Hyperparameters
) -> list[dict[str, Any]]:
    """The parameter groups of an optimizer, divided by the learning rate of each layer."""
    depths, top = find_depths(model)
    parted = []
    for group in groups:
        by_depth = defaultdict(list)
        for weight in group["params"]:
            by_depth[depths.get(weight, top + 1)].append(weight)
        for depth, weights in sorted(by_depth.items()):
            factor = 1.0 if depth > top else settings.layer_decay ** (top - depth)
            parted.append({**group, "params": weights, "lr": group["lr"] * factor})
    return parted


def find_depths(model: nn.Module) -> tuple[dict[nn.Parameter, int], int]:
    """The depth of each weight of the encoder, and of its top layer: 0 for embeddings and everything before the layers;
    weights after the layers (pooler, last norm) have the depth of the top layer."""
    encoder = find_encoder(model)
    lists = [part for part in encoder.modules() if isinstance(part, nn.ModuleList)]
    # the lowest layer first; ALBERT has one group, whose layers share their weights
    layers = next((part for part in lists if len(part) == encoder.config.num_hidden_layers), lists[0])
    depths = {weight: number for number, layer in enumerate(layers, 1) for weight in layer.parameters()}
    embeddings = {w for part in encoder.modules() if isinstance(part, nn.Embedding) for w in part.parameters()}
    depth = 0
    for weight in encoder.parameters():
        depth = max(depth, depths.get(weight, 0))
        depths.setdefault(weight, len(layers) if depth and weight not in embeddings else 0)
    return depths, len(layers)


POOL_BATCHES = 50  # batches sorted together; with more, the batches of two epochs would be similar
STEPS_BETWEEN_CHECKS = 20  # of the losses on a GPU, where looking at one waits for all the work before it


class NotFinite(BadInput):
    """The loss became infinite or nan: these settings do not train on any machine."""


Score = Callable[[nn.Module], float]  # higher is better; nan is worse than any number


class Selected(NamedTuple):
    """The selected weights: score, step, and number of evaluations."""

    score: float
    step: int
    evaluations: int


class Training(NamedTuple):
    losses: list[float]  # mean of each epoch
    steps: int
    selected: Selected | None  # None: the last weights
    averaged: int = 0  # number of averaged weights, at the end of the training
    peak_mib: int = 0  # peak memory
    evaluations: tuple[tuple[int, float], ...] = ()  # step and score of each


def seed_everything(seed: int, task: str) -> int:
    """Seed torch for one training (new heads, dropout, order of batches); returns the derived seed."""
    derived = int.from_bytes(hashlib.blake2b(f"{seed}:{task}".encode(), digest_size=4).digest())
    set_seed(derived)
    return derived


def train(
    task: Task, model: nn.Module, features: Sequence[Feature], settings: Hyperparameters, seed: int, pad_id: int, *,
    precision: PrecisionName = "fp32",
    evaluations_per_epoch: int = 0,
    score: Score | None = None,
    uses_cpu: bool = False,
    as_published: bool = False,
) -> Training:  # fmt: skip
    """Train ``model`` in place; ``NotFinite`` names the step whose loss became infinite or nan.

    Args:
        seed: from ``seed_everything``.
        precision: from ``corpus.documents.accelerator.choose_precision``.
        evaluations_per_epoch: times that ``score`` is called per epoch to keep the best weights, the first of equals;
            0: the last weights are kept.
        uses_cpu: even if there is an accelerator.
        as_published: random batches; the learning rate reaches 0 after features / batch size x epochs steps, a
            fraction, so with incomplete batches the last steps do not learn.
    """
    vars(model)["accepts_loss_kwargs"] = False  # the loss is a mean, also of modules that take **batch
    steps_per_epoch = math.ceil(len(features) / settings.batch_size)
    average = Averaging(steps_per_epoch) if settings.average == "swa" else None
    best = _Best(score, evaluations_per_epoch, steps_per_epoch, average) if score and evaluations_per_epoch else None
    with tempfile.TemporaryDirectory() as unused:
        trainer = _Trainer(
            settings,
            precision,
            as_published,
            model=model,
            args=_arguments(task.name, settings, seed, unused, uses_cpu),
            train_dataset=features,  # a list has all that a map-style data set needs
            data_collator=lambda batch: to_tensors(task.collate(batch, pad_id)),
            callbacks=[each for each in (average, best) if each],  # in this order
        )
        forget_peak()
        trainer.train()
        trainer.refuse_infinite_losses()
    losses = [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]
    if torch.accelerator.is_available():
        trainer.accelerator.free_memory()  # the optimizer's
    peak = peak_mib(next(model.parameters()).device)
    averaged = average.finish() if average else 0
    seen = tuple(best.scores.items()) if best else ()
    return Training(losses, trainer.state.global_step, best.restore(model) if best else None, averaged, peak, seen)


def forget_peak() -> None:
    """Reset the peak of memory. Linux can do this for a process (proc(5), ``clear_refs``), other systems cannot."""
    if torch.accelerator.is_available():
        torch.accelerator.reset_peak_memory_stats()
    with suppress(OSError):  # no Linux, or not allowed
        Path("/proc/self/clear_refs").write_text("5", "ascii")


def peak_mib(device: torch.device) -> int:
    """Mebibytes since ``forget_peak``: of tensors on the accelerator, or of the process on a CPU."""
    if device.type not in ("cpu", "mps"):
        return torch.accelerator.max_memory_allocated(device) >> 20
    return process_peak() >> 20


def order_by_length(lengths_N: NDArray[np.integer], batch_size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """An order of one epoch in which consecutive batches hold features of similar length (``N`` features).

    Features are drawn into pools, each pool is sorted by length (equal lengths in random order) and cut into batches,
    and the batches of all pools are shuffled. An incomplete batch comes last, at a random length.
    """
    order_N = rng.permutation(len(lengths_N))
    batches = len(order_N) // batch_size
    pools = max(1, -(-batches // POOL_BATCHES))
    cuts = np.arange(1, pools) * -(-batches // pools) * batch_size
    sorted_N = np.concatenate([pool[np.argsort(lengths_N[pool], kind="stable")] for pool in np.split(order_N, cuts)])
    left = len(order_N) - batches * batch_size
    begin = rng.integers(cuts[-1] if len(cuts) else 0, len(order_N) - left + 1)  # in the last pool, the larger by them
    whole_N = np.delete(sorted_N, np.s_[begin : begin + left])
    shuffled_BN = rng.permutation(whole_N.reshape(batches, batch_size))
    return np.concatenate([shuffled_BN.ravel(), sorted_N[begin : begin + left]])


class _SimilarLengths(Sampler[int]):
    """A new order in every epoch. The Trainer's own leaves a third of the slots empty if examples are few."""

    def __init__(self, features: Sequence[Feature], batch_size: int, seed: int) -> None:
        self.lengths_N = np.array([len(feature["input_ids"]) for feature in features])
        self.batch_size = batch_size
        self.rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        return len(self.lengths_N)

    def __iter__(self) -> Iterator[int]:
        yield from order_by_length(self.lengths_N, self.batch_size, self.rng).tolist()


class _Trainer(Trainer):
    """The Trainer with our autocast and order, which checks every loss."""

    def __init__(
        self, settings: Hyperparameters, precision: PrecisionName, as_published: bool, **arguments: Any
    ) -> None:
        super().__init__(**arguments)
        for callback in (PrinterCallback, ProgressCallback):
            self.remove_callback(callback)
        self.settings, self.precision, self.as_published = settings, precision, as_published
        self.unchecked: list[Tensor] = []
        self.checked = 0

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        features: Any = self.train_dataset
        if self.as_published:
            return RandomSampler(features, generator=torch.Generator().manual_seed(self.args.seed))
        return _SimilarLengths(features, self.settings.batch_size, self.args.seed)

    def create_optimizer(self, *arguments: Any) -> Any:
        optimizer: Any = super().create_optimizer(*arguments)
        trained: Any = self.model
        if self.settings.layer_decay != 1:
            optimizer.param_groups[:] = decay_by_layer(optimizer.param_groups, trained, self.settings)
        return optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        steps: Any = num_training_steps
        if self.as_published:
            features: Any = self.train_dataset
            steps = len(features) / self.settings.batch_size * self.args.num_train_epochs
        if self.settings.schedule == "linear" and self.settings.average != "swa":
            return super().create_scheduler(steps, optimizer)
        warmup = self.args.get_warmup_steps(steps)
        rate = partial(rate_at, settings=self.settings, warmup=warmup, steps=steps)
        stepped: Any = self.optimizer
        self.lr_scheduler, self._created_lr_scheduler = LambdaLR(stepped, rate), True
        return self.lr_scheduler

    def compute_loss_context_manager(self) -> Any:
        return autocast(self.args.device, self.precision)

    def training_step(self, *arguments: Any, **named: Any) -> Tensor:
        loss = super().training_step(*arguments, **named)
        self.unchecked.append(loss)
        if loss.device.type == "cpu" or len(self.unchecked) == STEPS_BETWEEN_CHECKS:
            self.refuse_infinite_losses()
        return loss

    def refuse_infinite_losses(self) -> None:
        is_finite = torch.stack(self.unchecked).isfinite().tolist() if self.unchecked else []
        if not all(is_finite):
            step = (self.checked + is_finite.index(False)) // self.args.gradient_accumulation_steps + 1
            raise NotFinite(
                f"the loss of step {step} of {self.state.max_steps} is not a finite number; lower lr, raise "
                "warmup_share, or use finetune.precision=fp32"
            )
        self.checked += len(is_finite)
        self.unchecked.clear()


class _Best(TrainerCallback):
    """Keeps a copy of the best weights; with averaging only of averages."""

    def __init__(self, score: Score, times: int, steps_per_epoch: int, average: Averaging | None) -> None:
        self.score, self.average, self.steps_per_epoch = score, average, steps_per_epoch
        self.due = {max(1, round(steps_per_epoch * (k + 1) / times)) for k in range(times)}
        self.scores: dict[int, float] = {}
        self.weights: dict[str, Tensor] = {}

    def on_step_end(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        is_due = (state.global_step - 1) % self.steps_per_epoch + 1 in self.due
        if not is_due or (self.average and not self.average.count):
            return
        with self.average.averaged_weights() if self.average else nullcontext():
            value = self.score(named["model"])
            if not self.scores or _rank(value) > max(map(_rank, self.scores.values())):
                self.weights = {name: x.detach().clone() for name, x in named["model"].state_dict().items()}
        self.scores[state.global_step] = value

    def restore(self, model: nn.Module) -> Selected:
        model.load_state_dict(self.weights)
        step, score = max(self.scores.items(), key=lambda entry: (_rank(entry[1]), -entry[0]))
        return Selected(score, step, len(self.scores))


def _rank(score: float) -> float:
    return -math.inf if math.isnan(score) else score


def _arguments(task: str, settings: Hyperparameters, seed: int, folder: str, uses_cpu: bool) -> TrainingArguments:
    if settings.batch_size % settings.accumulation:
        raise BadInput(
            f"finetune.overrides.{task}: batch_size {settings.batch_size} cannot be done in {settings.accumulation} "
            "equal parts; make accumulation a divisor of batch_size"
        )
    uses_cpu = uses_cpu or not torch.accelerator.is_available()
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size // settings.accumulation,
        gradient_accumulation_steps=settings.accumulation,
        learning_rate=settings.lr,
        weight_decay=settings.weight_decay,
        lr_scheduler_type="linear",
        warmup_steps=settings.warmup_share,  # a number below 1 is a share of all steps
        max_grad_norm=1.0,
        optim="adamw_torch_fused",
        seed=seed,
        use_cpu=uses_cpu,
        save_strategy="no",
        eval_strategy="no",
        logging_strategy="epoch",
        logging_nan_inf_filter=False,  # it would hide a broken training behind the mean of the other steps
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=not uses_cpu and torch.cuda.is_available(),
    )
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1  # each further GPU would multiply the batch
    return arguments
