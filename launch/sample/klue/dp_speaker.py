"""Phrases and clauses of the dependency sentences, drawn from the lexicon and the world's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from launch.sample.klue import dp_lexicon as lexicon
from launch.sample.klue.conjugate import Ending
from launch.sample.klue.dp_lexicon import FRAMES, NOUNS, Frame
from launch.sample.klue.tree import Node, adverbial, attribute, noun, verb

# "person", "city", "institution", "company" to proper nouns; words parted by spaces
Names = Mapping[str, Sequence[str]]


class Speaker:
    """Draws phrases and clauses; everything random comes from ``rng``."""

    def __init__(self, rng: Random, names: Names) -> None:
        self.rng, self.names = rng, names
        self.named: set[str] = set()  # names used in this sentence: nobody is named twice

    def maybe(self, share: float) -> bool:
        return self.rng.random() < share

    def name(self, kind: str, particle: str, bare: bool = False) -> Node:
        """A proper noun of one or more words; a person may have 씨 (Mr, Ms) or, unless ``bare``, a trade."""
        name = self.rng.choice([n for n in self.names[kind] if n not in self.named])
        self.named.add(name)
        *first, last = name.split()
        spec = f"{last}/NNP"
        before = [noun(f"{word}/NNP") for word in first]
        drawn = self.rng.random()
        if kind == "person" and particle and drawn < 0.3:
            return noun("씨/NNB", particle).under(noun(spec))
        if kind == "person" and not bare and drawn < 0.45:
            before.append(noun(self.rng.choice(NOUNS["role"])))
        return noun(spec, particle).under(*before)

    def phrase(self, kind: str, particle: str, bare: bool = False) -> Node:
        """A noun phrase of a class; ``bare`` leaves out modifiers."""
        if kind in self.names:
            return self.name(kind, particle, bare)
        head = self.rng.choice(NOUNS[kind])
        if not bare and head in lexicon.COUNTERS and particle == "을" and self.maybe(0.5):
            number = self.rng.randrange(2, 50) * 10
            return noun(f"{number}/SN+{lexicon.COUNTERS[head]}/NNB", particle).under(noun(head))
        if not bare and kind == "group" and head.endswith("+들/XSN") and self.maybe(0.2):
            number = self.rng.randrange(3, 90) * 10
            counted = noun(f"{number}/SN+{self.rng.choice(('여/XSN+명', '명'))}/NNB", particle)
            return counted.under(noun(head.removesuffix("+들/XSN")))
        return noun(head, particle).under(*([] if bare else self.modifiers(kind)))

    def modifiers(self, kind: str) -> list[Node]:
        tables = (lexicon.MODIFIERS, lexicon.DETERMINERS, lexicon.COMPOUNDS)
        table = self.rng.choices((None, *tables), (5, 3, 1, 2))[0]
        if kind in ("site", "event") and self.maybe(0.2):
            return [self.name("city", "의")]
        if table is None or kind not in table:
            return []
        return [attribute(self.rng.choice(table[kind]))]

    def when(self) -> Node:
        """A time: a word such as "last year", a date or an hour."""
        drawn = self.rng.random()
        if drawn < 0.6:
            return adverbial(self.rng.choice(lexicon.TIMES))
        if drawn < 0.8:
            day = noun(f"{self.rng.randint(1, 28)}/SN+일/NNB", "에")
            return day.under(noun(f"{self.rng.randint(1, 12)}/SN+월/NNB"))
        half, hour = self.rng.choice((("오전", self.rng.randint(9, 11)), ("오후", self.rng.randint(1, 8))))
        return noun(f"{hour}/SN+시/NNB", "에").under(noun(f"{half}/NNG"))

    def clause(
        self,
        frame: Frame,
        ending: Ending,
        label: str = "VP",
        *,
        subject: Node | None = None,
        timed: bool = True,
        gap: int = -1,
    ) -> Node:
        """A clause: time, subject, arguments (but the one at ``gap``), adverb, verb."""
        parts = [self.when()] if timed and frame.timed and self.maybe(0.35) else []
        if subject:
            parts.insert(self.rng.randint(0, len(parts)), subject)
        parts += [self.phrase(kind, p) for i, (kind, p) in enumerate(frame.arguments) if i != gap]
        adverbs = lexicon.ADVERBS.get(frame.subject, lexicon.ADVERBS["thing"])
        if frame.timed and self.maybe(0.2):
            parts.append(adverbial(self.rng.choice(adverbs)))
        return verb(self.rng.choice(frame.verbs), ending, label).under(*parts)

    def frame(self, *subjects: str) -> Frame:
        return self.rng.choice([f for f in FRAMES if not subjects or f.subject in subjects])

    def topic(self, kind: str) -> Node:
        return self.phrase(kind, self.rng.choice(("은", "은", "이")))
