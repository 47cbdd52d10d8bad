"""Keys of servers stand in the environment alone: what is written or shown has ``⟨key⟩`` in their place.

A server may answer with the key that it was sent ("Incorrect API key provided: …"), and an address may hold one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

NAMES_A_KEY = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")
SHORTEST = 8  # characters; a shorter value ("none", for servers without keys) is no secret, and may be a word
HIDDEN = "⟨key⟩"


def keys_in(environment: Mapping[str, str]) -> list[str]:
    """Values that must not be seen, longest first: those of variables named like a key, and what addresses hold as
    user, password or query."""
    found = {value for name, value in environment.items() if NAMES_A_KEY.search(name.upper())}
    for name, value in environment.items():
        if name.upper().endswith(("_URL", "_PROXY")) and "://" in value:
            found.update(_held(value))
    return sorted((value for value in found if len(value) >= SHORTEST), key=len, reverse=True)


def _held(address: str) -> list[str]:
    try:
        parts = urlsplit(address)
    except ValueError:
        return [address]
    return [part for part in (parts.password, parts.query) if part]


def hide_keys(text: str) -> str:
    """``text`` without any key of this process's environment."""
    for key in keys_in(os.environ):
        text = text.replace(key, HIDDEN)
    return text
