"""Few-shot examples and the conversation that is sent."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from corpus.documents.errors import BadInput
from finetune.examples import Example
from finetune.generative.prompts import PROMPTS
from finetune.generative.prompts.prompt import build_messages, draw_shots
from finetune.tasks.ynat.task import YNAT_LABELS

YNAT = PROMPTS["ynat"]


def title(number, label, text=None):
    return Example(f"ynat-{number}", label, {"title": text or f"{label} 소식 {number}"})


TRAIN = [title(number, label) for number, label in enumerate(["경제"] * 80 + list(YNAT_LABELS))]


def test_examples_are_balanced_over_classes_that_are_rare_in_the_file():
    chosen = draw_shots(YNAT, TRAIN, shots=7, seed=1)
    assert Counter(example.gold for example in chosen) == Counter(YNAT_LABELS)


def test_the_same_seed_draws_the_same_from_a_file_in_another_order():
    shuffled = random.Random(3).sample(TRAIN, len(TRAIN))
    assert draw_shots(YNAT, TRAIN, 5, seed=1) == draw_shots(YNAT, shuffled, 5, seed=1)


def test_other_seeds_draw_other_examples_and_classes():
    drawn = [draw_shots(YNAT, TRAIN, 3, seed) for seed in range(8)]
    assert len({tuple(example.guid for example in shown) for shown in drawn}) > 4
    assert len({shown[0].gold for shown in drawn}) > 1


def test_a_scored_text_a_doubled_text_and_one_without_gold_are_never_shown():
    scored = title(900, "세계", "같은 제목")
    train = [
        title(1, "사회", "같은 제목"),
        title(2, "정치", "두 번"),
        title(3, "정치", "두 번"),
        title(4, None, "x"),
        title(5, "세계"),
    ]
    chosen = draw_shots(YNAT, train, 2, seed=1, scored=[scored])
    assert sorted(example.guid for example in chosen) == ["ynat-2", "ynat-5"]
    with pytest.raises(BadInput, match="only 2 of 5 training examples can be shown"):
        draw_shots(YNAT, train, 3, seed=1, scored=[scored])


@pytest.mark.parametrize("left_out", [0, 1, 3])
def test_examples_that_cannot_be_shown_are_counted(caplog: pytest.LogCaptureFixture, left_out: int):
    caplog.set_level("INFO")
    train = [title(number, "세계") for number in range(5)]
    train = [replace(example, gold=None) if n < left_out else example for n, example in enumerate(train)]
    assert len(draw_shots(YNAT, train, 5 - left_out, seed=1)) == 5 - left_out
    assert caplog.messages == ([f"ynat: {left_out} of 5 training examples cannot be shots"] if left_out else [])


def test_the_instruction_comes_once_before_the_first_input():
    asked, shown = title(1, "세계", "새 도시"), [title(2, "경제", "은행"), title(3, "정치", "국회")]
    assert build_messages(YNAT, asked, shown) == (
        ("user", f"{YNAT.instruction}\n\n제목: 은행"),
        ("assistant", "경제"),
        ("user", "제목: 국회"),
        ("assistant", "정치"),
        ("user", "제목: 새 도시"),
    )
    assert build_messages(YNAT, asked) == (("user", f"{YNAT.instruction}\n\n제목: 새 도시"),)


def test_an_example_with_the_text_that_is_asked_is_not_shown_with_its_answer():
    asked = title(1, "세계", "새 도시")
    assert build_messages(YNAT, asked, [title(2, "세계", "새 도시")]) == build_messages(YNAT, asked)


@pytest.mark.parametrize("name", PROMPTS)
def test_every_task_shows_examples_of_the_sample(name, sample):
    prompt, train, dev = PROMPTS[name], sample(name, "train"), sample(name, "dev")
    shown = draw_shots(prompt, train, 4, seed=1, scored=dev)
    turns = build_messages(prompt, dev[0], shown)
    assert [role for role, _ in turns] == ["user", "assistant"] * 4 + ["user"]
    assert turns[0][1].startswith(prompt.instruction)
