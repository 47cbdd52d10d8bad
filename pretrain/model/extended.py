"""Embeddings for pieces that were added to a checkpoint's vocabulary: each begins as the mean of its old pieces'.

extension.json beside the tokenizer (``malmoi tokenizer extend``) says which pieces are new and what they stand for. The
mean keeps a new row where the model already looks for the word (Gee et al. 2022, arXiv 2402.09977, fast vocabulary
transfer), and all old rows stay as they are, so text without a new piece gives the hidden states it gave before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus.documents.atomic_files import read_json_object
from corpus.documents.errors import BadInput

if TYPE_CHECKING:
    from transformers import PreTrainedModel

EXTENSION_NAME = "extension.json"
NewRows = Mapping[int, Sequence[int]]  # id of a new piece → ids of the old pieces it stands for


def read_new_rows(tokenizer: Path, vocab_size: int) -> dict[int, list[int]]:
    """What the folder's extension.json says of new pieces; empty where there is none.

    Raises:
        BadInput: the new ids are not the last ones of the vocabulary, or a piece stands for anything but old ones.
    """
    path = tokenizer / EXTENSION_NAME
    if not path.is_file():
        return {}
    again = "extend the tokenizer again"
    content = read_json_object(path, again)
    try:
        rows = {int(piece["id"]): [int(id_) for id_ in piece["of"]] for piece in content["pieces"]}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{path}: not what `malmoi tokenizer extend` writes ({error!r}); {again}") from None
    first = vocab_size - len(rows)
    if sorted(rows) != list(range(first, vocab_size)):
        raise BadInput(f"{path}: the new ids are not the last {len(rows):,} of {vocab_size:,}; {again}")
    wrong = next((id_ for id_, of in rows.items() if not of or not all(0 <= old < first for old in of)), None)
    if wrong is not None:
        raise BadInput(f"{path}: id {wrong} does not stand for old pieces; {again}")
    return rows


def add_rows(network: PreTrainedModel, rows: NewRows) -> None:
    """Give the new pieces their rows of the (tied) embeddings and their biases; the matrix grows where it is too small.

    Many checkpoints have more rows than pieces; new pieces take those first.
    """
    import torch

    needed = max(rows) + 1
    if network.config.vocab_size < needed:
        network.resize_token_embeddings(needed, mean_resizing=False)
    inputs, outputs = network.get_input_embeddings(), network.get_output_embeddings()
    matrices: list[Any] = [inputs.weight, *([] if outputs is None else [outputs.weight, outputs.bias])]
    with torch.no_grad():
        for matrix in {id(matrix): matrix for matrix in matrices}.values():
            for id_, of in rows.items():
                matrix[id_] = matrix[list(of)].mean(dim=0)
