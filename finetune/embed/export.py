"""An embedding model as ONNX: texts to vectors of length 1, without torch. ``load_embedder`` reads the folder, too."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from corpus.documents.errors import BadInput
from finetune.embed.data import read_evaluation_file
from finetune.embed.embedder import FILE_NAMES, load_embedder
from finetune.embed.evaluate import cosines, rows_of_pairs
from finetune.inference.onnx_export import SAMPLES, SEED, Int8, Measured, Source, check_target, write_onnx
from finetune.score.bootstrap import bootstrap
from finetune.tasks.similarity import similarity_task


class _Vectors(nn.Module):
    """An embedding network whose inputs are arguments and whose output is one tensor."""

    output, segments = "sentence_embedding", False

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net, self.config = net.eval(), net.encoder.config

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        found: Tensor = self.net({"input_ids": input_ids, "attention_mask": attention_mask})[self.output]
        return found


def export_embedder(name: str, out: Path, int8: Int8 = "no", dev: Path | None = None) -> float:
    """Write ``model.onnx`` (output ``sentence_embedding``) and the other files of the folder ``name`` to the new folder
    ``out``; returns the largest difference of the vectors from torch's on trial inputs, before INT8.

    Args:
        dev: graded pairs, as ``embed.evaluate`` takes; the card then has the correlations and speeds of all forms.

    BadInput: ``out`` exists, a package is missing, the outputs differ, or ``dev`` has no graded pairs.
    """
    check_target(out)
    embedder = load_embedder(Path(name), "cpu")
    part = read_evaluation_file(dev) if dev is not None else None
    if part is not None and part.kind != "graded":
        raise BadInput(f"{dev}: no graded pairs; the columns are sentence1, sentence2, score")

    def measure_form(graph: Path | None, form: str, size: int) -> Measured:
        assert part is not None
        measured = embedder.with_graph(graph) if graph else embedder
        begin = time.perf_counter()
        rows = rows_of_pairs(part, cosines(part, measured.encode))
        seconds, task = time.perf_counter() - begin, similarity_task({"name": part.name, "kind": part.kind})
        interval = bootstrap(task, rows, list(part.guids), SAMPLES, SEED)["spearmanr"]
        score = task.score(rows)["spearmanr"]
        return Measured(form, "spearmanr", size / 1e6, score, interval, len(set(part.texts)) / seconds)

    def finish(folder: Path) -> None:
        for file in FILE_NAMES:
            if (Path(name) / file).exists():
                (folder / file).parent.mkdir(exist_ok=True)
                shutil.copyfile(Path(name) / file, folder / file)

    measured = measure_form if part is not None else None
    source = Source(
        _Vectors(embedder.net), embedder.tokenizer, Path(name), name, "sentence embeddings", finish, measured, dev
    )
    return write_onnx(source, out, int8)
