"""KLUE-DP: the tree search against all trees, word positions, gold trees through decoding, real and published data."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
import torch

from finetune.config import BadInput
from finetune.heads.tree import best_right_headed_tree
from finetune.metrics.dp import DP_LABELS
from finetune.padding import IGNORED
from finetune.predict import to_tensors
from finetune.task import Row
from finetune.tasks.klue_dp import KLUE_DP, POS_IDS, UNKNOWN_POS

HEADER = "## 칼럼명 : INDEX\tWORD_FORM\tLEMMA\tPOS\tHEAD\tDEPREL\n"
SENTENCES = """## made-up-0\t민지는 새 책을 읽었다.
1\t민지는\t민지 는\tNNP+JX\t4\tNP_SBJ
2\t새\t새\tMMA\t3\tDP
3\t책을\t책 을\tNNG+JKO\t4\tNP_OBJ
4\t읽었다.\t읽 었 다 .\tVV+EP+EF+SF\t0\tVP

## made-up-1\t비가 온다.
1\t비가\t비 가\tNNG+JKS\t2\tNP_SBJ
2\t온다.\t오 ㄴ다 .\tVV+EF+SF\t0\tVP

## made-up-2\t형은 부산에서 배를 탔다.
1\t형은\t형 은\tNNG+JX\t4\tNP_SBJ
2\t부산에서\t부산 에서\tNNP+JKB\t4\tNP_AJT
3\t배를\t배 를\tNNG+JKO\t4\tNP_OBJ
4\t탔다.\t타 았 다 .\t#NAME?\t0\tVP
"""


@pytest.fixture
def examples(tmp_path: Path):
    path = tmp_path / "klue-dp-v1.1_dev.tsv"
    path.write_text(HEADER + SENTENCES, encoding="utf-8")
    return KLUE_DP.read(path)


def is_projective(heads) -> bool:
    arcs = [(min(w, h), max(w, h)) for w, h in enumerate(heads, start=1) if h]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def right_headed_trees(n: int):
    choices = [range(w + 1, n + 1) for w in range(1, n)]
    return [[*heads, 0] for heads in product(*choices) if is_projective([*heads, 0])]


def raws_of(features):
    """What a perfect model would answer."""
    for feature in features:
        n = len(feature["heads"])
        arcs, types = np.zeros((n, n + 1), dtype=np.float32), np.zeros((n, n + 1), dtype=np.uint8)
        for word, (head, relation) in enumerate(zip(feature["heads"], feature["types"], strict=True)):
            if head != IGNORED:
                arcs[word, head], types[word, head] = 1, relation
        yield {"arcs": arcs, "types": types}


@pytest.mark.parametrize("n", range(1, 7))
def test_the_tree_found_is_the_best_of_all_right_headed_projective_trees(n):
    trees = right_headed_trees(n)
    for seed in range(20):
        scores = np.random.default_rng([seed, n]).normal(size=(n, n + 1))
        totals = [sum(scores[w, h] for w, h in enumerate(heads)) for heads in trees]
        assert best_right_headed_tree(scores) == trees[int(np.argmax(totals))]


def test_arcs_that_point_left_never_win():
    scores = np.where(np.tri(5, 6) > 0, 100.0, 0.0)
    heads = best_right_headed_tree(scores)
    assert heads[-1] == 0
    assert all(head > word for word, head in enumerate(heads[:-1], start=1))


def test_sixty_words_are_decoded_in_milliseconds():
    scores = np.random.default_rng(1).normal(size=(60, 61))
    best_right_headed_tree(scores)
    seconds = []
    for _ in range(5):
        begin = perf_counter()
        best_right_headed_tree(scores)
        seconds.append(perf_counter() - begin)
    assert min(seconds) < 0.03


def test_reading_keeps_words_heads_types_and_the_last_tag(examples):
    assert [example.guid for example in examples] == ["made-up-0", "made-up-1", "made-up-2"]
    assert examples[0].inputs["words"] == ["민지는", "새", "책을", "읽었다."]
    assert examples[0].inputs["pos"] == ["JX", "MMA", "JKO", "SF"]
    assert examples[1].gold == {"heads": [2, 0], "types": ["NP_SBJ", "VP"]}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "\t4\tNP_OBJ\n4\t읽",
            "\t9\tNP_OBJ\n4\t읽",
            r"made-up-0: HEAD must be 0 \(root\) or another word 1\.\.4; found '9'",
        ),
        ("2\t새\t새\tMMA", "3\t새\t새\tMMA", "made-up-0: expected INDEX 2, found '3'"),
        ("\t2\tNP_SBJ", "\t2\tSUBJECT", "made-up-1: unknown relation 'SUBJECT'"),
        ("2\t새\t새\tMMA", "2\t새\tMMA", "made-up-0: expected 6 columns"),
    ],
)
def test_a_broken_row_is_reported_with_file_and_sentence(tmp_path, old, new, says):
    path = tmp_path / "broken.tsv"
    path.write_text(SENTENCES.replace(old, new), encoding="utf-8")
    with pytest.raises(BadInput, match=says) as error:
        KLUE_DP.read(path)
    assert "broken.tsv, line" in str(error.value)


def test_an_unknown_tag_has_an_id_of_its_own(examples, tiny_encoder):
    _, tokenizer = tiny_encoder(SENTENCES)
    features = KLUE_DP.featurize(examples, tokenizer, 256, True)
    assert features[2]["pos"][-1] == UNKNOWN_POS
    assert features[0]["pos"][1:] == [POS_IDS[tag] for tag in ("JX", "MMA", "JKO", "SF")]


def test_a_word_without_tokens_takes_no_other_words_tokens(examples, tiny_encoder):
    _, tokenizer = tiny_encoder(SENTENCES)
    words = ["비가", "\u200b", "온다."]
    example = type(examples[0])("x", {"heads": [3, 3, 0], "types": ["NP"] * 3}, {"words": words, "pos": ["JX"] * 3})
    (feature,) = KLUE_DP.featurize([example], tokenizer, 256, False)
    tokens = tokenizer.convert_ids_to_tokens(feature["input_ids"])
    assert [tokens[i] for i in feature["first"]] == ["[CLS]", "비", "[CLS]", "온"]
    assert [tokens[i] for i in feature["last"]] == ["[CLS]", "##가", "[CLS]", "."]


def test_words_behind_the_cut_are_still_predicted(examples, tiny_encoder):
    _, tokenizer = tiny_encoder(SENTENCES)
    features = KLUE_DP.featurize(examples[:1], tokenizer, 7, False)  # [CLS] 민지는 새 책 [SEP]
    assert (len(features[0]["input_ids"]), len(features[0]["heads"])) == (7, 2)
    assert features[0]["heads"] == [IGNORED, IGNORED]
    (prediction,) = KLUE_DP.decode(examples[:1], features, list(raws_of(features)))
    assert prediction.value["heads"] == [2, 3, 4, 0]


def test_gold_targets_decode_to_the_gold_trees(examples, tiny_encoder):
    _, tokenizer = tiny_encoder(SENTENCES)
    features = KLUE_DP.featurize(examples, tokenizer, 256, False)
    predictions = KLUE_DP.decode(examples, features, list(raws_of(features)))
    assert [prediction.value for prediction in predictions] == [example.gold for example in examples]


def test_training_lowers_the_loss_and_learns_the_trees(examples, tiny_encoder):
    folder, tokenizer = tiny_encoder(SENTENCES, "roberta")
    torch.manual_seed(1)
    model = KLUE_DP.model(folder, tokenizer).train()
    features = KLUE_DP.featurize(examples, tokenizer, 256, True)
    batch = to_tensors(KLUE_DP.collate(features, tokenizer.pad_token_id))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(60):
        loss = model(**batch)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    predictions = KLUE_DP.decode(examples, features, model.eval().predict(**batch))
    assert losses[-1] < losses[0] / 4
    assert [prediction.value for prediction in predictions] == [example.gold for example in examples]


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_scores_depend_on_neither_batch_mates_nor_padding(examples, tiny_encoder, kind):
    folder, tokenizer = tiny_encoder(SENTENCES, kind)
    model = KLUE_DP.model(folder, tokenizer).eval()
    features = KLUE_DP.featurize(examples, tokenizer, 256, False)
    together = model.predict(**to_tensors(KLUE_DP.collate(features[::-1], 0)))[::-1]
    for feature, raw in zip(features, together, strict=True):
        (alone,) = model.predict(**to_tensors(KLUE_DP.collate([feature], 0)))
        np.testing.assert_allclose(alone["arcs"], raw["arcs"], atol=1e-5)
        np.testing.assert_array_equal(alone["types"], raw["types"])


def test_trivial_trees_chain_the_words(examples):
    predictions = KLUE_DP.trivial(examples, examples)
    assert predictions[0].value == {"heads": [2, 3, 4, 0], "types": ["NP_SBJ"] * 3 + ["VP"]}
    rows = [Row(e.guid, e.gold, p.value) for e, p in zip(examples, predictions, strict=True)]
    assert 0 < KLUE_DP.score(rows)["uas_micro_f1"] < 100


def test_every_real_tree_survives_decoding(shared, klue_tokenizer):
    examples = KLUE_DP.read(shared("data/klue/official/klue-dp-v1.1/klue-dp-v1.1_dev.tsv.zst"))
    features = KLUE_DP.featurize(examples, klue_tokenizer, 256, False)
    predictions = KLUE_DP.decode(examples, features, list(raws_of(features)))
    rows = [Row(e.guid, e.gold, p.value) for e, p in zip(examples, predictions, strict=True)]
    assert (len(rows), sum(len(row.gold["heads"]) for row in rows)) == (2000, 22496)
    assert KLUE_DP.score(rows)["uas_micro_f1"] == KLUE_DP.score(rows)["las_micro_f1"] == 100
    assert all(UNKNOWN_POS not in feature["pos"] for feature in features)


def test_features_equal_the_published_ones(shared, klue_tokenizer, published_features):
    path = shared("data/klue/official/klue-dp-v1.1/klue-dp-v1.1_dev.tsv.zst")
    examples = {example.guid: example for example in KLUE_DP.read(path)}
    records = published_features("klue-dp")
    chosen = [examples[record["guid"]] for record in records]
    features = KLUE_DP.featurize(chosen, klue_tokenizer, 256, False)
    assert len(records) >= 50
    for record, feature in zip(records, features, strict=True):
        labels = record["labels"]
        assert feature["input_ids"] == record["input_ids"]
        assert feature["first"][1:] == labels["word_starts"]
        assert feature["last"][1:] == labels["word_ends"]
        assert feature["heads"] == labels["heads"]
        assert [DP_LABELS[number] for number in feature["types"]] == labels["types"]
        assert feature["pos"][1:] == [POS_IDS[tag] for tag in labels["pos"]]
