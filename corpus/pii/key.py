"""The secrets of replacement: a run's own, thrown away with it, or a key from a file or an environment variable.

Without a key a run draws its secret at random and keeps it until it ends, so that nobody can recompute afterwards which
value became which. With a key a value has the same replacement in all documents, so whoever holds the key can
recompute it: keep it apart from the corpus. Secrets are never in a recipe, a log or an error. What a run records of a
key is a slow hash (scrypt, RFC 7914), for comparing only.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from pathlib import Path

from corpus.documents.errors import BadInput

log = logging.getLogger(__name__)

SECRET_BYTES = 32
MIN_KEY_BYTES = 16
_SALT = b"malmoi key fingerprint"
_COST, _BLOCK, _FINGERPRINT_BYTES = 2**14, 8, 16  # 16 MiB and about 50 ms a guess


def random_secret() -> bytes:
    """A secret that nobody knows: replacements drawn with it cannot be recomputed once it is gone."""
    return os.urandom(SECRET_BYTES)


def seeded_secret(seed: int) -> bytes:
    """The same secret for the same seed, for tests and demonstrations: anyone who knows the seed can test guesses."""
    return hashlib.blake2b(b"malmoi seed %d" % seed, digest_size=SECRET_BYTES).digest()


def kept_secret(path: Path) -> bytes:
    """The secret in ``path``; a random one is put there first where there is none, readable by its owner only.

    It appears whole or not at all, so a run that was killed goes on with its own secret.
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
    """The key in ``file`` or in the environment variable named ``variable``; None if neither is given.

    White space around the key is left out, so that a last line end does not matter.

    Raises:
        BadInput: both are given, the file or the variable is missing, others than its owner may use the file, or the
            key is shorter than 16 bytes. The key is never part of the message.
    """
    if file and variable:
        raise BadInput(f"the key stands in the file {file} and in the variable {variable}; give one of them")
    if file:
        place = f"key file {file}"
        try:
            _refuse_open_file(file)
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


def _refuse_open_file(file: Path) -> None:
    if os.name == "nt":
        log.warning("who may read the key file %s is not known on this system; see to it yourself", file)
        return
    mode = stat.S_IMODE(file.stat().st_mode)
    if file.is_file() and mode & 0o077:
        raise BadInput(
            f"key file {file}: others than its owner may use it (mode {mode:03o}); close it with: chmod 600 {file}, or "
            "where the file system keeps no modes give the key in an environment variable"
        )


def key_fingerprint(key: bytes) -> str:
    """32 hexadecimal digits that tell keys apart and do not give the key away; equal for equal keys everywhere."""
    return hashlib.scrypt(key, salt=_SALT, n=_COST, r=_BLOCK, p=1, dklen=_FINGERPRINT_BYTES).hex()
