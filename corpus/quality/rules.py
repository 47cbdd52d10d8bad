"""The quality rules of raw web text by name: which documents and sentences to drop (``corpus.quality``).

The paper has no such rules. Documents: FineWeb2's Korean configuration, share of Hangul, unrepairable mojibake.
Sentences: the same shares, letters, and length. Limits were set on twelve open corpora; their effect on each is in
docs/corpus.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from corpus.documents.errors import BadInput
from corpus.quality import fineweb2
from corpus.quality.boilerplate import BOILERPLATE
from corpus.quality.characters import HANGUL, LETTER, RARE, SPACE, Characters, read_characters

MOJIBAKE, NOT_KOREAN, TOO_LONG, FEW_LETTERS = "is_mojibake", "is_not_korean", "is_too_long", "has_few_letters"
MIN_HANGUL_OF_DOCUMENT = 0.3  # of its letters; documentation of programs has .39 and more
MIN_HANGUL_OF_SENTENCE, MIN_LETTERS_TO_JUDGE = 0.1, 10  # a name in Latin letters may be a sentence
MIN_LETTERS = 0.03  # of the characters of a sentence, without spaces; a law has notes of ten dates and one word
MAX_SENTENCE_CHARS = 2_000  # two sentences of 1.1 million have more
MORPHEMES = 2.2  # per eojeol; FineWeb2 counts morphemes of Kiwi
# FineWeb2 reads a line as a paragraph. Petitions are one line, dialogues and laws have marks at both ends of lines, and
# repeated lines are dropped one by one: a document that fails such a rule is kept if this share of its sentences ends
# like one (다. 요! 까?).
MIN_FINAL_SENTENCES = {
    "few_final_lines": fineweb2.MIN_FINAL_LINES,
    "repeated_line_chars": 0.5,
    "many_line_ends": 0.25,
    "many_bullet_lines": 0.5,
    "many_ellipsis_lines": 0.5,
}
FINAL, BARE_FINAL = re.compile("[다요죠까네][.!?…]+[\"'”’)]*$"), re.compile("[다요죠까네][.!?…]*[\"'”’)]*$")
MAX_LINE_CHARS = 10_000  # up to which a text of one line needs no marks at the ends of sentences
MAX_RARE, MIN_RARE = 0.35, 3  # syllables outside KS X 1001; 97 % of damaged sentences have more

DOCUMENT_RULES = (MOJIBAKE, NOT_KOREAN, *fineweb2.RULES)
SENTENCE_RULES = (TOO_LONG, MOJIBAKE, NOT_KOREAN, FEW_LETTERS)
Failed = Mapping[str, np.ndarray]


def check_names(rules_off: Mapping[str, Collection[str]]) -> None:
    """``BadInput`` for an unknown name in ``corpus.quality.rules_off``."""
    known = dict.fromkeys((*DOCUMENT_RULES, *SENTENCE_RULES, BOILERPLATE))
    for name in (name for names in rules_off.values() for name in names):
        if name not in known:
            raise BadInput(f'corpus.quality.rules_off: no quality rule "{name}"; the rules are {", ".join(known)}')


def failed_by_documents(
    texts: Sequence[str], sentences: Sequence[Sequence[str]], off: Sequence[Collection[str]]
) -> list[str | None]:
    """The first rule that each document fails, or None; ``off``: names of rules to skip, for each document."""
    characters = read_characters(texts)
    has_little_hangul = _hangul_share(characters) < MIN_HANGUL_OF_DOCUMENT
    failed = {MOJIBAKE: _is_mojibake(characters), NOT_KOREAN: has_little_hangul}
    failed |= fineweb2.failed_rules(characters, texts, MORPHEMES)
    for name, min_share in MIN_FINAL_SENTENCES.items():
        for place in np.flatnonzero(failed[name]).tolist():
            final = FINAL if "\n" in texts[place] or len(texts[place]) > MAX_LINE_CHARS else BARE_FINAL
            finals = sum(final.search(sentence[-9:]) is not None for sentence in sentences[place])
            failed[name][place] = finals < min_share * len(sentences[place])
    return _first_failed(failed, off)


def failed_by_sentences(sentences: Sequence[str], off: Sequence[Collection[str]]) -> list[str | None]:
    """The first rule that each sentence fails, or None."""
    characters = read_characters(sentences)
    chars, letters = characters.end_T - characters.first_T, characters.number_of(characters.is_any(LETTER))
    spaces = characters.number_of(characters.is_any(SPACE))
    has_little_hangul = _hangul_share(characters) < MIN_HANGUL_OF_SENTENCE
    failed = {
        TOO_LONG: chars > MAX_SENTENCE_CHARS,
        MOJIBAKE: _is_mojibake(characters),
        NOT_KOREAN: (letters >= MIN_LETTERS_TO_JUDGE) & has_little_hangul,
        FEW_LETTERS: letters < MIN_LETTERS * (chars - spaces),
    }
    return _first_failed(failed, off)


def _hangul_share(characters: Characters) -> np.ndarray:
    letters = characters.number_of(characters.is_any(LETTER))
    return characters.number_of(characters.is_any(HANGUL)) / np.maximum(letters, 1)


def _is_mojibake(characters: Characters) -> np.ndarray:
    """Whether many syllables are outside KS X 1001: UTF-8 that was read as CP949."""
    rare = characters.number_of(characters.is_any(RARE))
    return (rare >= MIN_RARE) & (rare > MAX_RARE * characters.number_of(characters.is_any(HANGUL)))


def _first_failed(failed: Failed, off: Sequence[Collection[str]]) -> list[str | None]:
    names = list(failed)
    is_failed = np.stack([failed[name] for name in names])
    first: list[str | None] = [None] * is_failed.shape[1]
    for place in np.flatnonzero(is_failed.any(axis=0)).tolist():
        first[place] = next((names[n] for n in np.flatnonzero(is_failed[:, place]) if names[n] not in off[place]), None)
    return first
