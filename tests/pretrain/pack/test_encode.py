"""Encoding in batches against one eojeol at a time, for plain, portable and foreign tokenizers and for hostile text."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from pretrain.pack import encode as encode_module
from pretrain.pack.encode import EojeolEncoder
from pretrain.pack.store import piece_ids
from tests.pretrain.conftest import WORDS
from tests.pretrain.pack.kinds import (
    FOREIGN,
    KINDS,
    LESSONS,
    LETTERS,
    SYMBOLS,
    load,
    plain,
    save,
    save_angled,
)
from tokenizer.building.alphabet import ALWAYS_PIECES
from tokenizer.building.export import export
from tokenizer.config import TokenizerConfig

HOSTILE = (
    "\x00\x01\x07\x1c\x7f\x85\xad\u200b\u200d\u2028\u3000\ufeff\ue000\ufffd"  # controls, white space, joiners
    "\ufe0f\u0301\u302e\U0001d165\u3099\u11ab\u1112\u1161\u119e\ua960\ud7fbﾞﾊ😀👩🏽🇰𠮷"  # marks, jamo, astral
    "\u2126\u212b\u00c5\uf95c\u304c\u3099①♥♣"  # their NFD form, they themselves, or neither may be separate words
)
LOOKALIKES = ["[MASK]", "[UNK]는", "##에서", "[unused0]", "가" * 101]
DECOMPOSED = [unicodedata.normalize("NFD", "도서관"), "뷁\u0301", "e\u0301a", "か\u3099", "각\u11a8"]
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(
            [*WORDS[:7], "도서관에서", "노래했다.", "[MASK]", "[UNK]는", "##에서", "가" * 101, "[unused0]"]
        ),
        st.text(st.sampled_from(LETTERS), max_size=8),
        st.text(st.sampled_from(LETTERS + HOSTILE), max_size=6),
        st.sampled_from([*DECOMPOSED, "가람", "윤슬가람"]),
        st.text(max_size=4),
    ),
    max_size=8,
).flatmap(lambda words: st.sampled_from([" ", "  ", "\t", "\u3000", "\n", ""]).map(lambda blank: blank.join(words)))


def encode_slowly(backend: Tokenizer, sentence: str) -> list[int]:
    """One call of the library for each eojeol."""
    marked = []
    for eojeol in sentence.split():
        ids = backend.encode(eojeol, add_special_tokens=False).ids
        marked += [id_ | 1 << 15 if place == 0 else id_ for place, id_ in enumerate(ids)]
    return marked


def by_sentence(encoder: EojeolEncoder, sentences: list[str]) -> list[list[int]]:
    marked, ends = encoder.encode(sentences)
    return [part.tolist() for part in np.split(marked, ends)[: len(sentences)]]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield save(request.param(), tmp_path_factory.mktemp(request.param.__name__))


def test_pieces_equal_encoding_every_eojeol_by_itself(folder: Path) -> None:
    encoder, backend = EojeolEncoder(folder), load(folder)

    @settings(max_examples=100)
    @example([f"가{character}나 {character}다{character}" for character in LETTERS + HOSTILE + SYMBOLS])
    @given(st.lists(TEXTS, max_size=5))
    def agree(sentences: list[str]) -> None:
        encoder.forget()
        assert by_sentence(encoder, sentences) == [encode_slowly(backend, sentence) for sentence in sentences]

    agree()


def test_pieces_do_not_depend_on_what_was_encoded_before(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [f"윤슬은 {n}번 도서관에서[{n}] 뷁{n % 7} 漢字{n % 5}😀를 노래했다. …{n}" for n in range(60)]
    monkeypatch.setattr(encode_module, "MAX_CHARACTERS", 100)
    forgetful = EojeolEncoder(folder)
    one_by_one = [by_sentence(forgetful, [sentence])[0] for sentence in sentences]
    monkeypatch.undo()
    encoder = EojeolEncoder(folder)
    by_sentence(encoder, sentences[::-3])
    assert by_sentence(encoder, sentences) == one_by_one


@pytest.mark.parametrize(
    ("part", "times", "like"),
    [
        ("도서관에서 노래했다. ", 100_000, None),
        ("가", 1_000_000, "가" * 101),
        ("가.", 300_000, None),
        ("가\x00", 800_000, "가\x00" * 101),
    ],
    ids=["text", "one word", "full stops", "control characters"],
)
def test_a_line_of_three_megabytes_equals_the_library(part: str, times: int, like: str | None, tmp_path: Path) -> None:
    """Judged by what repeats, as the library takes ten seconds: all parts are alike, or all too long to be known."""
    folder = save(plain(), tmp_path)
    backend = AutoTokenizer.from_pretrained(folder).backend_tokenizer
    expected = backend.encode(like or part, add_special_tokens=False).ids * (1 if like else times)
    marked, ends = EojeolEncoder(folder).encode(["", part * times, ""])
    assert ends.tolist() == [0, len(marked), len(marked)]
    assert piece_ids(marked).tolist() == expected
    assert np.count_nonzero(marked >> 15) == len((part * times).split())


def test_no_text_gives_no_pieces(tmp_path: Path) -> None:
    encoder = EojeolEncoder(save(plain(), tmp_path))
    for sentences in ([], [""], [" \u3000", "\x00 \u200b"]):
        marked, ends = encoder.encode(sentences)
        assert (marked.tolist(), ends.tolist()) == ([], [0] * len(sentences))


@pytest.mark.parametrize("jamo_fallback", [False, True])
def test_real_text_equals_the_library_with_the_released_vocabulary(
    jamo_fallback: bool, shared: Callable[[str], Path], tmp_path: Path
) -> None:
    pieces = shared("data/klue/vocab/klue-bert-base-vocab.txt").read_text("utf-8").splitlines()
    rows = json.loads(shared("data/klue/official/klue-sts-v1.1/klue-sts-v1.1_dev.json").read_text("utf-8"))
    if jamo_fallback:
        pieces = list(
            dict.fromkeys([*(unicodedata.normalize("NFD", piece) for piece in pieces[:30_000]), *ALWAYS_PIECES])
        )
    export(pieces, TokenizerConfig(jamo_fallback=jamo_fallback), "", tmp_path)
    sentences = [row[f"sentence{n}"] for row in rows for n in (1, 2)]
    sentences += [
        sentence.replace(" ", symbol, 2) for symbol in f"{SYMBOLS}é\u2126♣\u119e\u3000" for sentence in sentences[:9]
    ]
    found = by_sentence(EojeolEncoder(tmp_path), sentences)
    backend = load(tmp_path)
    for sentence, marked in zip(sentences, found, strict=True):
        encoding = backend.encode(sentence, add_special_tokens=False)
        blanks = np.cumsum([character.isspace() for character in sentence])  # grows from one eojeol to the next
        starts = np.diff(blanks[[begin for begin, _ in encoding.offsets]], prepend=-1) > 0
        assert marked == (np.array(encoding.ids) | starts << 15).tolist()


@pytest.mark.parametrize("kind", FOREIGN)
def test_tokenizers_that_mark_blanks_give_the_pieces_of_the_whole_sentence(kind: str, tmp_path: Path) -> None:
    save_angled(FOREIGN[kind](), tmp_path)
    encoder, backend = EojeolEncoder(tmp_path), AutoTokenizer.from_pretrained(tmp_path).backend_tokenizer
    backend.encode_special_tokens = True
    assert encoder.special_ids == {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
    sentences = [*LESSONS, "뷁은 <mask> 12월 3일, 'tis 😀 e\u0301! 漢字…", "가람 가람 가람"]
    for sentence in sentences:
        marked, _ = encoder.encode([f"윤슬 {sentence}", sentence])
        whole = backend.encode(f"윤슬 {sentence}", add_special_tokens=False)
        first = sum(begin < 2 for begin, _ in whole.offsets)  # the pieces of 윤슬
        behind = piece_ids(marked)[-len(whole.ids) + first :].tolist()
        assert behind == whole.ids[first:]
        starts = np.flatnonzero(marked >> 15)
        assert len(starts) == 1 + 2 * len(sentence.split())
        pieces = [backend.id_to_token(int(id_)) for id_ in piece_ids(marked)[starts]]
        assert all(piece[0] in "Ġ▁" or piece == "<unk>" for piece in pieces)
