"""The other side of the finetune bench: a straightforward implementation in the manner of the published baseline.

A slow tokenizer, sentence by sentence and word by word; inputs padded to the task's longest; a plain loop over shuffled
batches. In its favour, labels and arrays that padding does not change come from our conversion when it trains, the
words of KLUE-DP are padded to the longest of the batch only, and its loop has none of the Trainer's bookkeeping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from finetune.task import IGNORED, Example, Feature, Hyperparameters, Task
from finetune.tasks.ner.metrics import NER_TAGS
from finetune.train.predict import to_tensors

Converted = dict[str, Any]
Batch = dict[str, NDArray[Any]]


def convert_title(example: Example, tokenizer: Any, max_tokens: int) -> Converted:
    return {**_encode(tokenizer, max_tokens, example.inputs["title"]), "label": example.gold}


def convert_pair(first: str, second: str) -> Callable[[Example, Any, int], Converted]:
    """Conversion of two texts by the names of their fields."""

    def convert(example: Example, tokenizer: Any, max_tokens: int) -> Converted:
        texts = (example.inputs[first], example.inputs[second])
        return {**_encode(tokenizer, max_tokens, *texts), "label": example.gold}

    return convert


def convert_sentence(example: Example, tokenizer: Any, max_tokens: int) -> Converted:
    """KLUE-NER: every word once more alone, to find the tag of the first character of each of its tokens."""
    text, tags, begin = example.inputs["text"], [], 0
    for word in text.split(" "):
        position = begin
        for token in tokenizer.tokenize(word):
            tags.append(NER_TAGS.index(example.gold[position]))
            position += len(token.removeprefix("##"))
            if token == tokenizer.unk_token:
                position = begin
        begin += len(word)
    tags = [len(NER_TAGS) - 1, *tags[: max_tokens - 2], len(NER_TAGS) - 1]
    padding = [len(NER_TAGS) - 1] * (max_tokens - len(tags))
    return {**_encode(tokenizer, max_tokens, text), "tags": tags + padding}


def convert_words(example: Example, tokenizer: Any, max_tokens: int) -> Converted:
    """KLUE-DP: every word once more alone, to mark its first and its last token."""
    words = example.inputs["words"]
    first, last = [0] * max_tokens, [0] * max_tokens
    position = 1
    for word in words:
        tokens = tokenizer.tokenize(word)
        if position + len(tokens) > max_tokens:
            break
        first[position] = 1
        position += len(tokens)
        last[position - 1] = 1
    padding = [IGNORED] * (max_tokens - len(words))
    gold = {name: [*example.gold[name], *padding] for name in ("heads", "types")}
    return {**_encode(tokenizer, max_tokens, " ".join(words)), "first": first, "last": last, **gold}


CONVERTERS: Mapping[str, Callable[[Example, Any, int], Converted]] = {
    "ynat": convert_title,
    "klue-sts": convert_pair("sentence1", "sentence2"),
    "klue-nli": convert_pair("premise", "hypothesis"),
    "klue-ner": convert_sentence,
    "klue-dp": convert_words,
}


def _encode(tokenizer: Any, max_tokens: int, *texts: str) -> Converted:
    return dict(tokenizer(*texts, max_length=max_tokens, truncation=True, padding="max_length"))


def convert_all(task: str, examples: Sequence[Example], tokenizer: Any, max_tokens: int) -> list[Converted]:
    """Every example alone, padded to ``max_tokens``."""
    return [CONVERTERS[task](example, tokenizer, max_tokens) for example in examples]


def pad_fully(batch: Batch, max_tokens: int, pad_id: int) -> Batch:
    """A batch of ours with its token arrays padded to ``max_tokens``."""
    fillers = {"input_ids": pad_id, "attention_mask": 0, "token_type_ids": 0, "labels": IGNORED}
    tokens = batch["input_ids"].shape[1]
    return {
        name: np.pad(array, ((0, 0), (0, max_tokens - tokens)), constant_values=fillers[name])
        if name in fillers and array.shape[1:] == (tokens,)
        else array
        for name, array in batch.items()
    }


def fixed_batches(
    task: Task, features: Sequence[Feature], order: Sequence[int], settings: Hyperparameters, pad_id: int
) -> Iterator[dict[str, Tensor]]:
    """Batches in the order given, each as long as the task's longest input may be."""
    for begin in range(0, len(order), settings.batch_size):
        rows = [features[i] for i in order[begin : begin + settings.batch_size]]
        yield to_tensors(pad_fully(task.collate(rows, pad_id), settings.max_tokens, pad_id))


def train_plainly(
    task: Task, model: nn.Module, features: Sequence[Feature], settings: Hyperparameters, seed: int, pad_id: int
) -> float:
    """One epoch of AdamW with a linear rate and clipping; returns the mean loss of its steps."""
    order = np.random.default_rng(seed).permutation(len(features)).tolist()
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    steps = -(-len(order) // settings.batch_size)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    losses = []
    model.train()
    for batch in fixed_batches(task, features, order, settings, pad_id):
        loss = model(**batch)["loss"]
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rate.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return float(np.mean(losses))


def predict_plainly(
    task: Task, model: nn.Module, features: Sequence[Feature], settings: Hyperparameters, pad_id: int
) -> list[Any]:
    """One raw output a feature, in their order."""
    model.eval()
    raws: list[Any] = []
    with torch.inference_mode():
        for batch in fixed_batches(task, features, range(len(features)), settings, pad_id):
            raws += model.predict(**batch)  # type: ignore[operator]
    return raws
