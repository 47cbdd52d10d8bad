"""Custom tasks of kind ``choice``: a text and one column for each possible answer, one of which is right.

The encoder reads each answer as a pair with the text, ``[CLS] text [SEP] answer [SEP]``, and gives it one score; a
softmax over the scores of a question gives probabilities, and cross entropy trains them (Radford et al. 2018, 3.3).
A class is the name of an answer's column. All pairs of a question are one feature, so they stay in one batch.
Legend: ``B`` questions, ``K`` answers of each, ``L`` positions of the longest pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from finetune.custom_config import CustomColumns
from finetune.data.custom_files import Record, read_table, unlabelled
from finetune.examples import Example, Feature, Tokenizer, pad_inputs
from finetune.task import Task
from finetune.tasks import labels
from finetune.tasks.custom.reader import read_pairs, text_in
from finetune.tasks.nli.task import KLUE_NLI, score_nli
from finetune.tasks.ynat.task import score_ynat


def read_choices(columns: CustomColumns, path: Path) -> list[Example]:
    """Texts, answers and the column of the right answer."""
    return read_pairs(columns, partial(_column_of, columns), path)


def _column_of(columns: CustomColumns, record: Record) -> str:
    """The right answer's column, which a label gives by number, name, or the answer's text."""
    column, names = columns.gold_field, columns.choices or ()
    label = text_in(record, column, may_be_number=True)
    if columns.first is not None:
        place = int(label) - columns.first if is_count(label) else -1
        if 0 <= place < len(names):
            return names[place]
        last = columns.first + len(names) - 1
        raise BadInput(f"{record.where}: column {column!r} should hold a number from {columns.first} to {last}, "
                       f"found {label!r:.60}")  # fmt: skip
    if label in names:
        return label
    same = [name for name in names if text_in(record, name, may_be_number=True) == label]
    if len(same) != 1:
        raise BadInput(
            f"{record.where}: {column!r} is {label!r:.60}, the text of {len(same)} of {', '.join(names)}; give a "
            "number, or the name of the answer's column"
        )
    return same[0]


def is_count(label: str) -> bool:
    """Whether a label is a number of few digits."""
    return label.isdecimal() and len(label) < 5


def find_first(columns: CustomColumns, path: Path) -> int | None:
    """The number of the first answer, from all labels of a file; None if labels are names or texts of answers."""
    if columns.first is not None:
        return columns.first
    column, names = columns.gold_field, columns.choices or ()
    records = [record for record in read_table(path, columns.text_fields) if column in record.values]
    if not records:
        raise unlabelled(path, columns.model_dump())
    values = {text_in(record, column, may_be_number=True) for record in records}
    if not all(map(is_count, values)) or values <= set(names):
        return None
    if all(value in [text_in(record, name, may_be_number=True) for name in names]
           for record in records for value in [text_in(record, column, may_be_number=True)]):  # fmt: skip
        return None  # each label is the text of an answer, which is a number
    numbers = set(map(int, values))
    fitting = [first for first in (0, 1) if numbers <= set(range(first, first + len(names)))]
    if len(fitting) == 1:
        return fitting[0]
    problem = "count from 0 as well as from 1" if fitting else f"do not number {len(names)} answers from 0 or 1"
    raise BadInput(
        f"{path}: the numbers in column {column!r} ({', '.join(map(str, sorted(numbers)[:8]))}) {problem}; set first "
        "to 0 or 1, or correct choices"
    )


def featurize_choices(
    columns: CustomColumns, examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool
) -> list[Feature]:
    """The pairs of a question one after another, and their ``sizes``; of a pair, the longer text is truncated."""
    names = columns.choices or ()
    texts = [_question(columns, example) for example in examples for _ in names]
    answers = [example.inputs[name] for example in examples for name in names]
    pairs = labels.encode_texts(tokenizer, texts, answers, max_tokens)
    features: list[Feature] = []
    for i in range(len(examples)):
        own = pairs[i * len(names) : (i + 1) * len(names)]
        joined = {key: list(chain.from_iterable(pair[key] for pair in own)) for key in ("input_ids", "token_type_ids")}
        features.append({"example": i, **joined, "sizes": [len(pair["input_ids"]) for pair in own]})
    return labels.with_labels(features, examples, names)


def _question(columns: CustomColumns, example: Example) -> str:
    """The text, or both texts, the second replaced as ``phrases`` says (COPA: 결과, result, by 그래서, therefore)."""
    first, *second = (example.inputs[name] for name in columns.text_fields)
    return " ".join([first.strip(), *((columns.phrases or {}).get(text.strip(), text) for text in second)])


def collate_choices(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Padded inputs (B, K, L) and, where the features have them, ``labels`` (B): the place of the right answer."""
    pairs: list[Feature] = []
    for feature in features:
        begin = 0
        for size in feature["sizes"]:
            pairs.append({key: feature[key][begin : begin + size] for key in ("input_ids", "token_type_ids")})
            begin += size
    batch = {name: array.reshape(len(features), -1, array.shape[1]) for name, array in
             pad_inputs(pairs, pad_id).items()}  # fmt: skip
    return labels.add_labels(batch, features)


def choice_fields(columns: CustomColumns) -> tuple[Task, dict[str, Any]]:
    """The KLUE task whose hyperparameters are the defaults, and what differs from it."""
    names = columns.choices or ()
    return KLUE_NLI, {
        **labels.label_fields(names, (*columns.text_fields, *names)),
        "read": partial(read_choices, columns),
        "featurize": partial(featurize_choices, columns),
        "collate": collate_choices,
        "model": partial(labels.build_labeller, "choice", names),
        "score": lambda rows: score_ynat(rows) | score_nli(rows),
        "select_by": "macro_f1",
    }
