"""Rows for new pieces: the mean of the old pieces' rows, everything else as the checkpoint had it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    RobertaConfig,
    RobertaForMaskedLM,
)

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.model.existing_model import read_new_rows
from pretrain.model.networks import build_network
from tests.pretrain.settings import in_sections

IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
ROWS = {60: [7, 9, 9], 61: [11], 62: [12, 5]}
SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8,
         "pad_token_id": 1, "max_position_embeddings": 40}  # fmt: skip
BERT = {"architecture": "bert"}


def save(folder: Path, kind: Any, family: Any, rows: int, **settings: Any) -> Any:
    """A checkpoint of 60 pieces in ``rows`` rows of embeddings, its biases not zero."""
    torch.manual_seed(5)
    network = kind(family(**SIZES, vocab_size=rows, **settings))
    torch.nn.init.normal_(network.get_output_embeddings().bias)
    network.save_pretrained(folder)
    return network


def grow(folder: Path, **changes: Any) -> Any:
    fields = {"init_from": str(folder), "sequence_length": 16, "dropout": 0.0}
    return build_network(PretrainConfig.model_validate(in_sections(fields | changes)), 63, IDS, ROWS)


@pytest.mark.parametrize("rows", [60, 62, 64])
@pytest.mark.parametrize(
    ("kind", "family", "changes"),
    [
        (RobertaForMaskedLM, RobertaConfig, {}),
        (BertForMaskedLM, BertConfig, BERT),
        (BertForPreTraining, BertConfig, BERT | {"nsp": True}),
    ],
)
def test_new_rows_are_means_and_all_others_the_checkpoints(
    tmp_path: Path, kind: Any, family: Any, changes: dict, rows: int
) -> None:
    old = save(tmp_path / "old", kind, family, rows)
    grown = grow(tmp_path / "old", **changes)
    assert grown.config.vocab_size == max(rows, 63)
    assert grown.get_output_embeddings().weight is grown.get_input_embeddings().weight
    before, after = dict(old.named_parameters()), dict(grown.named_parameters())
    assert before.keys() == after.keys()
    longer = {name for name in before if len(before[name]) == rows}
    assert len(longer) == 2
    for name in before.keys() - longer:
        assert torch.equal(before[name], after[name])
    for name in longer:
        a, b = before[name].detach(), after[name].detach()
        kept = [row for row in range(rows) if row not in ROWS]
        assert len(b) == max(rows, 63) and torch.equal(a[kept], b[kept])
        for row, of in ROWS.items():
            assert torch.allclose(b[row], sum(a[id_] for id_ in of) / len(of))


def test_weights_that_are_not_tied_grow_both(tmp_path: Path) -> None:
    old = save(tmp_path / "old", BertForMaskedLM, BertConfig, 60, tie_word_embeddings=False)
    grown = grow(tmp_path / "old", **BERT)
    for before, after in (
        (old.get_input_embeddings().weight, grown.get_input_embeddings().weight),
        (old.get_output_embeddings().weight, grown.get_output_embeddings().weight),
    ):
        assert torch.allclose(after[62], (before[12] + before[5]) / 2) and torch.equal(after[:60], before)


def test_old_text_gives_the_hidden_states_it_gave(tmp_path: Path) -> None:
    save(tmp_path / "old", RobertaForMaskedLM, RobertaConfig, 60)
    grow(tmp_path / "old").save_pretrained(tmp_path / "new")
    ids = torch.randint(2, 60, (3, 16), generator=torch.Generator().manual_seed(1))
    for kind in (AutoModel, AutoModelForMaskedLM):
        old, new = (kind.from_pretrained(tmp_path / name).eval()(ids)[0] for name in ("old", "new"))
        assert torch.equal(old, new[..., : old.shape[-1]])


def test_broken_lists_of_new_pieces_are_refused(tmp_path: Path) -> None:
    def write(*pieces: dict) -> None:
        (tmp_path / "extension.json").write_text(json.dumps({"pieces": pieces}), "utf-8")

    assert read_new_rows(tmp_path, 62) == {}
    write({"id": 60, "of": [5, 7]}, {"id": 61, "of": [9]})
    assert read_new_rows(tmp_path, 62) == {60: [5, 7], 61: [9]}
    with pytest.raises(BadInput, match="not the last 2 of 63"):
        read_new_rows(tmp_path, 63)
    for of in ([], [60], [-1]):
        write({"id": 60, "of": [5]}, {"id": 61, "of": of})
        with pytest.raises(BadInput, match="id 61 does not consist of old pieces"):
            read_new_rows(tmp_path, 62)
    write({"id": 61})
    with pytest.raises(BadInput, match="not what `malmoi tokenizer extend` writes"):
        read_new_rows(tmp_path, 62)
