"""The secret key: where it comes from, and that it stays secret."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from corpus.documents.errors import BadInput
from corpus.pii.key import kept_secret, key_fingerprint, random_secret, read_key, seeded_secret

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


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o777])
def test_a_key_file_that_others_may_use_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "key"
    file.write_text(SECRET)
    file.chmod(mode)
    with pytest.raises(BadInput, match=f"others than its owner may use it .mode {mode:o}.*chmod 600 {file}"):
        read_key(file, None)
    file.chmod(0o400)
    assert read_key(file, None) == SECRET.encode()


def test_a_kept_secret_is_random_its_owners_alone_and_stays(tmp_path: Path) -> None:
    (tmp_path / "one.partial").write_bytes(b"half of what a killed run")
    one, other = kept_secret(tmp_path / "one"), kept_secret(tmp_path / "other")
    assert len(one) == len(other) == 32 and one != other
    assert kept_secret(tmp_path / "one") == one
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "other"]


def test_secrets_of_seeds_repeat_and_random_ones_do_not() -> None:
    assert seeded_secret(1) == seeded_secret(1) != seeded_secret(2)
    assert random_secret() != random_secret()


def test_fingerprints_tell_keys_apart_and_hold_nothing_of_them() -> None:
    one, other = key_fingerprint(SECRET.encode()), key_fingerprint(SECRET.encode() + b"!")
    assert one != other
    assert one == key_fingerprint(SECRET.encode())
    assert len(one) == 32 and SECRET.encode().hex() not in one
