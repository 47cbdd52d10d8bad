"""Windows without an answer: which of them train, and by how much "no answer" must be ahead."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
from transformers import AutoModel

from finetune.config import FinetuneConfig
from finetune.encoder.loading import load_tokenizer
from finetune.examples import Example, Prediction, to_rows
from finetune.heads.pretrained import as_pretrained
from finetune.registry import task_of
from finetune.tasks.mrc.metrics import score
from finetune.tasks.mrc.task import KLUE_MRC, choose_threshold, tune
from finetune.tasks.mrc.windows import keep_some
from finetune.train.batched_prediction import predict


def windows(*starts: int) -> list[dict[str, int]]:
    return [{"example": 0, "begin": 128 * number, "start": start} for number, start in enumerate(starts)]


EXAMPLES = [Example(f"q{n}", {"answers": ["봄"] if n % 3 else []}, {}) for n in range(40)]


def test_windows_with_the_answer_stay_and_a_share_of_the_others() -> None:
    features = [{**window, "example": n} for n in range(40) for window in windows(*[0] * 20, 7 * (n % 3 > 0))]
    kept = keep_some(features, EXAMPLES, 0.25)
    assert [f for f in kept if f["start"]] == [f for f in features if f["start"]]
    assert 0.2 < sum(not f["start"] for f in kept) / sum(not f["start"] for f in features) < 0.3
    assert kept == [f for f in features if f in kept]  # in their order


def test_which_windows_stay_depends_on_the_question_alone() -> None:
    features = [{**window, "example": n} for n in range(40) for window in windows(*[0] * 5)]
    alone = [f for n in range(40) for f in keep_some([f for f in features if f["example"] == n], EXAMPLES, 0.3)]
    assert keep_some(features, EXAMPLES, 0.3) == alone
    assert len({len(keep_some(windows(*[0] * 5), [example], 0.3)) for example in EXAMPLES}) > 1


def test_a_question_without_an_answer_keeps_one_window_and_a_share_of_one_keeps_all() -> None:
    features = [{**window, "example": n} for n in range(40) for window in windows(0, 3 * (n % 3 > 0), 0)]
    kept = keep_some(features, EXAMPLES, 0.0)
    assert [f["example"] for f in kept] == list(range(40))
    assert all(f["start"] for f in kept if f["example"] % 3)
    assert keep_some(features, EXAMPLES, 1.0) == features


@pytest.mark.parametrize("seed", range(20))
def test_the_threshold_is_the_best_of_all_there_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    examples = [Example(str(n), {"answers": ["봄"] if rng.random() < 0.6 else []}, {}) for n in range(12)]
    texts = rng.choice(["봄", "여름", "봄날"], 12).tolist()
    found = [Prediction(text, {"null": float(rng.integers(-4, 5))}) for text in texts]

    def value(threshold: float) -> float:
        texts = [p.value if p.scores["null"] <= threshold else "" for p in found]
        scores = score(to_rows(examples, [Prediction(text) for text in texts]))
        return scores["exact_match"] + scores["rouge_w"]

    assert value(choose_threshold(examples, found)) == pytest.approx(max(map(value, np.arange(-5.5, 6.0, 0.5))))


def test_without_anything_to_choose_from_no_answer_need_not_be_ahead() -> None:
    assert choose_threshold([], []) == 0
    assert choose_threshold(EXAMPLES[:1], [Prediction("", {"null": None})]) == 0


@pytest.mark.parametrize("threshold", [-3.0, 0.0, 2.5])
def test_the_threshold_is_part_of_the_model_and_moves_every_lead(tiny_encoder, threshold: float) -> None:
    context = "민지는 서울에서 태어나 부산으로 이사했다."
    examples = [
        Example(f"{n}", {"answers": []}, {"question": f"누가 {n}?", "context": context, "start": None})
        for n in range(4)
    ]
    folder, _ = tiny_encoder([context, "누가?0123"])
    tokenizer = load_tokenizer(folder)
    features = KLUE_MRC.featurize(examples, tokenizer, 32, False)
    torch.manual_seed(1)
    model = KLUE_MRC.model(folder, tokenizer)
    before = KLUE_MRC.decode(examples, features, predict(KLUE_MRC, model, features, 0))
    again = KLUE_MRC.model(folder, tokenizer)
    again.load_state_dict({**model.state_dict(), "threshold": torch.tensor(threshold)})
    after = KLUE_MRC.decode(examples, features, predict(KLUE_MRC, again, features, 0))
    for old, new in zip(before, after, strict=True):
        assert new.scores["null"] == pytest.approx(old.scores["null"] - threshold, abs=1e-5)
        assert (new.value == "") == (new.scores["null"] > 0)


def test_tuning_finds_the_lead_that_parts_questions_with_and_without_an_answer(tiny_encoder) -> None:
    context = "민지는 서울에서 태어났다."
    golds = [{"answers": ["서울"] if n % 2 else []} for n in range(6)]
    inputs = [{"question": "어디?", "context": context, "start": 4 if n % 2 else None} for n in range(6)]
    examples = [Example(str(n), *each) for n, each in enumerate(zip(golds, inputs, strict=True))]
    folder, _ = tiny_encoder([context, "어디?"])
    tokenizer = load_tokenizer(folder)
    features = KLUE_MRC.featurize(examples, tokenizer, 32, False)
    model = KLUE_MRC.model(folder, tokenizer)
    place = int(features[1]["start"]), int(features[1]["end"])

    def raw(lead: float) -> dict[str, np.ndarray]:
        start, end = np.zeros((2, len(features[0]["input_ids"])), dtype=np.float32)
        start[place[0]] = end[place[1]] = 3
        start[0] = 6 + lead
        return {"start": start, "end": end, "cut": np.full(len(start), features[1]["cut"], dtype=np.uint8)}

    raws = [raw(1.0 if n % 2 else 5.0) for n in range(6)]  # ahead everywhere, and further where it is right
    assert tune(model, examples, features, raws) == {"no_answer_threshold": 3.0}
    assert model.threshold.item() == 3.0


def test_few_windows_with_an_answer_are_named_in_a_warning(tiny_encoder, caplog) -> None:
    context = "민지는 서울에서 태어나 부산으로 이사했다. " * 4
    example = Example("q", {"answers": ["민지"]}, {"question": "누가?", "context": context, "start": 0})
    folder, _ = tiny_encoder([context, "누가?"])
    tokenizer = load_tokenizer(folder)
    with caplog.at_level(logging.WARNING):
        features = KLUE_MRC.featurize([example], tokenizer, 24, True)
        assert "only 17 % of" in caplog.text or "hold an answer" in caplog.text
        caplog.clear()
        thinned = task_of("klue-mrc", FinetuneConfig(mrc_empty_windows=0.0)).featurize([example], tokenizer, 24, True)
    assert len(features) > 4
    assert [feature["start"] > 0 for feature in thinned] == [True]
    assert not caplog.text


def test_the_published_protocol_keeps_every_window_and_its_decoding() -> None:
    config = FinetuneConfig(protocol="klue-baseline", mrc_empty_windows=0.1)
    task = task_of("klue-mrc", config)
    assert task.featurize is KLUE_MRC.with_protocol("klue-baseline").featurize
    assert task.tune is None


def test_the_threshold_is_kept_with_the_model(tiny_encoder, tmp_path) -> None:
    folder, tokenizer = tiny_encoder(["민지는 서울에서"])
    model = KLUE_MRC.model(folder, tokenizer)
    model.threshold.fill_(1.75)
    as_pretrained(model).save_pretrained(tmp_path / "kept")
    assert AutoModel.from_pretrained(tmp_path / "kept").net.threshold.item() == 1.75
