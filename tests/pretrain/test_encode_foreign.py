"""Tokenizers of other families, met in continued pretraining: the pieces of a sentence are those of the library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

from pretrain.encode import EojeolEncoder
from pretrain.store import piece_ids
from tests.pretrain.kinds import FOREIGN, LESSONS, save_angled


@pytest.mark.parametrize("kind", FOREIGN)
def test_tokenizers_that_mark_blanks_give_the_pieces_of_the_whole_sentence(kind: str, tmp_path: Path) -> None:
    save_angled(FOREIGN[kind](), tmp_path)
    encoder, backend = EojeolEncoder(tmp_path), AutoTokenizer.from_pretrained(tmp_path).backend_tokenizer
    backend.encode_special_tokens = True
    assert encoder.special_ids == {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
    sentences = [*LESSONS, "뷁은 <mask> 12월 3일, 'tis 😀 e\u0301! 漢字…", "가람 가람 가람"]
    for sentence in sentences:
        marked, _, _ = encoder.encode([f"윤슬 {sentence}", sentence])
        whole = backend.encode(f"윤슬 {sentence}", add_special_tokens=False)
        first = sum(begin < 2 for begin, _ in whole.offsets)  # the pieces of 윤슬
        behind = piece_ids(marked)[-len(whole.ids) + first :].tolist()
        assert behind == whole.ids[first:]
        starts = np.flatnonzero(marked >> 15)
        assert len(starts) == 1 + 2 * len(sentence.split())
        pieces = [backend.id_to_token(int(id_)) for id_ in piece_ids(marked)[starts]]
        assert all(piece[0] in "Ġ▁" or piece == "<unk>" for piece in pieces)
