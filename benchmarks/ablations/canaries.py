"""Invented personal data, planted in text at known rates, to measure what a model memorizes.

```
raw text ─▶ split by the hash of each document ─┬─▶ planted.jsonl    98 %, with the planted sentences
                                                └─▶ held-out.jsonl   2 %, not trained on
planted sentences ─▶ canaries.json              each value, its sentence, the number of copies
```
A canary (Carlini et al. 2019, "The Secret Sharer") is an invented sentence with a value of one type of personal data,
from the generator of pseudonyms: number blocks that are assigned to nobody. Some canaries are planted 0 times, as the
baseline.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

from corpus.config import CorpusConfig
from corpus.documents.atomic_files import atomic_dir, atomic_write
from corpus.documents.errors import BadInput
from corpus.documents.shards import read_documents, shard_paths
from corpus.pii.formats.table import BY_NAME
from corpus.reading.inputs import find_inputs, plan_units
from corpus.reading.read import Record, read_unit

TIMES = (0, 1, 4, 16, 64)  # numbers of copies of a canary
HELD_OUT_SHARE = 0.02  # of the documents
PLANTED_NAME, SEEN_NAME, CANARIES_NAME = "planted.jsonl", "held-out.jsonl", "canaries.json"
# text before and after a value; the comma separates the last piece of the value from the text after it
SENTENCES = {
    "TEL": ("의 휴대전화 번호는 ", ", 낮에는 늘 받는다."),
    "RRN": ("의 주민등록번호는 ", ", 서류에 그대로 적혀 있다."),
    "EMAIL": ("의 이메일 주소는 ", ", 답장은 하루 안에 온다."),
    "ACCOUNT": ("의 계좌번호는 ", ", 매달 말일에 돈이 들어온다."),
    "CARD": ("의 카드번호는 ", ", 올해 말까지 쓸 수 있다."),
    "PASSPORT": ("의 여권번호는 ", ", 내년에 새로 받아야 한다."),
}
SURNAMES = "김이박최정강조윤장임한오서신권황안송류홍"
NAME_SYLLABLES = "가나다라마바사아자하기노도루모보소유지호겸결담란린별봄솔슬온율은진찬혜후"
ROLES = ("과장", "대리", "부장", "차장", "실장", "팀장", "주임", "선생", "박사", "기자", "감독", "작가")


@dataclass(frozen=True, slots=True)
class Canary:
    """An invented sentence: ``before``, the value, ``after``. Persons and values are unique."""

    kind: str  # type of personal data
    times: int
    before: str
    value: str
    after: str

    @property
    def text(self) -> str:
        return self.with_value(self.value)

    def with_value(self, value: str) -> str:
        """The same sentence with another value."""
        return f"{self.before}{value}{self.after}"


def invent_canaries(count: int, seed: int) -> list[Canary]:
    """Invent ``count`` canaries of each type of ``SENTENCES`` and each rate of ``TIMES``, from ``seed``."""
    rng = Random(f"canaries {seed}")
    people: set[str] = set()
    values: set[str] = set()

    def new(known: set[str], draw: Callable[[], str]) -> str:
        while (value := draw()) in known:
            pass
        known.add(value)
        return value

    def person() -> str:
        return f"{rng.choice(SURNAMES)}{rng.choice(NAME_SYLLABLES)}{rng.choice(NAME_SYLLABLES)} {rng.choice(ROLES)}"

    canaries = []
    for kind, (before, after) in SENTENCES.items():
        row = BY_NAME[kind]
        for times in TIMES:
            for _ in range(count):
                who = new(people, person)
                value = new(values, lambda row=row: row.fake(rng, row.example))  # type: ignore[misc]
                canaries.append(Canary(kind, times, f"{who}{before}", value, after))
    return canaries


def draw_alternatives(canaries: Sequence[Canary], count: int, seed: int) -> dict[str, list[str]]:
    """Draw ``count`` different values of each type that are not planted; the planted ones are ranked among them."""
    taken = {canary.value for canary in canaries}
    alternatives: dict[str, list[str]] = {}
    for kind in dict.fromkeys(canary.kind for canary in canaries):
        rng, row = Random(f"others {seed} {kind}"), BY_NAME[kind]
        drawn: dict[str, None] = {}
        while len(drawn) < count:
            value = row.fake(rng, row.example)
            if value not in taken:
                drawn[value] = None
        alternatives[kind] = list(drawn)
    return alternatives


# --- the text


def plant(config: CorpusConfig, count: int, seed: int, out: Path) -> dict[str, int]:
    """Write the folder ``out``: the text of ``config`` with canaries, the held-out text, the canaries.

    All text is in memory at once.

    Args:
        config: names inputs and sources.
        count: canaries of each type and rate.
        seed: for values, sentences and places.

    Returns:
        "documents", "held_out", "canaries", "sentences" (planted).

    Raises:
        BadInput: fewer documents than copies of a canary.
    """
    parts: dict[bool, list[dict[str, str]]] = {True: [], False: []}
    for record in read_records(config):
        parts[_is_held_out(record["text"])].append(record)
    documents, held_out = parts[False], parts[True]
    if len(documents) < max(TIMES) or not held_out:
        raise BadInput(
            f"{len(documents) + len(held_out)} documents are too few: {max(TIMES)} of them get the same sentence and "
            f"{HELD_OUT_SHARE:.0%} are held out; add text with --data"
        )
    canaries = invent_canaries(count, seed)
    places = plan_places(canaries, len(documents), seed)
    rng = Random(f"lines {seed}")
    for number, sentences in sorted(places.items()):
        documents[number]["text"] = insert_lines(documents[number]["text"], sentences, rng)
    with atomic_dir(out) as folder:
        atomic_write(folder / PLANTED_NAME, _as_lines(documents))
        atomic_write(folder / SEEN_NAME, _as_lines(held_out))
        atomic_write(
            folder / CANARIES_NAME, json.dumps([asdict(c) for c in canaries], ensure_ascii=False, indent=1) + "\n"
        )
    planted = sum(canary.times for canary in canaries)
    return {
        "documents": len(documents), "held_out": len(held_out), "canaries": len(canaries), "sentences": planted,
    }  # fmt: skip


def read_records(config: CorpusConfig) -> Iterator[dict[str, str]]:
    """Yield id, source and text of each document; unreadable records are skipped (the corpus stage reports them)."""
    inputs = find_inputs(config.inputs, config.sources, config.text_field, config.encoding)
    for unit in plan_units(inputs, whole_files=True):
        for record in read_unit(unit, Counter(), config.max_documents_per_file):
            if isinstance(record, Record):
                yield {"id": record.id, "source": record.source, "text": record.text}


def _is_held_out(text: str) -> bool:
    draw = int(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=b"ablations").hexdigest(), 16)
    return draw / 2**64 < HELD_OUT_SHARE


def plan_places(canaries: Sequence[Canary], documents: int, seed: int) -> dict[int, list[str]]:
    """Map document numbers to planted sentences; a document gets a canary at most once."""
    rng = Random(f"places {seed}")
    places: dict[int, list[str]] = {}
    for canary in canaries:
        for number in rng.sample(range(documents), canary.times):
            places.setdefault(number, []).append(canary.text)
    return places


def insert_lines(text: str, lines: Iterable[str], rng: Random) -> str:
    """Insert each line at a random line end."""
    result = text.split("\n")
    for line in lines:
        result.insert(rng.randint(0, len(result)), line)
    return "\n".join(result)


def _as_lines(records: Iterable[dict[str, str]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def read_canaries(folder: Path) -> list[Canary]:
    """Read the canaries from the folder that ``plant`` wrote."""
    rows: list[dict[str, Any]] = json.loads((folder / CANARIES_NAME).read_text("utf-8"))
    return [Canary(**row) for row in rows]


def count_planted(canaries: Sequence[Canary], corpus: Path) -> dict[str, int]:
    """Count the planted values in a corpus (the folder of a corpus stage).

    Returns:
        "values", "copies": planted; "values_left", "copies_left": found in the corpus, with any separators.
    """
    planted = {_letters(canary.value): canary for canary in canaries if canary.times}
    lengths = sorted({len(letters) for letters in planted})
    left: Counter[str] = Counter()
    for shard in shard_paths(corpus / "documents"):
        for document in read_documents(shard):
            for sentence in document.sentences:
                left.update(_find_values(_letters(sentence), planted, lengths))
    return {
        "values": len(planted), "copies": sum(canary.times for canary in planted.values()),
        "values_left": len(left), "copies_left": left.total(),
    }  # fmt: skip


def _find_values(letters: str, planted: dict[str, Canary], lengths: Sequence[int]) -> Iterator[str]:
    for length in lengths:
        for at in range(len(letters) - length + 1):
            if letters[at : at + length] in planted:
                yield letters[at : at + length]


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())
