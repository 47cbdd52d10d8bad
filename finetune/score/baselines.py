"""What a score is compared with: the best constant prediction for each metric, and one counting baseline per task.

Constants are tried on the scored examples themselves, so no constant is better. Counting baselines learn frequencies
from the training examples and use neither a network nor torch; a model below its counting baseline has learned little.
NumPy alone; a few seconds for the largest task. Legend: ``N`` examples, ``K`` labels, ``V`` features.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from finetune.examples import Example, Prediction, to_rows
from finetune.metrics import CORRELATIONS
from finetune.task import Task
from finetune.tasks.dp.alignment import chain_words
from finetune.tasks.ner.alignment import count_letters
from finetune.tasks.ner.task import find_entities
from finetune.tasks.re.metrics import RE_LABELS
from finetune.tasks.sts.task import MAX_SIMILARITY, SIMILAR_FROM
from finetune.tasks.wos.reader import SLOTS, SPOKEN, find_slot

Examples = Sequence[Example]
Predict = Callable[[Task, Examples, Examples], list[Prediction]]
MAX_SURFACE = 30  # characters of an entity or a value
MAX_STATES = 20  # constant dialogue states that are tried
MAX_QUESTIONS = 2_000  # on which the threshold of "no answer" is chosen
BM25_K1, BM25_B = 1.2, 0.75
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def baselines(task: Task, training: Examples, scored: Examples) -> dict[str, Any]:
    """``constant`` and ``counting``: the score of each metric, None if undefined; ``counting_by``: what is counted.

    A constant has no correlation, which counts as 0. Without training examples nothing is counted.
    """
    kind = kind_of(task)
    scores = [task.score(to_rows(scored, guess)) for guess in kind.constants(scored)]
    best = {
        name: max((s[name] for s in scores if not math.isnan(s[name])), default=0.0 if name in CORRELATIONS else None)
        for name in scores[0]
    }
    counting_scores = task.score(to_rows(scored, kind.counting(task, training, scored))) if training else {}
    counting = {name: None if math.isnan(value) else value for name, value in counting_scores.items()}
    return {"constant": best, "counting": counting, "counting_by": kind.counts if training else ""}


def kind_of(task: Task) -> Kind:
    """The baselines of a task."""
    return KINDS[task.custom["kind"] if task.custom is not None else task.name]


def _everywhere(values_of: Callable[[Examples], Iterable[Any]]) -> Callable[[Examples], Iterator[list[Prediction]]]:
    return lambda scored: ([Prediction(value)] * len(scored) for value in values_of(scored))


_each_label = _everywhere(lambda scored: sorted({example.gold for example in scored}))


def _each_tag(scored: Examples) -> Iterator[list[Prediction]]:
    for tag in sorted({"O", *chain.from_iterable(example.gold for example in scored)}):
        yield [Prediction([tag] * count_letters(example)) for example in scored]


def _each_type(scored: Examples) -> Iterator[list[Prediction]]:
    """Every word depends on the next one, with the same type; the last is the root, with its most frequent type."""
    last = Counter(example.gold["types"][-1] for example in scored).most_common(1)[0][0]
    for inner in sorted({name for example in scored for name in example.gold["types"]}):
        yield [chain_words(example, inner, last) for example in scored]


def _frequent_states(scored: Examples) -> list[Any]:
    states = Counter(tuple(example.gold) for example in scored).most_common(MAX_STATES)
    return [[], *(list(state) for state, _ in states)]


def bigrams(text: str) -> list[str]:
    """Pairs of neighbouring characters of each word, its borders included as blanks (``char_wb`` of scikit-learn).

    >>> bigrams("비가 ㅠ")
    [' 비', '비가', '가 ', ' ㅠ', 'ㅠ ']
    """
    return [word[i : i + 2] for word in map(" {} ".format, text.lower().split()) for i in range(len(word) - 1)]


def _texts(example: Example) -> list[str]:
    return [text for text in example.inputs.values() if isinstance(text, str)]


def naive_bayes(golds: Sequence[Any], features: Sequence[Sequence[str]]) -> Callable[[Sequence[str]], dict[Any, float]]:
    """Multinomial naive Bayes with add-one smoothing: features of a text to the log probability of each label."""
    counts: dict[str, Counter[Any]] = defaultdict(Counter)
    totals, priors = Counter[Any](), Counter(golds)
    for gold, of_text in zip(golds, features, strict=True):
        totals[gold] += len(of_text)
        for feature in of_text:
            counts[feature][gold] += 1
    names = sorted(priors)
    unseen_K = np.array([-math.log(totals[name] + len(counts) + 1) for name in names])
    prior_K = np.array([math.log(priors[name] / len(golds)) for name in names])
    logs = {f: np.log1p(np.array([own[name] for name in names], float)) for f, own in counts.items()}

    def score(of_text: Sequence[str]) -> dict[Any, float]:
        known = [logs[feature] for feature in of_text if feature in logs]
        return dict(zip(names, (prior_K + len(known) * unseen_K + sum(known)).tolist(), strict=True))

    return score


def _predict_label(features_of: Callable[[Example], list[str]]) -> Predict:
    def predict(task: Task, training: Examples, scored: Examples) -> list[Prediction]:
        score = naive_bayes([e.gold for e in training], [features_of(e) for e in training])
        return [Prediction(max((of := score(features_of(example))), key=of.__getitem__)) for example in scored]

    return predict


def _pair_features(example: Example) -> list[str]:
    """The bigrams of the second text alone, and in tenths the share of them that the first has."""
    first, second = map(bigrams, _texts(example)[:2])
    shared = sum(pair in set(first) for pair in second) / max(1, len(second))
    return [*second, f"overlap {round(10 * shared)}"]


def _predict_choice(task: Task, training: Examples, scored: Examples) -> list[Prediction]:
    """The answer that most resembles right answers."""
    names = (task.custom or {})["choices"]
    answers = [(bigrams(e.inputs[name]), name == e.gold) for e in training for name in names]
    score = naive_bayes([is_right for _, is_right in answers], [pairs for pairs, _ in answers])

    def lead(text: str) -> float:
        of = score(bigrams(text))
        return of[True] - of[False]

    return [Prediction(max(names, key=lambda name: lead(example.inputs[name]))) for example in scored]


def _predict_similarity(task: Task, training: Examples, scored: Examples) -> list[Prediction]:
    """The cosine of tf-idf vectors, moved so that the threshold that is best on training pairs is 3."""
    documents = [Counter(bigrams(text)) for example in training for text in _texts(example)]
    idf = _idf(documents)

    def cosine(example: Example) -> float:
        first, second = ({f: n * idf(f) for f, n in Counter(bigrams(text)).items()} for text in _texts(example)[:2])
        norm = math.hypot(*first.values()) * math.hypot(*second.values()) or 1.0
        return sum(weight * second.get(feature, 0.0) for feature, weight in first.items()) / norm

    seen = sorted(((cosine(example), example.gold >= SIMILAR_FROM) for example in training), reverse=True)
    similar_N = np.cumsum([is_similar for _, is_similar in seen])
    bar = seen[int((similar_N / (np.arange(1, len(seen) + 1) + similar_N[-1])).argmax())][0]
    return [Prediction(SIMILAR_FROM + MAX_SIMILARITY * (cosine(example) - bar)) for example in scored]


def _idf(documents: Sequence[Iterable[str]]) -> Callable[[str], float]:
    seen = Counter(chain.from_iterable(map(set, documents)))
    return lambda feature: math.log((1 + len(documents)) / (1 + seen[feature])) + 1


def _predict_relation(task: Task, training: Examples, scored: Examples) -> list[Prediction]:
    """The most frequent relation between the types of the two entities, with the shares as scores."""
    by_types: dict[Any, Counter[str]] = defaultdict(Counter)
    for example in training:
        by_types[example.inputs["types"]][example.gold] += 1
    every = Counter(example.gold for example in training)

    def predict(example: Example) -> Prediction:
        counts = by_types.get(example.inputs["types"], every)
        total = counts.total()
        return Prediction(counts.most_common(1)[0][0], [counts[label] / total for label in RE_LABELS])

    return list(map(predict, scored))


def _predict_tree(task: Task, training: Examples, scored: Examples) -> list[Prediction]:
    """Each word depends on the next one, with the most frequent type of its last part-of-speech tag."""
    by_tag: dict[Any, Counter[str]] = defaultdict(Counter)
    for example in training:
        for (tag, is_last), name in zip(_places(example), example.gold["types"], strict=True):
            by_tag[tag, is_last][name] += 1
            by_tag[is_last][name] += 1
    trees = [chain_words(example, "", "") for example in scored]
    for example, tree in zip(scored, trees, strict=True):
        counts = (by_tag.get((tag, is_last), by_tag[is_last]) for tag, is_last in _places(example))
        tree.value["types"] = [(own or by_tag[True]).most_common(1)[0][0] for own in counts]
    return trees


def _places(example: Example) -> list[tuple[str, bool]]:
    *inner, last = example.inputs["pos"]
    return [*((tag, False) for tag in inner), (last, True)]


class _Gazetteer:
    """Texts with a name each. ``find`` gives the longest from left to right; ``keep`` drops those that are wrong
    in more than half of their occurrences."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = {text: name for text, name in names.items() if len(text) <= MAX_SURFACE}
        self.lengths: dict[str, list[int]] = defaultdict(list)
        for first, length in sorted({(text[:2], len(text)) for text in self.names}, reverse=True):
            self.lengths[first].append(length)

    def find(self, text: str) -> Iterator[tuple[str, int, int]]:
        place = 0
        while place < len(text):
            starts = (self.lengths.get(text[place : place + size], ()) for size in (2, 1))
            parts = (text[place : place + length] for lengths in starts for length in lengths)
            part = next((part for part in parts if part in self.names), "")
            if part:
                yield part, place, place + len(part)
            place += len(part) or 1

    def keep(self, occurrences: Iterable[tuple[str, bool]]) -> _Gazetteer:
        seen, right = Counter[str](), Counter[str]()
        for text, is_right in occurrences:
            seen[text] += 1
            right[text] += is_right
        return _Gazetteer({text: name for text, name in self.names.items() if 2 * right[text] >= seen[text]})


def _commonest(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for text, name in pairs:
        counts[text][name] += 1
    return {text: own.most_common(1)[0][0] for text, own in counts.items()}


def _predict_entities(task: Task, training: Examples, scored: Examples) -> list[Prediction]:
    """The entities of training sentences, wherever they occur."""
    spans = [(e.inputs["text"], find_entities(e.inputs["text"], e.gold)) for e in training]
    known = _Gazetteer(_commonest((text[a:b], kind) for text, entities in spans for kind, a, b in entities))
    places = [{(begin, end) for _, begin, end in entities} for _, entities in spans]
    known = known.keep(
        (part, (begin, end) in own)
        for (text, _), own in zip(spans, places, strict=True)
        for part, begin, end in known.find(text)
    )

    def tags_of(text: str) -> list[str]:
        tags = ["O"] * len(text)
        for part, begin, end in known.find(text):
            tags[begin:end] = [f"B-{known.names[part]}", *[f"I-{known.names[part]}"] * (end - begin - 1)]
        return [tag for tag, letter in zip(tags, text, strict=True) if not letter.isspace()]

    return [Prediction(tags_of(example.inputs["text"])) for example in scored]


def _predict_state(task: Task, training: Examples, scored: Examples) -> list[Prediction]:
    """For each slot the value that was mentioned last."""
    states = [dict(filter(None, map(find_slot, example.gold))) for example in training]
    known = _Gazetteer(_commonest((v, slot) for state in states for slot, v in state.items() if v not in SPOKEN))
    known = known.keep(
        (value, state.get(known.names[value]) == value)
        for example, state in zip(training, states, strict=True)
        for text in example.inputs["turns"][-2:]
        for value, _, _ in known.find(text)
    )
    mentioned = lru_cache(None)(lambda text: [value for value, _, _ in known.find(text)])

    def predict(turns: Sequence[str]) -> Prediction:
        state = {known.names[value]: value for text in turns for value in mentioned(text)}
        return Prediction([f"{slot}-{state[slot]}" for slot in SLOTS if slot in state])

    return [predict(example.inputs["turns"]) for example in scored]


def _predict_answer(task: Task, training: Examples, scored: Examples) -> list[Prediction]:
    """The rarest word, the shortest possible span, of the sentence that BM25 finds; no answer below the lead of the
    question's own words that is best on training questions."""
    seen = training[:MAX_QUESTIONS]
    cut = lru_cache(None)(lambda text: [(s, Counter(bigrams(s))) for s in SENTENCE_END.split(text) if s.strip()])
    idf = _idf([pairs for text in {e.inputs["context"] for e in seen} for _, pairs in cut(text)])

    def answer(example: Example) -> tuple[str, float]:
        question, sentences = set(bigrams(example.inputs["question"])), cut(example.inputs["context"])
        mean = sum(pairs.total() for _, pairs in sentences) / len(sentences)

        def bm25(pairs: Counter[str]) -> float:
            size = BM25_K1 * (1 - BM25_B + BM25_B * pairs.total() / mean)
            return sum(idf(f) * pairs[f] * (BM25_K1 + 1) / (pairs[f] + size) for f in question if f in pairs)

        value, text = max((bm25(pairs), sentence) for sentence, pairs in sentences)
        words = [word for word in text.split() if not set(bigrams(word)) <= question] or text.split()
        rarest = max(words, key=lambda word: sum(map(idf, bigrams(word))) / (len(word) + 1))
        return rarest.strip(".,!?'\"()"), value / (sum(map(idf, question)) or 1.0)

    answers = [answer(example) for example in seen]
    bars = [-math.inf, *np.quantile([lead for _, lead in answers], np.linspace(0.1, 0.9, 9)).tolist(), math.inf]
    guesses = {bar: [Prediction(text if lead >= bar else "") for text, lead in answers] for bar in bars}
    best = max(bars, key=lambda bar: task.score(to_rows(seen, guesses[bar]))[task.select_by])
    return [Prediction(text if lead >= best else "") for text, lead in map(answer, scored)]


class Kind(NamedTuple):
    """The baselines of tasks of one kind.

    Fields:
        constants: scored examples to predictions, the same for each, that are tried.
        counting: ``(task, training examples, scored examples)`` to predictions; ``counts``: in a few words.
    """

    constants: Callable[[Examples], Iterable[list[Prediction]]]
    counting: Predict
    counts: str


_LABEL = Kind(
    _each_label, _predict_label(lambda e: [f for text in _texts(e) for f in bigrams(text)]),
    "naive Bayes on character bigrams",
)  # fmt: skip
_PAIR = Kind(_each_label, _predict_label(_pair_features), "overlap, and naive Bayes on the second text")
_SIMILARITY = Kind(
    _everywhere(lambda _: np.linspace(0, MAX_SIMILARITY, 101).tolist()),
    _predict_similarity,
    "tf-idf cosine of character bigrams",
)
_TAGGING = Kind(_each_tag, _predict_entities, "entities of the training sentences")
_SPAN = Kind(_everywhere(lambda _: [""]), _predict_answer, "rarest word of the BM25 sentence, or no answer")
KINDS: Mapping[str, Kind] = {
    "ynat": _LABEL, "label": _LABEL, "klue-nli": _PAIR, "pair": _PAIR,
    "choice": Kind(_each_label, _predict_choice, "naive Bayes on the answers"),
    "klue-sts": _SIMILARITY, "similarity": _SIMILARITY, "klue-ner": _TAGGING, "tagging": _TAGGING,
    "klue-mrc": _SPAN, "span": _SPAN,
    "klue-re": Kind(_each_label, _predict_relation, "most frequent relation of the entity types"),
    "klue-dp": Kind(_each_type, _predict_tree, "next word as head, most frequent type of the tag"),
    "wos": Kind(_everywhere(_frequent_states), _predict_state, "last mentioned value of each slot"),
}  # fmt: skip
