"""Training pairs and evaluation sets, read from documents, KLUE files and files of the user.

```
documents    sentence → the three after it; two neighbours                      pair
KLUE-NLI     premise, what it entails, what contradicts it                      triplet    similarity
KLUE-STS     two sentences and their similarity                                 graded     similarity
KLUE-MRC     question → passage                                                 pair       search
embed.train  by the columns of the file                                         any
```
A text of a pair that contains an evaluation text is dropped with its pair, from every source (``run.prepare``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corpus.documents.errors import BadInput
from corpus.documents.section import warn_once
from corpus.documents.shards import Document, iter_documents, read_tables, row_group_sizes, shard_paths
from finetune.data.custom_files import Record, read_table
from finetune.data.files import find_file
from finetune.embed.config import EmbedConfig
from finetune.registry import TASKS
from finetune.tasks.custom.reader import number_in, text_in

LAYOUTS: tuple[tuple[tuple[str, ...], str], ...] = (  # columns of a file and what they are; the first that fits counts
    (("anchor", "positive", "negative"), "texts"),
    (("anchor", "positive"), "texts"),
    (("query", "positive", "negative"), "texts"),
    (("query", "positive"), "texts"),
    (("query", "passage"), "texts"),
    (("question", "context"), "texts"),
    (("title", "text"), "title"),
    (("sentence1", "sentence2", "gold_label"), "nli"),
    (("sentence1", "sentence2", "score"), "graded"),
    (("sentence1", "sentence2", "label"), "graded"),
)
KLUE_TASKS = {"similarity": ("klue-nli", "klue-sts"), "search": ("klue-mrc",)}
DOCUMENTS = "documents"  # begins the source of their pairs
NOTHING_TO_SCORE = "embed: nothing to score on; set finetune.data to a folder of KLUE files, or embed.evaluate"
DRAWS = 42  # seed of all draws of data, so that trainings differ only in their own seeds
SHORTEST, LONGEST = 12, 300  # characters of a sentence that becomes one side of a pair
REST = 3  # sentences after it
PER_DOCUMENT = 2  # pairs of each kind
PASSAGES_PER_DOCUMENT = 100
MIN_PARAGRAPH = 40  # characters of the first paragraph below a title


class Item(NamedTuple):
    """One training example: two texts, a third that means something else, or two with a similarity."""

    source: str
    texts: tuple[str, ...]
    score: float | None = None


class EvaluationSet(NamedTuple):
    """What to score on. ``golds``: see ``finetune.tasks.similarity``; ``passages``: by id, of kind ranking."""

    name: str
    kind: str
    guids: tuple[str, ...]
    golds: tuple[Any, ...]
    firsts: tuple[str, ...]  # sentences or questions
    seconds: tuple[str, ...] = ()
    passages: Mapping[str, str] = {}
    distractors: int = 0

    @property
    def texts(self) -> list[str]:
        """All texts that no training pair may contain; distractors answer nothing."""
        right = {name for gold in self.golds for name in gold} if self.kind == "ranking" else ()
        return [*self.firsts, *self.seconds, *(self.passages[name] for name in right)]


def read_items(config: EmbedConfig, documents: Path | None, klue: Path | None) -> list[Item]:
    """All training examples, without decontamination; ``BadInput`` if there are none, or a file does not fit.

    Next to the 8,204 examples of KLUE-NLI there are no pairs of documents, which would nearly double an epoch.
    """
    items: list[Item] = []
    for name in KLUE_TASKS[config.purpose]:
        if klue is not None and (path := find_file(klue, TASKS[name].files.train)) is not None:
            items += _klue_items(name, path)
    if documents and config.max_pairs and not any(item.source == "klue-nli" for item in items):
        items += _pairs_of_documents(documents, config.max_pairs)
    for file in config.train:
        examples = read_file(Path(file))
        graded = [item for item in examples if item.score is not None]
        if graded and config.purpose == "search":
            raise BadInput(f"{file}: graded pairs, which lower retrieval; remove the file, or set embed.for=similarity")
        items += graded or _sample(examples, config.max_pairs)
    if not items:
        raise BadInput("embed: nothing to train on; run `malmoi corpus` first, or name files of pairs in embed.train")
    return list(dict.fromkeys(items))


def _sample(items: Sequence[Item], most: int) -> list[Item]:
    drawn = np.random.default_rng(DRAWS).permutation(len(items))[:most]
    return [items[i] for i in sorted(drawn.tolist())]


def documents_in_order(folder: Path, seed: int) -> Iterator[Document]:
    """All documents, their row groups in an order drawn by ``seed``, so that the first ones are from everywhere."""
    groups = [(shard, group) for shard in shard_paths(folder) for group in range(len(row_group_sizes(shard)))]
    for i in np.random.default_rng(seed).permutation(len(groups)).tolist():
        shard, group = groups[i]
        yield from iter_documents(read_tables(shard, [group]))


def _pairs_of_documents(folder: Path, most: int) -> Iterator[Item]:
    """At most ``most`` pairs, as many of each kind; a text is used once."""
    rng, used = np.random.default_rng(DRAWS), set[str]()
    left = {"rest": most - most // 2, "neighbours": most // 2}
    for document in documents_in_order(folder, DRAWS):
        sentences = document.sentences
        starts = [i for i, text in enumerate(sentences[:-1]) if SHORTEST <= len(text) <= LONGEST]
        for i in rng.permutation(starts)[: 2 * PER_DOCUMENT].tolist():
            kind = max(left, key=lambda name: left[name])
            rest = sentences[i + 1 : i + 2 + (REST - 1) * (kind == "rest")]
            texts = (sentences[i], " ".join(rest))
            if len(texts[1]) >= SHORTEST and not used.intersection(texts):
                used.update(texts)
                left[kind] -= 1
                yield Item(f"{DOCUMENTS}, {kind}", texts)
            if not any(left.values()):
                return


def _klue_items(name: str, path: Path) -> list[Item]:
    examples = TASKS[name].read(path)
    if name == "klue-nli":
        return _triplets(name, ((e.inputs["premise"], e.inputs["hypothesis"], str(e.gold)) for e in examples))
    if name == "klue-sts":
        return [Item(name, (e.inputs["sentence1"], e.inputs["sentence2"]), e.gold / 5) for e in examples]
    return [Item(name, (e.inputs["question"], e.inputs["context"])) for e in examples if e.gold and e.gold["answers"]]


def _triplets(source: str, rows: Iterable[tuple[str, ...]]) -> list[Item]:
    """Premises with a hypothesis that is entailed and, if there is one, another that is contradicted."""
    by_premise: dict[str, dict[str, str]] = {}
    for premise, hypothesis, label in rows:
        by_premise.setdefault(premise, {}).setdefault(label, hypothesis)
    return [
        Item(source, tuple(text for text in (premise, by_label["entailment"], by_label.get("contradiction")) if text))
        for premise, by_label in by_premise.items()
        if "entailment" in by_label
    ]


def read_file(path: Path) -> list[Item]:
    """The pairs, triplets or graded pairs of a file; ``BadInput`` if its columns are none of ``LAYOUTS``."""
    records = read_table(path, ())
    columns, kind = _layout_of(path, records, LAYOUTS)
    if kind == "nli":
        rows = [tuple(text_in(r, name) for name in columns) for r in records]
        if items := _triplets(path.name, rows):
            return items
        raise BadInput(f"{path}: no 'gold_label' is entailment, so there is nothing to learn from")
    if kind == "graded":
        grades = [number_in(record, columns[2]) for record in records]
        scale = max(map(abs, grades)) or 1.0
        return [
            Item(path.name, (text_in(record, "sentence1"), text_in(record, "sentence2")), grade / scale)
            for record, grade in zip(records, grades, strict=True)
        ]
    if kind == "title":
        pairs = [(text_in(record, "title"), first_paragraph(text_in(record, "text"))) for record in records]
        return [Item(path.name, pair) for pair in pairs if pair[1]]
    right = [record for record in records if _is_right(record)]
    return [Item(path.name, tuple(text_in(record, column) for column in columns)) for record in right]


def _layout_of(path: Path, records: Sequence[Record], layouts: Any) -> tuple[tuple[str, ...], str]:
    names = set.intersection(*(set(record.values) for record in records))
    fitting = (layout for layout in layouts if names.issuperset(layout[0]))
    if (layout := next(fitting, None)) is not None:
        return layout[0], layout[1]
    known = "; ".join(", ".join(columns) for columns, _ in layouts)
    raise BadInput(f"{path}: columns {', '.join(sorted(names)) or 'differ'}; expected one of: {known}; rename them")


def _is_right(record: Record) -> bool:
    """Whether the passage answers: a label above 0, or true; without a label, an ``answer`` that is not empty."""
    if "label" not in record.values:
        return record.values.get("answer", True) not in ("", None, [])
    word = str(record.values["label"]).strip().casefold()
    return word == "true" or (word != "false" and number_in(record, "label") > 0)


def first_paragraph(text: str) -> str:
    return next((part.strip() for part in text.split("\n") if len(part.strip()) >= MIN_PARAGRAPH), "")


def read_evaluation(config: EmbedConfig, documents: Path | None, klue: Path | None) -> list[EvaluationSet]:
    """KLUE's dev files for the purpose and the user's files; ``BadInput`` if a file does not fit."""
    sets = []
    for name in reversed(KLUE_TASKS[config.purpose]):
        if klue is not None and (path := find_file(klue, TASKS[name].files.dev)) is not None:
            sets.append(_mrc_dev(path) if name == "klue-mrc" else _pairs_dev(name, path))
    sets += [read_evaluation_file(Path(file)) for file in config.evaluate]
    if len({part.name for part in sets}) < len(sets):
        raise BadInput("embed.evaluate: two files of one name; rename one, since results are kept by it")
    most = config.distractors
    return [with_distractors(p, documents, most) if p.kind == "ranking" and documents else p for p in sets]


def _pairs_dev(name: str, path: Path) -> EvaluationSet:
    """Grades, or entailment and contradiction; neutral pairs are left out, as in MTEB."""
    examples = [e for e in TASKS[name].read(path) if e.gold != "neutral"]
    firsts, seconds = zip(*(e.inputs.values() for e in examples), strict=True)
    golds = tuple(int(e.gold == "entailment") if name == "klue-nli" else e.gold for e in examples)
    kind = "binary" if name == "klue-nli" else "graded"
    return EvaluationSet(name, kind, tuple(e.guid for e in examples), golds, firsts, seconds)


def _mrc_dev(path: Path) -> EvaluationSet:
    """Answerable questions; the passages of all questions are searched."""
    examples = TASKS["klue-mrc"].read(path)
    names = {text: f"passage-{n}" for n, text in enumerate(dict.fromkeys(e.inputs["context"] for e in examples))}
    asked = [e for e in examples if e.gold and e.gold["answers"]]
    return EvaluationSet(
        "klue-mrc", "ranking", tuple(e.guid for e in asked), tuple([names[e.inputs["context"]]] for e in asked),
        tuple(e.inputs["question"] for e in asked), passages={name: text for text, name in names.items()},
    )  # fmt: skip


def read_evaluation_file(path: Path) -> EvaluationSet:
    """Graded pairs, or queries with passages, by the columns of the file; ``BadInput`` if they are neither."""
    records = read_table(path, ())
    layouts = (*LAYOUTS[-2:], (("query", "passage", "label"), "ranking"))
    columns, kind = _layout_of(path, records, layouts)
    name = path.name.split(".")[0]
    firsts, seconds = (tuple(text_in(record, column) for record in records) for column in columns[:2])
    if kind == "graded":
        guids = tuple(f"{path.name}:{record.line}" for record in records)
        golds = tuple(number_in(record, columns[2]) for record in records)
        return EvaluationSet(name, "graded", guids, golds, firsts, seconds)
    names = {text: f"passage-{number}" for number, text in enumerate(dict.fromkeys(seconds))}
    right: dict[str, list[str]] = {}
    for record, query, passage in zip(records, firsts, seconds, strict=True):
        if _is_right(record) and names[passage] not in right.setdefault(query, []):
            right[query].append(names[passage])
    if not right:
        raise BadInput(f"{path}: no passage with label 1; give each query one that answers it")
    if lost := len(set(firsts)) - len(right):
        warn_once(f"{path}: {lost:,} of {len(set(firsts)):,} queries have no passage with label 1 and are left out")
    guids = tuple(f"{path.name}:{number}" for number in range(len(right)))
    passages = {passage: text for text, passage in names.items()}
    return EvaluationSet(name, "ranking", guids, tuple(right.values()), tuple(right), passages=passages)


def with_distractors(part: EvaluationSet, documents: Path, most: int) -> EvaluationSet:
    """``part`` with passages of the documents, their lengths drawn from those of its own passages: natural paragraphs
    are shorter and give the right ones away."""
    rng, lengths = np.random.default_rng(DRAWS), [len(text) for text in part.passages.values()]
    own, more, length = set(part.passages.values()), dict[str, str](), int(rng.choice(lengths))
    for document in documents_in_order(documents, DRAWS + 1) if most else ():
        begin, count = 0, 0
        while begin < len(document.sentences) and count < PASSAGES_PER_DOCUMENT:
            size, end = 0, begin
            while end < len(document.sentences) and size < length * 0.9:
                size += len(document.sentences[end]) + 1
                end += 1
            text = " ".join(document.sentences[begin:end])[:length]
            if size < length * 0.9:
                break  # the next document gets this length, so that long ones are as frequent as drawn
            if text not in own:
                more[f"document-{len(more)}"] = text
            begin, count, length = end, count + 1, int(rng.choice(lengths))
        if len(more) >= most:
            break
    distractors = dict(list(more.items())[:most])
    return part._replace(passages={**part.passages, **distractors}, distractors=len(distractors))
