"""A longer tokenizer folder: old ids and old text as they were, all readers alike, the same bytes always."""

from __future__ import annotations

import json
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, models
from transformers import AutoTokenizer, BertTokenizer

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document
from tests.pretrain.conftest import SPECIAL_PIECES
from tokenizer.extend import extend_as, extend_vocabulary, read_base, summarize
from tokenizer.measuring.encoder import load_tokenizer
from tokenizer.repository import check_repository

MakeCorpus = Callable[..., Path]
SENTENCES = ("갑상선암은 천천히 자란다.", "갑상선 검사에서 결절이 보였다고 한다.", "KRAS 변이는 갑상선암에서 드물다.")
OTHER = ("도서관에서 책을 읽었다.", "시장ㆍ군수는 말했다 [MASK] 뷁 漢字", "")
WORDS = ("도서관", "검사", "##에서", "##었다")


def write_base(folder: Path, *, form: str = "NFC", **rules: bool) -> Path:
    """A BertTokenizer of single characters and a few words, saved as transformers saves it, with vocab.txt."""
    text = unicodedata.normalize(form, " ".join((*SENTENCES, *OTHER)))
    text = text.lower() if rules.get("do_lower_case") else text
    characters = sorted(set(text) - {" "})
    words = [unicodedata.normalize(form, word) for word in WORDS]
    pieces = dict.fromkeys([*SPECIAL_PIECES, *words, *characters, *(f"##{c}" for c in characters), "[unused0]"])
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    rules = {"do_lower_case": False, "strip_accents": False} | rules
    BertTokenizer(vocab=str(folder / "vocab.txt"), model_max_length=64, **rules).save_pretrained(folder)
    return folder


@pytest.fixture
def corpus(make_corpus: MakeCorpus) -> Path:
    return make_corpus([Document(f"{n}", "의학", SENTENCES) for n in range(8)], per_shard=3)


def extend(base: Path, corpus: Path, out: Path, size: int = 12, **settings: int) -> dict:
    out.mkdir()
    return extend_vocabulary(base, corpus, out, size, **settings)


def entries(folder: Path) -> list[str]:
    return (folder / "vocab.txt").read_text("utf-8").splitlines()


def test_old_ids_stay_and_every_reader_gives_the_same_ids(tmp_path: Path, corpus: Path) -> None:
    base, out, bare = write_base(tmp_path / "base"), tmp_path / "out", tmp_path / "bare"
    found = extend(base, corpus, out)
    added = [piece["piece"] for piece in found["pieces"]]
    assert entries(out) == entries(base) + added and "갑상선" in added and "KRAS" in added
    assert [piece["id"] for piece in found["pieces"]] == list(range(len(entries(base)), len(entries(out))))
    bare.mkdir()
    for name in ("vocab.txt", "tokenizer_config.json"):
        shutil.copyfile(out / name, bare / name)
    readers = [kind.from_pretrained(folder) for kind in (AutoTokenizer, BertTokenizer) for folder in (out, bare)]
    reference, old = Tokenizer.from_file(str(out / "tokenizer.json")), AutoTokenizer.from_pretrained(base)
    for text in (*SENTENCES, *OTHER):
        assert all(reader(text).input_ids == reference.encode(text).ids for reader in readers)
    assert all(reference.encode(text).ids == old(text).input_ids for text in OTHER)
    assert reference.encode("갑상선").tokens == ["[CLS]", "갑상선", "[SEP]"]
    assert (out / "tokenizer_config.json").read_bytes() == (base / "tokenizer_config.json").read_bytes()
    assert {path.name for path in out.iterdir()} == {
        "README.md", "extension.json", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json",
        "vocab.txt",
    }  # fmt: skip


def test_the_folder_can_be_published(tmp_path: Path, corpus: Path) -> None:
    extend(write_base(tmp_path / "base"), corpus, tmp_path / "out")
    assert "extension.json" not in check_repository(tmp_path / "out")
    assert "words are encoded differently" in (tmp_path / "out" / "README.md").read_text("utf-8")


def test_an_extended_folder_serves_every_copy_of_its_base(tmp_path: Path, corpus: Path) -> None:
    base, out, again = write_base(tmp_path / "base"), tmp_path / "out", tmp_path / "again"
    found = extend(base, corpus, out)
    assert extend_as(out, base, again) == found
    assert {path.name: path.read_bytes() for path in again.iterdir()} == {
        path.name: path.read_bytes() for path in out.iterdir()
    }
    with pytest.raises(BadInput, match="extends another vocabulary"):
        extend_as(out, write_base(tmp_path / "lower", do_lower_case=True), tmp_path / "wrong")
    with pytest.raises(BadInput, match=r"extension\.json: file not found"):
        extend_as(base, base, tmp_path / "wrong")
    (out / "extension.json").write_text(json.dumps({"base_sha256": found["base_sha256"], "pieces": [1]}), "utf-8")
    with pytest.raises(BadInput, match="not written by `malmoi tokenizer extend`"):
        extend_as(out, base, tmp_path / "wrong")


def test_figures_are_those_of_the_text(tmp_path: Path, corpus: Path) -> None:
    base, out = write_base(tmp_path / "base"), tmp_path / "out"
    found = extend(base, corpus, out)
    old, new = (AutoTokenizer.from_pretrained(folder) for folder in (base, out))
    eojeols = [word for sentence in SENTENCES for word in sentence.split()] * 8
    before, after = ([tokenizer.tokenize(word) for word in eojeols] for tokenizer in (old, new))
    text = found["text"]
    assert text["eojeols"] == len(eojeols) and text["sources"] == {"의학": 8}
    assert text["pieces_before"] == sum(map(len, before)) and text["pieces_after"] == sum(map(len, after))
    assert text["changed"] == sum(a != b for a, b in zip(before, after, strict=True))
    assert text["unknown_before"] == text["unknown_after"] == 0
    assert sum(piece["saved"] for piece in found["pieces"]) == text["pieces_before"] - text["pieces_after"]
    eojeols_changed = sum(a != b for a, b in zip(before, after, strict=True))
    assert summarize(found) == {
        "vocab_size": len(entries(out)), "added": len(entries(out)) - len(entries(base)), "unknown_ratio": 0.0,
        "fertility_before": pytest.approx(sum(map(len, before)) / len(eojeols)),
        "fertility": pytest.approx(sum(map(len, after)) / len(eojeols)),
        "changed_eojeols": pytest.approx(eojeols_changed / len(eojeols)),
    }  # fmt: skip
    card = (out / "README.md").read_text("utf-8")
    for name, size in (("before", len(entries(base))), ("after", len(entries(out)))):
        assert f"| {name} | {size:,} | {text[f'pieces_{name}'] / len(eojeols):.4f} | 0.0000 |" in card


def test_a_folder_without_tokenizer_json_is_read_as_transformers_loads_it(tmp_path: Path, corpus: Path) -> None:
    base = write_base(tmp_path / "base", do_lower_case=True)
    expected = read_base(base)
    (base / "tokenizer.json").unlink()
    found = read_base(base)
    assert (found.entries, found.unknown) == (expected.entries, "[UNK]")
    assert found.tokenizer.encode("KRAS 변이").ids == expected.tokenizer.encode("KRAS 변이").ids
    (base / "tokenizer_config.json").write_text('{"tokenizer_class": 3}', "utf-8")
    with pytest.raises(BadInput, match="no tokenizer that transformers can load"):
        read_base(base)


@pytest.mark.parametrize("spare", [-1, 0, 1])
def test_pieces_that_the_text_cannot_fill_are_reported(
    tmp_path: Path, corpus: Path, caplog: pytest.LogCaptureFixture, spare: int
) -> None:
    base = write_base(tmp_path / "base")
    possible = len(extend(base, corpus, tmp_path / "all", 10_000)["pieces"])
    caplog.clear()
    found = extend(base, corpus, tmp_path / "out", possible + spare)
    assert len(found["pieces"]) == min(possible, possible + spare)
    assert (f"added only {possible} of {possible + 1} pieces" in caplog.text) == (spare > 0)


def test_the_same_bytes_for_any_workers_and_division(
    tmp_path: Path, make_corpus: MakeCorpus, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = write_base(tmp_path / "base")
    extend(base, corpus, tmp_path / "one")
    monkeypatch.setattr("tokenizer.building.count.SMALLEST_PORTION", 300)
    monkeypatch.setattr("tokenizer.building.count.PARTITION_BYTES", 300)
    documents = [Document(f"{n}", "의학", SENTENCES) for n in reversed(range(8))]
    extend(base, make_corpus(documents, per_shard=5, name="other"), tmp_path / "two", workers=2)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two


def test_added_tokens_of_the_base_keep_their_ids(tmp_path: Path, corpus: Path) -> None:
    base, out = write_base(tmp_path / "base"), tmp_path / "out"
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.add_tokens([AddedToken("<환자>"), AddedToken("😀", normalized=False)])
    tokenizer.save_pretrained(base)
    extend(base, corpus, out)
    new, reference = AutoTokenizer.from_pretrained(out), Tokenizer.from_file(str(out / "tokenizer.json"))
    text = "<환자>의 검사😀"
    assert new(text).input_ids == reference.encode(text).ids == tokenizer(text).input_ids
    assert new.convert_tokens_to_ids("<환자>") == len(entries(base)) == len(tokenizer) - 2
    assert entries(out)[: len(tokenizer)] == tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))


def test_pieces_are_written_as_the_base_writes_them(tmp_path: Path, corpus: Path) -> None:
    decomposed = write_base(tmp_path / "nfd", form="NFD", strip_accents=True)
    found = extend(decomposed, corpus, tmp_path / "out")
    assert unicodedata.normalize("NFD", "갑상선") in [piece["piece"] for piece in found["pieces"]]
    lower = write_base(tmp_path / "lower", do_lower_case=True)
    assert "kras" in [piece["piece"] for piece in extend(lower, corpus, tmp_path / "out2")["pieces"]]


def test_the_size_may_be_brought_to_a_multiple(tmp_path: Path, corpus: Path) -> None:
    base = write_base(tmp_path / "base")
    found = extend(base, corpus, tmp_path / "out", 1, multiple=8)
    assert len(entries(tmp_path / "out")) % 8 == 0 and 1 <= len(found["pieces"]) <= 8


def test_a_bare_vocabulary_keeps_its_case(tmp_path: Path, corpus: Path) -> None:
    base = tmp_path / "bare" / "vocab.txt"
    base.parent.mkdir()
    shutil.copyfile(write_base(tmp_path / "base") / "vocab.txt", base)
    extend(base, corpus, tmp_path / "out")
    assert AutoTokenizer.from_pretrained(tmp_path / "out").tokenize("KRAS") == ["KRAS"]
    assert json.loads((tmp_path / "out" / "tokenizer_config.json").read_text("utf-8")) == {
        "tokenizer_class": "BertTokenizer", "do_lower_case": False, "strip_accents": False,
        "tokenize_chinese_chars": True, "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
        "pad_token": "[PAD]", "mask_token": "[MASK]",
    }  # fmt: skip
    assert (tmp_path / "out" / "special_tokens_map.json").is_file()


def test_what_cannot_be_extended_is_refused(tmp_path: Path, make_corpus: MakeCorpus, corpus: Path) -> None:
    base, other = write_base(tmp_path / "base"), tmp_path / "unigram"
    other.mkdir()
    Tokenizer(models.Unigram([("<unk>", 0.0), ("▁가", -1.0)], unk_id=0)).save(str(other / "tokenizer.json"))
    with pytest.raises(BadInput, match="a Unigram tokenizer; only WordPiece with ## can be extended"):
        read_base(other)
    with pytest.raises(BadInput, match="no tokenizer here"):
        read_base(tmp_path)
    content = json.loads((base / "tokenizer.json").read_text("utf-8"))
    content["model"]["vocab"]["먼"] = 999
    (other / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    with pytest.raises(BadInput, match="its ids do not run from 0"):
        read_base(other)
    blank = make_corpus([Document("1", "의학", ("",))], name="blank")
    with pytest.raises(BadInput, match="no words in the text"):
        extend(base, blank, tmp_path / "out")
    with pytest.raises(BadInput, match="no piece would shorten this text"):
        extend(base, make_corpus([Document("1", "의학", ("도서관",))], name="known"), tmp_path / "out2")


def test_the_released_vocabulary_learns_a_domain(
    tmp_path: Path, make_corpus: MakeCorpus, shared: Callable[[str], Path]
) -> None:
    base = shared("data/klue/vocab/klue-bert-base-vocab.txt")
    text = "컴포넌트가 바뀌면 렌더링이 다시 시작됩니다. 렌더링은 컴포넌트마다 한 번입니다."
    corpus = make_corpus([Document(f"{n}", "의학", (text,)) for n in range(8)])
    found = extend(base, corpus, tmp_path / "out", 5)
    assert {"컴포넌트", "렌더링"} <= {piece["piece"] for piece in found["pieces"]}
    assert entries(tmp_path / "out")[:32_000] == base.read_text("utf-8").splitlines()
    old, new = load_tokenizer(base), load_tokenizer(tmp_path / "out")
    assert all(old.encode(sentence).ids == new.encode(sentence).ids for sentence in OTHER)
    assert len(new.encode(text).ids) < len(old.encode(text).ids)
