"""The secret of keyed replacement, from a file or an environment variable; never in a recipe, a log or an error.

With a key a value has the same replacement in all documents, so whoever holds the key can recompute which value became
which: keep it apart from the corpus. What a run records of it is a slow hash (scrypt, RFC 7914), for comparing only.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from corpus.documents import BadInput

MIN_KEY_BYTES = 16
_SALT = b"malmoi key fingerprint"
_COST, _BLOCK, _FINGERPRINT_BYTES = 2**14, 8, 16  # 16 MiB and about 50 ms a guess


def read_key(file: Path | None, variable: str | None) -> bytes | None:
    """The key in ``file`` or in the environment variable named ``variable``; None if neither is given.

    White space around the key is left out, so that a last line end does not matter.

    Raises:
        BadInput: both are given, the file or the variable is missing, or the key is shorter than 16 bytes. The key is
            never part of the message.
    """
    if file and variable:
        raise BadInput(f"the key stands in the file {file} and in the variable {variable}; give one of them")
    if file:
        place = f"key file {file}"
        try:
            key = file.read_bytes().strip()
        except OSError as error:
            raise BadInput(f"{place} cannot be read: {error.strerror}; give a file with a secret of your own") from None
    elif variable:
        place = f"environment variable {variable}"
        if variable not in os.environ:
            raise BadInput(f"{place} is not set; set it to a secret of at least {MIN_KEY_BYTES} bytes")
        key = os.environb[variable.encode()].strip()
    else:
        return None
    if len(key) < MIN_KEY_BYTES:
        raise BadInput(
            f"{place} holds {len(key)} bytes, a key needs at least {MIN_KEY_BYTES}; make one with: openssl rand -hex 32"
        )
    return key


def key_fingerprint(key: bytes) -> str:
    """32 hexadecimal digits that tell keys apart and do not give the key away; equal for equal keys everywhere."""
    return hashlib.scrypt(key, salt=_SALT, n=_COST, r=_BLOCK, p=1, dklen=_FINGERPRINT_BYTES).hex()
