"""A KLUE task as a generative model meets it: question in, text out, prediction from the text.

```
example ─ ask ─▶ input ─┐
instruction, shots ─────┴─ messages ─▶ model ─▶ answer ─ parse ─▶ prediction ─ Task.score ─▶ metrics
gold ─ tell ─▶ answer of a shot                    └ does not parse ─ unparsed ─▶ a wrong prediction
```
Reading and scoring are those of the encoder's task of the same name (``finetune.registry.TASKS``), so both kinds of
models stand in one table. Nothing here knows a model, and nothing of an answer is executed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from corpus.documents.errors import BadInput
from finetune.examples import Example

log = logging.getLogger(__name__)

Message = tuple[Literal["user", "assistant"], str]


@dataclass(frozen=True, slots=True)
class Generation:
    """Everything that differs between the eight tasks.

    Fields:
        task: its full name, ``klue-ner``.
        instruction: in Korean, what to do and the form of the answer.
        ask: an example's inputs as text.
        tell: the gold as an answer of that form; ``ValueError`` without a gold.
        parse: an answer to a prediction in the gold's form, as predictions.jsonl has it; None where it does not parse.
        unparsed: what an answer that does not parse counts as: a prediction of the right form that is wrong, so that
            it is never better to say nothing than to answer. The gold decides which; without one, any.
        choices: all demanded answers of a closed set; () where there is none.
        max_tokens: allowed length of an answer.
        balance: the class of an example that shots are balanced over; None: drawn from all alike.
    """

    task: str
    instruction: str
    ask: Callable[[Example], str]
    tell: Callable[[Example], str]
    parse: Callable[[str, Example], Any | None]
    unparsed: Callable[[Example], Any]
    choices: tuple[str, ...] = ()
    max_tokens: int = 32
    balance: Callable[[Example], str] | None = None


def few_shot(
    generation: Generation, train: Sequence[Example], shots: int, seed: int, scored: Sequence[Example] = ()
) -> list[Example]:
    """``shots`` examples of ``train``, the same for the same seed in whatever order the file is.

    The classes of ``balance`` take turns, so their numbers differ by one at most while all have examples left. Left
    out, and counted in the log: examples without a gold, those that read like one of ``scored``, and repetitions.
    ``BadInput`` where fewer than ``shots`` are left.
    """
    taken = {_squeeze(generation.ask(example)) for example in scored}
    by_class: dict[str, list[Example]] = {}
    for example in sorted(train, key=lambda example: example.guid):
        if example.gold is None or (text := _squeeze(generation.ask(example))) in taken:
            continue
        taken.add(text)
        by_class.setdefault(generation.balance(example) if generation.balance else "", []).append(example)
    usable = sum(map(len, by_class.values()))
    if usable < len(train):
        log.info("%s: %d of %d training examples cannot be shots", generation.task, len(train) - usable, len(train))
    if usable < shots:
        raise BadInput(
            f"{generation.task}: {shots} few-shot examples are wanted, {usable:,} of {len(train):,} training examples "
            "can be shown; ask for fewer, or give another train file"
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


def messages(generation: Generation, example: Example, shown: Sequence[Example] = ()) -> list[Message]:
    """The turns before the answer: the instruction with the first input, each shot's answer, the example's input. A
    shot that reads like the example itself is left out."""
    asked = generation.ask(example)
    own = _squeeze(asked)
    pairs = [(generation.ask(shot), generation.tell(shot)) for shot in shown]
    turns = list[Message]()
    for question, answer in pairs:
        if _squeeze(question) != own:
            turns += [("user", question), ("assistant", answer)]
    turns.append(("user", asked))
    return [("user", f"{generation.instruction}\n\n{turns[0][1]}"), *turns[1:]]


def _squeeze(text: str) -> str:
    return "".join(text.split())
