"""KLUE-MRC: reading and writing, windows, character-exact spans, the span search against all pairs, real data."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from corpus.documents.errors import BadInput
from finetune.encoder.loading import load_tokenizer
from finetune.examples import Example, Row
from finetune.tasks.mrc.task import ANSWER_TOKENS, KLUE_MRC, best_span
from finetune.train.batched_prediction import to_tensors
from tests.finetune.records import record_of
from tests.finetune.tasks.mrc.perfect_spans import CONTEXT, make_example, raws_of, round_trip


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


@pytest.fixture
def wordpiece(tmp_path):
    """``(text, further pieces)`` to a tokenizer of single characters and those pieces."""

    def build(text, pieces=()):
        letters = sorted(set(text) - set(" \n"))
        entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{x}" for x in letters), *pieces]
        path = tmp_path / "vocab.txt"
        path.write_text("\n".join(entries), encoding="utf-8")
        return load_tokenizer(str(path))

    return build


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


def test_a_file_without_labels_has_no_gold(write, tiny_encoder):
    bare = [{key: q[key] for key in ("guid", "question")} for q in QUESTIONS]
    examples = KLUE_MRC.read(write(bare))
    _, tokenizer = tiny_encoder([TEXT])
    assert [example.gold for example in examples] == [None] * 4
    assert len(KLUE_MRC.featurize(examples, tokenizer, 128, False)) == 4
    with pytest.raises(BadInput, match="made-up-0: no 'answers'"):
        KLUE_MRC.featurize(examples, tokenizer, 128, True)


def test_a_file_without_questions_is_an_error(write):
    with pytest.raises(BadInput, match="no question found"):
        KLUE_MRC.read(write([]))


def test_an_answer_ends_before_its_particle(examples, tiny_encoder):
    _, tokenizer = tiny_encoder([TEXT])
    features = KLUE_MRC.featurize(examples, tokenizer, 128, True)
    tokens = tokenizer.convert_ids_to_tokens(features[3]["input_ids"])
    assert tokens[features[3]["start"] : features[3]["end"] + 1] == ["부", "##산"]
    assert (features[2]["start"], features[2]["end"]) == (0, 0)


@pytest.mark.parametrize(
    ("pieces", "says", "cut"),
    [(("서울로", "##년에"), "1987년", 1), (("부산에서",), "부산", 2), (("서울로",), "서울", 1), ((), "서울로", 0)],
)
def test_a_particle_inside_the_last_token_is_cut_off(wordpiece, pieces, says, cut):
    example = make_example(CONTEXT, says)
    tokenizer = wordpiece(TEXT, pieces)
    (feature,) = KLUE_MRC.featurize([example], tokenizer, 128, True)
    assert feature["cut"] == cut
    assert round_trip([example], tokenizer) == [says]


def test_an_unknown_word_loses_its_particle_too(wordpiece):
    context = "민지는 뷁쀍에서 태어났다."
    example = make_example(context, "뷁쀍")
    tokenizer = wordpiece("민지는태어났다.무엇?")
    (feature,) = KLUE_MRC.featurize([example], tokenizer, 128, True)
    assert tokenizer.convert_ids_to_tokens([feature["input_ids"][feature["start"]]]) == ["[UNK]"]
    assert round_trip([example], tokenizer) == ["뷁쀍"]


def test_a_cut_never_takes_the_whole_token(wordpiece):
    example = make_example(CONTEXT, "서울")
    features = KLUE_MRC.featurize([example], wordpiece(TEXT), 128, False)
    (raw,) = raws_of(features)
    raw["cut"][:] = 4
    assert KLUE_MRC.decode([example], features, [raw])[0].value == "서울"


def test_gold_targets_decode_to_the_gold_answers(examples, tiny_encoder):
    _, tokenizer = tiny_encoder([TEXT])
    features = KLUE_MRC.featurize(examples, tokenizer, 128, False)
    predictions = KLUE_MRC.decode(examples, features, list(raws_of(features)))
    assert [prediction.value for prediction in predictions] == ["1987년", "서울", "", "부산"]
    assert set(score(examples, predictions).values()) == {100}
    assert predictions[2].scores["null"] > 0 > predictions[0].scores["null"]


@pytest.mark.parametrize("protocol", ["malmoi", "klue-baseline"])
@pytest.mark.parametrize("place", [0, None])
def test_a_misplaced_answer_is_evaluated_but_not_trained_on(write, tiny_encoder, caplog, protocol, place):
    examples = KLUE_MRC.read(write([question(0, "어디로?", [("서울", place)])]))
    task = KLUE_MRC.with_protocol(protocol)
    _, tokenizer = tiny_encoder([TEXT])
    assert task.featurize(examples, tokenizer, 128, True) == []
    assert "1 questions not used in training" in caplog.text
    features = task.featurize(examples, tokenizer, 128, False)
    assert len(features) == 1
    assert record_of(task, examples[0], features, 128)["windows"] == []


def test_the_best_span_equals_a_search_over_all_pairs():
    rng = np.random.default_rng(1)
    for _ in range(4):
        start, end = rng.normal(size=(2, 110))
        low, high = sorted(rng.integers(8, 109, size=2).tolist())
        feature = {"context_at": 8, "offsets": np.zeros((101, 2)), "max_context": (low, high)}
        pairs = [
            (start[i] + end[j], i, j)
            for i in range(low, high + 1)
            for j in range(i, min(i + ANSWER_TOKENS, 109))
        ]  # fmt: skip
        assert best_span(feature, start, end) == pytest.approx(max(pairs))


@pytest.mark.parametrize("protocol", ["malmoi", "klue-baseline"])
def test_a_blank_context_is_unanswerable(tiny_encoder, protocol):
    example = Example("x", {"answers": []}, {"question": "무엇?", "context": " ", "start": None})
    task = KLUE_MRC.with_protocol(protocol)
    _, tokenizer = tiny_encoder([TEXT])
    features = task.featurize([example], tokenizer, 128, False)
    assert task.decode([example], features, list(raws_of(features))) == [("", {"null": None})]
    assert record_of(task, example, features, 128)["windows"][0]["context_chars"] is None


def test_training_learns_answers_and_where_particles_begin(write, tmp_path, tiny_encoder, wordpiece):
    folder, _ = tiny_encoder([TEXT + "뷁"], "roberta")  # as many entries as below
    examples = KLUE_MRC.read(write(QUESTIONS))
    tokenizer = wordpiece(TEXT, ("서울로", "부산에서"))
    torch.manual_seed(1)
    model = KLUE_MRC.model(folder, tokenizer).train()
    features = KLUE_MRC.featurize(examples, tokenizer, 128, True)
    assert [feature["cut"] for feature in features] == [0, 1, 0, 2]
    batch = to_tensors(KLUE_MRC.collate(features, tokenizer.pad_token_id))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(40):
        loss = model(**batch)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    predictions = KLUE_MRC.decode(examples, features, model.eval().predict(**batch))
    assert losses[-1] < losses[0] / 4
    assert score(examples, predictions)["exact_match"] == 100


@pytest.mark.parametrize("protocol", ["malmoi", "klue-baseline"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_scores_depend_on_neither_batch_mates_nor_padding(examples, tiny_encoder, kind, protocol):
    folder, tokenizer = tiny_encoder([TEXT], kind)
    task = KLUE_MRC.with_protocol(protocol)
    model = task.model(folder, tokenizer).eval()
    features = task.featurize(examples, tokenizer, 128, False)
    batch = {
        key: np.pad(x, ((0, 0), (0, 30))) if x.ndim > 1 else x for key, x in task.collate(features[::-1], 0).items()
    }
    together = model.predict(**to_tensors(batch))[::-1]
    for feature, raw in zip(features, together, strict=True):
        (alone,) = model.predict(**to_tensors(task.collate([feature], 0)))
        assert len(raw["start"]) == len(raw["cut"]) == len(feature["input_ids"])
        for key in ("start", "end", "cut"):
            np.testing.assert_allclose(alone[key], raw[key], atol=1e-5)


def test_an_encoder_without_segments_needs_no_segment_ids(examples, tiny_encoder):
    folder, tokenizer = tiny_encoder([TEXT], "roberta")
    features = KLUE_MRC.featurize(examples, tokenizer, 128, True)
    batch = to_tensors(KLUE_MRC.collate(features, 0))
    model = KLUE_MRC.model(folder, tokenizer).eval()
    without = {key: x for key, x in batch.items() if key != "token_type_ids"}
    assert model(**without)["loss"] == model(**batch)["loss"]


def test_written_predictions_are_an_official_file_again(write, tmp_path):
    official = write(
        [question(n, "무엇?", []) | {"plausible_answers": []} for n in range(4)], CONTEXT + "\n이사는 서울로"
    )
    before = json.loads(official.read_text("utf-8"))
    values = {"made-up-0": "서울", "made-up-1": "", "made-up-2": "이사했다. 이사는", "made-up-3": "어디에도 없는 말"}
    target = tmp_path / "klue-mrc-v1.1_test.json"
    KLUE_MRC.write(official, values, target)
    examples = KLUE_MRC.read(target)
    assert [e.gold["answers"] for e in examples] == [["서울"], [], ["이사했다.\n이사는"], ["어디에도 없는 말"]]
    assert [e.inputs["start"] for e in examples] == [20, None, CONTEXT.index("이사했다"), None]
    after = json.loads(target.read_text("utf-8"))
    for document in (before, after):
        for record in document["data"][0]["paragraphs"][0]["qas"]:
            for key in ("answers", "is_impossible", "plausible_answers"):
                record.pop(key, None)
    assert after == before


def test_all_real_gold_spans_are_recovered(shared, klue_tokenizer):
    examples = KLUE_MRC.read(shared("data/klue/derived/klue-mrc-v1.1/klue-mrc-v1.1_dev.json.zst"))
    values = round_trip(examples, klue_tokenizer, 510)
    lost = [e.guid for e, value in zip(examples, values, strict=True) if value != (e.gold["answers"] or [""])[0]]
    assert (len(values), sum(map(bool, values)), lost) == (1218, 839, [])
