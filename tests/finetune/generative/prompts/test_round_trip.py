"""Gold answers, rendered and parsed again, score 100 on all available files, except as stated here."""

from __future__ import annotations

import math

import pytest

from finetune.examples import Prediction, Row
from finetune.generative.prompts import PROMPTS
from finetune.registry import TASKS
from finetune.tasks.ner.task import find_entities

EXAMPLES = 1_000  # of a training file; dev files are taken whole


def check(name, examples):
    """Every gold answer parses to a prediction of the task's form; what they score together."""
    prompt, task = PROMPTS[name], TASKS[name]
    parsed = [prompt.parse(prompt.render_gold(example), example) for example in examples]
    assert None not in parsed
    assert {
        task.inspection.validate(example, Prediction(value)) for example, value in zip(examples, parsed, strict=True)
    } == {None}
    rows = [Row(example.guid, example.gold, value) for example, value in zip(examples, parsed, strict=True)]
    figures = {metric: round(value, 2) for metric, value in task.score(rows).items() if not math.isnan(value)}
    assert figures
    return figures


@pytest.mark.parametrize("name", PROMPTS)
@pytest.mark.parametrize("split", ["train", "dev"])
def test_gold_answers_of_the_sample_score_100(name, split, sample):
    figures = check(name, sample(name, split))
    assert set(figures.values()) == {100}


@pytest.mark.parametrize("name", sorted(set(PROMPTS) - {"klue-ner"}))
def test_gold_answers_of_real_files_score_100(name, real_files):
    for path in real_files(name):
        examples = TASKS[name].read(path)
        figures = check(name, examples if "dev" in path.name else examples[:EXAMPLES])
        assert set(figures.values()) == {100}, path


def test_entities_of_real_text_that_come_back_elsewhere_are_few_and_explained(shared):
    """13 of 14,255, each the same text earlier in the sentence, as 이 (a surname) in 이후 (later), and two stray I-."""
    task, prompt = TASKS["klue-ner"], PROMPTS["klue-ner"]
    examples = task.read(shared("data/klue/official/klue-ner-v1.1/klue-ner-v1.1_dev.tsv.zst"))
    moved, stray, total, rows = [], 0, 0, []
    for example in examples:
        text, parsed = example.inputs["text"], prompt.parse(prompt.render_gold(example), example)
        rows.append(Row(example.guid, example.gold, parsed))
        gold, found = (set(find_entities(text, tags)) for tags in (example.gold, parsed))
        stray += sum(kind.startswith("(") for kind, _, _ in gold)
        total += sum(not kind.startswith("(") for kind, _, _ in gold)
        pairs = zip(sorted(gold - found), sorted(found - gold), strict=False)
        moved += [(text[a:b], text[c:d], kind == other, c < a) for (kind, a, b), (other, c, d) in pairs]
    assert (len(moved), stray, total) == (13, 2, 14_255)
    assert all(words == others and is_same and is_earlier for words, others, is_same, is_earlier in moved)
    assert [words for words, *_ in moved].count("이") == 8
    assert task.score(rows)["entity_macro_f1"] == pytest.approx(99.93, abs=0.01)
