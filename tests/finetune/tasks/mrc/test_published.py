"""KLUE-MRC as published: targets of the recorded quirks, the search over pairs, the text of a span."""

from __future__ import annotations

import json

import numpy as np
import pytest

from finetune.data.files import read_text
from finetune.encoder.loading import load_tokenizer
from finetune.examples import Example
from finetune.tasks.mrc.published import ANSWER_TOKENS, BEST, NO_SPAN, best_of_best, cut_out, decode
from finetune.tasks.mrc.task import KLUE_MRC
from finetune.train.batched_prediction import to_tensors

PUBLISHED = KLUE_MRC.with_protocol("klue-baseline")
CONTEXT = "민지는 1987년에 부산(釜山)에서 태어나 서울로 이사했다."
PIECES = (
    "민지",
    "##는",
    "1987",
    "##년",
    "##에",
    "부산",
    "(",
    "釜",
    "山",
    ")",
    "에서",
    "태어나",
    "서울",
    "##로",
    "이사",
    "##했다",
    ".",
)


def make_example(context, answer=None, start=None, question="무엇?"):
    gold = {"answers": [answer] if answer else [], "question_type": 1}
    start = start if start is not None or not answer else context.index(answer)
    return Example("x", gold, {"question": question, "context": context, "start": start})


@pytest.fixture
def tokenizer(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PIECES]), encoding="utf-8")
    return load_tokenizer(str(path))


@pytest.fixture
def quirks(shared):
    lines = map(json.loads, read_text(shared("oracle/features_public.jsonl.zst")).splitlines())
    return [record for record in lines if record.get("task") == "klue-mrc" and "quirk" in record]


@pytest.fixture
def real_tokenizer(shared):
    return load_tokenizer(str(shared("data/klue/vocab/klue-bert-base-vocab.txt")))


def peaks(feature, first, last, null=0.0, height=5.0):
    """Scores of a window whose best span is from token ``first`` to token ``last`` of the context."""
    start, end = np.zeros((2, len(feature["input_ids"])), dtype=np.float32)
    start[feature["context_at"] + first] = end[feature["context_at"] + last] = height
    start[0] = null
    return {"start": start, "end": end}


def answer(example, tokenizer, first, last):
    features = PUBLISHED.featurize([example], tokenizer, 128, False)
    return PUBLISHED.decode([example], features, [peaks(features[0], first, last)])[0].value


def test_made_up_quirks_are_met(quirks, real_tokenizer):
    seen = 0
    for record in (record for record in quirks if "input" in record):
        given = record["input"]
        example = make_example(given["context"], **answer_of(given["answers"][0]), question=given["question"])
        features = PUBLISHED.featurize([example], real_tokenizer, 510, True)
        found = [
            {
                "answer_tokens": real_tokenizer.convert_ids_to_tokens(f["input_ids"][f["start"] : f["end"] + 1]),
                "start_position": f["start"],
                "end_position": f["end"],
                "is_impossible": f["start"] == 0,
                "question_tokens": f["context_at"] - 2,
            }
            for f in features
        ]
        assert found == record["baseline"]["windows"], record["quirk"]
        seen += 1
    assert seen >= 4


def answer_of(record):
    return {"answer": record["text"], "start": record["answer_start"]}


def test_targets_that_are_not_the_answer_are_published_and_corrected_in_malmoi(quirks, shared, real_tokenizer):
    file = shared("data/klue/derived/klue-mrc-v1.1/klue-mrc-v1.1_dev.json.zst")
    examples = {example.guid: example for example in KLUE_MRC.read(file)}
    records = [record for record in quirks if "guid" in record]
    chosen = [examples[record["guid"]] for record in records]
    for task, expected in ((PUBLISHED, "baseline"), (KLUE_MRC, "sound")):
        features = task.featurize(chosen, real_tokenizer, 510, False)
        for number, record in enumerate(records):
            own = [feature for feature in features if feature["example"] == number]
            begin, end = target_chars(own)
            if expected == "baseline":
                assert [begin, end] == record["baseline"]["target_chars"]
                windows = [[f["start"], f["end"], f["start"] == 0] for f in own]
                assert windows == record["baseline"]["windows"]
            else:
                assert [begin, end - own[0]["cut"]] == record["sound"]["answer_chars"]
    assert records


def target_chars(features):
    """Characters of the target's tokens in the first window that has it."""
    feature = next(feature for feature in features if feature["start"])
    shown = feature["offsets"][[feature["start"] - feature["context_at"], feature["end"] - feature["context_at"]]]
    return int(shown[0, 0]), int(shown[1, 1])


def test_the_span_is_the_first_best_of_20_starts_and_20_ends():
    rng = np.random.default_rng(2)
    unlike_all_pairs = 0
    for _ in range(30):
        start, end = np.round(rng.normal(size=(2, 70)), 1).astype(np.float32)  # equal scores occur
        low, high = sorted(rng.integers(8, 69, size=2).tolist())
        feature = {"context_at": 8, "offsets": np.zeros((61, 2)), "max_context": (low, high)}
        starts, ends = (sorted(range(70), key=lambda i: -scores[i])[:BEST] for scores in (start, end))
        allowed = [(i, j) for i in starts for j in ends if low <= i <= high and 8 <= j < 69]
        pairs = [(i, j) for i, j in allowed if 0 <= j - i < ANSWER_TOKENS]
        best = max(pairs, key=lambda pair: float(start[pair[0]]) + float(end[pair[1]]), default=None)
        found = best_of_best(feature, start, end)
        assert (found and found[2:]) == best
        unlike_all_pairs += best is None
    assert unlike_all_pairs < 30


@pytest.mark.parametrize(
    ("first", "last", "says"),
    [
        (5, 5, "부산"),  # the particle stays behind
        (5, 10, "부산(釜山)에서"),
        (6, 8, "(釜山"),
        (0, 0, "민지"),
        (1, 2, "민지는 1987년에"),  # from inside a word: whole words
        (13, 13, "서울로"),
        (2, 3, "1987년"),
    ],
)
def test_an_answer_is_read_from_its_tokens(tokenizer, first, last, says):
    assert answer(make_example(CONTEXT), tokenizer, first, last) == says


def test_an_unknown_token_gives_its_whole_word(tokenizer):
    assert answer(make_example("민지는 (뷁) 서울로"), tokenizer, 3, 3) == "(뷁)"


def test_white_space_inside_an_answer_becomes_one_space(tokenizer):
    assert answer(make_example("서울로  \n 이사했다."), tokenizer, 0, 2) == "서울로 이사"


# The values are what get_final_text of transformers 3.5.1 returns.
@pytest.mark.parametrize(
    ("found", "words", "is_lower", "says"),
    [
        ("서울", "'서울'에서", False, "서울"),
        ("서울 '", "'서울'에서", False, "서울'"),
        ("[UNK]", "'서울'에서", False, "'서울'에서"),
        ("서울", "서울\u200b에서", False, "서울\u200b에서"),  # a character that the tokenizer drops
        ("the", "The End", True, "The"),
        ("the", "The End", False, "The End"),
        ("釜 山", "부산(釜山)", False, "釜山"),
        ("가 . 나", "가.나 가 . 나", False, "가.나"),  # the first place that reads so, not the span's own
    ],
)
def test_the_text_of_a_span_is_looked_up_in_its_words(found, words, is_lower, says):
    assert cut_out(found, words, is_lower) == says


def test_no_answer_needs_the_least_score_of_all_windows(tokenizer):
    example = make_example(" ".join(["서울로"] * 100))
    features = PUBLISHED.featurize([example], tokenizer, 128, False)
    assert len(features) == 2
    high, low = peaks(features[0], 20, 20, null=20), peaks(features[1], 60, 60, null=9.0)
    assert PUBLISHED.decode([example], features, [high, low])[0] == ("서울", {"null": -1.0})
    low["start"][0] = 11
    assert PUBLISHED.decode([example], features, [high, low])[0] == ("", {"null": 1.0})


def test_a_window_without_a_span_answers_empty(tokenizer):
    example = make_example(" ".join(["서울로"] * 40))
    features = PUBLISHED.featurize([example], tokenizer, 128, False)
    raw = {key: np.linspace(*ends, len(features[0]["input_ids"]), dtype=np.float32)
           for key, ends in {"start": (-1.0, 9.0), "end": (-1.0, -9.0)}.items()}  # fmt: skip
    assert PUBLISHED.decode([example], features, [raw])[0] == ("empty", {"null": -2.0})
    raw["start"][0] = 3
    assert PUBLISHED.decode([example], features, [raw])[0].value == ""


def test_tokens_of_the_question_compete_for_the_ends(tokenizer):
    features = PUBLISHED.featurize([make_example(CONTEXT, "서울")], tokenizer, 128, True)
    batch = to_tensors(PUBLISHED.collate(features, 0))
    assert batch["candidates"].all()
    assert not KLUE_MRC.collate(features, 0)["candidates"][0, 1]


def test_only_the_words_at_the_offset_have_to_hold_the_answer(tokenizer):
    examples = [make_example(CONTEXT, "서울", start) for start in (CONTEXT.index("서울") + 1, 0)]
    features = PUBLISHED.featurize(examples, tokenizer, 128, True)
    assert [(feature["example"], feature["start"] > 0) for feature in features] == [(0, True)]
    assert KLUE_MRC.featurize(examples, tokenizer, 128, True) == []


def test_an_answer_that_is_tokenized_otherwise_trains_on_whole_words(tokenizer):
    (feature,) = PUBLISHED.featurize([make_example(CONTEXT, "198")], tokenizer, 128, True)
    tokens = tokenizer.convert_ids_to_tokens(feature["input_ids"][feature["start"] : feature["end"] + 1])
    assert tokens == ["1987", "##년", "##에"]


@pytest.mark.parametrize(
    ("windows", "leader", "least"),
    [
        ([(1.0, 2.0, 5.0), (9.0, 3.0, 4.0)], 0, 1.0),  # equal sums: the first window
        ([(1.0, 2.0, 5.0), (0.5, 3.0, 4.5)], 1, 0.5),
        ([(3.0, 9.0, 0.0), (9.5, 0.0, 9.0)], 0, 3.0),
        ([(8.0, 4.0, 3.0), (9.0, None, None)], None, 8.0),
        ([(7.0, None, None), (8.0, 4.0, 4.0)], 1, 7.0),
        ([(-5.0, None, None)], None, -5.0),
    ],
)
def test_the_best_span_of_all_windows_is_compared_with_the_lowest_score_of_no_answer(
    monkeypatch: pytest.MonkeyPatch, windows: list, leader: int | None, least: float
) -> None:
    spans = iter([None if start is None else (start, end, 1, 2) for _, start, end in windows])
    monkeypatch.setattr("finetune.tasks.mrc.published.best_of_best", lambda *_: next(spans))
    monkeypatch.setattr("finetune.tasks.mrc.published.text_of_span", lambda example, feature, span: feature["name"])
    features = [{"offsets": [(0, 1)], "example": 0, "name": f"window {n}"} for n in range(len(windows))]
    raws = [{"start": np.array([null - 1.0]), "end": np.array([1.0])} for null, *_ in windows]
    [found] = decode([make_example(CONTEXT)], features, raws)
    total = max((start + end for _, start, end in windows if start is not None), default=0.0)
    expected = NO_SPAN if all(start is None for _, start, _ in windows) else f"window {leader}"
    assert found.scores["null"] == pytest.approx(least - total)
    assert found.value == ("" if least > total else expected)
