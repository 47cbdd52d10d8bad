"""WoS: turns, gates and spelt values, the fast loss against a step-by-step one, real and published data."""

from __future__ import annotations

import json

import pytest
import torch

from finetune.config import BadInput
from finetune.predict import to_tensors
from finetune.task import Example, Row
from finetune.tasks.wos import GATES, PTR, SLOTS, WOS, read_ontology, restore_value, spell_value

DIALOGUES = [
    {
        "guid": "made-up-0",
        "domains": ["식당"],
        "dialogue": [
            {"role": "user", "text": "서울 동쪽 한식당 찾아줘.", "state": ["식당-지역-서울 동쪽", "식당-종류-한식당"]},
            {"role": "sys", "text": "달빛 밥상이 있어요."},
            {
                "role": "user",
                "text": "거기로 18시 30분, 주차도 돼야 하고 가격은 상관없어.",
                "state": [
                    "식당-지역-서울 동쪽",
                    "식당-종류-한식당",
                    "식당-이름-달빛 밥상",
                    "식당-예약 시간-18:30",
                    "식당-주차 가능-yes",
                    "식당-가격대-dontcare",
                ],
            },
        ],
    },
    {
        "guid": "made-up-1",
        "domains": ["택시"],
        "dialogue": [
            {"role": "user", "text": "안녕하세요?", "state": []},
            {"role": "sys", "text": "네."},
            {"role": "user", "text": "별&숲 역으로 택시 불러줘.", "state": ["택시-도착지-별&숲 역"]},
        ],
    },
]  # fmt: skip
VALUES = {
    "식당-지역": ["서울 동쪽"],
    "식당-종류": ["한식당"],
    "식당-이름": ["달빛 밥상"],
    "식당-예약 시간": ["18:30"],
}
TEXT = json.dumps(DIALOGUES, ensure_ascii=False) + "".join(SLOTS)


@pytest.fixture
def write(tmp_path):
    def to_file(dialogues, ontology=True):
        if ontology:
            values = {slot: ["none", "dontcare", *VALUES.get(slot, [])] for slot in SLOTS}
            (tmp_path / "ontology.json").write_text(json.dumps(values), encoding="utf-8")
        path = tmp_path / "wos-v1.1_dev.json"
        path.write_text(json.dumps(dialogues), encoding="utf-8")
        return path

    return to_file


@pytest.fixture
def examples(write):
    return WOS.read(write(DIALOGUES))


def raws_of(features, tokenizer):
    """What a perfect model would answer."""
    return [
        {
            "gates": feature["gates"],
            "values": {SLOTS[s]: spell_value(ids[:-1], tokenizer) for s, ids in feature["targets"].items()},
        }
        for feature in features
    ]


def score(examples, predictions):
    return WOS.score([Row(e.guid, e.gold, p.value) for e, p in zip(examples, predictions, strict=True)])


def broken(**changes):
    dialogue = json.loads(json.dumps(DIALOGUES[0]))
    dialogue["dialogue"][0].update(changes)
    return [dialogue]


def test_an_example_is_a_user_turn_with_all_turns_before_it(examples):
    assert [example.guid for example in examples] == ["made-up-0-0", "made-up-0-1", "made-up-1-0", "made-up-1-1"]
    assert examples[0].inputs["turns"] == ("", "서울 동쪽 한식당 찾아줘.")
    assert [len(example.inputs["turns"]) for example in examples] == [2, 4, 2, 4]
    assert {WOS.group(example) for example in examples} == {"made-up-0", "made-up-1"}


@pytest.mark.parametrize(
    ("dialogues", "says"),
    [
        (broken(state=["식당-색깔-빨강"]), r"made-up-0, turn 1: state '식당-색깔-빨강' is not domain-slot-value"),
        (broken(state=None), r"made-up-0, turn 1: expected a list under 'state'"),
        (broken(role="sys"), r"made-up-0: turn 1 of 'dialogue' should have role 'user'"),
        ([{"guid": "made-up-0"}], r"made-up-0: expected a list of turns"),
        ([], r"at least one record"),
    ],
)
def test_a_broken_dialogue_is_reported_with_its_guid(write, dialogues, says):
    with pytest.raises(BadInput, match=says):
        WOS.read(write(dialogues))


def test_an_ontology_with_other_slots_is_an_error(write, tmp_path):
    path = write(DIALOGUES)
    (tmp_path / "ontology.json").write_text(json.dumps({"식당-색깔": ["빨강"]}), encoding="utf-8")
    with pytest.raises(BadInput, match="45 slots"):
        WOS.read(path)


def test_a_missing_ontology_is_said(write, caplog):
    assert len(WOS.read(write(DIALOGUES, ontology=False))) == 4
    assert "no ontology.json" in caplog.text


def test_the_oldest_tokens_are_cut_and_cls_stays(examples, tiny_encoder):
    _, tokenizer = tiny_encoder([TEXT])
    whole = WOS.featurize(examples, tokenizer, 200, False)[1]["input_ids"]
    cut = WOS.featurize(examples, tokenizer, 20, False)[1]["input_ids"]
    assert tokenizer.convert_ids_to_tokens(whole[:3]) == ["[CLS]", "[SEP]", "서"]
    assert cut == [whole[0], *whole[-19:]]


def test_gold_targets_decode_to_the_gold_states(examples, tiny_encoder):
    _, tokenizer = tiny_encoder([TEXT])
    features = WOS.featurize(examples, tokenizer, 200, False)
    predictions = WOS.decode(examples, features, raws_of(features, tokenizer))
    assert score(examples, predictions) == {"joint_goal_acc": 100, "slot_micro_f1": 100}


def test_a_value_takes_its_spaces_from_the_ontology_or_the_dialogue():
    known = {"롯데월드타워&몰": ["롯데월드타워&몰"], "시청역": ["시청역", "시청 역"]}
    assert restore_value("롯데월드타워 & 몰", known, ()) == "롯데월드타워&몰"
    assert restore_value("시청 역", known, ()) == "시청 역"
    assert restore_value("별 & 숲 역", known, ("", "별&숲 역으로", "네.")) == "별&숲 역"
    assert restore_value("달 & 숲", known, ("", "별&숲 역으로")) == "달 & 숲"
    assert restore_value("", known, ("", "네.")) == ""


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_gates_and_loss_depend_on_neither_batch_mates_nor_padding(examples, tiny_encoder, kind):
    folder, tokenizer = tiny_encoder([TEXT], kind)
    model = WOS.model(folder, tokenizer).eval()
    features = WOS.featurize(examples, tokenizer, 200, False)
    batch = to_tensors(WOS.collate(features[::-1], 0))
    together = model.score_gates(model.encode(batch), model.embed_slots(), batch["attention_mask"]).flip(0)
    raws = model.predict(**batch)[::-1]
    for feature, gates, raw in zip(features, together, raws, strict=True):
        single = to_tensors(WOS.collate([feature], 0))
        alone = model.score_gates(model.encode(single), model.embed_slots(), single["attention_mask"])[0]
        torch.testing.assert_close(alone, gates, atol=1e-5, rtol=0)
        assert model.predict(**single) == [raw]


def slow_spelling_loss(model, batch):
    """-log p of every target token, one slot and one step at a time, with the whole vocabulary's distribution."""
    losses, states, slots = [], model.encode(batch), model.embed_slots()
    for row, (ids, targets) in enumerate(zip(batch["input_ids"], batch["targets"], strict=True)):
        for k, tokens in enumerate(targets):
            hidden, given = states[row, :1], slots[batch["slots"][row, k]]
            for token in tokens[tokens >= 0]:
                hidden = model.decoder(given[None, None], hidden[None])[0][0]
                scores = (states[row] @ hidden[0]).masked_fill(batch["attention_mask"][row] == 0, -1e9)
                attention = scores.softmax(-1)
                share = model.generate(torch.cat([hidden[0], attention @ states[row], given])).sigmoid()
                p = share * (model.embeddings @ hidden[0]).softmax(-1)
                losses.append(-p.index_add(0, ids, (1 - share) * attention)[token].log())
                given = model.embeddings[token]
    return torch.stack(losses).mean()


def test_the_fast_loss_equals_a_step_by_step_one(examples, tiny_encoder):
    folder, tokenizer = tiny_encoder([TEXT])
    model = WOS.model(folder, tokenizer).eval()
    batch = to_tensors(WOS.collate(WOS.featurize(examples, tokenizer, 200, True), 0))
    fast = model.spelling_loss(batch, model.encode(batch), model.embed_slots())
    torch.testing.assert_close(fast, slow_spelling_loss(model, batch), atol=1e-4, rtol=0)


def test_training_lowers_the_loss_and_learns_the_states(examples, tiny_encoder):
    folder, tokenizer = tiny_encoder([TEXT], "roberta")
    torch.manual_seed(1)
    model = WOS.model(folder, tokenizer).train()
    features = WOS.featurize(examples, tokenizer, 200, True)
    batch = to_tensors(WOS.collate(features, tokenizer.pad_token_id))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(300):
        loss = model(**batch)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    predictions = WOS.decode(examples, features, model.eval().predict(**batch))
    assert losses[-1] < losses[0] / 10
    assert score(examples, predictions)["joint_goal_acc"] == 100


def test_a_batch_without_values_has_a_loss(examples, tiny_encoder):
    folder, tokenizer = tiny_encoder([TEXT])
    model = WOS.model(folder, tokenizer)
    features = WOS.featurize(examples[2:3], tokenizer, 200, True)
    assert features[0]["targets"] == {}
    assert 0 < model(**to_tensors(WOS.collate(features, 0)))["loss"].item() < 10


def test_trivially_every_state_is_empty(examples):
    values = score(examples, WOS.trivial(examples, examples))
    assert values == {"joint_goal_acc": 25, "slot_micro_f1": 25}


def test_every_ontology_value_is_reachable(shared, klue_tokenizer):
    ontology = read_ontology(shared("data/klue/official/wos-v1.1/ontology.json"))
    values = [
        f"{slot}-{value}"
        for slot in SLOTS
        for values in ontology[slot].values()
        for value in values
        if value not in GATES
    ]
    examples = [
        Example(value, [value], {"dialogue": "", "turns": ("", "네."), "ontology": ontology}) for value in values
    ]
    features = WOS.featurize(examples, klue_tokenizer, 510, False)
    predictions = WOS.decode(examples, features, raws_of(features, klue_tokenizer))
    assert len(values) == 2322
    assert [prediction.value for prediction in predictions] == [example.gold for example in examples]
    assert all(feature["gates"].count(PTR) == 1 for feature in features)


def test_real_states_survive_but_for_unknown_words(shared, klue_tokenizer):
    examples = WOS.read(shared("data/klue/derived/wos-v1.1/wos-v1.1_dev.json.zst"))
    assert examples[0].inputs["ontology"], "found in the folder beside"
    features = WOS.featurize(examples, klue_tokenizer, 510, False)
    predictions = WOS.decode(examples, features, raws_of(features, klue_tokenizer))
    lost = {value for e, p in zip(examples, predictions, strict=True) for value in set(e.gold) - set(p.value)}
    assert len(examples) == 4332
    assert {value.split("-", 2)[2] for value in lost} == {"펭이모텔"}
    assert klue_tokenizer.tokenize("펭이모텔") == ["[UNK]"]
    assert score(examples, predictions)["joint_goal_acc"] > 98.8


def test_inputs_and_targets_equal_the_published_ones(shared, klue_tokenizer, published_features):
    path = shared("data/klue/derived/wos-v1.1/wos-v1.1_dev.json.zst")
    examples = {example.guid: example for example in WOS.read(path)}
    records = published_features("wos")
    features = WOS.featurize([examples[r["guid"]] for r in records], klue_tokenizer, 510, False)
    assert len(records) == 56
    for record, feature in zip(records, features, strict=True):
        published = record["labels"]["slots"]
        assert feature["input_ids"] == record["input_ids"]
        assert [GATES[gate] for gate in feature["gates"]] == [
            published.get(slot, {"gate": "none"})["gate"] for slot in SLOTS
        ]
        for number, ids in feature["targets"].items():
            assert ids == published[SLOTS[number]]["target_ids"]
