"""Tasks of a user's own, built of the heads, metrics and decodings of KLUE's: a class, a number, entities, an answer.

``finetune.custom`` describes kind, files and columns; classes, entity types and the scale of numbers are read from the
training file. Both together are the definition, JSON that a saved model stores: ``custom_task`` builds the same task
from it without the data. Hyperparameters are those of the KLUE task of the kind.

``choice``: the encoder reads each answer as a pair with the text and gives it one score; a softmax over the scores of a
question gives probabilities, and cross entropy trains them (Radford et al. 2018, 3.3). A class is the name of an
answer's column. All pairs of a question are one feature, so they stay in one batch.
Legend: ``B`` questions, ``K`` answers of each, ``L`` positions of the longest pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from pydantic import ValidationError

from corpus.documents.errors import BadInput
from corpus.documents.section import problem_text
from finetune.custom_config import CustomColumns, CustomTask, spell_label
from finetune.data.custom_files import Record, read_table, unlabelled
from finetune.examples import Example, Feature, Row, Tokenizer, pad_inputs
from finetune.metrics import pearson, spearman
from finetune.task import Files, HubLayout, Published, Task
from finetune.tasks import labels
from finetune.tasks.custom import reader
from finetune.tasks.labels import text_inference
from finetune.tasks.mrc.task import KLUE_MRC
from finetune.tasks.ner import metrics as entities
from finetune.tasks.ner import task as ner
from finetune.tasks.nli.task import KLUE_NLI, score_nli
from finetune.tasks.sts.task import KLUE_STS, MAX_SIMILARITY, numbers_of
from finetune.tasks.ynat.task import YNAT, score_ynat

MAX_LABELS = 1_000
CLASS_SCORES = {"score": lambda rows: score_ynat(rows) | score_nli(rows), "select_by": "macro_f1"}


def _column_of(columns: CustomColumns, record: Record) -> str:
    """The right answer's column, which a label gives by number, name, or the answer's text."""
    column, names = columns.gold_field, columns.choices or ()
    label = reader.text_in(record, column, may_be_number=True)
    if columns.first is not None:
        place = int(label) - columns.first if is_count(label) else -1
        if 0 <= place < len(names):
            return names[place]
        last = columns.first + len(names) - 1
        raise BadInput(f"{record.where}: column {column!r} should hold a number from {columns.first} to {last}, "
                       f"found {label!r:.60}")  # fmt: skip
    if label in names:
        return label
    same = [name for name in names if reader.text_in(record, name, may_be_number=True) == label]
    if len(same) != 1:
        raise BadInput(
            f"{record.where}: {column!r} is {label!r:.60}, which matches {len(same)} of {', '.join(names)}; give a "
            "number or the answer's column"
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
    values = {reader.text_in(record, column, may_be_number=True) for record in records}
    if not all(map(is_count, values)) or values <= set(names):
        return None
    if all(value in [reader.text_in(record, name, may_be_number=True) for name in names]
           for record in records for value in [reader.text_in(record, column, may_be_number=True)]):  # fmt: skip
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


def define(name: str, own: CustomTask) -> dict[str, Any]:
    """The definition of a custom task: its columns, and what its train file (or dev, if that is divided) adds."""
    path = Path(own.train or own.dev)
    columns = CustomColumns(**own.model_dump(exclude={"train", "dev", "test"}))
    additions: dict[str, Any] = {}
    if own.kind == "similarity":
        golds = [example.gold for example in reader.read_texts(columns, reader.number_of, path)]
        if None in golds:
            raise unlabelled(path, columns.model_dump())
        additions["scale"] = max(golds) - min(golds)
    elif own.kind == "choice":
        additions["first"] = find_first(columns, path)
    elif own.kind != "span" and own.labels is None:
        is_tagging, read_any = own.kind == "tagging", partial(reader.class_of, None)
        examples = (
            reader.read_entities(columns, None, path) if is_tagging else reader.read_texts(columns, read_any, path)
        )
        additions["labels"] = _labels_of(columns, examples, path)
    return {"name": name, **columns.model_dump(mode="json", exclude_none=True), **additions}


def _labels_of(columns: CustomColumns, examples: Sequence[Example], path: Path) -> list[str]:
    golds = [example.gold for example in examples if example.gold is not None]
    if not golds:
        raise unlabelled(path, columns.model_dump())
    if columns.kind == "tagging":
        classes = {tag.partition("-")[2] for gold in golds for tag in gold} - {""}
        least = 1
    else:
        classes, least = set(golds), 2
    if not least <= len(classes) <= MAX_LABELS:
        what = f"{len(classes):,} different labels" + (f", {min(classes)!r}" if len(classes) == 1 else "")
        raise BadInput(
            f"{path}: {what} in column {columns.gold_field!r}; expected {least} to {MAX_LABELS:,}; is it the right one?"
        )
    return sorted(classes)


def custom_task(definition: Any, place: str = "custom task", files: Mapping[str, str] | None = None) -> Task:
    """The task of a definition; ``BadInput`` with ``place`` if it is invalid. ``files``: path of each split."""
    fields = dict(definition) if isinstance(definition, Mapping) else {}
    name, scale = fields.pop("name", None), fields.pop("scale", 0.0)
    try:
        columns = CustomColumns.model_validate(fields)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(["own", *map(str, problem["loc"])])
        raise BadInput(f"{place}: {key} cannot be used ({problem_text(problem)}); save the model again") from None
    has_labels = bool(columns.labels) or columns.kind in ("similarity", "choice", "span")
    if not isinstance(name, str) or not labels.is_finite_number(scale) or not has_labels:
        raise BadInput(f"{place}: own has no name, or not the labels or the scale of its kind; save the model again")
    predicts, make = KINDS[columns.kind]
    base, changes = make(columns, float(scale))
    published = Published(0, {}, base.published.hyperparameters, base.published.large)
    return replace(
        base, name=name, predicts=predicts, files=Files(name, "", files or {}), published=published,
        hub=HubLayout((), lambda rows, split: ""),
        custom=dict(definition), write=_refuse_to_write, **changes,
    )  # fmt: skip


def _refuse_to_write(source: Path, values: Mapping[str, Any], target: Path) -> None:
    raise BadInput(f"{source}: only files of KLUE tasks have an official format; use the predictions as they are")


def _classes(columns: CustomColumns, scale: float) -> tuple[Task, dict[str, Any]]:
    names = tuple(map(spell_label, columns.labels or ()))
    return KLUE_NLI if columns.kind == "pair" else YNAT, {
        **labels.label_fields(names, columns.text_fields, spell_label),
        **CLASS_SCORES,
        "read": partial(reader.read_texts, columns, partial(reader.class_of, names)),
    }


def _choices(columns: CustomColumns, scale: float) -> tuple[Task, dict[str, Any]]:
    names = columns.choices or ()
    return KLUE_NLI, {
        **labels.label_fields(names, (*columns.text_fields, *names)),
        **CLASS_SCORES,
        "read": partial(reader.read_texts, columns, _column_of),
        "featurize": partial(featurize_choices, columns),
        "collate": collate_choices,
        "model": partial(labels.build_labeller, "choice", names),
    }


def _numbers(columns: CustomColumns, scale: float) -> tuple[Task, dict[str, Any]]:
    fields = columns.text_fields
    unit = scale / MAX_SIMILARITY or 1.0  # an error is a fifth of the scale, as in KLUE-STS
    return KLUE_STS, {
        "read": partial(reader.read_texts, columns, reader.number_of),
        "featurize": partial(labels.featurize_texts, fields, None, labels.encode_texts),
        "score": score_numbers,
        "select_by": "pearsonr",
        "inspection": KLUE_STS.inspection._replace(
            show=partial(labels.show_fields, fields, form=".4g"),
            distance=lambda row: abs(row.gold - row.prediction) / unit,
        ),
        "inference": text_inference(fields, None),
    }


def _entities(columns: CustomColumns, scale: float) -> tuple[Task, dict[str, Any]]:
    types = columns.labels or ()
    names = (*(f"{mark}-{name}" for name in types for mark in "BI"), ner.OUTSIDE)
    return ner.KLUE_NER, {
        **ner.tag_fields(names),
        "read": partial(reader.read_entities, columns, types),
        "score": partial(entities.score_entities, names),
        "select_by": "entity_macro_f1",
    }


# What a kind predicts; and its columns and scale to the KLUE task with the same hyperparameters and what differs.
KINDS: Mapping[str, tuple[str, Callable[[CustomColumns, float], tuple[Task, dict[str, Any]]]]] = {
    "label": ("class of a text", _classes),
    "pair": ("class of two texts", _classes),
    "similarity": ("a number for two texts", _numbers),
    "choice": ("the right one of several answers", _choices),
    "tagging": ("entities in a text", _entities),
    "span": (KLUE_MRC.predicts, lambda columns, scale: (KLUE_MRC, {"read": partial(reader.read_answers, columns)})),
}


def score_numbers(rows: Sequence[Row]) -> dict[str, float]:
    """``pearsonr`` and ``spearmanr``, -100..100, nan where either side is constant."""
    gold_N, predicted_N = numbers_of(rows)
    return {"pearsonr": pearson(gold_N, predicted_N), "spearmanr": spearman(gold_N, predicted_N)}
