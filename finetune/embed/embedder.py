"""The network of an embedding model, its folder in the classic layout of sentence-transformers, encoding, and ONNX.

The layout is written by hand: a folder saved by sentence-transformers 6 does not load in version 3, this one loads in
both. ``Embedder`` needs no sentence-transformers and gives the same vectors. Weights are safetensors.

```
config.json, model.safetensors, tokenizer files     the encoder
modules.json                                        encoder, pooling, length 1
sentence_bert_config.json, 1_Pooling/config.json    longest input; mean or [CLS]
embed.json, README.md                               how it was trained; the card
```
Legend: ``N`` texts, ``B`` texts of a batch, ``L`` tokens, ``H`` width.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedTokenizerBase

from corpus.documents.accelerator import DeviceName, PrecisionName, find_device
from corpus.documents.atomic_files import atomic_dir, read_json, read_json_object
from corpus.documents.errors import BadInput
from corpus.documents.escaping import escape_controls, escape_markdown
from corpus.documents.model_files import quiet_transformers, refuse_links
from corpus.documents.templates import load_templates
from finetune.embed.config import PoolingName
from finetune.embed.data import read_evaluation_file
from finetune.embed.evaluate import cosines, rows_of_pairs
from finetune.encoder.loading import (
    ONNX_NAME,
    Encoder,
    OnnxNetwork,
    load_config,
    load_encoder,
    load_tokenizer,
    max_input_tokens,
    read_weights,
    reads_one_way,
)
from finetune.examples import Feature, pad_inputs
from finetune.inference.onnx_export import SAMPLES, SEED, Int8, Measured, Source, check_target, write_onnx
from finetune.metrics import figure, interval_text
from finetune.saved_models.save import save_network
from finetune.score.bootstrap import bootstrap
from finetune.tasks.similarity import similarity_task
from finetune.train.batched_prediction import autocast, batches_by_length, to_tensors

MODULES_NAME, LENGTH_NAME, POOLING_NAME = "modules.json", "sentence_bert_config.json", "1_Pooling/config.json"
VERSIONS_NAME, INFO_NAME = "config_sentence_transformers.json", "embed.json"
FILE_NAMES = (MODULES_NAME, LENGTH_NAME, POOLING_NAME, VERSIONS_NAME, INFO_NAME)  # besides those of the encoder
TYPES = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
POOLING_KEYS = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}
OTHER_KEYS = (
    "pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens",
    "pooling_mode_lasttoken",
)  # fmt: skip
Vectors = NDArray[np.float32]


class EmbeddingNet(nn.Module):
    """Token ids to one vector of length 1 for each text; the form that losses of sentence-transformers expect."""

    def __init__(self, encoder: Encoder | StaticEncoder, pooling: PoolingName) -> None:
        super().__init__()
        self.encoder, self.pooling = encoder, pooling

    def __getitem__(self, number: int) -> nn.Module:
        """The losses look at the first module of a model."""
        return self.encoder

    def get_embedding_dimension(self) -> int:
        """The width H, for losses that shorten vectors."""
        return int(self.encoder.config.hidden_size)

    def forward(self, features: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """``input_ids`` and ``attention_mask``, (B, L), to ``sentence_embedding``, (B, H)."""
        mask_BL = features["attention_mask"]
        states_BLH = self.encoder(features["input_ids"], mask_BL).last_hidden_state
        if self.pooling == "cls":
            pooled_BH = states_BLH[:, 0]
        else:
            weight_BL1 = mask_BL[..., None].to(states_BLH.dtype)
            pooled_BH = (states_BLH * weight_BL1).sum(dim=1) / weight_BL1.sum(dim=1)
        return {"sentence_embedding": nn.functional.normalize(pooled_BH.float(), dim=1)}


def shorten(vectors_NH: Vectors, width: int) -> Vectors:
    """The first ``width`` numbers of each vector, scaled to length 1."""
    part = vectors_NH[:, :width]
    return np.asarray(part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-12), np.float32)


class _OnnxNet(nn.Module):
    """``EmbeddingNet`` whose encoder and pooling are one ONNX graph."""

    def __init__(self, encoder: OnnxNetwork) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, features: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": self.encoder.run(features)}


def build_net(name: str, pooling: PoolingName) -> tuple[EmbeddingNet, PreTrainedTokenizerBase]:
    """The untrained network of an encoder (a folder or Hub name) and its tokenizer; ``BadInput`` for a decoder."""
    if reads_one_way(load_config(name)):
        raise BadInput(f"embed.model {name}: a decoder, whose tokens do not see what follows; name an encoder")
    tokenizer = load_tokenizer(name)
    return EmbeddingNet(load_encoder(name, tokenizer), pooling), tokenizer


def tokenize(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_tokens: int) -> list[Feature]:
    """The ids of each text, cut to ``max_tokens``; white space around texts is removed, as sentence-transformers do."""
    if not texts:
        return []
    ids = tokenizer([text.strip() for text in texts], truncation=True, max_length=max_tokens)["input_ids"]
    return [{"input_ids": row} for row in ids]


class Embedder:
    """A trained embedding model; ``encode`` turns texts into vectors whose dot product is their cosine."""

    def __init__(
        self, net: EmbeddingNet | _OnnxNet, tokenizer: PreTrainedTokenizerBase, max_tokens: int,
        prompts: Mapping[Any, str] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        self.net, self.tokenizer, self.max_tokens = net.eval(), tokenizer, max_tokens
        self.prompts = {str(name): text for name, text in prompts.items()}

    def with_graph(self, path: Path) -> Embedder:
        """The same model with its network as ONNX (``finetune.embed.embedder``)."""
        net = _OnnxNet(OnnxNetwork(path, self.net.encoder.config))
        return Embedder(net, self.tokenizer, self.max_tokens, self.prompts)

    def encode(
        self,
        texts: Sequence[str],
        precision: PrecisionName = "fp32",
        *,
        prompt: str = "",
        dimensions: int | None = None,
    ) -> Vectors:
        """One vector of length 1 for each text, (N, H) float32, in order; batches hold texts of similar length.

        Args:
            prompt: "query" or "passage": what the model puts before such texts; nothing if it was trained without.
            dimensions: only the first numbers of each vector, scaled to length 1.
        """
        if isinstance(texts, str):
            raise ValueError("encode takes a list of texts; write encode([text])")
        before = self.prompts.get(prompt, "")
        features = tokenize([before + text for text in texts], self.tokenizer, self.max_tokens)
        device = next(self.net.parameters()).device
        self.net.eval()
        vectors_NH = np.zeros((len(features), self.net.encoder.config.hidden_size), np.float32)
        with torch.inference_mode(), autocast(device, precision):
            for batch in batches_by_length(features):
                padded = pad_inputs([features[i] for i in batch], int(self.tokenizer.pad_token_id or 0))
                vectors_NH[batch] = self.net(to_tensors(padded, device))["sentence_embedding"].float().cpu().numpy()
        return shorten(vectors_NH, dimensions) if dimensions else vectors_NH


def save_embedder(target: Path, embedder: Embedder, info: Mapping[str, Any], card: str) -> None:
    """Write the folder ``target``, replacing an older one; ``info``: content of embed.json."""
    net, tokenizer = embedder.net, embedder.tokenizer
    assert isinstance(net, EmbeddingNet)
    encoder: Any = net.encoder.encoder
    with atomic_dir(target) as folder, quiet_transformers():
        tokenizer.model_max_length = embedder.max_tokens
        save_network(folder, encoder, tokenizer)
        modules = [
            {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for number, (path, kind) in enumerate(TYPES.items())
        ]
        pooling = {
            "word_embedding_dimension": int(encoder.config.hidden_size),
            **{key: name == net.pooling for name, key in POOLING_KEYS.items()},
            **dict.fromkeys(OTHER_KEYS, False), "include_prompt": True,
        }  # fmt: skip
        files: dict[str, Any] = {
            MODULES_NAME: modules,
            LENGTH_NAME: {"max_seq_length": embedder.max_tokens, "do_lower_case": False},
            POOLING_NAME: pooling,
            VERSIONS_NAME: {"prompts": embedder.prompts, "default_prompt_name": None, "similarity_fn_name": "cosine"},
            INFO_NAME: info,
        }
        (folder / "1_Pooling").mkdir()
        (folder / "2_Normalize").mkdir()
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")
        (folder / "README.md").write_text(card, "utf-8")


def load_embedder(folder: Path, device: DeviceName = "auto") -> Embedder:
    """Load a folder in the classic layout with mean or [CLS] pooling, or what `malmoi model export` made of it, which
    runs on the processor; ``BadInput`` for any other."""
    again = "train it again with `malmoi embed`, or use sentence-transformers"
    if not (folder / MODULES_NAME).is_file():
        raise BadInput(f"{folder}: no embedding model ({MODULES_NAME} is missing); `malmoi embed` writes one")
    refuse_links(folder)
    modules = read_json(folder / MODULES_NAME, again)
    kinds = [str(module.get("type")).rpartition(".")[2] for module in modules if isinstance(module, dict)]
    if kinds not in (list(TYPES.values()), list(TYPES.values())[:2]):
        raise BadInput(f"{folder}: modules {', '.join(kinds)}; expected {', '.join(TYPES.values())}; {again}")
    pooling = read_json_object(folder / POOLING_NAME, again)
    chosen = [name for name, key in POOLING_KEYS.items() if pooling.get(key)]
    if len(chosen) != 1 or any(pooling.get(key) for key in OTHER_KEYS):
        raise BadInput(f"{folder}: {POOLING_NAME} is not mean or cls alone; {again}")
    config, tokenizer = load_config(str(folder)), load_tokenizer(str(folder))
    most = read_json_object(folder / LENGTH_NAME, again).get("max_seq_length") or max_input_tokens(config) or 512
    if type(most) is not int or not 2 < most <= 1 << 20:
        raise BadInput(f"{folder}: max_seq_length is {most!r:.40}, expected a number of tokens; {again}")
    versions = folder / VERSIONS_NAME
    prompts = read_json_object(versions, again).get("prompts") if versions.is_file() else None
    prompts = {name: text for name, text in (prompts or {}).items() if isinstance(text, str)}
    if (graph := folder / ONNX_NAME).is_file():
        return Embedder(_OnnxNet(OnnxNetwork(graph, config)), tokenizer, most, prompts)
    net = EmbeddingNet(Encoder(read_weights(AutoModel, str(folder), is_whole=False)), chosen[0])  # type: ignore[arg-type]
    return Embedder(net.to(find_device(device, "--device")), tokenizer, most, prompts)


class StaticEncoder(nn.Module):
    """One trained vector for each token, weighted by how rare it is in ``texts``: a baseline without attention."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], max_tokens: int, width: int) -> None:
        super().__init__()
        ids = [np.unique(feature["input_ids"]) for feature in tokenize(texts, tokenizer, max_tokens)]
        found_V = np.bincount(np.concatenate(ids), minlength=len(tokenizer))
        idf_V = np.log((1 + len(ids)) / (1 + found_V)) + 1
        idf_V[list(tokenizer.all_special_ids)] = 0
        self.table = nn.Embedding(len(tokenizer), width)
        self.register_buffer("idf_V", torch.tensor(idf_V, dtype=torch.float32))
        self.config = SimpleNamespace(hidden_size=width)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        """(B, L) to an output with ``last_hidden_state``, (B, L, H)."""
        idf_V: Any = self.idf_V
        return SimpleNamespace(last_hidden_state=self.table(input_ids) * idf_V[input_ids][..., None])


def embedding_card(info: Mapping[str, Any], seeds: Sequence[Mapping[str, Any]]) -> str:
    """README.md in Markdown, with the Hub's metadata first.

    Args:
        info: content of embed.json.
        seeds: the same of all trainings that differ in the seed, this one included.
    """
    encoder = escape_controls(str(info["encoder"])).replace("`", "'")
    scores = [
        (escape_markdown(name), metric, figure(value), interval_text(result["intervals"].get(metric)),
         f"{result['n']:,}",
         " / ".join(figure(other["scores"][name]["scores"].get(metric)) for other in seeds if "scores" in other))
        for name, result in info.get("scores", {}).items() for metric, value in result["scores"].items()
    ]  # fmt: skip
    contaminated = info["data"]["contaminated"]
    data = [(escape_markdown(name), f"{n:,}", f"{contaminated.get(name, 0):,}")
            for name, n in info["data"]["examples"].items()]  # fmt: skip
    template = load_templates("finetune.embed").get_template("card.md.j2")
    return template.render(
        info=info, encoder=encoder, hub_id=encoder if encoder.count("/") == 1 else "", scores=scores, data=data,
        seeds=[other["seed"] for other in seeds],
        uses_klue=any(name.startswith("klue") for name in info["data"]["examples"]),
    )  # fmt: skip


class _Vectors(nn.Module):
    """An embedding network whose inputs are arguments and whose output is one tensor."""

    output, segments = "sentence_embedding", False

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net, self.config = net.eval(), net.encoder.config

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        vectors: Tensor = self.net({"input_ids": input_ids, "attention_mask": attention_mask})[self.output]
        return vectors


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
