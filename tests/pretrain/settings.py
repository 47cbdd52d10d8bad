"""Short settings for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pretrain.config import PretrainConfig

PLACES = {"engine": "engine.name"} | {
    key: f"{name}.{key}"
    for name in ("model", "rows", "optimizer", "engine", "watch", "saved")
    for key in type(getattr(PretrainConfig(), name)).model_fields
    if key != "name"
}


def in_sections(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by key, sorted into their sections.

    >>> in_sections({"steps": 7, "lr": 1e-3, "engine": "plain"})
    {'steps': 7, 'optimizer': {'lr': 0.001}, 'engine': {'name': 'plain'}}
    """
    found: dict[str, Any] = {}
    for key, value in fields.items():
        section, _, inner = PLACES.get(key, key).partition(".")
        if inner:
            found.setdefault(section, {})[inner] = value
        else:
            found[section] = value
    return found
