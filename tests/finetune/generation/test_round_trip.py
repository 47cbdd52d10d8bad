"""The gold of every file at hand told as an answer and read back scores 100, and so in every sort of file."""

from __future__ import annotations

import math

import pytest

from finetune.examples import Prediction
from finetune.generation.registry import GENERATIONS
from finetune.registry import TASKS

EXAMPLES = 2_000  # of a training file; dev files are taken whole


def check(name, examples, score, rows_of):
    generation = GENERATIONS[name]
    answers = [generation.tell(example) for example in examples]
    assert all(generation.parse(told, example) is not None for told, example in zip(answers, examples, strict=True))
    rows = rows_of(name, examples, answers)
    for row, example in zip(rows, examples, strict=True):
        assert TASKS[name].fault(example, Prediction(row.prediction)) is None
    for metric, value in score(name, examples, answers).items():
        if not math.isnan(value):  # area under a curve without probabilities
            assert round(value, 2) == 100, metric


@pytest.mark.parametrize("name", GENERATIONS)
@pytest.mark.parametrize("split", ["train", "dev"])
def test_gold_answers_of_the_sample_score_100(name, split, sample, score, rows_of):
    check(name, sample(name, split), score, rows_of)


@pytest.mark.parametrize("name", GENERATIONS)
def test_gold_answers_of_real_files_score_100(name, real_files, score, rows_of):
    for path in real_files(name):
        examples = TASKS[name].read(path)
        check(name, examples if "dev" in path.name else examples[:EXAMPLES], score, rows_of)
