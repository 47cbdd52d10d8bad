"""The model card of a saved model: scores with intervals, how they were obtained, data, licences, and usage.

Everything comes from ``malmoi.json``, except the scores of other seeds, which are known after the last training.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corpus.documents.escaping import escape_controls, escape_markdown
from corpus.documents.templates import load_templates
from finetune.config import FRESH

CARD_NAME = "README.md"
KINDS = {  # of own tasks, by whom they resemble
    "pair": "klue-nli", "similarity": "klue-sts", "span": "klue-mrc", "choice": "choice",
}  # fmt: skip
EXAMPLES = {
    "klue-sts": '["비가 온다", "비가 내린다"]',
    "klue-nli": '["비가 온다", "날이 맑다"]',
    "klue-re": '"<subj>한빛사</subj>는 <obj>서울</obj>에 있다"',
    "klue-mrc": '["어디에 있나?", "한빛사는 서울에 있다"]',
    "wos": '["서울 식당 찾아줘"]',
}
NOTES = {
    "klue-re": ", and the entities are marked by <subj> and </subj>, <obj> and </obj>",
    "klue-sts": "; the one output is the similarity, not to be put through a sigmoid",
    "choice": "; the one output is the score of an answer that follows its question, to be compared with the others",
}

# Measured on the sample (2 layers, 250 sentences): 728 of our 728 entities with simple, 389 others; 213 with first
ENTITY_NOTE = (
    '. `pipeline("token-classification", …, aggregation_strategy="simple")` returns the entities of malmoi and also '
    "those whose first tag is I-, which malmoi and the scores leave out; the other strategies differ more"
)


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
    example, note = _example(like, own), ENTITY_NOTE if is_token else NOTES.get(like, "")
    if settings.get("re_markers") == "typed" or settings.get("re_restricted"):
        example = example.replace("<subj>", "<subj:ORG>").replace("<obj>", "<obj:LOC>")
        note = "; how it reads the types of entities, and what it leaves out by them, only malmoi does"
    template = load_templates("finetune.saved_models").get_template("card.md.j2")
    return template.render(
        settings=settings,
        task=escape_controls(task),
        predicts=escape_markdown(predicts),
        encoder=escape_controls(encoder).replace("`", "'"),
        hub_id="" if encoder.startswith(FRESH) or encoder.count("/") != 1 else encoder,
        pipeline=("token-classification" if is_token else "text-classification") if is_stock else None,
        stock=stock if is_stock else None,
        note=note,
        is_own=settings["own"] is not None,
        example=example,
        split=escape_markdown(settings["split"]),
        scores=[_score(name, settings) for name in settings["scores"]],
        seeds=[(f"**{seed}**" if seed == settings["seed"] else seed, _figure(value)) for seed, value in seeds.items()],
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


def _example(like: str, own: Mapping[str, Any]) -> str:
    """An input of ``predict``; of a multiple choice a record with all columns."""
    if like != "choice":
        return EXAMPLES.get(like, '"코스피 2,600선 회복"')
    texts = own.get("text") or "text"
    columns = [*([texts] if isinstance(texts, str) else texts), *own["choices"]]
    return json.dumps(dict.fromkeys(columns, "…"), ensure_ascii=False)


def _score(name: str, settings: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    interval, value = settings["intervals"].get(name), settings["scores"][name]
    between = f"{interval[0]:.2f} – {interval[1]:.2f}" if interval else "–"
    constant, counting = settings["constant"].get(name), settings["counting"].get(name)
    mark = " †" if value is not None and counting is not None and value < counting else ""
    return name, f"{_figure(value)}{mark}", between, _figure(constant), _figure(counting)


def _figure(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"


def shown_encoder(name: str) -> str:
    """A Hub name unchanged; of a folder only its own name, because its location is private."""
    fresh = FRESH if name.startswith(FRESH) else ""
    rest = name.removeprefix(FRESH)
    is_place = rest.startswith(("/", ".", "~")) or rest.count("/") > 1 or Path(rest).exists()
    return fresh + (Path(rest).name if is_place else rest)
