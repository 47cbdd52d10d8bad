"""Personal data put into documents, with the spans that a detector must find.

A sentence with personal data is written for one kind of document and joins its sentences; particles stay glued to the
values. Spans are positions in the document's text, so they stay true whatever reads the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from launch.sample.documents.articles import Draft
from launch.sample.grammar import render
from launch.sample.pii_sentences import DIALOGUE, ENCYCLOPEDIA, NEWS, REVIEWS
from launch.sample.pii_values import VALUES, account
from launch.sample.seeding import random_for

SENTENCES = {"news": NEWS, "encyclopedia": ENCYCLOPEDIA, "reviews": REVIEWS, "dialogue": DIALOGUE}
PER_TYPE = 24  # sentences for each of the sixteen types, over all sources


def add_personal_data(drafts: Sequence[Draft], seed: int) -> list[Draft]:
    """The documents in order, some with a sentence more; every type gets ``PER_TYPE`` sentences.

    A document takes one such sentence at most, and only sentences that suit what it is about. The sources take turns.
    """
    rng = random_for(seed, "personal data")
    free = list(range(len(drafts)))
    rng.shuffle(free)
    changed = list(drafts)
    for number in range(PER_TYPE):
        for kind in VALUES:
            options = [(source, text) for source, types in SENTENCES.items() for text in types.get(kind, ())]
            turn = number % len(options)
            for source, text in options[turn:] + options[:turn]:
                suited, template = text.split(" > ")
                fits = (p for p in free if drafts[p].source == source and drafts[p].kind in suited.split(","))
                if (position := next(fits, None)) is not None:
                    free.remove(position)
                    changed[position] = _with_sentence(changed[position], kind, template, rng)
                    break
    return changed


def _with_sentence(draft: Draft, kind: str, template: str, rng: Random) -> Draft:
    bank, number_of_account = account(rng)
    value = number_of_account if kind == "ACCOUNT" else VALUES[kind](rng)
    lines = render(template, {"v": value, "bank": bank}, rng).split(" / ")
    if draft.source == "dialogue":
        lines = _as_utterances(lines, draft)
    at = draft.gap if draft.gap >= 0 else len(draft.lines)
    holder = next(index for index, line in enumerate(lines) if value in line)
    start = lines[holder].index(value)
    span = (at + holder, start, start + len(value), kind)
    return replace(draft, lines=(*draft.lines[:at], *lines, *draft.lines[at:]), personal=(span,))


def _as_utterances(lines: Sequence[str], draft: Draft) -> list[str]:
    """Lines that begin with ``U`` and ``S`` get the names of the dialogue's two speakers."""
    first = draft.lines[0].split(":")[0]
    second = next((line.split(":")[0] for line in draft.lines if not line.startswith(first + ":")), first)
    agents = ("상담원", "안내원", "예약봇", "역무원", "접수원")
    agent, user = (first, second) if first in agents else (second, first)
    return [line.replace("U:", f"{user}:", 1).replace("S:", f"{agent}:", 1) for line in lines]


def spans_of(draft: Draft) -> list[tuple[int, int, str]]:
    """Spans of personal data in ``draft.text``: start, end (exclusive), type."""
    offsets = [len(draft.head)]
    for line in draft.lines:
        offsets.append(offsets[-1] + len(line) + len(draft.separator))
    return [(offsets[line] + start, offsets[line] + end, kind) for line, start, end, kind in draft.personal]
