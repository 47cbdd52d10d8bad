"""An official file again, with predictions in place of its labels."""

from __future__ import annotations

from pathlib import Path

from corpus.documents.errors import BadInput
from finetune.predictions import match
from finetune.registry import find_task


def export_predictions(name: str, source: Path, predictions: Path, target: Path) -> int:
    """Write the official file ``source`` again with predictions in place of its labels.

    Args:
        name: the task.
        source: an official file, labelled or not, plain or ``.zst``.
        predictions: one for every example of ``source``.
        target: in the layout of ``source``, plain.

    Returns:
        the number of examples.

    Raises:
        BadInput: unknown task, a broken file, or predictions that do not fit the examples one to one.
    """
    task = find_task(name)
    if target.resolve() == source.resolve():
        raise BadInput(f"{target}: this is the official file itself; give the predictions a name of their own")
    examples = task.read(source)
    found = match(task, examples, predictions, source)
    values = {example.guid: prediction.value for example, prediction in zip(examples, found, strict=True)}
    task.write(source, values, target)
    return len(examples)
