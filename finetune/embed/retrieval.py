"""Search: BM25 first, a dense score added with a weight that must have helped on other questions; reranking.

score = BM25 / its maximum for the question + weight x cosine. Reciprocal rank fusion, the usual choice, ruins BM25 with
a small encoder (nDCG@10 88.4 to 60.9), because it cannot give the weaker side less weight.

A reranker is a cross-encoder that reads a question together with each of the best passages of BM25: a model of kind
``choice`` of `malmoi finetune`, trained on right passages and hard negatives (``write_choices``). Its folder is a stock
sequence classifier with one output, so CrossEncoder of sentence-transformers loads it, too.
Legend: ``Q`` questions, ``P`` passages, ``K`` of them read again, ``N`` pairs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from corpus.documents.accelerator import DeviceName
from corpus.documents.errors import BadInput
from corpus.documents.mecab import MAX_ANALYZED_CHARS, tag_morphemes
from finetune.data.files import write_json_lines
from finetune.embed.data import DOCUMENTS, EvaluationSet, Item
from finetune.embed.evaluate import Bm25, Encode, rows_of_rankings
from finetune.examples import Row, pad_inputs
from finetune.heads.labels import Labeller
from finetune.saved_models.load import load_model
from finetune.score.baselines import bigrams
from finetune.tasks.labels import encode_texts
from finetune.tasks.similarity import DEPTH, score_ranking
from finetune.train.batched_prediction import batches_by_length, to_tensors

Matrix = NDArray[np.float32]
WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
MARGIN = 0.95  # of the score of the right passage, from which on another is no negative
LEAST_ERRORS = 1.64  # standard errors by which a weight must gain: 95 %, one-sided
CONTENT_TAGS = ("NN", "NP", "NR", "VV", "VA", "MA", "MM", "XR", "SL", "SH", "SN")
HYBRID = "with BM25"


def content_words(text: str) -> list[str]:
    """Morphemes of mecab without particles, endings and signs."""
    words = " ".join(word[:MAX_ANALYZED_CHARS] for word in text.lower().replace("\0", " ").split())
    return [morpheme for morpheme, tag in tag_morphemes(words) if tag.startswith(CONTENT_TAGS)]


COUNTED: Mapping[str, Callable[[str], list[str]]] = {
    "BM25 words": lambda text: text.lower().split(), "BM25 bigrams": bigrams, "BM25 morphemes": content_words,
}  # fmt: skip


def bm25_scores(part: EvaluationSet, tokens_of: Callable[[str], list[str]] = bigrams) -> Matrix:
    """(Q, P), each question's maximum 1."""
    index = Bm25.build([tokens_of(text) for text in part.passages.values()])
    scores_QP = np.stack([index.scores(tokens_of(question)) for question in part.firsts]).astype(np.float32)
    return np.asarray(scores_QP / np.maximum(scores_QP.max(axis=1, keepdims=True), 1e-9))


def dense_scores(part: EvaluationSet, encode: Encode) -> Matrix:
    """Cosines, (Q, P)."""
    passages = encode(list(part.passages.values()), prompt="passage")
    return np.asarray(encode(part.firsts, prompt="query") @ passages.T)


def rank(part: EvaluationSet, scores_QP: Matrix) -> list[list[str]]:
    """The first passages for each question; equal scores in the order of the passages."""
    names, top = list(part.passages), min(DEPTH, scores_QP.shape[1])
    ranked = []
    for scores_P in scores_QP:
        best = np.sort(np.argpartition(-scores_P, top - 1)[:top])
        ranked.append([names[i] for i in best[np.argsort(-scores_P[best], kind="stable")].tolist()])
    return ranked


def ndcg(part: EvaluationSet, scores_QP: Matrix) -> NDArray[np.float64]:
    """nDCG@10 of each question, (Q), 0..1."""
    pairs = zip(part.golds, rank(part, scores_QP), strict=True)
    return np.array([score_ranking(gold, names)[0] for gold, names in pairs])


def choose_weight(gains_WQ: NDArray[np.float64]) -> float:
    """The weight with the highest mean of the metric (of ``WEIGHTS`` x questions), 0 unless its gain is clear."""
    best = int(np.argmax(gains_WQ.mean(axis=1)))
    gain_Q = gains_WQ[best] - gains_WQ[0]
    error = gain_Q.std(ddof=1) / np.sqrt(len(gain_Q)) if len(gain_Q) > 1 else np.inf
    return WEIGHTS[best] if gain_Q.mean() > LEAST_ERRORS * error else 0.0


def combine(part: EvaluationSet, words_QP: Matrix, dense_QP: Matrix) -> tuple[Matrix, float]:
    """The combined scores, and the weight that all questions together choose.

    The weight of a question is chosen on the half of the questions about other passages, so the scores are fair.
    """
    gains_WQ = np.stack([ndcg(part, words_QP + weight * dense_QP) for weight in WEIGHTS])
    half_Q = np.array([hashlib.blake2b(min(gold).encode(), digest_size=1).digest()[0] % 2 for gold in part.golds])
    weight_Q = np.zeros(len(half_Q), np.float32)
    for half in (0, 1):
        if (half_Q != half).any():
            weight_Q[half_Q == half] = choose_weight(gains_WQ[:, half_Q != half])
    return words_QP + weight_Q[:, None] * dense_QP, choose_weight(gains_WQ)


def mine_negatives(items: Sequence[Item], encode: Encode | None = None) -> list[Item]:
    """The same with a hard negative for each pair of a file: the passage of another pair that BM25 finds first, and
    another one that ``encode`` finds first.

    A passage with nearly the score of the right one may answer the question too, so it is no negative
    (``MARGIN``). Pairs of documents stay as they are: their other passages are of the same text.
    """
    labelled = [item for item in items if len(item.texts) == 2 and not item.source.startswith(DOCUMENTS)]
    passages = list(dict.fromkeys(item.texts[1] for item in labelled))
    if len(passages) < 2:
        return list(items)
    index = Bm25.build([bigrams(text) for text in passages])
    number, vectors_PH = {text: i for i, text in enumerate(passages)}, None
    if encode is not None:
        vectors_PH = encode(passages, prompt="passage")
        queries_NH = encode([item.texts[0] for item in labelled], prompt="query")
    with_negatives: dict[Item, Item] = {}
    for row, item in enumerate(labelled):
        scores_P, own = index.scores(bigrams(item.texts[0])), number[item.texts[1]]
        negatives = [_first_below(scores_P, own)]
        if vectors_PH is not None:
            negatives.append(_first_below(vectors_PH @ queries_NH[row], own, skip=negatives[0]))
        with_negatives[item] = item._replace(texts=(*item.texts, *(passages[i] for i in negatives if i is not None)))
    return [with_negatives.get(item, item) for item in items]


def _first_below(scores_P: NDArray[Any], right: int, skip: int | None = None) -> int | None:
    """The passage with the highest score that is clearly below that of the ``right`` one; None: none scores at all."""
    scores_P = np.where(scores_P >= MARGIN * scores_P[right], 0.0, scores_P)
    if skip is not None:
        scores_P[skip] = 0.0
    best = int(scores_P.argmax())
    return best if scores_P[best] > 0 else None


def rank_trained(part: EvaluationSet, encoders: Mapping[str, Encode]) -> tuple[dict[str, list[Row]], float]:
    """Results of the encoders alone and of the first with BM25, and the weight to use it with."""
    systems = {name: dense_scores(part, encode) for name, encode in encoders.items()}
    first = next(iter(systems))
    systems[f"{first} {HYBRID}"], weight = combine(part, bm25_scores(part), systems[first])
    return {system: rows_of_rankings(part, rank(part, scores)) for system, scores in systems.items()}, weight


def rank_baselines(part: EvaluationSet, pieces: Callable[[str], list[str]]) -> dict[str, list[Row]]:
    """Results of BM25 on words, ``pieces`` of the vocabulary, bigrams, and morphemes without function words."""
    splitters = {**COUNTED, "BM25 WordPiece": pieces}
    return {name: rows_of_rankings(part, rank(part, bm25_scores(part, split))) for name, split in splitters.items()}


CHOICES_NAME = "choices.jsonl"
READ_AGAIN = 20  # passages of BM25


class Reranker:
    """A trained model of kind ``choice``; ``BadInput`` for any other."""

    def __init__(self, folder: str, device: DeviceName = "auto") -> None:
        saved = load_model(folder, device)
        if not isinstance(saved.model, Labeller) or saved.model.kind != "choice":
            raise BadInput(f"{folder}: a model for {saved.task.name}; give one of a custom task of kind choice")
        self.model, self.tokenizer, self.max_tokens = saved.model, saved.tokenizer, int(saved.settings["max_tokens"])

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """How well each passage answers its question, 0..1."""
        firsts, seconds = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        features = encode_texts(self.tokenizer, firsts, seconds, self.max_tokens)
        device, scores_N = next(self.model.parameters()).device, np.zeros(len(pairs))
        with torch.inference_mode():
            for batch in batches_by_length(features):
                inputs = to_tensors(pad_inputs([features[i] for i in batch], int(self.tokenizer.pad_token_id)), device)
                scores_N[batch] = self.model.run_net(inputs).logits[:, 0].float().sigmoid().cpu().numpy()
        return scores_N


def rank_again(part: EvaluationSet, reranker: Reranker) -> dict[str, list[Row]]:
    """Results with the best ``READ_AGAIN`` passages of BM25 in the order of the reranker, and of both together, its
    weight chosen as that of cosines."""
    words_QP, texts = bm25_scores(part), list(part.passages.values())
    count = min(READ_AGAIN, words_QP.shape[1])
    best_QK = np.argpartition(-words_QP, count - 1, axis=1)[:, :count]
    pairs = [(question, texts[i]) for question, row in zip(part.firsts, best_QK, strict=True) for i in row]
    again_QP = np.zeros_like(words_QP)
    np.put_along_axis(again_QP, best_QK, reranker.score(pairs).reshape(best_QK.shape).astype(np.float32), axis=1)
    systems = {"BM25 reranked": again_QP, "BM25 with reranker": combine(part, words_QP, again_QP)[0]}
    return {system: rows_of_rankings(part, rank(part, scores_QP)) for system, scores_QP in systems.items()}


def write_choices(items: Sequence[Item], out: Path) -> None:
    """Write questions with a hard negative as a file of choices (columns question, right, wrong, label), if any."""
    rows = [
        {"question": item.texts[0], "right": item.texts[1], "wrong": wrong, "label": "right"}
        for item in items if item.score is None for wrong in item.texts[2:]
    ]  # fmt: skip
    if rows:
        write_json_lines(out / CHOICES_NAME, rows)
