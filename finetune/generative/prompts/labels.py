"""YNAT and KLUE-NLI: one word of a closed set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from finetune.examples import Example
from finetune.generative.prompts.answers import find_choice
from finetune.generative.prompts.prompt import TaskPrompt, require_gold
from finetune.tasks.nli.task import NLI_LABELS
from finetune.tasks.ynat.task import YNAT_LABELS

# label to demanded word, and other accepted names; "/": accepted with a sign, a space or nothing there
YNAT_WORDS = {label: label for label in YNAT_LABELS}
YNAT_NAMES = {
    "정치": "정치", "경제": "경제", "사회": "사회", "생활/문화": "생활문화", "세계": "세계", "IT/과학": "IT과학",
    "스포츠": "스포츠", "politics": "정치", "economy": "경제", "society": "사회", "life/culture": "생활문화",
    "world": "세계", "IT/science": "IT과학", "sports": "스포츠",
}  # fmt: skip
NLI_WORDS = {"entailment": "함의", "contradiction": "모순", "neutral": "중립"}


def render_fields(fields: Mapping[str, str], example: Example) -> str:
    """One line per field: its Korean name and the text."""
    return "\n".join(f"{name}: {example.inputs[field]}" for field, name in fields.items())


def render_label(words: Mapping[str, str], example: Example) -> str:
    """The word of the gold label."""
    return words[require_gold(example)]


def parse_word(names: Mapping[str, str], answer: str, example: Example) -> str | None:
    """The label that the answer names."""
    return find_choice(answer, names)


def next_label(labels: Sequence[str], example: Example) -> str:
    """The label after the gold one in the list; after the last, the first."""
    return labels[(labels.index(example.gold) + 1) % len(labels)] if example.gold is not None else labels[0]


def make_label_prompt(
    task: str,
    words: Mapping[str, str],
    names: Mapping[str, str],
    render_input: Callable[[Example], str],
    fields: tuple[tuple[str, str], ...] = (),
) -> TaskPrompt:
    """The prompt of a task whose answer is one word of a closed set.

    Args:
        words: label to the demanded word.
        names: other accepted names, to the label.
    """
    return TaskPrompt(
        task=task,
        render_input=render_input,
        render_gold=partial(render_label, words),
        parse=partial(parse_word, {word: label for label, word in words.items()} | dict(names)),
        unparsed=partial(next_label, tuple(words)),
        choices=tuple(words.values()),
        shot_class=require_gold,
        fields=fields,
    )


YNAT = make_label_prompt("ynat", YNAT_WORDS, YNAT_NAMES, partial(render_fields, {"title": "제목"}))
KLUE_NLI = make_label_prompt(
    "klue-nli",
    NLI_WORDS,
    {label: label for label in NLI_LABELS},
    partial(render_fields, {"premise": "전제", "hypothesis": "가설"}),
)
