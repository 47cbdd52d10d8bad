"""Secrets for replacements: a random secret per run, or a key of the user from a file or an environment variable.

The random secret is deleted at the end of the run, so nobody can recompute the replacements. With a key, equal values
get equal replacements in all documents, and anyone with the key can recompute them: do not store it with the corpus.
Secrets are never in recipes, logs or errors. A run records only a slow hash of the key (scrypt, RFC 7914).
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from corpus.documents.errors import BadInput

SECRET_BYTES = 32
MIN_KEY_BYTES = 16
_SALT = b"malmoi key fingerprint"
_COST, _BLOCK, _FINGERPRINT_BYTES = 2**14, 8, 16  # 16 MiB and about 50 ms a guess


def random_secret() -> bytes:
    """A random secret; replacements cannot be recomputed once it is deleted."""
    return os.urandom(SECRET_BYTES)


def seeded_secret(seed: int) -> bytes:
    """A secret derived from a seed; anyone who knows the seed can guess and verify original values."""
    return hashlib.blake2b(b"malmoi seed %d" % seed, digest_size=SECRET_BYTES).digest()


def load_or_create_secret(path: Path) -> bytes:
    """Read the secret in ``path``, or create a random one that only its owner can read.

    The file is created atomically, so a killed run resumes with its own secret.
    """
    if not path.is_file():
        scratch = path.with_name(path.name + ".partial")
        scratch.unlink(missing_ok=True)
        with os.fdopen(os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(random_secret())
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    return path.read_bytes()


def read_key(file: Path | None, variable: str | None) -> bytes | None:
    """The key in ``file`` or in the environment variable ``variable``; None if neither is given.

    White space around the key is removed, such as a final line end.

    Raises:
        BadInput: both are given, the file or variable is missing, other users may access the file, or the key has fewer
            than 16 bytes. The message never contains the key.
    """
    if file and variable:
        raise BadInput(f"two keys: file {file} and environment variable {variable}; use only one of them")
    if file:
        place = f"key file {file}"
        try:
            _refuse_open_file(file)
            key = file.read_bytes().strip()
        except OSError as error:
            raise BadInput(f"{place} cannot be read: {error.strerror}; create a file with a secret key") from None
    elif variable:
        place = f"environment variable {variable}"
        if variable not in os.environ:
            raise BadInput(f"{place} is not set; set it to a secret of at least {MIN_KEY_BYTES} bytes")
        key = os.environb[variable.encode()].strip()
    else:
        return None
    if len(key) < MIN_KEY_BYTES:
        raise BadInput(
            f"{place} has {len(key)} bytes, expected at least {MIN_KEY_BYTES}; create a key with: openssl rand -hex 32"
        )
    return key


def _refuse_open_file(file: Path) -> None:
    mode = stat.S_IMODE(file.stat().st_mode)
    if file.is_file() and mode & 0o077:
        raise BadInput(
            f"key file {file}: other users may access it (mode {mode:03o}); run: chmod 600 {file}. If the file system "
            "has no permissions, use an environment variable for the key"
        )


def key_fingerprint(key: bytes) -> str:
    """32 hexadecimal digits that are equal for equal keys and do not reveal the key."""
    return hashlib.scrypt(key, salt=_SALT, n=_COST, r=_BLOCK, p=1, dklen=_FINGERPRINT_BYTES).hex()
