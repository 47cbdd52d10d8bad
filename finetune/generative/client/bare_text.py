"""Turns as plain text, for models without a chat template: each question ends in a cue, each answer in an empty line.

Both methods and the exports show a base model the same text, so that their scores compare.
"""

from __future__ import annotations

from typing import Literal

CUE = "\n답:"  # the answer goes on after it
DELIMITER = " "  # between cue and answer, as in lm-evaluation-harness
TEMPLATE = (  # the same for a tokenizer; Jinja
    "{% for message in messages %}{% if message['role'] == 'assistant' %}{{ ' ' + message['content'] + '\\n\\n' }}"
    "{% else %}{{ message['content'] + ('\\n답:' if message['role'] == 'user' else '\\n') }}{% endif %}{% endfor %}"
)


def bare_text(messages: list[tuple[Literal["user", "assistant"], str]]) -> str:
    """The turns before the answer.

    >>> bare_text([("user", "1+1"), ("assistant", "2"), ("user", "2+2")])
    '1+1\\n답: 2\\n\\n2+2\\n답:'
    """
    return "".join(text + CUE if role == "user" else f"{DELIMITER}{text}\n\n" for role, text in messages)
