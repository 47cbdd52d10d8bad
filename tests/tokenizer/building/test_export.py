"""Every loader must encode alike, with jamo fallback or without; the layout is that of KLUE's released vocabularies."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForTokenClassification,
    BertTokenizerFast,
    PreTrainedTokenizerFast,
    TokenClassificationPipeline,
)
from transformers.modeling_outputs import TokenClassifierOutput

from corpus.documents.errors import BadInput
from tokenizer.building.alphabet import ALWAYS_PIECES
from tokenizer.building.export import build_tokenizer, build_vocabulary, export, read_vocabulary
from tokenizer.config import SPECIAL_TOKENS, TokenizerConfig
from tokenizer.words import decompose

SYLLABLE_PIECES = [piece for char in "한국은에갔다나는학교" for piece in (char, f"##{char}")]
LEARNT = ["한국", "학교", ".", "漢", "Ab", *SYLLABLE_PIECES]
HARDENED = [*ALWAYS_PIECES, "漢", *map(decompose, ["한국", "학교", "##는", "##은", "Ab"])]
SPECIAL = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
TEXTS = [
    "나는 한국은 학교에 갔다.",
    "漢한국 Ab ab [MASK] é 뷁",
    "  한국\u3000한국\x00 \u200b나는\n갔다 ",
    unicodedata.normalize("NFD", "한국"),
    "한" * 101,
    "뷁은 한뷁 뷁\u0301 ᄏᄏᄏ ㅋㅋ 난",
    "한국😀학교♥\ufe0f ☔한국 ᄒᆞᆫ글 1\ufe0f\u20e3 が α½ 👨\u200d👩\u200d👧",
    "".join(map(chr, range(0xAC00, 0xD7A4, 500))),
    "",
]


def config(order: str = "bert", jamo_fallback: bool = False) -> TokenizerConfig:
    return TokenizerConfig(vocab_size=2_000, unused=3, special_tokens=order, jamo_fallback=jamo_fallback)


def entries(order: str = "bert", jamo_fallback: bool = False) -> list[str]:
    return build_vocabulary(HARDENED if jamo_fallback else LEARNT, config(order))


def exported(folder: Path, order: str, jamo_fallback: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    export(entries(order, jamo_fallback), config(order, jamo_fallback), "# card\n", folder)
    return folder


def assert_alike(tokenizers: list[PreTrainedTokenizerFast], reference: Tokenizer) -> None:
    for tokenizer in tokenizers:
        for text in TEXTS:
            encoding = tokenizer(text, return_offsets_mapping=True)
            assert encoding["input_ids"] == reference.encode(text).ids, (type(tokenizer), text)
            assert encoding["offset_mapping"] == reference.encode(text).offsets, (type(tokenizer), text)
        assert tokenizer(TEXTS[0], "한국")["input_ids"] == reference.encode(TEXTS[0], "한국").ids


@pytest.mark.parametrize("jamo_fallback", [False, True])
@pytest.mark.parametrize("order", ["bert", "roberta"])
def test_every_loader_encodes_alike(tmp_path: Path, order: str, jamo_fallback: bool) -> None:
    folder = exported(tmp_path / "root", order, jamo_fallback)
    loaded = [
        AutoTokenizer.from_pretrained(folder),
        BertTokenizerFast.from_pretrained(folder),
        PreTrainedTokenizerFast.from_pretrained(folder),
        PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json")),
    ]
    for number, tokenizer in enumerate(loaded[:3]):
        tokenizer.save_pretrained(tmp_path / f"again-{number}")
        loaded.append(AutoTokenizer.from_pretrained(tmp_path / f"again-{number}"))

    assert_alike(loaded, Tokenizer.from_file(str(folder / "tokenizer.json")))
    assert_alike(loaded, build_tokenizer(entries(order, jamo_fallback), jamo_fallback=jamo_fallback))


@pytest.mark.parametrize("order", ["bert", "roberta"])
def test_jamo_fallback_survives_next_to_the_config_of_a_model(tmp_path: Path, order: str) -> None:
    """A model's config.json names a model type, whose own tokenizer class would drop the rules."""
    folder = exported(tmp_path, order, jamo_fallback=True)
    (folder / "config.json").write_text(json.dumps({"model_type": order}), "utf-8")

    assert_alike([AutoTokenizer.from_pretrained(folder)], build_tokenizer(entries(order, True), jamo_fallback=True))


@pytest.mark.parametrize("jamo_fallback", [False, True])
@pytest.mark.parametrize("order", ["bert", "roberta"])
def test_special_tokens_come_first_in_the_models_order(tmp_path: Path, order: str, jamo_fallback: bool) -> None:
    tokenizer = AutoTokenizer.from_pretrained(exported(tmp_path, order, jamo_fallback))

    assert tuple(tokenizer.convert_ids_to_tokens(range(5))) == SPECIAL_TOKENS[order]
    assert tokenizer.convert_ids_to_tokens(tokenizer(".")["input_ids"]) == ["[CLS]", ".", "[SEP]"]
    assert (tokenizer.pad_token, tokenizer.mask_token, tokenizer.unk_token) == ("[PAD]", "[MASK]", "[UNK]")
    assert tokenizer.model_max_length == 512


def test_a_plain_folder_works_in_code_that_compares_pieces_with_text(tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(exported(tmp_path, "bert"))
    text = "나는 학교에 갔다"

    assert tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True) == text
    assert tokenizer.convert_tokens_to_ids("학교") == entries().index("학교")
    tokenizer.add_tokens(["학교"])
    assert tokenizer.convert_tokens_to_ids("학교") == entries().index("학교")  # no new id


@pytest.mark.parametrize(("jamo_fallback", "joined"), [(False, "나는"), (True, "나는 학교에")])
def test_the_stock_pipeline_finds_entities_at_words_only_without_jamo(
    tmp_path: Path, jamo_fallback: bool, joined: str
) -> None:
    """The card of a vocabulary with jamo_fallback warns of this: the pipeline compares the length of piece and text."""
    tokenizer = AutoTokenizer.from_pretrained(exported(tmp_path, "bert", jamo_fallback))
    labels = {0: "O", 1: "B-PS"}
    settings = BertConfig(
        vocab_size=2_000,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=8,
        id2label=labels,
    )
    model = BertForTokenClassification(settings).eval()
    length = len(tokenizer("나는 학교에 갔다")["input_ids"])
    logits = torch.tensor([[[9.0, 0.0]] * length])
    logits[0, 1] = torch.tensor([0.0, 9.0])  # the first piece after [CLS] begins an entity
    model.forward = lambda **inputs: TokenClassifierOutput(logits=logits)

    found = TokenClassificationPipeline(model=model, tokenizer=tokenizer, aggregation_strategy="first")(
        "나는 학교에 갔다"
    )

    assert [row["end"] - row["start"] for row in found] == [len(joined)]


@pytest.mark.parametrize("jamo_fallback", [False, True])
def test_only_bert_gets_segments(tmp_path: Path, jamo_fallback: bool) -> None:
    bert = AutoTokenizer.from_pretrained(exported(tmp_path / "bert", "bert", jamo_fallback))
    roberta = AutoTokenizer.from_pretrained(exported(tmp_path / "roberta", "roberta", jamo_fallback))

    assert bert(".", ".")["token_type_ids"] == [0, 0, 0, 1, 1]
    assert list(roberta(".", ".")) == ["input_ids", "attention_mask"]


def test_hangul_survives_and_case_and_accents_are_kept() -> None:
    tokenizer = build_tokenizer([*SPECIAL.split(), *LEARNT])

    assert tokenizer.encode("나는 학교에 갔다.").tokens[1:-1] == ["나", "##는", "학교", "##에", "갔", "##다", "."]
    assert tokenizer.encode("Ab ab Áb").tokens[1:-1] == ["Ab", "[UNK]", "[UNK]"]
    assert tokenizer.encode("漢한국").tokens[1:-1] == ["漢", "한국"]


@pytest.mark.parametrize("jamo_fallback", [False, True])
def test_files_hold_the_vocabulary_in_order(tmp_path: Path, jamo_fallback: bool) -> None:
    folder = exported(tmp_path, "bert", jamo_fallback)
    model = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]

    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == [
        "README.md", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt",
    ]  # fmt: skip
    assert read_vocabulary(folder / "vocab.txt") == list(model["vocab"]) == entries(jamo_fallback=jamo_fallback)
    assert entries()[-3:] == ["[unused0]", "[unused1]", "[unused2]"]


def test_exporting_again_writes_the_same_bytes(tmp_path: Path) -> None:
    first, second = (exported(tmp_path / name, "bert", jamo_fallback=True) for name in ("first", "second"))
    exported(second, "bert", jamo_fallback=True)

    names = [path.relative_to(first) for path in first.rglob("*") if path.is_file()]
    assert len(names) == 5
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names)


def test_a_vocabulary_without_jamo_cannot_have_jamo_fallback(tmp_path: Path) -> None:
    vocabulary = [piece for piece in entries(jamo_fallback=True) if piece != "##ᅰ"]

    with pytest.raises(
        BadInput, match=r"no piece for 1 letters, the first is '##ᅰ'.*tokenizer\.jamo_fallback needs all jamo"
    ):
        export(vocabulary, config(jamo_fallback=True), "# card\n", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        ("가\n나\n".encode(), r"no entry \[CLS\], \[MASK\]"),
        (b"", r"no entry \[CLS\], \[MASK\]"),
        (f"{SPECIAL}가\n나\n가\n".encode(), "duplicate entry '가' in lines 6 and 8"),
        (f"{SPECIAL}가\n\n나\n".encode(), "line 7 is empty"),
        (f"\n{SPECIAL}가\n".encode(), "line 1 is empty"),
    ],
)
def test_broken_vocabularies_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "vocab.txt").write_bytes(content)

    with pytest.raises(BadInput, match=message):
        read_vocabulary(tmp_path / "vocab.txt")


@pytest.mark.parametrize(
    "text",
    [
        f"{SPECIAL}가\n나",
        f"{SPECIAL}가\n나\n\n\r\n",
        f"\ufeff{SPECIAL}가\n나\n",
        f"{SPECIAL}가\n나\n".replace("\n", "\r\n"),
    ],
    ids=["no last line break", "blank lines at the end", "byte order mark", "CR LF"],
)
def test_other_editors_files_are_read_right(tmp_path: Path, text: str) -> None:
    (tmp_path / "vocab.txt").write_bytes(text.encode())

    assert read_vocabulary(tmp_path / "vocab.txt") == [*SPECIAL.split(), "가", "나"]


def test_only_line_feeds_end_an_entry(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes(f"{SPECIAL}가\u2028\n\x85\n나\rb\n".encode())

    assert read_vocabulary(tmp_path / "vocab.txt")[5:] == ["가\u2028", "\x85", "나\rb"]
