"""Functions of tasks with one label per text (YNAT, KLUE-NLI, KLUE-RE, custom classes), some shared with other tasks.

Scores come from one count of (gold, predicted) pairs, much faster on names than scikit-learn; an interval scores the
rows hundreds of times. A test file has gold None everywhere and no labels in its batches. In new text, a line holds the
texts of the task, separated by tabs; a JSON record has them under their names.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from finetune.data.custom_files import nfc
from finetune.data.files import format_json, read_records, remark_on_nfd, text_of
from finetune.examples import ErrorView, Example, Feature, Module, Prediction, Row, Table, Tokenizer, pad_inputs
from finetune.task import Ensembling, HubLayout, Inference, Inspection, MemberRecords, RawInput, Task

ONE_TEXT = ("text", "sentence")  # other names of the text of a task that has one
LIKELIEST = 3  # labels shown with their probabilities


def parse_texts(columns: Sequence[str], raw: RawInput, where: str) -> dict[str, Any] | None:
    """The texts of ``columns``; a single text can also be under "text" or "sentence"."""
    if isinstance(raw, str):
        raw = raw.split("\t") if len(columns) > 1 else [raw]
    if not isinstance(raw, Mapping):
        if len(raw) != len(columns):
            names = ", a tab, ".join(columns)
            raise BadInput(f"{where}: expected {names}, or a line of JSON; texts found: {len(raw)}")
        raw = dict(zip(columns, raw, strict=True))
    texts = {column: nfc(_text_under(column, raw, len(columns) == 1, where)) for column in columns}
    return texts if all(text.strip() for text in texts.values()) else None


def _text_under(column: str, record: Mapping[str, Any], is_only: bool, where: str) -> str:
    names = (column, *ONE_TEXT) if is_only else (column,)
    key = next((name for name in names if name in record), column)
    if key not in record:
        keys = ", ".join(map(str, record)) or "nothing"
        raise BadInput(f"{where}: no '{column}'; rows and JSON records have it as a text (found: {keys:.80})")
    if not isinstance(record[key], str):
        raise BadInput(f"{where}: '{key}' should be a text, found {record[key]!r:.60}")
    return str(record[key])


def certainty(labels: Sequence[str], prediction: Prediction) -> dict[str, Any]:
    """``probability`` of the predicted label, and ``likeliest``, the first labels with their probabilities."""
    if not prediction.scores:
        return {}
    ranked = sorted(zip(labels, prediction.scores, strict=True), key=lambda pair: -pair[1])
    return {"probability": max(prediction.scores), "likeliest": dict(ranked[:LIKELIEST])}


def text_inference(columns: Sequence[str], labels: Sequence[str] | None) -> Inference:
    """For a task with one of ``labels``, or a number if there are none, per text or pair."""

    def to_result(example: Example, prediction: Prediction) -> dict[str, Any]:
        texts = {column: example.inputs[column] for column in columns}
        return {**texts, **(certainty(labels, prediction) if labels else {})}

    def format_lines(result: Mapping[str, Any]) -> list[str]:
        cells = [result["prediction"], f"{result['probability']:.2f}"] if labels else [f"{result['prediction']:.2f}"]
        return ["\t".join([*cells, *(result[column] for column in columns)])]

    return Inference(partial(parse_texts, columns), to_result, format_lines)


SIDES = attrgetter("gold", "prediction")
LARGEST = sys.float_info.max  # an int of JSON may be larger

Golds = list[tuple[str, dict[str, Any], Any]]  # where (for messages), record and gold of each record of a file


def read_texts(fields: Sequence[str], read_golds: Callable[[Path], Golds], path: Path) -> list[Example]:
    """Examples of a JSON file with the texts ``fields``."""
    return [
        Example(record["guid"], gold, {field: text_of(record, field, where) for field in fields})
        for where, record, gold in read_golds(path)
    ]


def read_labelled(key: str, labels: Sequence[str], path: Path) -> Golds:
    """The records with the label under ``key``."""

    def label_of(record: dict[str, Any], where: str) -> str:
        label = nfc(record[key])
        if label not in labels:
            raise BadInput(f"{where}: '{key}' is {label!r}; labels here are {', '.join(labels)}")
        return str(label)

    golds = read_golds(key, label_of, path)
    remark_on_nfd(path, (record.get(key) for _, record, _ in golds))
    return golds


def read_golds(key: str, gold_of: Callable[[dict[str, Any], str], Any], path: Path) -> Golds:
    """The records with the result of ``gold_of(record, where)``; None in a file in which no record has ``key``."""
    records = read_records(path)
    unlabelled = [where for where, record in records if key not in record]
    if len(unlabelled) == len(records):
        return [(where, record, None) for where, record in records]
    if unlabelled:
        raise BadInput(f"{unlabelled[0]}: no '{key}', which other records have; label every record of a file or none")
    return [(where, record, gold_of(record, where)) for where, record in records]


def featurize_texts(
    fields: Sequence[str], labels: Sequence[str] | None, encode: Callable[..., list[Feature]],
    examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool,
) -> list[Feature]:  # fmt: skip
    """``[CLS] text [SEP]``, or with a second text; ``encode`` truncates long texts."""
    texts = ([example.inputs[field] for example in examples] for field in fields)
    return with_labels(encode(tokenizer, *texts, max_tokens=max_tokens), examples, labels)


def encode_texts(
    tokenizer: Tokenizer, first: Sequence[str], second: Sequence[str] | None = None, max_tokens: int | None = None
) -> list[Feature]:
    """Features ``[CLS] first [SEP]`` or ``[CLS] first [SEP] second [SEP]`` with the tokenizer's special tokens; the
    longer text is truncated until the total has ``max_tokens`` ids."""
    encoded = tokenizer(
        list(first), list(second) if second is not None else None, max_length=max_tokens,
        truncation="longest_first" if max_tokens else False,
        return_token_type_ids=True, return_attention_mask=False, verbose=False,
    )  # fmt: skip
    rows = zip(encoded["input_ids"], encoded["token_type_ids"], strict=True)
    return [{"example": i, "input_ids": ids, "token_type_ids": types} for i, (ids, types) in enumerate(rows)]


def encode_pairs_as_published(
    tokenizer: Tokenizer, first: Sequence[str], second: Sequence[str], max_tokens: int
) -> list[Feature]:
    """``encode_texts`` of pairs, truncated as in the published code (transformers 3.5.1).

    Its tokenizer removes one token at a time from the longer text, from the second if both are equal; the fast
    tokenizer differs when the second text is longer (62 and 63 of 125 tokens instead of 63 and 62). No pair of the
    official dev sets reaches 128 tokens, so the protocols agree on them.
    """
    features = encode_texts(tokenizer, first, second)
    for index, feature in enumerate(features):
        if len(feature["input_ids"]) > max_tokens:
            sides = tokenizer(first[index], second[index], verbose=False).sequence_ids(0)
            features[index] = keep_tokens(feature, cut_pair(sides, max_tokens))
    return features


def cut_pair(sides: Sequence[int | None], max_tokens: int) -> list[int]:
    """Positions to keep: every special token (None in ``sides``), and the beginnings of text 0 and text 1."""
    size = max_tokens - sides.count(None)
    first = min(sides.count(0), max(size - sides.count(1), (size + 1) // 2))
    specials, firsts, seconds = ([at for at, side in enumerate(sides) if side == text] for text in (None, 0, 1))
    return sorted(specials + firsts[:first] + seconds[: size - first])


def keep_tokens(feature: Feature, positions: Sequence[int]) -> Feature:
    """The feature with only the tokens at ``positions``."""
    return {**feature, **{key: [feature[key][i] for i in positions] for key in ("input_ids", "token_type_ids")}}


def with_labels(
    features: list[Feature], examples: Sequence[Example], labels: Sequence[str] | None = None
) -> list[Feature]:
    """The features with their example's gold under ``label``, if it has one: its number in ``labels``, if given."""
    for feature in features:
        gold = examples[feature["example"]].gold
        if gold is not None:
            feature["label"] = labels.index(gold) if labels else gold
    return features


def collate_labels(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Padded inputs and, where the features have them, ``labels`` (B): ids as int64, numbers as float32."""
    return add_labels(pad_inputs(features, pad_id), features)


def add_labels(batch: dict[str, NDArray[Any]], features: Sequence[Feature]) -> dict[str, NDArray[Any]]:
    """The batch with ``labels`` (B), where the features have them."""
    if "label" in features[0]:
        labels_B = np.array([feature["label"] for feature in features])
        batch["labels"] = labels_B.astype(np.float32 if labels_B.dtype.kind == "f" else np.int64)
    return batch


def build_labeller(
    kind: Literal["label", "number", "tags", "choice"], labels: Sequence[str], encoder: str, tokenizer: Tokenizer
) -> Module:
    """Encoder and a head of ``finetune.heads.labels``."""
    from finetune.heads.labels import load_labeller

    return load_labeller(encoder, tokenizer, kind, labels)


def build_head(name: str, encoder: str, tokenizer: Tokenizer, **settings: Any) -> Module:
    """Encoder and a head of ``finetune.heads.pretrained`` with these arguments."""
    from finetune.encoder.loading import load_encoder
    from finetune.heads import pretrained

    head: Module = getattr(pretrained, name)(load_encoder(encoder, tokenizer), **settings)
    return head


def decode_labels(
    labels: Sequence[str], examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]
) -> list[Prediction]:
    """The likeliest label; ``scores`` are the probabilities in the order of ``labels``."""
    return [Prediction(labels[int(raw.argmax())], [float(f"{p:.7g}") for p in raw]) for raw in raws]


def merge_mean(key: str, decode: Callable[..., list[Prediction]], members: Sequence[MemberRecords]) -> list[Prediction]:
    """The result of ``decode`` for the mean of what the members' records have under ``key``."""
    return decode((), (), np.mean([[record[key] for record in member] for member in members], axis=0))


def validate_label(labels: Sequence[str], example: Example, prediction: Prediction) -> str | None:
    """One of ``labels``; ``scores``, if given, are one number for each label."""
    value, scores = prediction
    if value not in labels:
        return f"no label {value!r:.60}; labels here are {', '.join(labels)}"
    if scores is None or (
        isinstance(scores, list) and len(scores) == len(labels) and all(map(is_finite_number, scores))
    ):
        return None
    return f"'scores' should be {len(labels)} numbers, one for each of {', '.join(labels)}; found {scores!r:.60}"


def is_finite_number(value: Any) -> TypeGuard[float]:
    """Whether a JSON value is a number that a float can hold; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def write_field(key: str, official: Path, values: Mapping[str, Any], target: Path) -> None:
    """Write the JSON file with the value of each guid under ``key`` of its record."""
    atomic_write(target, format_json([record | {key: values[record["guid"]]} for _, record in read_records(official)]))


def show_fields(fields: Sequence[str], example: Example, row: Row, form: str = "") -> ErrorView:
    """The texts and the two labels, or numbers in this ``form``."""
    return {name: example.inputs[name] for name in fields}, [format(row.gold, form)], [format(row.prediction, form)]


def convert_records(key: str, rows: Sequence[dict[str, Any]], split: str) -> str:
    """The Hub's rows as an official file with labels under ``key``."""
    return format_json([{key if name == "label" else name: value for name, value in row.items()} for row in rows])


class ClassCount(NamedTuple):
    """How often a class is gold, predicted, and both."""

    gold: int = 0
    predicted: int = 0
    right: int = 0

    @property
    def f1(self) -> float:
        """0..1."""
        return _share(2 * self.right, self.gold + self.predicted)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def count_classes(rows: Sequence[Row]) -> dict[str, ClassCount]:
    """The counts of every class that occurs in gold or prediction."""
    gold, predicted, right = Counter[str](), Counter[str](), Counter[str]()
    for (gold_class, predicted_class), count in Counter(map(SIDES, rows)).items():
        gold[gold_class] += count
        predicted[predicted_class] += count
        if gold_class == predicted_class:
            right[gold_class] += count
    return {name: ClassCount(gold[name], predicted[name], right[name]) for name in gold | predicted}


def macro_f1(classes: Collection[ClassCount]) -> float:
    """0..100."""
    return 100 * sum(counts.f1 for counts in classes) / len(classes)


def class_rows(rows: Sequence[Row], labels: Sequence[str]) -> Table:
    """One line for each of ``labels`` and any other class that occurs: counts, and precision, recall and F1, 0..100."""
    classes = count_classes(rows)
    lines = []
    for name in dict.fromkeys([*labels, *classes]):
        counts = classes.get(name, ClassCount())
        precision, recall = _share(counts.right, counts.predicted), _share(counts.right, counts.gold)
        percents = {"precision": 100 * precision, "recall": 100 * recall, "f1": 100 * counts.f1}
        lines.append({"class": name, **counts._asdict(), **percents})
    return lines


def class_tables(labels: Sequence[str], rows: Sequence[Row]) -> dict[str, Table]:
    """The table "classes", and "confusion": for each gold class how often each class was predicted."""
    pairs = Counter(map(SIDES, rows))
    names = list(dict.fromkeys([*labels, *(name for pair in pairs for name in pair)]))
    confusion = [{"gold": gold, **{predicted: pairs[gold, predicted] for predicted in names}} for gold in names]
    return {"classes": class_rows(rows, labels), "confusion": confusion}


def label_fields(labels: Sequence[str], fields: Sequence[str], spell: Callable[[Any], Any] = nfc) -> dict[str, Any]:
    """The fields of a task with one of ``labels`` for the texts ``fields``, of any file format."""
    return {
        "featurize": partial(featurize_texts, fields, labels, encode_texts),
        "model": partial(build_labeller, "label", labels),
        "decode": partial(decode_labels, labels),
        "inspection": Inspection(
            tables=partial(class_tables, labels),
            validate=partial(validate_label, labels),
            show=partial(show_fields, fields),
            spell=spell,
        ),
        "inference": text_inference(fields, labels),
        "ensembling": Ensembling(partial(merge_mean, "scores", partial(decode_labels, labels))),
    }


def make_label_task(labels: Sequence[str], key: str, fields: Sequence[str], **others: Any) -> Task:
    """A KLUE task with one of ``labels``, under ``key`` in the official file, for the texts ``fields``.

    ``others``: the other fields of the task, and those that differ.
    """
    shared = {
        **label_fields(labels, fields),
        "read": partial(read_texts, fields, partial(read_labelled, key, labels)),
        "write": partial(write_field, key),
        "collate": collate_labels,
        "hub": HubLayout(("guid", *fields, "label"), partial(convert_records, key)),
    }
    return Task(**(shared | others))
