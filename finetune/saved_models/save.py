"""Saving a trained model as a Hugging Face folder: weights, configuration, tokenizer, ``malmoi.json``, card.

Label heads are stock classes; the others are ours (``finetune.heads.pretrained``). The folder is written atomically;
its bytes depend on the training alone, so it has no times and no paths. Under ``save: best`` the best seed is chosen
from the results on disk after every training, so neither the order nor the number of workers matters. The models of all
seeds need disk space until their trainings are scored.

Everything on the card comes from ``malmoi.json``, except the scores of other seeds.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from corpus.documents.atomic_files import atomic_dir, atomic_write, file_digest, read_json_object
from corpus.documents.escaping import escape_controls, escape_markdown
from corpus.documents.locks import hold_lock
from corpus.documents.model_files import CONFIG_NAME, quiet_transformers
from corpus.documents.templates import load_templates
from finetune.config import FRESH, MODEL_INFO_NAME, FinetuneConfig
from finetune.examples import Tokenizer
from finetune.heads.labels import Labeller
from finetune.heads.pretrained import as_pretrained
from finetune.metrics import figure
from finetune.saved_models.load import FORMAT, MODEL_NAME, read_settings, task_of_settings

log = logging.getLogger(__name__)

RESULTS = (
    "task", "protocol", "precision", "headline", "scores", "intervals", "constant", "counting", "counting_by", "split",
    "is_official_dev", "n", "n_train", "seed", "data", "hyperparameters", "selected", "steps", "revision", "versions",
)  # fmt: skip
OF_RELATIONS = ("re_markers", "re_restricted")  # written where they are not the defaults
SAME = ("recipe", "encoder", "revision")  # of comparable trainings
LOCK_NAME = ".models.lock"  # in the folder of the seeds
REMOVED = ".model-removed-"  # prefix of a model that is being removed
CARD_NAME = "README.md"
KINDS = {  # of custom tasks, by whom they resemble
    "pair": "klue-nli", "similarity": "klue-sts", "span": "klue-mrc", "choice": "choice",
}  # fmt: skip


class Trained(NamedTuple):
    """A model and the tokenizer of its inputs."""

    model: nn.Module
    tokenizer: Tokenizer


def save_or_remove(folder: Path, config: FinetuneConfig, trained: Trained, result: Mapping[str, Any]) -> None:
    """Write ``model/`` below the folder of a training, ``result`` being its ``scores.json``; or remove an old one."""
    if config.save == "none":
        _remove(folder / MODEL_NAME)
    else:
        save_model(folder / MODEL_NAME, trained, result, config.pos_tags)


def save_model(target: Path, trained: Trained, result: Mapping[str, Any], pos_tags: bool = True) -> None:
    """Write a saved model to the folder ``target``, replacing an older one."""
    model, tokenizer = trained
    with atomic_dir(target) as folder, quiet_transformers():
        save_network(folder, model.net if isinstance(model, Labeller) else as_pretrained(model), tokenizer)
        settings = {
            "format": FORMAT,
            **{name: result[name] for name in RESULTS},
            "max_tokens": result["hyperparameters"]["max_tokens"],
            "pos_tags": pos_tags,
            "own": result.get("own"),
            **({"searched_on": result["searched_on"]} if "searched_on" in result else {}),
            **{key: value for key, value in result.get("recipe", {}).items() if key in OF_RELATIONS},
            **({"learned": result["learned"]} if "learned" in result else {}),
            "encoder": shown_encoder(result["model"]),
            "files": {path.name: file_digest(path) for path in sorted(folder.iterdir())},
        }
        (folder / MODEL_INFO_NAME).write_text(json.dumps(settings, ensure_ascii=False, indent=1) + "\n", "utf-8")
        _write_card(folder, {result["seed"]: result["scores"][result["headline"]]})


def save_network(folder: Path, network: Any, tokenizer: Tokenizer) -> None:
    """Write what transformers reads, for all who can read its configuration: safetensors writes for the owner alone."""
    network.save_pretrained(folder)
    for weights in folder.glob("*.safetensors"):
        shutil.copymode(folder / CONFIG_NAME, weights)
    tokenizer.backend_tokenizer.no_truncation()  # what the last call set
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(folder)


def _write_card(folder: Path, seeds: Mapping[int, float | None]) -> None:
    settings = read_settings(folder)
    (architecture,) = read_json_object(folder / CONFIG_NAME, "train again")["architectures"]
    predicts = task_of_settings(settings, folder).predicts
    atomic_write(folder / CARD_NAME, model_card(settings, predicts, architecture, seeds))


def keep_best(folder: Path, config: FinetuneConfig) -> None:
    """With ``save: best``: of the finished trainings that differ from this one only in the seed, only the best keeps
    its model, and its card lists all seeds. Processes can do this at the same time: the last one sees all results."""
    if config.save != "best":
        return
    with hold_lock(folder.parent / LOCK_NAME, waits=True):
        finished = {
            path.parent: read_json_object(path, "train again")
            for path in sorted(folder.parent.glob("seed-*/scores.json"))
        }
        own = finished.get(folder)
        alike = {p: r for p, r in finished.items() if own and all(r.get(key) == own.get(key) for key in SAME)}
        saved = [place for place in alike if (place / MODEL_NAME / MODEL_INFO_NAME).is_file()]
        best = max(saved, key=lambda place: _rank(alike[place]), default=None)
        for place in alike.keys() - {best}:
            _remove(place / MODEL_NAME)
        if best is None:
            log.warning("%s: finished without a saved model; delete this folder to train it again", folder)
        elif len(alike) > 1:
            seeds = {result["seed"]: result["scores"][result["headline"]] for result in alike.values()}
            _write_card(best / MODEL_NAME, dict(sorted(seeds.items())))


def _rank(result: Mapping[str, Any]) -> tuple[float, int]:
    """The headline (undefined: last), then the lower seed."""
    value = result["scores"].get(result["headline"])
    return (-float("inf") if value is None else float(value), -int(result["seed"]))


def _remove(model: Path) -> None:
    """Rename first, so that a partly removed folder is never taken for a model."""
    with suppress(FileNotFoundError):  # another process was faster
        model.rename(model.with_name(f"{REMOVED}{os.getpid()}"))
    for doomed in model.parent.glob(f"{REMOVED}*"):
        shutil.rmtree(doomed, ignore_errors=True)


def model_card(settings: Mapping[str, Any], predicts: str, architecture: str, seeds: Mapping[int, float | None]) -> str:
    """README.md in Markdown, with the Hub's metadata first.

    Args:
        settings: content of ``malmoi.json``.
        predicts: ``Task.predicts``.
        architecture: class name of the model.
        seeds: headline of each training among which this one was the best, itself included.
    """
    task, encoder, own = settings["task"], settings["encoder"], settings["own"] or {}
    like = KINDS.get(own.get("kind", ""), task)
    is_token = architecture.endswith("ForTokenClassification")
    stock = "AutoModelForTokenClassification" if is_token else "AutoModelForSequenceClassification"
    is_stock = architecture.endswith("Classification")
    template = load_templates("finetune.saved_models").get_template("card.md.j2")
    return template.render(
        settings=settings,
        task=escape_controls(task),
        predicts=escape_markdown(predicts),
        encoder=escape_controls(encoder).replace("`", "'"),
        hub_id="" if encoder.startswith(FRESH) or encoder.count("/") != 1 else encoder,
        pipeline=("token-classification" if is_token else "text-classification") if is_stock else None,
        stock=stock if is_stock else None,
        like=like,
        is_token=is_token,
        is_typed=settings.get("re_markers") == "typed" or settings.get("re_restricted"),
        is_own=settings["own"] is not None,
        record=_record_of_choice(own) if like == "choice" else None,
        split=escape_markdown(settings["split"]),
        scores=[_score(name, settings) for name in settings["scores"]],
        seeds=[(f"**{seed}**" if seed == settings["seed"] else seed, figure(value)) for seed, value in seeds.items()],
        data=[
            (split, escape_markdown(file["file"]), escape_markdown(file["version"]), f"`{file['sha256']:.16}`")
            for split, file in settings["data"].items()
        ],
        hyperparameters=[
            *((name.replace("_", " "), value) for name, value in settings["hyperparameters"].items()),
            *((name, settings[name]) for name in ("steps", "precision", "seed")),
            *((name, settings["versions"][name]) for name in ("malmoi", "torch", "transformers")),
        ],
        needs_tags=task == "klue-dp" and settings["pos_tags"],
    )


def _record_of_choice(own: Mapping[str, Any]) -> str:
    """An input of ``predict`` for a multiple choice, with all columns."""
    texts = own.get("text") or "text"
    columns = [*([texts] if isinstance(texts, str) else texts), *own["choices"]]
    return json.dumps(dict.fromkeys(columns, "…"), ensure_ascii=False)


def _score(name: str, settings: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    interval, value = settings["intervals"].get(name), settings["scores"][name]
    between = f"{interval[0]:.2f} – {interval[1]:.2f}" if interval else "–"
    constant, counting = settings["constant"].get(name), settings["counting"].get(name)
    mark = " †" if value is not None and counting is not None and value < counting else ""
    return name, f"{figure(value)}{mark}", between, figure(constant), figure(counting)


def shown_encoder(name: str) -> str:
    """A Hub name unchanged; of a folder only its own name, because its location is private."""
    fresh = FRESH if name.startswith(FRESH) else ""
    rest = name.removeprefix(FRESH)
    is_place = rest.startswith(("/", ".", "~")) or rest.count("/") > 1 or Path(rest).exists()
    return fresh + (Path(rest).name if is_place else rest)
