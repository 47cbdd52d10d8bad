"""Which examples train and which are scored; the split is seeded and equal for all models and training seeds.

A missing file is an error. Only for tasks in ``finetune.split_dev``, a dev file without training file is divided;
groups (turns of a dialogue) stay together, and the result records it. Draws depend on hashes of the guids, not on the
order of the file.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from corpus.documents.section import warn_once
from finetune.config import FinetuneConfig
from finetune.data.custom_files import unlabelled
from finetune.data.files import find_file, identify
from finetune.examples import Example
from finetune.task import Task

DEV_SPLIT_SHARE = 0.2  # of a divided dev file, held out for scoring; the rest trains
SPLIT_SEED = 42  # the same for all trainings, so that their results compare


@dataclass(frozen=True, slots=True)
class Data:
    """The examples of one task, and the description of the split for results."""

    training: list[Example]
    scored: list[Example]
    split: str  # what the scores are on, for people
    is_official_dev: bool  # as many examples as the official dev file, so paper Table 36 compares
    files: dict[str, dict[str, str]]  # split to file name, sha256 of its content and version


def load_data(task: Task, folder: Path, config: FinetuneConfig, *, needs_train: bool = True) -> Data:
    """Read the examples of a task, and divide the dev file if ``config.split_dev`` names the task. ``BadInput`` if a
    file is missing, unreadable, or belongs to another split."""
    train, dev = find(task, folder, "train"), find(task, folder, "dev")
    if dev is None:
        raise BadInput(f"{_named(task, folder, 'dev')} is missing; {task.name} cannot be scored without it")
    if train is None and needs_train and task.name not in config.split_dev:
        raise BadInput(
            f"{_named(task, folder, 'train')} is missing; add it, leave {task.name} out of finetune.tasks, or name it "
            "in finetune.split_dev to train on one part of its dev file and score on the rest"
        )
    own = task.custom is not None
    files = {split: identify(path, own) for split, path in (("train", train), ("dev", dev)) if path is not None}
    scored = _read_labelled(task, dev)
    refuse_twice(dev, [example.guid for example in scored])
    if train is not None:
        training, split = _read_labelled(task, train), "dev"
        (_refuse_shared if task.custom is None else _warn_of_shared)(training, scored, train, dev)
    elif not needs_train:
        training, split = [], "dev"
    else:
        training, scored = hold_out(scored, DEV_SPLIT_SHARE, SPLIT_SEED, task.group)
        split = f"{DEV_SPLIT_SHARE:.0%} of dev, by seed; there is no train file, the rest of dev trains"
    sampled = sample(scored, config.max_dev_examples, SPLIT_SEED)
    if len(sampled) < len(scored):
        split += f"; {len(sampled):,} of {len(scored):,} examples, by seed"
    training = sample(training, config.max_train_examples, SPLIT_SEED)
    if config.held_out_share:
        training, held = hold_out(training, config.held_out_share, SPLIT_SEED, task.group)
        sampled = sample(held, config.max_dev_examples, SPLIT_SEED)
        some = f"; {len(sampled):,} of {len(held):,} examples, by seed" if len(sampled) < len(held) else ""
        split = f"{config.held_out_share:.0%} of the training examples, by seed; the others train{some}"
    if not sampled or (needs_train and not training):
        raise BadInput(f"{dev}: too few examples of {task.name} to train and to score; give more")
    is_official_dev = split == "dev" and len(sampled) == task.published.dev_examples
    return Data(training, sampled, split, is_official_dev, files)


def _named(task: Task, folder: Path, split: str) -> str:
    name = task.files.of(split)
    return (name if task.custom else f"{folder}: {name} (or .zst)") or f"finetune.custom.{task.name}.{split}"


def find(task: Task, folder: Path, split: str) -> Path | None:
    """The path of a split's file: below ``folder`` for a KLUE task, None if missing; from the recipe for a custom task,
    None if it names none."""
    name = task.files.of(split)
    if task.custom is None:
        return find_file(folder, name)
    if name and not Path(name).is_file():
        raise BadInput(f"{name}: no such file; correct finetune.custom.{task.name}.{split}")
    return Path(name) if name else None


def _read_labelled(task: Task, path: Path) -> list[Example]:
    examples = task.read(path)
    if examples[0].gold is None:
        raise unlabelled(path, task.custom)
    _remark_on_doubles(path, examples)
    return examples


def _remark_on_doubles(path: Path, examples: Sequence[Example]) -> None:
    """Report texts that occur again, and how many of them with another label."""
    golds: dict[tuple[str, ...], Any] = {}
    doubles = others = 0
    for example in examples:
        texts = tuple(example.inputs.values())
        if not all(isinstance(text, str) for text in texts):
            return
        doubles += texts in golds
        others += golds.setdefault(texts, example.gold) != example.gold
    if doubles:
        warn_once(f"{path}: {doubles:,} of {len(examples):,} texts repeat earlier ones, {others:,} with another label")


def _refuse_shared(training: Sequence[Example], scored: Sequence[Example], train_file: Path, dev_file: Path) -> None:
    shared = {example.guid for example in training} & {example.guid for example in scored}
    if shared:
        raise BadInput(
            f"{train_file}: {len(shared):,} examples, such as {min(shared)}, are in {dev_file} too; remove them"
        )


def _warn_of_shared(training: Sequence[Example], scored: Sequence[Example], train_file: Path, dev_file: Path) -> None:
    """Custom data may contain a short text such as "좋아요" (I like it) twice, but not a whole file."""
    known = {json.dumps(example.inputs, sort_keys=True) for example in training}
    shared = sum(json.dumps(example.inputs, sort_keys=True) in known for example in scored)
    if shared == len(scored):
        raise BadInput(f"{train_file}: has all examples of {dev_file}, so scores mean nothing; give other examples")
    if shared:
        warn_once(f"{dev_file}: {shared:,} of {len(scored):,} examples are in {train_file} too")


def hold_out(
    examples: Sequence[Example], share: float, seed: int, group: Callable[[Example], str]
) -> tuple[list[Example], list[Example]]:
    """Split into a training and a held-out part, both in file order. The held-out part gets ``share`` (0..1) of the
    examples by whole groups, at least one group; one group is left for training."""
    sizes = Counter(map(group, examples))
    held, count = set[str](), 0
    for name in sorted(sizes, key=lambda name: draw_digest(seed, "split", name))[:-1]:
        if held and count >= share * len(examples):
            break
        held.add(name)
        count += sizes[name]
    training = [example for example in examples if group(example) not in held]
    return training, [example for example in examples if group(example) in held]


def sample(examples: Sequence[Example], most: int | None, seed: int) -> list[Example]:
    """At most ``most`` examples, drawn by seed, in file order; all if ``most`` is None."""
    if most is None or len(examples) <= most:
        return list(examples)
    order = sorted(range(len(examples)), key=lambda i: (draw_digest(seed, "sample", examples[i].guid), i))
    return [examples[i] for i in sorted(order[:most])]


def draw_digest(seed: int, purpose: str, name: str) -> bytes:
    """By which names are sorted for a draw that does not depend on their order."""
    return hashlib.blake2b(f"{seed}:{purpose}:{name}".encode(), digest_size=8).digest()


def refuse_twice(path: Path, guids: Sequence[str]) -> None:
    """``BadInput`` if an example has no guid of its own."""
    twice = [guid for guid, count in Counter(guids).items() if count > 1]
    if twice:
        raise BadInput(f"{path}: {some_of(twice)} more than once; an example has one guid and one prediction")


def some_of(guids: Sequence[str]) -> str:
    """``guid klue-nli-v1_dev_00000``, or the number of them and the first."""
    return f"guid {guids[0]:.80}" if len(guids) == 1 else f"{len(guids):,} guids (the first is {guids[0]:.80})"
