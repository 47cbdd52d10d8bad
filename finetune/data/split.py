"""Which examples train and which are scored: seeded, by identity, the same for every model and every training seed.

A missing file is an error, never another split. Only for tasks named in ``finetune.split_dev`` a dev file without its
train file is divided: groups (turns of one dialogue) stay together, and the result says so. The order of draws depends
on hashes of the guids alone, not on the order of the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.data.files import find_file, find_files, sha256
from finetune.data.versions import version_of
from finetune.task import Example, Task

OFFICIAL_DEV_EXAMPLES = {
    "ynat": 9_107, "klue-sts": 519, "klue-nli": 3_000, "klue-ner": 5_000, "klue-re": 7_765, "klue-dp": 2_000,
    "klue-mrc": 5_841, "wos": 7_224,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Data:
    """The examples of one task, and what to say about them beside a score."""

    training: list[Example]
    scored: list[Example]
    split: str  # what the scores are on, for people
    is_official_dev: bool  # as many examples as the official dev file, so paper Table 36 compares
    files: dict[str, dict[str, str]]  # split to file name, sha256 of its content and version
    test: list[Example]  # none unless asked for
    test_file: Path | None


def load_data(task: Task, folder: Path, config: FinetuneConfig) -> Data:
    """Read the examples of a task, and divide them where ``config.split_dev`` names it.

    Raises:
        BadInput: a file is missing, cannot be read, or has been mixed up with another split's.
    """
    found = find_files(folder, task.files)
    if found.dev is None:
        raise BadInput(f"{folder}: {task.files.dev} (or .zst) is missing; {task.name} cannot be scored without it")
    if found.train is None and task.name not in config.split_dev:
        raise BadInput(
            f"{folder}: {task.files.train} (or .zst) is missing; add it, leave {task.name} out of finetune.tasks, or "
            f"name it in finetune.split_dev to train on one part of its dev file and score on the rest"
        )
    files = _identify({name: path for name, path in found._asdict().items() if path is not None})
    scored = _read_labelled(task, found.dev)
    if found.train is not None:
        training, split = _read_labelled(task, found.train), "dev"
        _refuse_shared(training, scored, found.train, found.dev)
    else:
        training, scored = hold_out(scored, config.dev_split_share, config.split_seed, task.group)
        split = f"{config.dev_split_share:.0%} of dev, by seed; there is no train file, the rest of dev trains"
    test_file = _find_test(task, folder) if config.predict_test else None
    kept = sample(scored, config.max_dev_examples, config.split_seed)
    if len(kept) < len(scored):
        split += f"; {len(kept):,} of {len(scored):,} examples, by seed"
    training = sample(training, config.max_train_examples, config.split_seed)
    if not training or not kept:
        raise BadInput(f"{found.dev}: too few examples of {task.name} to train and to score; give more")
    return Data(
        training=training,
        scored=kept,
        split=split,
        is_official_dev=split == "dev" and len(kept) == OFFICIAL_DEV_EXAMPLES[task.name],
        files=files,
        test=_read(task, test_file) if test_file else [],
        test_file=test_file,
    )


def _identify(paths: Mapping[str, Path]) -> dict[str, dict[str, str]]:
    files = {}
    for split, path in paths.items():
        digest = sha256(path)
        files[split] = {"file": path.name, "sha256": digest, "version": version_of(path, digest)}
    return files


def _find_test(task: Task, folder: Path) -> Path:
    path = find_file(folder, task.files.test)
    if path is None:
        raise BadInput(f"{folder}: {task.files.test} (or .zst) is missing; add it, or set finetune.predict_test=false")
    return path


def _read_labelled(task: Task, path: Path) -> list[Example]:
    examples = _read(task, path)
    if examples[0].gold is None:
        raise BadInput(f"{path}: its examples have no labels; give the labelled file under this name")
    return examples


def _refuse_shared(training: Sequence[Example], scored: Sequence[Example], train_file: Path, dev_file: Path) -> None:
    shared = {example.guid for example in training} & {example.guid for example in scored}
    if shared:
        raise BadInput(
            f"{train_file}: {len(shared):,} examples, {min(shared)} among them, stand in {dev_file} too; a score on "
            "what was trained on says nothing, so remove them from one of the files"
        )


def _read(task: Task, path: Path) -> list[Example]:
    examples = task.read(path)
    if not examples:
        raise BadInput(f"{path}: no examples of {task.name} in it")
    return examples


def hold_out(
    examples: Sequence[Example], share: float, seed: int, group: Callable[[Example], str]
) -> tuple[list[Example], list[Example]]:
    """Split into a training and a held-out part, both in file order.

    Args:
        share: of the examples, 0..1, that is held out; at least one group, and one is left to train on.
        group: examples with the same value stay on one side.
    """
    groups = sorted({group(example) for example in examples}, key=lambda name: _draw(seed, "split", name))
    sizes: dict[str, int] = {}
    for example in examples:
        sizes[group(example)] = sizes.get(group(example), 0) + 1
    held, count = set[str](), 0
    for name in groups[:-1]:
        if held and count >= share * len(examples):
            break
        held.add(name)
        count += sizes[name]
    training = [example for example in examples if group(example) not in held]
    return training, [example for example in examples if group(example) in held]


def sample(examples: Sequence[Example], most: int | None, seed: int) -> list[Example]:
    """At most ``most`` examples, drawn by seed, in file order; all of them where ``most`` is None."""
    if most is None or len(examples) <= most:
        return list(examples)
    order = sorted(range(len(examples)), key=lambda i: (_draw(seed, "sample", examples[i].guid), i))
    return [examples[i] for i in sorted(order[:most])]


def _draw(seed: int, purpose: str, name: str) -> bytes:
    return hashlib.blake2b(f"{seed}:{purpose}:{name}".encode(), digest_size=8).digest()
