"""Four ways to hide personal data, replacement with a secret key, and where the key comes from."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.documents.errors import BadInput
from corpus.pii.detect import find_pii, find_pii_in_sentences
from corpus.pii.formats.table import TABLE
from corpus.pii.hide import MODES, Mode, PiiHider
from corpus.pii.key import key_fingerprint, load_or_create_secret, random_secret, read_key, seeded_secret

KEY = b"0123456789abcdef"
SECRET = seeded_secret(1)
PHONE, MAIL = "010-0123-4567", "hong@example.com"
TEXT = f"  안녕하세요.  문의 {PHONE}입니다.\n메일은 {MAIL}이다. 끝이다.\n"

PIECES = st.sampled_from(
    [f"{kind.context[0]} {kind.example}" for kind in TABLE]
    + [
        "오늘은 맑다.",
        " ",
        "\n",
        ". ",
        "은 ",
        "로 ",
        "-",
        "@",
        "02-",
        "-4567",
        ".com",
        "서울 강남구 윤슬로 12",
        "０１０－０１２３－４５６７",
    ]
)


def hidden(mode: Mode, text: str, key: bytes | None = None, document: str = "d") -> str:
    return PiiHider(mode, SECRET, key).hide(text, document)


def test_each_mode_hides_in_its_way() -> None:
    assert hidden("mask", TEXT) == "  안녕하세요.  문의 ***-****-****입니다.\n메일은 ****@*******.***이다. 끝이다.\n"
    assert hidden("tag", TEXT) == "  안녕하세요.  문의 [TEL]입니다.\n메일은 [EMAIL]이다. 끝이다.\n"
    assert hidden("drop", TEXT) == "  안녕하세요.  끝이다.\n"
    assert [span.type for span in find_pii(hidden("replace", TEXT))] == ["TEL", "EMAIL"]


def test_a_text_of_personal_sentences_alone_is_dropped_to_nothing() -> None:
    assert hidden("drop", f"전화 {PHONE}") == ""


@pytest.mark.parametrize("mode", MODES)
def test_text_without_personal_data_comes_back_as_it_is(mode: Mode) -> None:
    text = " 맑다.\n\n 10시에 만나자. "
    assert hidden(mode, text) == text
    assert PiiHider(mode).hide_in_sentences(["맑다."], "d")[:3] == (["맑다."], [[]], [[]])


def test_sentences_come_back_one_for_one() -> None:
    sentences = ["건강보험증 번호를 불러 주세요.", "23456789012예요.", "네."]
    for mode, second in (("mask", "***********예요."), ("tag", "[HEALTH]예요."), ("drop", None)):
        protected = PiiHider(mode, SECRET).hide_in_sentences(sentences, "d")  # type: ignore[arg-type]
        assert protected.sentences == [sentences[0], second, sentences[2]]
        assert [len(spans) for spans in protected.spans] == [0, 1, 0]


@settings(max_examples=150, deadline=None)
@given(pieces=st.lists(PIECES, max_size=8), mode=st.sampled_from(["mask", "tag", "drop"]))
def test_nothing_is_found_in_hidden_text(pieces: list[str], mode: Mode) -> None:
    text = "".join(pieces)
    assert find_pii(hidden(mode, text)) == []
    protected = PiiHider(mode).hide_in_sentences(pieces, "d")
    if mode != "drop":  # when a sentence is dropped, the text around it stays
        assert find_pii_in_sentences([sentence or "" for sentence in protected.sentences]) == [[] for _ in pieces]


@settings(max_examples=100, deadline=None)
@given(pieces=st.lists(PIECES, max_size=6))
def test_a_mask_keeps_length_and_separators(pieces: list[str]) -> None:
    text = "".join(pieces)
    masked = hidden("mask", text)
    assert len(masked) == len(text)
    assert all(new == old or (new == "*" and old.isalnum()) for old, new in zip(text, masked, strict=True))


def test_a_key_makes_a_value_alike_in_all_documents_and_seeds() -> None:
    plain = {PiiHider("replace", seeded_secret(seed)).hide(f"전화 {PHONE}", "a") for seed in (1, 2)}
    assert len(plain) == 2
    keyed = PiiHider("replace", SECRET, KEY).hide(f"전화 {PHONE}", "a")[3:]
    for seed, document in ((1, "b"), (2, "a"), (3, "c")):
        assert keyed in PiiHider("replace", seeded_secret(seed), KEY).hide(f"{MAIL}, 폰은 {PHONE}이고 {MAIL}", document)
    assert keyed != PiiHider("replace", SECRET, KEY + b"!").hide(f"전화 {PHONE}", "a")[3:]


def test_writings_of_one_number_share_a_replacement() -> None:
    plain, abroad = (hidden("replace", f"전화 {number}", KEY) for number in (PHONE, "+82-10-0123-4567"))
    assert plain[3:].replace("-", "")[1:] == abroad[3:].replace("-", "")[3:]


def test_addresses_that_differ_in_a_dot_stay_apart() -> None:
    assert hidden("replace", "메일 a.b@example.com", KEY) != hidden("replace", "메일 ab@example.com", KEY)


def test_the_key_is_not_in_the_repr() -> None:
    assert "0123456789abcdef" not in repr(PiiHider("replace", SECRET, KEY))


def test_full_width_numbers_are_replaced_in_full_width() -> None:
    new = hidden("replace", "전화 ０１０－０１２３－４５６７로")
    assert new.startswith("전화 ０１０－") and new.endswith("로") and new != "전화 ０１０－０１２３－４５６７로"
    assert hidden("mask", "전화 ０１０－０１２３－４５６７로") == "전화 ***－****－****로"


# --- the key

PASSPHRASE = "sesame-open-sesame"


def test_a_key_comes_from_a_file_or_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    file.write_text(f"{PASSPHRASE}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PII_KEY", PASSPHRASE)
    assert read_key(file, None) == read_key(None, "PII_KEY") == PASSPHRASE.encode()
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
    monkeypatch.setenv("PII_KEY", PASSPHRASE)
    monkeypatch.delenv("NO_KEY", raising=False)
    for file, variable, words in (
        (short, None, "has 15 bytes"),
        (tmp_path / "absent", None, "cannot be read"),
        (tmp_path, None, "cannot be read"),
        (None, "NO_KEY", "is not set"),
        (short, "PII_KEY", "use only one of them"),
    ):
        with pytest.raises(BadInput, match=words) as caught:
            read_key(file, variable)
        assert "fifteen" not in str(caught.value) and PASSPHRASE not in str(caught.value)
    assert capsys.readouterr().out == caplog.text == ""


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o777])
def test_a_key_file_that_others_may_use_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "key"
    file.write_text(PASSPHRASE)
    file.chmod(mode)
    with pytest.raises(BadInput, match=f"other users may access it .mode {mode:o}.*chmod 600 {file}"):
        read_key(file, None)
    file.chmod(0o400)
    assert read_key(file, None) == PASSPHRASE.encode()


def test_a_kept_secret_is_random_its_owners_alone_and_stays(tmp_path: Path) -> None:
    (tmp_path / "one.partial").write_bytes(b"half of what a killed run")
    one, other = load_or_create_secret(tmp_path / "one"), load_or_create_secret(tmp_path / "other")
    assert len(one) == len(other) == 32 and one != other
    assert load_or_create_secret(tmp_path / "one") == one
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "other"]


def test_secrets_of_seeds_repeat_and_random_ones_do_not() -> None:
    assert seeded_secret(1) == seeded_secret(1) != seeded_secret(2)
    assert random_secret() != random_secret()


def test_fingerprints_tell_keys_apart_and_hold_nothing_of_them() -> None:
    one, other = key_fingerprint(PASSPHRASE.encode()), key_fingerprint(PASSPHRASE.encode() + b"!")
    assert one != other
    assert one == key_fingerprint(PASSPHRASE.encode())
    assert len(one) == 32 and PASSPHRASE.encode().hex() not in one


def test_the_fingerprint_of_a_key_is_the_same_in_every_release() -> None:
    assert key_fingerprint(KEY) == "4f9ecf579aa29c39dbbc6e0e1a845481"  # runs that recorded it accept their key


def test_only_sentences_with_personal_data_are_dropped() -> None:
    kept = ["임진왜란은 1592년에 일어났다.", "골뱅이 @ 기호와 3.5점도 그대로 둔다."]
    found = PiiHider("drop", SECRET).hide_in_sentences([kept[0], f"문의는 {PHONE}로 주세요.", kept[1]], "d")
    assert found.sentences == [kept[0], None, kept[1]]
    assert [len(spans) for spans in found.spans] == [0, 1, 0]


@pytest.mark.parametrize("mode", MODES)
def test_replacements_of_an_earlier_call_stay_and_other_values_are_hidden(mode: Mode) -> None:
    earlier, new = "010-0234-5678", "010-0345-6789"
    sentences = [f"문의는 {earlier}로 주세요.", f"팩스는 {new}이다."]
    first, second = PiiHider(mode, SECRET).hide_in_sentences(sentences, "d", lambda value: value == earlier).sentences
    assert first == sentences[0]
    assert second is None or new not in second
