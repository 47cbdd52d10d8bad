"""KLUE-MRC: extractive question answering with unanswerable questions (KLUE paper 3.7, 5.1).

`[CLS] question [SEP] context [SEP]`; a long context becomes overlapping windows. Spans are found, and answers cut out
of the context, by character offsets. Where a token holds the end of the answer and its particle, the model also learns
how many characters of the token to cut off. Protocol ``klue-baseline``: ``finetune.tasks.mrc.published``.

An ensemble compares spans by their characters, so tokenizers may differ. Two means decide: the probability of "no
answer" against a member's own best span, and the probability of each span among a member's best spans, weighted by the
probability that the member answers. A span that one tokenizer cannot represent gets nothing from it; with one
distribution over spans and "no answer", spans that differ by a particle would lose to "no answer".
Legend: ``L`` positions of a window, ``N`` held-out questions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finetune import task as base
from finetune.config import FinetuneConfig
from finetune.examples import ErrorView, Example, Feature, Prediction, Row, Tokenizer
from finetune.metrics import softmax
from finetune.tasks.labels import build_head, parse_texts
from finetune.tasks.mrc import published, windows
from finetune.tasks.mrc.metrics import score, score_question, tables
from finetune.tasks.mrc.reader import ABOUT, answer_span, convert, is_misplaced, read, write
from finetune.tasks.mrc.windows import ANSWER_TOKENS, Passage, Target

CUTS = 4  # most characters cut off the answer's last token; particles such as 에서는 have three
AROUND_ANSWER = 60  # characters of a passage shown on each side of an answer
MAX_SPANS = 20  # of a question in an ensemble, as in the published n-best lists


def featurize(
    examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool, empty_share: float = 1.0
) -> list[Feature]:
    """Windows of every question (``make_features``). In training, misplaced answers are left out with a warning, and
    ``empty_share`` of the windows without an answer are kept (``keep_some``)."""

    def find_targets(examples: Sequence[Example], passages: Sequence[Passage]) -> list[Target | None]:
        return [find_tokens(passage, answer_span(e)) for e, passage in zip(examples, passages, strict=True)]

    features = windows.make_features(examples, tokenizer, max_tokens, find_targets)
    if not is_training:
        return features
    remaining = windows.keep_some(windows.keep_trainable(features, examples, is_misplaced), examples, empty_share)
    windows.warn_of_empty(remaining)
    return remaining


def find_tokens(passage: Passage, span: tuple[int, int] | None) -> Target | None:
    """The tokens that contain any character of a span, and how many characters of the last one are after it."""
    if span is None:
        return None
    begin_N, end_N = passage.offsets_N2.T
    inside = np.flatnonzero((end_N > span[0]) & (begin_N < span[1]))
    if not len(inside):
        return None
    after = int(end_N[inside[-1]]) - span[1]
    return Target(int(inside[0]), int(inside[-1]), after if 0 < after <= CUTS else 0)


def collate(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Batch as ``SpanFinder.forward`` describes it; [CLS] and context can be ends of a span."""
    batch = published.collate(features, pad_id)
    place_L = np.arange(batch["input_ids"].shape[1])
    begin_B1 = np.array([[feature["context_at"]] for feature in features])
    end_B1 = np.array([[feature["context_at"] + len(feature["offsets"])] for feature in features])
    return {
        **batch,
        "candidates": (place_L == 0) | ((place_L >= begin_B1) & (place_L < end_B1)),
        "cut": np.array([feature["cut"] for feature in features]),
    }


def ends_of_starts(feature: Feature, end_L: NDArray[Any]) -> NDArray[Any]:
    """Scores of the ends that each start may have, (starts, ``ANSWER_TOKENS``), -inf after the context. Spans start
    where this window shows most around it."""
    begin, last = feature["max_context"]
    end = end_L[begin : feature["context_at"] + len(feature["offsets"])]
    padded = np.pad(end, (0, ANSWER_TOKENS - 1), constant_values=-np.inf)
    return np.lib.stride_tricks.sliding_window_view(padded, ANSWER_TOKENS)[: last - begin + 1]


def best_span(feature: Feature, start_L: NDArray[Any], end_L: NDArray[Any]) -> tuple[float, int, int]:
    """Score and positions of the best span of a window, at most ``ANSWER_TOKENS`` long; -inf if there is none."""
    if feature["max_context"] is None:
        return -np.inf, 0, 0
    begin, last = feature["max_context"]
    ends = ends_of_starts(feature, end_L)
    length = ends.argmax(axis=1)
    total = start_L[begin : last + 1] + ends.max(axis=1)
    best = int(total.argmax())
    return float(total[best]), begin + best, begin + best + int(length[best])


def best_spans(feature: Feature, raw: Any, most: int) -> list[tuple[float, int, int]]:
    """Scores and characters of the best spans of a window, its ``best_span`` first."""
    if feature["max_context"] is None:
        return []
    begin, last = feature["max_context"]
    ends = ends_of_starts(feature, raw["end"])
    total = (raw["start"][begin : last + 1, None] + ends).ravel()
    some = np.argpartition(-total, min(most, len(total)) - 1)[:most]
    some = some[total[some] > -np.inf]
    start, length = np.divmod(some, ANSWER_TOKENS)
    order = np.lexsort((length, -ends[start, length], start, -total[some]))
    spans = zip(total[some], start + begin, start + length + begin, strict=True)
    scored_spans = [(float(score), *characters_of(feature, raw, first, end)) for score, first, end in spans]
    return [scored_spans[number] for number in order]


def characters_of(feature: Feature, raw: Any, first: int, last: int) -> tuple[int, int]:
    """The characters [begin, end) of a span of positions, without what the model cuts off the last token."""
    at = feature["context_at"]
    begin, (last_begin, end) = feature["offsets"][first - at, 0], feature["offsets"][last - at]
    return int(begin), max(int(end) - int(raw["cut"][last]), int(last_begin) + 1)


def decode(
    examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any], always_answers: bool = False
) -> list[Prediction]:
    """The best span over all windows as text of the context, or "". Scores: ``null``, how much "no answer" is ahead."""
    null = [np.inf] * len(examples)
    best: list[tuple[float, int, int]] = [(-np.inf, 0, 0)] * len(examples)
    for feature, raw in zip(features, raws, strict=True):
        example = feature["example"]
        null[example] = min(null[example], float(raw["start"][0] + raw["end"][0]))
        total, first, last = best_span(feature, raw["start"], raw["end"])
        if total > best[example][0]:
            best[example] = total, *characters_of(feature, raw, first, last)
    predictions = []
    for number, (total, begin, end) in enumerate(best):
        ahead = null[number] - total
        span = examples[number].inputs["context"][begin:end].strip()  # a token may bring the space before it
        text = "" if ahead > 0 and not always_answers else span
        predictions.append(Prediction(text, {"null": ahead if np.isfinite(ahead) else None}))
    return predictions


def choose_threshold(examples: Sequence[Example], answered: Sequence[Prediction]) -> float:
    """The lead of "no answer" above which a question is left unanswered, so that the mean of exact match and ROUGE-W is
    highest; the middle of the two neighboring leads, 0 if nothing can be chosen.

    Args:
        answered: for each example the best span, even if "no answer" leads, and its lead as ``null``.

    >>> examples = [Example(str(n), {"answers": ["봄"] if n else []}, {}) for n in range(3)]
    >>> choose_threshold(examples, [Prediction("봄", {"null": lead}) for lead in (5.0, 2.0, 1.0)])
    3.5
    """
    rows = [
        (answer.scores["null"], sum(score_question(example.gold, answer.value)), 2 * (not example.gold["answers"]))
        for example, answer in zip(examples, answered, strict=True)
        if answer.scores["null"] is not None
    ]  # fmt: skip
    rows.sort()
    if not rows:
        return 0.0
    leads_N, spans_N, empties_N = np.array(rows).T
    # value of a threshold after the first n leads: they are answered, the others are not
    value = np.concatenate(([0.0], np.cumsum(spans_N - empties_N)))
    between = np.concatenate(([True], np.diff(leads_N) > 0, [True]))  # equal leads cannot be parted
    value[~between] = -math.inf
    edges = np.concatenate(([leads_N[0] - 1], (leads_N[:-1] + leads_N[1:]) / 2, [leads_N[-1] + 1]))
    best = np.flatnonzero(value == value.max())
    return float(edges[best[np.abs(edges[best]).argmin()]])  # of equals the nearest to 0, which is no threshold


def to_records(
    examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]
) -> list[base.MemberRecord]:
    """``null``: the score of "no answer"; of the best spans ``scores``, ``places`` (two numbers each) and ``texts``."""
    null = np.full(len(examples), np.inf, dtype=np.float32)
    totals: list[dict[tuple[int, int], float]] = [{} for _ in examples]
    for feature, raw in zip(features, raws, strict=True):
        number, context = feature["example"], examples[feature["example"]].inputs["context"]
        null[number] = min(null[number], raw["start"][0] + raw["end"][0])
        for total, begin, end in best_spans(feature, raw, MAX_SPANS):
            text = context[begin:end]
            place = begin + len(text) - len(text.lstrip()), begin + len(text.rstrip())
            totals[number][place] = max(totals[number].get(place, -np.inf), total)
    records = []
    for example, least, spans in zip(examples, null, totals, strict=True):
        best = sorted(spans, key=spans.__getitem__, reverse=True)[:MAX_SPANS]
        records.append(
            {
                "null": np.array([least]),
                "scores": np.array([spans[place] for place in best], dtype=np.float32),
                "places": np.array(best, dtype=np.int32).ravel(),
                "texts": [example.inputs["context"][slice(*place)] for place in best],
            }
        )
    return records


def merge(members: Sequence[base.MemberRecords]) -> list[Prediction]:
    """The best span of each question, or "" if "no answer" is likelier. Scores: ``null``, the log odds of "no
    answer"."""
    return [_answer(records) for records in zip(*members, strict=True)]


def _answer(records: Sequence[base.MemberRecord]) -> Prediction:
    votes: dict[tuple[int, int], float] = defaultdict(float)
    texts: dict[tuple[int, int], str] = {}
    ahead = []
    for record in records:
        scores, places = record["scores"], map(tuple, record["places"].reshape(-1, 2).tolist())
        best = float(scores[0]) if len(scores) else -np.inf
        ahead.append(float(record["null"][0]) - best)
        answered = float(np.exp(-np.logaddexp(0, ahead[-1])))
        for place, p, text in zip(places, softmax(scores) if len(scores) else (), record["texts"], strict=True):
            votes[place] += answered * float(p)
            texts[place] = text
    yes, no = (np.logaddexp.reduce(-np.logaddexp(0, sign * np.array(ahead))) for sign in (-1, 1))
    lead = float(yes - no)
    text = "" if lead > 0 or not votes else texts[max(votes, key=votes.__getitem__)]
    return Prediction(text, {"null": lead if np.isfinite(lead) else None})


def tune(model: Any, examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> dict[str, float]:
    """Set the no-answer threshold from the predictions of the untuned model on held-out examples."""
    predictions = decode(examples, features, raws, always_answers=True)
    threshold = choose_threshold(examples, predictions)
    model.threshold.fill_(threshold)
    return {"no_answer_threshold": threshold}


def configure(task: base.Task, config: FinetuneConfig) -> base.Task:
    """Train on a share of the windows without an answer (``finetune.mrc_empty_windows``)."""
    share = config.mrc_empty_windows
    return task if share == 1 else replace(task, featurize=partial(featurize, empty_share=share))


def validate_text(example: Example, prediction: Prediction) -> str | None:
    """A text, empty for no answer."""
    value = prediction.value
    return None if isinstance(value, str) else f"expected a text, empty for no answer; found {value!r:.60}"


def show(example: Example, row: Row) -> ErrorView:
    """The question, the passage around the answer, and both answers."""
    context, start = example.inputs["context"], example.inputs.get("start")
    length = len(row.gold["answers"][0]) if row.gold["answers"] else len(row.prediction)
    place = start if start is not None else max(0, context.find(row.prediction))
    begin, end = max(0, place - AROUND_ANSWER), place + length + AROUND_ANSWER
    passage = f"{'…' if begin else ''}{context[begin:end]}{'…' if end < len(context) else ''}"
    gold = list(dict.fromkeys(row.gold["answers"])) or ["no answer"]
    return {"question": example.inputs["question"], "passage": passage}, gold, [row.prediction or "no answer"]


COLUMNS = ("question", "context")


def parse_input(raw: base.RawInput, where: str) -> dict[str, Any] | None:
    """``question`` and ``context``, without an answer."""
    texts = parse_texts(COLUMNS, raw, where)
    return texts and {**texts, "start": None}


def to_result(example: Example, prediction: Prediction) -> dict[str, Any]:
    """Both texts, and ``score``: the lead of the best answer over "no answer", negative if there is no answer."""
    ahead = (prediction.scores or {}).get("null")
    return {**{name: example.inputs[name] for name in COLUMNS}, "score": None if ahead is None else -ahead}


def format_lines(result: Mapping[str, Any]) -> list[str]:
    """Answer, score and question."""
    score = "" if result["score"] is None else f"{result['score']:+.2f}"
    return ["\t".join([result["prediction"] or "no answer", score, result["question"]])]


KLUE_MRC = base.Task(
    name="klue-mrc",
    predicts="answer to a question as a span of the passage, or none",
    files=base.Files("klue-mrc-v1.1", "json"),
    read=read,
    write=write,
    featurize=featurize,
    collate=collate,
    model=partial(build_head, "SpanFinder", cuts=CUTS),
    decode=decode,
    score=score,
    select_by="rouge_w",
    published=base.published_facts("klue-mrc", published.QUIRKS),
    inspection=base.Inspection(
        tables=tables, validate=validate_text, show=show, differs=lambda row: score([row])["exact_match"] < 100
    ),
    hub=base.HubLayout((*ABOUT, "guid", "question", "question_type", "is_impossible", "answers"), convert),
    inference=base.Inference(parse_input, to_result, format_lines),
    ensembling=base.Ensembling(merge, to_records),
    group=lambda example: str(example.inputs["context"]),
    configure=configure,
    tune=tune,
)
