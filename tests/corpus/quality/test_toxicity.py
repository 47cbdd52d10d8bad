"""Scores of a tiny random classifier, thresholds per label and source, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from pydantic import ValidationError
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers.models import WordLevel
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from corpus.config import ToxicityConfig
from corpus.documents.errors import BadInput
from corpus.quality.toxicity import is_toxic, load_classifier, score_sentences, write_scores

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = ("봄비가", "내린다", "고양이가", "졸고", "있다", "참", "좋은", "날이다", "너무", "춥다", "집에", "가자")
LABELS = ("gender_bias", "hate")
SIZES = {
    "vocab_size": len(SPECIALS) + len(WORDS),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
    "initializer_range": 0.2,  # scores far apart
}
Save = Callable[..., ToxicityConfig]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """``save(kind, labels, problem_type, thresholds, **settings)`` saves a random model."""

    def build(
        kind: str = "bert",
        labels: tuple[str, ...] = LABELS,
        problem_type: str | None = "multi_label_classification",
        thresholds: Mapping[str, float] = MappingProxyType({"hate": 0.9}),
        **settings: object,
    ) -> ToxicityConfig:
        names = dict(enumerate(labels))
        torch.manual_seed(7)
        if kind == "roberta":
            model = RobertaForSequenceClassification(RobertaConfig(**SIZES, id2label=names, problem_type=problem_type))
        elif kind == "untrained":
            model = BertForMaskedLM(BertConfig(**SIZES))
        else:
            model = BertForSequenceClassification(BertConfig(**SIZES, id2label=names, problem_type=problem_type))
        folder = tmp_path / kind
        model.save_pretrained(folder)
        vocabulary = {word: number for number, word in enumerate((*SPECIALS, *WORDS))}
        tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        roles = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles).save_pretrained(folder)
        common = {"enabled": True, "model": str(folder), "labels": dict(thresholds)}
        return ToxicityConfig(**common | settings)

    return build


@pytest.fixture
def sentences() -> list[str]:
    rng = Random(1)
    return [" ".join(rng.choices(WORDS, k=rng.randint(0, 30))) for _ in range(60)]


def plain_scores(config: ToxicityConfig, sentences: list[str], *, softmax: bool) -> np.ndarray:
    """One sentence at a time, ids by hand."""
    model = BertForSequenceClassification.from_pretrained(config.model).eval()
    rows = []
    for sentence in sentences:
        words = sentence.split()[: SIZES["max_position_embeddings"] - 2]
        ids = [2, *(len(SPECIALS) + WORDS.index(word) for word in words), 3]
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].double().numpy()
        odds = np.exp(logits)
        rows.append(odds / odds.sum() if softmax else odds / (1 + odds))
    return np.array(rows)


@pytest.mark.parametrize(
    ("labels", "problem_type", "softmax"),
    [
        (LABELS, "multi_label_classification", False),
        (("none", "offensive", "hate"), None, True),
        (("toxic",), None, False),
    ],
)
def test_scores_equal_a_plain_loop(
    save: Save, sentences: list[str], labels: tuple[str, ...], problem_type: str | None, softmax: bool
) -> None:
    config = save("bert", labels, problem_type, thresholds={labels[-1]: 0.5})
    classifier = load_classifier(config)
    assert classifier.labels == labels
    scores = score_sentences(sentences, classifier)
    expected = plain_scores(config, sentences, softmax=softmax)
    assert scores.dtype == np.float32 and scores.shape == (len(sentences), len(labels))
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert expected[:, -1].std() > 0.01  # the sentences differ


def test_order_and_batches_do_not_change_scores(save: Save, sentences: list[str]) -> None:
    config = save()
    classifier = load_classifier(config)
    scores = score_sentences(sentences, classifier)
    assert np.array_equal(scores, score_sentences(sentences, classifier))
    order = Random(2).sample(range(len(sentences)), len(sentences))
    shuffled = score_sentences([sentences[n] for n in order], classifier)
    np.testing.assert_allclose(shuffled, scores[order], atol=1e-6)
    assert score_sentences([], classifier).shape == (0, 2)


def test_any_label_above_its_threshold_drops_a_sentence_by_source() -> None:
    config = ToxicityConfig(
        model="m", labels={"gender_bias": 0.5, "hate": 0.9}, sources={"NEWS": {}, "WEB": {"hate": 0.2}}
    )
    scores = np.array([[0.1, 0.1], [0.5, 0.1], [0.1, 0.9], [0.4, 0.89]], np.float32)
    assert is_toxic(scores, LABELS, "PETITION", config).tolist() == [False, True, True, False]
    assert is_toxic(scores, LABELS, "WEB", config).tolist() == [False, False, True, True]
    assert is_toxic(scores, LABELS, "NEWS", config).tolist() == [False] * 4


def test_scores_are_written_with_the_place_of_their_sentence(tmp_path: Path) -> None:
    scores = np.array([[0.25, 0.5], [0.75, 1.0]], np.float32)
    write_scores(tmp_path / "scores.parquet", ["d1", "d1"], [0, 3], scores, LABELS)
    table = pq.read_table(tmp_path / "scores.parquet")
    assert [str(field.type) for field in table.schema] == ["string", "int32", "float", "float"]
    assert table.to_pydict() == {"id": ["d1", "d1"], "sentence": [0, 3], "gender_bias": [0.25, 0.75], "hate": [0.5, 1]}
    assert [path.name for path in tmp_path.iterdir()] == ["scores.parquet"]


def test_an_unknown_label_is_reported_with_those_of_the_model(save: Save) -> None:
    config = save().model_copy(update={"labels": {"hatred": 0.9}})
    with pytest.raises(BadInput, match=r"no label hatred; expected any of gender_bias, hate"):
        load_classifier(config)
    config = save().model_copy(update={"sources": {"NEWS": {"rude": 0.9}}})
    with pytest.raises(BadInput, match=r"sources\.NEWS.* no label rude"):
        load_classifier(config)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no classifier could be loaded"):
        load_classifier(ToxicityConfig(model=str(tmp_path)))


def test_a_model_without_a_trained_head_is_refused(save: Save) -> None:
    """The library would give it a random one."""
    with pytest.raises(BadInput, match=r"classifier\.\w+.* missing"):
        load_classifier(save("untrained"))


def test_pickled_weights_are_refused(save: Save) -> None:
    config = save()
    folder = Path(config.model)
    (folder / "model.safetensors").unlink()
    torch.save(BertForSequenceClassification(BertConfig(**SIZES)).state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(BadInput, match=r"no classifier could be loaded"):
        load_classifier(config)


def test_code_that_comes_with_a_model_does_not_run(save: Save) -> None:
    config = save()
    settings = Path(config.model) / "config.json"
    code = {"AutoConfig": "trap.Trap", "AutoModelForSequenceClassification": "trap.Model"}
    trap = {"model_type": "trap", "auto_map": code}
    settings.write_text(json.dumps(json.loads(settings.read_text()) | trap))
    (Path(config.model) / "trap.py").write_text(f"open({str(settings) + '.ran'!r}, 'w')\n")
    with pytest.raises(BadInput, match=r"no classifier could be loaded"):
        load_classifier(config)
    assert not Path(str(settings) + ".ran").exists()


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_sentences_longer_than_the_model_reads_are_truncated(save: Save, kind: str) -> None:
    scores = score_sentences([" ".join(WORDS * 5)], load_classifier(save(kind)))
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    "bad",
    [
        {"enabled": True},
        {"enabled": True, "model": "m"},
        {"enabled": True, "model": "m", "sources": {"NEWS": {}}},
        {"labels": {"hate": 90}},
        {"sources": {"NEWS": {"hate": -1}}},
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ToxicityConfig(**bad)


def test_the_settings_load_without_the_model_libraries() -> None:
    code = "import sys, corpus.quality.toxicity; sys.exit(bool({'torch', 'transformers'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_stage_drops_toxic_sentences_and_keeps_all_scores(tmp_path: Path, save: Save, clean: Any) -> None:
    config = save("bert")
    words = [word for word in WORDS if word[0] >= "가"]
    lines = [
        json.dumps({"id": str(n), "text": f"{' '.join(words[n % 5 :])} {n}."}, ensure_ascii=False) for n in range(12)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), "utf-8")
    label = next(iter(config.labels))
    settings = config.model_dump() | {"labels": {label: 0.0}}
    with pytest.raises(BadInput, match="all 12 documents were dropped"):
        clean(tmp_path / "a.jsonl", toxicity=settings, out="none")
    whole = clean(tmp_path / "a.jsonl", toxicity=settings | {"sources": {"a": {}}}, out="all", workers=2)
    [scores] = [pq.read_table(path) for path in (tmp_path / "all" / "toxicity").glob("*.parquet")]
    assert len(scores) == whole["sentences"] > 12
    middle = sorted(scores[label].to_pylist())[len(scores) // 2]
    above = sum(score >= middle for score in scores[label].to_pylist())
    counts = clean(tmp_path / "a.jsonl", toxicity=settings | {"labels": {label: middle}}, out="half")
    assert counts["dropped_sentences"] == {"toxic": above} and counts["sentences"] == len(scores) - above
