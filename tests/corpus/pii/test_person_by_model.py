"""Names that a model tags: what is found, joined with the rules, hidden, and what no model is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer, BertConfig, BertForMaskedLM

from corpus.documents.errors import BadInput
from corpus.pii.detect import Span, _add_names, find_pii
from corpus.pii.extra import person_by_model as tagged
from corpus.pii.extra.person_by_model import NameSpan, NameTagger, _before_particle, load_tagger
from corpus.pii.extra.person_by_rules import fake_name
from corpus.pii.hide import MODES, Mode, PiiHider
from tests.corpus.pii.name_models import SIZES, save_model, save_random_model, save_tokenizer

SENTENCE = "어제 가온솔은 하람을 만났다."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("by-hand"))


@pytest.fixture
def name_model(folder: Path) -> NameTagger:
    return load_tagger(folder, device="cpu")


@pytest.fixture(scope="module")
def random_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random_model(tmp_path_factory.mktemp("random"))


def names_in(text: str, name_model: NameTagger) -> list[str]:
    return [text[name.start : name.end] for name in name_model.find(text)]


# --- what is found


def test_particles_are_no_part_of_a_name(name_model: NameTagger) -> None:
    assert find_pii(SENTENCE, name_model=name_model) == [Span(3, 6, "PERSON"), Span(8, 10, "PERSON")]
    assert [span.why for span in find_pii(SENTENCE, name_model=name_model)] == [("model",)] * 2
    assert find_pii(SENTENCE) == find_pii(SENTENCE, ["PERSON"]) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("가온 새 왔다", ["가온 새"]),  # a name with a blank
        ("가온 하람 왔다", ["가온", "하람"]),  # two names
        ("가온하람 왔다", ["가온하람"]),  # a name begins inside a word: no half of it stays
        ("가온·하람 왔다", ["가온", "하람"]),
        ("가온솔을, 가온리는 갔다", ["가온솔", "가온리"]),  # a token that holds a particle, too
        ("비가하람 왔다", ["비가하람"]),  # names begin where words do
        ("학교에하람 왔다", []),
        ("새는 왔다", []),  # one syllable, as a surname alone, identifies nobody
        ("비가 왔다.\n\n  가온은 갔다! 하람은?", ["가온", "하람"]),
        ("", []),
        ("... 010-0123-4567", []),
        ("[PERSON]은 가온을 만났다", ["가온"]),
    ],
)
def test_names_begin_and_end_where_the_tags_say(name_model: NameTagger, text: str, names: list[str]) -> None:
    assert names_in(text, name_model) == names


def test_nothing_of_a_long_text_is_cut_off(name_model: NameTagger) -> None:
    rng = Random(3)
    plain = [rng.choice(["비가", "학교에", "오늘"]) for _ in range(1_500)]
    places = sorted(rng.sample(range(1_500), 200))
    for place in places:
        plain[place] = rng.choice(["가온은", "하람을", "구름이"])
    text = " ".join(plain)  # one sentence of some 25 windows
    starts = [len(" ".join(plain[:place])) + bool(place) for place in places]
    assert [(name.start, name.end) for name in name_model.find(text)] == [(start, start + 2) for start in starts]


def test_probabilities_are_those_of_the_stock_model_reading_a_sentence_alone(random_folder: Path) -> None:
    name_model = load_tagger(random_folder, 0.3, "cpu")
    sentences = ["어제 가온솔은 하람을 만났다.", "비가 왔다.", "오늘 학교에 갔다, 새싹·구름솔에게 전화"]
    model = AutoModelForTokenClassification.from_pretrained(random_folder)
    tokenizer = AutoTokenizer.from_pretrained(random_folder)
    names = 0
    for sentence in sentences:
        given = tokenizer(sentence, return_tensors="pt", add_special_tokens=False)["input_ids"]
        ids = torch.tensor([[tokenizer.cls_token_id, *given[0].tolist(), tokenizer.sep_token_id]])
        with torch.no_grad():
            shares_L = model(input_ids=ids).logits[0, 1:-1].softmax(-1)[:, :2].sum(-1).numpy()
        found = name_model.find(sentence)
        offsets = tokenizer(sentence, return_offsets_mapping=True, add_special_tokens=False)["offset_mapping"]
        for name in found:
            inside = [p for (start, end), p in zip(offsets, shares_L, strict=True) if name.start <= start < name.end]
            assert max(inside) == pytest.approx(name.score, abs=1e-3)
        reached = [span for span, p in zip(offsets, shares_L, strict=True) if p >= 0.3]
        assert all(any(name.start <= start and end <= name.end for name in found) for start, end in reached)
        names += len(found)
    assert names > 1


def test_what_is_found_depends_neither_on_the_batch_nor_on_the_order(random_folder: Path) -> None:
    def finder() -> NameTagger:
        return tagged._load.__wrapped__(random_folder, 0.4, torch.device("cpu"), "", ())

    rng = Random(5)
    words = ["어제", "오늘", "비가", "왔다", "만났다", "가온은", "하람을", "구름솔이", "새싹", "abc", "12"]
    texts = [" ".join(rng.choices(words, k=rng.randint(1, 60))) for _ in range(24)]
    alone = finder()
    expected = [alone.find(text) for text in texts]
    assert any(expected)
    together, shuffled, joined = finder(), finder(), finder()
    together.prepare(texts)
    shuffled.prepare(rng.sample(texts, 15))
    assert [together.find(text) for text in texts] == [shuffled.find(text) for text in texts] == expected
    lines = joined.find("\n".join(texts))
    assert len(lines) == sum(map(len, expected))


def test_a_machine_that_rounds_by_the_size_of_a_batch_reads_one_sentence_at_a_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: NameTagger, rows: Any) -> Any:
        sizes.append(len(rows))
        return original(self, rows) + np.float32(len(rows) * 1e-7)

    sizes: list[int] = []
    original = NameTagger._run
    monkeypatch.setattr(NameTagger, "_run", run)
    name_model = tagged._load.__wrapped__(folder, 0.5, torch.device("cpu"), "", ())
    sizes.clear()
    name_model.prepare([f"{SENTENCE}\n오늘 하람은 갔다."])
    assert sizes == [1, 1]


def test_the_threshold_is_a_probability(random_folder: Path) -> None:
    found = load_tagger(random_folder, 0.3, "cpu").find(SENTENCE)
    least = min(name.score for name in found)
    assert 0.3 <= least < 1
    fewer = load_tagger(random_folder, least + 0.001, "cpu").find(SENTENCE)
    assert len(fewer) < len(found) and all(name.score > least for name in fewer)


# --- joined with the rules


def test_a_name_inside_another_value_is_no_second_find(name_model: NameTagger) -> None:
    text = "메일 가온@example.com, gaon@example.com, 하람"
    assert name_model.find("gaon@example.com") == []
    spans = find_pii(text, name_model=name_model)
    assert [(text[s.start : s.end], s.type) for s in spans][-2:] == [("gaon@example.com", "EMAIL"), ("하람", "PERSON")]
    assert all(left.end <= right.start for left, right in pairwise(spans))


class Fixed:
    """A model with given results."""

    def __init__(self, *names: tuple[int, int]) -> None:
        self.names = [NameSpan(start, end, 0.75) for start, end in names]

    def find(self, text: str) -> list[NameSpan]:
        return self.names


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([(0, 3)], [(0, 3, "label")]),  # the same: by words
        ([(0, 2)], [(0, 3, "label")]),  # a part
        ([(1, 5)], [(0, 3, "label")]),  # beyond its end
        ([(0, 5)], [(0, 5, "model")]),  # the whole of which the rules know a part
        ([(6, 8)], [(0, 3, "label"), (6, 8, "model")]),
        ([], [(0, 3, "label")]),
    ],
)
def test_rules_win_except_for_a_part_of_a_longer_name(names: Any, expected: list[tuple[int, int, str]]) -> None:
    found = find_pii("한보람 씨와 가온이 왔다", name_model=Fixed(*names))  # type: ignore[arg-type]
    assert [(span.start, span.end, *span.why) for span in found] == expected


# --- hidden


@pytest.mark.parametrize("mode", MODES)
def test_nothing_that_the_model_finds_is_left(name_model: NameTagger, mode: Mode) -> None:
    text = f"{SENTENCE} 가온솔이 전화 010-0123-4567로 하람에게.\n오늘 구름은 비가 왔다."
    hidden = PiiHider(mode, b"secret", name_model=name_model).hide(text, "d")
    left = "" if mode == "drop" else hidden
    assert not re.search("가온|하람|구름|0123-4567", hidden)
    assert ("만났다" in left) == (mode != "drop")
    if mode == "replace":
        first, second = re.findall("어제 (...)[은는]|([가-힣]{3})[이가] 전화", hidden)
        assert first[0] == second[1]  # alike in a document
    if mode == "tag":
        assert hidden.count("[PERSON]") == 5


@pytest.mark.parametrize(
    ("value", "finals"),
    [("가온솔", {8}), ("김가온", set(range(1, 28)) - {8}), ("김나래", {0}), ("남궁하늘", {8}), ("엘리자베스", {0})],
)
def test_particles_fit_an_invented_name_as_they_fitted_the_old_one(value: str, finals: set[int]) -> None:
    for seed in range(20):
        assert (ord(fake_name(Random(seed), value)[-1]) - ord("가")) % 28 in finals


def test_sentences_of_a_document_are_hidden_one_for_one(name_model: NameTagger) -> None:
    protected = PiiHider("tag", name_model=name_model).hide_in_sentences([SENTENCE, "비가 왔다.", "하람님이"], "d")
    assert protected.sentences == ["어제 [PERSON]은 [PERSON]을 만났다.", "비가 왔다.", "[PERSON]님이"]


# --- what no model is


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _cut_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-9])


def _no_numbers(folder: Path) -> None:
    model = AutoModelForTokenClassification.from_pretrained(folder)
    torch.nn.init.constant_(model.classifier.bias, float("nan"))
    model.save_pretrained(folder)


def _other_labels(folder: Path) -> None:
    save_model(folder, ("PER", "LOC", "O"))


def _no_classifier(folder: Path) -> None:
    settings = json.loads((folder / "config.json").read_text("utf-8"))
    labels = {int(number): label for number, label in settings["id2label"].items()}
    BertForMaskedLM(BertConfig(vocab_size=settings["vocab_size"], id2label=labels, **SIZES)).save_pretrained(folder)


def _pickle(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _more_tokens(folder: Path) -> None:
    save_tokenizer(folder, "갸냐댜")


def _no_cls(folder: Path) -> None:
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**settings, "cls_token": None}), "utf-8")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_without("model.safetensors"), "model.safetensors is missing"),
        (_without("config.json"), "config.json is missing"),
        (_without("tokenizer.json"), "no model for names could be loaded"),
        (_cut_weights, "no complete safetensors file"),
        (_no_numbers, "its outputs are not finite numbers"),
        (_other_labels, r"labels B-PS and I-PS are missing \(found: PER, LOC, O\)"),
        (_no_classifier, "the weights classifier.bias, classifier.weight are missing"),
        (_pickle, "a pickle, which is never loaded"),
        (_more_tokens, "the tokenizer has"),
        (_no_cls, r"no \[CLS\] or \[SEP\]"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused_in_one_sentence(
    tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    save_model(tmp_path)
    damage(tmp_path)
    with pytest.raises(BadInput, match=message) as caught:
        load_tagger(tmp_path, device="cpu")
    assert str(caught.value).startswith(f"--names {tmp_path}") and "\n" not in str(caught.value)


def test_a_tokenizer_without_offsets_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.PreTrainedTokenizerFast.is_fast", False)
    with pytest.raises(BadInput, match="has no character offsets"):
        tagged._load.__wrapped__(folder, 0.5, torch.device("cpu"), "--names x", ())


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^--names .*none: no such folder; expected a fine-tuned KLUE-NER model"):
        load_tagger(tmp_path / "none")


def test_a_model_saved_again_is_loaded_again(tmp_path: Path) -> None:
    save_model(tmp_path)
    before = load_tagger(tmp_path, device="cpu")
    assert load_tagger(tmp_path, device="cpu") is before
    save_random_model(tmp_path)
    assert load_tagger(tmp_path, device="cpu") is not before


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("김하늘과", 3), ("김하늘을", 3), ("김하나와", 3), ("김하나를", 3), ("김하나는", 3), ("김하늘은", 4),
        ("김하늘와", 4), ("김하나과", 4), ("한과", 2), ("ab하나는", 4), ("한 과", 3), ("가A과", 3), ("김a을", 3),
    ],
)  # fmt: skip
def test_a_particle_that_fits_the_syllable_before_it_is_no_part_of_a_name(text: str, kept: int) -> None:
    assert _before_particle(text, NameSpan(0, len(text), 1.0)) == kept
    assert _before_particle(f"{text}, 말", NameSpan(0, len(text), 1.0)) == kept
    assert _before_particle(f"{text}말", NameSpan(0, len(text), 1.0)) == len(text)


def test_names_are_extended_to_the_start_of_their_word_by_two_syllables() -> None:
    def found(text: str, *spans: tuple[int, int]) -> list[str]:
        names = tagged._from_word_starts(text, [NameSpan(*span, 0.9) for span in spans])
        return [text[name.start : name.end] for name in names]

    assert found("나루토는 왔다", (1, 3)) == ["나루토"]
    assert found("나루토2는 왔다", (2, 4)) == ["나루토2"]  # its second letter is no syllable
    assert found("우즈마키나루토는", (4, 7)) == []  # three syllables and more before it
    assert found("A나루토", (1, 4)) == ["나루토"]
    assert found("나루토", (0, 1)) == []  # one syllable
    assert found("나루토 왔다", (0, 2), (2, 3)) == ["나루토"]


def test_a_longer_name_of_the_model_replaces_one_that_ends_with_it() -> None:
    names = [NameSpan(0, 4, 0.9)]
    assert _add_names([Span(2, 4, "PERSON")], names) == [Span(0, 4, "PERSON")]
    assert _add_names([Span(2, 5, "PERSON")], names) == [Span(2, 5, "PERSON")]
