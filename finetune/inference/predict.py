"""Predictions of a kept model on new text and on official files, as JSON and as lines for people.

```
line, columns, record ─ task.use.accept ─▶ example ─ featurize, predict, decode ─▶ prediction ─ task.use.tell ─▶ result
```
An official file is predicted in one go, as the stage does, so a kept model gives what it gave there, to the last digit.
In another batch a score may differ by rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus.documents.accelerator import choose_precision
from corpus.documents.errors import BadInput
from finetune.examples import Example, Prediction
from finetune.task import Given, Use
from finetune.task_names import PAPER_NAMES, SHORT_NAMES, full_name
from finetune.train.predict import predict

if TYPE_CHECKING:
    from finetune.saved_models.load import Kept

Result = dict[str, Any]
TEXTS_AT_ONCE = 4_096  # of a long input; enough to find texts of one length


def predict_texts(
    kept: Kept,
    inputs: Sequence[Given],
    batch_size: int | None = None,
    *,
    place: str = "input",
    first: int = 1,
) -> list[Result]:
    """One result an input, in order.

    A result has the texts in NFC, "prediction" in the form of the task's golds, "scores" where the task has any, and
    what ``Use.tell`` adds; offsets count characters of the text in the result. "prediction" is None where a text is
    blank. A record's "guid" stays.

    Args:
        inputs: lines (texts of a pair, question and passage, turns parted by tabs), lists of columns, or records.
        batch_size: most texts of a batch; None: what fits into a fixed number of tokens.
        place: what messages call an input before its number, which counts from ``first``.

    Raises:
        BadInput: an input is not of the task's form.
    """
    use = use_of(kept)
    examples: list[Example | None] = []
    for number, given in enumerate(inputs, start=first):
        is_blank = isinstance(given, str) and not given.strip()
        accepted = None if is_blank else use.accept(given, f"{place} {number}")
        guid = given.get("guid", "") if isinstance(given, Mapping) else ""
        examples.append(None if accepted is None else Example(str(guid), None, accepted))
    real = [example for example in examples if example is not None]
    predictions = iter(predict_examples(kept, real, batch_size))
    return [{"prediction": None} if example is None else tell(use, example, next(predictions)) for example in examples]


def predict_official(kept: Kept, path: Path, batch_size: int | None = None) -> list[Result]:
    """One result an example of an official file of the task, labelled or not, in its order."""
    examples = kept.task.read(path)
    predictions = predict_examples(kept, examples, batch_size)
    return [tell(use_of(kept), example, found) for example, found in zip(examples, predictions, strict=True)]


def predict_examples(kept: Kept, examples: Sequence[Example], batch_size: int | None = None) -> list[Prediction]:
    """What the model predicts for each example, under the precision that it was trained in where that is not slow."""
    if not examples:
        return []
    task, settings = kept.task, kept.settings
    features = task.featurize(examples, kept.tokenizer, int(settings["max_tokens"]), False)
    precision = settings["precision"]
    device = next(kept.model.parameters()).device
    if precision == "bf16" and device.type == "cpu":
        precision = choose_precision("auto", "precision", device).precision
    pad_id = int(kept.tokenizer.pad_token_id)
    return task.decode(examples, features, predict(task, kept.model, features, pad_id, precision, batch_size))


def use_of(kept: Kept) -> Use:
    """How the model's task meets new text."""
    if kept.task.use is None:
        raise BadInput(f"{kept.task.name}: this task reads no new text")
    return kept.task.use


def tell(use: Use, example: Example, prediction: Prediction) -> Result:
    """One result, as JSON."""
    guid = {"guid": example.guid} if example.guid else {}
    scores = {} if prediction.scores is None else {"scores": prediction.scores}
    told = use.tell(example, prediction)
    return {**guid, **told, "prediction": prediction.value, **scores}


def lines_for_people(use: Use, result: Result) -> Iterator[str]:
    """One line for a label, a number or an answer, a block with an empty line after it for what needs more."""
    yield from ["(empty)"] if result["prediction"] is None else use.lines(result)
    if use.is_block:
        yield ""


def check_task(kept: Kept, name: str, model: str) -> None:
    """BadInput: the model is of another task than ``name``."""
    own = kept.task.name
    if name == own or (own in {**SHORT_NAMES, **PAPER_NAMES}.values() and full_name(name) == own):
        return
    raise BadInput(f"{model}: a model of {own}, not of {name}; give that task, or a model of {name}")


class TaskModel:
    """A kept model as ``malmoi.load_task`` gives it.

    Example:
        model = malmoi.load_task("runs/real-small/finetune/ynat/model/seed-1/model")
        model.predict(["코스피 2,600선 회복", "내일 전국에 비"])[0]["prediction"]   # '경제'
    """

    def __init__(self, kept: Kept) -> None:
        self.kept, self.task, self.settings = kept, kept.task, kept.settings

    def predict(self, texts: Sequence[Given], batch_size: int | None = None) -> list[Result]:
        """One result a text, as ``predict_texts`` gives them; docs/predict.md says what stands in each.

        A text is a line, a list of columns (premise and hypothesis, question and passage, turns) or a record such as
        ``{"premise": …, "hypothesis": …}``. Offsets count characters of the text in the result.
        """
        if isinstance(texts, str | Mapping):
            raise BadInput("predict takes a list of texts; put this one into brackets")
        blocks = (
            predict_texts(self.kept, texts[begin : begin + TEXTS_AT_ONCE], batch_size, first=begin + 1)
            for begin in range(0, len(texts), TEXTS_AT_ONCE)
        )
        return [result for block in blocks for result in block]

    def __repr__(self) -> str:
        return f"<model of {self.task.name}>"
