"""A saved model or a pretrained encoder as ONNX with its configuration and tokenizer, for runtimes without torch.

Of saved models only label heads; the other networks search and generate step by step. torch's exporter is used, because
the newest optimum-onnx refuses transformers 5; the folder has the layout that optimum's ``ORTModelFor…`` classes load.
INT8 keeps the weights of matrix products and embeddings in 8 bits. "dynamic" also multiplies in 8 bits, with the range
of the inputs measured at each call; "weights" multiplies in float32.
"""

from __future__ import annotations

import logging
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from corpus.documents.atomic_files import atomic_dir, file_digest, write_json
from corpus.documents.errors import BadInput
from corpus.documents.escaping import escape_controls
from corpus.documents.templates import load_templates
from finetune.config import MODEL_INFO_NAME
from finetune.encoder.loading import ONNX_NAME, OnnxNetwork, has_segments, load_encoder, load_tokenizer
from finetune.examples import to_rows
from finetune.heads.labels import Labeller
from finetune.inference.predict import predict_examples
from finetune.saved_models.load import SavedModel, find_model_folder, load_model
from finetune.saved_models.save import CARD_NAME, shown_encoder
from finetune.score.bootstrap import bootstrap

Int8 = Literal["no", "dynamic", "weights"]
LARGEST_DIFFERENCE = 1e-4
COPIED = ("config.json", "tokenizer.json", "tokenizer_config.json")
PACKAGES = ("onnx", "onnxscript", "onnxruntime")
TRIALS = (["내일 전국에 비", "비"], ["비"], ["비가 온다. " * 8, "비가 온다", "온다"])  # the exporter traces the first
SAMPLES, SEED = 1000, 42  # of the intervals


class Measured(NamedTuple):
    """How one form of a model does on a labelled file."""

    form: str
    metric: str
    megabytes: float
    score: float
    interval: tuple[float, float] | None
    texts_per_second: float


class Source(NamedTuple):
    """What is exported.

    Fields:
        net: returns one tensor, named ``net.output``; with ``config``, and ``segments``: whether it takes segment ids.
        folder: of the model; ``name`` is shown on the card.
        task: the name of what it does; None: a pretrained encoder.
        finish: writes further files into the folder of the graph.
        measure: ``(graph or None for torch, form, bytes)`` to score and speed on a labelled file ``dev``.
    """

    net: Any
    tokenizer: Any
    folder: Path
    name: str
    task: str | None = None
    finish: Callable[[Path], None] = lambda folder: None
    measure: Callable[[Path | None, str, int], Measured] | None = None
    dev: Path | None = None


def export_onnx(name: str, out: Path, int8: Int8 = "no", dev: Path | None = None) -> float:
    """Write ``model.onnx``, configuration, tokenizer and card to the new folder ``out``; returns the largest difference
    of its outputs from torch's on trial inputs, before INT8.

    Args:
        name: a saved model that labels texts or tokens (output ``logits``), or a pretrained encoder (output
            ``last_hidden_state``): folder or Hub name.
        dev: a labelled file of the task. The card then has the scores with intervals and the speeds of torch, ONNX
            and INT8.

    BadInput: another kind of model, ``out`` exists, a package is missing, or the outputs differ.
    """
    check_target(out)
    folder = find_model_folder(name)
    if not (folder / MODEL_INFO_NAME).exists():
        if dev is not None:
            raise BadInput(f"{name}: a pretrained encoder has no scores; fine-tune it first, or leave out --dev")
        net = OneOutput(load_encoder(str(folder)), "last_hidden_state")
        return write_onnx(Source(net, load_tokenizer(str(folder)), folder, name), out, int8)
    saved = load_model(name, "cpu")
    if not isinstance(saved.model, Labeller):
        raise BadInput(
            f"{name}: a model for {saved.task.name}, which has no stock class of transformers; ONNX export needs "
            "models that label texts or tokens"
        )

    def finish(folder: Path) -> None:
        files = {path.name: file_digest(path) for path in sorted(folder.iterdir())}
        write_json(folder / MODEL_INFO_NAME, {**saved.settings, "files": files})

    def measure_form(graph: Path | None, form: str, size: int) -> Measured:
        assert dev is not None
        model = saved.model if graph is None else Labeller(OnnxNetwork(graph, net.config), kind)
        return measure(replace(saved, model=model), dev, form, size)

    net, kind = OneOutput(saved.model.net, "logits"), saved.model.kind
    measured = measure_form if dev is not None else None
    return write_onnx(Source(net, saved.tokenizer, folder, name, saved.task.name, finish, measured, dev), out, int8)


def check_target(out: Path) -> None:
    """``BadInput`` if a package is missing or ``out`` exists."""
    if missing := [package for package in PACKAGES if find_spec(package) is None]:
        raise BadInput(f"ONNX needs {', '.join(missing)}; run: pip install 'malmoi[onnx]'")
    if out.exists():
        raise BadInput(f"{out}: exists already; name a new folder")


def write_onnx(source: Source, out: Path, int8: Int8) -> float:
    """Write the folder; returns the largest difference from torch before INT8. ``BadInput`` if the outputs differ."""
    net = source.net
    trials = [
        dict(source.tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=net.segments))
        for texts in TRIALS
    ]
    with atomic_dir(out) as folder:
        path = folder / ONNX_NAME
        write_graph(net, trials[0], path)
        difference = compare(net, trials, path)
        measured = measure_forms(source, path, int8)
        for file in COPIED:
            if (source.folder / file).exists():
                shutil.copyfile(source.folder / file, folder / file)
        source.finish(folder)
        card = load_templates("finetune.inference").get_template("onnx_card.md.j2")
        text = card.render(
            model=escape_controls(shown_encoder(source.name)), task=source.task, output=net.output, int8=int8,
            dev=escape_controls(source.dev.name) if source.dev else None, difference=difference, measured=measured,
            threads=torch.get_num_threads(),
        )  # fmt: skip
        (folder / CARD_NAME).write_text(text, "utf-8")
    return difference


class OneOutput(nn.Module):
    """A network with one output."""

    def __init__(self, net: Any, output: str) -> None:
        super().__init__()
        self.net, self.output, self.config = net.eval(), output, net.config
        self.segments = has_segments(net.config)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        more = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        return getattr(self.net(input_ids=input_ids, attention_mask=attention_mask, **more), self.output)


def write_graph(net: Any, inputs: Mapping[str, Tensor], path: Path) -> None:
    """Export the network for any number of texts and positions; weights beyond 2 GB go to a second file."""
    free = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    with _quiet():
        program: Any = torch.onnx.export(
            net, (), kwargs=dict(inputs), dynamo=True, verbose=False, input_names=list(inputs),
            output_names=[net.output], dynamic_shapes=dict.fromkeys(inputs, free),
        )  # fmt: skip
        program.save(str(path))


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporters' lines about each step."""
    disabled = logging.root.manager.disable
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(disabled)


def compare(net: Any, trials: list[dict[str, Tensor]], path: Path) -> float:
    """The largest difference of the outputs over all trial inputs; ``BadInput`` above 1e-4."""
    run = OnnxNetwork(path, net.config)
    largest = 0.0
    for inputs in trials:
        with torch.inference_mode():
            largest = max(largest, float((run(**inputs).logits - net(**inputs)).abs().max()))
    if not largest <= LARGEST_DIFFERENCE:
        raise BadInput(f"the outputs of ONNX differ from torch's by {largest:.1e}; use the model with torch")
    return largest


def quantize(path: Path, mode: Literal["dynamic", "weights"]) -> None:
    """Replace a float32 graph by one with 8-bit weights of matrix products and embeddings.

    7 of the 8 bits are used in "dynamic", because the products of older processors saturate at 8.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    with _quiet():
        if mode == "dynamic":
            quantize_dynamic(path, path, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
        else:
            products = MatMulNBitsQuantizer(onnx.load(path), bits=8)  # a scale for each 128 weights
            products.process()
            quantize_dynamic(products.model.model, path, ["Gather"], weight_type=QuantType.QInt8)


def measure_forms(source: Source, path: Path, int8: Int8) -> list[Measured]:
    """Make ``path`` INT8 as ``int8`` says. What torch, ONNX and INT8 do with the labelled file; empty without one."""
    forms, measure_form = [], source.measure
    if measure_form is not None:
        size = sum(file.stat().st_size for file in source.folder.glob("*.safetensors"))
        forms += [measure_form(None, "torch", size), measure_form(path, "ONNX", _size(path))]
    if int8 != "no":
        quantize(path, int8)
        if measure_form is not None:
            forms.append(measure_form(path, f"ONNX INT8, {int8}", _size(path)))
    return forms


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


def measure(saved: SavedModel, dev: Path, form: str, size: int) -> Measured:
    """Headline score, and the speed of the faster of two runs, the encoding of the texts included."""
    examples = saved.task.read(dev)
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        predictions = predict_examples(saved, examples)
        seconds.append(time.perf_counter() - begin)
    rows = to_rows(examples, predictions)
    score = saved.task.score(rows)
    headline = next(iter(score))
    groups = [saved.task.group(example) for example in examples]
    interval = bootstrap(saved.task, rows, groups, SAMPLES, SEED)[headline]
    return Measured(form, headline, size / 1e6, score[headline], interval, len(examples) / min(seconds))
