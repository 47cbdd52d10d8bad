"""What each folder on the command line is, found by looking into it, and what the page asks of a loaded one.

| in the folder | it is |
|---|---|
| ``malmoi.json`` | a kept fine-tuned model |
| ``config.json`` | a pretrained model; without a head that fills masks, its tokenizer counts |
| ``tokenizer.json`` or ``vocab.txt`` | a tokenizer |
| ``tokenizer/``, ``model/``, ``finetune/`` | a run: all of the above that is in it |

Looking needs no torch, so that a wrong folder is told at once. Every model brings its tokenizer; equal ones count once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from corpus.documents.atomic_files import read_json_object
from corpus.documents.errors import BadInput
from finetune.config import MODEL_INFO_NAME
from launch.demo.panels import Cut, PieceKind
from launch.errors import LaunchError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase as Tokenizer

    from finetune.saved_models.load import SavedModel
    from finetune.task import Task

log = logging.getLogger(__name__)
Kind = Literal["kept", "pretrained", "tokenizer"]
MASK = "[MASK]"
MOST_MASKS, CANDIDATES = 4, 5
NO_MASK_HEAD = "ElectraForPreTraining"  # tells replaced pieces from others, and fills none


@dataclass(frozen=True, slots=True)
class Found:
    """A folder, or a vocab.txt, and what it is."""

    path: Path
    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """All that the page shows, by names: those of the folders, as short as they can be told apart."""

    tokenizers: dict[str, Tokenizer] = field(default_factory=dict)
    pretrained: dict[str, tuple[Any, Tokenizer]] = field(default_factory=dict)  # with a head that fills masks
    kept: dict[str, SavedModel] = field(default_factory=dict)  # of tasks that read one sentence


def look(folders: Sequence[Path]) -> list[Found]:
    """What is in the folders, in the order given; ``LaunchError`` for a folder that is nothing of ours."""
    from tokenizer.measuring.compare import name_files

    found = dict(pair for folder in folders for pair in _look_into(folder))
    known_by = [path.parent if path.parent.name.startswith("seed-") else path for path in found]
    names = map(_telling, known_by, name_files(known_by, "model"))
    return [Found(path, kind, name) for (path, kind), name in zip(found.items(), names, strict=True)]


def _telling(path: Path, name: str) -> str:
    """Folders called so are in every run."""
    is_common = name in ("model", "tokenizer") or (name.startswith("seed-") and "/" not in name)
    return f"{path.resolve().parent.name}/{name}" if is_common else name


def _look_into(folder: Path) -> list[tuple[Path, Kind]]:
    if not folder.exists():
        raise LaunchError(f"{folder}: no such folder; give a tokenizer, a model, or the folder of a run")
    kind = _kind(folder)
    inside = [(folder, kind)] if kind else list(_of_run(folder))
    if not inside:
        raise LaunchError(
            f"{folder}: no model, no tokenizer and no run; expected {MODEL_INFO_NAME}, config.json, tokenizer.json or "
            "vocab.txt in it, or the folders of a run"
        )
    return inside


def _kind(path: Path) -> Kind | None:
    if path.is_file():
        return "tokenizer" if path.suffix == ".txt" else None
    if (path / MODEL_INFO_NAME).is_file():
        return "kept"
    if (path / "config.json").is_file():
        return "pretrained"
    return "tokenizer" if any((path / name).is_file() for name in ("tokenizer.json", "vocab.txt")) else None


def _of_run(run: Path) -> Iterator[tuple[Path, Kind]]:
    places = [run / "tokenizer", run / "model"]
    places += [path.parent for path in sorted(run.glob(f"finetune/*/*/seed-*/*/{MODEL_INFO_NAME}"))]
    for place in places:
        if place.is_dir() and (kind := _kind(place)):
            yield place, kind


def load(found: Sequence[Found]) -> Loaded:
    """Load everything once, with a line for each in the log."""
    loaded, seen = Loaded(), set()
    for item in found:
        tokenizer, what = _LOADERS[item.kind](item, loaded)
        if (rules := _rules(tokenizer)) not in seen:
            loaded.tokenizers[item.name] = tokenizer
        seen.add(rules)
        log.info("%s: %s, %s entries", item.name, what, f"{len(tokenizer):,}")
    return loaded


def _load_tokenizer(item: Found, loaded: Loaded) -> tuple[Tokenizer, str]:
    from finetune.encoder.loading import load_tokenizer

    return load_tokenizer(str(item.path)), "a tokenizer"


def _load_pretrained(item: Found, loaded: Loaded) -> tuple[Tokenizer, str]:
    """With its head, where it has one that fills masks; a head drawn at random would give words that look learnt."""
    tokenizer, _ = _load_tokenizer(item, loaded)
    if not _fills_masks(item.path):
        return tokenizer, "the tokenizer of a model without a head that fills masks"
    from transformers import AutoModelForMaskedLM

    from finetune.encoder.loading import check_encoder, load_pretrained

    check_encoder(str(item.path))
    loaded.pretrained[item.name] = (load_pretrained(AutoModelForMaskedLM, str(item.path), tokenizer).eval(), tokenizer)
    return tokenizer, "a pretrained model"


def _fills_masks(folder: Path) -> bool:
    names = read_json_object(folder / "config.json", "save the model again").get("architectures") or []
    return any(str(name).endswith(("ForMaskedLM", "ForPreTraining")) and name != NO_MASK_HEAD for name in names)


def _load_kept(item: Found, loaded: Loaded) -> tuple[Tokenizer, str]:
    """Where its task wants more than one sentence, its tokenizer is shown alone."""
    from finetune.saved_models.load import load_model

    kept = load_model(item.path, "cpu")
    if not _reads_a_sentence(kept.task):
        return kept.tokenizer, f"a kept model of {kept.task.name}, which wants more than a sentence: `malmoi predict`"
    loaded.kept[item.name] = kept
    return kept.tokenizer, f"a kept model of {kept.task.name}"


def _reads_a_sentence(task: Task) -> bool:
    try:
        return task.inference.parse("한 문장", "page") is not None
    except BadInput:
        return False


_LOADERS = {"tokenizer": _load_tokenizer, "pretrained": _load_pretrained, "kept": _load_kept}


def _rules(tokenizer: Tokenizer) -> str:
    """All that decides where text is cut; tokens that a task added are left out."""
    whole = json.loads(tokenizer.backend_tokenizer.to_str())
    return json.dumps([whole.get(part) for part in ("normalizer", "pre_tokenizer", "model")], sort_keys=True)


def cut(name: str, tokenizer: Tokenizer, text: str) -> Cut:
    """The text in pieces; an unknown piece shows the text it stands for, as does one in bytes or jamo."""
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, places = encoded["input_ids"], encoded["offset_mapping"]
    special, pieces = set(tokenizer.all_special_ids), []
    last = None
    for number, token, place in zip(ids, tokenizer.convert_ids_to_tokens(ids), places, strict=True):
        under = "…" if place == last else text[slice(*place)].strip()
        kind: PieceKind = "continues" if token.startswith("##") else "begins"
        if number == tokenizer.unk_token_id:
            kind, token = "unknown", under
        elif number in special:
            kind = "special"
        elif token.removeprefix("##").lstrip("▁Ġ") not in text:
            token = "##" * (kind == "continues") + under
        pieces.append((token, kind))
        last = place
    return Cut(name, len(tokenizer), pieces)


def fill(model: Any, tokenizer: Tokenizer, text: str) -> list[list[tuple[str, float]]]:
    """The likeliest pieces for each ``[MASK]`` of the text, with probabilities.

    Raises:
        LaunchError: the text has more pieces than the model reads.
    """
    import torch

    from finetune.encoder.loading import has_segments, most_tokens

    batch = tokenizer(text.replace(MASK, tokenizer.mask_token), return_tensors="pt")
    length, most = batch["input_ids"].shape[1], most_tokens(model.config)
    if most is not None and length > most:
        raise LaunchError(f"{length} pieces; this model reads {most}")
    if not has_segments(model.config):
        batch.pop("token_type_ids", None)
    places = (batch["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:MOST_MASKS, 0]
    with torch.inference_mode():
        logits_MV = model(**batch).logits[0, places].float()
    best = logits_MV.softmax(dim=-1).topk(CANDIDATES)
    return [
        list(zip(tokenizer.convert_ids_to_tokens(ids), shares, strict=True))
        for ids, shares in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
