"""Every loader must encode alike; the vocabulary layout is that of the released KLUE vocabularies."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer, BertTokenizerFast, PreTrainedTokenizerFast

from corpus.documents import BadInput
from tokenizer.config import SPECIAL_TOKENS, TokenizerConfig
from tokenizer.export import build_tokenizer, build_vocabulary, export, read_vocabulary
from tokenizer.train import learn_pieces

UNITS = {"한국": 9, "##은": 7, "학교": 6, "##에": 5, "갔": 4, "##다": 4, "나": 3, "##는": 3, ".": 9, "漢": 2, "Ab": 2}
TEXTS = [
    "나는 한국은 학교에 갔다.",
    "漢한국 Ab ab [MASK] é 뷁",
    "  한국\u3000한국\x00 \u200b나는\n갔다 ",
    unicodedata.normalize("NFD", "한국"),
    "한" * 101,
    "",
]


def config(order: str = "bert") -> TokenizerConfig:
    return TokenizerConfig(vocab_size=200, unused=3, special_tokens=order)


@pytest.fixture
def vocabulary() -> list[str]:
    return build_vocabulary(learn_pieces(UNITS, 100, alphabet=50, min_frequency=2), config())


def exported(folder: Path, order: str) -> Path:
    pieces = learn_pieces(UNITS, 100, alphabet=50, min_frequency=2)
    export(build_vocabulary(pieces, config(order)), config(order), "# card\n", folder)
    return folder


@pytest.mark.parametrize("order", ["bert", "roberta"])
def test_every_loader_encodes_alike(tmp_path: Path, order: str) -> None:
    folder = exported(tmp_path, order)
    plain = Tokenizer.from_file(str(folder / "tokenizer.json"))
    loaded = [
        AutoTokenizer.from_pretrained(folder),
        BertTokenizerFast.from_pretrained(folder),
        PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json")),
    ]

    for text in TEXTS:
        for tokenizer in loaded:
            encoding = tokenizer(text, return_offsets_mapping=True)
            assert encoding["input_ids"] == plain.encode(text).ids, (type(tokenizer), text)
            assert encoding["offset_mapping"] == plain.encode(text).offsets, (type(tokenizer), text)
        for tokenizer in loaded:
            assert tokenizer(text, "한국")["input_ids"] == plain.encode(text, "한국").ids


@pytest.mark.parametrize("order", ["bert", "roberta"])
def test_special_tokens_stand_first_in_the_models_order(tmp_path: Path, order: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(exported(tmp_path, order))

    assert tuple(tokenizer.convert_ids_to_tokens(range(5))) == SPECIAL_TOKENS[order]
    assert tokenizer.convert_ids_to_tokens(tokenizer("나")["input_ids"]) == ["[CLS]", "나", "[SEP]"]
    assert (tokenizer.pad_token, tokenizer.mask_token, tokenizer.unk_token) == ("[PAD]", "[MASK]", "[UNK]")
    assert tokenizer.model_max_length == 512


def test_only_bert_gets_segments(tmp_path: Path) -> None:
    (tmp_path / "bert").mkdir()
    (tmp_path / "roberta").mkdir()
    bert = AutoTokenizer.from_pretrained(exported(tmp_path / "bert", "bert"))
    roberta = AutoTokenizer.from_pretrained(exported(tmp_path / "roberta", "roberta"))

    assert bert("나", "나")["token_type_ids"] == [0, 0, 0, 1, 1]
    assert list(roberta("나", "나")) == ["input_ids", "attention_mask"]


def test_hangul_survives_and_case_and_accents_are_kept(vocabulary: list[str]) -> None:
    tokenizer = build_tokenizer(vocabulary)

    assert tokenizer.encode("나는 학교에 갔다.").tokens[1:-1] == ["나", "##는", "학교", "##에", "갔", "##다", "."]
    assert tokenizer.encode("Ab ab").tokens[1:-1] == ["Ab", "[UNK]"]
    assert tokenizer.encode("漢한국").tokens[1:-1] == ["漢", "한국"]


def test_files_hold_the_vocabulary_in_order(tmp_path: Path, vocabulary: list[str]) -> None:
    folder = exported(tmp_path, "bert")
    model = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]

    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt",
    ]  # fmt: skip
    assert read_vocabulary(folder / "vocab.txt") == vocabulary
    assert list(model["vocab"]) == vocabulary
    assert vocabulary[-3:] == ["[unused0]", "[unused1]", "[unused2]"]


def test_load_save_load_keeps_every_encoding(tmp_path: Path) -> None:
    first = AutoTokenizer.from_pretrained(exported(tmp_path, "roberta"))
    first.save_pretrained(tmp_path / "again")
    again = AutoTokenizer.from_pretrained(tmp_path / "again")

    assert [again(text)["input_ids"] for text in TEXTS] == [first(text)["input_ids"] for text in TEXTS]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        ("가\n나\n".encode(), r"no entry \[CLS\], \[MASK\]"),
        ("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n가\n가\n".encode(), "'가' stands there twice"),
    ],
)
def test_broken_vocabularies_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "vocab.txt").write_bytes(content)

    with pytest.raises(BadInput, match=message):
        read_vocabulary(tmp_path / "vocab.txt")
