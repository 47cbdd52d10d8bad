"""Train a few steps of the settings in argv (JSON) on a CPU and print the growth of the resident memory, in bytes."""

from __future__ import annotations

import json
import sys

import psutil
import torch

from corpus.documents.accelerator import process_peak
from pretrain.batching.batches import Batch
from pretrain.config import PretrainConfig
from pretrain.engine.memory import needed_memory
from pretrain.engine.start import start_engine
from pretrain.engine.world import World
from pretrain.model.isolation import isolate_documents
from pretrain.model.loss import PretrainingModule, mean_loss
from pretrain.model.networks import build_network

VOCABULARY, STEPS, SEGMENTS = 32_000, 4, 6
IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}


def batch_of(config: PretrainConfig, vocab_size: int) -> Batch:
    """Random pieces; packed rows hold six segments."""
    count, length = config.engine.max_sequences, config.rows.sequence_length
    ids_BL = torch.randint(5, vocab_size, (count, length))
    lengths_BS = None
    if config.rows.packing == "documents":
        lengths_BS = torch.full((count, SEGMENTS), length // SEGMENTS)
    if config.is_causal:
        return Batch(ids_BL, None, ids_BL, None, lengths_BS)
    predictions = round(length * config.rows.masking.share)
    positions_BM = torch.randint(0, length, (count, predictions))
    targets_BM = torch.randint(5, vocab_size, (count, predictions))
    if config.model.nsp:
        pairs_B1 = torch.full((count, 1), length - 7), torch.zeros(count, 1, dtype=torch.long)
        return Batch(ids_BL, positions_BM, targets_BM, torch.zeros_like(ids_BL), *pairs_B1)
    return Batch(ids_BL, positions_BM, targets_BM, None, lengths_BS)


def train(config: PretrainConfig, vocab_size: int) -> int:
    """Returns the number of parameters."""
    network = build_network(config, vocab_size, IDS)
    if config.rows.packing == "documents":
        isolate_documents(network)
    engine = start_engine(config, PretrainingModule(network), World(0, 1, torch.device("cpu")))
    for _ in range(STEPS):
        for _ in range(config.global_batch // config.engine.max_sequences):
            batch = batch_of(config, vocab_size)
            sums = engine(*batch)
            engine.backward(mean_loss(sums, batch.predictions, batch.others))
            del sums
        engine.update(1e-4)
    return sum(p.numel() for p in network.parameters())


config = PretrainConfig.model_validate_json(sys.argv[1])
torch.set_num_threads(1)
small = config.replaced("model", layers=1, hidden=32, heads=2, intermediate=64).replaced("engine", micro_batch=2)
train(small.model_copy(update={"global_batch": 2}), 100)  # loads the libraries
before = psutil.Process().memory_info().rss
parameters = train(config, VOCABULARY)
peak = process_peak() - before
needed = needed_memory(config, VOCABULARY, parameters, config.engine.max_sequences, 1, is_cpu=True)
print(json.dumps({"peak": peak, "needed": needed._asdict()}))
