"""YNAT, KLUE-NLI, KLUE-RE and KLUE-STS: one word of a closed set, or one number.

KLUE-RE: the published llm-kr-eval file has 29 words for 30 relations, so its exact match cannot distinguish alternate
names of a person from those of an organization; here each relation has its own word. The two words of the sentence are
marked with <1> </1> and <2> </2>; entity types are not shown.

KLUE-STS: an unparsed answer counts as the mean of all golds, which adds nothing to the correlation; the parse rate is
shown. The far end of the scale would punish manners: 5 % unparsed and the rest perfect gave a Pearson of 82.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from finetune.examples import Example
from finetune.generative.prompts.choices import find_choice, find_number
from finetune.generative.prompts.prompt import TaskPrompt, korean_texts
from finetune.tasks.re.metrics import RE_LABELS
from finetune.tasks.sts.task import MAX_SIMILARITY
from finetune.tasks.ynat.task import YNAT_LABELS

RELATIONS = korean_texts("relations")  # label: the demanded word, and what word 2 is to word 1


def fields_renderer(**fields: str) -> Callable[[Example], str]:
    """Render one line per field: its Korean name and the text."""
    return lambda example: "\n".join(f"{name}: {example.inputs[field]}" for field, name in fields.items())


def make_label_prompt(
    task: str, names: Mapping[str, str], render_input: Callable[[Example], str], **fields: str
) -> TaskPrompt:
    """The prompt of a task whose answer is one word of a closed set.

    Args:
        names: label to the demanded word, in which a "/" is only accepted. Labels and the names of ``korean.yaml`` are
            accepted, too.
        fields: values in the instruction.
    """
    labels, words = list(names), {label: name.replace("/", "") for label, name in names.items()}
    accepted = {name: label for label, name in names.items()} | {label: label for label in labels}
    accepted |= korean_texts("names").get(task, {})

    return TaskPrompt(
        task=task,
        render_input=render_input,
        render_gold=lambda example: words[example.gold],
        parse=lambda answer, example: find_choice(answer, accepted, render_input(example)),
        unparsed=lambda example: labels[(labels.index(example.gold) + 1) % len(labels)],  # the one after the gold
        choices=tuple(words.values()),
        shot_class=lambda example: str(example.gold),
        fields=tuple(fields.items()),
    )


def render_marked_sentence(example: Example) -> str:
    """The sentence of KLUE-RE with markers, and the two words."""
    sentence = example.inputs["sentence"]
    spans = [example.inputs[key] for key in ("subject", "object")]
    marks = [(begin, 1, -end, f"<{number}>") for number, (begin, end) in enumerate(spans, start=1)]
    marks += [(end, 0, -begin, f"</{number}>") for number, (begin, end) in enumerate(spans, start=1)]
    marked = sentence
    for position, *_, mark in sorted(marks, reverse=True):  # ends before beginnings, the inner marker next to its word
        marked = marked[:position] + mark + marked[position:]
    words = [f"단어 {number}: {' '.join(sentence[slice(*span)].split())}" for number, span in enumerate(spans, start=1)]
    return "\n".join([f"문장: {' '.join(marked.split())}", *words])


def parse_similarity(answer: str, example: Example) -> float | None:
    """The stated number of the scale, 0 to 5."""
    value = find_number(answer)
    return value if value is not None and 0 <= value <= MAX_SIMILARITY else None


YNAT = make_label_prompt("ynat", {label: label for label in YNAT_LABELS}, fields_renderer(title="제목"))
KLUE_NLI = make_label_prompt(
    "klue-nli",
    {"entailment": "함의", "contradiction": "모순", "neutral": "중립"},
    fields_renderer(premise="전제", hypothesis="가설"),
)
KLUE_RE = make_label_prompt(
    "klue-re",
    {label: RELATIONS[label][0] for label in RE_LABELS},
    render_marked_sentence,
    relations="\n".join(f"{RELATIONS[x][0].replace('/', '')}: {RELATIONS[x][1]}" for x in RE_LABELS),
)
KLUE_STS = TaskPrompt(
    task="klue-sts",
    render_input=fields_renderer(sentence1="문장 1", sentence2="문장 2"),
    render_gold=lambda example: f"{example.gold:.2f}".removesuffix("0"),  # "3.71", "4.0"
    parse=parse_similarity,
    unparsed=lambda example: MAX_SIMILARITY / 2,  # a run has the mean of its golds
    max_tokens=16,
    shot_class=lambda example: str(min(int(example.gold), 4)),  # the integer part, 5 counted as 4
)
