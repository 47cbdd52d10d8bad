"""Embeddings of pieces that were added to the vocabulary of a checkpoint: each starts as the mean of its old pieces.

extension.json in the tokenizer folder (``malmoi tokenizer extend``) lists the new pieces and the old pieces of each.
The mean keeps a new row close to what the model knows of the word (Gee et al. 2022, arXiv 2402.09977, fast vocabulary
transfer). All old rows stay as they are, so text without a new piece gives the same hidden states as before.
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
NewRows = Mapping[int, Sequence[int]]  # id of a new piece → ids of its old pieces


def read_new_rows(tokenizer: Path, vocab_size: int) -> dict[int, list[int]]:
    """New pieces from the folder's extension.json; empty if there is none.

    Raises:
        BadInput: the new ids are not the last ones of the vocabulary, or an old piece is not an old one.
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
        raise BadInput(f"{path}: id {wrong} does not consist of old pieces; {again}")
    return rows


def add_rows(network: PreTrainedModel, rows: NewRows) -> None:
    """Initialize the rows of the new pieces in the (tied) embeddings and biases; the matrix grows if it is too small.

    Many checkpoints have more rows than pieces; new pieces use those first.
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
