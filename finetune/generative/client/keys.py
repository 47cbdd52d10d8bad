"""Hide API keys: files and messages show ``⟨key⟩`` in their place.

A server may repeat the key that it received ("Incorrect API key provided: …"), and an address may contain one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

KEY_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")
MIN_KEY_CHARS = 8  # a shorter value ("none", for servers without keys) is no secret and may be an ordinary word
HIDDEN = "⟨key⟩"


def find_keys(environment: Mapping[str, str]) -> list[str]:
    """Secret values, longest first: those of variables named like a key, and passwords and queries in addresses."""
    secrets = {value for name, value in environment.items() if KEY_NAME.search(name.upper())}
    for name, value in environment.items():
        if name.upper().endswith(("_URL", "_PROXY")) and "://" in value:
            secrets.update(_secrets_in(value))
    return sorted((value for value in secrets if len(value) >= MIN_KEY_CHARS), key=len, reverse=True)


def _secrets_in(address: str) -> list[str]:
    try:
        parts = urlsplit(address)
    except ValueError:
        return [address]
    return [part for part in (parts.password, parts.query) if part]


def hide_keys(text: str) -> str:
    """``text`` without the keys in the environment of this process."""
    for key in find_keys(os.environ):
        text = text.replace(key, HIDDEN)
    return text
