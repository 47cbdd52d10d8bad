"""Loading a saved model: the folder ``model/`` of a finished training, or its name on the Hub.

``malmoi.json`` in this folder has the task, the protocol and the digest of every file that predictions depend on. Files
that changed since are refused, because their predictions would not match the recorded scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from transformers import AutoModel

from corpus.documents.accelerator import DeviceName, find_device
from corpus.documents.atomic_files import file_digest, read_json_object
from corpus.documents.errors import BadInput
from corpus.documents.model_files import CONFIG_NAME, check_model_files, refuse_links
from corpus.documents.section import problem_text
from finetune.config import MODEL_INFO_NAME, FinetuneConfig
from finetune.data.files import in_one_sentence
from finetune.encoder.loading import ONNX_NAME, load_config, load_tokenizer, read_weights
from finetune.examples import Module, Tokenizer
from finetune.heads.labels import load_trained_labeller
from finetune.heads.pretrained import MODEL_TYPES
from finetune.registry import find_task, task_of
from finetune.task import Task
from finetune.tasks.custom.task import custom_task
from finetune.tasks.wos.published import make_published_speller
from finetune.tasks.wos.values import make_speller

FORMAT = 1
DEVICES = get_args(DeviceName)
MODEL_NAME = "model"  # below the folder of a training
DEFAULTS: dict[str, Any] = {
    "protocol": "malmoi", "pos_tags": True, "precision": "fp32", "own": None, "files": {}, "revision": 1,
    "re_markers": "plain", "re_restricted": False, "learned": None, "searched_on": None,
}  # fmt: skip
OF_TASK = ("protocol", "pos_tags", "re_markers", "re_restricted")
NEEDED = '{"format": 1, "task": "ynat", "protocol": "malmoi", "max_tokens": 128}'
SAVE_AGAIN = "copy the folder again, or train again"


@dataclass(frozen=True, slots=True)
class SavedModel:
    """A trained task: ``model.predict(**batch)`` returns raw outputs, ``settings`` is the content of
    ``malmoi.json``."""

    task: Task
    tokenizer: Tokenizer
    model: Module
    settings: Mapping[str, Any]


def load_model(name: str | Path, device: str = "auto") -> SavedModel:
    """The saved model in a folder or on the Hub, on ``device``, ready to predict.

    BadInput: there is none, its format is of another version, or its files have changed.
    """
    if device not in DEVICES:
        raise BadInput(f"device {device!r}: use one of {' and '.join(DEVICES)}")
    folder = find_model_folder(str(name))
    settings = read_settings(folder)
    task = task_of_settings(settings, folder)
    if settings["revision"] != task.revision:
        raise BadInput(
            f"{folder}: saved by a version of malmoi with another revision of {task.name} "
            f"({settings['revision']!r:.40}, here {task.revision}); use that version, or train again"
        )
    is_onnx = (folder / ONNX_NAME).is_file()
    if not is_onnx:
        check_model_files(folder, str(name))
    for file, digest in settings["files"].items():  # that predictions depend on; a stock model lists none
        if file_digest(folder / Path(file).name) != digest:
            raise BadInput(f"{folder / file}: changed since it was saved (see {MODEL_INFO_NAME}); copy it again")
    tokenizer = load_tokenizer(str(folder), task.special_tokens)
    model = _load_model(folder, settings, tokenizer)
    place = find_device("cpu" if device == "cpu" or is_onnx else "auto", "device")
    return SavedModel(task, tokenizer, model.to(place).eval(), settings)


def find_model_folder(name: str) -> Path:
    """The folder meant: itself, the only ``model/`` in the folder of a training or of its seeds, or a copy of a Hub
    repository."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        inner = [path for depth in ("", "seed-*/") for path in folder.glob(f"{depth}{MODEL_NAME}/{MODEL_INFO_NAME}")]
        return inner[0].parent if not (folder / MODEL_INFO_NAME).exists() and len(inner) == 1 else folder
    if folder.exists():
        raise BadInput(f"{name}: a file; give the folder of a saved model, runs/…/seed-42/model")
    if name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise BadInput(f"{name}: no such folder; give the folder of a saved model, or NAME/REPOSITORY of the Hub")
    from huggingface_hub import snapshot_download

    advice = "; give the folder of a saved model, or check the name and the network"
    with in_one_sentence(name, "no such folder, and no such repository on the Hub", advice):
        return Path(snapshot_download(name, allow_patterns=["*.json", "*.safetensors", "*.txt", f"{ONNX_NAME}*"]))


def read_settings(folder: Path) -> dict[str, Any]:
    """The content of ``malmoi.json`` with defaults; ``BadInput`` if it is invalid."""
    path = folder / MODEL_INFO_NAME
    refuse_links(folder)
    if not path.is_file():
        raise BadInput(
            f"{folder}: not a fine-tuned malmoi model ({MODEL_INFO_NAME} is missing)\n"
            f"  expected: a folder such as runs/…/finetune/TASK/MODEL/seed-N/{MODEL_NAME}\n"
            f"  to use another Hugging Face model whose labels are in KLUE order, add a {MODEL_INFO_NAME}: {NEEDED}"
        )
    settings = {**DEFAULTS, **read_json_object(path, SAVE_AGAIN)}
    if settings.get("format") != FORMAT:
        raise BadInput(
            f"{path}: format is {settings.get('format')!r:.40}, this malmoi reads {FORMAT}; use the version of malmoi "
            "that wrote it, or train again"
        )
    if type(settings.get("max_tokens")) is not int or not 8 <= settings["max_tokens"] <= 1 << 20:
        raise BadInput(f"{path}: max_tokens is {settings.get('max_tokens')!r:.40}, expected a number of tokens")
    for key, kinds in (("files", dict), ("own", dict | None), ("learned", dict | None)):
        if not isinstance(settings[key], kinds):
            raise BadInput(f"{path}: {key} is {settings[key]!r:.40}, expected an object; {SAVE_AGAIN}")
    if settings["precision"] not in ("fp32", "bf16", "fp16"):
        raise BadInput(f"{path}: precision is {settings['precision']!r:.40}, expected fp32 or bf16")
    return settings


def task_of_settings(settings: Mapping[str, Any], folder: Path) -> Task:
    """The task of a saved model, as it was trained."""
    if settings["own"] is not None:
        return custom_task(settings["own"], str(folder / MODEL_INFO_NAME))
    name = find_task(str(settings.get("task"))).name
    try:
        config = FinetuneConfig(tasks=(name,), **{key: settings[key] for key in OF_TASK})
    except ValidationError as error:
        wrong = error.errors()[0]
        problem = f"{wrong['loc'][0]} is {wrong['input']!r:.40} ({problem_text(wrong)})"
        raise BadInput(f"{folder / MODEL_INFO_NAME}: {problem}; {SAVE_AGAIN}") from None
    task = task_of(name, config)
    return task.with_learned(settings["learned"] or {}) if task.learn else task


def _load_model(folder: Path, settings: Mapping[str, Any], tokenizer: Tokenizer) -> Any:
    config = read_json_object(folder / CONFIG_NAME, SAVE_AGAIN)
    known = config.get("encoder", config).get("vocab_size")
    if len(tokenizer) > known:
        raise BadInput(f"{folder}: {len(tokenizer):,} pieces in its tokenizer, {known:,} embeddings; {SAVE_AGAIN}")
    if config.get("model_type") not in MODEL_TYPES:
        return load_trained_labeller(str(folder), load_config(str(folder)))
    model = read_weights(AutoModel, str(folder), is_whole=True)
    if hasattr(model.net, "spell"):
        model.net.spell = (make_speller if settings["protocol"] == "malmoi" else make_published_speller)(tokenizer)
    return model
