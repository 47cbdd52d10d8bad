"""``python -m benchmarks lora``: compare LoRA with full fine-tuning over one epoch of each task.

Both have the same encoder, examples, initial weights and batches, each in a fresh process. The default encoder is a
random decoder of 4 layers x 512. Adapters save gradients and the two moments of AdamW, 12 bytes per weight;
activations and head cost the same on both sides.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import BertTokenizer, LlamaConfig, LlamaModel
from transformers.utils.logging import disable_progress_bar

from benchmarks.finetune import SEED, learn_vocabulary, read_examples
from benchmarks.texts import GIVEN, SAMPLE
from benchmarks.timing import fresh_in_turns, timed, versions_of, write_figures
from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig, Lora
from finetune.encoder.loading import check_encoder, load_config, load_tokenizer, most_tokens
from finetune.heads.shape import check_shape, shape_model
from finetune.registry import TASKS
from finetune.task_names import TASK_NAMES, full_name
from finetune.train.memory import resident_mib
from finetune.train.trainer import seed_everything, train
from launch.console import PlainConsole, print_table, record_table
from launch.sample.unpack import unpack

FULL, LORA = "full", "LoRA"


def run_lora_bench(
    model: str | None, klue: Path | None, tasks: Sequence[str], max_examples: int | None, rank: int, rounds: int,
    out: Path | None,
) -> dict[str, Any]:  # fmt: skip
    """Measure, print a table, and write the figures as JSON to ``out`` if given.

    Args:
        model: encoder or decoder, a folder or Hub name; None: a random decoder.
        klue: folder of the KLUE files, of which the dev files are used; None: the embedded sample.
        tasks: all if empty.
        max_examples: of a task, drawn by seed; None: all.

    Raises:
        BadInput: an option or a file cannot be used, or peft is missing.
    """
    names = [full_name(name) for name in tasks] or list(TASK_NAMES)
    if min(rank, rounds, max_examples or 1) < 1:
        raise BadInput("--rank, --rounds and --examples must be at least 1")
    check_shape(FinetuneConfig(lora=Lora(rank=rank)), ())
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        scratch = Path(folder)
        if klue is None:
            unpack(scratch)
        files = klue or scratch / "klue"
        encoder = model or make_decoder(names, files, max_examples, scratch)
        check_encoder(encoder)
        orders = {
            name: {side: [side, name, str(files), max_examples, encoder, rank] for side in (FULL, LORA)}
            for name in names
        }
        found = {name: fresh_in_turns(run_side, order, rounds) for name, order in orders.items()}
    results: dict[str, Any] = {
        "tasks": {
            name: {"sides": sides, "times_faster": sides[FULL]["epoch"] / sides[LORA]["epoch"]}
            for name, sides in found.items()
        },
        "rounds": rounds, "rank": rank, "versions": versions_of(("torch", "transformers", "peft")),
        "material": SAMPLE if klue is None else GIVEN,
    }  # fmt: skip
    columns = {"examples": f"{{sides[{FULL}][examples]:,}}"}
    for head, key, form in (("trained", "trained", ",d"), ("s", "epoch", ".1f"), ("MiB", "mib", ",.0f")):
        columns |= {f"{side} {head}": f"{{sides[{side}][{key}]:{form}}}" for side in (FULL, LORA)}
    note = (
        f"{results['material']}; {model or 'a random decoder, 4 layers x 512'}, LoRA of rank {rank} on all linear "
        f"layers, seconds of an epoch, peak memory of weights and training; medians of {rounds} rounds."
    )
    print_table(
        record_table("LoRA and full fine-tuning", results["tasks"], columns, note, first="task"), PlainConsole()
    )
    return write_figures(results, out)


def make_decoder(names: Sequence[str], klue: Path, max_examples: int | None, scratch: Path) -> str:
    """A random Llama and a vocabulary of the examples."""
    vocabulary = learn_vocabulary(
        {name: read_examples(name, klue, max_examples) for name in names}, scratch / "vocab.txt"
    )
    tokenizer = BertTokenizer(vocab=str(vocabulary), do_lower_case=False, strip_accents=False)
    disable_progress_bar()
    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=512, num_hidden_layers=4, num_attention_heads=8, intermediate_size=2_048,
        max_position_embeddings=512,
    )  # fmt: skip
    LlamaModel(config).save_pretrained(scratch / "decoder")
    tokenizer.save_pretrained(scratch / "decoder")
    return str(scratch / "decoder")


def run_side(order: tuple[str, str, str, int | None, str, int]) -> dict[str, Any]:
    """In the fresh process: seconds of an epoch, peak memory beyond the libraries, number of trained parameters.

    Seconds are CPU time on a CPU, else wall time.
    """
    side, name, klue, max_examples, encoder, rank = order
    import peft  # noqa: F401  # on both sides, so that its modules do not count

    torch.set_num_threads(1)
    task, seconds = TASKS[name], dict[str, float]()
    settings = task.hyperparameters_for(int(load_config(encoder).hidden_size)).replaced(epochs=1)
    longest = min(settings.max_tokens, most_tokens(load_config(encoder)) or settings.max_tokens)
    examples = read_examples(name, Path(klue), max_examples)
    tokenizer = load_tokenizer(encoder, task.special_tokens)
    features = task.featurize(examples, tokenizer, longest, True)
    seed = seed_everything(SEED, name)
    config = FinetuneConfig(lora=Lora(rank=rank) if side == LORA else None)
    before = 0 if torch.accelerator.is_available() else resident_mib()  # the libraries
    shaped = shape_model(task.model(encoder, tokenizer), task, config, encoder, tokenizer)
    clock = time.perf_counter if torch.accelerator.is_available() else time.process_time
    with timed(seconds, "epoch", clock):
        report = train(task, shaped.model, features, settings, seed, int(tokenizer.pad_token_id))
    mib = float(report.peak_mib - before)
    return {**seconds, "mib": mib, "examples": len(examples), **shaped.parameters}
