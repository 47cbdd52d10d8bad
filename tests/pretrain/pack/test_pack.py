"""The token store against encoding the text sentence by sentence, and its promises about bytes."""

from __future__ import annotations

import hashlib
import json
import shutil
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, read_documents, shard_paths, split_into_portions
from pretrain.config import PackConfig
from pretrain.pack import run as pack_module
from pretrain.pack.encode import EojeolEncoder
from pretrain.pack.run import PackedBatch, PackInputs
from pretrain.pack.run import run as pack
from pretrain.pack.store import open_store, piece_ids
from tests.pretrain.conftest import invented_documents, write_corpus, write_tokenizer
from tests.pretrain.pack.kinds import byte_level, save_angled

FILES = ("tokens.bin", "documents.idx", "sentences.idx", "sources.idx", "meta.json")


def encode_slowly(corpus: Path, tokenizer: Path, bit: int) -> tuple[list[int], list[int], list[int]]:
    """Marked tokens, document starts and sentence starts, by offsets in whole sentences."""
    backend = AutoTokenizer.from_pretrained(tokenizer).backend_tokenizer
    backend.encode_special_tokens = True
    tokens: list[int] = []
    document_starts, sentence_starts = [], []
    for shard in shard_paths(corpus / "documents"):
        for document in read_documents(shard):
            document_starts.append(len(tokens))
            for sentence in document.sentences:
                sentence_starts.append(len(tokens))
                encoding = backend.encode(sentence, add_special_tokens=False)
                for id_, (begin, _) in zip(encoding.ids, encoding.offsets, strict=True):
                    tokens.append(id_ | bit if begin == 0 or sentence[begin - 1].isspace() else id_)
            tokens.append(2)  # [SEP]
    return tokens, document_starts, sentence_starts


def test_store_equals_encoding_every_sentence_by_itself(made: Path) -> None:
    tokens, documents, sentences = encode_slowly(made / "corpus", made / "tokenizer", 1 << 15)
    assert (made / "tokens" / "tokens.bin").read_bytes() == np.array(tokens, "<u2").tobytes()
    store = open_store(made / "tokens", made / "tokenizer")
    assert store.documents.tolist() == [*documents, len(tokens)]
    assert store.sentences.tolist() == [*sentences, len(tokens)]
    assert sum(store.meta["sources"].values()) == store.meta["tokens"] == len(tokens)


def test_store_equals_slow_encoding_on_real_text_and_the_released_vocabulary(shared, tmp_path: Path) -> None:
    vocabulary = shared("data/klue/vocab/klue-bert-base-vocab.txt").read_text("utf-8").splitlines()
    text = shared("data/klue/official/klue-sts-v1.1/klue-sts-v1.1_dev.json").read_text("utf-8")
    documents = [Document(row["guid"], "sts", (row["sentence1"], row["sentence2"])) for row in json.loads(text)]
    write_corpus(tmp_path / "corpus", documents, shards=1)
    write_tokenizer(tmp_path / "tokenizer", [], extra=tuple(vocabulary[5:-500]))
    (tmp_path / "tokens").mkdir()
    counts = pack(PackConfig(), PackInputs(tmp_path / "corpus", tmp_path / "tokenizer"), tmp_path / "tokens")
    tokens, _, _ = encode_slowly(tmp_path / "corpus", tmp_path / "tokenizer", 1 << 15)
    assert (tmp_path / "tokens" / "tokens.bin").read_bytes() == np.array(tokens, "<u2").tobytes()
    words = sum(len(sentence.split()) for document in documents for sentence in document.sentences)
    assert counts["eojeols"] == words


def write_odd_corpus(folder: Path) -> None:
    """Five shards, some documents decomposed, with unknown and odd characters, or empty; sources in no order."""
    documents = []
    for number, document in enumerate(invented_documents(60)):
        sentences = (
            *document.sentences,
            f"뷁에서 [MASK]도 {number}\u200b번… 노래\x00했다",
            "\u3000",
            "漢字는 e\u0301다",
        )
        if number % 3 == 0:
            sentences = tuple(unicodedata.normalize("NFD", sentence) for sentence in sentences)
        source = ("수필", "가사", "일기", "기사")[number * 7 % 11 % 4]
        documents.append(Document(document.id, source, sentences if number % 11 else ()))
    write_corpus(folder, documents, shards=5)


@pytest.fixture(scope="module")
def odd(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with ``corpus`` and ``tokens`` of the odd corpus, packed by one process in one portion."""
    root = tmp_path_factory.mktemp("odd")
    write_odd_corpus(root / "corpus")
    (root / "tokens").mkdir()
    pack(PackConfig(), PackInputs(root / "corpus", made / "tokenizer"), root / "tokens")
    return root


def test_documents_keep_the_numbers_of_their_sources(made: Path, odd: Path) -> None:
    documents = [document for shard in shard_paths(odd / "corpus" / "documents") for document in read_documents(shard)]
    store = open_store(odd / "tokens", made / "tokenizer")
    assert store.source_names == ["가사", "기사", "수필", "일기"]
    assert [store.source_names[number] for number in store.sources] == [
        document.source for document in documents if document.sentences
    ]
    tokens = np.bincount(store.sources, weights=np.diff(store.documents)).tolist()
    assert store.meta["sources"] == dict(zip(store.source_names, tokens, strict=True))


@pytest.mark.parametrize(("workers", "portion_bytes"), [(2, 1), (1, 9_000)])
def test_portions_of_any_size_and_two_workers_write_the_same_bytes_and_leave_nothing_else(
    workers: int, portion_bytes: int, made: Path, odd: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(pack_module, "PORTION_BYTES", portion_bytes)
    assert len(split_into_portions(shard_paths(odd / "corpus" / "documents"), portion_bytes)) > 1
    pack(PackConfig(), PackInputs(odd / "corpus", made / "tokenizer"), tmp_path, workers=workers)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (odd / "tokens" / name).read_bytes()


def test_meta_holds_length_and_sha256_of_each_file(made: Path) -> None:
    meta = json.loads((made / "tokens" / "meta.json").read_text("utf-8"))
    for name in FILES[:-1]:
        content = (made / "tokens" / name).read_bytes()
        assert meta["files"].pop(name) == [len(content), hashlib.sha256(content).hexdigest()]
    assert not meta["files"]


def test_ids_beyond_the_vocabulary_are_not_packed(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_module.EojeolEncoder, "vocab_size", property(lambda self: 60, lambda *_: None), False)
    monkeypatch.setattr(pack_module, "read_pieces", lambda tokenizer: range(60))
    with pytest.raises(BadInput, match=r"unit-00000/tokens\.bin: token \d+ exceeds the vocabulary of 60 pieces"):
        pack(PackConfig(), PackInputs(made / "corpus", made / "tokenizer"), tmp_path)
    assert not (tmp_path / "meta.json").exists() and not (tmp_path / "tokens.bin").exists()


def test_more_sources_than_have_a_number_are_refused(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [Document(f"d{number}", f"책 {number}", ("윤슬",)) for number in range(257)]
    corpus = write_corpus(tmp_path / "corpus", documents, shards=1)
    (tmp_path / "tokens").mkdir()
    monkeypatch.setattr(pack_module, "SOURCE_TYPE", np.dtype("<u1"))
    with pytest.raises(BadInput, match="257 sources, but at most 256"):
        pack(PackConfig(), PackInputs(corpus, made / "tokenizer"), tmp_path / "tokens")


def test_a_tokenizer_without_vocabulary_file_is_packed_by_its_tokenizer_json(tmp_path: Path) -> None:
    documents = invented_documents(6)
    corpus = write_corpus(tmp_path / "corpus", documents, shards=1)
    folder = save_angled(byte_level(False), tmp_path / "tokenizer")
    assert not (folder / "vocab.txt").exists()
    (tmp_path / "tokens").mkdir()
    counts = pack(PackConfig(), PackInputs(corpus, folder), tmp_path / "tokens")
    store = open_store(tmp_path / "tokens", folder)
    backend = AutoTokenizer.from_pretrained(folder).backend_tokenizer
    text = " ".join(sentence for document in documents for sentence in document.sentences)
    ids = piece_ids(store.tokens)
    assert ids[ids != 2].tolist() == backend.encode(f" {text}", add_special_tokens=False).ids
    assert counts["unknown_pieces"] == 0 and counts["special_ids"]["sep"] == 2


def test_dying_between_batches_leaves_nothing_that_the_next_run_believes(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_module, "BATCH_CHARACTERS", 200)
    whole, done = pack_module.pack_batch, iter(range(7))

    def dying(encoder: EojeolEncoder, documents: Sequence[Document]) -> PackedBatch:
        if next(done, None) is None:
            raise KeyboardInterrupt
        return whole(encoder, documents)

    monkeypatch.setattr(pack_module, "pack_batch", dying)
    with pytest.raises(KeyboardInterrupt):
        pack(PackConfig(), PackInputs(made / "corpus", made / "tokenizer"), tmp_path)
    monkeypatch.setattr(pack_module, "pack_batch", whole)
    pack(PackConfig(), PackInputs(made / "corpus", made / "tokenizer"), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (made / "tokens" / name).read_bytes()


def test_another_tokenizer_in_the_same_folder_is_used(tmp_path: Path) -> None:
    documents = invented_documents(3)
    write_corpus(tmp_path / "corpus", documents, shards=1)
    stores = []
    for extra in ((), ("바다에서", "##번째")):
        shutil.rmtree(tmp_path / "tokenizer", ignore_errors=True)
        write_tokenizer(tmp_path / "tokenizer", documents, extra=extra)
        (tmp_path / "tokens").mkdir(exist_ok=True)
        pack(PackConfig(), PackInputs(tmp_path / "corpus", tmp_path / "tokenizer"), tmp_path / "tokens")
        stores.append((tmp_path / "tokens" / "tokens.bin").read_bytes())
    assert len(stores[1]) < len(stores[0])


def test_packing_again_after_a_kill_gives_the_same_bytes(made: Path, tmp_path: Path) -> None:
    (tmp_path / "units" / "unit-00000.partial-77").mkdir(parents=True)
    (tmp_path / "units" / "unit-00000.partial-77" / "tokens.bin").write_bytes(b"half")
    (tmp_path / "units.spent" / "unit-00001").mkdir(parents=True)
    (tmp_path / "tokens.bin.partial").write_bytes(b"half")
    pack(PackConfig(), PackInputs(made / "corpus", made / "tokenizer"), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (made / "tokens" / name).read_bytes()


def test_text_that_looks_like_a_special_piece_stays_text(tmp_path: Path) -> None:
    documents = [Document("d", "글", ("[MASK]는 글자다", "[SEP]도 글자다"))]
    write_corpus(tmp_path / "corpus", documents, shards=1)
    write_tokenizer(tmp_path / "tokenizer", documents)
    (tmp_path / "tokens").mkdir()
    pack(PackConfig(), PackInputs(tmp_path / "corpus", tmp_path / "tokenizer"), tmp_path / "tokens")
    ids = piece_ids(open_store(tmp_path / "tokens", tmp_path / "tokenizer").tokens)
    assert ids[-1] == 2 and (ids[:-1] >= 5).all()


def test_large_vocabularies_are_stored_in_32_bits(tmp_path: Path) -> None:
    documents = invented_documents(3)
    write_corpus(tmp_path / "corpus", documents, shards=1)
    write_tokenizer(tmp_path / "tokenizer", documents, extra=tuple(f"x{n}" for n in range(1 << 15)))
    (tmp_path / "tokens").mkdir()
    pack(PackConfig(), PackInputs(tmp_path / "corpus", tmp_path / "tokenizer"), tmp_path / "tokens")
    tokens, _, _ = encode_slowly(tmp_path / "corpus", tmp_path / "tokenizer", 1 << 31)
    assert (tmp_path / "tokens" / "tokens.bin").read_bytes() == np.array(tokens, "<u4").tobytes()


def test_documents_without_text_are_counted_and_a_corpus_of_them_refused(tmp_path: Path) -> None:
    documents = [*invented_documents(2), Document("e", "일기", (" ",))]
    write_corpus(tmp_path / "corpus", documents, shards=1)
    write_corpus(tmp_path / "void", documents[2:], shards=1)
    write_tokenizer(tmp_path / "tokenizer", documents)
    (tmp_path / "tokens").mkdir()
    counts = pack(PackConfig(), PackInputs(tmp_path / "corpus", tmp_path / "tokenizer"), tmp_path / "tokens")
    assert (counts["documents"], counts["empty_documents"]) == (2, 1)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(BadInput, match="no text in 1 shards"):
        pack(PackConfig(), PackInputs(tmp_path / "void", tmp_path / "tokenizer"), tmp_path / "nothing")


def test_a_tokenizer_folder_without_vocabulary_is_refused(made: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"vocab\.txt: no vocabulary here"):
        pack(PackConfig(), PackInputs(made / "corpus", tmp_path), tmp_path)


def test_a_store_cut_short_or_of_another_vocabulary_is_refused(made: Path, tmp_path: Path) -> None:
    other = write_tokenizer(tmp_path / "other", invented_documents(2))
    with pytest.raises(BadInput, match="packed with vocabulary"):
        open_store(made / "tokens", other)
    copy = tmp_path / "tokens"
    copy.mkdir()
    for name in FILES:
        content = (made / "tokens" / name).read_bytes()
        (copy / name).write_bytes(content[:-2] if name == "tokens.bin" else content)
    with pytest.raises(BadInput, match=r"tokens\.bin: \d+ bytes, expected \d+"):
        open_store(copy, made / "tokenizer")
