"""``draw``: candidates from document shards, by length and form (KLUE 2.3 and 3.1 to 3.7); every drop is counted.

Quality and toxicity thresholds belong to the corpus stage, which has applied them to the shards. Candidates are drawn
by hashes of the seed and their ids, so the result does not depend on how documents are divided into shards.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, read_documents, shard_paths
from finetune.annotation.config import Benchmark, Source
from finetune.annotation.folder import ITEMS, VOTES, Item, Span, order_key, write_records
from finetune.annotation.matching import match_sentences
from finetune.data.custom_files import read_table

UNITS = {"tc": "title", "mrc": "passage"}  # others: sentence
LENGTHS = {"nli": (20, 90), "mrc": (512, 2048), "sts": (10, 120), "ner": (10, 400), "re": (10, 400)}  # 3.2 to 3.7
CONTACT = re.compile(r"@[\w가-힣]|https?://|www\.|\w@\w", re.ASCII)  # e-mail, URL, @user (2.3)
NOISE = re.compile(r"#\w|<[/a-zA-Z]|[\u200b\ufeff]|[(\[{]\s{0,3}[)\]}]")  # hashtag, HTML, blanks, empty brackets
FOREIGN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
MAX_FOREIGN = 10  # Han and Kana characters of a sentence (2.3), or of 100 characters of a passage
HANGUL = re.compile(r"[가-힣]")
LIST_OR_FORMULA = re.compile(r"^\s{0,9}(?:[-*•▶○●◦]|\d{1,3}[.)])|[=≤≥∑√]|\d\s?[+×÷]\s?\d|[:：]\s{0,9}$")
PREDICATE = re.compile(r"(?:다|요|죠|까|네|군|음|함|됨)[.!?]{0,3}$")  # a sentence that states something
MAX_PAIRS = 3  # RE pairs of one sentence, and of one pair of entities from the triples
Texts = Iterator[tuple[str, str, Document]]  # id, text and document of a unit


def draw(benchmark: Benchmark, folder: Path) -> dict[str, Any]:
    """Write ``items.jsonl``; returns counts by source and reason. ``BadInput`` if nothing fits."""
    if (folder / VOTES).is_file():
        raise BadInput(f"{folder / VOTES}: there are votes already; draw other items in another folder")
    rules, drops = benchmark.draw, Counter[str]()
    items = list[Item]()
    if rules.groups is not None:
        items += pairs_by_group(folder / rules.groups, benchmark)
    elif not benchmark.sources:
        raise BadInput(f"{folder}: no sources in benchmark.yaml; name a folder of document shards under sources")
    for name, source in benchmark.sources.items():
        share = source.count or -(-rules.count // len(benchmark.sources))
        items += draw_from(benchmark, name, source, folder, share, drops)
    if not items:
        raise BadInput(f"{folder}: no text fits ({dict(drops)}); change draw or give other documents")
    write_records(folder / ITEMS, items)
    sources = dict(sorted(Counter(item.source for item in items).items()))
    return {"items": len(items), "sources": sources, "skipped": dict(sorted(drops.items()))}


def draw_from(
    benchmark: Benchmark, name: str, source: Source, folder: Path, count: int, drops: Counter[str]
) -> list[Item]:
    """At most ``count`` items of one source."""
    known = dict[str, dict[str, Any]]()
    for row in read_table(folder / benchmark.draw.metadata, ["id"]) if benchmark.draw.metadata else ():
        known[row.values["id"]] = {key: value for key, value in row.values.items() if key != "id"}
    first = benchmark.form.texts[0]
    texts = candidates(benchmark, source, folder, drops)
    as_items = (Item(f"{name}-{id_}", name, {first: text}, (), known.get(doc.id, {})) for id_, text, doc in texts)
    if benchmark.task == "sts":
        drawn = _smallest(benchmark, as_items, 2 * count, drops)
        return pair_sentences(drawn, benchmark.seed)
    if benchmark.form.spans:
        drawn = _smallest(benchmark, as_items, 3 * count, drops)
        tagged = tag(benchmark, drawn, drops) if benchmark.draw.tagger else drawn
        if benchmark.task == "re":
            tagged = relation_pairs(benchmark, tagged, folder)
        return tagged[:count]
    blank = dict.fromkeys(benchmark.form.texts[1:], "")  # written by workers: hypothesis, question
    return [replace(item, texts={**item.texts, **blank}) for item in _smallest(benchmark, as_items, count, drops)]


def candidates(benchmark: Benchmark, source: Source, folder: Path, drops: Counter[str]) -> Texts:
    """Units of a source that pass the rules of form."""
    shortest, longest = LENGTHS.get(benchmark.task, (5, 120))
    shortest, longest = benchmark.draw.min_chars or shortest, benchmark.draw.max_chars or longest
    for id_, text, document in units_of(benchmark, source, folder, shortest, longest, drops):
        if reason := problem_of(text, shortest, longest, is_premise=benchmark.task == "nli"):
            drops[reason] += 1
        else:
            yield id_, text, document


def units_of(
    benchmark: Benchmark, source: Source, folder: Path, shortest: int, longest: int, drops: Counter[str]
) -> Texts:
    """Sentences, titles, documents or passages of a source, with ids."""
    unit = benchmark.draw.unit or UNITS.get(benchmark.task, "sentence")
    for shard in shard_paths(folder / source.documents):
        for document in read_documents(shard):
            if not document.source.startswith(source.source or "") or not document.sentences:
                drops["document of another source"] += bool(document.sentences)
                continue
            if unit == "sentence":
                yield from ((f"{document.id}#{n}", text, document) for n, text in enumerate(document.sentences, 1))
            elif unit == "passage":
                yield from ((f"{document.id}#{n}", text, document) for n, text in passages(document, shortest, longest))
            else:
                text = document.sentences[0] if unit == "title" else " ".join(document.sentences)
                yield document.id, text, document


def passages(document: Document, shortest: int, longest: int) -> Iterator[tuple[int, str]]:
    """Runs of whole sentences of more than ``shortest`` and fewer than ``longest`` characters, numbered."""
    held, number = "", 1
    for sentence in document.sentences:
        if held and len(held) + 1 + len(sentence) >= longest:
            yield number, held
            held, number = "", number + 1
        held = f"{held} {sentence}" if held else sentence
    if len(held) > shortest:
        yield number, held


def problem_of(text: str, shortest: int, longest: int, *, is_premise: bool = False) -> str | None:
    """The reason for which a text is no candidate; None if it is one.

    >>> problem_of("문의는 help@example.com 으로 주세요.", 5, 90), problem_of("방은 깨끗하고 조용했습니다.", 5, 90)
    ('e-mail, URL or @user', None)
    """
    if not shortest <= len(text) <= longest:
        return "too short" if len(text) < shortest else "too long"
    if CONTACT.search(text):
        return "e-mail, URL or @user"
    if (
        NOISE.search(text)
        or len(FOREIGN.findall(text)) > MAX_FOREIGN * max(1, len(text) // 100)
        or not HANGUL.search(text)
    ):
        return "noise"
    if is_premise and LIST_OR_FORMULA.search(text):
        return "list or formula"
    if is_premise and not PREDICATE.search(text):
        return "no predicate"
    return None


def _smallest(benchmark: Benchmark, items: Iterable[Item], count: int, drops: Counter[str]) -> list[Item]:
    """The ``count`` items with the smallest hashes; of equal texts the first."""
    seen = set[str]()

    def keyed() -> Iterator[tuple[str, Item]]:
        for item in items:
            key = " ".join(item.text.split())
            drops["repeated text"] += key in seen
            if key not in seen:
                seen.add(key)
                yield order_key(benchmark.seed, item.id), item

    return [item for _, item in heapq.nsmallest(count, keyed(), key=lambda pair: pair[0])]


def pair_sentences(items: Sequence[Item], seed: int) -> list[Item]:
    """STS pairs by greedy sentence matching, in the order of Algorithm 1: similar pairs first."""
    pairs = list[Item]()
    for match in match_sentences([item.text for item in items], seed):
        one, two = items[match.first], items[match.second]
        texts, about = (
            {"sentence1": one.text, "sentence2": two.text},
            {"pair": "greedy", "rouge": round(match.score, 4)},
        )
        pairs.append(Item(f"{one.id}+{two.id}", one.source, texts, (), about))
    return pairs


def pairs_by_group(path: Path, benchmark: Benchmark) -> list[Item]:
    """STS pairs by metadata (PARAKQC): two texts of one intent, and two of different intents of one topic."""
    by_topic = defaultdict[str, dict[str, list[str]]](lambda: defaultdict(list))
    for record in read_table(path, ["text", "intent", "topic"]):
        by_topic[record.values["topic"]][record.values["intent"]].append(record.values["text"])
    pairs = list[tuple[str, str, str]]()
    for topic, intents in sorted(by_topic.items()):
        queues = {name: sorted(t, key=lambda text: order_key(benchmark.seed, text)) for name, t in intents.items()}
        names = sorted(queues, key=lambda name: order_key(benchmark.seed, topic, name))
        for name, other in zip(names, [*names[1:], *names[:1]], strict=True):
            pairs += [("same", queues[name][0], queues[name][1])] if len(queues[name]) > 1 else []
            pairs += [("other", queues[name][-1], queues[other][0])] if name != other else []
    ordered = sorted(pairs, key=lambda pair: order_key(benchmark.seed, *pair))[: benchmark.draw.count]
    return [
        Item(f"group-{order_key(benchmark.seed, *pair)}", path.stem, {"sentence1": pair[1], "sentence2": pair[2]}, (),
             {"pair": pair[0]})
        for pair in ordered
    ]  # fmt: skip


def tag(benchmark: Benchmark, items: Sequence[Item], drops: Counter[str]) -> list[Item]:
    """Items with the entities that a kept NER model finds; those without an entity are dropped (3.4.1)."""
    from finetune.inference.predict import predict_texts
    from finetune.saved_models.load import load_model

    model = load_model(Path(benchmark.draw.tagger or ""))
    tagged = list[Item]()
    for item, result in zip(items, predict_texts(model, [item.text for item in items]), strict=True):
        spans = tuple((e["start"], e["end"], e["type"]) for e in result["entities"])
        drops["no entity"] += not spans
        tagged += [replace(item, spans=spans)] if spans else []
    return tagged


def relation_pairs(benchmark: Benchmark, items: Sequence[Item], folder: Path) -> list[Item]:
    """Pairs of a subject and an object: those of a triple list with an upper bound, and uniform ones (3.5.1)."""
    known = Counter[tuple[str, str]]()
    if benchmark.draw.triples is not None:
        rows = read_table(folder / benchmark.draw.triples, ["subject", "object"])
        known.update(dict.fromkeys(((r.values["subject"], r.values["object"]) for r in rows), MAX_PAIRS))
    pairs = list[Item]()
    for item in items:
        both = sorted(permutations(item.spans, 2), key=lambda pair: order_key(benchmark.seed, item.id, repr(pair)))
        listed = [pair for pair in both if known[_surfaces(item, pair)] > 0]
        for number, pair in enumerate((listed or both)[: MAX_PAIRS if listed else 1], start=1):
            known[_surfaces(item, pair)] -= bool(listed)
            (start, end, label), (begin, stop, other) = pair
            spans = ((start, end, f"subject:{label}"), (begin, stop, f"object:{other}"))
            about = {"pair": "triples" if listed else "uniform", "group": item.id}
            pairs.append(replace(item, id=f"{item.id}/{number}", spans=spans, about=about))
    return pairs


def _surfaces(item: Item, pair: Sequence[Span]) -> tuple[str, str]:
    (start, end, _), (begin, stop, _) = pair
    return item.text[start:end], item.text[begin:stop]
