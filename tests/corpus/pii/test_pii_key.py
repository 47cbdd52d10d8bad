"""The secret key: where it comes from, and that it stays secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.documents import BadInput
from corpus.pii.key import key_fingerprint, read_key

SECRET = "sesame-open-sesame"


def test_a_key_comes_from_a_file_or_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    file.write_text(f"{SECRET}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PII_KEY", SECRET)
    assert read_key(file, None) == read_key(None, "PII_KEY") == SECRET.encode()
    assert read_key(None, None) is None


def test_a_key_that_cannot_be_used_is_an_error_without_the_key(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    short = tmp_path / "short"
    short.write_text("fifteen-bytes-k")
    short.chmod(0o600)
    monkeypatch.setenv("PII_KEY", SECRET)
    monkeypatch.delenv("NO_KEY", raising=False)
    for file, variable, words in (
        (short, None, "holds 15 bytes"),
        (tmp_path / "absent", None, "cannot be read"),
        (tmp_path, None, "cannot be read"),
        (None, "NO_KEY", "is not set"),
        (short, "PII_KEY", "give one of them"),
    ):
        with pytest.raises(BadInput, match=words) as caught:
            read_key(file, variable)
        assert "fifteen" not in str(caught.value) and SECRET not in str(caught.value)
    assert capsys.readouterr().out == caplog.text == ""


def test_fingerprints_tell_keys_apart_and_hold_nothing_of_them() -> None:
    one, other = key_fingerprint(SECRET.encode()), key_fingerprint(SECRET.encode() + b"!")
    assert one != other
    assert one == key_fingerprint(SECRET.encode())
    assert len(one) == 32 and SECRET.encode().hex() not in one
