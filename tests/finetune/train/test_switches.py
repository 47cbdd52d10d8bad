"""What cannot go together is refused in one sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corpus.documents.errors import BadInput
from finetune.registry import TASKS
from finetune.task import Hyperparameters
from finetune.tasks.own import own_task
from finetune.train.switches import check_switches

OWN = {"name": "mood", "kind": "label", "text": "text", "label": "label", "labels": ["a", "b"]}


@pytest.mark.parametrize(
    ("task", "switches", "said"),
    [
        ("ynat", {"average": "swa", "average_after": 4}, "average=swa begins after 4 of 4 epochs.*lower average_after"),
        ("klue-sts", {"r_drop": 1.0}, "klue-sts is no task of labels"),
        ("klue-mrc", {"r_drop": 1.0}, "klue-mrc is no task of labels; set it for ynat"),
        ("wos", {"reset_layers": 4}, "reset_layers is 4, but the encoder has 3 layers"),
    ],
)
def test_a_switch_that_makes_no_sense_is_refused(task: str, switches: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=rf"^finetune\.overrides\.{task}: .*{said}"):
        check_switches(TASKS[task], replace(Hyperparameters(), **switches), 3)


def test_others_pass() -> None:
    switches = replace(Hyperparameters(), r_drop=1.0, average="ema", average_after=3, reset_layers=3)
    for task in (own_task(OWN), *(TASKS[name] for name in ("ynat", "klue-nli", "klue-ner", "klue-re"))):
        check_switches(task, switches, 3)
    with pytest.raises(BadInput, match="mood is no task of labels"):
        check_switches(own_task({"name": "mood", "kind": "span"}), switches, 3)
