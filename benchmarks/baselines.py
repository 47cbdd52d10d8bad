"""The tools that the benchmarks compare with, each in its common use and fastest variant.

Splitters and detectors take part if they are installed. The baseline vocabulary is mecab-ko over all text with the
trainer of the tokenizers library. The baselines of training are the collator and Trainer of transformers. Heavy
imports wait until a baseline is used.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.timing import timed
from corpus.documents.shards import ShardPortion, iter_documents, shard_paths
from corpus.documents.units import map_units, unit_folder

if TYPE_CHECKING:
    from pretrain.config import PretrainConfig
    from tokenizer.config import TokenizerConfig

Split = Callable[[str], list[str]]
Span = tuple[int, int, str]  # start, end, type
Detect = Callable[[str], list[Span]]

PLAIN_RULE = "[.!?] + blank"
SPLITTERS = {"kiwi": "kiwipiepy", "kss": "kss"}
DETECTORS = {"ko-pii": "ko_pii"}


# --- sentence splitters


def load_splitters() -> dict[str, Split]:
    """Kiwi and kss by name, if they are installed; like ours, they split at line ends too."""
    splitters: dict[str, Split] = {}
    if find_spec("kss"):
        from kss import split_sentences

        splitters["kss"] = partial(split_sentences, backend="mecab", num_workers=1, strip=True)
    if find_spec("kiwipiepy"):
        from kiwipiepy import Kiwi

        split = partial(Kiwi(num_workers=1).split_into_sents, return_sub_sents=False)
        splitters["kiwi"] = lambda line: [sentence.text for sentence in split(line)]
    return {name: partial(_split_lines, split=split) for name, split in splitters.items()}


def _split_lines(text: str, split: Split) -> list[str]:
    return [sentence for line in text.split("\n") if line.strip() for sentence in split(line)]


def split_at_stops(text: str) -> list[str]:
    """Split after a full stop, question or exclamation mark before white space."""
    return re.split(r"(?<=[.!?])\s", text)


# --- detectors of personal data; their labels are mapped to the types of paper Table 29

KO_PII = {
    "PHONE": "TEL", "RRN": "RRN", "FRN": "FRN", "EMAIL": "EMAIL", "IP": "IP", "MAC": "MAC", "ADDRESS": "ADDRESS",
    "ACCOUNT": "ACCOUNT", "PASSPORT": "PASSPORT", "DRIVER_LICENSE": "DRIVER", "BUSINESS_REG": "BRN",
    "MEDICAL_INSURANCE": "HEALTH", "CARD": "CARD", "VEHICLE": "PLATE", "URL": "URL",
}  # fmt: skip


def load_detectors() -> dict[str, Detect]:
    """The installed detectors by name."""
    return {name: _ko_pii() for name, package in DETECTORS.items() if find_spec(package)}


def _ko_pii() -> Detect:
    from ko_pii import detect_all

    return lambda text: [(f.start, f.end, KO_PII[f.label]) for f in detect_all(text) if f.label in KO_PII]


# --- decontamination


def cut_ngrams(text: str, ngram: int) -> list[str]:
    """All n-grams of a text, in order."""
    return [text[at : at + ngram] for at in range(len(text) - ngram + 1)]


def load_bm25(items: Sequence[str], ngram: int) -> Callable[[list[str]], object]:
    """rank_bm25 over n-grams; it scores every item for every query. Returns the function from n-grams to scores."""
    from rank_bm25 import BM25Okapi

    scores: Callable[[list[str]], object] = BM25Okapi([cut_ngrams(item, ngram) for item in items]).get_scores
    return scores


# --- vocabularies


def build_common_vocabulary(
    corpus: Path, work: Path, config: TokenizerConfig, workers: int
) -> tuple[list[str], dict[str, Any]]:
    """The common recipe: mecab-ko over every sentence, then the trainer of the library on its morphemes."""
    from tokenizers import BertWordPieceTokenizer

    from tokenizer.building.count import divide

    seconds: dict[str, float] = {}
    with timed(seconds, "analyse_s", time.perf_counter):
        portions, _ = divide(shard_paths(corpus / "documents"))
        map_units(_write_morphemes, portions, work, workers=workers, title="morphemes")
    library = BertWordPieceTokenizer(lowercase=False, strip_accents=False)
    with timed(seconds, "merge_s", time.perf_counter):
        library.train(
            [str(unit_folder(work, number) / "morphemes.txt") for number in range(len(portions))],
            vocab_size=config.vocab_size - config.unused,
            min_frequency=config.min_frequency,
            limit_alphabet=config.alphabet,
            show_progress=False,
        )
    ids = library.get_vocab()
    return sorted(ids, key=ids.__getitem__), dict(seconds)


def _write_morphemes(portion: ShardPortion, scratch: Path) -> dict[str, Any]:
    from mecab import MeCab

    analyser = MeCab()
    with (scratch / "morphemes.txt").open("w", encoding="utf-8") as file:
        for document in iter_documents(portion.tables()):
            file.writelines(" ".join(analyser.morphs(sentence)) + "\n" for sentence in document.sentences)
    return {}


# --- pretraining


def collator(tokenizer: Path, *, whole_words: bool = False) -> Callable[[list[dict[str, Any]]], Mapping[str, Any]]:
    """DataCollatorForLanguageModeling with its defaults: 15 % of the pieces, or of the words."""
    from transformers import AutoTokenizer, DataCollatorForLanguageModeling

    vocabulary = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that all masked pieces are shown as [MASK]
        return DataCollatorForLanguageModeling(vocabulary, whole_word_mask=whole_words, seed=1)


def train_with_trainer(
    network: Any, examples: Any, config: PretrainConfig, tokenizer: Path, out: Path, callbacks: Sequence[Any] = ()
) -> list[tuple[int, float, float]]:
    """Train ``network`` with the Trainer; returns step, loss and CPU clock of each log line.

    It gets blocks as in run_mlm.py and masks single pieces, its common and fastest use. To its advantage, rows are in
    memory and special pieces are flagged.
    """
    import torch
    from transformers import Trainer, TrainerCallback, TrainingArguments

    from pretrain.engine.optimizer import EPSILON

    log_rows: list[tuple[int, float, float]] = []

    class Clock(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:
            if logs and "loss" in logs:
                log_rows.append((state.global_step, logs["loss"], time.process_time()))

    adam = config.optimizer
    arguments = TrainingArguments(
        output_dir=str(out), max_steps=config.steps, per_device_train_batch_size=config.global_batch,
        learning_rate=adam.lr, lr_scheduler_type="linear", warmup_steps=round(config.steps * adam.warmup_share),
        weight_decay=adam.weight_decay, adam_beta1=adam.betas[0], adam_beta2=adam.betas[1],
        adam_epsilon=EPSILON, max_grad_norm=adam.clip, bf16=config.engine.precision == "bf16", seed=config.seed,
        logging_steps=config.watch.log_every, save_strategy="no", report_to="none", disable_tqdm=True,
        remove_unused_columns=False, dataloader_pin_memory=torch.cuda.is_available(),
        use_cpu=not torch.accelerator.is_available(),  # needed for bf16
    )  # fmt: skip
    collate: Any = collator(tokenizer)
    Trainer(network, arguments, collate, examples, callbacks=[Clock(), *callbacks]).train()
    return log_rows


def train_with_stock_steps(
    network: Any, device: Any, examples: Sequence[Any], config: PretrainConfig, tokenizer: Path
) -> list[tuple[int, float, float]]:
    """The same without the Trainer: only the collator, the loss of the model and the AdamW of torch."""
    import torch

    from pretrain.engine.optimizer import EPSILON
    from pretrain.schedule import learning_rate

    adam, size, collate = config.optimizer, config.global_batch, collator(tokenizer)
    network.to(device)
    optimizer = torch.optim.AdamW(network.parameters(), adam.lr, adam.betas, EPSILON, adam.weight_decay, fused=True)
    log_rows = []
    network.train()
    for step in range(1, config.steps + 1):
        batch = collate(list(examples[(step - 1) * size : step * size]))
        with torch.autocast(network.device.type, torch.bfloat16, enabled=config.engine.precision == "bf16"):
            loss = network(**{name: value.to(network.device) for name, value in batch.items()}).loss
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(config, step)
        optimizer.step()
        optimizer.zero_grad()
        if step % config.watch.log_every == 0:
            log_rows.append((step, loss.item(), time.process_time()))
    return log_rows
