"""The eight KLUE tasks as prompts: question in, text out, prediction from the text.

```
example ─ render_input ─▶ input ─┐
instruction, shots ──────────────┴─ build_messages ─▶ model ─▶ answer ─ parse ─▶ prediction ─▶ Task.score
gold ─ render_gold ─▶ answer of a shot                          └ cannot be parsed ─ unparsed ─▶ a wrong prediction
```
Data files and metrics are those of the encoder task of the same name (``finetune.registry.TASKS``), so the scores of
generative models and encoders are comparable. Answers are parsed, never executed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal

import yaml

from corpus.documents.errors import BadInput
from finetune.data.custom_files import squeeze
from finetune.examples import Example

log = logging.getLogger(__name__)

Message = tuple[Literal["user", "assistant"], str]

CUE = "\n답:"  # plain text: the answer follows it
DELIMITER = " "  # between cue and answer, as in lm-evaluation-harness
TEMPLATE = (  # ``render_plain`` as a chat template in Jinja
    "{% for message in messages %}{% if message['role'] == 'assistant' %}{{ ' ' + message['content'] + '\\n\\n' }}"
    "{% else %}{{ message['content'] + ('\\n답:' if message['role'] == 'user' else '\\n') }}{% endif %}{% endfor %}"
)


@dataclass(frozen=True, slots=True)
class TaskPrompt:
    """Everything that differs between the eight tasks.

    Fields:
        task: full name, such as ``klue-ner``.
        render_input: the inputs of an example as text.
        render_gold: the gold as an answer of the demanded form.
        parse: an answer as a prediction, in the form of ``predictions.jsonl``; None if it cannot be parsed.
        unparsed: the wrong prediction that an unparsed answer counts as, so that no answer is never better than an
            answer. It may depend on the gold.
        choices: all answers of a closed set; () for an open one.
        max_tokens: limit on the length of an answer.
        shot_class: the class over which few-shot examples are balanced; None: not balanced.
        fields: values of the ``{names}`` in the instruction.
    """

    task: str
    render_input: Callable[[Example], str]
    render_gold: Callable[[Example], str]
    parse: Callable[[str, Example], Any | None]
    unparsed: Callable[[Example], Any]
    choices: tuple[str, ...] = ()
    max_tokens: int = 32
    shot_class: Callable[[Example], str] | None = None
    fields: tuple[tuple[str, str], ...] = ()

    @property
    def file_name(self) -> str:
        """The task's name in llm-kr-eval, Inspect and lm-eval: ``klue_ner``, ``klue_wos``."""
        return "klue_" + self.task.removeprefix("klue-")

    @property
    def instruction(self) -> str:
        """In Korean: what to do, and the form of the answer."""
        text: str = korean_texts("instructions")[self.task]
        return text.format(**dict(self.fields))


@cache
def korean_texts(part: str) -> Any:
    """A part of ``korean.yaml``: "instructions" and "names" by task, "relations" of KLUE-RE, "choices" of files, or
    "judge" of MT-Bench."""
    texts: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("korean.yaml").read_text("utf-8"))
    return texts[part]


def draw_shots(
    prompt: TaskPrompt, train: Sequence[Example], shots: int, seed: int, scored: Sequence[Example] = ()
) -> list[Example]:
    """Draw ``shots`` examples of ``train`` by seed, independent of the order of the file.

    The classes of ``shot_class`` take turns. Left out, and counted in the log: examples without a gold, examples with
    the text of a ``scored`` one, and duplicates. ``BadInput`` if fewer than ``shots`` remain.
    """
    taken = {squeeze(prompt.render_input(example)) for example in scored}
    by_class: dict[str, list[Example]] = {}
    for example in sorted(train, key=lambda example: example.guid):
        if example.gold is None or (text := squeeze(prompt.render_input(example))) in taken:
            continue
        taken.add(text)
        by_class.setdefault(prompt.shot_class(example) if prompt.shot_class else "", []).append(example)
    usable = sum(map(len, by_class.values()))
    if usable < len(train):
        log.info("%s: %d of %d training examples cannot be shots", prompt.task, len(train) - usable, len(train))
    if usable < shots:
        raise BadInput(
            f"{prompt.task}: {shots} few-shot examples were requested, but only {usable:,} of {len(train):,} training "
            "examples can be shown; use fewer --shots, or another train file"
        )
    rng = Random(seed)
    queues = [rng.sample(by_class[name], len(by_class[name])) for name in sorted(by_class)]
    rng.shuffle(queues)
    chosen = list[Example]()
    while len(chosen) < shots:
        queues = [queue for queue in queues if queue]
        chosen += [queue.pop() for queue in queues[: shots - len(chosen)]]
    rng.shuffle(chosen)
    return chosen


def build_messages(prompt: TaskPrompt, example: Example, shots: Sequence[Example] = ()) -> tuple[Message, ...]:
    """The turns before the answer to an example; a shot with the same text as the example is left out."""
    asked = prompt.render_input(example)
    shown = [(prompt.render_input(shot), prompt.render_gold(shot)) for shot in shots]
    return build_turns([pair for pair in shown if squeeze(pair[0]) != squeeze(asked)], asked, prompt.instruction)


def build_turns(answered: Iterable[tuple[str, str]], asked: str, instruction: str = "") -> tuple[Message, ...]:
    """The turns before an answer: the instruction with the first input, the answers so far, and the open question."""
    turns: list[Message] = []
    for question, answer in answered:
        turns += [("user", question), ("assistant", answer)]
    turns.append(("user", asked))
    return ("user", f"{instruction}\n\n{turns[0][1]}" if instruction else turns[0][1]), *turns[1:]


def render_plain(messages: Sequence[Message]) -> str:
    """The turns before the answer as plain text, for models without a chat template.

    >>> render_plain([("user", "1+1"), ("assistant", "2"), ("user", "2+2")])
    '1+1\\n답: 2\\n\\n2+2\\n답:'
    """
    return "".join(text + CUE if role == "user" else f"{DELIMITER}{text}\n\n" for role, text in messages)
