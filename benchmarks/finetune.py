"""``python -m benchmarks finetune``: compare training and prediction with the published padding.

Both sides have the same examples, initial weights and one thread, and run in turns; CPU time counts. Without options
it runs on the embedded sample; ratios carry over to other machines, absolute times do not. The model is random and
small: a larger one spends a greater share of its time on padding and gains more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import BertTokenizer, RobertaConfig, RobertaModel
from transformers.utils.logging import disable_progress_bar

from benchmarks.baselines import predict_plainly, train_plainly
from benchmarks.texts import GIVEN, SAMPLE
from benchmarks.timing import fresh_in_turns, record_table, timed, versions_of, write_figures
from corpus.documents.errors import BadInput
from finetune.data.files import find_file
from finetune.data.split import sample
from finetune.encoder.loading import load_tokenizer
from finetune.examples import Example
from finetune.registry import TASKS
from finetune.train.batched_prediction import predict
from finetune.train.trainer import seed_everything, train
from launch.console import PlainConsole, print_table
from launch.sample.unpack import unpack

TASKS_TIMED = ("klue-ner", "klue-dp", "klue-sts", "klue-nli", "ynat")
OURS, THEIRS = "malmoi", "published padding"
PHASES = ("epoch", "predict")
SEED = 1


def run_finetune_bench(
    klue: Path | None,
    vocabulary: Path | None,
    tasks: Sequence[str],
    max_examples: int | None,
    out: Path | None,
) -> dict[str, Any]:
    """Measure, print tables, and write the figures as JSON to ``out`` if given.

    Args:
        klue: folder of the KLUE files, of which the dev files are used; None: the embedded sample.
        vocabulary: a WordPiece ``vocab.txt``; None: one learned from the examples.
        tasks: ``TASKS_TIMED`` if empty.
        max_examples: of a task, drawn by seed; None: all.

    Raises:
        BadInput: an option or a file cannot be used.
    """
    if set(tasks) - set(TASKS_TIMED) or (max_examples is not None and max_examples < 1):
        raise BadInput(f"--task must be one of {', '.join(TASKS_TIMED)}; --examples must be at least 1")
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        scratch = Path(folder)
        if klue is None:
            unpack(scratch)
        files = klue or scratch / "klue"
        examples = {name: read_examples(name, files, max_examples) for name in tasks or TASKS_TIMED}
        encoder = make_encoder(vocabulary or learn_vocabulary(examples, scratch / "vocab.txt"), scratch / "encoder")
        results: dict[str, Any] = {
            "tasks": {name: measure_task(name, files, max_examples, encoder) for name in examples},
            "versions": versions_of(("torch", "transformers", "tokenizers")),
            "material": SAMPLE if klue is None else GIVEN,
        }
    columns = {"examples": "{examples:,}", **{phase: f"{{times_faster[{phase}]:.1f}} x" for phase in PHASES}}
    note = f"{results['material']}; RoBERTa of 2 layers x 256, one thread, CPU time."
    table = record_table("Fine-tuning and the published padding", results["tasks"], columns, note, first="task")
    print_table(table, PlainConsole())
    return write_figures(results, out)


def read_examples(name: str, klue: Path, max_examples: int | None) -> list[Example]:
    """Dev examples of a task, at most ``max_examples`` by seed.

    Raises:
        BadInput: the file is missing.
    """
    path = find_file(klue, TASKS[name].files.dev)
    if path is None:
        file = TASKS[name].files.dev
        raise BadInput(f"{klue}: {file} (or .zst) is missing; add it, or choose other tasks with --task")
    return sample(TASKS[name].read(path), max_examples, SEED)


def learn_vocabulary(examples: dict[str, list[Example]], target: Path) -> Path:
    """Learn a small cased WordPiece vocabulary from the examples."""
    from tokenizers import BertWordPieceTokenizer

    inputs = [value for listed in examples.values() for example in listed for value in example.inputs.values()]
    texts = [
        value if isinstance(value, str) else " ".join(map(str, value))
        for value in inputs
        if isinstance(value, Iterable)
    ]
    tokenizer = BertWordPieceTokenizer(lowercase=False, strip_accents=False)
    tokenizer.train_from_iterator(texts, vocab_size=8_000, min_frequency=2, show_progress=False)
    ids = tokenizer.get_vocab()
    target.write_text("".join(piece + "\n" for piece in sorted(ids, key=ids.__getitem__)), "utf-8")
    return target


def make_encoder(vocabulary: Path, folder: Path) -> Path:
    """A random RoBERTa with BERT-style inputs, 2 layers x 256, and its tokenizer."""
    tokenizer = BertTokenizer(vocab=str(vocabulary), do_lower_case=False, strip_accents=False)
    disable_progress_bar()
    torch.manual_seed(SEED)
    config = RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=1_024,
        max_position_embeddings=514, type_vocab_size=1, pad_token_id=int(tokenizer.pad_token_id),
    )  # fmt: skip
    RobertaModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "vocab.txt").write_text(vocabulary.read_text("utf-8"), "utf-8")
    return folder


def measure_task(name: str, klue: Path, max_examples: int | None, encoder: Path) -> dict[str, Any]:
    """Both sides, each in a fresh process."""
    orders = {side: [side, name, str(klue), max_examples, str(encoder)] for side in (THEIRS, OURS)}
    sides = fresh_in_turns(run_side, orders, 1)
    ours, theirs = sides[OURS], sides[THEIRS]
    return {
        "examples": ours["examples"],
        "sides": sides,
        "times_faster": {phase: theirs[phase] / ours[phase] for phase in PHASES},
    }


def run_side(order: tuple[str, str, str, int | None, str]) -> dict[str, Any]:
    """In the fresh process: CPU seconds of the ``PHASES`` of one side."""
    side, name, klue, max_examples, encoder = order
    torch.set_num_threads(1)
    task, examples, seconds = TASKS[name], read_examples(name, Path(klue), max_examples), dict[str, float]()
    tokenizer, settings = load_tokenizer(encoder), task.published.hyperparameters.replaced(epochs=1)
    pad_id = int(tokenizer.pad_token_id)
    features = task.featurize(examples, tokenizer, settings.max_tokens, True)
    seed = seed_everything(SEED, name)
    model = task.model(encoder, tokenizer)
    with timed(seconds, "epoch"):
        (train if side == OURS else train_plainly)(task, model, features, settings, seed, pad_id)
    with timed(seconds, "predict"):
        if side == OURS:
            predict(task, model, features, pad_id)
        else:
            predict_plainly(task, model, features, settings, pad_id)
    return {**seconds, "examples": len(examples)}
