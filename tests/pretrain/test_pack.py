"""The token store against encoding the text sentence by sentence, and its promises about bytes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

from corpus.documents import BadInput, Document, read_documents, shard_paths
from pretrain import pack as pack_module
from pretrain.config import BadInput as PretrainBadInput
from pretrain.config import PackConfig
from pretrain.encode import EojeolEncoder
from pretrain.pack import PackedBatch, PackInputs
from pretrain.pack import run as pack
from pretrain.store import open_store, piece_ids
from tests.pretrain.conftest import invented_documents, write_corpus, write_tokenizer

FILES = ("tokens.bin", "documents.idx", "sentences.idx", "meta.json")


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


def test_two_workers_write_the_same_bytes_and_leave_nothing_else(made: Path, tmp_path: Path) -> None:
    pack(PackConfig(), PackInputs(made / "corpus", made / "tokenizer"), tmp_path, workers=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (made / "tokens" / name).read_bytes()


def test_bytes_do_not_depend_on_the_sizes_of_batches_and_blocks(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_module, "BATCH_CHARACTERS", 90)
    monkeypatch.setattr(pack_module, "JOIN_BYTES", 24)
    pack(PackConfig(), PackInputs(made / "corpus", made / "tokenizer"), tmp_path)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (made / "tokens" / name).read_bytes()


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
    with pytest.raises(PretrainBadInput, match="packed with vocabulary"):
        open_store(made / "tokens", other)
    copy = tmp_path / "tokens"
    copy.mkdir()
    for name in FILES:
        content = (made / "tokens" / name).read_bytes()
        (copy / name).write_bytes(content[:-2] if name == "tokens.bin" else content)
    with pytest.raises(PretrainBadInput, match=r"tokens\.bin: \d+ bytes, expected \d+"):
        open_store(copy, made / "tokenizer")
