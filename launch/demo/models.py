"""The models of the demo: found in folders, loaded, asked for tokens and for fillings of [MASK].

| in the folder | it is |
|---|---|
| ``malmoi.json`` | a saved fine-tuned model |
| ``config.json`` | a pretrained model; without a masked-LM head only its tokenizer is used |
| ``tokenizer.json`` or ``vocab.txt`` | a tokenizer |
| ``tokenizer/``, ``model/``, ``finetune/`` | a run: all of the above in it |

Finding needs no torch, so a wrong folder is reported at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from corpus.documents.atomic_files import read_json_object
from corpus.documents.errors import BadInput
from finetune.config import MODEL_INFO_NAME
from launch.errors import LaunchError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase as Tokenizer

    from finetune.saved_models.load import SavedModel

Kind = Literal["saved", "pretrained", "tokenizer"]
MASK = "[MASK]"
MAX_MASKS, CANDIDATES = 4, 5


def find_models(folders: Sequence[Path]) -> dict[Path, Kind]:
    """The tokenizers and models in the folders, in order; ``LaunchError`` for a folder without any."""
    models: dict[Path, Kind] = {}
    for folder in folders:
        saved = sorted(path.parent for path in folder.glob(f"finetune/*/*/seed-*/*/{MODEL_INFO_NAME}"))
        places = [folder] if _kind_of(folder) else [folder / "tokenizer", folder / "model", *saved]
        kinds = {path: kind for path in places if (kind := _kind_of(path))}
        if not kinds:
            what = "no tokenizer, no model and no run in this folder" if folder.exists() else "no such folder"
            raise LaunchError(f"{folder}: {what}; give a tokenizer, a model, or the folder of a run")
        models |= kinds
    return models


def _kind_of(path: Path) -> Kind | None:
    if (path / MODEL_INFO_NAME).is_file():
        return "saved"
    if (path / "config.json").is_file():
        return "pretrained"
    files = (path / "tokenizer.json", path / "vocab.txt", path)
    return "tokenizer" if any(file.is_file() and file.suffix in (".json", ".txt") for file in files) else None


def reads_a_sentence(saved: SavedModel) -> bool:
    """Whether the task of a model needs one sentence only; others are for ``malmoi predict``."""
    try:
        return saved.task.inference.parse("한 문장", "page") is not None
    except BadInput:
        return False


def load_masked_lm(path: Path, tokenizer: Tokenizer) -> Any | None:
    """A pretrained model; None without a trained masked-LM head, because a random one gives meaningless words."""
    from transformers import AutoModelForMaskedLM

    from finetune.encoder.loading import check_encoder, load_pretrained

    names = read_json_object(path / "config.json", "save the model again").get("architectures") or []
    has_head = (str(name).endswith(("ForMaskedLM", "ForPreTraining")) for name in names)
    if not any(has_head) or "ElectraForPreTraining" in names:  # which detects replaced tokens and fills no masks
        return None
    check_encoder(str(path))
    return load_pretrained(AutoModelForMaskedLM, str(path), tokenizer).eval()


def rules_of(tokenizer: Tokenizer) -> str:
    """The rules that decide where text is split, without tokens that a task added."""
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    return json.dumps([rules.get(part) for part in ("normalizer", "pre_tokenizer", "model")], sort_keys=True)


def tokenize(tokenizer: Tokenizer, text: str) -> list[tuple[str, str]]:
    """The tokens of a text with their kinds; an unknown token, or one of bytes or jamo, shows the text it replaces."""
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, places = encoded["input_ids"], encoded["offset_mapping"]
    special, tokens, last = set(tokenizer.all_special_ids), [], None
    for number, token, place in zip(ids, tokenizer.convert_ids_to_tokens(ids), places, strict=True):
        covered = "…" if place == last else text[slice(*place)].strip()
        kind = "continues" if token.startswith("##") else "starts a word"
        if number == tokenizer.unk_token_id:
            kind, token = "unknown", covered
        elif number in special:
            kind = "special"
        elif token.removeprefix("##").lstrip("▁Ġ") not in text:
            token = "##" * (kind == "continues") + covered
        tokens.append((token, kind))
        last = place
    return tokens


def fill_masks(model: Any, tokenizer: Tokenizer, text: str) -> list[list[tuple[str, float]]]:
    """The most likely tokens for each ``[MASK]``, with probabilities; ``BadInput`` if the text is too long."""
    import torch

    from finetune.encoder.loading import has_segments, most_tokens

    batch = tokenizer(text.replace(MASK, tokenizer.mask_token), return_tensors="pt")
    length, limit = batch["input_ids"].shape[1], most_tokens(model.config)
    if limit is not None and length > limit:
        raise BadInput(f"the text has {length} tokens; this model reads at most {limit}")
    if not has_segments(model.config):
        batch.pop("token_type_ids", None)
    places = (batch["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:MAX_MASKS, 0]
    with torch.inference_mode():
        logits_MV = model(**batch).logits[0, places].float()
    best = logits_MV.softmax(dim=-1).topk(CANDIDATES)
    return [
        list(zip(tokenizer.convert_ids_to_tokens(ids), shares, strict=True))
        for ids, shares in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
