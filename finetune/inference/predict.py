"""Predictions of a saved model for new text and for official files, as JSON and as lines of text.

An official file is predicted in one pass, as in the fine-tuning stage, so scores are identical to the last digit. In
other batches a score may differ by rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus.documents.accelerator import choose_precision
from corpus.documents.errors import BadInput
from finetune.data.custom_files import read_table
from finetune.examples import Example, Prediction
from finetune.task import Inference, RawInput
from finetune.task_names import PAPER_NAMES, SHORT_NAMES, full_name
from finetune.train.batched_prediction import predict

if TYPE_CHECKING:
    from finetune.saved_models.load import SavedModel

Result = dict[str, Any]
TEXTS_AT_ONCE = 4_096  # of a long input; enough to find texts of equal length


def predict_texts(
    model: SavedModel, inputs: Sequence[RawInput], *, place: str = "input", first: int = 1
) -> list[Result]:
    """One result per input, in order.

    A result has the texts in NFC, "prediction" in the form of the task's golds, "scores" if the task has any, and what
    ``Inference.to_result`` adds; offsets count characters of the text in the result. "prediction" is None for blank
    text. The "guid" of a record is copied.

    Args:
        inputs: lines (texts of a pair, question and passage, turns separated by tabs), lists of columns, or records.
        place: name of an input in messages, before its number, which counts from ``first``.

    Raises:
        BadInput: an input does not have the form of the task.
    """
    inference = model.task.inference
    examples: list[Example | None] = []
    for number, raw in enumerate(inputs, start=first):
        is_blank = isinstance(raw, str) and not raw.strip()
        parsed = None if is_blank else inference.parse(raw, f"{place} {number}")
        guid = raw.get("guid", "") if isinstance(raw, Mapping) else ""
        examples.append(None if parsed is None else Example(str(guid), None, parsed))
    predictions = iter(predict_examples(model, [e for e in examples if e is not None]))
    return [{"prediction": None} if e is None else make_result(inference, e, next(predictions)) for e in examples]


def predict_official(model: SavedModel, path: Path) -> list[Result]:
    """One result per example of an official file of the task, with or without labels, in order."""
    examples = model.task.read(path)
    predictions = predict_examples(model, examples)
    return [make_result(model.task.inference, *pair) for pair in zip(examples, predictions, strict=True)]


def predict_table(model: SavedModel, path: Path) -> list[Result]:
    """One result per row of a table with the field names of a KLUE task, and its line."""
    records = read_table(path, [])
    results = predict_texts(model, [record.values for record in records], place=f"{path}, row")
    return [{"line": record.line, **result} for record, result in zip(records, results, strict=True)]


def predict_examples(model: SavedModel, examples: Sequence[Example]) -> list[Prediction]:
    """The prediction for each example, in the precision of the training unless that is slow on this device."""
    if not examples:
        return []
    task, settings = model.task, model.settings
    features = task.featurize(examples, model.tokenizer, int(settings["max_tokens"]), False)
    precision = settings["precision"]
    device = next(model.model.parameters()).device
    if precision == "bf16" and device.type == "cpu":
        precision = choose_precision("auto", "precision", device).precision
    pad_id = int(model.tokenizer.pad_token_id)
    return task.decode(examples, features, predict(task, model.model, features, pad_id, precision))


def make_result(inference: Inference, example: Example, prediction: Prediction) -> Result:
    """One result, as JSON."""
    guid = {"guid": example.guid} if example.guid else {}
    scores = {} if prediction.scores is None else {"scores": prediction.scores}
    readable = inference.to_result(example, prediction)
    return {**guid, **readable, "prediction": prediction.value, **scores}


def format_lines(inference: Inference, result: Result) -> Iterator[str]:
    """One line for a label, a number or an answer; several lines and an empty one for longer results."""
    yield from ["(empty)"] if result["prediction"] is None else inference.format_lines(result)
    if inference.is_block:
        yield ""


def check_task(model: SavedModel, name: str, folder: str) -> None:
    """BadInput: the model was trained for another task than ``name``."""
    trained = model.task.name
    if name == trained or (trained in {**SHORT_NAMES, **PAPER_NAMES}.values() and full_name(name) == trained):
        return
    raise BadInput(f"{folder}: a model for {trained}, not for {name}; name that task, or a model for {name}")


class TaskModel:
    """A saved model as ``malmoi.load_task`` returns it.

    Example:
        model = malmoi.load_task("runs/real-small/finetune/ynat/model/seed-1/model")
        model.predict(["코스피 2,600선 회복", "내일 전국에 비"])[0]["prediction"]   # '경제'
    """

    def __init__(self, saved: SavedModel) -> None:
        self.saved, self.task, self.settings = saved, saved.task, saved.settings

    def predict(self, texts: Sequence[RawInput]) -> list[Result]:
        """One result per text, as ``predict_texts`` returns them.

        A text is a line, a list of columns (premise and hypothesis, question and passage, turns) or a record such as
        ``{"premise": …, "hypothesis": …}``. Offsets count characters of the text in the result.
        """
        if isinstance(texts, str | Mapping):
            raise BadInput("predict takes a list of texts; put the text in brackets")
        blocks = (
            predict_texts(self.saved, texts[begin : begin + TEXTS_AT_ONCE], first=begin + 1)
            for begin in range(0, len(texts), TEXTS_AT_ONCE)
        )
        return [result for block in blocks for result in block]

    def __repr__(self) -> str:
        return f"<model for {self.task.name}>"
