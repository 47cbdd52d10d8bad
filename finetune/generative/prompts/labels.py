"""YNAT and KLUE-NLI for generative models: one word of a closed set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from finetune.examples import Example
from finetune.generative.prompts.answers import find_choice
from finetune.generative.prompts.record import Generation
from finetune.tasks.labels import NLI_LABELS, YNAT_LABELS

# label to what is demanded, and what else is understood; "/": with a sign, a space or nothing between
YNAT_WORDS = {label: label for label in YNAT_LABELS}
YNAT_NAMES = {
    "정치": "정치", "경제": "경제", "사회": "사회", "생활/문화": "생활문화", "세계": "세계", "IT/과학": "IT과학",
    "스포츠": "스포츠", "politics": "정치", "economy": "경제", "society": "사회", "life/culture": "생활문화",
    "world": "세계", "IT/science": "IT과학", "sports": "스포츠",
}  # fmt: skip
NLI_WORDS = {"entailment": "함의", "contradiction": "모순", "neutral": "중립"}


def ask_fields(fields: Mapping[str, str], example: Example) -> str:
    """A line for each field: its Korean name and the text."""
    return "\n".join(f"{name}: {example.inputs[field]}" for field, name in fields.items())


def tell_word(words: Mapping[str, str], example: Example) -> str:
    """The word of the gold label."""
    return words[gold_of(example)]


def gold_of(example: Example) -> str:
    if example.gold is None:
        raise ValueError(f"{example.guid}: no gold to tell")
    return str(example.gold)


def parse_word(names: Mapping[str, str], answer: str, example: Example) -> str | None:
    """The label that the answer names."""
    return find_choice(answer, names)


def next_label(labels: Sequence[str], example: Example) -> str:
    """A label that is not the gold: the one after it, the first after the last."""
    return labels[(labels.index(example.gold) + 1) % len(labels)] if example.gold is not None else labels[0]


def make_word_generation(
    task: str, words: Mapping[str, str], names: Mapping[str, str], instruction: str, ask: Callable[[Example], str],
    max_tokens: int = 32,
) -> Generation:  # fmt: skip
    """The record of a task whose answer is one word of a closed set.

    Args:
        words: label to the word that is demanded.
        names: what is understood, to the label.
    """
    return Generation(
        task=task,
        instruction=instruction,
        ask=ask,
        tell=partial(tell_word, words),
        parse=partial(parse_word, {word: label for label, word in words.items()} | dict(names)),
        unparsed=partial(next_label, tuple(words)),
        choices=tuple(words.values()),
        max_tokens=max_tokens,
        balance=gold_of,
    )


YNAT = make_word_generation(
    "ynat", YNAT_WORDS, YNAT_NAMES,
    "뉴스 제목을 읽고 어느 분야의 기사인지 고르세요.\n"
    "정치, 경제, 사회, 생활문화, 세계, IT과학, 스포츠 가운데 하나만 쓰고 다른 말은 붙이지 마세요.",
    partial(ask_fields, {"title": "제목"}),
)  # fmt: skip
KLUE_NLI = make_word_generation(
    "klue-nli", NLI_WORDS, {label: label for label in NLI_LABELS},
    "전제가 참이라고 할 때 가설이 어떻게 되는지 고르세요.\n"
    "함의: 가설도 반드시 참이다.\n모순: 가설은 참일 수 없다.\n중립: 전제만으로는 가설이 참인지 거짓인지 정할 수 없다.\n"
    "함의, 모순, 중립 가운데 하나만 쓰고 다른 말은 붙이지 마세요.",
    partial(ask_fields, {"premise": "전제", "hypothesis": "가설"}),
)  # fmt: skip
