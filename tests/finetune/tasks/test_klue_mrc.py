"""KLUE-MRC: windows, character-exact spans, the span search against all pairs, real and published data."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from finetune.config import BadInput
from finetune.predict import to_tensors
from finetune.task import Example, Row
from finetune.tasks.klue_mrc import ANSWER_TOKENS, KLUE_MRC, answer_span, best_span

CONTEXT = "민지는 1987년에 부산에서 태어나 서울로 이사했다."


def question(number, text, answers, kind=1):
    return {
        "guid": f"made-up-{number}",
        "question": text,
        "answers": [{"text": answer, "answer_start": start} for answer, start in answers],
        "is_impossible": not answers,
        "question_type": kind,
    }


QUESTIONS = [
    question(0, "언제 태어났나?", [("1987년", 4)]),
    question(1, "어디로 이사했나?", [("서울", 20), ("서울로", 20)]),
    question(2, "누가 함께 갔나?", [], kind=3),
    question(3, "어디에서 태어났나?", [("부산", 11)], kind=None),
]
TEXT = CONTEXT + "".join(q["question"] for q in QUESTIONS)


@pytest.fixture
def write(tmp_path):
    def to_file(questions, context=CONTEXT):
        path = tmp_path / "klue-mrc-v1.1_dev.json"
        article = {
            "title": "민지",
            "news_category": None,
            "paragraphs": [{"context": context, "qas": questions}],
        }
        path.write_text(json.dumps({"version": "v1.1", "data": [article]}), encoding="utf-8")
        return path

    return to_file


@pytest.fixture
def examples(write):
    return KLUE_MRC.read(write(QUESTIONS))


def make_example(context, answer, ask="무엇?"):
    gold = {"answers": [answer] if answer else [], "question_type": 1}
    start = context.index(answer) if answer else None
    return Example("x", gold, {"question": ask, "context": context, "start": start})


def raws_of(features):
    """What a perfect model would answer."""
    for feature in features:
        start, end = np.zeros((2, len(feature["input_ids"])), dtype=np.float32)
        start[feature["start"]] = end[feature["end"]] = 5
        yield {"start": start, "end": end}


def score(examples, predictions):
    return KLUE_MRC.score([Row(e.guid, e.gold, p.value) for e, p in zip(examples, predictions, strict=True)])


def test_reading_keeps_all_answers_and_the_first_offset(examples):
    assert [example.gold for example in examples] == [
        {"answers": ["1987년"], "question_type": 1},
        {"answers": ["서울", "서울로"], "question_type": 1},
        {"answers": [], "question_type": 3},
        {"answers": ["부산"], "question_type": None},
    ]
    assert [example.inputs["start"] for example in examples] == [4, 20, None, 11]


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({**QUESTIONS[0], "answers": [{"text": "서울", "answer_start": 90}]}, "made-up-0: answer '서울' at .* 90"),
        ({**QUESTIONS[0], "answers": [{"text": "서울"}]}, "made-up-0: expected 'answer_start' to be a int"),
        ({**QUESTIONS[0], "is_impossible": True}, "made-up-0: 'is_impossible' is True, but there are 1 answers"),
        ({"question": "누가?"}, "expected 'guid' to be a str"),
    ],
)  # fmt: skip
def test_a_broken_question_is_reported_with_its_guid(write, broken, says):
    with pytest.raises(BadInput, match=says):
        KLUE_MRC.read(write([broken]))


def test_a_file_without_questions_is_an_error(write):
    with pytest.raises(BadInput, match="no question found"):
        KLUE_MRC.read(write([]))


def test_an_answer_ends_before_its_particle(examples, tiny_encoder):
    _, tokenizer = tiny_encoder([TEXT])
    features = KLUE_MRC.featurize(examples, tokenizer, 128, True)
    tokens = tokenizer.convert_ids_to_tokens(features[3]["input_ids"])
    assert tokens[features[3]["start"] : features[3]["end"] + 1] == ["부", "##산"]
    assert (features[2]["start"], features[2]["end"]) == (0, 0)


def test_gold_targets_decode_to_the_gold_answers(examples, tiny_encoder):
    _, tokenizer = tiny_encoder([TEXT])
    features = KLUE_MRC.featurize(examples, tokenizer, 128, False)
    predictions = KLUE_MRC.decode(examples, features, list(raws_of(features)))
    assert [prediction.value for prediction in predictions] == ["1987년", "서울", "", "부산"]
    assert score(examples, predictions) == {"exact_match": 100, "rouge_w": 100}
    assert predictions[2].scores["null"] > 0 > predictions[0].scores["null"]


def test_every_context_token_has_one_window_to_start_in(tiny_encoder):
    example = make_example(" ".join(f"{number}번" for number in range(400)), "250번")
    _, tokenizer = tiny_encoder([example.inputs["context"] + "무엇?"])
    features = KLUE_MRC.featurize([example], tokenizer, 300, True)
    starts = [tuple(span) for f in features for span in f["offsets"][f["can_start"]]]
    assert len(features) > 3
    assert len(starts) == len(set(starts)) == len(tokenizer.tokenize(example.inputs["context"]))
    assert all(len(feature["input_ids"]) <= 300 for feature in features)
    (prediction,) = KLUE_MRC.decode([example], features, list(raws_of(features)))
    assert prediction.value == "250번"


def test_a_window_with_part_of_the_answer_points_at_cls(tiny_encoder):
    context = " ".join("가" * 250)
    example = Example("x", {"answers": [context[200:300]]}, {"question": "나", "context": context, "start": 200})
    _, tokenizer = tiny_encoder([context + "나"])
    features = KLUE_MRC.featurize([example], tokenizer, 132, True)  # 128 tokens a window: 0..127, 128..249
    assert [(feature["start"], feature["end"]) for feature in features] == [(0, 0), (0, 0)]


def test_a_long_question_is_cut_and_leaves_room_for_the_context(tiny_encoder):
    example = make_example(CONTEXT, "서울", ask="어디 " * 100)
    _, tokenizer = tiny_encoder([CONTEXT + "어디"])
    (long,) = KLUE_MRC.featurize([example], tokenizer, 300, True)
    assert (~long["in_context"]).sum() == 64 + 3
    short = KLUE_MRC.featurize([example], tokenizer, 40, True)
    assert short[0]["in_context"].sum() == 40 - 20 - 3


def test_a_misplaced_answer_is_evaluated_but_not_trained_on(write, tiny_encoder, caplog):
    examples = KLUE_MRC.read(write([question(0, "어디로?", [("서울", 0)])]))
    _, tokenizer = tiny_encoder([TEXT])
    assert KLUE_MRC.featurize(examples, tokenizer, 128, True) == []
    assert "1 questions are left out" in caplog.text
    assert len(KLUE_MRC.featurize(examples, tokenizer, 128, False)) == 1


def test_the_best_span_equals_a_search_over_all_pairs():
    rng = np.random.default_rng(1)
    for _ in range(50):
        start, end = rng.normal(size=(2, 60))
        inside = np.arange(60) >= 8
        feature = {"in_context": inside, "can_start": inside & (rng.random(60) < 0.7)}
        pairs = [
            (start[i] + end[j], i, j)
            for i in range(60)
            for j in range(i, min(i + ANSWER_TOKENS, 60))
            if feature["can_start"][i] and inside[j]
        ]
        assert best_span(feature, start, end) == pytest.approx(max(pairs))


def test_a_blank_context_is_unanswerable(tiny_encoder):
    example = Example("x", {"answers": []}, {"question": "무엇?", "context": " ", "start": None})
    _, tokenizer = tiny_encoder([TEXT])
    features = KLUE_MRC.featurize([example], tokenizer, 128, False)
    assert KLUE_MRC.decode([example], features, list(raws_of(features))) == [("", {"null": None})]


def test_training_lowers_the_loss_and_learns_the_answers(examples, tiny_encoder):
    folder, tokenizer = tiny_encoder([TEXT], "roberta")
    torch.manual_seed(1)
    model = KLUE_MRC.model(folder, tokenizer).train()
    features = KLUE_MRC.featurize(examples, tokenizer, 128, True)
    batch = to_tensors(KLUE_MRC.collate(features, tokenizer.pad_token_id))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(80):
        loss = model(**batch)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    predictions = KLUE_MRC.decode(examples, features, model.eval().predict(**batch))
    assert losses[-1] < losses[0] / 4
    assert score(examples, predictions)["exact_match"] == 100


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_scores_depend_on_neither_batch_mates_nor_padding(examples, tiny_encoder, kind):
    folder, tokenizer = tiny_encoder([TEXT], kind)
    model = KLUE_MRC.model(folder, tokenizer).eval()
    features = KLUE_MRC.featurize(examples, tokenizer, 128, False)
    together = model.predict(**to_tensors(KLUE_MRC.collate(features[::-1], 0)))[::-1]
    for feature, raw in zip(features, together, strict=True):
        (alone,) = model.predict(**to_tensors(KLUE_MRC.collate([feature], 0)))
        assert len(raw["start"]) == len(feature["input_ids"])
        for key in ("start", "end"):
            np.testing.assert_allclose(alone[key], raw[key], atol=1e-5)


def test_trivially_no_question_has_an_answer(examples):
    assert score(examples, KLUE_MRC.trivial(examples, examples))["exact_match"] == 25


def test_real_gold_spans_are_recovered(shared, klue_tokenizer):
    examples = KLUE_MRC.read(shared("data/klue/derived/klue-mrc-v1.1/klue-mrc-v1.1_dev.json.zst"))
    features = KLUE_MRC.featurize(examples, klue_tokenizer, 510, False)
    predictions = KLUE_MRC.decode(examples, features, list(raws_of(features)))
    pairs = [(e.gold["answers"] or [""], p.value) for e, p in zip(examples, predictions, strict=True)]
    lost = [(answers[0], value) for answers, value in pairs if value != answers[0]]
    sharing = [value for answer, value in lost if value.startswith(answer)]
    assert (len(pairs), len(lost), len(sharing)) == (1218, 10, 9)  # a token holds the particle; over 30 tokens


def test_windows_equal_the_published_ones(shared, klue_tokenizer, published_features):
    path = shared("data/klue/derived/klue-mrc-v1.1/klue-mrc-v1.1_dev.json.zst")
    examples = {example.guid: example for example in KLUE_MRC.read(path)}
    seen = 0
    for record in published_features("klue-mrc"):
        features = KLUE_MRC.featurize([examples[record["guid"]]], klue_tokenizer, record["max_seq_length"], True)
        assert len(features) == len(record["windows"])
        for window, feature in zip(record["windows"], features, strict=True):
            assert feature["input_ids"] == window["input_ids"]
            assert feature["token_type_ids"] == window["token_type_ids"]
            shown = feature["offsets"][feature["in_context"]]
            assert [shown[0][0], shown[-1][1]] == window["context_chars"]
            places = np.flatnonzero(feature["can_start"])
            assert (window["max_context"] or []) == ([places[0], places[-1]] if len(places) else [])
            if answer_span(examples[record["guid"]]) is None:
                assert feature["start"] == feature["end"] == window["start_position"] == 0
            seen += 1
    assert seen >= 50
