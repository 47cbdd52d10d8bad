"""KLUE-DP: files in and out, word positions, gold trees through decoding, training, padding, scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.examples import IGNORED, Example, Row
from finetune.tasks.dp.alignment import chain_words, locate_words
from finetune.tasks.dp.reader import POS_IDS, POS_TAGS, UNKNOWN_POS
from finetune.tasks.dp.task import KLUE_DP, configure
from finetune.train.batched_prediction import to_tensors
from tests.finetune.records import record_of

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
def dev_file(tmp_path: Path) -> Path:
    path = tmp_path / "klue-dp-v1.1_dev.tsv"
    path.write_text(HEADER + SENTENCES, encoding="utf-8")
    return path


@pytest.fixture
def examples(dev_file: Path) -> list[Example]:
    return KLUE_DP.read(dev_file)


def raws_of(features):
    """What a perfect model would answer."""
    for feature in features:
        n = len(feature["heads"])
        arcs, types = np.zeros((n, n + 1), dtype=np.float32), np.zeros((n, n + 1), dtype=np.uint8)
        for word, (head, relation) in enumerate(zip(feature["heads"], feature["types"], strict=True)):
            if head != IGNORED:
                arcs[word, head], types[word, head] = 1, relation
        yield {"arcs": arcs, "types": types}


def test_reading_keeps_words_heads_types_and_the_last_tag(examples):
    assert [example.guid for example in examples] == ["made-up-0", "made-up-1", "made-up-2"]
    assert examples[0].inputs["words"] == ["민지는", "새", "책을", "읽었다."]
    assert examples[0].inputs["pos"] == ["JX", "MMA", "JKO", "SF"]
    assert examples[1].gold == {"heads": [2, 0], "types": ["NP_SBJ", "VP"]}


def test_words_that_a_spreadsheet_damaged_are_read_from_the_sentence(examples, tmp_path):
    assert examples[2].inputs["words"] == ["형은", "부산에서", "배를", "탔다."]
    path = tmp_path / "percent.tsv"
    row = "1\t2.50%\t2 . 5 %\tSN+SP+SN+SW\t0\tNP\n"
    path.write_text(f"## a\t2.5%\n{row}\n## b\t둘로 갈린다\n{row}", encoding="utf-8")
    assert [example.inputs["words"] for example in KLUE_DP.read(path)] == [["2.5%"], ["2.50%"]]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("MMA\t3\tDP", "MMA\t9\tDP", r"made-up-0: HEAD must be 0 \(root\) or another word 1\.\.4; found '9'"),
        ("2\t새\t새\tMMA", "3\t새\t새\tMMA", "made-up-0: expected INDEX 2, found '3'"),
        ("\t2\tNP_SBJ", "\t2\tSUBJECT", "made-up-1: unknown relation 'SUBJECT'"),
        ("2\t새\t새\tMMA\t3", "2\t새\tMMA\t3", "made-up-0: expected columns INDEX"),
        ("MMA\t3\tDP", "MMA\t\t", "made-up-0: some rows of this sentence have HEAD"),
    ],
)
def test_a_broken_row_is_reported_with_file_and_sentence(tmp_path, old, new, says):
    path = tmp_path / "broken.tsv"
    path.write_text(SENTENCES.replace(old, new), encoding="utf-8")
    with pytest.raises(BadInput, match=says) as error:
        KLUE_DP.read(path)
    assert "broken.tsv, line" in str(error.value)


@pytest.mark.parametrize("missing", ["", "\t\t", "\t-\t-", "\t_\t_"])
def test_a_file_without_labels_has_no_gold_and_can_be_predicted(dev_file, tiny_encoder, missing):
    lines = [line.rsplit("\t", 2)[0] + missing if line[:1].isdigit() else line for line in SENTENCES.split("\n")]
    dev_file.write_text("\n".join(lines), encoding="utf-8")
    examples = KLUE_DP.read(dev_file)
    assert [example.gold for example in examples] == [None] * 3
    _, tokenizer = tiny_encoder(SENTENCES)
    assert KLUE_DP.featurize(examples, tokenizer, 256, True) == []  # nothing to learn from
    features = KLUE_DP.featurize(examples, tokenizer, 256, False)
    assert [feature["heads"] for feature in features] == [[IGNORED] * 4, [IGNORED] * 2, [IGNORED] * 4]
    values = {example.guid: chain_words(example, "NP", "VP").value for example in examples}
    KLUE_DP.write(dev_file, values, dev_file)
    assert {example.guid: example.gold for example in KLUE_DP.read(dev_file)} == values


def test_labels_in_some_sentences_only_are_an_error(dev_file):
    dev_file.write_text(SENTENCES.replace("\t2\tNP_SBJ", "").replace("VV+EF+SF\t0\tVP", "VV+EF+SF"), encoding="utf-8")
    with pytest.raises(BadInput, match=r"dev.tsv, made-up-1: no HEAD and DEPREL here"):
        KLUE_DP.read(dev_file)


def test_predictions_are_written_in_the_official_layout(dev_file, examples, tmp_path):
    values = {example.guid: chain_words(example, "NP_SBJ", "VP").value for example in examples}
    KLUE_DP.write(dev_file, values, tmp_path / "out.tsv")
    assert {example.guid: example.gold for example in KLUE_DP.read(tmp_path / "out.tsv")} == values
    KLUE_DP.write(tmp_path / "out.tsv", {example.guid: example.gold for example in examples}, tmp_path / "again.tsv")
    assert (tmp_path / "again.tsv").read_bytes() == dev_file.read_bytes()


def test_an_unknown_tag_has_an_id_of_its_own(examples, tiny_encoder):
    _, tokenizer = tiny_encoder(SENTENCES)
    features = KLUE_DP.featurize(examples, tokenizer, 256, True)
    assert features[2]["pos"][-1] == UNKNOWN_POS
    assert features[0]["pos"][1:] == [POS_IDS[tag] for tag in ("JX", "MMA", "JKO", "SF")]


def test_a_word_without_tokens_takes_no_other_words_tokens(tiny_encoder):
    _, tokenizer = tiny_encoder(SENTENCES)
    gold = {"heads": [3, 3, 0], "types": ["NP"] * 3}
    example = Example("x", gold, {"words": ["비가", "\u200b", "온다."], "pos": ["JX"] * 3})
    (feature,) = KLUE_DP.featurize([example], tokenizer, 256, False)
    tokens = tokenizer.convert_ids_to_tokens(feature["input_ids"])
    assert [tokens[i] for i in feature["first"]] == ["[CLS]", "비", "[CLS]", "온"]
    assert [tokens[i] for i in feature["last"]] == ["[CLS]", "##가", "[CLS]", "."]


def build_metaspace() -> Tokenizer:
    """SentencePiece: the space before a word is a piece of its own or the beginning of one."""
    pieces = ["<unk>", "<s>", "▁", "▁책", "민", "지는", "을", "새"]
    tokenizer = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing("<s> $0", special_tokens=[("<s>", 1)])
    return tokenizer


def build_byte_level(trim_offsets: bool) -> Tokenizer:
    """Bytes: three pieces a syllable, and the space before a word begins one or is one."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({piece: number for number, piece in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
    return tokenizer


def test_words_are_found_with_any_treatment_of_spaces():
    words = ["민지는", "새", "책을"]
    pieces = build_metaspace().encode(" ".join(words))
    first, last = locate_words(words, pieces.offsets)
    assert [pieces.tokens[i] for i in last] == ["지는", "새", "을"]
    assert pieces.tokens[first[1]] in ("▁", "새")
    assert pieces.tokens[first[2]] == "▁책"
    assert locate_words(["새"], [(0, 0), (0, 1)]) == ([1], [1])
    for trims in (True, False):
        offsets = build_byte_level(trims).encode(" ".join(words)).offsets
        assert locate_words(words, offsets) == ([0, 10, 14], [8, 12, 19])  # 9 bytes, space, 3 bytes, space, 6 bytes


def test_words_behind_the_cut_are_still_predicted(examples, tiny_encoder):
    _, tokenizer = tiny_encoder(SENTENCES)
    features = KLUE_DP.featurize(examples[:1], tokenizer, 7, False)  # [CLS] 민지는 새 책 [SEP]
    assert (len(features[0]["input_ids"]), len(features[0]["heads"])) == (7, 2)
    assert features[0]["heads"] == [IGNORED, IGNORED]
    (prediction,) = KLUE_DP.decode(examples[:1], features, list(raws_of(features)))
    assert prediction.value["heads"] == [2, 3, 4, 0]


@pytest.mark.parametrize("protocol", ["malmoi", "klue-baseline"])
def test_a_word_longer_than_the_longest_input_is_kept(examples, tiny_encoder, protocol):
    task = KLUE_DP.with_protocol(protocol)
    _, tokenizer = tiny_encoder(SENTENCES)
    (feature,) = task.featurize(examples[:1], tokenizer, 3, False)  # [CLS] 민 [SEP]
    assert (len(feature["input_ids"]), len(feature["heads"])) == (3, 1)
    assert max(feature["last"]) < 3
    (prediction,) = task.decode(examples[:1], [feature], list(raws_of([feature])))
    assert prediction.value["heads"][1:] == [3, 4, 0]


@pytest.mark.parametrize("protocol", ["malmoi", "klue-baseline"])
def test_gold_targets_decode_to_the_gold_trees(examples, tiny_encoder, protocol):
    task = KLUE_DP.with_protocol(protocol)
    _, tokenizer = tiny_encoder(SENTENCES)
    features = task.featurize(examples, tokenizer, 256, False)
    predictions = task.decode(examples, features, list(raws_of(features)))
    assert [prediction.value for prediction in predictions] == [example.gold for example in examples]


def test_a_record_says_what_a_model_sees_and_learns(examples, tiny_encoder):
    _, tokenizer = tiny_encoder(SENTENCES)
    (feature,) = KLUE_DP.featurize(examples[:1], tokenizer, 11, False)
    labels = record_of(KLUE_DP, examples[0], [feature], 11)["labels"]
    assert labels == {
        "word_starts": [1, 4, 5], "word_ends": [3, 4, 6], "heads": [None, 3, None], "types": [None, "DP", None],
        "pos": ["JX", "MMA", "JKO"],
    }  # fmt: skip


@pytest.mark.parametrize("variant", ["malmoi", "klue-baseline", "without tags"])
def test_training_lowers_the_loss_and_learns_the_trees(examples, tiny_encoder, variant, monkeypatch):
    is_published = variant == "klue-baseline"
    if is_published:  # its sizes do not follow the encoder's
        for name, size in {"WORDS": 256, "ARC": 128, "TYPE": 128}.items():
            monkeypatch.setattr(f"finetune.heads.biaffine.{name}", size)
    examples[2].inputs["pos"][-1] = "SF"
    task = (
        configure(KLUE_DP, FinetuneConfig(pos_tags=False))
        if variant == "without tags"
        else KLUE_DP.with_protocol(variant)
    )
    folder, tokenizer = tiny_encoder(SENTENCES, "roberta")
    torch.manual_seed(1)
    model = task.model(folder, tokenizer).train()
    assert (model.reader.pos is None) == (variant == "without tags")
    features = task.featurize(examples, tokenizer, 256, True)
    batch = to_tensors(task.collate(features, tokenizer.pad_token_id))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3 if is_published else 3e-3)
    losses = []
    for _ in range(25 if is_published else 60):
        loss = model(**batch)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    predictions = task.decode(examples, features, model.eval().predict(**batch))
    assert losses[-1] < losses[0] / 4
    assert [prediction.value for prediction in predictions] == [example.gold for example in examples]


def pad_longer(batch):
    """Three more sub-words and two more words of padding in every row."""
    fillers = {"attention_mask": 0, "input_ids": 0, "first": 0, "last": 0, "pos": 0, "heads": IGNORED, "types": IGNORED}
    return {"lengths": batch["lengths"]} | {
        key: np.pad(batch[key], ((0, 0), (0, 3 if "_" in key else 2)), constant_values=filler)
        for key, filler in fillers.items()
    }


@pytest.mark.parametrize("protocol", ["malmoi", "klue-baseline"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_scores_depend_on_neither_batch_mates_nor_padding(examples, tiny_encoder, kind, protocol):
    task = KLUE_DP.with_protocol(protocol)
    folder, tokenizer = tiny_encoder(SENTENCES, kind)
    model = task.model(folder, tokenizer).eval()
    examples[2].inputs["pos"][-1] = "SF"
    features = task.featurize(examples, tokenizer, 256, False)
    together = model.predict(**to_tensors(task.collate(features[::-1], 0)))[::-1]
    padded = model.predict(**to_tensors(pad_longer(task.collate(features, 0))))
    for feature, raw, longer in zip(features, together, padded, strict=True):
        (alone,) = model.predict(**to_tensors(task.collate([feature], 0)))
        n = len(feature["heads"])
        assert raw["arcs"].shape == raw["types"].shape == (n, n + 1)
        assert (raw["arcs"][-1, 1] > -100) == (protocol == "klue-baseline")  # a head to the left
        for other in (raw, longer):
            np.testing.assert_allclose(alone["arcs"], other["arcs"], atol=1e-5)
            np.testing.assert_array_equal(alone["types"], other["types"])


def test_every_real_tree_survives_decoding(shared, klue_tokenizer):
    examples = KLUE_DP.read(shared("data/klue/official/klue-dp-v1.1/klue-dp-v1.1_dev.tsv.zst"))
    features = KLUE_DP.featurize(examples, klue_tokenizer, 256, False)
    predictions = KLUE_DP.decode(examples, features, list(raws_of(features)))
    rows = [Row(e.guid, e.gold, p.value) for e, p in zip(examples, predictions, strict=True)]
    assert (len(rows), sum(len(row.gold["heads"]) for row in rows)) == (2000, 22496)
    assert all(row.gold == row.prediction for row in rows)
    assert all(UNKNOWN_POS not in feature["pos"] for feature in features)
    assert all(0 < i <= j for f in features for i, j in zip(f["first"][1:], f["last"][1:], strict=True))


def test_tags_have_the_published_order() -> None:
    """KLUE-baseline, klue_dp.py: JC is among the adverbs and interjections, not after JX."""
    assert len(POS_TAGS) == len(set(POS_TAGS)) == 45
    assert POS_TAGS[13:18] == ("MAG", "MAJ", "JC", "IC", "JKS")
    assert POS_TAGS[24:26] == ("JX", "EP")
