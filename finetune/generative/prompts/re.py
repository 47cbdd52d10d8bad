"""KLUE-RE: the relation of two marked words as one of 30 different Korean words.

The published llm-kr-eval file has 29 words for 30 relations, so its exact match cannot distinguish alternate names of a
person from those of an organization. The two words are marked with <1> </1> and <2> </2>; entity types are not shown.
"""

from __future__ import annotations

from finetune.examples import Example
from finetune.generative.prompts.labels import make_label_prompt
from finetune.generative.prompts.prompt import korean_texts
from finetune.tasks.re.metrics import RE_LABELS

RELATIONS = korean_texts("relations")  # label: the demanded word, and what word 2 is to word 1
WORDS = {label: RELATIONS[label][0].replace("/", "") for label in RE_LABELS}
NAMES = {RELATIONS[label][0]: label for label in RE_LABELS} | {label: label for label in RE_LABELS}


def render_input(example: Example) -> str:
    """The sentence with markers, and the two words."""
    sentence = example.inputs["sentence"]
    spans = [example.inputs[key] for key in ("subject", "object")]
    marks = [(begin, 1, -end, f"<{number}>") for number, (begin, end) in enumerate(spans, start=1)]
    marks += [(end, 0, -begin, f"</{number}>") for number, (begin, end) in enumerate(spans, start=1)]
    marked = sentence
    for position, *_, mark in sorted(marks, reverse=True):  # ends before beginnings, the inner marker next to its word
        marked = marked[:position] + mark + marked[position:]
    words = [f"단어 {number}: {' '.join(sentence[slice(*span)].split())}" for number, span in enumerate(spans, start=1)]
    return "\n".join([f"문장: {' '.join(marked.split())}", *words])


KLUE_RE = make_label_prompt(
    "klue-re",
    WORDS,
    NAMES,
    render_input,
    fields=(("relations", "\n".join(f"{WORDS[label]}: {RELATIONS[label][1]}" for label in RE_LABELS)),),
)
