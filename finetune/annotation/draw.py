"""``draw``: candidates from document shards, by length and form (KLUE 2.3 and 3.1 to 3.7); every drop is counted.

Candidates are drawn by hashes of the seed and their ids, so the result does not depend on how documents are divided
into shards. Each source and each batch that a model reads is a unit of work whose result is kept until the step is
done: a stopped draw repeats only the unit at which it stopped.
"""

from __future__ import annotations

import heapq
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.atomic_files import read_json
from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, read_documents, shard_paths
from corpus.documents.units import COUNTS_NAME, run_unit
from finetune.annotation.config import Benchmark, Source
from finetune.annotation.folder import ITEMS, VOTES, Item, Span, order_key, read_items
from finetune.annotation.matching import match_sentences, rouge
from finetune.data.custom_files import read_table
from finetune.data.files import write_json_lines

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
UNFINISHED = "draw.partial"  # folder of the units of a draw that has not finished
BATCH = 500  # items of a unit that a model reads
RESERVE = 3  # candidates drawn for each item, where a model drops some
PAIR_POOL = 20_000  # sentences among which STS pairs are matched; the first pairs are the most similar
TO_ENGLISH = "다음 한국어 문장을 영어로 번역하세요. 번역문만 쓰세요.\n\n"
TO_KOREAN = "다음 영어 문장을 한국어 존댓말로 번역하세요. 번역문만 쓰세요.\n\n"  # honorific, as in 3.2.1
SIGNS = re.compile(r"[\W_]+")
Texts = Iterator[tuple[str, str, Document]]  # id, text and document of a unit


class Models(NamedTuple):
    """Models of other packages that ``draw`` uses.

    Attributes:
        find_toxic: (classifier, minimum score by label, texts) to whether each text has a toxic sentence.
        ask: (model, questions) to its answers, "" for none.
    """

    find_toxic: Callable[[str, Mapping[str, float], Sequence[str]], Sequence[bool]]
    ask: Callable[[str, Sequence[str]], Sequence[str]]


def draw(benchmark: Benchmark, folder: Path, models: Models) -> dict[str, Any]:
    """Write ``items.jsonl``; returns counts by source and reason. ``BadInput`` if nothing fits."""
    if (folder / VOTES).is_file():
        raise BadInput(f"{folder / VOTES}: there are votes already; draw other items in another folder")
    rules, drops = benchmark.draw, Counter[str]()
    items = list[Item]()
    if rules.groups is not None:
        items += pairs_by_group(folder / rules.groups, benchmark)
    elif not benchmark.sources:
        raise BadInput(f"{folder}: no sources in benchmark.yaml; name a folder of document shards under sources")
    units = folder / UNFINISHED / fingerprint(benchmark, folder)
    for name in benchmark.sources:
        items += draw_from(benchmark, name, folder, units / name, models, drops)
    if not items:
        raise BadInput(f"{folder}: no text fits ({dict(drops)}); change draw or give other documents")
    write_json_lines(folder / ITEMS, items)
    shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
    sources = dict(sorted(Counter(item.source for item in items).items()))
    return {"items": len(items), "sources": sources, "skipped": dict(sorted((+drops).items()))}


def fingerprint(benchmark: Benchmark, folder: Path) -> str:
    """A hash of the settings, and of sizes and times of the files they name; units of another one are not reused."""
    rules = benchmark.draw
    names = [source.documents for source in benchmark.sources.values()]
    names += [name for name in (rules.metadata, rules.triples, rules.tagger, rules.classifier) if name is not None]
    paths = [path for name in names for path in (folder / name, *sorted((folder / name).rglob("*")))]
    stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths if path.is_file()]
    return order_key(benchmark.seed, benchmark.model_dump_json(), repr(stats))


def once(unit: Path, work: Callable[[Counter[str]], list[Item]], drops: Counter[str]) -> list[Item]:
    """The items that ``work`` returns, or its files if an earlier run finished it; adds what it drops to ``drops``."""

    def write(_: None, scratch: Path) -> dict[str, Any]:
        dropped = Counter[str]()
        write_json_lines(scratch / ITEMS, work(dropped))
        return dict(dropped)

    if not (unit / COUNTS_NAME).is_file():
        run_unit(write, None, unit)
    drops.update(read_json(unit / COUNTS_NAME, f"delete {unit.parent} and run again"))
    return read_items(unit)


def draw_from(
    benchmark: Benchmark, name: str, folder: Path, unit: Path, models: Models, drops: Counter[str]
) -> list[Item]:
    """The items of one source."""
    rules, source = benchmark.draw, benchmark.sources[name]
    count = source.count or -(-rules.count // len(benchmark.sources))
    translated = count // 2 if rules.translator and benchmark.task == "sts" else 0
    wanted = 2 * count - translated if benchmark.task == "sts" else count
    is_screened = bool(source.toxicity or (benchmark.form.spans and rules.tagger))
    drawn = wanted * RESERVE if is_screened else max(wanted, PAIR_POOL) if benchmark.task == "sts" else wanted
    items = once(unit / "drawn", partial(choose, benchmark, name, folder, drawn), drops)
    if is_screened:
        waiting, items = items, []
        for begin in range(0, len(waiting), BATCH):
            if len(items) < wanted:
                work = partial(screen, benchmark, name, folder, models, waiting[begin : begin + BATCH])
                items += once(unit / f"screened-{begin}", work, drops)
    if benchmark.task == "sts":
        trips = round_trips(benchmark, items[:translated], models, drops)
        pairs = once(unit / "pairs", lambda _: pair_sentences(items[translated:], benchmark.seed), drops)
        return trips + pairs[: count - translated]
    if benchmark.task == "re":
        items = relation_pairs(benchmark, items, folder)
    blank = {} if benchmark.form.spans else dict.fromkeys(benchmark.form.texts[1:], "")
    return [replace(item, texts={**item.texts, **blank}) for item in items[:count]]  # blank: workers write it


def choose(benchmark: Benchmark, name: str, folder: Path, count: int, drops: Counter[str]) -> list[Item]:
    """At most ``count`` random candidates of a source: those with the smallest hashes; of equal texts the first."""
    known = dict[str, dict[str, Any]]()
    for row in read_table(folder / benchmark.draw.metadata, ["id"], "rename one") if benchmark.draw.metadata else ():
        known[row.values["id"]] = {key: value for key, value in row.values.items() if key != "id"}
    first, limits, seen = benchmark.form.texts[0], lengths(benchmark), set[str]()

    def keyed() -> Iterator[tuple[str, Item]]:
        for id_, text, document in units_of(benchmark, benchmark.sources[name], folder, *limits):
            key = " ".join(text.split())
            reason = problem_of(text, *limits, is_premise=benchmark.task == "nli")
            if reason or key in seen:
                drops[reason or "repeated text"] += 1
            else:
                seen.add(key)
                item = Item(f"{name}-{id_}", name, {first: text}, (), known.get(document.id, {}))
                yield order_key(benchmark.seed, item.id), item

    return [item for _, item in heapq.nsmallest(count, keyed(), key=lambda pair: pair[0])]


def screen(
    benchmark: Benchmark, name: str, folder: Path, models: Models, items: Sequence[Item], drops: Counter[str]
) -> list[Item]:
    """Items of a source without a toxic sentence (2.3), and with entities if a tagger is named."""
    rules, thresholds = benchmark.draw, benchmark.sources[name].toxicity
    if thresholds:
        place = folder / (rules.classifier or "")
        model = str(place) if place.is_dir() else rules.classifier or ""
        are_toxic = models.find_toxic(model, thresholds, [item.text for item in items])
        drops["toxic"] += sum(are_toxic)
        items = [item for item, is_toxic in zip(items, are_toxic, strict=True) if not is_toxic]
    return tag(benchmark, items, folder / rules.tagger, drops) if benchmark.form.spans and rules.tagger else [*items]


def lengths(benchmark: Benchmark) -> tuple[int, int]:
    """The fewest and the most characters of a text."""
    shortest, longest = LENGTHS.get(benchmark.task, (5, 120))
    return benchmark.draw.min_chars or shortest, benchmark.draw.max_chars or longest


def units_of(benchmark: Benchmark, source: Source, folder: Path, shortest: int, longest: int) -> Texts:
    """Sentences, titles, documents or passages of a source, with ids."""
    unit = benchmark.draw.unit or UNITS.get(benchmark.task, "sentence")
    for shard in shard_paths(folder / source.documents):
        for document in read_documents(shard):
            if not document.source.startswith(source.source or "") or not document.sentences:
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
    is_foreign = len(FOREIGN.findall(text)) > MAX_FOREIGN * max(1, len(text) // 100) or not HANGUL.search(text)
    if is_foreign or NOISE.search(text):
        return "noise"
    if is_premise and LIST_OR_FORMULA.search(text):
        return "list or formula"
    if is_premise and not PREDICATE.search(text):
        return "no predicate"
    return None


def pair_sentences(items: Sequence[Item], seed: int) -> list[Item]:
    """STS pairs by greedy sentence matching, in the order of Algorithm 1: similar pairs first."""
    pairs = list[Item]()
    for match in match_sentences([item.text for item in items], seed):
        one, two = items[match.first], items[match.second]
        texts = {"sentence1": one.text, "sentence2": two.text}
        about = {"pair": "greedy", "rouge": round(match.score, 4)}
        pairs.append(Item(f"{one.id}+{two.id}", one.source, texts, (), about))
    return pairs


def pairs_by_group(path: Path, benchmark: Benchmark) -> list[Item]:
    """STS pairs by metadata (PARAKQC): two texts of one intent, and two of different intents of one topic."""
    by_topic = defaultdict[str, dict[str, list[str]]](lambda: defaultdict(list))
    for record in read_table(path, ["text", "intent", "topic"], "rename them"):
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


def round_trips(benchmark: Benchmark, items: Sequence[Item], models: Models, drops: Counter[str]) -> list[Item]:
    """STS pairs of a sentence and its translation into English and back, which are similar (3.2.1)."""
    if not items:
        return []
    ask, pairs = partial(models.ask, benchmark.draw.translator or ""), list[Item]()
    between = ask([TO_ENGLISH + item.text for item in items])
    there = [(item, english) for item, english in zip(items, between, strict=True) if english]
    drops["round trip: no answer"] += len(items) - len(there)
    for (item, english), back in zip(there, ask([TO_KOREAN + english for _, english in there]), strict=True):
        if SIGNS.sub("", back) == SIGNS.sub("", item.text):
            drops["round trip: the same sentence"] += 1
        elif reason := problem_of(back, *lengths(benchmark)) if back else "no answer":
            drops[f"round trip: {reason}"] += 1
        else:
            about = {"pair": "round-trip", "english": english, "rouge": round(rouge(item.text, back), 4)}
            texts = {"sentence1": item.text, "sentence2": back}
            pairs.append(Item(f"{item.id}+round-trip", item.source, texts, (), about))
    return pairs


def tag(benchmark: Benchmark, items: Sequence[Item], model: Path, drops: Counter[str]) -> list[Item]:
    """Items with the entities that a kept NER model finds; those without one (RE: two) are dropped (3.4.1, 3.5.1)."""
    from finetune.inference.predict import predict_texts

    tagged, fewest = list[Item](), 2 if benchmark.task == "re" else 1
    results = predict_texts(_load_tagger(model), [item.text for item in items])
    for item, result in zip(items, results, strict=True):
        spans = tuple((e["start"], e["end"], e["type"]) for e in result["entities"])
        drops["too few entities"] += len(spans) < fewest
        tagged += [replace(item, spans=spans)] if len(spans) >= fewest else []
    return tagged


@cache
def _load_tagger(folder: Path) -> Any:
    from finetune.saved_models.load import load_model

    return load_model(folder)


def relation_pairs(benchmark: Benchmark, items: Sequence[Item], folder: Path) -> list[Item]:
    """Pairs of a subject and an object: those of a triple list with an upper bound, and uniform ones (3.5.1)."""
    known = Counter[tuple[str, str]]()
    if benchmark.draw.triples is not None:
        rows = read_table(folder / benchmark.draw.triples, ["subject", "object"], "rename them")
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
