"""Types of entities in KLUE-RE: markers as their paper writes them, relations restricted to those of the training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.encoder.loading import load_tokenizer
from finetune.examples import Example
from finetune.registry import task_of
from finetune.tasks.re.markers import TYPES, decode_restricted, featurize_typed, find_relations, parse_typed
from finetune.tasks.re.metrics import RE_LABELS
from finetune.tasks.re.task import KLUE_RE

SENTENCE = "김하늘은 한빛은행의 행장이다"
SIGNS = "@#*^" + "".join(TYPES.values())


def example(subject: tuple[int, int], object_: tuple[int, int], *types: str, gold: str = "no_relation") -> Example:
    return Example("1", gold, {"sentence": SENTENCE, "subject": subject, "object": object_, "types": types})


@pytest.fixture
def tokenizer(tiny_encoder) -> Any:
    return load_tokenizer(tiny_encoder([SENTENCE + SIGNS])[0], KLUE_RE.special_tokens)


@pytest.mark.parametrize(
    ("subject", "object_", "types", "text"),
    [
        ((0, 3), (5, 9), ("PER", "ORG"), "@ * 사람 * 김하늘 @ ##은 # ^ 단체 ^ 한빛은행 # ##의 행장이다"),
        ((5, 7), (5, 9), ("LOC", "ORG"), "김하늘은 # ^ 단체 ^ @ * 장소 * 한빛 @ ##은행 # ##의 행장이다"),
        ((11, 15), (0, 3), ("POH", "PER"), "# ^ 사람 ^ 김하늘 # ##은 한빛은행의 @ * 이름 * 행장이다 @"),
    ],
)
def test_typed_markers_are_placed_as_in_their_paper(subject, object_, types, text: str, tokenizer) -> None:
    (feature,) = featurize_typed([example(subject, object_, *types)], tokenizer, 64, True)
    tokens = tokenizer.convert_ids_to_tokens(feature["input_ids"])
    expected = [piece for word in text.split() for piece in pieces_of(word)]
    assert tokens == ["[CLS]", *expected, "[SEP]"]
    assert feature["token_type_ids"] == [0] * len(tokens)
    assert feature["label"] == 0


def pieces_of(word: str) -> list[str]:
    """A character a piece, as the vocabulary has them; "##은행" continues a word."""
    inner = word.removeprefix("##")
    return [("##" if number or word != inner else "") + character for number, character in enumerate(inner)]


@pytest.mark.parametrize("size", [40, 28])
def test_a_long_sentence_keeps_both_entities_types_included(size: int, tokenizer) -> None:
    long = SENTENCE + " 행장이다" * 30 + " 한빛은행"
    inputs = {"sentence": long, "subject": (0, 3), "object": (len(long) - 4, len(long)), "types": ("PER", "ORG")}
    (feature,) = featurize_typed([Example("1", None, inputs)], tokenizer, size, False)
    tokens = tokenizer.convert_ids_to_tokens(feature["input_ids"])
    text = " ".join(tokens)
    assert len(tokens) <= size
    assert "@ * 사 ##람 * 김" in text
    assert "# ^ 단 ##체 ^ 한" in text
    assert [tokens.count(sign) for sign in "@#*^"] == [2, 2, 2, 2]


def test_relations_are_those_of_the_training_between_such_types_and_none_at_all() -> None:
    seen = [("PER", "ORG", "per:employee_of"), ("PER", "ORG", "per:employee_of"), ("ORG", "DAT", "org:founded")]
    examples = [example((0, 3), (5, 9), *types, gold=gold) for *types, gold in [*seen, ("PER", "ORG", "per:origin")]]
    assert find_relations(examples) == {
        "ORG-DAT": ["no_relation", "org:founded"],
        "PER-ORG": ["no_relation", "per:origin", "per:employee_of"],
    }


def test_what_cannot_be_has_probability_0_and_the_others_share_the_rest() -> None:
    raw = np.full(30, 0.02, dtype=np.float32)
    raw[[RE_LABELS.index(name) for name in ("org:founded", "per:title", "per:origin")]] = 0.3, 0.1, 0.06
    learned = {"PER-POH": ["no_relation", "per:title", "per:origin"]}
    spans = (0, 3), (5, 9)
    cases = [example(*spans, "PER", "POH"), example(*spans, "LOC", "DAT")]
    one, other = decode_restricted(cases, [], [raw, raw], learned=learned)
    assert one.value == "per:title"
    found = dict(zip(RE_LABELS, one.scores, strict=True))
    assert {name: p for name, p in found.items() if p} == pytest.approx(
        {"no_relation": 0.02 / 0.18, "per:title": 0.1 / 0.18, "per:origin": 0.06 / 0.18}
    )
    assert other.value == "org:founded"  # nothing is known of such types
    assert other.scores == pytest.approx(list(raw / raw.sum()), rel=1e-5)


def test_options_are_for_this_task_and_protocol_alone_and_can_be_settings() -> None:
    config = FinetuneConfig(
        settings={"typed": {"re_markers": "typed", "re_restricted": True, "mrc_empty_windows": 0.5}}
    )
    typed = config.with_settings("typed")
    assert task_of("klue-re", config) == KLUE_RE
    assert task_of("klue-re", typed).featurize is featurize_typed
    assert task_of("klue-re", typed.model_copy(update={"protocol": "klue-baseline"})) == KLUE_RE.with_protocol(
        "klue-baseline"
    )
    assert (typed.mrc_empty_windows, typed.mrc_threshold_share) == (0.5, 0.0)


def test_types_that_are_missing_and_signs_that_are_unknown_are_named(tmp_path: Path, tiny_encoder) -> None:
    sides = {"subject_entity": {"start_idx": 0, "end_idx": 2}, "object_entity": {"start_idx": 5, "end_idx": 8}}
    record = {"guid": "g", "sentence": SENTENCE, "label": "no_relation", **sides}
    (tmp_path / "re.json").write_text(json.dumps([record]), "utf-8")
    task = task_of("klue-re", FinetuneConfig(re_markers="typed"))
    with pytest.raises(BadInput, match=r"g.*'subject_entity' has type None; expected one of PER, ORG.*re_markers"):
        task.read(tmp_path / "re.json")
    with pytest.raises(BadInput, match=r"line 3: the object has type None"):
        parse_typed("<subj:PER>김하늘</subj>은 <obj>행장</obj>이다", "line 3")
    with pytest.raises(BadInput, match=r"writes '@ \* 사람 \*', which this tokenizer does not know"):
        poor = load_tokenizer(tiny_encoder([SENTENCE])[0], KLUE_RE.special_tokens)
        featurize_typed([example((0, 3), (5, 9), "PER", "ORG")], poor, 64, True)
